//! Translation of a packet by its session.

use quiver_core::Packet;
use quiver_translation::rewrite::set_ends;

use crate::session::{Direction, Session};

/// Give a packet that goes in `direction` its new addresses and ports: those of the other
/// direction, reversed.
#[inline(always)]
pub(crate) fn translate(packet: &mut Packet, session: Session<'_>, direction: Direction) {
    let other = session.key(direction.other());
    let (addresses, ports) = (other[0].rotate_left(32), (other[1] >> 32) as u32);
    set_ends(packet, addresses, ports.rotate_left(16), session.deltas(direction));
}
