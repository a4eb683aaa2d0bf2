//! `linux-cp-punt`: frames and packets that Linux deals with go to the twin of the interface that
//! received them, without tags, with the Ethernet header that they came with.

use std::sync::Arc;

use quiver_core::graph::interface::InterfaceRow;
use quiver_core::graph::node::{Node, NodeSpec, Reason, ReasonText};
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_wire::{EtherType, EthernetHeader, Header, MacAddress};

use crate::classes::{CLASSES, Class, Limits, Policers};
use crate::from_host::TAGS_AT;
use crate::twins::{Crossing, Other, Published, Twins};

/// The node's name.
pub(crate) const NAME: &str = "linux-cp-punt";

/// What becomes of packets for Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToHostEvent {
    /// Dropped: the pair was deleted meanwhile.
    NoPair,
    /// Dropped: neither IP nor a frame, or no IP for a twin that takes nothing else.
    NoHeader,
    /// Dropped: more of the class than may pass.
    Policed(Class),
    /// Sent.
    Passed(Class),
}

/// Why packets die whatever they are for.
const DROPS: [ReasonText; 2] = [
    ReasonText::error("no-pair", "the pair was deleted while the packet was under way"),
    ReasonText::error(
        "no-header",
        "the packet has no Ethernet header, and is no IP packet that one could be made for",
    ),
];

impl Reason for ToHostEvent {
    const ALL: &'static [ReasonText] = &{
        let mut all = [DROPS[0]; DROPS.len() + 2 * CLASSES];
        let (drops, classes) = all.split_at_mut(DROPS.len());
        let (policed, passed) = classes.split_at_mut(CLASSES);
        drops.copy_from_slice(&DROPS);
        policed.copy_from_slice(&Class::POLICED);
        passed.copy_from_slice(&Class::PASSED);
        all
    };

    #[inline(always)]
    fn number(self) -> u16 {
        let number = match self {
            ToHostEvent::NoPair => 0,
            ToHostEvent::NoHeader => 1,
            ToHostEvent::Policed(class) => DROPS.len() + class as usize,
            ToHostEvent::Passed(class) => DROPS.len() + CLASSES + class as usize,
        };
        number as u16
    }
}

struct ToHost {
    twins: Arc<Published>,
    limits: Arc<Limits>,
    policers: Policers,
}

/// The protocol of a packet that begins with its IP header.
fn ip_type(packet: &Packet) -> Option<EtherType> {
    match packet.bytes().first()? >> 4 {
        4 => Some(EtherType::IPV4),
        6 => Some(EtherType::IPV6),
        _ => None,
    }
}

/// Has the frame, whose header of `header_bytes` stands in front of it again, addresses with which
/// it came by this interface?
fn is_addressed(packet: &Packet, row: &InterfaceRow) -> bool {
    let to = packet.bytes().first_chunk::<6>();
    to.is_some_and(|to| {
        to[0] & 1 == 1 || *to == row.mac || row.promiscuous || row.virtual_macs.contains(to)
    })
}

/// The packet gets the header back that it came with, with or without tags; false when that is not
/// there any more: the packet was put together of fragments, or came in another packet.
fn take_header_back(packet: &mut Packet, row: &InterfaceRow, keeps_tags: bool) -> bool {
    let header_bytes = usize::from(packet.l2_bytes);
    if header_bytes < EthernetHeader::LEN || !packet.push(header_bytes) {
        return false;
    }
    let tag_bytes = header_bytes - EthernetHeader::LEN;
    let is_whole = is_addressed(packet, row);
    // What was just put in front can be taken away again.
    let taken = match is_whole {
        true if keeps_tags => true,
        true => packet.remove(TAGS_AT, tag_bytes),
        false => packet.pull(header_bytes),
    };
    is_whole && taken
}

/// A header to the interface's own address, from nobody.
fn make_header(packet: &mut Packet, row: &InterfaceRow) -> Result<(), ToHostEvent> {
    let ether_type = ip_type(packet).ok_or(ToHostEvent::NoHeader)?;
    let header = EthernetHeader::new(MacAddress(row.mac), MacAddress::ZERO, ether_type);
    let is_written = packet.push(EthernetHeader::LEN) && header.write(packet.bytes_mut()).is_ok();
    if is_written { Ok(()) } else { Err(ToHostEvent::NoHeader) }
}

/// The packet becomes what its twin takes: the frame that it came as, or the IP packet. Returns
/// its class, and the node that sends it to the twin.
fn prepare(
    cx: &Context<'_>,
    twins: &Twins,
    packet: &mut Packet,
) -> Result<(Class, NodeId), ToHostEvent> {
    let Other { interface: twin, crossing } = twins.other(packet.rx).ok_or(ToHostEvent::NoPair)?;
    let row = cx.interface(packet.rx).ok_or(ToHostEvent::NoPair)?;
    let output = cx.interface(twin).ok_or(ToHostEvent::NoPair)?.output;
    let class = match crossing {
        Crossing::Frames => {
            if !take_header_back(packet, row, false) {
                make_header(packet, row)?;
            }
            Class::of(packet.bytes())
        }
        Crossing::Tagged => {
            if !take_header_back(packet, row, true) {
                make_header(packet, row)?;
                let is_tagged = packet.insert(TAGS_AT, row.encapsulation.bytes());
                is_tagged.then_some(()).ok_or(ToHostEvent::NoHeader)?;
            }
            Class::of(packet.bytes())
        }
        Crossing::Packets(_) => {
            ip_type(packet).ok_or(ToHostEvent::NoHeader)?;
            Class::of_packet(packet.bytes())
        }
    };
    packet.l2_bytes = 0;
    packet.tx = twin;
    packet.arc_restart();
    Ok((class, output))
}

impl Node for ToHost {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let twins = self.twins.read(cx.pass);
        let cx = &*cx;
        frame.route(|packet| {
            let (class, output) = prepare(cx, twins, packet)?;
            if !self.policers.passes(class, &self.limits, cx.now_ns) {
                return Err(ToHostEvent::Policed(class));
            }
            cx.count(ToHostEvent::Passed(class), 1);
            Ok(output)
        });
    }
}

/// The declaration.
pub(crate) fn spec(twins: &Arc<Published>, limits: &Arc<Limits>) -> NodeSpec {
    let (twins, limits) = (twins.clone(), limits.clone());
    NodeSpec::new(NAME, "Sends what Linux deals with to the twin of its interface", move |_| {
        let policers = Policers::new(&limits);
        Box::new(ToHost { twins: twins.clone(), limits: limits.clone(), policers })
    })
    .reasons::<ToHostEvent>()
    .takes_offloads()
    .describe(|record, names| {
        format!(
            "{} bytes received on {}, to {}",
            record.packet_bytes,
            names.interface(record.rx),
            names.node(record.next)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_the_name_of_its_class() {
        let name = |event: ToHostEvent| ToHostEvent::ALL[usize::from(event.number())].name;
        assert_eq!(name(ToHostEvent::NoPair), "no-pair");
        assert_eq!(name(ToHostEvent::NoHeader), "no-header");
        for class in Class::ALL {
            assert_eq!(name(ToHostEvent::Passed(class)), class.word());
            assert_eq!(name(ToHostEvent::Policed(class)), format!("{}-policed", class.word()));
        }
        let mut names: Vec<_> = ToHostEvent::ALL.iter().map(|reason| reason.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ToHostEvent::ALL.len());
    }
}
