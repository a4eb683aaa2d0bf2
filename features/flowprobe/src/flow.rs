//! A flow: two cache lines of 16 words, which its worker alone stores.
//!
//! | word | content |
//! | --- | --- |
//! | 0 to 5 | the key ([`crate::key`]) |
//! | 6 | packets |
//! | 7 | octets of IP packets |
//! | 8 | octets of frames |
//! | 9 | first packet, milliseconds of the router's clock (48 bits), flags of TCP (8) |
//! | 10 | last packet, milliseconds (48 bits), class of service (8) |
//! | 11 | the other interface (32 bits), ICMP type and code (16) |
//! | 12 | source MAC address (48 bits), EtherType (16) |
//! | 13 | destination MAC address (48 bits), VLAN tag (16) |
//!
//! Words 6 to 10 are of the present record: an active timeout begins a new one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};

use quiver_core::InterfaceId;
use quiver_export::records::Record;
use quiver_tables::sessions::{SessionTable, SessionsWriter};

use crate::key::{FlowKey, IS_IP4, IS_IP6, OUTPUT, SHAPE_SHIFT, Shape};

/// Words of a flow.
pub(crate) const WORDS: usize = 16;
/// Words of its key.
pub(crate) const KEY_WORDS: usize = 6;
const PACKETS: usize = 6;
const OCTETS: usize = 7;
const FRAME_OCTETS: usize = 8;
const FIRST: usize = 9;
const LAST: usize = 10;
const OTHER: usize = 11;
const SOURCE_MAC: usize = 12;
const DESTINATION_MAC: usize = 13;
/// Bits of a time or of a MAC address.
const LOW: u64 = (1 << 48) - 1;

/// What keys are looked up in.
pub(crate) type Table = SessionTable<WORDS, KEY_WORDS, 1>;
/// Who makes flows.
pub(crate) type Writer = SessionsWriter<WORDS, KEY_WORDS, 1>;

/// TCP flags that end a connection: FIN and RST.
const TCP_ENDS: u8 = 0b101;

/// Why a record ends: flowEndReason (RFC 5102 §5.11.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndReason {
    /// No packet for the passive timeout.
    Idle = 1,
    /// The flow goes on; the active timeout is over.
    Active = 2,
    /// TCP ended the connection.
    EndOfFlow = 3,
    /// The operator ended it.
    Forced = 4,
}

/// The words of a flow whose first packets are these.
pub(crate) fn begin(key: &FlowKey, now_ms: u64) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    for (word, own) in words.iter_mut().zip(key.words) {
        *word = own;
    }
    words[FIRST] = now_ms & LOW;
    words[OTHER] = u64::from(key.other) | u64::from(key.icmp) << 32;
    words[SOURCE_MAC] = key.macs[0] & LOW | u64::from(key.ether_type) << 48;
    words[DESTINATION_MAC] = key.macs[1] & LOW | u64::from(key.vlan) << 48;
    words
}

fn get(words: &[AtomicU64; WORDS], at: usize) -> u64 {
    words[at].load(Ordering::Relaxed)
}

fn set(words: &[AtomicU64; WORDS], at: usize, value: u64) {
    words[at].store(value, Ordering::Relaxed);
}

/// Add packets to a flow.
#[inline(always)]
pub(crate) fn add(words: &[AtomicU64; WORDS], key: &FlowKey, now_ms: u64) {
    let packets = get(words, PACKETS);
    if packets == 0 {
        // The first packet behind an active timeout begins the record.
        set(words, FIRST, now_ms & LOW | u64::from(key.tcp_flags) << 48);
    } else if key.tcp_flags != 0 {
        set(words, FIRST, get(words, FIRST) | u64::from(key.tcp_flags) << 48);
    }
    set(words, PACKETS, packets + u64::from(key.packets));
    set(words, OCTETS, get(words, OCTETS) + u64::from(key.octets));
    set(words, FRAME_OCTETS, get(words, FRAME_OCTETS) + u64::from(key.frame_octets));
    set(words, LAST, now_ms & LOW | u64::from(key.class) << 48);
}

/// The record is exported; the next packet begins another one.
pub(crate) fn clear(words: &[AtomicU64; WORDS]) {
    for at in [PACKETS, OCTETS, FRAME_OCTETS] {
        set(words, at, 0);
    }
    set(words, FIRST, get(words, FIRST) & LOW);
}

/// A flow as it was at some moment, and why its record ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowRecord {
    words: [u64; WORDS],
    /// Why the record ends.
    pub reason: EndReason,
}

impl FlowRecord {
    /// Read a flow.
    pub fn of(words: &[AtomicU64; WORDS], reason: EndReason) -> FlowRecord {
        FlowRecord { words: words.each_ref().map(|word| word.load(Ordering::Relaxed)), reason }
    }

    /// Which fields were recorded.
    pub fn shape(&self) -> Shape {
        Shape((self.words[4] >> SHAPE_SHIFT) as u8 & Shape::ALL)
    }

    /// Where it was recorded.
    pub fn interface(&self) -> InterfaceId {
        InterfaceId(self.words[4] as u32 & 0xffff)
    }

    /// Is it of packets that the interface sent?
    pub fn is_output(&self) -> bool {
        self.words[4] & OUTPUT != 0
    }

    /// The interface by which packets came in that another one sends.
    pub fn other(&self) -> InterfaceId {
        InterfaceId(self.words[OTHER] as u32)
    }

    /// Source and destination address; none of other protocols, or where they are not recorded.
    pub fn addresses(&self) -> Option<(IpAddr, IpAddr)> {
        let halves = |at: usize| u128::from(self.words[at]) << 64 | u128::from(self.words[at + 1]);
        let address = |at: usize| match self.words[4] & IS_IP6 {
            0 => IpAddr::V4(Ipv4Addr::from_bits(self.words[at + 1] as u32)),
            _ => IpAddr::V6(Ipv6Addr::from_bits(halves(at))),
        };
        let is_known = self.words[4] & (IS_IP4 | IS_IP6) != 0 && self.shape().has(Shape::L3);
        is_known.then(|| (address(0), address(2)))
    }

    pub fn ports(&self) -> (u16, u16) {
        ((self.words[4] >> 48) as u16, (self.words[4] >> 32) as u16)
    }

    pub fn protocol(&self) -> u8 {
        (self.words[4] >> 24) as u8
    }

    pub fn packets(&self) -> u64 {
        self.words[PACKETS]
    }

    pub fn octets(&self) -> u64 {
        self.words[OCTETS]
    }

    pub fn frame_octets(&self) -> u64 {
        self.words[FRAME_OCTETS]
    }

    /// First packet, milliseconds of the router's clock.
    pub fn first_ms(&self) -> u64 {
        self.words[FIRST] & LOW
    }

    /// Last packet, milliseconds.
    pub fn last_ms(&self) -> u64 {
        self.words[LAST] & LOW
    }

    pub fn tcp_flags(&self) -> u8 {
        (self.words[FIRST] >> 48) as u8
    }

    /// Has TCP ended the connection?
    pub fn is_ended(&self) -> bool {
        self.protocol() == 6 && self.tcp_flags() & TCP_ENDS != 0
    }

    /// Type of service or traffic class of the last packet.
    pub fn class(&self) -> u8 {
        (self.words[LAST] >> 48) as u8
    }

    /// Type and code.
    pub fn icmp(&self) -> u16 {
        (self.words[OTHER] >> 32) as u16
    }

    /// Source and destination MAC address.
    pub fn macs(&self) -> [u64; 2] {
        [self.words[SOURCE_MAC] & LOW, self.words[DESTINATION_MAC] & LOW]
    }

    pub fn ether_type(&self) -> u16 {
        (self.words[SOURCE_MAC] >> 48) as u16
    }

    pub fn vlan(&self) -> u16 {
        (self.words[DESTINATION_MAC] >> 48) as u16
    }
}

impl Record for FlowRecord {
    const KINDS: &'static [&'static str] = &["idle", "active", "end-of-flow", "forced"];

    fn kind(&self) -> usize {
        self.reason as usize - 1
    }
}
