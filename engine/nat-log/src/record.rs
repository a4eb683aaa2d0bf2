//! What a translator logs: an event with its addresses and ports, in 88 bytes.

use quiver_export::records::Record;
use quiver_translation::flow::End;

/// How much is logged; each includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Port blocks, and what is exhausted.
    Blocks = 1,
    /// Endpoint-independent mappings, too.
    Mappings = 2,
    /// Sessions, too.
    Sessions = 3,
}

impl Detail {
    /// All, the least first.
    pub const ALL: [Detail; 3] = [Detail::Blocks, Detail::Mappings, Detail::Sessions];

    /// Its word in commands.
    pub fn word(self) -> &'static str {
        match self {
            Detail::Blocks => "blocks",
            Detail::Mappings => "mappings",
            Detail::Sessions => "sessions",
        }
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A session begins.
    SessionCreate,
    /// A session ends.
    SessionDelete,
    /// An endpoint-independent mapping begins.
    MappingCreate,
    /// An endpoint-independent mapping ends.
    MappingDelete,
    /// A subscriber gets a port block.
    BlockAllocate,
    /// A port block is free again.
    BlockRelease,
    /// No address of the pool has a port that could be used.
    AddressesExhausted,
    /// An address of the pool has no port that could be used.
    PortsExhausted,
    /// There are as many sessions as there may be.
    SessionQuota,
    /// There are as many mappings, blocks and subscribers as there may be.
    MappingQuota,
    /// A subscriber has as much as it may have.
    SubscriberQuota,
    /// A session of a host with IPv6 begins (NAT64).
    SessionCreate64,
    /// A session of a host with IPv6 ends.
    SessionDelete64,
    /// A binding of a host with IPv6 begins.
    MappingCreate64,
    /// A binding of a host with IPv6 ends.
    MappingDelete64,
    /// A subscriber with IPv6 has as much as it may have.
    SubscriberQuota64,
}

impl Event {
    /// All, by number.
    pub const ALL: [Event; 16] = [
        Event::SessionCreate,
        Event::SessionDelete,
        Event::MappingCreate,
        Event::MappingDelete,
        Event::BlockAllocate,
        Event::BlockRelease,
        Event::AddressesExhausted,
        Event::PortsExhausted,
        Event::SessionQuota,
        Event::MappingQuota,
        Event::SubscriberQuota,
        Event::SessionCreate64,
        Event::SessionDelete64,
        Event::MappingCreate64,
        Event::MappingDelete64,
        Event::SubscriberQuota64,
    ];

    /// natEvent of the IANA registry (RFC 8158 §4).
    pub fn nat_event(self) -> u8 {
        match self {
            Event::AddressesExhausted => 3,
            Event::SessionCreate => 4,
            Event::SessionDelete => 5,
            Event::SessionCreate64 => 6,
            Event::SessionDelete64 => 7,
            Event::MappingCreate => 8,
            Event::MappingDelete => 9,
            Event::MappingCreate64 => 10,
            Event::MappingDelete64 => 11,
            Event::PortsExhausted => 12,
            Event::SessionQuota
            | Event::MappingQuota
            | Event::SubscriberQuota
            | Event::SubscriberQuota64 => 13,
            Event::BlockAllocate => 16,
            Event::BlockRelease => 17,
        }
    }

    /// With which detail it is logged.
    pub fn detail(self) -> Detail {
        match self {
            Event::SessionCreate
            | Event::SessionDelete
            | Event::SessionCreate64
            | Event::SessionDelete64 => Detail::Sessions,
            Event::MappingCreate
            | Event::MappingDelete
            | Event::MappingCreate64
            | Event::MappingDelete64 => Detail::Mappings,
            _ => Detail::Blocks,
        }
    }

    /// Is the host inside one with IPv6?
    pub fn is_of_ip6(self) -> bool {
        matches!(
            self,
            Event::SessionCreate64
                | Event::SessionDelete64
                | Event::MappingCreate64
                | Event::MappingDelete64
                | Event::SubscriberQuota64
        )
    }
}

/// A record. What an event does not have is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NatRecord {
    /// When, nanoseconds of the router's clock.
    pub at_ns: u64,
    /// The end of the host inside.
    pub inside: End,
    /// The same end as it is outside. Of a block, the first port.
    pub external: End,
    /// The remote end as the host inside names it.
    pub remote_inside: End,
    /// The remote end as it is outside.
    pub remote: End,
    /// The host inside and the remote address that it names, where they are of IPv6; the ports are
    /// those of the ends. Of a host behind a softwire, the address of its B4 and 0.
    pub ip6: [[u8; 16]; 2],
    /// Small number of the host's table.
    pub table: u32,
    /// The limit that was reached; of a block, its last port.
    pub value: u32,
    /// What happened.
    pub event: Event,
    /// The protocol behind the IP header.
    pub protocol: u8,
    /// Is the host inside behind a softwire (RFC 6333), whose B4 the record names?
    pub has_b4: bool,
}

impl NatRecord {
    /// Only an event and its time.
    pub fn new(at_ns: u64, event: Event) -> NatRecord {
        let none = End::default();
        NatRecord {
            at_ns,
            inside: none,
            external: none,
            remote_inside: none,
            remote: none,
            ip6: [[0; 16]; 2],
            table: 0,
            value: 0,
            event,
            protocol: 0,
            has_b4: false,
        }
    }

    /// The same of a host behind this B4, whose packets have no table of IPv4.
    #[must_use]
    pub(crate) fn behind(self, b4: Option<u128>) -> NatRecord {
        match b4 {
            Some(b4) => {
                NatRecord { ip6: [b4.to_be_bytes(), [0; 16]], table: 0, has_b4: true, ..self }
            }
            None => self,
        }
    }
}

const _: () = assert!(size_of::<NatRecord>() <= 96, "one and a half lines at most");

impl Record for NatRecord {
    const KINDS: &'static [&'static str] = &[
        "session-create",
        "session-delete",
        "mapping-create",
        "mapping-delete",
        "block-allocate",
        "block-release",
        "addresses-exhausted",
        "ports-exhausted",
        "session-quota",
        "mapping-quota",
        "subscriber-quota",
        "nat64-session-create",
        "nat64-session-delete",
        "nat64-mapping-create",
        "nat64-mapping-delete",
        "nat64-subscriber-quota",
    ];

    fn kind(&self) -> usize {
        self.event as usize
    }
}
