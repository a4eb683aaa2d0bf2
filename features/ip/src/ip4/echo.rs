//! `ip4-icmp-echo-request`: the request becomes the reply where it lies (RFC 1122 §3.2.2.6).

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_forwarding::nodes;
use quiver_wire::icmp4::{Icmp4Header, kind};
use quiver_wire::{Header, Ip4Header, checksum, ip4};

use super::icmp_input::message;

quiver_core::reasons! {
    /// What becomes of echo requests.
    pub enum EchoDrop {
        /// Not a whole message.
        Truncated = "truncated", "fewer bytes than an ICMP header";
        /// RFC 1122 §3.2.2.6 allows silence.
        ToGroup = "to-group", "an echo request to a broadcast or multicast address is not answered";
        /// Nobody to answer to.
        BadSource = "bad-source", "an echo request from an address that cannot be answered";
        /// Answered.
        Replied = info "replied", "echo replies sent";
    }
}

struct Echo {
    lookup: NodeId,
}

impl Echo {
    fn reply(&self, cx: &Context<'_>, packet: &mut Packet) -> Result<NodeId, EchoDrop> {
        let (header, offset, _) = message(packet).ok_or(EchoDrop::Truncated)?;
        let (source, destination) = (header.source(), header.destination());
        if packet.has(PacketFlags::L2_GROUP) || !ip4::address::is_unicast(destination) {
            return Err(EchoDrop::ToGroup);
        }
        if !ip4::address::is_unicast(source) {
            return Err(EchoDrop::BadSource);
        }
        let icmp = packet.bytes_mut().get_mut(offset..).and_then(Icmp4Header::overlay_mut);
        let icmp = icmp.ok_or(EchoDrop::Truncated)?;
        let (old, new) = ([icmp.kind, icmp.code], [kind::ECHO_REPLY, 0]);
        [icmp.kind, icmp.code] = new;
        let sum =
            checksum::update16(icmp.checksum(), u16::from_be_bytes(old), u16::from_be_bytes(new));
        icmp.set_checksum(sum);
        let header = Ip4Header::overlay_mut(packet.bytes_mut()).ok_or(EchoDrop::Truncated)?;
        header.set_source(destination);
        header.set_destination(source);
        header.set_ttl(super::TTL);
        super::fill_checksum(packet.bytes_mut());
        packet.become_own();
        cx.count(EchoDrop::Replied, 1);
        Ok(self.lookup)
    }
}

impl Node for Echo {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.reply(cx, packet));
    }
}

/// The declaration.
pub(crate) fn spec() -> NodeSpec {
    NodeSpec::new(nodes::ip4::ICMP_ECHO_REQUEST, "Answers pings to the router", |wiring| {
        Box::new(Echo { lookup: wiring.node(nodes::ip4::LOOKUP) })
    })
    .reasons::<EchoDrop>()
    .describe(|record, names| {
        format!(
            "{}, reply to {}",
            quiver_forwarding::ip4::describe(record.bytes()),
            names.node(record.next)
        )
    })
}
