//! `lacp-input`: slow protocols (IEEE 802.3 annex 57A). LACPDUs are the control thread's, markers
//! are answered here, everything else is dropped.

use std::sync::Arc;

use quiver_core::graph::builtin::DONE;
use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::throttle::TokenBucket;
use quiver_core::worker::event::Event;
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_wire::lacp::{
    Lacpdu, MarkerHeader, PDU_BYTES, SLOW_GROUP, SUBTYPE_LACP, SUBTYPE_MARKER,
};
use quiver_wire::{EtherType, EthernetHeader, Header, MacAddress};

use crate::tables::Published;

/// The node's name.
pub(crate) const NODE: &str = "lacp-input";
/// PDUs of slow protocols that a worker takes in a second: ten are allowed on a link (annex 57A.2),
/// and a router has some hundred links.
pub const PDUS_PER_SECOND_MAX: u64 = 2000;
/// So many may come at once.
pub const PDUS_BURST: u64 = 512;
/// Bytes of an Ethernet header.
const ETHERNET_BYTES: usize = EthernetHeader::LEN;

quiver_core::reasons! {
    /// What becomes of frames of slow protocols.
    pub enum SlowDrop {
        /// Taken in.
        Taken = info "lacpdu", "LACPDUs given to the control thread";
        /// Answered.
        Answered = info "marker-answered", "markers answered";
        /// Not in a bond with LACP.
        NotMember = "not-lacp-member", "the receiving interface is no member of a bond in mode \
            lacp";
        /// Cut off or wrong.
        Malformed = "malformed", "an LACPDU or marker is too short, or its fields contradict the \
            standard";
        /// Nobody asked.
        Unasked = "marker-response", "a marker's answer, and this router asks for none";
        /// Another protocol.
        UnknownSubtype = "unknown-subtype", "a slow protocol that is neither LACP nor marker";
        /// Too many.
        TooMany = "too-many", "more slow protocol frames than a worker takes in a second";
    }
}

struct LacpInput {
    table: Arc<Published>,
    bucket: TokenBucket,
}

impl LacpInput {
    fn decide(&mut self, cx: &mut Context<'_>, packet: &mut Packet) -> Result<NodeId, SlowDrop> {
        let member = self.table.read(cx.pass).member(packet.rx);
        if !member.is_some_and(|member| member.lacp) {
            return Err(SlowDrop::NotMember);
        }
        let subtype = *packet.bytes().first().ok_or(SlowDrop::Malformed)?;
        if !matches!(subtype, SUBTYPE_LACP | SUBTYPE_MARKER) {
            return Err(SlowDrop::UnknownSubtype);
        }
        if !self.bucket.take(cx.now_ns) {
            return Err(SlowDrop::TooMany);
        }
        if subtype == SUBTYPE_MARKER {
            return answer(cx, packet);
        }
        let pdu = packet.bytes().first_chunk::<PDU_BYTES>().ok_or(SlowDrop::Malformed)?;
        Lacpdu::parse(pdu).map_err(|_| SlowDrop::Malformed)?;
        cx.notify(Event::new(cx.node, packet.rx, cx.now_ns, 0, pdu));
        cx.count(SlowDrop::Taken, 1);
        Ok(DONE)
    }
}

/// Make the answer of a marker in place, and send it back by the port that it came by (§6.5.4.2).
fn answer(cx: &Context<'_>, packet: &mut Packet) -> Result<NodeId, SlowDrop> {
    let row = cx.interface(packet.rx).ok_or(SlowDrop::NotMember)?;
    let marker = MarkerHeader::overlay_mut(packet.bytes_mut()).ok_or(SlowDrop::Malformed)?;
    if marker.is_answer() {
        return Err(SlowDrop::Unasked);
    }
    if !marker.is_question() {
        return Err(SlowDrop::Malformed);
    }
    marker.make_answer();
    let header = EthernetHeader::new(SLOW_GROUP, MacAddress(row.mac), EtherType::SLOW);
    if !packet.push(ETHERNET_BYTES) || header.write(packet.bytes_mut()).is_err() {
        return Err(SlowDrop::Malformed); // cannot be: the header was there a moment ago
    }
    packet.become_own();
    packet.tx = packet.rx;
    cx.count(SlowDrop::Answered, 1);
    Ok(row.output)
}

impl Node for LacpInput {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.decide(cx, packet));
    }
}

pub(crate) fn spec(table: &Arc<Published>) -> NodeSpec {
    let table = table.clone();
    NodeSpec::new(NODE, "Takes LACPDUs in and answers markers", move |_| {
        let bucket = TokenBucket::new(PDUS_PER_SECOND_MAX, PDUS_BURST);
        Box::new(LacpInput { table: table.clone(), bucket })
    })
    .reasons::<SlowDrop>()
    .describe(|record, names| {
        let what = match record.bytes().first() {
            Some(&SUBTYPE_LACP) => "an LACPDU",
            Some(&SUBTYPE_MARKER) => "a marker",
            _ => "a slow protocol's frame",
        };
        format!("{what} received on {}, to {}", names.interface(record.rx), names.node(record.next))
    })
}
