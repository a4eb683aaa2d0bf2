//! ICMP errors by the session of the packet that they quote (RFC 6146 §3.5, RFC 7915 §4.2, §5.2),
//! those of the router itself among them.
//!
//! The router makes errors about packets that it has translated already (the link behind takes no
//! packets so long). Of IPv4 they come from `ip4-icmp-error` ([`own_errors`]); of IPv6 their
//! destination is behind the prefix, whose route leads to `nat64-prefix`.

use std::sync::Arc;

use quiver_core::graph::node::{Never, Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_forwarding::handover::TableIndex;
use quiver_translation::own_errors::{self, NAT64};
use quiver_translation::versions::ends::Ports;
use quiver_translation::versions::error::{self, read_error4, read_error6};
use quiver_translation::versions::read::Kind;

use crate::reasons::Nat64Drop;
use crate::session::{Inside, Session, outside_key, protocol_of};
use crate::tables::{Rules, Shared};
use crate::translator::{HAIRPIN, SLOW_PATH, SlowRequest, Translator, outside_of};

/// The names of the nodes.
pub(crate) const OWN_ERRORS: &str = "nat64-own-errors";
pub(crate) const PREFIX: &str = "nat64-prefix";

/// Only packets with ports or an identifier have sessions.
fn check(kind: Kind) -> Result<(), Nat64Drop> {
    match kind {
        Kind::LostFragment => Err(Nat64Drop::InnerHasNoSession),
        _ => Ok(()),
    }
}

/// An ICMPv6 error about a packet that came from outside; where it goes.
pub(crate) fn to_outside(
    translator: &Translator,
    cx: &Context<'_>,
    packet: &mut Packet,
    rules: &Rules,
) -> Result<NodeId, Nat64Drop> {
    let read = read_error6(packet)?;
    check(read.inner.kind)?;
    let table = translator.tables.interfaces.table6(packet.rx);
    let (sessions, objects, _) = translator.shared.table().ok_or(Nat64Drop::NotEnabled)?;
    let inner = &read.inner;
    // The router's own errors may be about packets of another table than that they came in by.
    let tables = [table, 0].into_iter().chain(rules.prefixes.iter().filter_map(|r| r.tenant));
    let found = tables.into_iter().find_map(|table| {
        let rule = rules.prefix_of(table, inner.source)?;
        let remote = rule.prefix.extract(inner.source)?;
        let ports = Ports { source: inner.ports.destination, destination: inner.ports.source };
        let protocol = protocol_of(inner.protocol);
        let host = inner.destination;
        let inside = Inside { host, remote, ports, protocol, table, prefix: rule.number };
        let index = sessions.lookup(&inside.key())?;
        Some((Session(objects.get(index >> 1)), rule.prefix))
    });
    let (session, prefix) = found.ok_or(Nat64Drop::InnerHasNoSession)?;
    let outside = session.outside();
    // It must be for who sent the packet.
    if prefix.extract(read.outer.destination) != Some(outside.source.address) {
        return Err(Nat64Drop::InnerHasNoSession);
    }
    let ends = session.ends4();
    let inner = quiver_translation::versions::ends::Ends4 {
        source: ends.destination,
        destination: ends.source,
        ports: Ports { source: ends.ports.destination, destination: ends.ports.source },
    };
    // Who is between the host and this router has no address of IPv4: the host's counts.
    error::to4(packet, &read, (ends.source, ends.destination), &inner)?;
    cx.count(Nat64Drop::ErrorTranslated, 1);
    packet.hand_over(TableIndex(outside.table));
    let is_hairpin = rules.external.contains_key(&ends.destination);
    Ok(if is_hairpin { translator.hairpin } else { translator.lookup4 })
}

/// An ICMP error about a packet that came from inside; where it goes.
pub(crate) fn to_inside(
    translator: &Translator,
    cx: &Context<'_>,
    packet: &mut Packet,
    rules: &Rules,
) -> Result<NodeId, Nat64Drop> {
    let read = read_error4(packet)?;
    check(read.inner.kind)?;
    let flow = outside_of(&read.inner, rules.outside_table).reversed();
    let (sessions, objects, _) = translator.shared.table().ok_or(Nat64Drop::NotEnabled)?;
    let index = sessions.lookup(&outside_key(flow.key())).ok_or(Nat64Drop::InnerHasNoSession)?;
    let session = Session(objects.get(index >> 1));
    if read.outer.destination != flow.destination.address {
        return Err(Nat64Drop::InnerHasNoSession);
    }
    let inside = session.inside();
    let prefix = rules.prefix(inside.prefix).ok_or(Nat64Drop::InnerHasNoSession)?;
    let back = session.ends6(prefix);
    let inner = quiver_translation::versions::ends::Ends6 {
        source: back.destination,
        destination: back.source,
        ports: inside.ports,
    };
    let source = prefix.embed(read.outer.source);
    error::to6(packet, &read, (source, inside.host), &inner)?;
    cx.count(Nat64Drop::ErrorTranslated, 1);
    packet.hand_over(TableIndex(inside.table));
    Ok(translator.lookup6)
}

/// `nat64-own-errors`: ICMP errors of the router.
struct OwnErrors {
    translator: Translator,
    /// Where errors go that are about packets of no session.
    others: NodeId,
}

impl Node for OwnErrors {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| {
            let translator = &self.translator;
            if translator.shared.sessions() == 0 {
                return Ok::<_, Never>(self.others);
            }
            let rules = translator.shared.rules(cx.pass);
            Ok(to_inside(translator, cx, packet, rules).unwrap_or(self.others))
        });
    }
}

/// The declaration of `nat64-own-errors`.
pub(crate) fn spec_own(shared: &Arc<Shared>) -> NodeSpec {
    let shared = shared.clone();
    let help = "Translates ICMP errors of the router about packets that NAT64 has translated";
    NodeSpec::new(OWN_ERRORS, help, move |wiring| {
        Box::new(OwnErrors {
            translator: Translator::new(&shared, wiring),
            others: own_errors::next(wiring, NAT64),
        })
    })
    .reasons::<Nat64Drop>()
    .describe(|record, names| format!("to {}", names.node(record.next)))
}

/// `nat64-prefix`: what the router's routes lead to the prefix, ICMPv6 errors of its own.
struct Prefix {
    translator: Translator,
}

impl Node for Prefix {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| {
            let rules = self.translator.shared.rules(cx.pass);
            match to_outside(&self.translator, cx, packet, rules) {
                Err(Nat64Drop::NoCounterpart | Nat64Drop::Truncated) => Err(Nat64Drop::NotInside),
                translated => translated,
            }
        });
    }
}

/// The declaration of `nat64-prefix`.
pub(crate) fn spec_prefix(shared: &Arc<Shared>) -> NodeSpec {
    let shared = shared.clone();
    let help = "Translates ICMPv6 errors of the router about packets that NAT64 has translated";
    NodeSpec::new(PREFIX, help, move |wiring| {
        Box::new(Prefix { translator: Translator::new(&shared, wiring) })
    })
    .reasons::<Nat64Drop>()
    .describe(|record, names| format!("to {}", names.node(record.next)))
}

/// `nat64-hairpin`: packets between two hosts inside, translated once already (RFC 6146 §3.8).
struct Hairpin {
    translator: Translator,
    slow: NodeId,
}

impl Hairpin {
    fn decide(&self, cx: &Context<'_>, packet: &mut Packet) -> Result<NodeId, Nat64Drop> {
        let translator = &self.translator;
        let rules = translator.shared.rules(cx.pass);
        let read = match translator.read_outside(|reason| cx.count(reason, 1), packet)? {
            Ok(read) => read,
            Err(next) => return Ok(next),
        };
        cx.count(Nat64Drop::Hairpinned, 1);
        if read.kind != Kind::Error
            && let Some((sessions, objects, _)) = translator.shared.table()
        {
            let flow = outside_of(&read, rules.outside_table);
            if let Some(index) = sessions.lookup(&outside_key(flow.key())) {
                let session = Session(objects.get(index >> 1));
                if let Some(prefix) = rules.prefix(session.inside().prefix) {
                    let now_s = (cx.now_ns / 1_000_000_000) as u32;
                    return translator.send_in(packet, &read, (session, prefix), now_s);
                }
            }
        }
        packet.hand_over(SlowRequest { from_inside: false });
        Ok(self.slow)
    }
}

impl Node for Hairpin {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.decide(cx, packet));
    }
}

/// The declaration of `nat64-hairpin`.
pub(crate) fn spec_hairpin(shared: &Arc<Shared>) -> NodeSpec {
    let shared = shared.clone();
    let help = "Translates packets between two hosts inside back to IPv6";
    NodeSpec::new(HAIRPIN, help, move |wiring| {
        Box::new(Hairpin {
            translator: Translator::new(&shared, wiring),
            slow: wiring.node(SLOW_PATH),
        })
    })
    .reasons::<Nat64Drop>()
    .describe(|record, names| format!("to {}", names.node(record.next)))
}
