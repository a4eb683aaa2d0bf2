//! Sessions: one slot of two words for each outside port.
//!
//! ```text
//! word 0   remote address 32 | remote port 16 | inside port 16
//! word 1   second 32 | protocol 8 | state of TCP 8 | was it ended? 16
//! ```
//!
//! Which inside address a slot belongs to follows from its place. Any worker may take a slot that
//! is free or whose session is over: it exchanges word 1 for its own, and then stores word 0.
//! No worker walks over the slots: a session is over when its second is too long ago.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use quiver_tables::memory::{HUGE_PAGE_BYTES, MemoryError, Pages, Reserved, prefetch};
use quiver_translation::tcp::{Direction, Tcp};
use quiver_wire::IpProtocol;

use crate::mapping::{Block, PORTS};

/// Slots of an outside address.
pub(crate) const SLOTS_PER_ADDRESS: usize = PORTS as usize;
/// Slots of a large page.
const SLOTS_PER_PAGE: usize = HUGE_PAGE_BYTES / size_of::<[AtomicU64; 2]>();
/// In word 1: an operator ended the session.
const ENDED: u64 = 1;
/// Slots that are looked at for one packet from inside at most: all of a block that is not longer.
pub(crate) const PROBES_MAX: usize = 256;

/// Which timeout holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Udp = 0,
    TcpEstablished = 1,
    TcpTransitory = 2,
    Icmp = 3,
}

/// Timeouts, in seconds, by [`Class`]: as VPP has them (RFC 4787 REQ-5, RFC 5382 REQ-5, RFC 5508
/// REQ-2).
pub(crate) const TIMEOUTS_S: [u32; 4] = [300, 7_440, 240, 60];

/// The timeouts of the moment.
pub(crate) struct Timeouts([AtomicU32; 4]);

impl Timeouts {
    /// Those that hold unless others are set.
    pub fn new() -> Timeouts {
        Timeouts(TIMEOUTS_S.map(AtomicU32::new))
    }

    pub fn get(&self, class: Class) -> u32 {
        self.0[class as usize].load(Ordering::Relaxed)
    }

    pub fn set(&self, class: Class, seconds: u32) {
        self.0[class as usize].store(seconds, Ordering::Relaxed);
    }
}

/// Whose packets a slot's are: the far end and the inside port, word 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ends {
    pub remote: u32,
    pub remote_port: u16,
    pub inside_port: u16,
}

impl Ends {
    fn word(self) -> u64 {
        u64::from(self.remote) << 32
            | u64::from(self.remote_port) << 16
            | u64::from(self.inside_port)
    }

    fn of(word: u64) -> Ends {
        Ends {
            remote: (word >> 32) as u32,
            remote_port: (word >> 16) as u16,
            inside_port: word as u16,
        }
    }

    /// Where the look-up of a session begins in its block. Sessions of one host with one far end
    /// begin where their ports say, so that as many as there are ports, one after another, find
    /// each a place of its own.
    #[inline(always)]
    pub fn first(self, protocol: u8, block: &Block) -> u32 {
        let far = u64::from(self.remote) << 16 | u64::from(self.remote_port);
        let mixed = (far ^ u64::from(protocol) << 56).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
        block.ports.remainder(self.inside_port.wrapping_add(mixed as u16))
    }
}

/// Word 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life(u64);

impl Life {
    fn new(now_s: u32, protocol: u8, tcp: Tcp) -> Life {
        Life(u64::from(now_s) << 32 | u64::from(protocol) << 24 | u64::from(tcp.0) << 16)
    }

    pub fn seen_s(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// 0 for a slot that no session has had.
    pub fn protocol(self) -> u8 {
        (self.0 >> 24) as u8
    }

    pub fn tcp(self) -> Tcp {
        Tcp((self.0 >> 16) as u8)
    }

    pub fn class(self) -> Class {
        match IpProtocol(self.protocol()) {
            IpProtocol::TCP if self.tcp().is_established() => Class::TcpEstablished,
            IpProtocol::TCP => Class::TcpTransitory,
            IpProtocol::ICMP => Class::Icmp,
            _ => Class::Udp,
        }
    }

    /// Is its session not over?
    #[inline(always)]
    pub fn lives(self, timeouts: &Timeouts, now_s: u32) -> bool {
        let is_recent = now_s.wrapping_sub(self.seen_s()) < timeouts.get(self.class());
        (self.protocol() != 0) & (self.0 & ENDED == 0) & is_recent
    }
}

/// All slots.
pub(crate) struct Slots {
    slots: Reserved<[AtomicU64; 2]>,
    /// Has an outside address had a session? By its number.
    used: Box<[AtomicBool]>,
}

/// What was found for a packet from inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The place in the block.
    Session(u32),
    /// None; this place is free.
    Free(u32),
    /// None, and none is free.
    Full,
}

impl Slots {
    /// Room for `count` slots; memory is taken as they are used.
    pub fn new(count: usize) -> Result<Slots, MemoryError> {
        let slots = Reserved::new("sessions of DET44", count, Pages::Huge)?;
        let addresses = count.div_ceil(SLOTS_PER_ADDRESS);
        Ok(Slots { slots, used: (0..addresses).map(|_| AtomicBool::new(false)).collect() })
    }

    /// Ends and life of a slot.
    #[inline(always)]
    pub fn get(&self, place: usize) -> (Ends, Life) {
        let [ends, life] = self.slots.get(place);
        let life = Life(life.load(Ordering::Acquire));
        (Ends::of(ends.load(Ordering::Relaxed)), life)
    }

    /// Ask for the memory of a slot.
    #[inline(always)]
    pub fn prefetch(&self, place: usize) {
        prefetch(self.slots.get(place));
    }

    /// Look a session up from the place `first` on.
    pub fn find(
        &self,
        block: &Block,
        (ends, protocol): (Ends, u8),
        timeouts: &Timeouts,
        now_s: u32,
    ) -> Found {
        let (first, ports) = (ends.first(protocol, block), block.ports.get());
        let mut free = None;
        for at in (first..ports).chain(0..first).take(PROBES_MAX) {
            let (found, life) = self.get(block.slot + at as usize);
            if life.lives(timeouts, now_s) {
                if found == ends && life.protocol() == protocol {
                    return Found::Session(at);
                }
                continue;
            }
            free = free.or(Some(at));
            if life.protocol() == 0 {
                break; // nobody has ever had it, so nobody has gone on to the next
            }
        }
        free.map_or(Found::Full, Found::Free)
    }

    /// Take a free place for a session; false where another worker was quicker.
    pub fn take(
        &self,
        place: usize,
        (ends, protocol): (Ends, u8),
        tcp: Tcp,
        (timeouts, now_s): (&Timeouts, u32),
    ) -> bool {
        let [words, life] = self.slots.get(place);
        let before = life.load(Ordering::Acquire);
        if Life(before).lives(timeouts, now_s) {
            return false;
        }
        let new = Life::new(now_s, protocol, tcp).0;
        if life.compare_exchange(before, new, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return false;
        }
        words.store(ends.word(), Ordering::Release);
        if let Some(used) = self.used.get(place / SLOTS_PER_ADDRESS)
            && !used.load(Ordering::Relaxed)
        {
            used.store(true, Ordering::Relaxed);
        }
        true
    }

    /// Has the outside address with this number had a session?
    pub fn is_used(&self, address: usize) -> bool {
        self.used.get(address).is_some_and(|used| used.load(Ordering::Relaxed))
    }

    /// How many of these slots have a session that is not over.
    pub fn live(&self, slots: Range<usize>, timeouts: &Timeouts, now_s: u32) -> u64 {
        slots.map(|place| u64::from(self.get(place).1.lives(timeouts, now_s))).sum()
    }

    /// A packet of a session came: its second, and its state where the packet is of TCP.
    #[inline(always)]
    pub fn refresh(
        &self,
        place: usize,
        life: Life,
        direction: Direction,
        tcp_flags: Option<u8>,
        now_s: u32,
    ) {
        let tcp = match tcp_flags {
            Some(flags) if !life.tcp().stays(flags) => life.tcp().after(direction, flags),
            _ => life.tcp(),
        };
        // Packets from outside refresh TCP alone (RFC 4787 REQ-6, RFC 5382 §5).
        let refreshes = direction == Direction::InToOut || tcp_flags.is_some();
        let seen_s = if refreshes { now_s } else { life.seen_s() };
        let new = Life::new(seen_s, life.protocol(), tcp);
        if new != life {
            // Where another worker was quicker, the next packet says it again.
            let word = &self.slots.get(place)[1];
            let _ = word.compare_exchange(life.0, new.0, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    /// End the session of a slot.
    pub fn end(&self, place: usize) {
        // The place stays one that somebody has had.
        self.slots.get(place)[1].fetch_or(ENDED, Ordering::AcqRel);
    }

    /// Forget the sessions of these slots, and give the memory of whole pages back.
    pub fn clear(&self, slots: Range<usize>) {
        for address in slots.start / SLOTS_PER_ADDRESS..slots.end.div_ceil(SLOTS_PER_ADDRESS) {
            if let Some(used) = self.used.get(address) {
                used.store(false, Ordering::Relaxed);
            }
        }
        self.slots.release(slots.clone());
        let first = slots.start.next_multiple_of(SLOTS_PER_PAGE).min(slots.end);
        let last = (slots.end / SLOTS_PER_PAGE * SLOTS_PER_PAGE).max(first);
        for place in (slots.start..first).chain(last..slots.end) {
            let words = self.slots.get(place);
            if words[1].load(Ordering::Relaxed) != 0 {
                words.iter().for_each(|word| word.store(0, Ordering::Release));
            }
        }
    }
}
