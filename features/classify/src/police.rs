//! `policer-classify-input`, `policer-classify-output`: the session that a packet meets says which
//! policer meters it.

use std::sync::Arc;

use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::StageContext;
use quiver_core::{NodeId, Packet};
use quiver_policing::{Neighbours, Policers, Verdict, dscp};

use crate::action::{Action, SessionAction};
use crate::listed::{Effect, Listed};
use crate::tables::{Direction, Purpose, Tables};

quiver_core::reasons! {
    /// Why policers of sessions drop packets.
    pub enum PolicedDrop {
        /// Too much.
        Policed = "policed",
            "more than the rate of the session's policer lets pass (`show policer`)";
    }
}

impl Direction {
    /// The name of the node that lets sessions' policers meter.
    pub(crate) const fn policer_node(self) -> &'static str {
        match self {
            Direction::Input => "policer-classify-input",
            Direction::Output => "policer-classify-output",
        }
    }
}

/// Lets policers meter the packets of sessions.
pub(crate) struct Police<const OUTPUT: bool>(Arc<Policers>);

impl<const OUTPUT: bool> Effect for Police<OUTPUT> {
    const NAME: &'static str = Direction::of(OUTPUT).policer_node();
    const OF: (Purpose, Direction) = (Purpose::Police, Direction::of(OUTPUT));
    type Reason = PolicedDrop;
    type Outcome = Verdict;
    type Run<'r> = Neighbours<'r>;

    /// Its bytes.
    #[inline(always)]
    fn weight(packet: &Packet) -> u32 {
        packet.length() as u32
    }

    #[inline(always)]
    fn packets(_: u32) -> u64 {
        1
    }

    #[inline(always)]
    fn begin<'r>(&'r self, context: StageContext<'r>) -> Neighbours<'r> {
        Neighbours::new(&self.0, context.pass(), context.now_ns())
    }

    #[inline(always)]
    fn meet(&self, run: &mut Neighbours<'_>, action: SessionAction, bytes: u32) -> Verdict {
        match action {
            SessionAction::Police { policer, before } => {
                run.police(policer, bytes.into(), || before)
            }
            _ => Verdict::Pass,
        }
    }

    fn missed(_: Action) -> Verdict {
        Verdict::Pass
    }

    #[inline(always)]
    fn carry_out(
        &self,
        _: StageContext<'_>,
        outcome: Verdict,
        is_bare: bool,
        packet: &mut Packet,
    ) -> Result<Option<NodeId>, PolicedDrop> {
        match outcome {
            Verdict::Pass => {}
            Verdict::Drop => return Err(PolicedDrop::Policed),
            Verdict::Mark(code_point) => dscp::mark(packet, is_bare, code_point),
        }
        Ok(None)
    }
}

/// The declaration. Super-frames are cut before they are metered.
pub(crate) fn spec<const OUTPUT: bool>(tables: &Arc<Tables>) -> NodeSpec {
    let tables = tables.clone();
    let help = match OUTPUT {
        false => "Meters what interfaces receive by the policers of classifier sessions",
        true => "Meters what interfaces send by the policers of classifier sessions",
    };
    let arc = Direction::of(OUTPUT).arc_number();
    NodeSpec::look_up(help, move |wiring| {
        Listed::new(wiring, &tables, (arc, None), Police::<OUTPUT>(wiring.shared()))
    })
    .describe(|record, names| {
        format!("{} bytes, to {}", record.packet_bytes, names.node(record.next))
    })
}
