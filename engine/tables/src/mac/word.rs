//! Keys and entries of the MAC table, eight bytes each.

use quiver_core::InterfaceId;
use quiver_wire::MacAddress;

use super::flooding::FarEnd;
use super::ports::{EPOCHS, FLUSH_SHIFT, PortWord};
use crate::exact::Value;

/// A bridge domain inside of the router; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DomainIndex(pub u16);

/// A moment, in minutes on the router's clock; wraps after 45 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StampMinutes(pub u16);

impl StampMinutes {
    /// From nanoseconds on the router's clock.
    #[inline]
    pub const fn from_ns(now_ns: u64) -> StampMinutes {
        StampMinutes((now_ns / 60_000_000_000) as u16)
    }

    /// How long ago `earlier` was.
    #[inline]
    pub const fn since(self, earlier: StampMinutes) -> u16 {
        self.0.wrapping_sub(earlier.0)
    }
}

/// Which address, in which bridge domain: the domain in the high 16 bits, the address below as it
/// lies on the wire, first octet lowest, so that one load of a frame makes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct MacKey(u64);

/// The bits of an address.
const MAC: u64 = (1 << 48) - 1;

impl MacKey {
    /// The key of an address.
    pub const fn new(domain: DomainIndex, mac: MacAddress) -> MacKey {
        let [a, b, c, d, e, f] = mac.0;
        MacKey::from_wire(domain, u64::from_le_bytes([a, b, c, d, e, f, 0, 0]))
    }

    /// From eight bytes of a frame that begin with the address, read with the first lowest.
    #[inline(always)]
    pub const fn from_wire(domain: DomainIndex, bytes: u64) -> MacKey {
        MacKey(bytes & MAC | (domain.0 as u64) << 48)
    }

    /// The address.
    pub const fn mac(self) -> MacAddress {
        let [a, b, c, d, e, f, ..] = self.0.to_le_bytes();
        MacAddress([a, b, c, d, e, f])
    }

    /// The bridge domain.
    pub const fn domain(self) -> DomainIndex {
        DomainIndex((self.0 >> 48) as u16)
    }

    /// As the table below keeps it.
    #[inline(always)]
    pub const fn word(self) -> u64 {
        self.0
    }

    /// From [`word`](Self::word).
    pub const fn of_word(word: u64) -> MacKey {
        MacKey(word)
    }
}

/// What the table knows of an address.
///
/// ```text
///  63      54 53     48 47    40 39     32 31      16 15       0
/// ┌──────────┬─────────┬────────┬─────────┬──────────┬──────────┐
/// │          │ flags   │ flush  │ tenure  │ port     │ stamp    │
/// └──────────┴─────────┴────────┴─────────┴──────────┴──────────┘
/// ```
///
/// An entry with the flag for a far end has the number of that in place of the stamp.
///
/// Tenure and flush are those of the port when the entry was made: what differs from the port's
/// word is stale and counts as unknown, so that a flush of millions of entries is one store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct MacEntry(u64);

const PORT_SHIFT: u32 = 16;
const PRESENT: u64 = 1 << 48;
const CONFIGURED: u64 = 1 << 49;
const STATIC: u64 = 1 << 50;
const FILTER: u64 = 1 << 51;
const BVI: u64 = 1 << 52;
const FAR: u64 = 1 << 53;
/// What must be as expected of a source that needs nothing: all but how it came into the table.
const COMPARED_BITS: u64 = PRESENT | FILTER | (PRESENT - 1);
/// The port of an entry that has none: a filter.
const NO_PORT: u32 = 0xffff;

/// What an entry is when its source is seen now, on its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen(u64);

impl Seen {
    #[inline]
    pub(super) fn of(port: InterfaceId, word: PortWord, now: StampMinutes) -> Seen {
        let epochs = word.bits() & EPOCHS;
        Seen(u64::from(now.0) | u64::from(port.0 & 0xffff) << PORT_SHIFT | epochs | PRESENT)
    }

    /// The entry of a source that was not known.
    #[inline]
    pub fn entry(self) -> MacEntry {
        MacEntry(self.0)
    }

    /// From the entry of a source that was not known.
    pub fn of_entry(entry: MacEntry) -> Seen {
        Seen(entry.0)
    }
}

impl MacEntry {
    /// Nothing is known.
    pub const NONE: MacEntry = MacEntry(0);

    pub(super) fn configured(
        seen: Seen,
        is_static: bool,
        is_filter: bool,
        is_bvi: bool,
    ) -> MacEntry {
        let flag = |on: bool, bit: u64| if on { bit } else { 0 };
        MacEntry(
            seen.0
                | CONFIGURED
                | flag(is_static, STATIC)
                | flag(is_filter, FILTER)
                | flag(is_bvi, BVI),
        )
    }

    /// The same, behind one of several far ends of its port.
    pub(super) fn behind(self, far_end: FarEnd) -> MacEntry {
        MacEntry(self.0 & !u64::from(u16::MAX) | u64::from(far_end.0) | FAR)
    }

    /// Which of the far ends of its port the address is behind, if the port has several.
    #[inline(always)]
    pub fn far_end(self) -> Option<FarEnd> {
        (self.0 & FAR != 0).then_some(FarEnd(self.0 as u16))
    }

    /// A filter without a port.
    pub(super) fn filter(now: StampMinutes) -> MacEntry {
        let port = u64::from(NO_PORT) << PORT_SHIFT;
        MacEntry(u64::from(now.0) | port | PRESENT | CONFIGURED | STATIC | FILTER)
    }

    /// Is this a source that was seen on its port within this minute? Then nothing is to be done.
    #[inline(always)]
    pub fn is_current(self, seen: Seen) -> bool {
        (self.0 ^ seen.0) & COMPARED_BITS == 0
    }

    /// Does it hold, its port being `port`? What was learned before a flush, or before the port
    /// left its domain, does not.
    #[inline(always)]
    pub fn holds(self, port: PortWord) -> bool {
        let spared = (self.0 >> 49 & 1) * (0xff << FLUSH_SHIFT);
        ((self.0 ^ port.bits()) & EPOCHS & !spared == 0) & self.is_some() | self.has_no_port()
    }

    /// Is anything known?
    #[inline(always)]
    pub fn is_some(self) -> bool {
        self.0 & PRESENT != 0
    }

    /// Where the address is.
    #[inline(always)]
    pub fn port(self) -> InterfaceId {
        InterfaceId((self.0 >> PORT_SHIFT) as u32 & 0xffff)
    }

    /// A filter that stands for no port.
    #[inline(always)]
    pub fn has_no_port(self) -> bool {
        self.is_some() & ((self.0 >> PORT_SHIFT) as u32 & 0xffff == NO_PORT)
    }

    /// The entry without its time stamp, in 32 bits: the port, and how often the port had been
    /// flushed and had left its domain.
    #[inline]
    pub fn place_word(self) -> u64 {
        self.0 >> PORT_SHIFT & 0xffff_ffff
    }

    /// When its source was last seen.
    pub fn stamp(self) -> StampMinutes {
        StampMinutes(self.0 as u16)
    }

    /// Was it configured, not learned?
    pub fn is_configured(self) -> bool {
        self.0 & CONFIGURED != 0
    }

    /// Does it never move?
    #[inline]
    pub fn is_static(self) -> bool {
        self.0 & STATIC != 0
    }

    /// Are frames from and to it dropped?
    #[inline(always)]
    pub fn is_filter(self) -> bool {
        self.0 & FILTER != 0
    }

    /// Is it the address of the domain's own interface?
    pub fn is_bvi(self) -> bool {
        self.0 & BVI != 0
    }

    /// The same, seen again.
    #[inline]
    pub(super) fn seen(self, seen: Seen) -> MacEntry {
        MacEntry(self.0 & !(PRESENT - 1) | seen.0 & (PRESENT - 1))
    }
}

impl Value for MacEntry {
    #[inline(always)]
    fn into_bits(self) -> u64 {
        self.0
    }

    #[inline(always)]
    fn from_bits(bits: u64) -> MacEntry {
        MacEntry(bits)
    }
}
