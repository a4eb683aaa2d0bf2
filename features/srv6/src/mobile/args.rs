//! What SIDs of the mobile user plane hold behind their prefix (RFC 9433 §6.1, figures 8 to 10):
//! the session, and an IPv4 address in front of it. Bits are counted from the address's first.

use quiver_wire::gtpu::{Direction, PduSession, QFI_MAX};

/// Bits of Args.Mob.Session.
pub(super) const SESSION_BITS: u32 = 40;
/// Bits of an IPv4 address.
pub(super) const IP4_BITS: u32 = 32;
/// Bits of a UDP port.
pub(super) const PORT_BITS: u32 = 16;
/// The longest prefix that leaves room for a session.
pub(super) const SESSION_PREFIX_MAX: u8 = (128 - SESSION_BITS) as u8;
/// The longest prefix that leaves room for an IPv4 address, and a session behind it.
pub(super) const IP4_SESSION_PREFIX_MAX: u8 = SESSION_PREFIX_MAX - IP4_BITS as u8;
/// The longest prefix that leaves room for an IPv4 address.
pub(super) const IP4_PREFIX_MAX: u8 = (128 - IP4_BITS) as u8;

/// Args.Mob.Session: QoS flow identifier 6 bits, R 1 bit, 1 bit unused, PDU session identifier
/// (TEID) 32 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Session {
    pub qfi: u8,
    /// Reflective QoS.
    pub reflective: bool,
    pub teid: u32,
}

impl Session {
    /// As its 40 bits.
    #[inline(always)]
    pub fn bits(self) -> u64 {
        let flow = (self.qfi & QFI_MAX) << 2 | u8::from(self.reflective) << 1;
        u64::from(flow) << 32 | u64::from(self.teid)
    }

    /// From those bits; the unused one is ignored.
    #[inline(always)]
    pub fn from_bits(bits: u64) -> Session {
        let flow = (bits >> 32) as u8;
        Session { qfi: flow >> 2, reflective: flow & 2 != 0, teid: bits as u32 }
    }

    /// What the PDU session container says of it; nothing where there is no QoS flow.
    #[inline(always)]
    pub fn container(self, direction: Direction) -> Option<PduSession> {
        let says = (self.qfi != 0) | self.reflective;
        says.then_some(PduSession { direction, qfi: self.qfi, reflective: self.reflective })
    }
}

/// The address `prefix` with the `width` low bits of `value` at bit `at`.
#[inline(always)]
pub(super) fn place(prefix: u128, at: u8, value: u128, width: u32) -> u128 {
    let shift = 128u32.saturating_sub(u32::from(at) + width);
    prefix | value << shift
}

/// The `width` bits of an address at bit `at`, at most 64.
#[inline(always)]
pub(super) fn read(address: u128, at: u8, width: u32) -> u64 {
    let shift = 128u32.saturating_sub(u32::from(at) + width);
    (address >> shift) as u64 & (u64::MAX >> (64 - width))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::Ipv6Addr;

    #[test]
    fn a_sid_reads_like_the_figures() {
        let prefix: Ipv6Addr = "2001:db8::".parse().unwrap();
        let session = Session { qfi: 5, reflective: true, teid: 0x0102_0304 };
        assert_eq!(session.bits(), 0x16_0102_0304);
        let sid = place(prefix.to_bits(), 32, 0xc000_0201, IP4_BITS);
        let sid = place(sid, 64, session.bits().into(), SESSION_BITS);
        assert_eq!(
            Ipv6Addr::from_bits(sid),
            "2001:db8:c000:201:1601:203:400:0".parse::<Ipv6Addr>().unwrap()
        );
    }

    #[test]
    fn no_flow_needs_no_container() {
        assert_eq!(
            Session { qfi: 0, reflective: false, teid: 9 }.container(Direction::Downlink),
            None
        );
        let session = Session { qfi: 9, reflective: false, teid: 9 }.container(Direction::Uplink);
        assert_eq!(session.map(|session| session.qfi), Some(9));
    }

    proptest! {
        #[test]
        fn what_was_placed_is_read(
            prefix: u128, at in 0u8..=88, qfi in 0u8..64, reflective: bool, teid: u32
        ) {
            let session = Session { qfi, reflective, teid };
            let prefix = prefix & !(u128::MAX.checked_shr(at.into()).unwrap_or(0));
            let sid = place(prefix, at, session.bits().into(), SESSION_BITS);
            prop_assert_eq!(Session::from_bits(read(sid, at, SESSION_BITS)), session);
            prop_assert_eq!(sid & !(u128::MAX.checked_shr(at.into()).unwrap_or(0)), prefix);
        }
    }
}
