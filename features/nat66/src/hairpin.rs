//! `nat66-hairpin`: packets between two hosts inside, translated once already (RFC 4787 §6).

use std::sync::Arc;

use quiver_core::graph::arc::ArcId;
use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_translation::ip6::flow::Side;
use quiver_translation::tcp::Direction;
use quiver_translation::versions::read::Kind;

use crate::reasons::Nat66Drop;
use crate::session::Session;
use crate::tables::Shared;
use crate::translator::{HAIRPIN, SLOW_PATH, SlowRequest, Translator, upper_of};

struct Hairpin {
    translator: Translator,
    own: NodeId,
    slow: NodeId,
}

impl Hairpin {
    fn decide(&self, cx: &Context<'_>, packet: &mut Packet) -> Result<NodeId, Nat66Drop> {
        let translator = &self.translator;
        let table = translator.shared.rules(cx.pass).outside_table;
        let read = translator.read(|reason| cx.count(reason, 1), packet, table)?;
        let (read, kind, flow) = match read {
            Ok(read) => read,
            Err(next) => return Ok(next),
        };
        cx.count(Nat66Drop::Hairpinned, 1);
        if kind != Kind::Error
            && let Some((sessions, objects, _)) = translator.shared.table()
            && let Some(index) = sessions.lookup(&flow.key(Side::Outside))
        {
            let session = Session(objects.get(index >> 1));
            let state = translator.interface_state(cx, packet.rx, self.own);
            let upper = upper_of(&read);
            return Ok(translator.pass_on(state, packet, upper, session, Direction::OutToIn));
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

/// The declaration.
pub(crate) fn spec(arc: ArcId, shared: &Arc<Shared>) -> NodeSpec {
    let shared = shared.clone();
    let help = "Packets to the pool of NAT66 from inside get the address and port of a host";
    NodeSpec::new(HAIRPIN, help, move |wiring| {
        Box::new(Hairpin {
            translator: Translator::new(arc, &shared, wiring),
            own: wiring.id,
            slow: wiring.node(SLOW_PATH),
        })
    })
    .reasons::<Nat66Drop>()
    .describe(|record, names| format!("to {}", names.node(record.next)))
}
