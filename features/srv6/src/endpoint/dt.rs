//! End.DT4, End.DT6 and End.DT46 (RFC 8986 §4.6 to §4.8): the inner packet is looked up in a table that the SID
//! names.

use std::sync::Arc;

use quiver_control::{Args, Refusal};
use quiver_core::cpu::Variant;
use quiver_core::node::NodeSpec;
use quiver_core::stage::{LookUp, Tally};
use quiver_core::{Context, Engine, InterfaceId, NodeId, Packet};
use quiver_tables::fib::Family;
use quiver_tables::ip::{Ip4, Ip6, NOT_ENABLED, choose};
use quiver_tables::{CountedLines, GroupId};
use quiver_wire::{Header, Ip4Header, Ip6Header, IpProtocol};

use super::closer;
use super::inside::inside_if_plain;
use super::line::{Line, Parts};
use super::reasons::{Bad, LocalSidDrop};
use super::tables_held::TablesHeld;
use super::ways::Ways;
use crate::local_sids::{Behavior, Held, Kind, Place, Shown};

/// The node.
pub(crate) const NODE: &str = "sr-localsid-dt";

/// The control side.
#[derive(Debug)]
struct EndDt {
    name: &'static str,
    families: &'static [Family],
    /// The operator's number.
    table: u32,
    held: TablesHeld,
}

impl Behavior for EndDt {
    fn words(&self, _: &Shown<'_>) -> String {
        format!("{} {}", self.name, self.table)
    }

    fn hold(&mut self, engine: &mut Engine, _: Place) -> Result<Held, Refusal> {
        let node = engine.node_id(NODE).ok_or_else(|| Refusal::new("the node of End.DT4 is not built in"))?;
        let mut parts = Parts { six: NOT_ENABLED, four: NOT_ENABLED, ..Parts::default() };
        for family in self.families {
            let table = self.held.hold(engine, *family, self.table)?;
            match family {
                Family::Ip4 => parts.four = table,
                Family::Ip6 => parts.six = table,
            }
        }
        Ok(Held { node, words: parts.words() })
    }

    fn release(&mut self, engine: &mut Engine) {
        self.held.release(engine);
    }
}

/// `sr-localsid-dt`: the key is the inner destination.
pub struct DecapsulateLookUp {
    ways: Ways,
    /// The nodes by which packets leave the router straight.
    leaving: [NodeId; 2],
}

/// The inner destination, where the inner packet begins, and in which table it is looked up.
#[derive(Clone, Copy, Default)]
pub struct Key {
    address: u128,
    table: u32,
    /// Bytes from the outer header; 0 for packets that must be looked at closer.
    at: u16,
    four: bool,
}

/// Keys that are looked up at a time.
const KEYS_AT_A_TIME: usize = 64;

impl DecapsulateLookUp {
    /// All keys of one family and table are looked up together.
    #[inline(always)]
    fn find_some(&self, variant: Variant, keys: &[Key], found: &mut [GroupId]) {
        let tables = &self.ways.tables;
        let first = keys.iter().find(|key| key.at != 0).copied().unwrap_or_default();
        let mut differ = 0;
        for key in keys {
            let other = (key.table ^ first.table) | u32::from(key.four ^ first.four);
            differ |= if key.at == 0 { 0 } else { other };
        }
        if differ != 0 {
            return keys.iter().zip(found).for_each(|(key, found)| {
                *found = match key.four {
                    true => tables.ip4.table(key.table).lookup(key.address as u32),
                    false => tables.ip6.table(key.table).lookup(key.address),
                };
            });
        }
        if first.four {
            let mut addresses = [0; KEYS_AT_A_TIME];
            keys.iter().zip(&mut addresses).for_each(|(key, address)| *address = key.address as u32);
            let addresses = addresses.get(..keys.len()).unwrap_or_default();
            tables.ip4.table(first.table).lookup_slice(variant, addresses, found);
        } else {
            let mut addresses = [0; KEYS_AT_A_TIME];
            keys.iter().zip(&mut addresses).for_each(|(key, address)| *address = key.address);
            let addresses = addresses.get(..keys.len()).unwrap_or_default();
            tables.ip6.table(first.table).lookup_slice(variant, addresses, found);
        }
    }

    /// The inner packet goes on. If it does not leave straight, the router itself may have to answer its sender, who
    /// is behind the table: then it came in by an interface of that table.
    #[inline(always)]
    fn on(&self, next: NodeId, family: Family, table: u32, packet: &mut Packet) -> NodeId {
        if !self.leaving.contains(&next) {
            self.say_by(family, table, packet);
        }
        next
    }

    #[cold]
    #[inline(never)]
    fn say_by(&self, family: Family, table: u32, packet: &mut Packet) {
        let speaker = self.ways.tables.interfaces.speaker(family, table);
        if speaker != InterfaceId::NONE {
            let _ = packet.take_carried();
            packet.rx = speaker;
        }
    }

    #[cold]
    #[inline(never)]
    fn closer(&self, tally: Tally<'_>, packet: &mut Packet) -> Result<NodeId, LocalSidDrop> {
        let (line, bytes) = (Line(self.ways.lines.line(packet.index)), packet.length());
        let outcome = self.closer_still(tally, line, packet);
        self.ways.settle(tally, line.0, outcome, bytes, packet)
    }

    fn closer_still(&self, tally: Tally<'_>, line: Line<'_>, packet: &mut Packet) -> Result<NodeId, Bad> {
        let (upper, bytes) = (closer::last(packet)?, packet.length());
        if upper.is_inner(IpProtocol::IPV4) && line.four() != NOT_ENABLED {
            self.ways.expose4(upper.at, packet)?;
            self.ways.good(line.0, bytes);
            let next = self.ways.look_up4(line.four(), packet);
            return Ok(self.on(next, Family::Ip4, line.four(), packet));
        }
        if upper.is_inner(IpProtocol::IPV6) && line.six() != NOT_ENABLED {
            self.ways.expose6(upper.at, packet)?;
            self.ways.good(line.0, bytes);
            let next = self.ways.look_up6(line.six(), packet);
            return Ok(self.on(next, Family::Ip6, line.six(), packet));
        }
        self.ways.upper(tally, line, upper, packet)
    }
}

impl LookUp for DecapsulateLookUp {
    const NAME: &'static str = NODE;
    const SORTS: bool = true;
    type Reason = LocalSidDrop;
    type Key = Key;
    type Found = GroupId;
    type Common = ();

    fn common(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline(always)]
    fn key(&self, (): (), packet: &Packet) -> Key {
        let inside = inside_if_plain(packet);
        let line = Line(self.ways.lines.line(packet.index));
        let bytes = packet.bytes().get(inside.at..).unwrap_or_default();
        let at = inside.at as u16;
        let (four, table, address) = if inside.protocol == IpProtocol::IPV4 {
            let address = Ip4Header::overlay(bytes).map(|header| header.destination_bits().into());
            (true, line.four(), address)
        } else if inside.protocol == IpProtocol::IPV6 {
            (false, line.six(), Ip6Header::overlay(bytes).map(Ip6Header::destination_bits))
        } else {
            (false, NOT_ENABLED, None)
        };
        match address {
            Some(address) if table != NOT_ENABLED => Key { address, table, at, four },
            _ => Key::default(),
        }
    }

    #[inline(always)]
    fn find(&self, variant: Variant, (): (), keys: &[Key], found: &mut [GroupId]) {
        for (keys, found) in keys.chunks(KEYS_AT_A_TIME).zip(found.chunks_mut(KEYS_AT_A_TIME)) {
            self.find_some(variant, keys, found);
        }
    }

    #[inline(always)]
    fn settle(
        &self,
        tally: Tally<'_>,
        (): (),
        key: Key,
        found: GroupId,
        packet: &mut Packet,
    ) -> Result<NodeId, LocalSidDrop> {
        if key.at == 0 {
            return self.closer(tally, packet);
        }
        let (line, bytes) = (Line(self.ways.lines.line(packet.index)), packet.length());
        let at = usize::from(key.at);
        let outcome = if key.four { self.ways.expose4(at, packet) } else { self.ways.expose6(at, packet) };
        if let Err(bad) = outcome {
            return self.ways.settle(tally, line.0, Err(bad), bytes, packet);
        }
        self.ways.good(line.0, bytes);
        let groups = &self.ways.tables.groups;
        let next = match key.four {
            true => choose::<Ip4>(groups, found, packet),
            false => choose::<Ip6>(groups, found, packet),
        };
        let family = if key.four { Family::Ip4 } else { Family::Ip6 };
        Ok(self.on(next, family, key.table, packet))
    }
}

/// The declaration of the node.
pub(crate) fn spec(lines: &Arc<CountedLines>) -> NodeSpec {
    let lines = lines.clone();
    NodeSpec::look_up("End.DT4, End.DT6, End.DT46: inner packets by a table", move |wiring| {
        for name in ["ip4-rewrite", "ip4-arp", "ip4-glean", "ip4-local", "ip4-drop", "ip6-glean"] {
            wiring.node(name);
        }
        let leaving = [wiring.node("ip4-rewrite"), wiring.node("ip6-rewrite")];
        DecapsulateLookUp { ways: Ways::new(wiring, &lines), leaving }
    })
    .describe(super::words::record)
}

fn make(
    args: &Args<'_>,
    name: &'static str,
    families: &'static [Family],
) -> Result<Box<dyn Behavior>, Refusal> {
    Ok(Box::new(EndDt { name, families, table: args.get("table")?, held: TablesHeld::default() }))
}

fn make4(_: &mut Engine, args: &Args<'_>) -> Result<Box<dyn Behavior>, Refusal> {
    make(args, "end.dt4", &[Family::Ip4])
}

fn make6(_: &mut Engine, args: &Args<'_>) -> Result<Box<dyn Behavior>, Refusal> {
    make(args, "end.dt6", &[Family::Ip6])
}

fn make46(_: &mut Engine, args: &Args<'_>) -> Result<Box<dyn Behavior>, Refusal> {
    make(args, "end.dt46", &[Family::Ip4, Family::Ip6])
}

/// What the command knows.
pub(crate) const KINDS: [Kind; 3] = [
    Kind {
        name: "end.dt4",
        syntax: "<table:u32>",
        help: "inner IPv4 packets by the routes of this table",
        words: &[],
        example: "end.dt4 0",
        make: make4,
    },
    Kind {
        name: "end.dt6",
        syntax: "<table:u32>",
        help: "inner IPv6 packets by the routes of this table",
        words: &[],
        example: "end.dt6 0",
        make: make6,
    },
    Kind {
        name: "end.dt46",
        syntax: "<table:u32>",
        help: "inner IPv4 and IPv6 packets by the routes of the tables of this number",
        words: &[],
        example: "end.dt46 0",
        make: make46,
    },
];
