//! Fields that change from packet to packet, with the checksums over them kept right.

use quiver_wire::checksum;

/// How a field's values follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The lowest first, each one more than the one before, and from the start again.
    Increment,
    /// Each as likely as the others, independent of the ones before (the sequence is the same in
    /// every run).
    Random,
}

/// An Internet checksum over an edited field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChecksumField {
    /// Where it is, bytes from the start of the packet.
    pub offset: u16,
    /// UDP's: a sum of zero is written as 0xffff (RFC 768).
    pub is_udp: bool,
}

/// A field that has another value in each packet, in big endian. Packets carry the lowest value
/// before it is applied, or any other with checksums that are right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// Where it is, bytes from the start of the packet.
    pub offset: u16,
    /// Bytes, 1 to 16; even, as the offset, when a checksum covers it.
    pub width: u8,
    /// The lowest value.
    pub low: u128,
    /// How many values there are, at least 1.
    pub count: u64,
    /// How they follow one another.
    pub order: Order,
    /// The checksums that cover it.
    pub checksums: Vec<ChecksumField>,
}

impl Edit {
    /// A field of 32 bits, such as an IPv4 address, `count` values from `low` on.
    pub fn u32(
        offset: u16,
        low: impl Into<u32>,
        count: u64,
        order: Order,
        checksums: Vec<ChecksumField>,
    ) -> Edit {
        Edit { offset, width: 4, low: u128::from(low.into()), count, order, checksums }
    }

    /// One past the last byte that it touches.
    pub(crate) fn end(&self) -> usize {
        let field = usize::from(self.offset) + usize::from(self.width);
        self.checksums.iter().map(|c| usize::from(c.offset) + 2).fold(field, usize::max)
    }

    /// What is wrong with it, if anything.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        let bits = u32::from(self.width) * 8;
        let highest = self.low.checked_add(u128::from(self.count.max(1)) - 1);
        if !(1..=16).contains(&self.width) {
            Some("a field has 1 to 16 bytes")
        } else if self.count == 0 {
            Some("a field has at least one value")
        } else if highest.is_none_or(|h| bits < 128 && h >> bits != 0) {
            Some("the highest value does not fit in the field")
        } else if !self.checksums.is_empty() && (self.width | self.offset as u8) & 1 == 1 {
            Some("a field under a checksum has an even offset and width")
        } else {
            None
        }
    }
}

/// An edit at work: where in its values it is.
#[derive(Clone, Debug)]
pub(crate) struct RunningEdit {
    edit: Edit,
    next: u64,
    random: u64,
}

impl RunningEdit {
    pub(crate) fn new(edit: Edit, seed: u64) -> RunningEdit {
        RunningEdit { edit, next: 0, random: seed ^ 0x9e37_79b9_7f4a_7c15 }
    }

    /// The next value's distance from the lowest.
    #[inline(always)]
    fn step(&mut self) -> u64 {
        match self.edit.order {
            Order::Increment => {
                let at = self.next;
                self.next = if at + 1 == self.edit.count { 0 } else { at + 1 };
                at
            }
            Order::Random => {
                // splitmix64 (Steele, Lea, Flood 2014), brought into range by multiplication.
                self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut z = self.random;
                z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                z ^= z >> 31;
                ((u128::from(z) * u128::from(self.edit.count)) >> 64) as u64
            }
        }
    }

    /// Write the next value into a packet. What does not lie inside it is left alone.
    #[inline(always)]
    pub(crate) fn apply(&mut self, bytes: &mut [u8]) {
        let step = self.step();
        let at = usize::from(self.edit.offset);
        if self.edit.width == 4 {
            let Some(field) =
                bytes.get_mut(at..at + 4).and_then(|f| <&mut [u8; 4]>::try_from(f).ok())
            else {
                return;
            };
            let old = u32::from_be_bytes(*field);
            let new = (self.edit.low as u32).wrapping_add(step as u32);
            *field = new.to_be_bytes();
            for sum in &self.edit.checksums {
                update_checksum(bytes, sum, |checksum| checksum::update32(checksum, old, new));
            }
            return;
        }
        self.apply_wide(bytes, step);
    }

    fn apply_wide(&mut self, bytes: &mut [u8], step: u64) {
        let (at, width) = (usize::from(self.edit.offset), usize::from(self.edit.width));
        let Some(field) = bytes.get_mut(at..at + width) else { return };
        let mut old = [0; 16];
        old[16 - width..].copy_from_slice(field);
        let new = self.edit.low.wrapping_add(u128::from(step)).to_be_bytes();
        field.copy_from_slice(&new[16 - width..]);
        for sum in &self.edit.checksums {
            update_checksum(bytes, sum, |mut checksum| {
                for (old, new) in old.chunks_exact(2).zip(new.chunks_exact(2)) {
                    let word = |pair: &[u8]| u16::from_be_bytes([pair[0], pair[1]]);
                    if old != new {
                        checksum = checksum::update16(checksum, word(old), word(new));
                    }
                }
                checksum
            });
        }
    }
}

#[inline(always)]
fn update_checksum(bytes: &mut [u8], at: &ChecksumField, update: impl FnOnce(u16) -> u16) {
    let place = usize::from(at.offset);
    let Some(field) =
        bytes.get_mut(place..place + 2).and_then(|f| <&mut [u8; 2]>::try_from(f).ok())
    else {
        return;
    };
    let updated = update(u16::from_be_bytes(*field));
    *field = (if at.is_udp && updated == 0 { 0xffff } else { updated }).to_be_bytes();
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_come_in_turn_and_from_the_start_again() {
        let edit = Edit::u32(0, 0x0a00_00ffu32, 2, Order::Increment, Vec::new());
        let mut running = RunningEdit::new(edit, 0);
        let mut seen = Vec::new();
        for _ in 0..3 {
            let mut bytes = [0; 4];
            running.apply(&mut bytes);
            seen.push(bytes);
        }
        assert_eq!(seen, [[10, 0, 0, 255], [10, 0, 1, 0], [10, 0, 0, 255]]);
    }

    #[test]
    fn random_values_stay_in_range_and_reach_all_of_it() {
        let edit = Edit {
            offset: 0,
            width: 2,
            low: 10,
            count: 5,
            order: Order::Random,
            checksums: Vec::new(),
        };
        let mut running = RunningEdit::new(edit, 1);
        let mut seen = [0; 16];
        for _ in 0..1000 {
            let mut bytes = [0; 2];
            running.apply(&mut bytes);
            seen[usize::from(u16::from_be_bytes(bytes))] += 1;
        }
        assert!(seen[10..15].iter().all(|n| *n > 100));
        assert_eq!(seen.iter().sum::<i32>(), 1000);
    }

    #[test]
    fn what_cannot_be_written_is_a_fault() {
        let edit = |width, low, count| {
            Edit { offset: 1, width, low, count, order: Order::Random, checksums: Vec::new() }
                .fault()
        };
        assert!(edit(0, 0, 1).is_some() && edit(17, 0, 1).is_some() && edit(2, 0, 0).is_some());
        assert!(edit(2, 65_535, 2).is_some() && edit(2, 65_535, 1).is_none());
        assert!(edit(16, u128::MAX, 2).is_some() && edit(16, u128::MAX, 1).is_none());
    }

    proptest! {
        #[test]
        fn a_checksum_over_an_edited_field_stays_right(
            mut bytes in prop::collection::vec(any::<u8>(), 40..=40),
            place in 0u16..8, width in 1u8..=8, low: u64, count in 1u64..1000,
        ) {
            // The checksum stands at byte 38, the field somewhere before it.
            bytes[38..].fill(0);
            let sum = checksum::of(&bytes);
            bytes[38..].copy_from_slice(&sum.to_be_bytes());
            let width = width * 2;
            let low =
                u128::from(low) & ((1u128 << (width * 8 - 1)) - 1) & u128::from(u64::MAX >> 11);
            let low = low.min((1u128 << (width * 8 - 1)) - 1000);
            let edit = Edit {
                offset: place * 2,
                width,
                low,
                count,
                order: Order::Increment,
                checksums: vec![ChecksumField { offset: 38, is_udp: false }],
            };
            prop_assert!(edit.fault().is_none());
            let mut running = RunningEdit::new(edit, 0);
            for _ in 0..3 {
                running.apply(&mut bytes);
                prop_assert!(checksum::Sum::new().bytes(&bytes).is_good());
            }
        }
    }
}
