//! What address translators of the router make of a flow. The control thread asks when it encodes a
//! record, so that workers keep none of it.

use std::net::Ipv4Addr;

use quiver_core::{Engine, InterfaceId};

/// An end of a flow: address and port.
pub type End = (Ipv4Addr, u16);

/// A flow of TCP, UDP or another protocol with ports, as it came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The interface that received it.
    pub came_in: InterfaceId,
    /// Protocol behind the IP header.
    pub protocol: u8,
    /// Who sent it.
    pub source: End,
    /// Whom it was for.
    pub destination: End,
}

/// Source and destination behind a translator; none where it has no session of the flow.
pub type Translator = fn(&Engine, &Observed) -> Option<(End, End)>;

/// All translators, kept in the engine.
#[derive(Default)]
struct Translators(Vec<Translator>);

/// A translator may be asked from now on.
pub fn register(engine: &mut Engine, translator: Translator) {
    if engine.get::<Translators>().is_none() {
        engine.insert(Translators::default());
    }
    if let Some(all) = engine.get_mut::<Translators>() {
        all.0.push(translator);
    }
}

/// Source and destination of a flow as it leaves: those that it came with, where no translator has
/// a session of it now.
pub fn of(engine: &Engine, flow: &Observed) -> (End, End) {
    let all = engine.get::<Translators>().into_iter().flat_map(|all| &all.0);
    let translated = all.into_iter().find_map(|translator| translator(engine, flow));
    translated.unwrap_or((flow.source, flow.destination))
}
