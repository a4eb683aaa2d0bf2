//! Signals: a packet came that no route is for, or from where it may not come, or whose route asks
//! for them. The control thread keeps the last ones; a routing daemon could act on them.

use std::net::IpAddr;

use quiver_core::throttle::{Recent, TokenBucket, key};
use quiver_core::worker::event::Event;
use quiver_core::{Context, InterfaceId};

use crate::ends::Ends;

/// The same source, group and interface is told at most so often by a worker.
pub const SIGNAL_INTERVAL_NS: u64 = 1_000_000_000;
/// Signals of one worker in a second.
pub const SIGNALS_PER_SECOND: u64 = 200;
/// Signals of one worker at once.
pub const SIGNALS_BURST: u64 = 100;

/// Why a packet is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// No route is for it.
    NoRoute,
    /// It came from where it may not.
    WrongInterface,
    /// Its route asks for it.
    Asked,
}

impl Why {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Why::NoRoute => "no-route",
            Why::WrongInterface => "wrong-interface",
            Why::Asked => "signal",
        }
    }
}

/// What is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Signal {
    /// Why.
    pub why: Why,
    /// Where the packet came in.
    pub rx: InterfaceId,
    /// Its source.
    pub source: IpAddr,
    /// Its group.
    pub group: IpAddr,
}

/// One node's memory of what it told.
pub(crate) struct Signaller {
    six: bool,
    told: Recent,
    bucket: TokenBucket,
}

impl Signaller {
    pub fn new(six: bool) -> Signaller {
        Signaller {
            six,
            told: Recent::new(SIGNAL_INTERVAL_NS),
            bucket: TokenBucket::new(SIGNALS_PER_SECOND, SIGNALS_BURST),
        }
    }

    /// Tell the control thread of a packet, unless it was told of its like a moment ago. False when
    /// too much is told.
    pub fn notify(&mut self, cx: &mut Context<'_>, why: Why, rx: InterfaceId, ends: &Ends) -> bool {
        let half = |bits: u128| [(bits >> 64) as u64, bits as u64];
        let ([a, b], [c, d]) = (half(ends.source), half(ends.group));
        if !self.told.may(key(&[u64::from(rx.0), why as u64, a, b, c, d]), cx.now_ns) {
            return true;
        }
        if !self.bucket.take(cx.now_ns) {
            return false;
        }
        let mut bytes = [0; 34];
        bytes[..16].copy_from_slice(&ends.source.to_be_bytes());
        bytes[16..32].copy_from_slice(&ends.group.to_be_bytes());
        bytes[32] = u8::from(self.six);
        bytes[33] = why as u8;
        cx.notify(Event::new(cx.node, rx, cx.now_ns, 0, &bytes));
        true
    }
}

/// What an event of one of our nodes says.
pub(crate) fn read(event: &Event) -> Option<Signal> {
    let (source, rest) = event.bytes().split_first_chunk::<16>()?;
    let (group, rest) = rest.split_first_chunk::<16>()?;
    let [six, why] = *rest.first_chunk::<2>()?;
    let ip = |octets: &[u8; 16]| Ends::ip(six != 0, u128::from_be_bytes(*octets));
    let why = match why {
        0 => Why::NoRoute,
        1 => Why::WrongInterface,
        _ => Why::Asked,
    };
    Some(Signal { why, rx: event.interface, source: ip(source), group: ip(group) })
}
