//! The front of a packet: bytes and headers that are put there, and that go.
#![allow(unsafe_code)]

use super::Packet;

impl Packet {
    /// Take `count` bytes off the front; false (and nothing changes) when the first segment is
    /// shorter.
    #[inline(always)]
    #[must_use]
    pub fn pull(&mut self, count: usize) -> bool {
        if count > self.length as usize {
            return false;
        }
        self.offset += count as u16;
        self.length -= count as u16;
        if self.is_chained() {
            self.header_line_mut().total_length -= count as u32;
        }
        true
    }

    /// Put `count` bytes in front, as they lie there (what was pulled comes back unchanged); false
    /// (and nothing changes) without headroom.
    #[inline(always)]
    #[must_use]
    pub fn push(&mut self, count: usize) -> bool {
        if count > self.headroom() {
            return false;
        }
        self.grow_front(count);
        true
    }

    /// Put `bytes` behind the first `at` bytes, which move to the front; false (and nothing
    /// changes) when the first segment is shorter, or without headroom.
    #[inline]
    #[must_use]
    pub fn insert(&mut self, at: usize, bytes: &[u8]) -> bool {
        let count = bytes.len();
        if at > self.segment_length() || !self.push(count) {
            return false;
        }
        let all = self.bytes_mut();
        all.copy_within(count..count + at, 0);
        all[at..at + count].copy_from_slice(bytes);
        true
    }

    /// Take the `count` bytes behind the first `at` bytes out; false (and nothing changes) when the
    /// first segment is shorter.
    #[inline]
    #[must_use]
    pub fn remove(&mut self, at: usize, count: usize) -> bool {
        if at + count > self.segment_length() {
            return false;
        }
        self.bytes_mut().copy_within(..at, count);
        self.pull(count)
    }

    /// Put a header of at most 16 bytes in front: `block` holds it right-aligned, and all 16 bytes
    /// are written ending where the packet begins (what stood there is headroom). Two instructions
    /// on the plain path. False without headroom.
    #[inline(always)]
    #[must_use]
    pub fn push_block16(&mut self, block: &[u8; 16], count: usize) -> bool {
        debug_assert!(count <= 16);
        if self.headroom() < 16 {
            return false;
        }
        // SAFETY: at least 16 bytes of headroom lie in front of the data.
        unsafe { self.data().sub(16).cast::<[u8; 16]>().write_unaligned(*block) };
        self.grow_front(count);
        true
    }

    /// `count` bytes more in front, of a headroom that has them. The length cannot overflow: offset
    /// and length together stay inside a buffer, whose size fits.
    #[inline(always)]
    fn grow_front(&mut self, count: usize) {
        debug_assert!(count <= self.headroom());
        self.offset -= count as u16;
        self.length += count as u16;
        if self.is_chained() {
            self.header_line_mut().total_length += count as u32;
        }
    }

    /// As [`push_block16`](Self::push_block16), for up to 32 bytes.
    #[inline(always)]
    #[must_use]
    pub fn push_block32(&mut self, block: &[u8; 32], count: usize) -> bool {
        debug_assert!(count <= 32);
        if self.headroom() < 32 {
            return false;
        }
        // SAFETY: at least 32 bytes of headroom lie in front of the data.
        unsafe { self.data().sub(32).cast::<[u8; 32]>().write_unaligned(*block) };
        self.grow_front(count);
        true
    }

    /// Put a header of `count` bytes in front that `blocks` hold right-aligned: all of them are
    /// written, ending where the packet begins (what stood before the header is headroom). Two to
    /// seven blocks, which the headers of tunnels fill, are moved without a loop. False (and
    /// nothing changes) without headroom for all blocks.
    #[inline(always)]
    #[must_use]
    pub fn push_blocks(&mut self, blocks: &[[u8; 32]], count: usize) -> bool {
        debug_assert!(count <= size_of_val(blocks));
        if self.headroom() < size_of_val(blocks) {
            return false;
        }
        // SAFETY: so many bytes of headroom lie in front of the data.
        let to = unsafe { self.data().sub(size_of_val(blocks)) };
        macro_rules! moved {
            ($($blocks:literal)+) => {
                match blocks.len() {
                    $($blocks => if let Some(whole) = blocks.first_chunk::<$blocks>() {
                        // SAFETY: as above, and these are all the blocks.
                        unsafe { to.cast::<[[u8; 32]; $blocks]>().write_unaligned(*whole) };
                    })+
                    _ => for (place, block) in blocks.iter().enumerate() {
                        // SAFETY: as above; `place` is below the number of blocks.
                        unsafe { to.cast::<[u8; 32]>().add(place).write_unaligned(*block) };
                    },
                }
            };
        }
        moved!(2 3 4 5 6 7);
        self.grow_front(count);
        true
    }

    /// Put two headers in front: one of `count` bytes that `blocks` hold right-aligned, and before
    /// it one of `outer_count` bytes that `outer` holds right-aligned. Bytes before them that are
    /// headroom may be written. False (and nothing changes) without headroom, or where a header is
    /// longer than what holds it.
    #[inline(always)]
    #[must_use]
    pub fn push_two<const BLOCKS: usize>(
        &mut self,
        blocks: &[[u8; 32]; BLOCKS],
        count: usize,
        outer: &[u8; 32],
        outer_count: usize,
    ) -> bool {
        let is_whole = (count <= size_of_val(blocks)) & (outer_count <= outer.len());
        if !is_whole | (self.headroom() < size_of_val(blocks) + outer.len()) {
            return self.push_two_exactly(blocks.as_flattened(), count, outer, outer_count);
        }
        // SAFETY: so many bytes of headroom lie in front of the data.
        unsafe {
            self.data()
                .sub(size_of_val(blocks))
                .cast::<[[u8; 32]; BLOCKS]>()
                .write_unaligned(*blocks);
        }
        // SAFETY: as above: the first header is at most as long as its blocks, which was asked.
        unsafe { self.data().sub(count + outer.len()).cast::<[u8; 32]>().write_unaligned(*outer) };
        self.grow_front(count + outer_count);
        true
    }

    /// As [`push_two`](Self::push_two), where there is little headroom or a header cannot be.
    #[cold]
    #[inline(never)]
    fn push_two_exactly(
        &mut self,
        inner: &[u8],
        count: usize,
        outer: &[u8; 32],
        outer_count: usize,
    ) -> bool {
        let (Some(inner_from), Some(outer_from)) =
            (inner.len().checked_sub(count), outer.len().checked_sub(outer_count))
        else {
            return false;
        };
        let both = count + outer_count;
        if !self.push(both) {
            return false;
        }
        let (first, second) = self.bytes_mut()[..both].split_at_mut(outer_count);
        first.copy_from_slice(&outer[outer_from..]);
        second.copy_from_slice(&inner[inner_from..]);
        true
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::memory::buffer::{BufferCache, BufferPool, DATA_BYTES_DEFAULT};
    use crate::memory::mapping::PageSize;

    fn cache() -> BufferCache {
        BufferPool::new(512, DATA_BYTES_DEFAULT, PageSize::Small).expect("pool").cache()
    }

    #[test]
    fn what_is_pulled_comes_back_when_pushed() {
        let mut cache = cache();
        let mut packet = cache.packet().expect("buffer");
        assert!(packet.append(b"ethernet+ip", &mut cache));
        assert!(packet.pull(9));
        assert_eq!(packet.bytes(), b"ip");
        assert!(packet.push(9));
        assert_eq!(packet.bytes(), b"ethernet+ip");
        assert!(!packet.pull(12));
        assert!(!packet.push(1000));
        cache.free(packet);
        cache.report();
        assert_eq!(cache.pool().free(), 512);
    }

    #[test]
    fn a_header_in_blocks_ends_where_the_packet_begins() {
        let mut cache = cache();
        for count in [0usize, 1, 31, 32, 40, 80, 129, 224, 256] {
            let mut packet = cache.packet().expect("buffer");
            assert!(packet.append(b"behind", &mut cache));
            let header: Vec<u8> = (0..count).map(|at| at as u8).collect();
            let mut blocks = vec![[0xaa; 32]; count.div_ceil(32)];
            let pad = blocks.len() * 32 - count;
            blocks.as_flattened_mut()[pad..].copy_from_slice(&header);
            assert!(packet.push_blocks(&blocks, count));
            assert_eq!(packet.bytes(), [&header[..], b"behind"].concat());
            assert!(!packet.push_blocks(&[[0; 32]; 9], 257));
            cache.free(packet);
        }
    }

    #[test]
    fn two_headers_go_in_front_at_once_with_much_headroom_and_with_little() {
        let mut cache = cache();
        let outer: [u8; 32] = std::array::from_fn(|at| at as u8);
        let counts = [40, 80, 96].into_iter();
        for (count, room) in
            counts.flat_map(|count| [0, 140, 250 - count].map(|room| (count, room)))
        {
            let mut packet = cache.packet().expect("buffer");
            assert!(packet.append(b"behind", &mut cache) && packet.push(room));
            packet.bytes_mut()[..room].fill(7);
            let before = packet.bytes().to_vec();
            let header: Vec<u8> = (0..count as u8).collect();
            let mut blocks = [[0; 32]; 3];
            blocks.as_flattened_mut()[96 - count..].copy_from_slice(&header);
            for outer_count in [14, 18] {
                let fits = packet.headroom() >= count + outer_count;
                assert_eq!(packet.push_two(&blocks, count, &outer, outer_count), fits);
                let expected = [&outer[32 - outer_count..], &header, &before].concat();
                assert_eq!(packet.bytes(), if fits { &expected } else { &before });
                assert!(!fits || packet.pull(count + outer_count));
            }
            assert!(
                !packet.push_two(&blocks, 97, &outer, 14)
                    && !packet.push_two(&blocks, count, &outer, 33)
            );
            assert_eq!(packet.bytes(), before);
            cache.free(packet);
        }
    }

    #[test]
    fn what_is_inserted_behind_the_first_bytes_is_removed_again() {
        let mut cache = cache();
        let mut packet = cache.packet().expect("buffer");
        assert!(packet.append(b"addresses+type", &mut cache));
        assert!(packet.insert(9, b"tag"));
        assert_eq!(packet.bytes(), b"addressestag+type");
        assert!(packet.remove(9, 3));
        assert_eq!(packet.bytes(), b"addresses+type");
        assert!(
            !packet.remove(9, 6) && !packet.insert(15, b"tag") && !packet.insert(0, &[0; 1000])
        );
        assert_eq!(packet.bytes(), b"addresses+type");
        cache.free(packet);
    }
}
