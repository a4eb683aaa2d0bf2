//! What an operator says of a domain, checked whole.

use std::net::IpAddr;

use quiver_control::{IpPrefix, Refusal, quoted};
use quiver_translation::versions::address::Prefix;
use quiver_wire::ip6::address::{is_link_local, is_unicast};

use crate::domain::{Bindings, Domain, Lengths, Mode};
use crate::port_set::PortSet;

/// The MTU of a domain unless it is given, in bytes: that of Ethernet.
pub(crate) const MTU_BYTES: u16 = 1500;
/// Bits of a PSID that rules bind: the table of a domain is made anew with each change.
const RULES_PSID_BITS_MAX: u8 = 12;
/// Bits in front of an interface identifier.
const SUBNET_BITS: u8 = 64;

/// A domain, as it was configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainConfig {
    /// A text of the operator's.
    pub tag: Option<String>,
    /// The IPv4 addresses of its customers.
    pub ip4: IpPrefix,
    /// What the IPv6 addresses of its customers begin with.
    pub ip6: IpPrefix,
    /// The address of the border relay, or the default mapping rule.
    pub ip6_source: IpPrefix,
    /// Embedded-address bits (RFC 7597 §5.2).
    pub embedded: u8,
    /// Bits of a port in front of the PSID.
    pub psid_offset: u8,
    /// Bits of the PSID.
    pub psid_length: u8,
    /// Are packets translated (MAP-T)?
    pub translates: bool,
    /// The longest packet of IPv6, in bytes.
    pub mtu_bytes: u16,
}

fn bits4(prefix: IpPrefix) -> u32 {
    match prefix.address {
        IpAddr::V4(address) => address.to_bits(),
        IpAddr::V6(_) => 0,
    }
}

fn bits6(prefix: IpPrefix) -> u128 {
    match prefix.address {
        IpAddr::V6(address) => address.to_bits(),
        IpAddr::V4(_) => 0,
    }
}

impl DomainConfig {
    /// Do rules say which IPv6 address a PSID has (RFC 7596 §6)?
    pub fn has_rules(&self) -> bool {
        self.embedded == 0 && self.psid_length > 0
    }

    /// The IPv4 prefix: address and length.
    pub fn prefix4(&self) -> (u32, u8) {
        (bits4(self.ip4), self.ip4.length)
    }

    /// The IPv6 prefix: address and length.
    pub fn prefix6(&self) -> (u128, u8) {
        (bits6(self.ip6), self.ip6.length)
    }

    /// The port sets of an address.
    pub fn ports(&self) -> Option<PortSet> {
        PortSet::new(self.psid_offset, self.psid_length)
    }

    /// The domain, as workers read it.
    ///
    /// # Errors
    /// The prefixes or the lengths make no domain.
    pub fn domain(&self, bindings: Option<Bindings>) -> Result<Domain, Refusal> {
        for prefix in [self.ip4, self.ip6, self.ip6_source] {
            check_host_bits(prefix)?;
        }
        self.check_ip4()?;
        let mode = self.mode()?;
        let ports = self.ports().ok_or_else(|| {
            let (offset, length) = (self.psid_offset, self.psid_length);
            Refusal::new(format!("psid-offset {offset} and psid-len {length} are over 16 bits"))
                .remedy("a port has 16 bits: both together have at most so many")
        })?;
        self.check_lengths()?;
        let lengths =
            Lengths { ip4: self.ip4.length, ip6: self.ip6.length, embedded: self.embedded };
        let bits = (bits4(self.ip4), bits6(self.ip6));
        Ok(Domain::new(mode, self.mtu_bytes, ports, bindings, bits, lengths))
    }

    fn check_ip4(&self) -> Result<(), Refusal> {
        let first = bits4(self.ip4) >> 24;
        if self.ip4.length == 0 || first == 0 || first == 127 || first >= 224 {
            return Err(Refusal::new(format!("{} has addresses that are no host's", self.ip4))
                .remedy("ip4-pfx is the prefix that customers have addresses of"));
        }
        Ok(())
    }

    fn mode(&self) -> Result<Mode, Refusal> {
        let source = self.ip6_source;
        if self.translates {
            return Prefix::new(bits6(source), source.length).map(Mode::Translate).map_err(
                |error| {
                    Refusal::new(format!("ip6-src {source}: {error}"))
                        .remedy("with map-t, ip6-src is the default mapping rule: 2001:db8:64::/96")
                },
            );
        }
        let is_host = match source.address {
            IpAddr::V6(address) => {
                source.length == 128 && is_unicast(address) && !is_link_local(address)
            }
            IpAddr::V4(_) => false,
        };
        if !is_host {
            return Err(Refusal::new(format!("ip6-src {source} is no address of one host"))
                .remedy("without map-t, ip6-src is the border relay's address: 2001:db8::1/128"));
        }
        Ok(Mode::Encapsulate(bits6(source)))
    }

    /// RFC 7597 §5.2: the embedded bits are the IPv4 suffix, or its first bits, and the PSID.
    fn check_lengths(&self) -> Result<(), Refusal> {
        let (ip6, embedded, psid) = (self.ip6.length, self.embedded, self.psid_length);
        let suffix = 32 - self.ip4.length;
        let needed = suffix + psid;
        if ip6 + embedded > 128 {
            return Err(Refusal::new(format!(
                "ip6-pfx {} and ea-bits-len {embedded} are over 128 bits",
                self.ip6
            ))
            .remedy("an address has 128 bits: both together have at most so many"));
        }
        if self.has_rules() && psid > RULES_PSID_BITS_MAX {
            return Err(Refusal::new(format!("rules for {psid} bits of PSID would be too many"))
                .remedy(format!("psid-len of at most {RULES_PSID_BITS_MAX}")));
        }
        if self.has_rules() && suffix > 0 {
            return Err(Refusal::new(format!("with rules, {} is no single address", self.ip4))
                .remedy("psid-len without ea-bits-len needs an ip4-pfx of 32 bits"));
        }
        let fits = match psid {
            0 => embedded <= suffix,
            _ => embedded == 0 || embedded == needed,
        };
        if !fits {
            return Err(Refusal::new(format!(
                "ea-bits-len {embedded} is not the {suffix} bits behind {} and the {psid} bits of \
                 the PSID",
                self.ip4
            ))
            .remedy(format!("ea-bits-len {needed} would be right")));
        }
        let has_address = embedded >= suffix || ip6 + embedded <= SUBNET_BITS;
        if self.translates && !has_address {
            return Err(Refusal::new(
                "the IPv4 address does not fit behind such a long ip6-pfx, and could not be found \
                 again",
            )
            .remedy(format!("ea-bits-len {suffix}, or at most {SUBNET_BITS} bits of prefix")));
        }
        Ok(())
    }

    /// The words of the command that makes it.
    pub fn words(&self, index: u32) -> String {
        let tag = self.tag.as_deref().map(|tag| format!("tag {} ", quoted(tag)));
        // The border relay has an address, the default mapping rule is a prefix.
        let source = match self.translates {
            true => self.ip6_source.to_string(),
            false => self.ip6_source.address.to_string(),
        };
        let mut words = format!(
            "{}ip4-pfx {} ip6-pfx {} ip6-src {source} index {index}",
            tag.unwrap_or_default(),
            self.ip4,
            self.ip6,
        );
        for (word, value, usual) in [
            ("ea-bits-len", u16::from(self.embedded), 0),
            ("psid-offset", self.psid_offset.into(), 0),
            ("psid-len", self.psid_length.into(), 0),
            ("mtu", self.mtu_bytes, MTU_BYTES),
        ] {
            if value != usual {
                words += &format!(" {word} {value}");
            }
        }
        if self.translates {
            words += " map-t";
        }
        words
    }
}

fn check_host_bits(prefix: IpPrefix) -> Result<(), Refusal> {
    if !prefix.has_host_bits() {
        return Ok(());
    }
    Err(Refusal::new(format!("{prefix} has bits set behind its length"))
        .remedy(format!("{} would be right", prefix.network())))
}
