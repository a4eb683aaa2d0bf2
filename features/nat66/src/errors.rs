//! ICMPv6 errors by the session of the packet that they quote (RFC 5508 §4), those of the router
//! itself among them: it makes errors about packets that it has translated already.

use std::sync::Arc;

use quiver_bindings::Flags;
use quiver_core::graph::arc::ArcId;
use quiver_core::graph::node::{Never, Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_forwarding::handover::TableIndex;
use quiver_forwarding::nodes;
use quiver_translation::ip6::error::{self, Quote};
use quiver_translation::ip6::flow::Side;
use quiver_translation::ip6::rewrite::Which;

use crate::reasons::Nat66Drop;
use crate::session::Session;
use crate::tables::{Rules, Shared};
use crate::translator::Translator;

/// The name of the node.
pub(crate) const OWN_ERRORS: &str = "nat66-own-errors";

/// Where an error goes that was translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Translated {
    /// Out, where the route of its receiving interface leads.
    Outward,
    /// To another host inside, by the pool.
    Back,
    /// To the host that sent the packet inside, by this table.
    Inward(u32),
}

/// Who sends an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    /// Another host or router: what is inside is not seen outside.
    Other,
    /// This router, which others may see.
    Own,
}

/// The session of the packet that an error quotes.
fn session_of<'s>(
    shared: &'s Shared,
    quote: &Quote,
    table: u32,
    side: Side,
) -> Result<Session<'s>, Nat66Drop> {
    let (sessions, objects, _) = shared.table().ok_or(Nat66Drop::NotEnabled)?;
    let key = quote.flow(table).reversed().key(side);
    let index = sessions.lookup(&key).ok_or(Nat66Drop::InnerHasNoSession)?;
    Ok(Session(objects.get(index >> 1)))
}

/// An ICMPv6 error about a packet of `table` that came from outside.
pub(crate) fn to_outside(
    shared: &Shared,
    packet: &mut Packet,
    table: u32,
    sender: Sender,
) -> Result<Translated, Nat66Drop> {
    let quote = error::read(packet)?;
    let session = session_of(shared, &quote, table, Side::Inside)?;
    // It must be for who sent the packet.
    if quote.recipient() != session.inside().destination.address {
        return Err(Nat66Drop::InnerHasNoSession);
    }
    let (host, external) = (session.host(), session.external());
    let source = match sender {
        Sender::Other => external.address,
        Sender::Own => quote.sender(),
    };
    let inner = (Which::Destination, host, external);
    quote.set_ends(packet, inner, (source, quote.recipient()));
    Ok(match session.flags().has(Flags::HAIRPIN) {
        true => Translated::Back,
        false => Translated::Outward,
    })
}

/// An ICMPv6 error about a packet that came from inside.
pub(crate) fn to_inside(
    shared: &Shared,
    packet: &mut Packet,
    rules: &Rules,
) -> Result<Translated, Nat66Drop> {
    let quote = error::read(packet)?;
    let session = session_of(shared, &quote, rules.outside_table, Side::Outside)?;
    let (host, external) = (session.host(), session.external());
    if quote.recipient() != external.address {
        return Err(Nat66Drop::InnerHasNoSession);
    }
    let inner = (Which::Source, external, host);
    quote.set_ends(packet, inner, (quote.sender(), host.address));
    Ok(Translated::Inward(session.inside_table()))
}

/// `nat66-own-errors`: ICMPv6 errors of the router.
struct OwnErrors {
    translator: Translator,
    lookup_in_table: NodeId,
}

impl OwnErrors {
    fn decide(&self, cx: &Context<'_>, packet: &mut Packet) -> NodeId {
        let translator = &self.translator;
        let shared = &translator.shared;
        if shared.sessions() == 0 {
            return translator.lookup;
        }
        let rules = shared.rules(cx.pass);
        if let Ok(Translated::Inward(table)) = to_inside(shared, packet, rules) {
            cx.count(Nat66Drop::ErrorTranslated, 1);
            packet.hand_over(TableIndex(table));
            return self.lookup_in_table;
        }
        let mut tables = rules.inside.iter().map(|id| translator.tables.interfaces.table6(*id));
        let done = tables.find_map(|table| to_outside(shared, packet, table, Sender::Own).ok());
        match done {
            None => translator.lookup,
            Some(done) => {
                cx.count(Nat66Drop::ErrorTranslated, 1);
                if done == Translated::Back {
                    return translator.hairpin;
                }
                packet.hand_over(TableIndex(rules.outside_table));
                self.lookup_in_table
            }
        }
    }
}

impl Node for OwnErrors {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| Ok::<_, Never>(self.decide(cx, packet)));
    }
}

/// The declaration of `nat66-own-errors`.
pub(crate) fn spec_own(arc: ArcId, shared: &Arc<Shared>) -> NodeSpec {
    let shared = shared.clone();
    let help = "Translates ICMPv6 errors of the router about packets that NAT66 has translated";
    NodeSpec::new(OWN_ERRORS, help, move |wiring| {
        Box::new(OwnErrors {
            translator: Translator::new(arc, &shared, wiring),
            lookup_in_table: wiring.node(nodes::ip6::LOOKUP_IN_TABLE),
        })
    })
    .reasons::<Nat66Drop>()
    .describe(|record, names| format!("to {}", names.node(record.next)))
}
