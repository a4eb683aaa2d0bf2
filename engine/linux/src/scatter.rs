//! A frame that is longer than a buffer, read into several at once (readv, recvmsg): the first
//! buffer, further ones, and a store for the rest where there are no more.

use quiver_core::Packet;
use quiver_core::memory::buffer::{Buffer, BufferCache};

use crate::arrival::RxDrop;

/// Longest frame, bytes: 64 KiB of IP and what stands in front of it.
pub const FRAME_BYTES_MAX: usize = 65_536 + 64;
/// Buffers that the longest frame needs behind its first one, with buffers of the usual size.
const MORE_BUFFERS_MAX: usize = 33;
/// Pieces of memory that one frame is read into, without the first buffer and what stands before
/// it.
pub const SCATTER_PIECES_MAX: usize = MORE_BUFFERS_MAX + 1;

/// The memory behind the first buffer that a frame is read into.
pub struct Scatter {
    /// Data bytes of a buffer.
    data_bytes: usize,
    more: Vec<Buffer>,
    store: Box<[u8]>,
}

impl Scatter {
    /// For buffers of `data_bytes`.
    pub fn new(data_bytes: usize) -> Scatter {
        Scatter {
            data_bytes,
            more: Vec::with_capacity(MORE_BUFFERS_MAX),
            store: vec![0; FRAME_BYTES_MAX + data_bytes].into(),
        }
    }

    /// An empty packet whose first buffer can be read into, and as many further buffers as a frame
    /// of `frame_bytes` needs and there are. `None` without a buffer.
    #[inline]
    pub fn prepare(&mut self, frame_bytes: usize, buffers: &mut BufferCache) -> Option<Packet> {
        let mut packet = buffers.packet()?;
        let _ = packet.set_length(self.data_bytes, self.data_bytes);
        let rest = frame_bytes.saturating_sub(self.data_bytes);
        let wanted = rest.div_ceil(self.data_bytes).min(MORE_BUFFERS_MAX);
        while self.more.len() < wanted
            && let Some(buffer) = buffers.take()
        {
            self.more.push(buffer);
        }
        Some(packet)
    }

    /// Where a frame goes that does not fit in the first buffer, piece by piece: address and
    /// length. All of it belongs to the scatter, and stays where it is until it is used otherwise.
    #[inline]
    pub fn pieces(&mut self) -> impl Iterator<Item = (*mut u8, usize)> {
        let data_bytes = self.data_bytes;
        let more = self.more.iter().map(move |buffer| (buffer.data().cast_mut(), data_bytes));
        more.chain(std::iter::once((self.store.as_mut_ptr(), self.store.len())))
    }

    /// Nothing was read: the buffers go back.
    pub fn release(&mut self, packet: Packet, buffers: &mut BufferCache) {
        buffers.free(packet);
        buffers.give_all(self.more.drain(..));
    }

    /// The packet of a frame of `frame_bytes` that was read into `packet`, as
    /// [`prepare`](Self::prepare) gave it, and into the pieces.
    ///
    /// # Errors
    /// The frame is longer than [`FRAME_BYTES_MAX`], or there is no buffer for the rest in the
    /// store. The buffers have gone back.
    #[inline]
    pub fn gather(
        &mut self,
        mut packet: Packet,
        frame_bytes: usize,
        buffers: &mut BufferCache,
    ) -> Result<Packet, RxDrop> {
        let data_bytes = self.data_bytes;
        let _ = packet.set_length(frame_bytes.min(data_bytes), data_bytes);
        if frame_bytes <= data_bytes && self.more.is_empty() {
            return Ok(packet);
        }
        self.gather_rest(packet, frame_bytes, buffers)
    }

    #[inline(never)]
    fn gather_rest(
        &mut self,
        mut packet: Packet,
        frame_bytes: usize,
        buffers: &mut BufferCache,
    ) -> Result<Packet, RxDrop> {
        let data_bytes = self.data_bytes;
        let rest = frame_bytes.saturating_sub(data_bytes);
        let in_more = rest.min(self.more.len() * data_bytes);
        let used = in_more.div_ceil(data_bytes);
        buffers.give_all(self.more.drain(used..));
        if in_more > 0 {
            packet.chain_all(self.more.drain(..), in_more, data_bytes);
        }
        let reason = if frame_bytes > FRAME_BYTES_MAX {
            RxDrop::Truncated
        } else if !packet.append(&self.store[..rest - in_more], buffers) {
            RxDrop::NoBuffer
        } else {
            return Ok(packet);
        };
        buffers.free(packet);
        Err(reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quiver_core::memory::buffer::BufferPool;
    use quiver_core::memory::mapping::PageSize;

    /// Read `frame` as the kernel does; what the packet holds then.
    fn read(
        scatter: &mut Scatter,
        frame: &[u8],
        expected: usize,
        cache: &mut BufferCache,
    ) -> Vec<u8> {
        let mut packet = scatter.prepare(expected, cache).expect("buffer");
        let first = packet.bytes().len().min(frame.len());
        packet.bytes_mut()[..first].copy_from_slice(&frame[..first]);
        let more = scatter.more.len() * scatter.data_bytes;
        let in_store = frame.len().saturating_sub(first + more);
        let start = frame.len() - in_store;
        scatter.store[..in_store].copy_from_slice(&frame[start..]);
        // The buffers of `more` are left as they are: their lengths count here.
        let packet = scatter.gather(packet, frame.len(), cache).expect("packet");
        let mut seen = Vec::new();
        packet.copy_to(&mut seen);
        cache.free(packet);
        seen
    }

    #[test]
    fn a_frame_lies_in_first_buffer_further_buffers_and_store() {
        let pool = BufferPool::new(256, 1024, PageSize::Small).expect("pool");
        let mut cache = pool.cache();
        let mut scatter = Scatter::new(1024);
        let frame: Vec<u8> = (0..FRAME_BYTES_MAX).map(|at| (at / 5) as u8).collect();
        for length in [1, 1023, 1024, 1025, 2048, 34_000, 40_000, FRAME_BYTES_MAX] {
            assert!(read(&mut scatter, &frame[..length], 0, &mut cache) == frame[..length]);
            for expected in [length, FRAME_BYTES_MAX] {
                let seen = read(&mut scatter, &frame[..length], expected, &mut cache);
                assert_eq!(seen.len(), length);
            }
        }
        let packet = scatter.prepare(9000, &mut cache).expect("buffer");
        assert_eq!(scatter.pieces().count(), 9);
        let longer = scatter.gather(packet, FRAME_BYTES_MAX + 1, &mut cache);
        assert!(matches!(longer, Err(RxDrop::Truncated)));
        let packet = scatter.prepare(FRAME_BYTES_MAX, &mut cache).expect("buffer");
        scatter.release(packet, &mut cache);
        cache.report();
        assert_eq!(pool.free(), 256);
    }
}
