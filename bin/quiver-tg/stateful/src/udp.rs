//! UDP transactions: the client sends its requests at once, the server answers when it has them
//! all. Nothing is sent again.
//!
//! Each packet begins with a label of 8 bytes: `Qs`, its number among those of its direction, and
//! the transaction's number, which the server repeats. The pattern follows, packet after packet.

use super::flow::{Expiry, Flow};
use super::frame::Content;
use super::io::{Io, Line};
use super::pattern;
use super::program::{Ending, Failure, Role};
use super::wheel::{TICK_SHIFT, has_come, tick_of};
use quiver_tg_traffic::profile::stateful::Kind;
use quiver_tg_traffic::profile::stateful::LABEL_BYTES;

/// After this long without an end a client's transaction has lost a packet, most likely; in ticks.
const STALLED_TICKS: u32 = 200_000_000 >> TICK_SHIFT;
const MAGIC: [u8; 2] = *b"Qs";

/// Which packets have come: all below `first`, and the marked ones of the 64 behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    first: u16,
    marks: u64,
}

impl Seen {
    /// A packet has come; false when it had before, or is too far ahead.
    fn note(&mut self, number: u16) -> bool {
        let Some(ahead @ 0..64) = number.checked_sub(self.first) else { return false };
        let mark = 1u64 << ahead;
        let is_new = self.marks & mark == 0;
        self.marks |= mark;
        let whole = self.marks.trailing_ones();
        self.first += whole as u16;
        self.marks = self.marks.checked_shr(whole).unwrap_or(0);
        is_new
    }
}

/// One end of a transaction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Exchange {
    started_ns: u64,
    number: u32,
    /// When the server answers, while it rests.
    due: u32,
    seen: Seen,
    to: [u8; 6],
    is_answered: bool,
    rests: bool,
    is_stalled: bool,
}

/// A label: numbers of the packet and of the transaction.
fn label_of(data: &[u8]) -> Option<(u16, u32)> {
    let [m, n, a, b, c, d, e, f] = *data.first_chunk::<LABEL_BYTES>()?;
    ([m, n] == MAGIC).then(|| (u16::from_be_bytes([a, b]), u32::from_be_bytes([c, d, e, f])))
}

/// The pattern's position behind a packet's label.
fn position_of(number: u16, data_bytes: usize) -> u32 {
    (u32::from(number)).wrapping_mul(data_bytes.saturating_sub(LABEL_BYTES) as u32)
}

impl Exchange {
    fn new<L>(io: &Io<'_, L>, number: u32) -> Exchange {
        Exchange { started_ns: io.now_ns, number, to: io.to.0, ..Exchange::default() }
    }

    fn send_all<L: Line>(&self, io: &mut Io<'_, L>) {
        let [a, b, c, d] = self.number.to_be_bytes();
        let data_bytes = usize::from(io.program.packet_bytes);
        for place in 0..io.program.sends() as u16 {
            let [high, low] = place.to_be_bytes();
            let [m, n] = MAGIC;
            io.udp(&[m, n, high, low, a, b, c, d], position_of(place, data_bytes));
        }
    }

    /// When something of it must have been lost.
    fn stalls_at<L>(&self, io: &Io<'_, L>) -> u32 {
        tick_of(self.started_ns).wrapping_add(io.program.hold).wrapping_add(STALLED_TICKS)
    }

    /// Which packet this is; an error when it is none of this transaction's.
    fn place_of<L>(&self, io: &Io<'_, L>, data: &[u8]) -> Result<u16, Option<Failure>> {
        if !io.program.verify {
            return Ok(self.seen.first);
        }
        let (place, number) = label_of(data).ok_or(Some(Failure::Corrupted))?;
        if number != self.number {
            return Err(None);
        }
        let rest = data.get(LABEL_BYTES..).unwrap_or(&[]);
        let is_right = data.len() == usize::from(io.program.packet_bytes)
            && u32::from(place) < io.program.receives()
            && pattern::is_right(position_of(place, data.len()), rest);
        if is_right { Ok(place) } else { Err(Some(Failure::Corrupted)) }
    }
}

impl Flow for Exchange {
    type Packet<'a> = &'a [u8];
    const KIND: Kind = Kind::Udp;
    const FIRST_IS_INPUT: bool = true;

    fn packet(content: Content<'_>) -> Option<&[u8]> {
        if let Content::Udp(data) = content { Some(data) } else { None }
    }

    fn begins(_: &[u8]) -> bool {
        true
    }

    fn begin<L: Line>(io: &mut Io<'_, L>, number: u32) -> Exchange {
        let exchange = Exchange::new(io, number);
        exchange.send_all(io);
        exchange
    }

    fn accept<L: Line>(io: &mut Io<'_, L>, _: u32, data: &[u8]) -> Option<Exchange> {
        if !io.program.verify {
            return Some(Exchange::new(io, label_of(data).map_or(0, |(_, number)| number)));
        }
        let (_, number) = label_of(data)?;
        let exchange = Exchange::new(io, number);
        exchange.place_of(io, data).ok().map(|_| exchange)
    }

    fn answer_stray<L: Line>(_: &mut Io<'_, L>, _: &[u8]) {}

    fn makes_way_for(&self, data: &[u8]) -> bool {
        label_of(data).is_some_and(|(_, number)| number != self.number)
    }

    fn input<L: Line>(&mut self, io: &mut Io<'_, L>, data: &[u8]) -> Option<Ending> {
        let place = match self.place_of(io, data) {
            Ok(place) => place,
            Err(Some(failure)) => return Some(Ending::Failed(failure)),
            Err(None) => {
                io.packets.stray.add(1);
                return None;
            }
        };
        self.is_answered = true;
        if !self.seen.note(place) {
            io.packets.repeated.add(1);
            return None;
        }
        if u32::from(self.seen.first) < io.program.receives() {
            return None;
        }
        if io.program.role == Role::Server && io.program.hold > 0 {
            self.rests = true;
            self.due = io.tick.wrapping_add(io.program.hold);
            return None;
        }
        if io.program.role == Role::Server {
            self.send_all(io);
        }
        Some(Ending::Complete)
    }

    fn list(&mut self) -> bool {
        false
    }

    fn output<L: Line>(&mut self, _: &mut Io<'_, L>) {}

    fn next_deadline<L>(&self, io: &Io<'_, L>) -> u32 {
        let end = tick_of(self.started_ns).wrapping_add(io.program.life);
        let stall = self.stalls_at(io);
        if self.rests && has_come(self.due, end) {
            self.due
        } else if !self.is_stalled && io.program.role == Role::Client && has_come(stall, end) {
            stall
        } else {
            end
        }
    }

    fn expire<L: Line>(&mut self, io: &mut Io<'_, L>) -> Expiry {
        if self.rests && has_come(self.due, io.tick) {
            self.send_all(io);
            return Expiry::Ended(Ending::Complete);
        }
        let end = tick_of(self.started_ns).wrapping_add(io.program.life);
        if has_come(end, io.tick) {
            return Expiry::Ended(Ending::Failed(Failure::Timeout));
        }
        self.is_stalled |= io.program.role == Role::Client && has_come(self.stalls_at(io), io.tick);
        Expiry::Open
    }

    fn abort<L: Line>(&mut self, _: &mut Io<'_, L>) {}

    fn linger<L>(&mut self, _: &Io<'_, L>) -> bool {
        false
    }

    fn is_over(&self) -> bool {
        false
    }

    fn is_connected(&self) -> bool {
        self.is_answered
    }

    fn is_stalled(&self) -> bool {
        self.is_stalled
    }

    fn started_ns(&self) -> u64 {
        self.started_ns
    }

    fn to(&self) -> [u8; 6] {
        self.to
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packets_within_a_window_are_counted_once_in_whatever_order(
            total in 1u16..300, seed: u64, twice: bool,
        ) {
            let mut random = quiver_tg_traffic::frames::random::Random::new(seed);
            let mut order: Vec<u16> = (0..total).collect();
            // Neighbours change places, at most 60 apart.
            for place in 0..order.len() {
                let other = (place + random.below(30) as usize).min(order.len() - 1);
                order.swap(place, other);
            }
            let mut seen = Seen::default();
            for number in order {
                let expected = number.checked_sub(seen.first).is_some_and(|ahead| ahead < 64);
                prop_assert_eq!(seen.note(number), expected);
                if twice {
                    prop_assert!(!seen.note(number));
                }
            }
        }
    }

    #[test]
    fn all_packets_in_order_are_all() {
        let mut seen = Seen::default();
        for number in 0..200 {
            assert!(seen.note(number));
        }
        assert_eq!(seen, Seen { first: 200, marks: 0 });
        assert!(!seen.note(264) && !seen.note(199));
    }
}
