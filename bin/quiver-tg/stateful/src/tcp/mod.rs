//! TCP (RFC 9293) for transactions whose data is a pattern: neither sent nor received bytes are
//! kept, so that a connection is 96 bytes.
//!
//! Reno with NewReno's recovery (RFC 5681, RFC 6582), initial window of ten segments (RFC 6928),
//! RTO as RFC 6298 says with Linux' minimum, resets as RFC 5961 says. The window is 65,535 bytes;
//! no options but the maximum segment size are sent, and all others are ignored. A connection is
//! begun by one side only: simultaneous open does not happen between a client and a server.

mod acknowledge;
mod gaps;
mod input;
mod output;
mod rto;
#[cfg(test)]
mod tests;

use super::flow::{Expiry, Flow};
use super::frame::{Content, Segment};
use super::io::{Io, Line};
use super::program::{Ending, Failure, Role};
use super::wheel::{has_come, tick_of};
use gaps::Gaps;
use quiver_tg_traffic::profile::stateful::{ClosingSide, Kind};
use rto::Rto;

/// Bytes that we always take: data is looked at when it comes, and never waits.
const WINDOW_BYTES: u16 = u16::MAX;
/// Segment size of a peer that does not say one (RFC 9293 §3.7.1).
const SEGMENT_BYTES_DEFAULT: u16 = 536;
/// Segments whose size a peer may not push below.
const SEGMENT_BYTES_MIN: u16 = 64;

/// Where a connection stands (RFC 9293 §3.3.2). LISTEN and CLOSED have no entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// A SYN was sent.
    #[default]
    SynSent,
    /// A SYN came and was answered.
    SynReceived,
    /// Data goes both ways; a FIN may have come, and ours may have been sent.
    Established,
    /// Both sides are closed and have said so; late segments are answered.
    TimeWait,
}

/// Facts about a connection, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Marks(u16);

impl Marks {
    /// Our data may go.
    const RELEASED: Marks = Marks(1);
    /// Our FIN is to follow the data.
    const CLOSES: Marks = Marks(2);
    /// The other side's FIN stands at `fin_at`.
    const FIN_SEEN: Marks = Marks(4);
    /// It has been reached.
    const FIN_TAKEN: Marks = Marks(8);
    /// In-order data awaits an acknowledgement.
    const ACK_DUE: Marks = Marks(16);
    /// It is on its side's list of those with something to send.
    const LISTED: Marks = Marks(32);
    /// In fast recovery, until `recover` is acknowledged.
    const RECOVERS: Marks = Marks(64);
    /// The handshake was done.
    const CONNECTED: Marks = Marks(128);
    /// `timed` waits for its acknowledgement.
    const TIMES: Marks = Marks(256);
    /// Rests between handshake and request.
    const RESTS: Marks = Marks(512);
    /// A timer for what was sent, a rest or the memory of a closed connection runs to `due`.
    const TIMER: Marks = Marks(1024);
    /// The handshake had to be sent again.
    const SLOW_START: Marks = Marks(2048);
    /// Our FIN was sent before theirs came: the end that remembers.
    const CLOSED_FIRST: Marks = Marks(4096);
    /// A retransmission timer has run out, and nothing has been acknowledged since.
    const STALLED: Marks = Marks(8192);

    #[inline(always)]
    fn has(self, mark: Marks) -> bool {
        self.0 & mark.0 != 0
    }

    #[inline(always)]
    fn set(&mut self, mark: Marks) {
        self.0 |= mark.0;
    }

    #[inline(always)]
    fn clear(&mut self, mark: Marks) {
        self.0 &= !mark.0;
    }
}

/// A connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Connection {
    /// When it began, nanoseconds.
    pub started_ns: u64,
    /// Oldest sequence number that is not acknowledged.
    una: u32,
    /// The next to send; behind `max` while things are sent again.
    next: u32,
    /// One behind the highest that was ever sent.
    max: u32,
    /// Our initial sequence number.
    iss: u32,
    /// Theirs.
    irs: u32,
    /// The next that we expect of them.
    received: u32,
    /// Where their FIN stands.
    fin_at: u32,
    /// Recovery ends when this is acknowledged.
    recover: u32,
    /// The segment that last changed `window`.
    window_from: u32,
    /// The end of the segment that is timed, and when it was sent, in microseconds.
    timed: u32,
    timed_us: u32,
    rto: Rto,
    /// When the timer runs out, in ticks.
    due: u32,
    /// Out-of-order data.
    gaps: Gaps,
    /// Bytes that they take.
    window: u16,
    /// Bytes of data in a segment at most.
    segment: u16,
    /// Congestion window and slow start threshold, bytes. Their window has no scale: 16 bits hold
    /// both.
    congestion: u16,
    threshold: u16,
    /// The next hop, where the side has no gateway.
    pub to: [u8; 6],
    marks: Marks,
    state: State,
    duplicates: u8,
}

const _: () = assert!(size_of::<Connection>() <= 104);

/// Is `a` before `b`? Sequence numbers go in a circle (RFC 9293 §3.4).
#[inline(always)]
fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// A time in microseconds, as round trips are measured in.
#[inline(always)]
fn microseconds(now_ns: u64) -> u32 {
    (now_ns / 1000) as u32
}

impl Connection {
    fn new<L>(io: &Io<'_, L>, iss: u32) -> Connection {
        Connection {
            started_ns: io.now_ns,
            una: iss,
            next: iss,
            max: iss,
            iss,
            recover: iss,
            rto: Rto::default(),
            segment: io.program.packet_bytes,
            threshold: u16::MAX,
            to: io.to.0,
            ..Connection::default()
        }
    }

    /// Bytes that have come in order.
    #[inline(always)]
    fn received_bytes(&self) -> u32 {
        let all = self.received.wrapping_sub(self.irs).wrapping_sub(1);
        all - u32::from(self.marks.has(Marks::FIN_TAKEN))
    }

    /// The end of the data that may be sent now, as a sequence number.
    #[inline(always)]
    fn data_end(&self, sends: u32) -> u32 {
        let bytes = if self.marks.has(Marks::RELEASED) { sends } else { 0 };
        self.iss.wrapping_add(1).wrapping_add(bytes)
    }

    /// Has our FIN been acknowledged?
    #[inline(always)]
    fn is_fin_acknowledged(&self, sends: u32) -> bool {
        self.marks.has(Marks::CLOSES) && before(self.data_end(sends), self.una)
    }

    /// The next step of the program after received data.
    fn advance<L>(&mut self, io: &Io<'_, L>) -> Option<Ending> {
        let program = io.program;
        let has_all = self.received_bytes() >= program.receives();
        let fin = self.marks.has(Marks::FIN_TAKEN);
        if fin && !has_all {
            return Some(Ending::Failed(Failure::ClosedEarly));
        }
        match program.role {
            Role::Client => {
                if !self.marks.has(Marks::RESTS) {
                    self.marks.set(Marks::RELEASED);
                }
                let may_close =
                    fin || program.closing_side == ClosingSide::Client || program.receives() > 0;
                if self.marks.has(Marks::RELEASED) && has_all && may_close {
                    self.marks.set(Marks::CLOSES);
                }
            }
            Role::Server => {
                if has_all {
                    self.marks.set(Marks::RELEASED);
                    if fin || program.closing_side == ClosingSide::Server {
                        self.marks.set(Marks::CLOSES);
                    }
                }
            }
        }
        (fin && self.is_fin_acknowledged(program.sends())).then_some(Ending::Complete)
    }

    fn run_timer(&mut self, until: u32) {
        self.due = until;
        self.marks.set(Marks::TIMER);
    }
}

impl Flow for Connection {
    type Packet<'a> = Segment<'a>;
    const KIND: Kind = Kind::Tcp;
    const FIRST_IS_INPUT: bool = false;

    fn packet(content: Content<'_>) -> Option<Segment<'_>> {
        if let Content::Tcp(segment) = content { Some(segment) } else { None }
    }

    fn begins(segment: Segment<'_>) -> bool {
        segment.begins()
    }

    fn begin<L: Line>(io: &mut Io<'_, L>, number: u32) -> Connection {
        let mut connection = Connection::new(io, number);
        connection.state = State::SynSent;
        connection.send_handshake(io);
        connection
    }

    fn accept<L: Line>(
        io: &mut Io<'_, L>,
        number: u32,
        segment: Segment<'_>,
    ) -> Option<Connection> {
        if !segment.begins() {
            return None;
        }
        let mut connection = Connection::new(io, number);
        connection.state = State::SynReceived;
        connection.take_syn(&segment);
        connection.send_handshake(io);
        Some(connection)
    }

    fn answer_stray<L: Line>(io: &mut Io<'_, L>, segment: Segment<'_>) {
        input::answer_nobody(io, &segment);
    }

    /// RFC 9293 §3.10.7.4: what is only remembered makes way for a SYN that is newer.
    fn makes_way_for(&self, segment: Segment<'_>) -> bool {
        self.is_over() && segment.begins() && before(self.received, segment.sequence)
    }

    fn input<L: Line>(&mut self, io: &mut Io<'_, L>, segment: Segment<'_>) -> Option<Ending> {
        self.take_segment(io, &segment)
    }

    fn list(&mut self) -> bool {
        let is_new = !self.marks.has(Marks::LISTED);
        self.marks.set(Marks::LISTED);
        is_new
    }

    fn output<L: Line>(&mut self, io: &mut Io<'_, L>) {
        self.send_what_may_go(io);
    }

    fn next_deadline<L>(&self, io: &Io<'_, L>) -> u32 {
        let end = tick_of(self.started_ns).wrapping_add(io.program.life);
        let is_sooner = self.state == State::TimeWait || has_come(self.due, end);
        if self.marks.has(Marks::TIMER) && is_sooner { self.due } else { end }
    }

    fn expire<L: Line>(&mut self, io: &mut Io<'_, L>) -> Expiry {
        let is_due = self.marks.has(Marks::TIMER) && has_come(self.due, io.tick);
        if self.state == State::TimeWait {
            return if is_due { Expiry::Forget } else { Expiry::Open };
        }
        let end = tick_of(self.started_ns).wrapping_add(io.program.life);
        if has_come(end, io.tick) {
            return Expiry::Ended(Ending::Failed(Failure::Timeout));
        }
        if is_due && self.marks.has(Marks::RESTS) {
            self.marks.clear(Marks::RESTS);
            self.marks.clear(Marks::TIMER);
            if let Some(ending) = self.advance(io) {
                return Expiry::Ended(ending);
            }
            self.send_what_may_go(io);
        } else if is_due {
            self.retransmit_after_timeout(io);
        }
        Expiry::Open
    }

    fn abort<L: Line>(&mut self, io: &mut Io<'_, L>) {
        self.send_reset(io);
    }

    /// The end that closed first remembers (RFC 9293 §3.6.1, with a time of the profile's).
    fn linger<L>(&mut self, io: &Io<'_, L>) -> bool {
        if io.program.time_wait == 0 || !self.marks.has(Marks::CLOSED_FIRST) {
            return false;
        }
        self.state = State::TimeWait;
        self.run_timer(io.tick.wrapping_add(io.program.time_wait));
        true
    }

    fn is_over(&self) -> bool {
        self.state == State::TimeWait
    }

    fn is_connected(&self) -> bool {
        self.marks.has(Marks::CONNECTED)
    }

    fn is_stalled(&self) -> bool {
        self.marks.has(Marks::STALLED)
    }

    fn started_ns(&self) -> u64 {
        self.started_ns
    }

    fn to(&self) -> [u8; 6] {
        self.to
    }
}
