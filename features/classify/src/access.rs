//! `classify-input-acl`, `classify-output-acl`: the tables of an interface say what may pass.

use std::sync::Arc;

use quiver_core::graph::arc::{ArcId, DEVICE_INPUT, INTERFACE_OUTPUT};
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::StageContext;
use quiver_core::{NodeId, Packet};

use crate::action::{Action, SessionAction};
use crate::listed::{Effect, Listed};
use crate::tables::{Direction, Purpose, Tables};

quiver_core::reasons! {
    /// Why classifier tables drop packets.
    pub enum ClassifyDrop {
        /// A session or a table says so.
        Denied = "denied", "a session or the end of a chain of classifier tables denies it (`show \
            classify tables verbose`)";
    }
}

impl Direction {
    /// Its node's name.
    pub(crate) const fn node(self) -> &'static str {
        match self {
            Direction::Input => name(false),
            Direction::Output => name(true),
        }
    }

    /// The direction of a node.
    pub(crate) const fn of(is_output: bool) -> Direction {
        if is_output { Direction::Output } else { Direction::Input }
    }

    /// Its arc.
    pub(crate) const fn arc_number(self) -> ArcId {
        match self {
            Direction::Input => DEVICE_INPUT,
            Direction::Output => INTERFACE_OUTPUT,
        }
    }

    /// Its arc's name.
    pub(crate) const fn arc(self) -> &'static str {
        match self {
            Direction::Input => "device-input",
            Direction::Output => "interface-output",
        }
    }
}

const fn name(is_output: bool) -> &'static str {
    if is_output { "classify-output-acl" } else { "classify-input-acl" }
}

/// Lets those pass that sessions permit.
pub(crate) struct List<const OUTPUT: bool>;

impl<const OUTPUT: bool> Effect for List<OUTPUT> {
    const NAME: &'static str = name(OUTPUT);
    const OF: (Purpose, Direction) = (Purpose::Access, Direction::of(OUTPUT));
    type Reason = ClassifyDrop;
    type Outcome = Action;
    type Run<'r> = ();

    /// Super-frames count as the packets that they stand for.
    #[inline(always)]
    fn weight(packet: &Packet) -> u32 {
        packet.on_wire().0 as u32
    }

    #[inline(always)]
    fn packets(weight: u32) -> u64 {
        weight.into()
    }

    #[inline(always)]
    fn begin(&self, _: StageContext<'_>) {}

    #[inline(always)]
    fn meet(&self, (): &mut (), action: SessionAction, _: u32) -> Action {
        action.access()
    }

    fn missed(action: Action) -> Action {
        action
    }

    #[inline(always)]
    fn carry_out(
        &self,
        _: StageContext<'_>,
        outcome: Action,
        _: bool,
        _: &mut Packet,
    ) -> Result<Option<NodeId>, ClassifyDrop> {
        if outcome == Action::Deny { Err(ClassifyDrop::Denied) } else { Ok(None) }
    }
}

/// The declaration.
pub(crate) fn spec<const OUTPUT: bool>(tables: &Arc<Tables>) -> NodeSpec {
    let tables = tables.clone();
    let help = match OUTPUT {
        false => "Lets classifier tables say what of that which interfaces receive may pass",
        true => "Lets classifier tables say what of that which interfaces send may pass",
    };
    let arc = Direction::of(OUTPUT).arc_number();
    NodeSpec::look_up(help, move |wiring| Listed::new(wiring, &tables, (arc, None), List::<OUTPUT>))
        .takes_offloads()
        .describe(|record, names| {
            format!("{} bytes, to {}", record.packet_bytes, names.node(record.next))
        })
}
