//! `arp-term-l2bd`: questions for addresses that the domain knows are answered here and not
//! flooded: ARP requests (RFC 826) and neighbour solicitations (RFC 4861 §7.2). Where `arp-ufwd` is
//! on, other ARP frames to all go on to `l2-uu-fwd`.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use quiver_core::graph::node::{DROP, Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_wire::arp::{self, ArpHeader, Operation};
use quiver_wire::icmp6::nd::{self, Message, NdOption, NeighborFlags, Options};
use quiver_wire::icmp6::{self, kind};
use quiver_wire::ip6::address;
use quiver_wire::{EtherType, EthernetHeader, Header, Ip6Header, IpProtocol, MacAddress};

use crate::address::HEADER_BYTES;
use crate::nodes;
use crate::tables::{Domain, Port, Published};
use crate::uu_forward;

/// Bytes of a frame with an ARP packet.
const ARP_FRAME_BYTES: usize = HEADER_BYTES + ArpHeader::LEN;
/// Bytes of a frame with a neighbour advertisement and its option.
const ND_FRAME_BYTES: usize = HEADER_BYTES + Ip6Header::LEN + 32;

quiver_core::reasons! {
    /// What becomes of questions.
    pub enum AnswerDrop {
        /// The port left its domain.
        NotBridged = "not-bridged", "the interface left its bridge domain while the frame was \
            under way";
        /// Switched off.
        FloodOff = "flood-off", "frame to a group, and flooding is off (`set interface l2 flood`, \
            `set bridge-domain flood`)";
        /// Cannot be.
        NoReply = "no-reply", "no room for the answer";
        /// Answered.
        Arp = info "arp-replied", "ARP requests answered";
        /// Answered.
        Nd = info "nd-replied", "neighbour solicitations answered";
        /// To one port.
        ToOne = info "arp-to-uu-fwd", "ARP frames to all that went to the uu-fwd port alone";
        /// Not known.
        Unknown = info "not-known", "questions for addresses that the domain does not know, \
            flooded";
    }
}

/// The answer to a question, on its way back to who asked.
struct Answer {
    frame: [u8; ND_FRAME_BYTES],
    length: usize,
    counted: AnswerDrop,
}

struct Answers {
    published: Arc<Published>,
    flood: NodeId,
    uu_forward: NodeId,
}

impl Answers {
    fn decide(&self, cx: &mut Context<'_>, packet: &mut Packet) -> Result<NodeId, AnswerDrop> {
        let view = self.published.read(cx.pass);
        let port = *view.port(packet.rx).ok_or(AnswerDrop::NotBridged)?;
        let domain = view.domain(port.domain).ok_or(AnswerDrop::NotBridged)?;
        let question = if port.answer { Question::of(packet.bytes()) } else { None };
        let Some(question) = question else { return self.onward(cx, port, packet) };
        let Some(answer) = question.answer(domain) else {
            cx.count(AnswerDrop::Unknown, 1);
            return self.onward(cx, port, packet);
        };
        let back = domain
            .members
            .iter()
            .chain(&domain.uu_forward)
            .find(|member| member.interface == packet.rx);
        let back = back.ok_or(AnswerDrop::NotBridged)?.output;
        let bytes = answer.frame.get(..answer.length).unwrap_or_default();
        packet.truncate(0, cx.buffers);
        packet.become_own();
        if !packet.append(bytes, cx.buffers) {
            return Err(AnswerDrop::NoReply);
        }
        packet.tx = packet.rx;
        cx.count(answer.counted, 1);
        Ok(back)
    }

    /// A frame to a group that is not answered here.
    fn onward(&self, cx: &Context<'_>, port: Port, packet: &Packet) -> Result<NodeId, AnswerDrop> {
        let ether_type = EthernetHeader::overlay(packet.bytes()).map(EthernetHeader::ether_type);
        if port.arp_to_one && ether_type == Some(EtherType::ARP) {
            cx.count(AnswerDrop::ToOne, 1);
            return Ok(self.uu_forward);
        }
        if port.flood { Ok(self.flood) } else { Err(AnswerDrop::FloodOff) }
    }
}

/// Who asks for whom.
enum Question {
    Arp { from: MacAddress, request: arp::Repr },
    Nd { from: MacAddress, asker: Ipv6Addr, target: Ipv6Addr },
}

impl Question {
    /// The question that a frame is, if it is one.
    fn of(frame: &[u8]) -> Option<Question> {
        let ethernet = EthernetHeader::overlay(frame)?;
        let body = frame.get(HEADER_BYTES..)?;
        match ethernet.ether_type() {
            EtherType::ARP => {
                let (request, _) = arp::Repr::parse(body).ok()?;
                let asks = request.operation == Operation::Request;
                let honest =
                    request.sender_mac == ethernet.source && request.sender_ip != request.target_ip;
                (asks && honest).then_some(Question::Arp { from: ethernet.source, request })
            }
            EtherType::IPV6 => Question::of_ip6(ethernet.source, body),
            _ => None,
        }
    }

    fn of_ip6(from: MacAddress, body: &[u8]) -> Option<Question> {
        let header = Ip6Header::overlay(body)?;
        if header.next_header() != IpProtocol::ICMP6 {
            return None;
        }
        let (asker, to) = (header.source(), header.destination());
        let rest = body.get(Ip6Header::LEN..)?.get(..usize::from(header.payload_length()))?;
        if *rest.first()? != kind::NEIGHBOR_SOLICITATION || !icmp6::is_good(asker, to, rest) {
            return None;
        }
        let icmp6::Message::Nd(message) = icmp6::Message::parse(asker, to, rest).ok()? else {
            return None;
        };
        message.check(asker, to, header.hop_limit()).ok()?;
        let Message::NeighborSolicitation { target, .. } = message else { return None };
        Some(Question::Nd { from, asker, target })
    }

    /// The answer, when the domain knows it and it is not the asker's own address: who looks
    /// whether somebody has its address must not hear that somebody has.
    fn answer(&self, domain: &Domain) -> Option<Answer> {
        let (target, from) = match self {
            Question::Arp { request, from } => (IpAddr::V4(request.target_ip), *from),
            Question::Nd { target, from, .. } => (IpAddr::V6(*target), *from),
        };
        let mac = *domain.stations.get(&target)?;
        if mac == from {
            return None;
        }
        let mut frame = [0; ND_FRAME_BYTES];
        match self {
            Question::Arp { request, .. } => {
                EthernetHeader::new(from, mac, EtherType::ARP).write(&mut frame).ok()?;
                request.reply(mac).emit(frame.get_mut(HEADER_BYTES..)?).ok()?;
                Some(Answer { frame, length: ARP_FRAME_BYTES, counted: AnswerDrop::Arp })
            }
            Question::Nd { asker, target, .. } => advertise(frame, mac, from, *asker, *target),
        }
    }
}

/// The neighbour advertisement that the target would send (RFC 4861 §7.2.4).
fn advertise(
    mut frame: [u8; ND_FRAME_BYTES],
    mac: MacAddress,
    from: MacAddress,
    asker: Ipv6Addr,
    target: Ipv6Addr,
) -> Option<Answer> {
    let probes = address::is_unspecified(asker);
    let (to, to_mac) = match probes {
        true => (address::ALL_NODES, MacAddress::for_ip6_multicast(address::ALL_NODES)),
        false => (asker, from),
    };
    let mut flags = NeighborFlags::OVERRIDE;
    if !probes {
        flags = flags.with(NeighborFlags::SOLICITED);
    }
    let mut option = [0; 8];
    NdOption::TargetMac(mac).emit(&mut option).ok()?;
    let options = Options::new(&option).ok()?;
    let message = icmp6::Message::Nd(Message::NeighborAdvertisement { flags, target, options });
    let body = HEADER_BYTES + Ip6Header::LEN;
    let length = message.emit(target, to, frame.get_mut(body..)?).ok()?;
    EthernetHeader::new(to_mac, mac, EtherType::IPV6).write(&mut frame).ok()?;
    let header = Ip6Header::new(target, to, IpProtocol::ICMP6, nd::HOP_LIMIT, length as u16);
    header.write(frame.get_mut(HEADER_BYTES..)?).ok()?;
    Some(Answer { frame, length: body + length, counted: AnswerDrop::Nd })
}

impl Node for Answers {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.decide(cx, packet));
    }
}

pub(crate) fn spec(published: &Arc<Published>) -> NodeSpec {
    let published = published.clone();
    NodeSpec::new(
        nodes::ARP_TERMINATION,
        "Answers questions for addresses that the domain knows",
        move |wiring| {
            let (flood, uu_forward) = (wiring.node(nodes::FLOOD), wiring.node(uu_forward::NODE));
            Box::new(Answers { published: published.clone(), flood, uu_forward })
        },
    )
    .takes_offloads()
    .reasons::<AnswerDrop>()
    .describe(|record, names| {
        let frame = crate::description::frame(record);
        match record.next {
            DROP => format!("{frame}: dropped"),
            next if [nodes::FLOOD, uu_forward::NODE].contains(&names.node(next).as_str()) => {
                format!("{frame}: not answered here; to {}", names.node(next))
            }
            _ => format!("{frame}: the answer, to {}", names.interface(record.tx)),
        }
    })
}
