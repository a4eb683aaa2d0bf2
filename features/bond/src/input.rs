//! `bond-input`: what a member receives is received by its bond, but for the protocols of the link
//! itself (IEEE 802.1AX §6.1.3: control frames belong to the port), which stay with the member.

use std::sync::Arc;

use quiver_control::aggregates::WatchedAddresses;
use quiver_core::graph::arc::DEVICE_INPUT;
use quiver_core::graph::node::{DROP, Node, NodeSpec};
use quiver_core::{Context, Frame, InterfaceId, NodeId, Packet};
use quiver_wire::EtherType;

use crate::tables::{Published, Takes};
use crate::watchers::Watchers;

/// Bytes of an Ethernet header.
const HEADER_BYTES: usize = 14;

/// The node.
pub(crate) const NODE: &str = "bond-input";

quiver_core::reasons! {
    /// Why a frame that a member received dies.
    pub enum BondInputDrop {
        /// Shorter than its header.
        Truncated = "truncated", "frame shorter than an Ethernet header";
        /// The bond is down.
        BondDown = "bond-down", "the bond of the receiving member is down (`set interface state \
            BOND up`) or gone";
        /// A group, or somebody else's, on a member that does not send.
        Backup = "backup-member", "received by a backup member and not addressed to the bond: it \
            comes by the active member, too";
        /// LACP has not agreed.
        NotCollecting = "not-collecting", "received before LACP agreed that the partner may send \
            by this member (`show lacp`)";
    }
}

/// What one look at the receiving member tells.
#[derive(Clone, Copy)]
struct Port {
    member: InterfaceId,
    /// Where what stays with the member goes behind the features of its arc.
    member_input: NodeId,
    bond: InterfaceId,
    bond_mac: [u8; 6],
    /// Where what the bond receives goes; nothing when it is down.
    next: Option<NodeId>,
    takes: Takes,
}

struct BondInput {
    table: Arc<Published>,
    watchers: Watchers,
}

impl BondInput {
    fn port(&self, cx: &Context<'_>, member: InterfaceId) -> Port {
        let row = self.table.read(cx.pass).member(member);
        let bond = row.map_or(InterfaceId::NONE, |row| row.bond);
        let bond_row = cx.interface(bond);
        Port {
            member,
            member_input: cx.interface(member).map_or(DROP, |row| row.input),
            bond,
            bond_mac: bond_row.map_or([0; 6], |row| row.mac),
            next: bond_row.filter(|row| row.up).map(|row| row.first(DEVICE_INPUT, row.input)),
            takes: row.map_or(Takes::Nothing, |row| row.takes),
        }
    }

    /// Where a protocol that watches the member receives, when one does.
    fn watched(&self, cx: &Context<'_>, member: InterfaceId) -> Option<WatchedAddresses> {
        self.table.read(cx.pass).member(member).and_then(|row| row.watched)
    }
}

/// Does the frame belong to the link, not to what runs over it?
#[inline(always)]
fn is_of_the_link(ether_type: EtherType) -> bool {
    matches!(ether_type, EtherType::SLOW | EtherType::LLDP | EtherType::MAC_CONTROL)
}

#[cold]
fn stay(cx: &Context<'_>, port: Port, packet: &mut Packet) -> NodeId {
    cx.next_in_arc(DEVICE_INPUT, port.member, packet, port.member_input)
}

/// Hand a frame to the bond, unless `watch` finds somebody who watches the member; the error says
/// why not.
#[inline(always)]
fn decide(
    cx: &Context<'_>,
    watch: impl Fn(EtherType, &[u8]) -> Option<NodeId>,
    port: Port,
    packet: &mut Packet,
) -> Result<NodeId, BondInputDrop> {
    let Some(header) = packet.bytes().first_chunk::<HEADER_BYTES>() else {
        return Err(BondInputDrop::Truncated);
    };
    let ether_type = EtherType(u16::from_be_bytes([header[12], header[13]]));
    if is_of_the_link(ether_type) {
        return Ok(stay(cx, port, packet));
    }
    if let Some(watcher) = watch(ether_type, packet.bytes()) {
        return Ok(watcher);
    }
    match port.takes {
        Takes::All => {}
        Takes::Own if header[..6] == port.bond_mac => {}
        Takes::Own => return Err(BondInputDrop::Backup),
        Takes::Nothing => return Err(BondInputDrop::NotCollecting),
    }
    let next = port.next.ok_or(BondInputDrop::BondDown)?;
    packet.rx = port.bond;
    packet.arc_restart();
    Ok(next)
}

/// Give the frames of one member to its bond.
#[inline(always)]
fn of_one_member(
    cx: &Context<'_>,
    frame: &mut Frame,
    port: Port,
    watch: impl Fn(EtherType, &[u8]) -> Option<NodeId>,
) {
    let (mut count, mut packets, mut bytes) = (0, 0, 0);
    let all = frame.len() as u64;
    frame.route_ahead(|packet| {
        let decision = decide(cx, &watch, port, packet);
        let taken = packet.rx == port.bond;
        count += u64::from(taken);
        if taken {
            let on_wire = packet.on_wire();
            (packets, bytes) = (packets + on_wire.0, bytes + on_wire.1);
        }
        decision
    });
    frame.set_same_rx(count == all || count == 0);
    if count > 0 {
        let counters = cx.interface_counters(port.bond);
        counters.rx_packets.add(packets);
        counters.rx_bytes.add(bytes);
    }
}

/// The same where a protocol watches the member.
#[inline(never)]
fn of_watched_member(
    cx: &Context<'_>,
    frame: &mut Frame,
    port: Port,
    watchers: &Watchers,
    addresses: &WatchedAddresses,
) {
    of_one_member(cx, frame, port, |ether_type, bytes| watchers.of(addresses, ether_type, bytes));
}

impl Node for BondInput {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let watchers = &self.watchers;
        if frame.is_same_rx() {
            let Some(first) = frame.packets().first().map(|packet| packet.rx) else { return };
            let port = self.port(cx, first);
            match self.watched(cx, first) {
                None => of_one_member(cx, frame, port, |_, _| None),
                Some(at) => of_watched_member(cx, frame, port, watchers, &at),
            }
            return;
        }
        frame.route_ahead(|packet| {
            let (port, watched) = (self.port(cx, packet.rx), self.watched(cx, packet.rx));
            let watch = |kind, bytes: &[u8]| watchers.of(watched.as_ref()?, kind, bytes);
            let decision = decide(cx, watch, port, packet);
            if packet.rx == port.bond {
                let counters = cx.interface_counters(port.bond);
                let (packets, bytes) = packet.on_wire();
                counters.rx_packets.add(packets);
                counters.rx_bytes.add(bytes);
            }
            decision
        });
        frame.set_same_rx(false);
    }
}

pub(crate) fn spec(table: &Arc<Published>) -> NodeSpec {
    let table = table.clone();
    NodeSpec::new(NODE, "Gives what a member receives to its bond", move |w| {
        Box::new(BondInput { table: table.clone(), watchers: Watchers::new(w) })
    })
    .takes_offloads()
    .reasons::<BondInputDrop>()
    .describe(|record, names| {
        let (bytes, rx) = (record.packet_bytes, names.interface(record.rx));
        format!("{bytes} bytes received on {rx}, to {}", names.node(record.next))
    })
}
