//! What the router that stands by is told: a change of a session, a mapping or a port block, as it
//! goes through the ring and as a record.
//!
//! ```text
//! 0   kind                                      1 byte
//! 1   family of the host inside: 4, 6, or 46 for IPv4 behind a softwire;    1
//!     128 more where the remote host is behind one, too
//! 2   state of TCP                              1
//! 3   flags of the session                      2
//! 5   seconds since it was refreshed            4
//! 9   protocol                                  1
//! 10  VRF of packets from inside                4
//! 14  VRF of packets from outside               4
//! 18  from outside: source address and port, destination address and port   12
//! 30  from inside: the same; of IPv6            12 or 36
//! 42  behind a softwire: the B4's address       16
//! …   the remote host behind one: its B4's      16
//! ```
//!
//! A mapping has its end inside as the source from inside, and its external end as the destination
//! from outside. So has a block: the host without port, the external address with the first port.

use quiver_export::records::Record;
use quiver_translation::flow::{End, Flow};
use quiver_wire::IpProtocol;

/// Bytes of a record that all families have, and of the longest one.
const HEAD_BYTES: usize = 30;
const CHANGE_BYTES_MAX: usize = 82;
/// Beside the family: the remote host is behind a softwire.
const REMOTE_BEHIND_B4: u8 = 0x80;

/// What changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// A session begins.
    SessionCreate = 0,
    /// It lives, and may have another state.
    SessionRefresh = 1,
    /// It was there before the link was.
    SessionBulk = 2,
    /// A session ends.
    SessionDelete = 3,
    /// A mapping begins.
    MappingCreate = 4,
    /// A mapping ends.
    MappingDelete = 5,
    /// A subscriber gets a port block.
    BlockAllocate = 6,
    /// A port block is free again.
    BlockRelease = 7,
    /// All that is there follows.
    BulkBegin = 8,
    /// All that was there was said.
    BulkEnd = 9,
}

impl ChangeKind {
    /// All, by number.
    const ALL: [ChangeKind; 10] = [
        ChangeKind::SessionCreate,
        ChangeKind::SessionRefresh,
        ChangeKind::SessionBulk,
        ChangeKind::SessionDelete,
        ChangeKind::MappingCreate,
        ChangeKind::MappingDelete,
        ChangeKind::BlockAllocate,
        ChangeKind::BlockRelease,
        ChangeKind::BulkBegin,
        ChangeKind::BulkEnd,
    ];
    /// The word of [`Message::Wanted`] in the place of a kind.
    const WANTED: u8 = 32;
}

/// By what a host inside is known beside its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// By its address of IPv4 and its table.
    Ip4,
    /// By its address of IPv6, and the one that it names the remote host by. The flow from inside
    /// has the ports alone.
    Ip6 {
        /// The host.
        host: u128,
        /// The remote host; 0 of a mapping.
        remote: u128,
    },
    /// By its address of IPv4 and its B4 (RFC 6333 §6.6). The flow from inside has no table.
    BehindB4(u128),
}

impl Host {
    fn family(self) -> u8 {
        match self {
            Host::Ip4 => 4,
            Host::Ip6 { .. } => 6,
            Host::BehindB4(_) => 46,
        }
    }
}

/// A change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// What changes.
    pub kind: ChangeKind,
    /// State of TCP.
    pub tcp: u8,
    /// Flags of a session.
    pub flags: u16,
    /// Seconds since a session was refreshed; of a bulk, its number.
    pub idle_s: u32,
    /// Packets from inside.
    pub inside: Flow,
    /// Packets from outside.
    pub outside: Flow,
    /// By what the host inside is known.
    pub host: Host,
    /// The B4 of the remote host, where one host inside reaches another one (hairpinning). The flow
    /// from outside has no table then.
    pub remote_b4: Option<u128>,
}

impl Change {
    /// Only a kind.
    pub fn new(kind: ChangeKind) -> Change {
        let none = End::default();
        let flow = Flow { source: none, destination: none, protocol: IpProtocol(0), table: 0 };
        Change {
            kind,
            tcp: 0,
            flags: 0,
            idle_s: 0,
            inside: flow,
            outside: flow,
            host: Host::Ip4,
            remote_b4: None,
        }
    }

    /// Does it say that packets came to who tells it?
    pub fn is_of_packet(&self) -> bool {
        matches!(self.kind, ChangeKind::SessionCreate | ChangeKind::SessionRefresh)
    }
}

impl Record for Change {
    const KINDS: &'static [&'static str] = &[
        "session-create",
        "session-refresh",
        "session-bulk",
        "session-delete",
        "mapping-create",
        "mapping-delete",
        "block-allocate",
        "block-release",
        "bulk-begin",
        "bulk-end",
    ];

    fn kind(&self) -> usize {
        self.kind as usize
    }
}

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// Something changes.
    Change(Change),
    /// The peer wants all that is there.
    Wanted,
}

/// Why a record is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// It is none of these.
    Malformed,
    /// It names a VRF that is not here.
    NoVrf,
}

/// The record that asks for all that is there.
pub const WANTED: [u8; 1] = [ChangeKind::WANTED];

/// A record, written.
pub struct Written {
    bytes: [u8; CHANGE_BYTES_MAX],
    length: usize,
}

impl Written {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    fn put(&mut self, bytes: &[u8]) {
        let places = self.bytes.iter_mut().skip(self.length);
        places.zip(bytes).for_each(|(place, byte)| *place = *byte);
        self.length += bytes.len();
    }
}

/// A change as a record; `vrf` is the number of the VRF of a table, of IPv6 where that is said.
pub fn encode(change: &Change, vrf: impl Fn(bool, u32) -> u32) -> Written {
    let Change { kind, tcp, flags, idle_s, inside, outside, host, remote_b4 } = change;
    let mut record = Written { bytes: [0; CHANGE_BYTES_MAX], length: 0 };
    let remote = if remote_b4.is_some() { REMOTE_BEHIND_B4 } else { 0 };
    record.put(&[*kind as u8, host.family() | remote, *tcp]);
    record.put(&flags.to_be_bytes());
    record.put(&idle_s.to_be_bytes());
    record.put(&[inside.protocol.0]);
    let inside_vrf = match host {
        Host::Ip4 => vrf(false, inside.table),
        Host::Ip6 { .. } => vrf(true, inside.table),
        Host::BehindB4(_) => 0,
    };
    record.put(&inside_vrf.to_be_bytes());
    let outside_vrf = if remote_b4.is_some() { 0 } else { vrf(false, outside.table) };
    record.put(&outside_vrf.to_be_bytes());
    for end in [outside.source, outside.destination] {
        record.put(&end.address.to_be_bytes());
        record.put(&end.port.to_be_bytes());
    }
    let named = match host {
        Host::Ip6 { host, remote } => Some([*host, *remote]),
        _ => None,
    };
    for (at, end) in [inside.source, inside.destination].into_iter().enumerate() {
        match named {
            Some(addresses) => record.put(&addresses[at].to_be_bytes()),
            None => record.put(&end.address.to_be_bytes()),
        }
        record.put(&end.port.to_be_bytes());
    }
    if let Host::BehindB4(b4) = host {
        record.put(&b4.to_be_bytes());
    }
    if let Some(b4) = remote_b4 {
        record.put(&b4.to_be_bytes());
    }
    record
}

/// What a record says. `table` is the small number of the table of a VRF, of IPv6 where that is
/// said.
///
/// # Errors
/// It is none of ours, or names a VRF that is not here.
pub fn decode(
    record: &[u8],
    table: impl Fn(bool, u32) -> Option<u32>,
) -> Result<Message, Unreadable> {
    if record == WANTED {
        return Ok(Message::Wanted);
    }
    let (head, rest) = record.split_first_chunk::<HEAD_BYTES>().ok_or(Unreadable::Malformed)?;
    let mut head = Fields(head);
    let kind = usize::from(head.u8()?);
    let kind = *ChangeKind::ALL.get(kind).ok_or(Unreadable::Malformed)?;
    let (family, is_remote_behind_b4) = match head.u8()? {
        byte if byte & REMOTE_BEHIND_B4 != 0 => (byte & !REMOTE_BEHIND_B4, true),
        byte => (byte, false),
    };
    let (tcp, flags, idle_s) = (head.u8()?, head.u16()?, head.u32()?);
    let protocol = IpProtocol(head.u8()?);
    let vrfs = (head.u32()?, head.u32()?);
    let mut outside = || Ok::<End, Unreadable>(End { address: head.u32()?, port: head.u16()? });
    let (far, external) = (outside()?, outside()?);
    let mut rest = Fields(rest);
    let mut ends = [End::default(); 2];
    let mut named = [0; 2];
    for (end, named) in ends.iter_mut().zip(&mut named) {
        match family {
            6 => *named = rest.u128()?,
            _ => end.address = rest.u32()?,
        }
        end.port = rest.u16()?;
    }
    let [host, remote] = named;
    let host = match family {
        4 => Host::Ip4,
        6 => Host::Ip6 { host, remote },
        46 => Host::BehindB4(rest.u128()?),
        _ => return Err(Unreadable::Malformed),
    };
    let remote_b4 = if is_remote_behind_b4 { Some(rest.u128()?) } else { None };
    if !rest.0.is_empty() {
        return Err(Unreadable::Malformed);
    }
    let inside_table = match host {
        Host::BehindB4(_) => Some(0),
        _ => table(family == 6, vrfs.0),
    };
    let inside_table = inside_table.ok_or(Unreadable::NoVrf)?;
    let outside_table = match remote_b4 {
        Some(_) => Some(0),
        None => table(false, vrfs.1),
    };
    let outside_table = outside_table.ok_or(Unreadable::NoVrf)?;
    let [source, destination] = ends;
    let inside = Flow { source, destination, protocol, table: inside_table };
    let outside = Flow { source: far, destination: external, protocol, table: outside_table };
    let change = Change { kind, tcp, flags, idle_s, inside, outside, host, remote_b4 };
    Ok(Message::Change(change))
}

/// Numbers that are read from the front.
struct Fields<'r>(&'r [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Unreadable> {
        let (field, rest) = self.0.split_first_chunk().ok_or(Unreadable::Malformed)?;
        self.0 = rest;
        Ok(*field)
    }

    fn u8(&mut self) -> Result<u8, Unreadable> {
        self.take().map(u8::from_be_bytes)
    }

    fn u16(&mut self) -> Result<u16, Unreadable> {
        self.take().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, Unreadable> {
        self.take().map(u32::from_be_bytes)
    }

    fn u128(&mut self) -> Result<u128, Unreadable> {
        self.take().map(u128::from_be_bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn end() -> impl Strategy<Value = End> {
        any::<(u32, u16)>().prop_map(|(address, port)| End { address, port })
    }

    proptest! {
        #[test]
        fn a_record_says_what_it_was_made_of(
            kind in 0usize..10, tcp: u8, flags: u16, idle_s: u32, protocol: u8, family in 0..3,
            ends in [end(), end(), end(), end()], tables: (u16, u16), named: [u128; 2],
            remote_b4: Option<u128>,
        ) {
            let [a, b, c, d] = ends;
            let flow = |source, destination, table: u16| Flow {
                source, destination, protocol: IpProtocol(protocol), table: table.into(),
            };
            let no_address = |end: End| End { address: 0, ..end };
            let (host, inside) = match family {
                0 => (Host::Ip4, flow(a, b, tables.0)),
                1 => (
                    Host::Ip6 { host: named[0], remote: named[1] },
                    flow(no_address(a), no_address(b), tables.0),
                ),
                _ => (Host::BehindB4(named[0]), flow(a, b, 0)),
            };
            let change = Change {
                kind: ChangeKind::ALL[kind], tcp, flags, idle_s, inside,
                outside: flow(c, d, if remote_b4.is_some() { 0 } else { tables.1 }),
                host,
                remote_b4,
            };
            let step = |is_ip6: bool| if is_ip6 { 9 } else { 7 };
            let record = encode(&change, |is_ip6, table| table + step(is_ip6));
            let read = decode(record.bytes(), |is_ip6, vrf| vrf.checked_sub(step(is_ip6)));
            prop_assert_eq!(read, Ok(Message::Change(change)));
            // Both hosts are known by their B4s, and by no table.
            let names_vrf = family != 2 || remote_b4.is_none();
            let without_vrfs = decode(record.bytes(), |_, _| None);
            prop_assert_eq!(without_vrfs == Err(Unreadable::NoVrf), names_vrf);
            let cut = &record.bytes()[..record.bytes().len() - 1];
            prop_assert_eq!(decode(cut, |_, vrf| Some(vrf)), Err(Unreadable::Malformed));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let read = decode(&bytes, |_, vrf| Some(vrf));
            prop_assert!(read.is_err() || bytes == WANTED || bytes.len() >= HEAD_BYTES + 12);
        }
    }
}
