//! What the nodes tell the control thread, as it lies in an [`Event`].

use std::net::Ipv6Addr;

use quiver_core::worker::event::{Event, EventReader, EventWriter};
use quiver_core::{Context, InterfaceId};
use quiver_wire::icmp6::nd::PrefixInformation;

/// What a router says of itself, without its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouterSays {
    /// What hosts put into their packets; 0: not said.
    pub hop_limit: u8,
    /// As sent.
    pub flags: u8,
    /// How long it is a default router, seconds.
    pub lifetime_s: u16,
    /// Milliseconds; 0: not said.
    pub reachable_ms: u32,
    /// Milliseconds; 0: not said.
    pub retransmit_ms: u32,
    /// MTU of the link, bytes; 0: not said.
    pub mtu_bytes: u32,
}

/// What a router says of a route behind it (RFC 4191 §2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteSays {
    /// Where the route leads; bits behind the length mean nothing.
    pub prefix: Ipv6Addr,
    /// Length of the prefix in bits, as sent: it may exceed 128.
    pub length: u8,
    /// The preference, two bits.
    pub flags: u8,
    /// How long it holds, seconds; all ones: for ever.
    pub lifetime_s: u32,
}

impl RouteSays {
    /// What stands behind type and length of a route information option. Bits that are not sent are
    /// 0.
    pub fn parse(data: &[u8]) -> Option<RouteSays> {
        let ([length, flags, a, b, c, d], sent) = data.split_first_chunk::<6>()?;
        let mut octets = [0; 16];
        octets.get_mut(..sent.len())?.copy_from_slice(sent);
        if usize::from(*length) > 8 * sent.len() {
            return None;
        }
        let (prefix, lifetime_s) = (Ipv6Addr::from(octets), u32::from_be_bytes([*a, *b, *c, *d]));
        Some(RouteSays { prefix, length: *length, flags: *flags, lifetime_s })
    }
}

/// What a node tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notification {
    /// A host asks for routers.
    Solicitation {
        /// The host; `::` when it has no address yet.
        from: Ipv6Addr,
    },
    /// A router tells of itself.
    Router {
        /// Its link-local address.
        from: Ipv6Addr,
        /// What it says.
        says: RouterSays,
    },
    /// A router tells of a prefix.
    Prefix {
        /// The router.
        from: Ipv6Addr,
        /// What it says.
        says: PrefixInformation,
    },
    /// A router tells of a route behind it.
    Route {
        /// The router.
        from: Ipv6Addr,
        /// What it says.
        says: RouteSays,
    },
}

impl Notification {
    fn bytes(&self) -> (u8, EventWriter) {
        let mut out = EventWriter::new();
        let kind = match self {
            Notification::Solicitation { from } => {
                out.put(&from.octets());
                0
            }
            Notification::Router { from, says } => {
                out.put(&from.octets());
                out.put(&[says.hop_limit, says.flags]);
                out.put(&says.lifetime_s.to_be_bytes());
                let words = [says.reachable_ms, says.retransmit_ms, says.mtu_bytes];
                words.iter().for_each(|word| out.put(&word.to_be_bytes()));
                1
            }
            Notification::Prefix { from, says } => {
                out.put(&from.octets());
                out.put(&[says.length, says.flags]);
                [says.valid_s, says.preferred_s]
                    .iter()
                    .for_each(|word| out.put(&word.to_be_bytes()));
                out.put(&says.prefix.octets());
                2
            }
            Notification::Route { from, says } => {
                out.put(&from.octets());
                out.put(&[says.length, says.flags]);
                out.put(&says.lifetime_s.to_be_bytes());
                out.put(&says.prefix.octets());
                3
            }
        };
        (kind, out)
    }

    /// Tell the control thread about `interface`.
    pub fn send(self, cx: &mut Context<'_>, interface: InterfaceId) {
        let (kind, out) = self.bytes();
        cx.notify(Event::new(cx.node, interface, cx.now_ns, kind, out.bytes()));
    }

    /// What an event of one of our nodes says.
    pub fn read(event: &Event) -> Option<Notification> {
        Notification::from_bytes(event.kind, event.bytes())
    }

    fn from_bytes(kind: u8, bytes: &[u8]) -> Option<Notification> {
        let mut bytes = EventReader(bytes);
        let from = Ipv6Addr::from_octets(bytes.take()?);
        match kind {
            0 => Some(Notification::Solicitation { from }),
            1 => {
                let [hop_limit, flags] = bytes.take()?;
                let lifetime_s = u16::from_be_bytes(bytes.take()?);
                let (reachable_ms, retransmit_ms) = (bytes.word()?, bytes.word()?);
                let mtu_bytes = bytes.word()?;
                let says = RouterSays {
                    hop_limit,
                    flags,
                    lifetime_s,
                    reachable_ms,
                    retransmit_ms,
                    mtu_bytes,
                };
                Some(Notification::Router { from, says })
            }
            3 => {
                let [length, flags] = bytes.take()?;
                let lifetime_s = bytes.word()?;
                let prefix = Ipv6Addr::from_octets(bytes.take()?);
                Some(Notification::Route {
                    from,
                    says: RouteSays { prefix, length, flags, lifetime_s },
                })
            }
            _ => {
                let [length, flags] = bytes.take()?;
                let (valid_s, preferred_s) = (bytes.word()?, bytes.word()?);
                let prefix = Ipv6Addr::from_octets(bytes.take()?);
                let says = PrefixInformation { length, flags, valid_s, preferred_s, prefix };
                Some(Notification::Prefix { from, says })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_has_as_many_bytes_as_its_length_asks_for() {
        let data = [48, 0x08, 0, 0, 0, 9, 0x20, 1, 0x0d, 0xb8, 0, 7, 0, 0];
        let expected = RouteSays {
            prefix: "2001:db8:7::".parse().unwrap(),
            length: 48,
            flags: 0x08,
            lifetime_s: 9,
        };
        assert_eq!(RouteSays::parse(&data), Some(expected));
        assert!(RouteSays::parse(&data[..6]).is_none(), "48 bits in none");
        assert!(RouteSays::parse(&[0, 0, 0, 0, 0, 9]).is_some_and(|says| says.length == 0));
        for (length, bytes) in [(65, 14), (129, 22), (0, 5), (0, 30)] {
            let mut data = vec![0; bytes];
            data[0] = length;
            assert_eq!(RouteSays::parse(&data), None, "{length} bits in {bytes} bytes");
        }
    }

    #[test]
    fn what_is_told_is_what_is_read() {
        let from = Ipv6Addr::LOCALHOST;
        let router = RouterSays {
            hop_limit: 64,
            flags: 0xc8,
            lifetime_s: 1800,
            reachable_ms: 1,
            retransmit_ms: 2,
            mtu_bytes: 1500,
        };
        let prefix = PrefixInformation {
            length: 64,
            flags: 0xc0,
            valid_s: 3,
            preferred_s: 4,
            prefix: Ipv6Addr::LOCALHOST,
        };
        let route =
            RouteSays { prefix: Ipv6Addr::LOCALHOST, length: 65, flags: 0x18, lifetime_s: 5 };
        for notice in [
            Notification::Route { from, says: route },
            Notification::Solicitation { from },
            Notification::Router { from, says: router },
            Notification::Prefix { from, says: prefix },
        ] {
            let (kind, out) = notice.bytes();
            assert_eq!(Notification::from_bytes(kind, out.bytes()), Some(notice));
        }
    }
}
