//! ICMP errors: the packet inside says whose they are (RFC 5508 §4).

use std::sync::Arc;

use quiver_core::Packet;
use quiver_translation::icmp_error::{self, BadQuote};

use crate::node::Nat44Drop;
use crate::session::{Direction, Flags, Objects, Session, Table};

impl From<BadQuote> for Nat44Drop {
    fn from(why: BadQuote) -> Nat44Drop {
        match why {
            BadQuote::NotWhole => Nat44Drop::BadIcmpError,
            BadQuote::NoFlow => Nat44Drop::InnerHasNoSession,
        }
    }
}

/// Translate an error that came by an interface of `table`. The small number of the table that it
/// is routed in comes back.
///
/// # Errors
/// It is not whole, a checksum is wrong, or no session sent the packet inside.
pub(crate) fn translate(
    packet: &mut Packet,
    table: u32,
    sessions: &(Table, Arc<Objects>),
) -> Result<u32, Nat44Drop> {
    let quote = icmp_error::read(packet, table)?;
    // The packet inside went the other way.
    let index = sessions.0.lookup(&quote.flow().reversed().key());
    let index = index.ok_or(Nat44Drop::InnerHasNoSession)?;
    let (session, direction) = (Session(sessions.1.get(index >> 1)), Direction::of_index(index));
    let sent = session.flow(direction.other());
    // What is behind the translator is not seen in front of it (RFC 5508 REQ-5).
    let both = Flags::HAIRPIN.with(Flags::TWICE);
    let is_hidden = direction == Direction::InToOut || session.flags().has(both);
    let source = is_hidden.then_some(sent.destination.address);
    quote.set_ends(packet, &sent, (source, sent.source.address));
    Ok(session.next_table(direction))
}
