//! What every behaviour of a local SID must be able to do on the control thread.

use std::fmt;

use quiver_control::Refusal;
use quiver_core::{Engine, InterfaceId, NodeId};
use quiver_tables::counted_lines::LINE_WORDS;

use super::Place;

/// What a behaviour has taken hold of, for workers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    /// The node that packets to the SID go to.
    pub node: NodeId,
    /// What that node reads in the SID's line; its own business.
    pub words: [u64; LINE_WORDS],
}

/// Names of interfaces and numbers of tables, for the text form of a behaviour.
#[derive(Clone, Copy)]
pub(crate) struct Names<'a> {
    pub engine: &'a Engine,
}

/// What a local SID does. Each family of behaviours has a file with its command, this, and its
/// nodes.
pub(crate) trait Behavior: fmt::Debug {
    /// As it stands in the command: `end.x e1 2001:db8::1 psp`.
    fn words(&self, names: &Names<'_>) -> String;

    /// Take hold of what it needs (groups of paths, tables, policies) for a SID at `place`. A
    /// refused one has taken hold of nothing.
    fn hold(&mut self, engine: &mut Engine, place: Place) -> Result<Held, Refusal>;

    /// Let go of it. Workers find the SID no more, but may have it in hands until their pass ends.
    fn release(&mut self, engine: &mut Engine);

    /// Does it name this interface? Then the SID goes when the interface does.
    fn names(&self, interface: InterfaceId) -> bool {
        let _ = interface;
        false
    }
}
