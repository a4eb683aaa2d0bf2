//! `ip4-mfib-forward-rpf`, `ip6-mfib-forward-rpf`: may the packet come in here (reverse path
//! check)? The number of the route is in the packet's index.

use std::sync::Arc;

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_forwarding::mfib::MfibTables;

use crate::ends::{Ends, words};
use crate::lookup::Route;
use crate::signal::{Signaller, Why};

quiver_core::reasons! {
    /// Why packets to groups die at their route.
    pub enum MfibRpfDrop {
        /// Cannot be behind the look-up.
        Truncated = "truncated", "fewer bytes than an IP header";
        /// Deleted while the packet was under way.
        RouteGone = "route-gone", "the multicast route was deleted while the packet was under way";
        /// From elsewhere.
        WrongInterface = "rpf-failure", "received on an interface that its multicast route does \
            not accept packets from";
        /// As the route says.
        RouteDrops = "route-drops", "the multicast route says to drop";
        /// A storm.
        TooManySignals = info "too-many-signals", "packets that the control thread was not told \
            of: too many at a time";
    }
}

/// The node's name.
pub(crate) fn name(six: bool) -> &'static str {
    if six { "ip6-mfib-forward-rpf" } else { "ip4-mfib-forward-rpf" }
}

struct Rpf {
    six: bool,
    mfib: Arc<MfibTables>,
    signaller: Signaller,
    replicate: NodeId,
}

impl Rpf {
    fn decide(&mut self, cx: &mut Context<'_>, packet: &mut Packet) -> Result<NodeId, MfibRpfDrop> {
        let entry = self
            .mfib
            .entry(packet.handed_over::<Route>().0, cx.pass)
            .ok_or(MfibRpfDrop::RouteGone)?;
        let accepted = packet.has(PacketFlags::LOCALLY_ORIGINATED) || entry.accepts(packet.rx);
        if !accepted {
            entry.counts.rejected(cx.worker, packet.on_wire().0);
            self.signal(cx, Why::WrongInterface, packet)?;
            return Err(MfibRpfDrop::WrongInterface);
        }
        if entry.signal {
            self.signal(cx, Why::Asked, packet)?;
        }
        entry.counts.accepted(cx.worker, packet.on_wire());
        if entry.drop {
            return Err(MfibRpfDrop::RouteDrops);
        }
        Ok(self.replicate)
    }

    fn signal(
        &mut self,
        cx: &mut Context<'_>,
        why: Why,
        packet: &Packet,
    ) -> Result<(), MfibRpfDrop> {
        let ends = Ends::of(self.six, packet.bytes()).ok_or(MfibRpfDrop::Truncated)?;
        if !self.signaller.notify(cx, why, packet.rx, &ends) {
            cx.count(MfibRpfDrop::TooManySignals, 1);
        }
        Ok(())
    }
}

impl Node for Rpf {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.decide(cx, packet));
    }
}

/// The declaration.
pub(crate) fn spec(six: bool, mfib: &Arc<MfibTables>) -> NodeSpec {
    let mfib = mfib.clone();
    NodeSpec::new(
        name(six),
        "Checks that packets to groups come from where they may",
        move |wiring| {
            Box::new(Rpf {
                six,
                mfib: mfib.clone(),
                signaller: Signaller::new(six),
                replicate: wiring.node(crate::replicate::name(six)),
            })
        },
    )
    .takes_offloads()
    .reasons::<MfibRpfDrop>()
    .describe(move |record, names| {
        let (what, rx) = (words(six, record.bytes()), names.interface(record.rx));
        format!("{what}, received on {rx}, to {}", names.node(record.next))
    })
}
