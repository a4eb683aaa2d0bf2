//! `ip4-mfib-forward-lookup`, `ip6-mfib-forward-lookup`: which multicast route is for a packet. The
//! small number of the table is in the packet's index.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_forwarding::handover::{GroupAccepted, TableIndex};
use quiver_forwarding::ip::IpTables;
use quiver_forwarding::mfib::MfibTables;
use quiver_forwarding::nodes;
use quiver_wire::ip4::address::ALL_HOSTS;
use quiver_wire::ip6::address::{self, ALL_NODES};

use crate::ends::{Ends, words};
use crate::signal::{Signaller, Why};

quiver_core::reasons! {
    /// Why packets to groups die before they have a route.
    pub enum MfibLookupDrop {
        /// Cannot be behind `ip4-input` and `ip6-input`.
        Truncated = "truncated", "fewer bytes than an IP header";
        /// Nobody knows the group.
        NoRoute = "no-route", "no multicast route for the source and the group";
        /// A storm.
        TooManySignals = info "too-many-signals", "packets without a route that the control \
            thread was not told of: too many at a time";
    }
}

/// The node's name.
pub(crate) fn name(six: bool) -> &'static str {
    if six { "ip6-mfib-forward-lookup" } else { "ip4-mfib-forward-lookup" }
}

/// The number of the multicast route of a packet.
#[derive(Clone, Copy)]
pub(crate) struct Route(pub u32);

quiver_core::number_handover!(Route);

struct Lookup {
    six: bool,
    mfib: Arc<MfibTables>,
    ip: Arc<IpTables>,
    signaller: Signaller,
    local: NodeId,
    rpf: NodeId,
}

impl Lookup {
    fn decide(
        &mut self,
        cx: &mut Context<'_>,
        packet: &mut Packet,
    ) -> Result<NodeId, MfibLookupDrop> {
        let ends = Ends::of(self.six, packet.bytes()).ok_or(MfibLookupDrop::Truncated)?;
        // Groups of the link or less, whatever their flags: the router's to hear (RFC 4291 §2.7).
        if self.six && address::multicast_scope(Ipv6Addr::from_bits(ends.group)) <= 2 {
            return Ok(self.local);
        }
        if self.is_membership_message(cx, packet) {
            packet.hand_over(GroupAccepted);
            return Ok(self.local);
        }
        let TableIndex(table) = packet.handed_over();
        if let Some(number) = self.mfib.find(self.six, table, ends.source, ends.group, cx.pass) {
            packet.hand_over(Route(number));
            return Ok(self.rpf);
        }
        if self.ip.interfaces.joined(packet.rx, ends.group_ip(self.six), cx.pass) {
            return Ok(self.local);
        }
        if !self.signaller.notify(cx, Why::NoRoute, packet.rx, &ends) {
            cx.count(MfibLookupDrop::TooManySignals, 1);
        }
        Err(MfibLookupDrop::NoRoute)
    }
}

impl Lookup {
    /// Does the packet say which groups hosts listen to (IGMP; MLD behind a router alert), on a
    /// link where the router has to know? It is sent to the group itself, whichever that is (RFC
    /// 2236 §9, RFC 3376 §4.1.12).
    fn is_membership_message(&self, cx: &Context<'_>, packet: &Packet) -> bool {
        let bytes = packet.bytes();
        let (looks_so, all) = match self.six {
            // Hop-by-hop options before ICMPv6, hop limit 1.
            true => (
                bytes.get(6..8) == Some(&[0, 1]) && bytes.get(40) == Some(&58),
                IpAddr::V6(ALL_NODES),
            ),
            false => (bytes.get(8..10) == Some(&[1, 2]), IpAddr::V4(ALL_HOSTS)),
        };
        // Who speaks for other links, or asks, has joined the group of all hosts in particular.
        looks_so && self.ip.interfaces.joined(packet.rx, all, cx.pass)
    }
}

impl Node for Lookup {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.decide(cx, packet));
    }
}

/// The declaration.
pub(crate) fn spec(six: bool, mfib: &Arc<MfibTables>) -> NodeSpec {
    let mfib = mfib.clone();
    NodeSpec::new(name(six), "Finds the multicast route of a packet", move |wiring| {
        Box::new(Lookup {
            six,
            mfib: mfib.clone(),
            ip: wiring.shared(),
            signaller: Signaller::new(six),
            local: wiring.node(if six { nodes::ip6::LOCAL } else { nodes::ip4::LOCAL }),
            rpf: wiring.node(crate::rpf::name(six)),
        })
    })
    .takes_offloads()
    .reasons::<MfibLookupDrop>()
    .describe(move |record, names| {
        let what = words(six, record.bytes());
        match names.node(record.next).as_str() {
            next if next == crate::rpf::name(six) => {
                format!("{what}: multicast route {}", record.index)
            }
            next => format!("{what}, to {next}"),
        }
    })
}
