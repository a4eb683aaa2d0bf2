//! Interface of the state machines of both transports.

use super::frame::Content;
use super::io::{Io, Line};
use super::program::Ending;
use quiver_tg_traffic::profile::stateful::Kind;

/// Result of a timer of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// It goes on.
    Open,
    /// It is over.
    Ended(Ending),
    /// It was over before: nothing of it is left.
    Forget,
}

/// One end of a transaction.
pub trait Flow: Copy + Default + Send + 'static {
    /// Its parameters.
    type Packet<'a>: Copy;
    /// Its transport.
    const KIND: Kind;
    /// The packet that a transaction was taken up with is input, too.
    const FIRST_IS_INPUT: bool;

    /// A packet of its transport.
    fn packet(content: Content<'_>) -> Option<Self::Packet<'_>>;

    /// Would a server take up a transaction with it?
    fn begins(packet: Self::Packet<'_>) -> bool;

    /// A client begins; `number` tells it from others.
    fn begin<L: Line>(io: &mut Io<'_, L>, number: u32) -> Self;

    /// A server takes up a transaction with its first packet; `None` when it is not that.
    fn accept<L: Line>(io: &mut Io<'_, L>, number: u32, packet: Self::Packet<'_>) -> Option<Self>;

    /// Answer a packet of no transaction, if that is to be answered.
    fn answer_stray<L: Line>(io: &mut Io<'_, L>, packet: Self::Packet<'_>);

    /// Does this packet begin another transaction in the place of this one?
    fn makes_way_for(&self, packet: Self::Packet<'_>) -> bool;

    /// A packet has come.
    fn input<L: Line>(&mut self, io: &mut Io<'_, L>, packet: Self::Packet<'_>) -> Option<Ending>;

    /// Put it on a list of those that have something to send; false when it is on it.
    fn list(&mut self) -> bool;

    /// Send what may be sent now.
    fn output<L: Line>(&mut self, io: &mut Io<'_, L>);

    /// When it wants to be looked at, at the latest, as a tick of the wheel.
    fn next_deadline<L>(&self, io: &Io<'_, L>) -> u32;

    /// Its time to be looked at has come, or it is early.
    fn expire<L: Line>(&mut self, io: &mut Io<'_, L>) -> Expiry;

    /// Tell the other side that it failed.
    fn abort<L: Line>(&mut self, io: &mut Io<'_, L>);

    /// Keep it in mind after its end; false when that is not wanted.
    fn linger<L>(&mut self, io: &Io<'_, L>) -> bool;

    /// Is it nobody's: what is left in a slot behind a transaction?
    fn is_free(&self) -> bool {
        self.started_ns() == 0
    }

    /// Is it over, and only kept in mind?
    fn is_over(&self) -> bool;

    /// Has the other side answered?
    fn is_connected(&self) -> bool;

    /// Has it waited so long that what it waits for is taken for lost?
    fn is_stalled(&self) -> bool;

    /// When it began, nanoseconds.
    fn started_ns(&self) -> u64;

    /// Its next hop, where the side has no gateway.
    fn to(&self) -> [u8; 6];
}
