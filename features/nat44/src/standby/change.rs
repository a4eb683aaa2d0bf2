//! What the router that stands by is told: a change of a session, a mapping or a port block, as it
//! goes through the ring and as a record.
//!
//! ```text
//! 0   kind                                      1 byte
//! 1   state of TCP                              1
//! 2   flags of the session                      2
//! 4   seconds since it was refreshed            4
//! 8   protocol                                  1
//! 9   VRF of packets from inside                4
//! 13  VRF of packets from outside               4
//! 17  from inside: source address and port, destination address and port    12
//! 29  from outside: the same                    12
//! ```
//!
//! A mapping has its end inside as the source from inside, and its external end as the destination
//! from outside. So has a block: the host without port, the external address with the first port.

use quiver_export::records::Record;
use quiver_translation::flow::{End, Flow};
use quiver_wire::IpProtocol;

/// Bytes of a record.
pub(crate) const CHANGE_BYTES: usize = 41;

/// What changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    SessionCreate = 0,
    /// It lives, and may have another state.
    SessionRefresh = 1,
    /// It was there before the link was.
    SessionBulk = 2,
    SessionDelete = 3,
    MappingCreate = 4,
    MappingDelete = 5,
    BlockAllocate = 6,
    BlockRelease = 7,
    /// All that is there follows.
    BulkBegin = 8,
    /// All that was there was said.
    BulkEnd = 9,
}

impl ChangeKind {
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

/// A change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub kind: ChangeKind,
    /// State of TCP.
    pub tcp: u8,
    /// Flags of a session.
    pub flags: u16,
    /// Seconds since a session was refreshed; of a bulk, its number.
    pub idle_s: u32,
    pub inside: Flow,
    pub outside: Flow,
}

impl Change {
    /// Only a kind.
    pub fn new(kind: ChangeKind) -> Change {
        let none = End::default();
        let flow = Flow { source: none, destination: none, protocol: IpProtocol(0), table: 0 };
        Change { kind, tcp: 0, flags: 0, idle_s: 0, inside: flow, outside: flow }
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
pub(crate) enum Message {
    Change(Change),
    /// The peer wants all that is there.
    Wanted,
}

/// The record that asks for all that is there.
pub(crate) const WANTED: [u8; 1] = [ChangeKind::WANTED];

/// A change as a record; `vrf` is the number of the VRF of a table.
pub(crate) fn encode(change: &Change, vrf: impl Fn(u32) -> u32) -> [u8; CHANGE_BYTES] {
    let mut record = [0; CHANGE_BYTES];
    let mut place = record.iter_mut();
    let mut put = |bytes: &[u8]| bytes.iter().zip(&mut place).for_each(|(from, to)| *to = *from);
    put(&[change.kind as u8, change.tcp]);
    put(&change.flags.to_be_bytes());
    put(&change.idle_s.to_be_bytes());
    put(&[change.inside.protocol.0]);
    put(&vrf(change.inside.table).to_be_bytes());
    put(&vrf(change.outside.table).to_be_bytes());
    for flow in [change.inside, change.outside] {
        for end in [flow.source, flow.destination] {
            put(&end.address.to_be_bytes());
            put(&end.port.to_be_bytes());
        }
    }
    record
}

/// What a record says; `None` when it is none of ours, or names a VRF that is not here. `table` is
/// the small number of the table of a VRF.
pub(crate) fn decode(record: &[u8], table: impl Fn(u32) -> Option<u32>) -> Option<Message> {
    if record == WANTED {
        return Some(Message::Wanted);
    }
    let mut fields = Fields(<&[u8; CHANGE_BYTES]>::try_from(record).ok()?);
    let kind = *ChangeKind::ALL.get(usize::from(fields.u8()?))?;
    let (tcp, flags, idle_s) = (fields.u8()?, fields.u16()?, fields.u32()?);
    let protocol = IpProtocol(fields.u8()?);
    let tables = [table(fields.u32()?)?, table(fields.u32()?)?];
    let mut flow = |table: u32| {
        let mut end = || Some(End { address: fields.u32()?, port: fields.u16()? });
        Some(Flow { source: end()?, destination: end()?, protocol, table })
    };
    let (inside, outside) = (flow(tables[0])?, flow(tables[1])?);
    Some(Message::Change(Change { kind, tcp, flags, idle_s, inside, outside }))
}

/// Numbers that are read from the front.
struct Fields<'r>(&'r [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take().map(u8::from_be_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
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
            kind in 0usize..10, tcp: u8, flags: u16, idle_s: u32, protocol: u8,
            ends in [end(), end(), end(), end()], tables: (u16, u16),
        ) {
            let [a, b, c, d] = ends;
            let flow = |source, destination, table: u16| Flow {
                source, destination, protocol: IpProtocol(protocol), table: table.into(),
            };
            let change = Change {
                kind: ChangeKind::ALL[kind], tcp, flags, idle_s,
                inside: flow(a, b, tables.0), outside: flow(c, d, tables.1),
            };
            let record = encode(&change, |table| table + 7);
            let read = decode(&record, |vrf| vrf.checked_sub(7));
            prop_assert_eq!(read, Some(Message::Change(change)));
            prop_assert_eq!(decode(&record, |_| None), None, "a VRF that is not here");
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let read = decode(&bytes, Some);
            prop_assert!(read.is_none() || bytes == WANTED || bytes.len() == CHANGE_BYTES);
        }
    }
}
