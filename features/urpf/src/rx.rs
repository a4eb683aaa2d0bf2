//! `ip4-rx-urpf`, `ip6-rx-urpf`: may a packet with this source have come by this interface?

use std::sync::Arc;

use quiver_core::arc::ArcId;
use quiver_core::frame::settle;
use quiver_core::node::{Node, NodeSpec};
use quiver_core::{Context, Frame, InterfaceId, NodeId, Packet};
use quiver_tables::GroupId;
use quiver_tables::fib::Family;
use quiver_tables::ip::{IpFamily, Sources};

use crate::judge::{Judge, UrpfDrop, appeal};
use crate::tables::{Check, Checks, Direction};

struct RxCheck<F: IpFamily> {
    checks: Arc<Checks>,
    judge: Judge,
    arc: ArcId,
    lookup: NodeId,
    sources: Sources<F>,
}

/// The source, or 0.
#[inline(always)]
fn source<F: IpFamily>(packet: &Packet) -> F::Address {
    F::source(packet.bytes()).unwrap_or_default()
}

impl<F: IpFamily> RxCheck<F> {
    /// The check of packets that come by `rx`, and the table it looks in.
    fn check(&self, cx: &Context<'_>, rx: InterfaceId) -> Option<(Check, u32)> {
        let check = self.checks.get((rx, F::FAMILY, Direction::Rx), cx.pass)?;
        Some((check, check.table.unwrap_or_else(|| F::table_of(&self.judge.tables.interfaces, rx))))
    }

    /// The packets of a vector that all came by one interface.
    fn together(&mut self, cx: &Context<'_>, rx: InterfaceId, frame: &mut Frame) {
        let (arc, lookup, check) = (self.arc, self.lookup, self.check(cx, rx));
        let (packets, next) = frame.split_mut();
        let Some((check, table)) = check else {
            packets
                .iter_mut()
                .zip(next)
                .for_each(|(packet, next)| *next = cx.next_in_arc(arc, rx, packet, lookup));
            return;
        };
        let lpm = F::table(&self.judge.tables, table);
        let (found, keys) = self.sources.find(cx.variant, lpm, packets, source::<F>);
        let checks = &self.checks;
        for (((packet, next), group), key) in packets.iter_mut().zip(next).zip(found).zip(keys) {
            let decision = decide::<F>(cx, &self.judge, checks, (check, table), *group, *key, packet);
            *next = settle(decision.map(|()| cx.next_in_arc(arc, rx, packet, lookup)), packet);
        }
    }
}

#[inline(always)]
fn decide<F: IpFamily>(
    cx: &Context<'_>,
    judge: &Judge,
    checks: &Checks,
    (check, table): (Check, u32),
    group: GroupId,
    source: F::Address,
    packet: &Packet,
) -> Result<(), UrpfDrop> {
    let Err(why) = judge.decide::<F>(check, table, group, source, packet.rx) else { return Ok(()) };
    appeal::<F>(cx, checks, table, packet.bytes(), source, why)
}

impl<F: IpFamily> Node for RxCheck<F> {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let Some(first) = frame.packets().first().map(|packet| packet.rx) else { return };
        if frame.is_same_rx() {
            return self.together(cx, first, frame);
        }
        let (arc, lookup) = (self.arc, self.lookup);
        frame.route(|packet| {
            let rx = packet.rx;
            if let Some((check, table)) = self.check(cx, rx) {
                let key = source::<F>(packet);
                let group = F::table(&self.judge.tables, table).lookup(key);
                let checks = &self.checks;
                decide::<F>(cx, &self.judge, checks, (check, table), group, key, packet)?;
            }
            Ok::<_, UrpfDrop>(cx.next_in_arc(arc, rx, packet, lookup))
        });
    }
}

/// The declaration; `arc` is `ip4-unicast` or `ip6-unicast`.
pub(crate) fn spec<F: IpFamily>(arc: ArcId, checks: &Arc<Checks>) -> NodeSpec {
    let checks = checks.clone();
    let (name, lookup) = match F::FAMILY {
        Family::Ip4 => ("ip4-rx-urpf", "ip4-lookup"),
        Family::Ip6 => ("ip6-rx-urpf", "ip6-lookup"),
    };
    let help = "Drops packets whose source cannot come by the interface they came by";
    NodeSpec::new(name, help, move |wiring| {
        Box::new(RxCheck::<F> {
            checks: checks.clone(),
            judge: Judge::new::<F>(wiring),
            arc,
            lookup: wiring.node(lookup),
            sources: Sources::default(),
        })
    })
    .reasons::<UrpfDrop>()
    .describe(|record, names| {
        let source = F::source(record.bytes()).map(quiver_tables::prefix::Address::ip);
        let source = source.map_or("no source".to_owned(), |source| source.to_string());
        format!("source {source} by {}, to {}", names.interface(record.rx), names.node(record.next))
    })
}
