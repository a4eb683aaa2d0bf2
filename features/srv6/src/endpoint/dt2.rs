//! End.DT2U (RFC 8986 §4.11): the inner frame comes into the bridge domain of a layer 2 tunnel as
//! if received on it: its source is learned there, its destination looked up. End.DT2M (§4.12): it
//! is flooded in that domain, but for ports that the SID's argument excludes. Nothing goes back
//! into the core: tunnels are in one split-horizon group.

use std::net::Ipv6Addr;
use std::sync::Arc;

use quiver_control::{Args, Refusal};
use quiver_core::graph::arc::DEVICE_INPUT;
use quiver_core::graph::node::{DROP, NodeSpec};
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, Engine, InterfaceId, NodeId, Packet};
use quiver_encap::decapsulated::take_off;
use quiver_tables::CountedLines;
use quiver_tables::mac::FloodRequest;
use quiver_wire::{EthernetHeader, Header, Ip6Header};

use super::dt2_sources::{SOURCES_MAX, SharedSids, Sources};
use super::inner_frame::{self, SendsInner};
use super::next_nodes::NextNodes;
use super::reasons::{Bad, LocalSidDrop};
use super::sid_entry::{SidEntry, SidEntryRef};
use crate::l2_tunnel::Tunnels;
use crate::local_sids::{Behavior, Held, Kind, Names, Place};

/// The nodes of End.DT2U and End.DT2M.
pub(crate) const NODE_U: &str = "sr-localsid-dt2u";
pub(crate) const NODE_M: &str = "sr-localsid-dt2m";
/// Bits of an argument at most.
const ARGUMENT_BITS_MAX: u8 = 32;

/// Where Arg.FE2 stands in a SID (RFC 9252 §6.3): behind the SID's prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Argument {
    /// Bits of it; 0 when there is none.
    bits: u8,
    /// Bits behind it.
    behind: u8,
}

impl Argument {
    /// Behind a prefix of so many bits: `bits` of what is left, or, without that, all of it.
    fn behind_prefix(prefix_bits: u8, bits: Option<u8>) -> Result<Argument, Refusal> {
        let left = 128 - prefix_bits.min(128);
        let bits = bits.unwrap_or(left);
        if bits > left {
            let what = format!(
                "behind a prefix of {prefix_bits} bits is no room for {bits} bits of argument"
            );
            return Err(Refusal::new(what).remedy("give the SID a shorter prefix"));
        }
        if bits > ARGUMENT_BITS_MAX {
            let what = format!("an argument of {bits} bits is longer than {ARGUMENT_BITS_MAX}");
            return Err(Refusal::new(what).remedy("say how many bits it has with `arg-fe2`"));
        }
        Ok(Argument { bits, behind: left - bits })
    }

    /// As a line has it.
    fn word(self) -> u32 {
        u32::from(self.bits) << 8 | u32::from(self.behind)
    }

    /// What the argument of an address is, by that word.
    #[inline(always)]
    fn read(word: u32, address: u128) -> u32 {
        let (bits, behind) = (word >> 8 & 0x3f, word & 0x7f);
        let mask = (1u64 << bits) - 1;
        (address >> behind) as u32 & mask as u32
    }
}

/// The split-horizon group that an argument excludes: that of the same number; 0 excludes none, and
/// there is none above 255.
#[inline(always)]
fn excluded(argument: u32) -> u8 {
    u8::try_from(argument).unwrap_or(0)
}

/// The control side of both.
#[derive(Debug)]
struct EndDt2 {
    tunnel: InterfaceId,
    /// The tunnels that frames of some sources come by instead.
    others: Vec<(Ipv6Addr, InterfaceId)>,
    /// The number of the SID among those that several remotes send to; 0 when it is none.
    shared: u32,
    /// End.DT2M: the bits of its argument, if they were said.
    many: Option<Option<u8>>,
}

impl Behavior for EndDt2 {
    fn words(&self, names: &Names<'_>) -> String {
        let tunnel = names.engine.interface_name(self.tunnel);
        let words = match self.many {
            None => format!("end.dt2u {tunnel}"),
            Some(None) => format!("end.dt2m {tunnel}"),
            Some(Some(bits)) => format!("end.dt2m {tunnel} arg-fe2 {bits}"),
        };
        let other = |words: String, (source, tunnel): &(Ipv6Addr, InterfaceId)| {
            words + &format!(" from {source} {}", names.engine.interface_name(*tunnel))
        };
        self.others.iter().fold(words, other)
    }

    fn hold(&mut self, engine: &mut Engine, place: Place) -> Result<Held, Refusal> {
        let (name, argument) = match self.many {
            None => (NODE_U, Argument::default()),
            Some(bits) => (NODE_M, Argument::behind_prefix(place.prefix.len(), bits)?),
        };
        let node = engine.node_id(name).ok_or_else(|| Refusal::new(format!("no node {name}")))?;
        if !self.others.is_empty() {
            let sources =
                self.others.iter().map(|(source, tunnel)| (source.to_bits(), *tunnel)).collect();
            self.shared = engine.with(|_, shared: &mut SharedSids| shared.add(sources))?;
        }
        let entry = SidEntry {
            six: self.shared,
            interface: self.tunnel.0,
            argument: argument.word(),
            ..SidEntry::default()
        };
        Ok(Held { node, words: entry.words() })
    }

    fn release(&mut self, engine: &mut Engine) {
        if self.shared != 0 {
            engine.with(|_, shared: &mut SharedSids| shared.remove(self.shared));
        }
    }

    fn names(&self, interface: InterfaceId) -> bool {
        self.tunnel == interface || self.others.iter().any(|(_, tunnel)| *tunnel == interface)
    }
}

/// `sr-localsid-dt2u`, and `sr-localsid-dt2m` (`MANY`): a packet's part of it.
pub struct DecapsulateToBridge<const MANY: bool> {
    next_nodes: NextNodes,
    /// The general entry of bridge domains, and that of frames to be flooded.
    entries: [NodeId; 2],
    sources: Arc<Sources>,
}

impl<const MANY: bool> SendsInner for DecapsulateToBridge<MANY> {
    /// The inner frame is received on the tunnel.
    #[inline(always)]
    fn send_inner(
        &self,
        context: StageContext<'_>,
        line: SidEntryRef<'_>,
        at: usize,
        packet: &mut Packet,
    ) -> Result<NodeId, Bad> {
        let came = packet.on_wire();
        let outer = Ip6Header::overlay(packet.bytes()).ok_or(LocalSidDrop::Truncated)?;
        let flooded = if MANY {
            let argument = Argument::read(line.argument(), outer.destination_bits());
            Some(FloodRequest { excluded: excluded(argument) })
        } else {
            None
        };
        let tunnel = match line.six() {
            0 => line.interface(),
            number => {
                let found = self.sources.find(number, outer.source_bits(), context.pass());
                found.unwrap_or_else(|| line.interface())
            }
        };
        take_off(packet, at)?;
        if packet.segment_length() < EthernetHeader::LEN {
            return Err(LocalSidDrop::InnerWrong.into());
        }
        let row = context.interface(tunnel).ok_or(LocalSidDrop::NotConfigured)?;
        if !row.up {
            return Err(LocalSidDrop::InterfaceDown.into());
        }
        if !packet.turn() {
            return Err(LocalSidDrop::Loop.into());
        }
        self.next_nodes.good_on_wire(line.0, came);
        let counters = context.interface_counters(tunnel);
        let (packets, bytes) = packet.on_wire();
        counters.rx_packets.add(packets);
        counters.rx_bytes.add(bytes);
        packet.rx = tunnel;
        match flooded {
            Some(request) => packet.hand_over(request),
            None => packet.hand_over_nothing(),
        }
        packet.l2_bytes = 0;
        packet.clear(PacketFlags::L2_GROUP.union(PacketFlags::NOTED));
        packet.arc_restart();
        let next = row.first(DEVICE_INPUT, row.input);
        let [general, flood] = self.entries;
        Ok(if MANY && next == general { flood } else { next })
    }
}

impl<const MANY: bool> Stage for DecapsulateToBridge<MANY> {
    const NAME: &'static str = if MANY { NODE_M } else { NODE_U };
    const SORTS: bool = true;
    const LOOKS_BEHIND: bool = true;
    type Reason = LocalSidDrop;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    fn ahead(&self, packet: &Packet) {
        self.next_nodes.prefetch_entry(packet);
    }

    #[inline(always)]
    fn decide(
        &self,
        context: StageContext<'_>,
        (): (),
        packet: &mut Packet,
    ) -> Result<NodeId, LocalSidDrop> {
        inner_frame::decide(self, &self.next_nodes, context, packet)
    }
}

/// The declaration of a node.
pub(crate) fn spec<const MANY: bool>(
    lines: &Arc<CountedLines>,
    sources: &Arc<Sources>,
) -> NodeSpec {
    let (lines, sources) = (lines.clone(), sources.clone());
    let help = match MANY {
        true => "End.DT2M: inner frames are flooded in the bridge domain of a tunnel",
        false => "End.DT2U: inner frames come into the bridge domain of a tunnel",
    };
    NodeSpec::stage(help, move |wiring| DecapsulateToBridge::<MANY> {
        next_nodes: NextNodes::new(wiring, &lines),
        entries: ["l2-input", "l2-flood-input"]
            .map(|name| wiring.node_if_built(name).unwrap_or(DROP)),
        sources: sources.clone(),
    })
    .takes_offloads()
    .describe(|record, names| {
        let (bytes, rx, next) =
            (record.packet_bytes, names.interface(record.rx), names.node(record.next));
        let excluded = record.handed_over_if().map_or(0, |FloodRequest { excluded }| excluded);
        let but = match excluded {
            0 => String::new(),
            group => format!(", not for split-horizon group {group}"),
        };
        format!("a frame of {bytes} bytes, received on {rx}{but}; to {next}")
    })
}

/// The tunnel that a command names by this argument.
fn tunnel(engine: &Engine, args: &Args<'_>, name: &str) -> Result<InterfaceId, Refusal> {
    let id = args.interface(engine, name)?;
    if engine.get::<Tunnels>().is_some_and(|tunnels| tunnels.has(id)) {
        return Ok(id);
    }
    let what = format!("{} is no layer 2 tunnel", engine.interface_name(id));
    Err(args.refuse(name, what).remedy("`create sr l2-tunnel` makes one"))
}

fn make(
    engine: &Engine,
    args: &Args<'_>,
    many: Option<Option<u8>>,
) -> Result<Box<dyn Behavior>, Refusal> {
    let mut others: Vec<(Ipv6Addr, InterfaceId)> = Vec::new();
    for other in args.groups("from") {
        let source: Ipv6Addr = other.get("source")?;
        if others.len() == SOURCES_MAX {
            let what = format!("more than {SOURCES_MAX} remotes beside all others");
            return Err(other.refuse("source", what).remedy("give some of them another SID"));
        }
        if others.iter().any(|(known, _)| *known == source) {
            return Err(other.refuse("source", format!("{source} stands there twice")));
        }
        others.push((source, tunnel(engine, &other, "by")?));
    }
    Ok(Box::new(EndDt2 { tunnel: tunnel(engine, args, "interface")?, others, shared: 0, many }))
}

fn make_u(engine: &mut Engine, args: &Args<'_>) -> Result<Box<dyn Behavior>, Refusal> {
    make(engine, args, None)
}

fn make_m(engine: &mut Engine, args: &Args<'_>) -> Result<Box<dyn Behavior>, Refusal> {
    make(engine, args, Some(args.optional("arg-fe2")?))
}

/// What the command knows.
pub(crate) const KINDS: [Kind; 2] = [
    Kind {
        name: "end.dt2u",
        syntax: "<interface> [(from <source:ip6> <by:interface>)...]",
        help: "inner frames come into the bridge domain of this layer 2 tunnel (`create sr \
               l2-tunnel`), as if received on it",
        words: &[(
            "from",
            "packets from this outer source bring frames of another tunnel: for a SID that several \
             remotes send to",
        )],
        example: "end.dt2u sr_l2_tunnel0",
        make: make_u,
    },
    Kind {
        name: "end.dt2m",
        syntax: "<interface> [arg-fe2 <arg-fe2:1-32>] [(from <source:ip6> <by:interface>)...]",
        help: "inner frames are flooded in the bridge domain of this layer 2 tunnel, but not to \
               the tunnels there, nor to ports of the split-horizon group whose number is the \
               SID's argument: as many bits behind the prefix as arg-fe2 says, or all",
        words: &[(
            "arg-fe2",
            "bits of the argument behind the SID's prefix (Arg.FE2, RFC 8986 §4.12)",
        )],
        example: "end.dt2m sr_l2_tunnel0",
        make: make_m,
    },
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_argument_is_read_where_it_stands_behind_the_prefix(
            prefix in 1u8..=128, bits in 0u8..=32, address: u128
        ) {
            match Argument::behind_prefix(prefix, Some(bits)) {
                Ok(argument) => {
                    let text = format!("{address:0128b}");
                    let own = &text[usize::from(prefix)..usize::from(prefix + bits)];
                    let expected = u32::from_str_radix(own, 2).unwrap_or(0);
                    prop_assert_eq!(Argument::read(argument.word(), address), expected);
                }
                Err(_) => prop_assert!(prefix + bits > 128),
            }
        }
    }

    #[test]
    fn without_a_length_the_argument_is_all_that_is_behind_the_prefix() {
        assert_eq!(Argument::behind_prefix(112, None).unwrap(), Argument { bits: 16, behind: 0 });
        assert_eq!(Argument::behind_prefix(128, None).unwrap(), Argument { bits: 0, behind: 0 });
        assert_eq!(
            Argument::behind_prefix(64, Some(16)).unwrap(),
            Argument { bits: 16, behind: 48 }
        );
        assert!(Argument::behind_prefix(64, None).is_err());
        assert_eq!([0, 5, 255, 256, u32::MAX].map(excluded), [0, 5, 255, 0, 0]);
    }
}
