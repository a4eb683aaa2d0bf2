//! `6rd-icmp-error`: ICMP errors of the IPv4 network about packets of 6rd tunnels. The senders of
//! the packets inside are notified (RFC 4213 §3.4, RFC 2473 §8).

use std::sync::Arc;

use quiver_core::graph::node::{Node, NodeSpec, Wiring};
use quiver_core::memory::epoch::Pass;
use quiver_core::{Context, Frame, InterfaceId, NodeId, Packet};
use quiver_encap::relay::{QuotedInner, Relay, UnderlayError};
use quiver_encap::tunnel::{Ends, OuterEnds, TunnelErrorDrop};
use quiver_forwarding::ip::{Ip4, Ip6, IpFamily};

use crate::tables::Tables;

/// The node's name.
pub(crate) const NODE: &str = "6rd-icmp-error";

struct Errors {
    ends: Arc<Tables>,
    relay: Relay,
}

/// A tunnel's packet that an error is about.
struct About {
    error: UnderlayError,
    tunnel: InterfaceId,
    /// Where the inner packet begins, and bytes of the outer header.
    at: usize,
    around: usize,
    /// Bytes of the outer packet.
    length: usize,
}

/// An outer address, which is mapped into IPv6.
fn ip4(address: u128) -> u32 {
    address as u32
}

impl Errors {
    fn decide(
        &mut self,
        cx: &mut Context<'_>,
        packet: &mut Packet,
    ) -> Result<NodeId, TunnelErrorDrop> {
        let about = self.about(cx, packet)?;
        if !self.relay.may_look(cx.now_ns) {
            return Err(TunnelErrorDrop::RateLimited);
        }
        // The MTU of the tunnel is set (RFC 5969 §9.1): one edge with a narrow link must not make
        // packets to all others smaller. The sender makes its own smaller.
        if let UnderlayError::TooBig(mtu_bytes) = about.error
            && (mtu_bytes < Ip4::PATH_MTU_MIN || usize::from(mtu_bytes) >= about.length)
        {
            return Err(TunnelErrorDrop::NotBelieved);
        }
        let quoted = QuotedInner {
            at: about.at,
            around: about.around,
            copies_hop_limit: true,
            tunnel: about.tunnel,
        };
        let sent = self.relay.to_sender::<Ip6>(packet, about.error, quoted);
        cx.count(if sent.is_some() { TunnelErrorDrop::Relayed } else { TunnelErrorDrop::Kept }, 1);
        Ok(sent.unwrap_or(self.relay.done()))
    }

    fn about(&self, cx: &Context<'_>, packet: &Packet) -> Result<About, TunnelErrorDrop> {
        let (error, begin) = Ip4::quoted(packet.bytes()).ok_or(TunnelErrorDrop::Truncated)?;
        let quoted = packet.bytes().get(begin..).ok_or(TunnelErrorDrop::Truncated)?;
        let ends = Ip4::ends(quoted).ok_or(TunnelErrorDrop::Truncated)?;
        if Ip4::is_later_fragment(quoted) {
            return Err(TunnelErrorDrop::Truncated);
        }
        let inner = quoted.get(ends.header_len..).ok_or(TunnelErrorDrop::Truncated)?;
        let table = Ip4::table_of(&self.relay.tables().interfaces, packet.rx);
        let tunnel = self.tunnel(table, &ends, inner, cx.pass).ok_or(TunnelErrorDrop::NotOurs)?;
        let (around, length) = (ends.header_len, ends.length);
        Ok(About { error, tunnel, at: begin + around, around, length })
    }

    /// The tunnel that sends from `ends.source`, if it sends packets to the inner destination, as
    /// far as that is quoted, to `ends.destination`.
    fn tunnel(&self, table: u32, ends: &Ends, inner: &[u8], pass: Pass<'_>) -> Option<InterfaceId> {
        let interface = self.ends.at(table, ip4(ends.source), pass)?;
        let tunnel = self.ends.tunnel(interface, pass)?;
        let Some(destination) = Ip6::destination(inner) else { return Some(interface) };
        let outer = tunnel.domain.outer_destination(destination);
        (outer == Some(ip4(ends.destination))).then_some(interface)
    }
}

impl Node for Errors {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.decide(cx, packet));
        frame.look_at_rx();
    }
}

/// The declaration.
pub(crate) fn spec(ends: &Arc<Tables>) -> NodeSpec {
    let ends = ends.clone();
    let help = "Notifies senders of packets inside 6rd tunnels of errors in the IPv4 network";
    NodeSpec::new(NODE, help, move |wiring: &Wiring<'_>| {
        Box::new(Errors { ends: ends.clone(), relay: Relay::new(wiring) })
    })
    .reasons::<TunnelErrorDrop>()
    .describe(|record, names| {
        format!("{} bytes, to {}", record.packet_bytes, names.node(record.next))
    })
}
