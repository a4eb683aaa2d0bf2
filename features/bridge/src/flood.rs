//! `l2-flood` and `l2-uu-flood`: a copy for each port of the domain, but for the one that the frame
//! came in by, those of its split-horizon group, and those of another one that is excluded.
//!
//! Copies are bounded: a vector makes so many, and what is left comes back to the node after they
//! were sent; and some buffers are always left to frames that go one way.

use std::sync::Arc;

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::{Context, Frame, InterfaceId, NodeId, Packet};
use quiver_tables::mac::{FloodPlace, Flooded, MacKey, MacTable};
use quiver_wire::MacAddress;

use crate::nodes;
use crate::tables::{Domain, Member, Port, Published, Unknown, View};
use crate::uu_forward;

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
        NotBridged = "not-bridged", "the interface left its bridge domain while the frame was \
            under way";
        /// Alone.
        NoPort = "no-port", "no other port that is up and outside of the split-horizon group";
        /// Switched off.
        UnknownUnicast = "unknown-unicast", "a frame to be flooded whose destination is not \
            known, and flooding of those is off (`set bridge-domain uu-flood`)";
        /// No buffers.
        NoBuffer = "no-buffer", "copies not made: too few buffers are free (`buffers \
            { buffers-per-numa N }`)";
        /// Copies made.
        Copied = info "copied", "copies made";
        /// Many ports.
        Resumed = info "resumed", "frames that went on to further ports later";
    }
}

/// The node. `UNKNOWN`: for destinations that are not known, `l2-uu-flood`.
struct Flood<const UNKNOWN: bool> {
    published: Arc<Published>,
    table: MacTable,
    id: NodeId,
    uu_forward: NodeId,
}

/// Where a frame came in.
#[derive(Clone, Copy)]
struct From<'a> {
    port: &'a Port,
    domain: &'a Domain,
    /// The one port that frames from there go to, if it is known to be one.
    only: Option<Member>,
}

impl<'a> From<'a> {
    fn of(view: &'a View, rx: InterfaceId) -> Option<From<'a>> {
        let port = view.port(rx)?;
        Some(From { port, domain: view.domain(port.domain)?, only: None })
    }

    /// As [`of`](Self::of), for a vector: it is worth to see whether there is one port only.
    fn of_all(cx: &Context<'_>, view: &'a View, rx: InterfaceId) -> Option<From<'a>> {
        let from = From::of(view, rx)?;
        let group = from.port.group;
        let may = |member: &&Member| {
            let others = member.interface != rx && (member.group == 0 || member.group != group);
            others && cx.interface(member.interface).is_some_and(|row| row.up)
        };
        let mut all = from.domain.members.iter().filter(may);
        let (first, second) = (all.next().copied(), all.next());
        // What goes to the router itself is asked of each frame.
        let only = first.filter(|only| second.is_none() && !only.is_bvi);
        Some(From { only, ..from })
    }
}

/// The destination of a frame.
#[inline(always)]
fn destination(packet: &Packet) -> [u8; 6] {
    packet.bytes().first_chunk().copied().unwrap_or_default()
}

impl<const UNKNOWN: bool> Flood<UNKNOWN> {
    /// Does a frame from `port` go to a member? What is to a station goes to the router if it is
    /// the router's: its own address is always known, so what is not known is not for it.
    #[inline(always)]
    fn is_for(
        cx: &Context<'_>,
        port: &Port,
        excluded: u8,
        member: &Member,
        packet: &Packet,
    ) -> bool {
        let group = member.group;
        if member.interface == packet.rx
            || (group != 0 && (group == port.group || group == excluded))
        {
            return false;
        }
        let Some(row) = cx.interface(member.interface).filter(|row| row.up) else { return false };
        let to = destination(packet);
        !member.is_bvi || (!UNKNOWN && (to[0] & 1 != 0 || to == row.mac))
    }

    /// The packet's index says at which port to go on. Only so many copies are made.
    #[inline(always)]
    fn decide(
        &self,
        cx: &mut Context<'_>,
        from: Option<From<'_>>,
        copies_left: &mut usize,
        packet: &mut Packet,
    ) -> Result<NodeId, FloodDrop> {
        let from = from.ok_or(FloodDrop::NotBridged)?;
        let place: FloodPlace = packet.handed_over();
        if !UNKNOWN && from.port.unknown != Unknown::Flood && destination(packet)[0] & 1 == 0 {
            return self.known(cx, from, place.excluded, packet);
        }
        let Some(only) = from.only.filter(|_| place.port == 0) else {
            return self.several(cx, from, copies_left, packet);
        };
        if only.group != 0 && only.group == place.excluded {
            return Err(FloodDrop::NoPort);
        }
        packet.tx = only.interface;
        packet.hand_over(Flooded { from_group: from.port.group });
        Ok(only.output)
    }

    /// To several ports, or those that are left.
    #[inline(never)]
    fn several(
        &self,
        cx: &mut Context<'_>,
        From { port, domain, .. }: From<'_>,
        copies_left: &mut usize,
        packet: &mut Packet,
    ) -> Result<NodeId, FloodDrop> {
        let FloodPlace { excluded, port: first } = packet.handed_over();
        let (first, flooded) = (first as usize, Flooded { from_group: port.group });
        let (mut last, mut copies) = (None::<Member>, 0);
        for (place, member) in domain.members.iter().enumerate().skip(first) {
            if !Self::is_for(cx, port, excluded, member, packet) {
                continue;
            }
            let Some(earlier) = last.replace(*member) else { continue };
            if copies == COPIES_PER_FRAME_MAX || *copies_left == 0 {
                // The earlier one and this one are yet to come: from the earlier one on.
                let before = domain.members[first..place]
                    .iter()
                    .rposition(|m| m.interface == earlier.interface);
                let port = (first + before.unwrap_or(0)) as u32;
                packet.hand_over(FloodPlace { excluded, port });
                cx.count(FloodDrop::Resumed, 1);
                return Ok(self.id);
            }
            match copy(cx, packet, earlier, flooded) {
                true => *copies_left -= 1,
                false => cx.count(FloodDrop::NoBuffer, 1),
            }
            copies += 1;
        }
        let last = last.ok_or(FloodDrop::NoPort)?;
        packet.tx = last.interface;
        packet.hand_over(flooded);
        Ok(last.output)
    }

    /// A frame to one station that somebody else wants flooded, while this domain floods none to
    /// stations that are not known: it goes to the station if that is known, and may get it; else
    /// to the `uu-fwd` port, if there is one.
    #[cold]
    #[inline(never)]
    fn known(
        &self,
        cx: &Context<'_>,
        From { port, domain, .. }: From<'_>,
        excluded: u8,
        packet: &mut Packet,
    ) -> Result<NodeId, FloodDrop> {
        let key = MacKey::new(port.domain, MacAddress(destination(packet)));
        let found = self.table.lookup(key);
        let is_known = found.holds(self.table.ports().word(found.port())) && !found.is_filter();
        if !is_known && port.unknown == Unknown::ToOne {
            packet.hand_over(FloodPlace { excluded, ..FloodPlace::START });
            return Ok(self.uu_forward);
        }
        if !(is_known && port.forward) {
            return Err(FloodDrop::UnknownUnicast);
        }
        let member = domain
            .members
            .iter()
            .chain(&domain.uu_forward)
            .find(|member| member.interface == found.port());
        let member = member.filter(|member| Self::is_for(cx, port, excluded, member, packet));
        let Member { interface, output, .. } = *member.ok_or(FloodDrop::NoPort)?;
        packet.tx = interface;
        packet.hand_over_nothing(); // it is to one station
        Ok(output)
    }
}

/// A copy goes to a port. False when there is no buffer for it.
fn copy(cx: &mut Context<'_>, packet: &Packet, to: Member, flooded: Flooded) -> bool {
    let pool = cx.buffers.pool();
    if pool.free() < pool.total() / BUFFERS_KEPT_PARTS {
        return false;
    }
    let Some(mut copy) = packet.duplicate(cx.buffers) else { return false };
    copy.tx = to.interface;
    copy.hand_over(flooded);
    cx.emit(copy, to.output);
    cx.count(FloodDrop::Copied, 1);
    true
}

impl<const UNKNOWN: bool> Node for Flood<UNKNOWN> {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let Some(rx) = frame.packets().first().map(|packet| packet.rx) else { return };
        let (view, mut copies_left) = (self.published.read(cx.pass), COPIES_PER_CALL_MAX);
        let same = if frame.is_same_rx() { Some(From::of_all(cx, view, rx)) } else { None };
        frame.route(|packet| {
            let from = same.unwrap_or_else(|| From::of(view, packet.rx));
            self.decide(cx, from, &mut copies_left, packet)
        });
    }
}

pub(crate) fn spec<const UNKNOWN: bool>(published: &Arc<Published>, table: &MacTable) -> NodeSpec {
    let (published, table) = (published.clone(), table.clone());
    let (name, help) = match UNKNOWN {
        true => (nodes::UU_FLOOD, "Sends frames to unknown stations by all ports of the domain"),
        false => (nodes::FLOOD, "Sends frames to groups by all ports of the domain"),
    };
    NodeSpec::new(name, help, move |wiring| {
        Box::new(Flood::<UNKNOWN> {
            published: published.clone(),
            table: table.clone(),
            id: wiring.id,
            uu_forward: wiring.node(uu_forward::NODE),
        })
    })
    .takes_offloads()
    .reasons::<FloodDrop>()
    .describe(|record, names| {
        let frame = crate::description::frame(record);
        match record.next == record.node {
            true => format!(
                "{frame}: flooded, and goes on at port {} of the domain",
                record.handed_over::<FloodPlace>().port
            ),
            false => format!("{frame}: flooded, the last copy by {}", names.interface(record.tx)),
        }
    })
}
