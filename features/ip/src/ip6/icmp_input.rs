//! `ip6-icmp-input`: ICMPv6 for the router itself, sorted by type (RFC 4443, RFC 4861).

use std::net::IpAddr;
use std::sync::Arc;

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::{IpTables, UdpPorts};
use quiver_forwarding::nodes;
use quiver_wire::icmp6::{Icmp6Header, kind};
use quiver_wire::ip6::extension::upper_layer;
use quiver_wire::{Header, Ip6Header, IpProtocol, UdpHeader};

use crate::ip6::upper::Upper;
use crate::local::claims::Claimed;
use crate::local::has_host;
use crate::local::pending_pings::WaitingPings;
use crate::notifications::{Answer, Notification, PingError};

quiver_core::reasons! {
    /// What becomes of ICMPv6 packets for the router itself.
    pub enum Icmp6Drop {
        /// Not a whole message.
        Truncated = "truncated", "fewer bytes than an ICMPv6 header";
        /// Wrong.
        BadChecksum = "bad-checksum", "ICMPv6 checksum wrong";
        /// Types that a router has no use for.
        UnknownType = "unknown-type", "an ICMPv6 type that the router has no use for";
        /// Late or unasked.
        UnexpectedReply = "unexpected-reply", "an echo reply that no ping waits for";
        /// Asked.
        EchoRequest = info "echo-request", "echo requests received";
        /// Answered.
        EchoReply = info "echo-reply", "echo replies to our pings";
        /// Told.
        ErrorReceived = info "error-received", "ICMPv6 errors received";
        /// Hosts and routers say what they listen to; nothing is forwarded to groups.
        GroupReport = info "group-report", "reports and queries of multicast groups, not used";
        /// From routers, and to them.
        RouterDiscovery = info "router-discovery",
            "router solicitations and advertisements, not used";
    }
}

struct IcmpInput {
    echo: NodeId,
    types: Claimed,
    /// Who is told of errors about packets of the router's own that are of these protocols.
    about: Claimed,
    /// The same for tunnels, behind those.
    about_tunnel: Claimed,
    udp_ports: Arc<UdpPorts>,
    /// What no part of the router waits for goes there when a host may wait for it.
    punt: NodeId,
    done: NodeId,
    pings: Arc<WaitingPings>,
}

/// The ICMPv6 message of a packet, if it is whole.
pub(super) fn message(packet: &Packet) -> Option<(Upper, Icmp6Header)> {
    let upper = Upper::of(packet).ok()?;
    let icmp = *Icmp6Header::overlay(upper.bytes(packet))?;
    (upper.protocol == IpProtocol::ICMP6).then_some((upper, icmp))
}

impl IcmpInput {
    fn decide(&self, cx: &mut Context<'_>, packet: &mut Packet) -> Result<NodeId, Icmp6Drop> {
        let (upper, icmp) = message(packet).ok_or(Icmp6Drop::Truncated)?;
        if !upper.has_good_sum(packet, upper.length) {
            return Err(Icmp6Drop::BadChecksum);
        }
        if let Some(node) = self.types.node(icmp.kind) {
            return Ok(node);
        }
        match icmp.kind {
            kind::ECHO_REQUEST => {
                cx.count(Icmp6Drop::EchoRequest, 1);
                Ok(self.echo)
            }
            kind::ECHO_REPLY => {
                if !self.waits_for(icmp.rest) && has_host(cx.interface(packet.rx)) {
                    return Ok(self.punt);
                }
                if !self.notify(cx, packet, &upper, icmp.rest, Answer::Reply) {
                    return Err(Icmp6Drop::UnexpectedReply);
                }
                cx.count(Icmp6Drop::EchoReply, 1);
                Ok(self.done)
            }
            kind::DESTINATION_UNREACHABLE..=kind::PARAMETER_PROBLEM => {
                cx.count(Icmp6Drop::ErrorReceived, 1);
                let quoted = upper.bytes(packet).get(Icmp6Header::LEN..).unwrap_or_default();
                let echo = quoted_echo(quoted);
                let is_ours = echo.is_some_and(|(rest, _)| self.waits_for(rest));
                if let Some((rest, about)) = echo {
                    let told = u32::from_be_bytes(icmp.rest).min(u16::MAX.into()) as u16;
                    let mtu_bytes = if icmp.kind == kind::PACKET_TOO_BIG { told } else { 0 };
                    let error = PingError { kind: icmp.kind, code: icmp.code, mtu_bytes, about };
                    self.notify(cx, packet, &upper, rest, Answer::Error(error));
                }
                let about = Ip6Header::overlay(quoted).map(|about| about.next_header().0);
                let node = about
                    .and_then(|about| self.about.node(about).or(self.about_tunnel.node(about)));
                let node = node.or_else(|| self.about_datagram(quoted));
                let other = || {
                    if !is_ours && has_host(cx.interface(packet.rx)) {
                        self.punt
                    } else {
                        self.done
                    }
                };
                Ok(node.unwrap_or_else(other))
            }
            130..=132 | 143 | kind::ROUTER_SOLICITATION | kind::ROUTER_ADVERTISEMENT
                if has_host(cx.interface(packet.rx)) =>
            {
                Ok(self.punt)
            }
            // RFC 2710 §3, RFC 3810 §5.
            130..=132 | 143 => {
                cx.count(Icmp6Drop::GroupReport, 1);
                Ok(self.done)
            }
            kind::ROUTER_SOLICITATION | kind::ROUTER_ADVERTISEMENT => {
                cx.count(Icmp6Drop::RouterDiscovery, 1);
                Ok(self.done)
            }
            _ if has_host(cx.interface(packet.rx)) => Ok(self.punt),
            _ => Err(Icmp6Drop::UnknownType),
        }
    }

    /// The node that takes errors which quote a datagram of a tunnel.
    fn about_datagram(&self, quoted: &[u8]) -> Option<NodeId> {
        let (header, behind) = Ip6Header::split(quoted)?;
        let udp = UdpHeader::overlay(behind)?;
        let is_udp = header.next_header() == IpProtocol::UDP;
        self.udp_ports.get(Family::Ip6, udp.destination_port()).filter(|_| is_udp)?.errors
    }

    /// Does a ping of the router's wait for the answer with this identifier?
    fn waits_for(&self, [a, b, _, _]: [u8; 4]) -> bool {
        self.pings.wait_for(u16::from_be_bytes([a, b]))
    }

    /// Tell the control thread, if a ping waits for it.
    fn notify(
        &self,
        cx: &mut Context<'_>,
        packet: &Packet,
        upper: &Upper,
        rest: [u8; 4],
        answer: Answer,
    ) -> bool {
        let [a, b, c, d] = rest;
        let (identifier, sequence) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let waits = self.pings.wait_for(identifier);
        if waits {
            let (from, hops) = (upper.header.source().into(), upper.header.hop_limit());
            let bytes = upper.length as u16;
            Notification::Ping { identifier, sequence, from, answer, hops, bytes }
                .send(cx, packet.rx);
        }
        waits
    }
}

/// Identifier and sequence number of the echo request that an error quotes, whole or its first
/// fragment, and to whom it was.
fn quoted_echo(quoted: &[u8]) -> Option<([u8; 4], IpAddr)> {
    let (header, behind) = Ip6Header::split(quoted)?;
    let upper = upper_layer(header.next_header(), behind).ok()?;
    let icmp = Icmp6Header::overlay(behind.get(upper.offset..)?)?;
    let is_start = upper.fragment.is_none_or(|fragment| fragment.offset == 0);
    let is_echo =
        is_start && upper.protocol == IpProtocol::ICMP6 && icmp.kind == kind::ECHO_REQUEST;
    is_echo.then_some((icmp.rest, header.destination().into()))
}

impl Node for IcmpInput {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.decide(cx, packet));
    }
}

/// The declaration.
pub(crate) fn spec(pings: &Arc<WaitingPings>) -> NodeSpec {
    let pings = pings.clone();
    NodeSpec::new(
        nodes::ip6::ICMP_INPUT,
        "Sorts ICMPv6 packets for the router itself",
        move |wiring| {
            Box::new(IcmpInput {
                echo: wiring.node(nodes::ip6::ICMP_ECHO_REQUEST),
                types: Claimed::of(wiring, "icmp6-type"),
                about: Claimed::of(wiring, "icmp6-error-about"),
                about_tunnel: Claimed::of(wiring, "icmp6-error-about-tunnel"),
                udp_ports: wiring.shared::<IpTables>().udp_ports.clone(),
                punt: wiring.node(nodes::ip6::PUNT),
                done: wiring.node(nodes::IP_DONE),
                pings: pings.clone(),
            })
        },
    )
    .reasons::<Icmp6Drop>()
    .describe(|record, names| {
        format!(
            "{}, to {}",
            quiver_forwarding::ip6::describe(record.bytes()),
            names.node(record.next)
        )
    })
}
