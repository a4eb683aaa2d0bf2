//! A flow: two cache lines of 16 words, which its worker alone stores. A packet touches the first
//! one alone, unless octets of frames are recorded or it is the first of a record.
//!
//! | word | content |
//! | --- | --- |
//! | 0 to 4 | the key ([`crate::key`]) |
//! | 5 | packets |
//! | 6 | octets of IP packets |
//! | 7 | last packet, milliseconds of the clock (48 bits), class of service (8), TCP's flags (8) |
//! | 8 | octets of frames, where these are recorded |
//! | 9 | first packet, milliseconds |
//! | 10 | the other interface (32 bits) |
//! | 11 | source MAC address (48 bits), EtherType (16) |
//! | 12 | destination MAC address (48 bits), VLAN tag (16) |
//! | 13 | the word of the key that stands for 11 and 12 ([`Link::word`]) |
//!
//! Words 5 to 9 are of the present record: an active timeout begins a new one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};

use quiver_core::InterfaceId;
use quiver_export::records::Record;
use quiver_tables::sessions::{SessionObjects, SessionTable, SessionsWriter};
use quiver_wire::IpProtocol;

use crate::key::{
    FlowKey, IS_IP4, IS_IP6, Link, OUTPUT, PORTS_SHIFT, PROTOCOL_SHIFT, SHAPE_SHIFT, Shape,
};

/// Words of a flow.
pub(crate) const WORDS: usize = 16;
/// Words of its key.
pub(crate) const KEY_WORDS: usize = 5;
const PACKETS: usize = 5;
const OCTETS: usize = 6;
const LAST: usize = 7;
/// The first word of the second line.
pub(crate) const SECOND_LINE: usize = 8;
const FRAME_OCTETS: usize = SECOND_LINE;
const FIRST: usize = 9;
const OTHER: usize = 10;
const SOURCE_MAC: usize = 11;
const DESTINATION_MAC: usize = 12;
const LINK: usize = 13;
/// Bits of a time or of a MAC address.
const LOW: u64 = (1 << 48) - 1;
/// Where class and flags stand beside a time.
const CLASS_SHIFT: u32 = 48;
const FLAGS_SHIFT: u32 = 56;
/// The bits of flags there.
const FLAGS: u64 = 0xff << FLAGS_SHIFT;

/// What keys are looked up in.
pub(crate) type Table = SessionTable<WORDS, KEY_WORDS, 1>;
/// The flows.
pub(crate) type Objects = SessionObjects<WORDS, KEY_WORDS, 1>;
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

/// The words of a flow of which no packet is counted yet; `other` is the other interface.
pub(crate) fn begin(key: &FlowKey, link: &Link, other: InterfaceId, now_ms: u64) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    for (word, own) in words.iter_mut().zip(key.words) {
        *word = own;
    }
    words[FIRST] = now_ms & LOW;
    words[OTHER] = other.0.into();
    words[SOURCE_MAC] = link.macs[0] & LOW | u64::from(link.ether_type) << 48;
    words[DESTINATION_MAC] = link.macs[1] & LOW | u64::from(link.vlan) << 48;
    words[LINK] = link.word;
    words
}

#[inline(always)]
fn get(words: &[AtomicU64; WORDS], at: usize) -> u64 {
    words[at].load(Ordering::Relaxed)
}

#[inline(always)]
fn set(words: &[AtomicU64; WORDS], at: usize, value: u64) {
    words[at].store(value, Ordering::Relaxed);
}

/// Add packets to a flow.
#[inline(always)]
pub(crate) fn add(words: &[AtomicU64; WORDS], key: &FlowKey, now_ms: u64) {
    let (packets, flags) = (get(words, PACKETS), get(words, LAST) & FLAGS);
    let now = now_ms & LOW | u64::from(key.class) << CLASS_SHIFT;
    set(words, LAST, now | flags | u64::from(key.tcp_flags) << FLAGS_SHIFT);
    set(words, PACKETS, packets + u64::from(key.packets));
    set(words, OCTETS, get(words, OCTETS) + u64::from(key.octets));
    if packets == 0 {
        // The first packet behind an active timeout begins the record.
        set(words, FIRST, now_ms & LOW);
    }
    if key.frame_octets != 0 {
        set(words, FRAME_OCTETS, get(words, FRAME_OCTETS) + u64::from(key.frame_octets));
    }
}

/// The record is exported; the next packet begins another one.
pub(crate) fn clear(words: &[AtomicU64; WORDS]) {
    for at in [PACKETS, OCTETS, FRAME_OCTETS] {
        set(words, at, 0);
    }
    set(words, LAST, get(words, LAST) & !FLAGS);
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
        let address = |high: u64, low: u64| match self.words[4] & IS_IP6 {
            0 => IpAddr::V4(Ipv4Addr::from_bits(low as u32)),
            _ => IpAddr::V6(Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low))),
        };
        let [a, b, c, d, ..] = self.words;
        let is_known = self.words[4] & (IS_IP4 | IS_IP6) != 0 && self.shape().has(Shape::L3);
        is_known.then(|| (address(a, b), address(c, d ^ self.words[LINK])))
    }

    pub fn ports(&self) -> (u16, u16) {
        let ports = (self.words[4] >> PORTS_SHIFT) as u32;
        ((ports >> 16) as u16, ports as u16)
    }

    pub fn protocol(&self) -> u8 {
        (self.words[4] >> PROTOCOL_SHIFT) as u8
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
        (self.words[LAST] >> FLAGS_SHIFT) as u8
    }

    /// Has TCP ended the connection?
    pub fn is_ended(&self) -> bool {
        self.protocol() == 6 && self.tcp_flags() & TCP_ENDS != 0
    }

    /// Type of service or traffic class of the last packet.
    pub fn class(&self) -> u8 {
        (self.words[LAST] >> CLASS_SHIFT) as u8
    }

    /// Is it ICMP?
    pub fn is_icmp(&self) -> bool {
        matches!(IpProtocol(self.protocol()), IpProtocol::ICMP | IpProtocol::ICMP6)
    }

    /// Type and code of ICMP, which stand in the place of the destination port.
    pub fn icmp(&self) -> u16 {
        if self.is_icmp() { self.ports().1 } else { 0 }
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
