//! `ip4-icmp-input`: ICMP for the router itself, sorted by type (RFC 792, RFC 1812 §4.3).

use std::net::IpAddr;
use std::sync::Arc;

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::{IpTables, UdpPorts};
use quiver_forwarding::nodes;
use quiver_offload::checksum::add_to_sum;
use quiver_wire::checksum::Sum;
use quiver_wire::icmp4::{Icmp4Header, kind, unreachable};
use quiver_wire::{Header, Ip4Header, IpProtocol, UdpHeader};

use crate::local::claims::Claimed;
use crate::local::has_host;
use crate::local::pending_pings::WaitingPings;
use crate::notifications::{Answer, Notification, PingError};

quiver_core::reasons! {
    /// What becomes of ICMP packets for the router itself.
    pub enum Icmp4Drop {
        /// Not a whole message.
        Truncated = "truncated", "fewer bytes than an ICMP header";
        /// Wrong.
        BadChecksum = "bad-checksum", "ICMP checksum wrong";
        /// Types that a router has no use for.
        UnknownType = "unknown-type", "an ICMP type that the router has no use for";
        /// Late or unasked.
        UnexpectedReply = "unexpected-reply", "an echo reply that no ping waits for";
        /// Asked.
        EchoRequest = info "echo-request", "echo requests received";
        /// Answered.
        EchoReply = info "echo-reply", "echo replies to our pings";
        /// Told.
        ErrorReceived = info "error-received", "ICMP errors received";
    }
}

struct IcmpInput {
    echo: NodeId,
    /// Tunnels that are told of errors about packets of the router's own that are of these
    /// protocols.
    about_tunnel: Claimed,
    udp_ports: Arc<UdpPorts>,
    /// What no part of the router waits for goes there when a host may wait for it.
    punt: NodeId,
    done: NodeId,
    pings: Arc<WaitingPings>,
}

/// Where the ICMP message of a packet begins, and its length, if both are inside the packet.
pub(super) fn message(packet: &Packet) -> Option<(Ip4Header, usize, usize)> {
    let header = *Ip4Header::overlay(packet.bytes())?;
    let (offset, total) = (header.header_len(), usize::from(header.total_length()));
    let length = total.checked_sub(offset)?;
    let fits = offset >= Ip4Header::LEN && total <= packet.length() && length >= Icmp4Header::LEN;
    (fits && offset + Icmp4Header::LEN <= packet.segment_length())
        .then_some((header, offset, length))
}

impl IcmpInput {
    fn decide(&self, cx: &mut Context<'_>, packet: &mut Packet) -> Result<NodeId, Icmp4Drop> {
        let (header, offset, length) = message(packet).ok_or(Icmp4Drop::Truncated)?;
        if !add_to_sum(Sum::new(), packet, offset, length).is_some_and(Sum::is_good) {
            return Err(Icmp4Drop::BadChecksum);
        }
        let bytes = packet.bytes().get(offset..).unwrap_or_default();
        let (icmp, behind) = Icmp4Header::split(bytes).ok_or(Icmp4Drop::Truncated)?;
        match icmp.kind {
            kind::ECHO_REQUEST => {
                cx.count(Icmp4Drop::EchoRequest, 1);
                Ok(self.echo)
            }
            kind::ECHO_REPLY => {
                if !self.waits_for(icmp.rest) && has_host(cx.interface(packet.rx)) {
                    return Ok(self.punt);
                }
                if !self.notify(cx, packet, &header, icmp.rest, Answer::Reply, length) {
                    return Err(Icmp4Drop::UnexpectedReply);
                }
                cx.count(Icmp4Drop::EchoReply, 1);
                Ok(self.done)
            }
            kind::DESTINATION_UNREACHABLE | kind::TIME_EXCEEDED | kind::PARAMETER_PROBLEM => {
                cx.count(Icmp4Drop::ErrorReceived, 1);
                let echo = quoted_echo(behind);
                let is_ours = echo.is_some_and(|(rest, _)| self.waits_for(rest));
                if let Some((rest, about)) = echo {
                    let [_, _, a, b] = icmp.rest;
                    let too_big = (icmp.kind, icmp.code)
                        == (kind::DESTINATION_UNREACHABLE, unreachable::FRAGMENTATION_NEEDED);
                    let mtu_bytes = if too_big { u16::from_be_bytes([a, b]) } else { 0 };
                    let error = PingError { kind: icmp.kind, code: icmp.code, mtu_bytes, about };
                    self.notify(cx, packet, &header, rest, Answer::Error(error), length);
                }
                let about = Ip4Header::overlay(behind).map(|about| about.protocol().0);
                let tunnel = about.and_then(|about| self.about_tunnel.node(about));
                let tunnel = tunnel.or_else(|| self.about_datagram(behind));
                let other = || {
                    if !is_ours && has_host(cx.interface(packet.rx)) {
                        self.punt
                    } else {
                        self.done
                    }
                };
                Ok(tunnel.unwrap_or_else(other))
            }
            _ if has_host(cx.interface(packet.rx)) => Ok(self.punt),
            _ => Err(Icmp4Drop::UnknownType),
        }
    }

    /// The node that takes errors which quote a datagram of a tunnel.
    fn about_datagram(&self, quoted: &[u8]) -> Option<NodeId> {
        let header = Ip4Header::overlay(quoted)?;
        let udp = UdpHeader::overlay(quoted.get(header.header_len()..)?)?;
        let is_udp = header.protocol() == IpProtocol::UDP;
        self.udp_ports.get(Family::Ip4, udp.destination_port()).filter(|_| is_udp)?.errors
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
        header: &Ip4Header,
        rest: [u8; 4],
        answer: Answer,
        length: usize,
    ) -> bool {
        let [a, b, c, d] = rest;
        let (identifier, sequence) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let waits = self.pings.wait_for(identifier);
        if waits {
            let (from, hops) = (header.source().into(), header.ttl());
            let notice = Notification::Ping {
                identifier,
                sequence,
                from,
                answer,
                hops,
                bytes: length as u16,
            };
            notice.send(cx, packet.rx);
        }
        waits
    }
}

/// Identifier and sequence number of the echo request that an error quotes, and to whom it was.
fn quoted_echo(quoted: &[u8]) -> Option<([u8; 4], IpAddr)> {
    let header = Ip4Header::overlay(quoted)?;
    let icmp = Icmp4Header::overlay(quoted.get(header.header_len()..)?)?;
    let is_echo = header.protocol() == IpProtocol::ICMP && icmp.kind == kind::ECHO_REQUEST;
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
        nodes::ip4::ICMP_INPUT,
        "Sorts ICMP packets for the router itself",
        move |wiring| {
            Box::new(IcmpInput {
                echo: wiring.node(nodes::ip4::ICMP_ECHO_REQUEST),
                about_tunnel: Claimed::of(wiring, "icmp4-error-about-tunnel"),
                udp_ports: wiring.shared::<IpTables>().udp_ports.clone(),
                punt: wiring.node(nodes::ip4::PUNT),
                done: wiring.node(nodes::IP_DONE),
                pings: pings.clone(),
            })
        },
    )
    .reasons::<Icmp4Drop>()
    .describe(|record, names| {
        format!(
            "{}, to {}",
            quiver_forwarding::ip4::describe(record.bytes()),
            names.node(record.next)
        )
    })
}
