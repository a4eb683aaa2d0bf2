//! The program of both ends of a transaction, for the state machines.

use super::wheel::ticks;
use quiver_tg_traffic::profile::stateful::{ClosingSide, Stateful, Success};

/// Which end of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Begins.
    Client,
    /// Answers.
    Server,
}

/// One end's part. Times are in ticks of the wheel.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Which end.
    pub role: Role,
    /// From the client: packets (UDP) or bytes (TCP).
    pub request: u32,
    /// From the server: packets or bytes.
    pub response: u32,
    /// Bytes of data in a packet: of UDP always, of TCP at most.
    pub packet_bytes: u16,
    /// TCP: who closes first.
    pub closing_side: ClosingSide,
    /// The condition of success.
    pub success: Success,
    /// A rest; 0 is none.
    pub hold: u32,
    /// From the beginning to the end of a transaction at most, the rest included.
    pub life: u32,
    /// How long a closed connection is remembered; 0 is not at all.
    pub time_wait: u32,
    /// Data is looked at.
    pub verify: bool,
}

impl Program {
    /// One end of the profile's transaction.
    pub fn new(stateful: &Stateful, role: Role) -> Program {
        let is_udp = stateful.kind == quiver_tg_traffic::profile::stateful::Kind::Udp;
        let or_none = |seconds: f64| if seconds > 0.0 { ticks(seconds) } else { 0 };
        let of = |packets: u16, bytes: Option<u32>| {
            if is_udp { u32::from(packets) } else { bytes.unwrap_or(0) }
        };
        let packet_bytes =
            if is_udp { stateful.datagram_bytes() } else { stateful.segment_bytes() };
        Program {
            role,
            request: of(stateful.requests(), stateful.request_bytes),
            response: of(stateful.responses(), stateful.response_bytes),
            packet_bytes: packet_bytes as u16,
            closing_side: stateful.closing_side(),
            success: stateful.success,
            hold: or_none(stateful.hold_s),
            life: ticks(stateful.timeout_s + stateful.hold_s),
            time_wait: or_none(stateful.time_wait_s),
            verify: stateful.verify,
        }
    }

    /// Data that this end sends.
    #[inline(always)]
    pub fn sends(&self) -> u32 {
        if self.role == Role::Client { self.request } else { self.response }
    }

    /// How an ending counts when less than all of a transaction is asked for.
    pub fn classify(&self, is_connected: bool, ending: Ending) -> Ending {
        match ending {
            Ending::Failed(Failure::Corrupted) => ending,
            _ if is_connected && self.success == Success::Connected => Ending::Complete,
            _ => ending,
        }
    }

    /// Data that this end receives.
    #[inline(always)]
    pub fn receives(&self) -> u32 {
        if self.role == Role::Client { self.response } else { self.request }
    }
}

/// Why a transaction failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It was not over in time.
    Timeout,
    /// The other side does not listen.
    Refused,
    /// The other side broke the connection off.
    Reset,
    /// A router or host said that the other side cannot be reached.
    Unreachable,
    /// The other side closed before it had sent all.
    ClosedEarly,
    /// Data arrived that was not what was sent, or more of it.
    Corrupted,
    /// There was no room for it in the table.
    TableFull,
    /// An earlier transaction still uses its addresses and ports.
    InUse,
}

impl Failure {
    /// All, in the order of their numbers, by the name that reports have.
    pub const ALL: [(Failure, &'static str); 8] = [
        (Failure::Timeout, "timeout"),
        (Failure::Refused, "refused"),
        (Failure::Reset, "reset"),
        (Failure::Unreachable, "unreachable"),
        (Failure::ClosedEarly, "closed_early"),
        (Failure::Corrupted, "corrupted"),
        (Failure::TableFull, "table_full"),
        (Failure::InUse, "in_use"),
    ];
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All of it took place.
    Complete,
    /// It did not.
    Failed(Failure),
}
