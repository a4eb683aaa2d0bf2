//! `l2-flood` and `l2-uu-flood`: a copy for each port of the domain, but for the one that the frame came in by, those
//! of its split-horizon group, and those of another one that is excluded.
//!
//! Copies are bounded: a vector makes so many, and what is left comes back to the node after they were
//! sent; and some buffers are always left to frames that go one way.

use std::sync::Arc;

use quiver_core::node::{Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_tables::mac::{FloodPlace, Flooded};

use crate::tables::{Member, Port, Published};

/// Copies that one call of the node makes at most; a frame for more ports goes on in the next.
pub(crate) const COPIES_PER_CALL_MAX: usize = 512;
/// Copies that one frame gets in one call at most: each may want a vector of its own.
const COPIES_PER_FRAME_MAX: usize = 64;
/// One buffer in so many is not for copies.
const BUFFERS_KEPT_PARTS: usize = 8;

quiver_core::reasons! {
    /// What becomes of flooded frames.
    pub enum FloodDrop {
        /// The port left its domain.
        NotBridged = "not-bridged", "the interface left its bridge domain while the frame was under way";
        /// Alone.
        NoPort = "no-port", "no other port that is up and outside of the split-horizon group";
        /// No buffers.
        NoBuffer = "no-buffer", "copies not made: too few buffers are free (`buffers { buffers-per-numa N }`)";
        /// Copies made.
        Copied = info "copied", "copies made";
        /// Many ports.
        Resumed = info "resumed", "frames that went on to further ports later";
    }
}

/// The node. `UNKNOWN`: for destinations that are not known, `l2-uu-flood`.
struct Flood<const UNKNOWN: bool> {
    published: Arc<Published>,
    id: NodeId,
    copies_left: usize,
}

impl<const UNKNOWN: bool> Flood<UNKNOWN> {
    /// Does a frame from `port` go to a member? What is to a station goes to the router if it is the router's: its own
    /// address is always known, so what is not known is not for it.
    fn is_for(cx: &Context<'_>, port: &Port, excluded: u8, member: &Member, packet: &Packet) -> bool {
        let group = member.group;
        if member.interface == packet.rx || (group != 0 && (group == port.group || group == excluded)) {
            return false;
        }
        let Some(row) = cx.interface(member.interface).filter(|row| row.up) else { return false };
        let to = packet.bytes().first_chunk::<6>();
        !member.is_bvi || (!UNKNOWN && to.is_some_and(|to| to[0] & 1 != 0 || *to == row.mac))
    }

    /// [`Packet::index`] says at which port to go on.
    fn decide(&mut self, cx: &mut Context<'_>, packet: &mut Packet) -> Result<NodeId, FloodDrop> {
        let view = self.published.read(cx.pass);
        let port = view.port(packet.rx).ok_or(FloodDrop::NotBridged)?;
        let domain = view.domain(port.domain).ok_or(FloodDrop::NotBridged)?;
        let FloodPlace { excluded, port: first } = FloodPlace::from_index(packet.index);
        let (first, flooded) = (first as usize, Flooded { from_group: port.group }.to_index());
        let (mut last, mut copies) = (None::<Member>, 0);
        for (place, member) in domain.members.iter().enumerate().skip(first) {
            if !Self::is_for(cx, port, excluded, member, packet) {
                continue;
            }
            let Some(earlier) = last.replace(*member) else { continue };
            if copies == COPIES_PER_FRAME_MAX || self.copies_left == 0 {
                // The earlier one and this one are yet to come: from the earlier one on.
                let before =
                    domain.members[first..place].iter().rposition(|m| m.interface == earlier.interface);
                packet.index = FloodPlace { excluded, port: (first + before.unwrap_or(0)) as u32 }.to_index();
                cx.count(FloodDrop::Resumed, 1);
                return Ok(self.id);
            }
            if !self.copy(cx, packet, earlier, flooded) {
                cx.count(FloodDrop::NoBuffer, 1);
            }
            copies += 1;
        }
        let last = last.ok_or(FloodDrop::NoPort)?;
        packet.tx = last.interface;
        packet.index = flooded;
        Ok(last.output)
    }

    /// A copy goes to a port. False when there is no buffer for it.
    fn copy(&mut self, cx: &mut Context<'_>, packet: &Packet, to: Member, flooded: u32) -> bool {
        let pool = cx.buffers.pool();
        if pool.free() < pool.total() / BUFFERS_KEPT_PARTS {
            return false;
        }
        let Some(mut copy) = packet.duplicate(cx.buffers) else { return false };
        self.copies_left -= 1;
        copy.tx = to.interface;
        copy.index = flooded;
        cx.emit(copy, to.output);
        cx.count(FloodDrop::Copied, 1);
        true
    }
}

impl<const UNKNOWN: bool> Node for Flood<UNKNOWN> {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        self.copies_left = COPIES_PER_CALL_MAX;
        frame.route(|packet| self.decide(cx, packet));
    }
}

pub(crate) fn spec<const UNKNOWN: bool>(published: &Arc<Published>) -> NodeSpec {
    let published = published.clone();
    let (name, help) = match UNKNOWN {
        true => ("l2-uu-flood", "Sends frames to unknown stations by all ports of the domain"),
        false => ("l2-flood", "Sends frames to groups by all ports of the domain"),
    };
    NodeSpec::new(name, help, move |wiring| {
        Box::new(Flood::<UNKNOWN> { published: published.clone(), id: wiring.id, copies_left: 0 })
    })
    .reasons::<FloodDrop>()
    .describe(|record, names| {
        let frame = crate::words::frame(record);
        match record.next == record.node {
            true => format!(
                "{frame}: flooded, and goes on at port {} of the domain",
                FloodPlace::from_index(record.index).port
            ),
            false => format!("{frame}: flooded, the last copy by {}", names.interface(record.tx)),
        }
    })
}
