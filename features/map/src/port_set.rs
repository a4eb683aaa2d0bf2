//! The ports of a customer, by shift and mask (RFC 7597 §5.1).
//!
//! ```text
//! |  a bits  |  k bits  |  m bits  |   a + k + m = 16
//! |    A     |   PSID   |    M     |   A is not zero, unless a is
//! ```

/// Bits of a port.
const PORT_BITS: u8 = 16;

/// How the ports of an address are divided: `offset` is *a*, `length` is *k*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortSet {
    /// The first port that somebody has.
    first: u16,
    /// The bits of a PSID.
    mask: u16,
    /// Bits behind the PSID.
    behind: u8,
    offset: u8,
    length: u8,
}

impl PortSet {
    /// `None` when both together are more than 16 bits.
    pub fn new(offset: u8, length: u8) -> Option<PortSet> {
        let behind = PORT_BITS.checked_sub(offset.checked_add(length)?)?;
        let has_none = offset != 0 && length != 0;
        let first = if has_none { 1 << (PORT_BITS - offset) } else { 0 };
        let mask = (1u32 << length) - 1;
        Some(PortSet { first, mask: mask as u16, behind, offset, length })
    }

    /// Does one customer have all ports of an address?
    #[inline(always)]
    pub fn is_whole(self) -> bool {
        self.length == 0
    }

    /// How many customers share an address: 1 to 65,536.
    pub fn sets(self) -> usize {
        1 << self.length
    }

    /// The identifier of the set that a port is in. `None` for the ports that nobody has: those
    /// whose first *a* bits are zero.
    #[inline(always)]
    pub fn psid(self, port: u16) -> Option<u16> {
        let psid = u32::from(port) >> self.behind & u32::from(self.mask);
        (port >= self.first).then_some(psid as u16)
    }

    /// The first and the last port of each range of a set, in ascending order.
    pub fn ranges(self, psid: u16) -> impl Iterator<Item = (u16, u16)> {
        let behind = u32::from(self.behind);
        let last_a = (1u32 << self.offset) - 1;
        let first_a = u32::from(self.offset != 0 && self.length != 0);
        // Without identifier all ports are one range.
        let (first_a, last_a, behind) = match self.length {
            0 => (0, 0, u32::from(PORT_BITS)),
            _ => (first_a, last_a, behind),
        };
        let (psid, shift) = (u32::from(psid), behind + u32::from(self.length));
        (first_a..=last_a).map(move |a| {
            let first = if self.length == 0 { 0 } else { a << shift | psid << behind };
            (first as u16, (first + (1 << behind) - 1) as u16)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// RFC 7597 appendix A, example 1: "Available ports (63 ranges): 1232-1235, 2256-2259, ...,
    /// 63696-63699, 64720-64723".
    #[test]
    fn the_ports_of_the_example_of_the_rfc() {
        let ports = PortSet::new(6, 8).expect("16 bits are enough");
        let ranges: Vec<_> = ports.ranges(0x34).collect();
        assert_eq!(ranges.len(), 63);
        assert_eq!(ranges[..2], [(1232, 1235), (2256, 2259)]);
        assert_eq!(ranges[61..], [(63_696, 63_699), (64_720, 64_723)]);
    }

    #[test]
    fn more_bits_than_a_port_has_are_refused() {
        assert_eq!(PortSet::new(9, 8), None);
        assert_eq!(PortSet::new(255, 255), None);
        assert!(PortSet::new(0, 16).is_some() && PortSet::new(15, 1).is_some());
    }

    proptest! {
        /// Every port that somebody has belongs to one set, and its ranges have it.
        #[test]
        fn every_port_belongs_to_exactly_one_set(offset in 0u8..=15, length in 0u8..=16) {
            let Some(ports) = PortSet::new(offset, length) else { return Ok(()) };
            let mut owners = vec![None; 1 << 16];
            for psid in 0..ports.sets() {
                for (first, last) in ports.ranges(psid as u16) {
                    for port in first..=last {
                        prop_assert_eq!(owners[usize::from(port)], None);
                        owners[usize::from(port)] = Some(psid as u16);
                    }
                }
            }
            for port in 0..=u16::MAX {
                prop_assert_eq!(ports.psid(port), owners[usize::from(port)], "port {}", port);
            }
        }
    }
}
