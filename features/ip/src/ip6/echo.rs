//! `ip6-icmp-echo-request`: the request becomes the reply where it lies (RFC 4443 §4.2).

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_forwarding::ip::IpTables;
use quiver_forwarding::nodes;
use quiver_offload::checksum::add_to_sum;
use quiver_wire::checksum::Sum;
use quiver_wire::icmp6::{Icmp6Header, kind};
use quiver_wire::ip6::address;
use quiver_wire::{Header, Ip6Header, IpProtocol};

use super::icmp_input::message;

quiver_core::reasons! {
    /// What becomes of echo requests.
    pub enum EchoDrop {
        /// Not a whole message.
        Truncated = "truncated", "fewer bytes than an ICMPv6 header";
        /// Nobody to answer to.
        BadSource = "bad-source", "an echo request from an address that cannot be answered";
        /// None of ours.
        NoAddress = "no-source-address", "no address to answer an echo request to a group with";
        /// Answered.
        Replied = info "replied", "echo replies sent";
    }
}

struct Echo {
    tables: IpTables,
    lookup: NodeId,
}

impl Echo {
    fn reply(&self, cx: &Context<'_>, packet: &mut Packet) -> Result<NodeId, EchoDrop> {
        let (upper, mut icmp) = message(packet).ok_or(EchoDrop::Truncated)?;
        let (to, mut from) = (upper.header.source(), upper.header.destination());
        if !address::is_unicast(to) {
            return Err(EchoDrop::BadSource);
        }
        let own = self.tables.interfaces.addresses(packet.rx, cx.pass);
        let hop_limit = own.and_then(|own| own.hop_limit).unwrap_or(super::HOP_LIMIT);
        if address::is_multicast(from) {
            from = own.and_then(|own| own.source6(to)).ok_or(EchoDrop::NoAddress)?;
        }
        // Extension headers are not sent back.
        if !packet.pull(upper.offset - Ip6Header::LEN) {
            return Err(EchoDrop::Truncated);
        }
        let length = upper.length as u16;
        let outer = Ip6Header::new(from, to, IpProtocol::ICMP6, hop_limit, length);
        (icmp.kind, icmp.code) = (kind::ECHO_REPLY, 0);
        icmp.set_checksum(0);
        write(packet, &outer, &icmp).ok_or(EchoDrop::Truncated)?;
        let pseudo = Sum::pseudo6(from, to, IpProtocol::ICMP6, upper.length as u32);
        let sum =
            add_to_sum(pseudo, packet, Ip6Header::LEN, upper.length).ok_or(EchoDrop::Truncated)?;
        icmp.set_checksum(sum.checksum());
        write(packet, &outer, &icmp).ok_or(EchoDrop::Truncated)?;
        packet.become_own();
        cx.count(EchoDrop::Replied, 1);
        Ok(self.lookup)
    }
}

/// Write both headers to the start of the packet.
pub(super) fn write(packet: &mut Packet, outer: &Ip6Header, icmp: &Icmp6Header) -> Option<()> {
    let bytes = packet.bytes_mut();
    icmp.write(bytes.get_mut(Ip6Header::LEN..)?).ok()?;
    outer.write(bytes).ok()?;
    Some(())
}

impl Node for Echo {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.reply(cx, packet));
    }
}

/// The declaration.
pub(crate) fn spec(tables: &IpTables) -> NodeSpec {
    let tables = tables.clone();
    NodeSpec::new(nodes::ip6::ICMP_ECHO_REQUEST, "Answers pings to the router", move |wiring| {
        Box::new(Echo { tables: tables.clone(), lookup: wiring.node(nodes::ip6::LOOKUP) })
    })
    .reasons::<EchoDrop>()
    .describe(|record, names| {
        format!(
            "{}, reply to {}",
            quiver_forwarding::ip6::describe(record.bytes()),
            names.node(record.next)
        )
    })
}
