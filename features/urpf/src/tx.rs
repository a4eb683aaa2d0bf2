//! `ip4-tx-urpf`, `ip6-tx-urpf`: may a packet with this source, which is about to leave here, have
//! come by the interface it came by? Frames of `interface-output` have their layer 2 header in
//! front.

use std::sync::Arc;

use quiver_core::graph::arc::INTERFACE_OUTPUT;
use quiver_core::graph::frame::next_or_drop;
use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::graph::stage::StageContext;
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, Frame, InterfaceId, Packet};
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::{IpFamily, Sources, packet_in_frame};

use crate::source_check::{SourceCheck, UrpfDrop, appeal};
use crate::tables::{Check, Checks, Direction};

struct TxCheck<F: IpFamily> {
    checks: Arc<Checks>,
    judge: SourceCheck,
    sources: Sources<F>,
}

/// The IP packet of family `F` that is sent, if there is one. Interfaces without a MAC address send
/// IP packets as they are.
#[inline]
fn inside<F: IpFamily>(bytes: &[u8], has_frames: bool) -> Option<&[u8]> {
    let at = if has_frames { packet_in_frame::<F>(bytes)? } else { 0 };
    let packet = bytes.get(at..)?;
    packet.first().filter(|first| **first >> 4 == F::VERSION).map(|_| packet)
}

impl<F: IpFamily> TxCheck<F> {
    /// The packets of a vector that all leave by one interface.
    fn together(&mut self, cx: &Context<'_>, tx: InterfaceId, frame: &mut Frame) {
        let checks = &self.checks;
        let (Some(row), Some(check)) =
            (cx.interface(tx), checks.get((tx, F::FAMILY, Direction::Tx), cx.pass))
        else {
            return self.one_by_one(cx, frame);
        };
        let table = self.table(check, tx);
        let lpm = F::table(&self.judge.tables, table);
        let has_frames = row.mac != [0; 6];
        let source = |packet: &Packet| {
            inside::<F>(packet.bytes(), has_frames).and_then(F::source).unwrap_or_default()
        };
        let (packets, next) = frame.split_mut();
        let (found, keys) = self.sources.find(cx.variant, lpm, packets, source);
        for (((packet, next), group), key) in packets.iter_mut().zip(next).zip(found).zip(keys) {
            let judged = match inside::<F>(packet.bytes(), has_frames).filter(|_| !is_own(packet)) {
                Some(bytes) => {
                    let judged = self.judge.decide::<F>(check, table, *group, *key, packet.rx);
                    judged.or_else(|why| {
                        appeal::<F>(StageContext::new(cx), checks, table, bytes, *key, why)
                    })
                }
                None => Ok(()),
            };
            *next = next_or_drop(
                judged.map(|()| cx.next_in_arc(INTERFACE_OUTPUT, tx, packet, row.tx)),
                packet,
            );
        }
    }

    fn one_by_one(&self, cx: &Context<'_>, frame: &mut Frame) {
        let checks = &self.checks;
        frame.route(|packet| {
            let tx = packet.tx;
            let row = cx.interface(tx).ok_or(UrpfDrop::Gone)?;
            let bytes = inside::<F>(packet.bytes(), row.mac != [0; 6]).filter(|_| !is_own(packet));
            if let (Some(check), Some(bytes)) =
                (checks.get((tx, F::FAMILY, Direction::Tx), cx.pass), bytes)
            {
                let (table, key) = (self.table(check, tx), F::source(bytes).unwrap_or_default());
                let group = F::table(&self.judge.tables, table).lookup(key);
                let judged = self.judge.decide::<F>(check, table, group, key, packet.rx);
                judged.or_else(|why| {
                    appeal::<F>(StageContext::new(cx), checks, table, bytes, key, why)
                })?;
            }
            Ok::<_, UrpfDrop>(cx.next_in_arc(INTERFACE_OUTPUT, tx, packet, row.tx))
        });
    }

    fn table(&self, check: Check, tx: InterfaceId) -> u32 {
        check.table.unwrap_or_else(|| F::table_of(&self.judge.tables.interfaces, tx))
    }
}

/// The router's own packets came by no interface.
#[inline(always)]
fn is_own(packet: &Packet) -> bool {
    packet.has(PacketFlags::LOCALLY_ORIGINATED) || packet.rx == InterfaceId::NONE
}

impl<F: IpFamily> Node for TxCheck<F> {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let Some(first) = frame.packets().first().map(|packet| packet.tx) else { return };
        if frame.packets().iter().all(|packet| packet.tx == first) {
            self.together(cx, first, frame);
        } else {
            self.one_by_one(cx, frame);
        }
    }
}

/// The declaration.
pub(crate) fn spec<F: IpFamily>(checks: &Arc<Checks>) -> NodeSpec {
    let checks = checks.clone();
    let name = match F::FAMILY {
        Family::Ip4 => "ip4-tx-urpf",
        Family::Ip6 => "ip6-tx-urpf",
    };
    let help = "Drops packets that are about to leave, whose source cannot come by the interface \
        they came by";
    NodeSpec::new(name, help, move |wiring| {
        Box::new(TxCheck::<F> {
            checks: checks.clone(),
            judge: SourceCheck::new::<F>(wiring),
            sources: Sources::default(),
        })
    })
    .takes_offloads()
    .reasons::<UrpfDrop>()
    .describe(|record, names| {
        format!(
            "came by {}, leaves by {}, to {}",
            names.interface(record.rx),
            names.interface(record.tx),
            names.node(record.next)
        )
    })
}
