//! MAP domains as workers read them: which IPv6 address a customer has who has an IPv4 address and
//! a port (RFC 7597 §5.2, §6; RFC 7599 §5, §6), and the other way round.

use quiver_core::cpu::prefetch;
use quiver_translation::versions::address::Prefix;
use quiver_translation::versions::fast::Embedding;

use crate::port_set::PortSet;
use crate::upper::Port;

/// Bits in front of an interface identifier.
const SUBNET_BITS: u8 = 64;
/// Bits of the identifier behind the IPv4 address: the PSID (RFC 7597 §6).
const IID_PSID_BITS: u32 = 16;
/// The PSID in an interface identifier.
const IID_PSID: u128 = 0xffff;

/// The IPv6 addresses of softwires, by PSID (RFC 7596 §6). [`UNBOUND`] where there is none.
pub type Bindings = Box<[u128]>;
/// No softwire: the unspecified address, which none has.
pub const UNBOUND: u128 = 0;

/// How packets of IPv4 cross the network of IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In packets of IPv6, from and to this address of the border relay (RFC 7597, RFC 7596).
    Encapsulate(u128),
    /// As packets of IPv6; all other hosts of IPv4 stand behind this prefix (RFC 7599).
    Translate(Prefix),
}

/// Why nobody has an IPv4 address and a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nobody {
    /// The address is shared, and the packet has no port.
    NoPort,
    /// The address is shared, and the first fragment, which has the port, is not known.
    LaterFragment,
    /// The port is none that customers have.
    Port,
    /// No rule binds the PSID.
    NoRule,
}

/// A domain. Made by [`DomainConfig`](crate::config::DomainConfig). Packets to customers that rules
/// bind need its first cache line, others that are encapsulated the first two.
#[repr(C, align(64))]
pub struct Domain {
    /// The border relay's address; [`UNBOUND`] of a domain that translates.
    border6: u128,
    /// Where the IPv6 addresses follow from no rule of arithmetic.
    bindings: Option<Bindings>,
    /// How the ports of an address are shared.
    ports: PortSet,
    /// The longest packet of IPv6 that is sent, in bytes.
    pub mtu_bytes: u16,
    /// Low bits of the IPv4 suffix that are not embedded.
    suffix4_left: u8,
    /// Bits of the PSID that are embedded behind the IPv4 suffix.
    psid_bits: u8,
    /// Where the embedded bits begin, from the right.
    embedded_shift: u8,
    ip4: u32,
    suffix4_mask: u32,
    /// The IPv4 address that an interface identifier has.
    iid4_mask: u32,
    /// The bits of an IPv4 address that are not embedded.
    left4_mask: u32,
    ip6: u128,
    /// The bits of an interface identifier that the prefix does not cover (RFC 7597 §6).
    iid_mask: u128,
    embedded_mask: u64,
    /// The default mapping rule of a domain that translates.
    rule: Option<Embedding>,
}

const _: () = assert!(std::mem::offset_of!(Domain, ip6) == 64);

/// The arithmetic of a domain; its sums were checked.
#[derive(Clone, Copy, Debug)]
pub struct Lengths {
    /// Bits of the IPv4 prefix.
    pub ip4: u8,
    /// Bits of the IPv6 prefix.
    pub ip6: u8,
    /// Embedded-address bits.
    pub embedded: u8,
}

fn low_bits(count: u8) -> u128 {
    u128::MAX.checked_shr(128 - u32::from(count.min(128))).unwrap_or(0)
}

impl Domain {
    /// Of these prefixes, whose other bits are zero. `lengths.ip6 + lengths.embedded` is at most
    /// 128, and `lengths.embedded` at most the IPv4 suffix and the PSID.
    pub fn new(
        mode: Mode,
        mtu_bytes: u16,
        ports: PortSet,
        bindings: Option<Bindings>,
        (ip4, ip6): (u32, u128),
        lengths: Lengths,
    ) -> Domain {
        let suffix = 32 - lengths.ip4;
        let of_suffix = lengths.embedded.min(suffix);
        let user_prefix = lengths.ip6 + lengths.embedded;
        let (border6, rule) = match mode {
            Mode::Encapsulate(border6) => (border6, None),
            Mode::Translate(prefix) => (UNBOUND, Some(Embedding::new(prefix))),
        };
        // Of a customer with a prefix the identifier has the prefix alone, unless the rest of the
        // address would be lost.
        let left = suffix - of_suffix;
        let iid4_zeros = if rule.is_some() { 0 } else { left };
        Domain {
            border6,
            bindings,
            ports,
            mtu_bytes,
            suffix4_left: left,
            psid_bits: lengths.embedded - of_suffix,
            embedded_shift: (128 - user_prefix).min(127),
            ip4,
            suffix4_mask: low_bits(suffix) as u32,
            iid4_mask: !low_bits(iid4_zeros) as u32,
            left4_mask: low_bits(left) as u32,
            ip6,
            iid_mask: low_bits(128 - user_prefix.max(SUBNET_BITS)),
            embedded_mask: low_bits(lengths.embedded) as u64,
            rule,
        }
    }

    /// The address that packets of IPv6 around those of IPv4 have at this end; `None` of a domain
    /// that translates.
    #[inline(always)]
    pub fn border6(&self) -> Option<u128> {
        (self.border6 != UNBOUND).then_some(self.border6)
    }

    /// The default mapping rule of a domain that translates (RFC 7599 §5).
    #[inline(always)]
    pub fn rule(&self) -> Option<&Embedding> {
        self.rule.as_ref()
    }

    /// Do several customers share an address?
    #[inline(always)]
    pub fn is_shared(&self) -> bool {
        !self.ports.is_whole()
    }

    /// Is it the domain of an IPv4 address?
    #[inline(always)]
    pub fn has4(&self, ip4: u32) -> bool {
        ip4 & !self.suffix4_mask == self.ip4
    }

    /// The address of the customer with a PSID, by arithmetic.
    #[inline(always)]
    fn address(&self, ip4: u32, psid: u16) -> u128 {
        let suffix = u64::from(ip4 & self.suffix4_mask) >> self.suffix4_left;
        let in_prefix = u64::from(psid) & ((1 << self.psid_bits) - 1);
        let embedded = suffix << self.psid_bits | in_prefix;
        let embedded = match self.embedded_shift {
            // The bits of most prefixes stand in the high half, for which one shift is enough.
            shift @ 64.. => u128::from(embedded << (shift % 64)) << 64,
            shift => u128::from(embedded) << shift,
        };
        let iid = u64::from(ip4 & self.iid4_mask) << IID_PSID_BITS | u64::from(psid);
        self.ip6 | embedded | u128::from(iid) & self.iid_mask
    }

    /// As [`customer`](Self::customer) for a PSID, where no rules bind addresses.
    pub fn computed(&self, ip4: u32, psid: u16) -> u128 {
        self.address(ip4, psid)
    }

    /// The IPv6 address of the customer who has an IPv4 address of the domain and a port.
    ///
    /// # Errors
    /// Nobody has.
    #[inline(always)]
    pub fn customer(&self, ip4: u32, port: Port) -> Result<u128, Nobody> {
        let psid = match port {
            _ if !self.is_shared() => 0,
            Port::Known(port) => self.ports.psid(port).ok_or(Nobody::Port)?,
            Port::Absent => return Err(Nobody::NoPort),
            Port::InFirstFragment => return Err(Nobody::LaterFragment),
        };
        match &self.bindings {
            None => Ok(self.address(ip4, psid)),
            Some(bindings) => match bindings.get(usize::from(psid)) {
                None | Some(&UNBOUND) => Err(Nobody::NoRule),
                Some(ip6) => Ok(*ip6),
            },
        }
    }

    /// Do rules bind the addresses of its customers?
    #[inline(always)]
    pub fn has_rules(&self) -> bool {
        self.bindings.is_some()
    }

    /// Ask for the memory of the rule that a port of a shared address leads to.
    #[inline(always)]
    pub fn prefetch_binding(&self, port: u16) {
        if let Some(psid) = self.ports.psid(port)
            && let Some(binding) = self.bindings.as_ref().and_then(|all| all.get(usize::from(psid)))
        {
            prefetch(binding);
        }
    }

    /// May an IPv6 address have an IPv4 address, whichever its ports are? At most 4,096 softwires
    /// are compared.
    #[inline(never)]
    pub fn may_have(&self, ip6: u128, ip4: u32) -> bool {
        if let Some(bindings) = &self.bindings {
            return ip6 != UNBOUND && bindings.contains(&ip6);
        }
        let in_prefix = u128::from((1u64 << self.psid_bits) - 1) << self.embedded_shift;
        let psid = in_prefix | IID_PSID & self.iid_mask;
        (ip6 ^ self.address(ip4, 0)) & !psid == 0
    }

    /// The IPv4 address that stands in the IPv6 address of a customer. Whether the rest of that is
    /// right, [`customer`](Self::customer) says.
    #[inline(always)]
    pub fn address4(&self, ip6: u128) -> u32 {
        let embedded = match self.embedded_shift {
            shift @ 64.. => (ip6 >> 64) as u64 >> (shift % 64),
            shift => (ip6 >> shift) as u64,
        };
        let suffix = (embedded & self.embedded_mask) >> self.psid_bits << self.suffix4_left;
        let left = (ip6 >> IID_PSID_BITS) as u32 & self.left4_mask;
        self.ip4 | (suffix as u32 | left) & self.suffix4_mask
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::*;

    const BORDER: Mode = Mode::Encapsulate(1);

    fn domain(mode: Mode, ports: (u8, u8), prefixes: (u32, u128), lengths: (u8, u8, u8)) -> Domain {
        let (ip4, ip6, embedded) = lengths;
        let ports = PortSet::new(ports.0, ports.1).expect("16 bits");
        Domain::new(mode, 1500, ports, None, prefixes, Lengths { ip4, ip6, embedded })
    }

    fn customer(domain: &Domain, ip4: [u8; 4], port: u16) -> Result<String, Nobody> {
        let ip4 = Ipv4Addr::from(ip4).to_bits();
        let found = domain.customer(ip4, Port::Known(port))?;
        Ok(Ipv6Addr::from_bits(found).to_string())
    }

    fn ip6(text: &str) -> u128 {
        text.parse::<Ipv6Addr>().expect("an address").to_bits()
    }

    /// RFC 7597 appendix A, examples 1 and 2: port 1232 of 192.0.2.18 is that of the customer
    /// "2001:db8:0012:3400:0000:c000:0212:0034".
    #[test]
    fn the_shared_address_of_the_example_of_the_rfc() {
        let prefixes = (0xc000_0200, ip6("2001:db8::"));
        let domain = domain(BORDER, (6, 8), prefixes, (24, 40, 16));
        let expected = ip6("2001:db8:12:3400:0:c000:212:34");
        assert_eq!(
            customer(&domain, [192, 0, 2, 18], 1232),
            Ok(Ipv6Addr::from_bits(expected).to_string())
        );
        assert_eq!(customer(&domain, [192, 0, 2, 18], 1023), Err(Nobody::Port));
        assert_eq!(domain.address4(expected), 0xc000_0212);
    }

    /// RFC 7597 §6: "In the case of an IPv4 prefix, the IPv4 address field is right-padded with
    /// zeros up to 32 bits", "For an IPv4 prefix or a complete IPv4 address, the PSID field is
    /// zero".
    #[test]
    fn a_prefix_in_an_identifier_ends_with_zeros() {
        let prefixes = (0xc000_0200, ip6("2001:db8::"));
        let with_prefix = domain(BORDER, (0, 0), prefixes, (24, 48, 4));
        let found = customer(&with_prefix, [192, 0, 2, 0x25], 80).expect("a customer");
        assert_eq!(ip6(&found), ip6("2001:db8:0:2000:0:c000:220:0"));
        let whole = domain(BORDER, (0, 0), prefixes, (24, 48, 8));
        let found = customer(&whole, [192, 0, 2, 0x25], 80).expect("a customer");
        assert_eq!(ip6(&found), ip6("2001:db8:0:2500:0:c000:225:0"));
    }

    /// RFC 7597 §6: of an end-user prefix longer than 64 bits "the most significant parts of the
    /// interface identifier are overwritten by the prefix".
    #[test]
    fn a_long_prefix_covers_the_identifier() {
        let alone = domain(BORDER, (0, 0), (0xc000_0207, ip6("2001:db8::7")), (32, 128, 0));
        let found = customer(&alone, [192, 0, 2, 7], 80).expect("a customer");
        assert_eq!(ip6(&found), ip6("2001:db8::7"));
        let long = domain(BORDER, (0, 4), (0xc000_0200, ip6("2001:db8::")), (24, 76, 12));
        let found = customer(&long, [192, 0, 2, 0xab], 0xc000).expect("a customer");
        assert_eq!(ip6(&found), ip6("2001:db8:0:0:0a:bc00:2ab:c"));
    }

    #[test]
    fn addresses_without_embedded_bits_have_the_identifier_alone() {
        let one = domain(BORDER, (0, 0), (0xc000_0207, ip6("2001:db8:7::")), (32, 56, 0));
        let found = customer(&one, [192, 0, 2, 7], 80).expect("a customer");
        assert_eq!(ip6(&found), ip6("2001:db8:7:0:0:c000:207:0"));
    }

    #[test]
    fn a_packet_without_port_goes_to_nobody_of_a_shared_address() {
        let prefixes = (0xc000_0200, ip6("2001:db8::"));
        let shared = domain(BORDER, (6, 8), prefixes, (24, 40, 16));
        let of = |port| shared.customer(0xc000_0212, port);
        assert_eq!(of(Port::Absent), Err(Nobody::NoPort));
        assert_eq!(of(Port::InFirstFragment), Err(Nobody::LaterFragment));
        let whole = domain(BORDER, (0, 0), prefixes, (24, 48, 8));
        assert!(whole.customer(0xc000_0212, Port::Absent).is_ok());
    }

    proptest! {
        /// Composition and extraction are inverse, for all lengths that a domain may have.
        #[test]
        fn an_address_is_found_in_the_address_that_it_is_composed_to(
            ip4: u32, bits: u128, port: u16, psid_length in 0u8..=8, offset in 0u8..=6,
            ip4_length in 8u8..=32, ip6_length in 16u8..=64, embeds: bool, left in 0u8..8,
            translates: bool,
        ) {
            let suffix = 32 - ip4_length;
            let (psid_length, embedded) = match embeds {
                true => (psid_length, suffix + psid_length),
                false => (0, suffix.saturating_sub(left)),
            };
            prop_assume!(ip6_length + embedded <= 64);
            let prefix = Prefix::new(ip6("2001:db8:64::"), 96).expect("a prefix");
            let mode = if translates { Mode::Translate(prefix) } else { BORDER };
            let first4 = ip4 & !(low_bits(suffix) as u32);
            let first6 = bits & !low_bits(128 - ip6_length);
            let lengths = (ip4_length, ip6_length, embedded);
            let domain = domain(mode, (offset, psid_length), (first4, first6), lengths);
            prop_assert!(domain.has4(ip4));
            let Ok(found) = domain.customer(ip4, Port::Known(port)) else {
                prop_assert!(offset > 0 && port >> (16 - offset) == 0);
                return Ok(());
            };
            let is_whole = translates || embedded >= suffix;
            let mask = if is_whole { u32::MAX } else { !(low_bits(suffix - embedded) as u32) };
            prop_assert_eq!(domain.address4(found), ip4 & mask);
            prop_assert!(domain.may_have(found, ip4));
            prop_assert!(!domain.may_have(found ^ 1 << 127, ip4));
            // The prefix of the rule, and nothing of it, is as it was.
            prop_assert_eq!(found & !low_bits(128 - ip6_length), first6);
        }
    }
}
