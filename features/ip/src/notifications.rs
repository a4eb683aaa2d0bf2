//! What nodes tell the control thread, as it lies in an [`Event`].

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use quiver_core::worker::event::{Event, EventReader, EventWriter};
use quiver_core::{Context, InterfaceId};
use quiver_wire::MacAddress;

/// Why a neighbour was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It spoke to us by itself (ARP for or from one of our addresses, a solicitation): it may be
    /// new.
    Spoke,
    /// It spoke to others: only what is known already is changed (RFC 826, the merge flag; an
    /// advertisement that nobody asked for, RFC 4861 §7.2.5).
    Overheard,
    /// It answered our solicitation (RFC 4861 §7.2.5).
    Answered,
    /// It answered without wanting to replace a known address (no override).
    Confirmed,
    /// It says who it is, unasked, without wanting to replace a known address.
    Hinted,
}

impl Heard {
    const ALL: [Heard; 5] =
        [Heard::Spoke, Heard::Overheard, Heard::Answered, Heard::Confirmed, Heard::Hinted];
}

/// In the place of a MAC address: a neighbour has the one that is known.
pub const AS_KNOWN: MacAddress = MacAddress::ZERO;

/// What came back to a ping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// An echo reply.
    Reply,
    /// An error about the request.
    Error(PingError),
}

/// An ICMP error about a ping's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PingError {
    /// ICMP type.
    pub kind: u8,
    /// ICMP code.
    pub code: u8,
    /// What the next link takes, in bytes, if it says so.
    pub mtu_bytes: u16,
    /// To whom the request was that the error is about.
    pub about: IpAddr,
}

/// What a node tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notification {
    /// A neighbour said who it is.
    Neighbour {
        /// Its address.
        address: IpAddr,
        /// Its MAC address.
        mac: MacAddress,
        /// On what occasion.
        heard: Heard,
    },
    /// A packet waits for a neighbour who was asked for.
    Wanted {
        /// Whom.
        address: IpAddr,
        /// A worker has asked for it just now.
        asked: bool,
    },
    /// A packet goes to a neighbour that was not heard from for some time.
    Used {
        /// Which.
        address: IpAddr,
    },
    /// A neighbour uses an address of ours.
    Conflict {
        /// The address.
        address: IpAddr,
        /// The neighbour.
        mac: MacAddress,
    },
    /// Something came back to a ping.
    Ping {
        /// Which ping.
        identifier: u16,
        /// Which of its requests.
        sequence: u16,
        /// Who answered.
        from: IpAddr,
        /// What.
        answer: Answer,
        /// TTL or hop limit of the answer.
        hops: u8,
        /// Bytes of ICMP message, from its first.
        bytes: u16,
    },
}

fn put_address(out: &mut EventWriter, address: IpAddr) {
    match address {
        IpAddr::V4(address) => {
            out.put(&[4]);
            out.put(&address.octets());
        }
        IpAddr::V6(address) => {
            out.put(&[6]);
            out.put(&address.octets());
        }
    }
}

fn address(bytes: &mut EventReader<'_>) -> Option<IpAddr> {
    match bytes.take::<1>()? {
        [4] => bytes.take::<4>().map(|octets| Ipv4Addr::from(octets).into()),
        _ => bytes.take::<16>().map(|octets| Ipv6Addr::from(octets).into()),
    }
}

impl Notification {
    /// Tell the control thread about `interface`. False when it has not been told: too much waits
    /// for it.
    pub fn send(self, cx: &mut Context<'_>, interface: InterfaceId) -> bool {
        let mut out = EventWriter::new();
        let kind = match self {
            Notification::Neighbour { address, mac, heard } => {
                put_address(&mut out, address);
                out.put(&mac.0);
                out.put(&[heard as u8]);
                0
            }
            Notification::Wanted { address, asked } => {
                put_address(&mut out, address);
                if asked { 2 } else { 1 }
            }
            Notification::Used { address } => {
                put_address(&mut out, address);
                3
            }
            Notification::Conflict { address, mac } => {
                put_address(&mut out, address);
                out.put(&mac.0);
                4
            }
            Notification::Ping { identifier, sequence, from, answer, hops, bytes } => {
                put_address(&mut out, from);
                out.put(&identifier.to_be_bytes());
                out.put(&sequence.to_be_bytes());
                out.put(&bytes.to_be_bytes());
                out.put(&[hops]);
                match answer {
                    Answer::Reply => 5,
                    Answer::Error(PingError { kind, code, mtu_bytes, about }) => {
                        out.put(&[kind, code]);
                        out.put(&mtu_bytes.to_be_bytes());
                        put_address(&mut out, about);
                        6
                    }
                }
            }
        };
        cx.notify(Event::new(cx.node, interface, cx.now_ns, kind, out.bytes()))
    }

    /// What an event of one of our nodes says.
    pub fn read(event: &Event) -> Option<Notification> {
        let mut bytes = EventReader(event.bytes());
        let about = address(&mut bytes)?;
        match event.kind {
            0 => {
                let (mac, [heard]) = (MacAddress(bytes.take()?), bytes.take()?);
                let heard = *Heard::ALL.get(usize::from(heard))?;
                Some(Notification::Neighbour { address: about, mac, heard })
            }
            1 | 2 => Some(Notification::Wanted { address: about, asked: event.kind == 2 }),
            3 => Some(Notification::Used { address: about }),
            4 => Some(Notification::Conflict { address: about, mac: MacAddress(bytes.take()?) }),
            5 | 6 => {
                let (identifier, sequence) = (bytes.half()?, bytes.half()?);
                let length = bytes.half()?;
                let [hops] = bytes.take()?;
                let answer = if event.kind == 5 {
                    Answer::Reply
                } else {
                    let [kind, code] = bytes.take()?;
                    let mtu_bytes = bytes.half()?;
                    Answer::Error(PingError { kind, code, mtu_bytes, about: address(&mut bytes)? })
                };
                Some(Notification::Ping {
                    identifier,
                    sequence,
                    from: about,
                    answer,
                    hops,
                    bytes: length,
                })
            }
            _ => None,
        }
    }
}
