//! `ip4-replicate`, `ip6-replicate`: a copy for every interface that the route forwards to, and one
//! for the router itself; the last one takes the packet, without a copy. The number of the route is
//! in the packet's index.

use std::sync::Arc;

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_forwarding::handover::GroupAccepted;
use quiver_forwarding::ip::IpTables;
use quiver_forwarding::mfib::{Entry, MfibTables, Output};
use quiver_forwarding::nodes;

use crate::ends::{Ends, count_hop, words};
use crate::lookup::Route;

quiver_core::reasons! {
    /// What becomes of packets to groups that are to be copied.
    pub enum ReplicateDrop {
        /// Cannot be behind the look-up.
        Truncated = "truncated", "fewer bytes than an IP header";
        /// Deleted while the packet was under way.
        RouteGone = "route-gone", "the multicast route was deleted while the packet was under way";
        /// RFC 1812 §5.3.7, RFC 4291 §2.5.6.
        NotForwardable = "not-forwardable", "a source or a group that means something on one link \
            only, or nothing";
        /// RFC 1812 §5.3.1; no error is sent about a group.
        Expired = "ttl-expired", "TTL or hop limit is used up, or not above the threshold of any \
            interface";
        /// No error is sent about a group.
        TooBig = "too-big", "longer than the MTU of every interface that it would go to";
        /// Nobody wants it.
        NoOutput = "no-output", "the multicast route forwards to no interface but the one that \
            the packet came from, or to none that is up";
        /// Too many headers in front.
        NoHeadroom = "no-headroom", "no room in the buffer for the layer 2 header";
        /// None left.
        NoBuffer = info "no-buffer", "copies that were not made: no buffer; `show buffers`";
        /// Counted beside what became of the packet.
        BelowThreshold = info "below-threshold", "copies not made: TTL or hop limit not above the \
            interface's threshold";
        /// Counted beside what became of the packet.
        BeyondMtu = info "beyond-mtu", "copies not made: longer than the interface's MTU";
        /// Made.
        Copied = info "copied", "copies made";
    }
}

/// The node's name.
pub(crate) fn name(six: bool) -> &'static str {
    if six { "ip6-replicate" } else { "ip4-replicate" }
}

struct Replicate {
    six: bool,
    mfib: Arc<MfibTables>,
    ip: Arc<IpTables>,
    local: NodeId,
}

/// The outputs that a packet goes to.
struct Wanted {
    hops: u8,
    own: bool,
    rx: quiver_core::InterfaceId,
    length: usize,
}

/// Why an output is left out.
enum LeftOut {
    Here,
    Threshold,
    Mtu,
}

impl Wanted {
    fn classify(&self, output: &Output) -> Result<(), LeftOut> {
        if output.tx == self.rx && !self.own {
            return Err(LeftOut::Here);
        }
        let least = if self.own { 0 } else { output.ttl_threshold.max(1) };
        if self.hops <= least {
            return Err(LeftOut::Threshold);
        }
        if self.length > usize::from(output.mtu_bytes) {
            return Err(LeftOut::Mtu);
        }
        Ok(())
    }
}

impl Replicate {
    fn decide(&self, cx: &mut Context<'_>, packet: &mut Packet) -> Result<NodeId, ReplicateDrop> {
        let entry = self
            .mfib
            .entry(packet.handed_over::<Route>().0, cx.pass)
            .ok_or(ReplicateDrop::RouteGone)?;
        let ends = Ends::of(self.six, packet.bytes()).ok_or(ReplicateDrop::Truncated)?;
        let joined = || self.ip.interfaces.joined(packet.rx, ends.group_ip(self.six), cx.pass);
        let local = entry.local || joined();
        let own = packet.has(PacketFlags::LOCALLY_ORIGINATED);
        let wanted =
            Wanted { hops: ends.hops, own, rx: packet.rx, length: packet.longest_on_wire() };
        let forwarded = match self.count(cx, entry, &ends, &wanted) {
            Ok(count) => count,
            Err(_) if local => 0,
            Err(reason) => return Err(reason),
        };
        if local {
            if forwarded == 0 {
                packet.hand_over(GroupAccepted);
                return Ok(self.local);
            }
            self.copy(cx, packet, |copy| {
                copy.hand_over(GroupAccepted);
                Some(self.local)
            });
        }
        if !own {
            count_hop(self.six, packet.bytes_mut());
        }
        let mac = ends.group_mac(self.six).0;
        let mut outputs = entry.outputs.iter().filter(|output| wanted.classify(output).is_ok());
        for output in outputs.by_ref().take(forwarded - 1) {
            self.copy(cx, packet, |copy| prepend(copy, output, mac));
        }
        let last = outputs.next().ok_or(ReplicateDrop::NoOutput)?;
        prepend(packet, last, mac).ok_or(ReplicateDrop::NoHeadroom)
    }

    /// How many outputs a packet goes to, and if none, why.
    fn count(
        &self,
        cx: &Context<'_>,
        entry: &Entry,
        ends: &Ends,
        wanted: &Wanted,
    ) -> Result<usize, ReplicateDrop> {
        if !wanted.own && !ends.may_be_forwarded(self.six) {
            return Err(ReplicateDrop::NotForwardable);
        }
        let (mut count, mut below, mut beyond) = (0, 0, 0);
        for output in &entry.outputs {
            match wanted.classify(output) {
                Ok(()) => count += 1,
                Err(LeftOut::Threshold) => below += 1,
                Err(LeftOut::Mtu) => beyond += 1,
                Err(LeftOut::Here) => {}
            }
        }
        if below > 0 {
            cx.count(ReplicateDrop::BelowThreshold, below);
        }
        if beyond > 0 {
            cx.count(ReplicateDrop::BeyondMtu, beyond);
        }
        match (count, below, beyond) {
            (1.., ..) => Ok(count),
            (_, 1.., _) => Err(ReplicateDrop::Expired),
            (_, _, 1..) => Err(ReplicateDrop::TooBig),
            _ => Err(ReplicateDrop::NoOutput),
        }
    }

    /// Send a copy where `prepare` says.
    fn copy(
        &self,
        cx: &mut Context<'_>,
        packet: &Packet,
        prepare: impl FnOnce(&mut Packet) -> Option<NodeId>,
    ) {
        let Some(mut copy) = packet.duplicate(cx.buffers) else {
            cx.count(ReplicateDrop::NoBuffer, 1);
            return;
        };
        match prepare(&mut copy) {
            Some(next) => {
                cx.count(ReplicateDrop::Copied, 1);
                cx.emit(copy, next);
            }
            None => cx.kill(copy, ReplicateDrop::NoHeadroom),
        }
    }
}

/// Put the header of an output in front, and say where the frame leaves.
fn prepend(packet: &mut Packet, output: &Output, group_mac: [u8; 6]) -> Option<NodeId> {
    let (field, count) = (output.header_for(group_mac), usize::from(output.header_len));
    let done = match field.last_chunk::<16>() {
        _ if count == 0 => true,
        Some(block) if count <= 16 => packet.push_block16(block, count),
        _ => packet.push_block32(&field, count),
    };
    packet.tx = output.tx;
    packet.l2_bytes = 0;
    done.then_some(output.output)
}

impl Node for Replicate {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.decide(cx, packet));
    }
}

/// The declaration.
pub(crate) fn spec(six: bool, mfib: &Arc<MfibTables>) -> NodeSpec {
    let mfib = mfib.clone();
    NodeSpec::new(
        name(six),
        "Copies packets to groups for every interface of their route",
        move |wiring| {
            Box::new(Replicate {
                six,
                mfib: mfib.clone(),
                ip: wiring.shared(),
                local: wiring.node(if six { nodes::ip6::LOCAL } else { nodes::ip4::LOCAL }),
            })
        },
    )
    .takes_offloads()
    .reasons::<ReplicateDrop>()
    .describe(move |record, names| match names.node(record.next).as_str() {
        next if next.ends_with("-local") => {
            format!("{}, for the router itself", words(six, record.bytes()))
        }
        next => format!(
            "{} bytes with their layer 2 header, the last or only copy to {next}",
            record.packet_bytes
        ),
    })
}
