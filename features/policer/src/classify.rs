//! `policer-classify-…`: packets that an access list takes are metered by the policer of that list.
//!
//! A block's keys ask each list together, then the meters; packets that no list takes pass.

use std::marker::PhantomData;
use std::sync::Arc;

use quiver_access_lists::{Key, Keyed, ListTable, Twins, field, is_permitted, none_is};
use quiver_core::cpu::Variant;
use quiver_core::graph::arc::{DEVICE_INPUT, INTERFACE_OUTPUT};
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::{noted, packet_in_frame};
use quiver_policing::{NO_POLICER, Neighbours, Policers, Verdict, dscp};

use crate::classes::{Class, Classes};
use crate::node::PolicerDrop;
use crate::tables::Direction;

/// Keys that are classified in step.
const BATCH: usize = 128;
/// [`Key::owner`] of what is no packet of the family.
const NOBODY: u32 = u32::MAX;

impl Direction {
    const fn of(is_output: bool) -> Direction {
        if is_output { Direction::Output } else { Direction::Input }
    }

    /// The name of the node that classifies a family's packets.
    pub(crate) const fn class_node(self, family: Family) -> &'static str {
        match (self, family) {
            (Direction::Input, Family::Ip4) => "policer-classify-input-ip4",
            (Direction::Input, Family::Ip6) => "policer-classify-input-ip6",
            (Direction::Output, Family::Ip4) => "policer-classify-output-ip4",
            (Direction::Output, Family::Ip6) => "policer-classify-output-ip6",
        }
    }
}

/// The node of a family and direction.
pub(crate) struct Classify<F: Keyed, const OUTPUT: bool> {
    lists: Arc<ListTable>,
    policers: Arc<Policers>,
    classes: Arc<Classes>,
    twins: Twins,
    family: PhantomData<fn() -> F>,
}

impl<F: Keyed, const OUTPUT: bool> Classify<F, OUTPUT> {
    const DIRECTION: Direction = Direction::of(OUTPUT);

    /// The packet's IP header and what follows; none when it is of another protocol.
    #[inline(always)]
    fn bytes<'p>(&self, packet: &'p Packet) -> Option<&'p [u8]> {
        let bytes = packet.bytes();
        match self.classes.is_bare(Self::DIRECTION.interface_of(packet)) {
            true => bytes.first().filter(|first| **first >> 4 == F::VERSION).map(|_| bytes),
            false => bytes.get(packet_in_frame::<F>(bytes)?..),
        }
    }

    /// Where the arc of an interface ends.
    #[inline(always)]
    fn end(context: StageContext<'_>, on: InterfaceId) -> Option<NodeId> {
        let row = context.interface(on)?;
        Some(if OUTPUT { row.tx } else { row.input })
    }

    /// What becomes of packets, each of the interface in its key.
    #[inline(never)]
    fn classify(
        &self,
        context: StageContext<'_>,
        how: (Variant, bool),
        keys: &[Key<F::Address>],
        found: &mut [Verdict],
    ) {
        found.fill(Verdict::Pass);
        let (mut keys, mut found) = (keys, found);
        while let Some(owner) = keys.first().map(|key| key.owner) {
            let count = keys.iter().take_while(|key| key.owner == owner).count();
            let (now, later) = keys.split_at(count);
            let (verdicts, rest) = found.split_at_mut(count.min(found.len()));
            let classes = self.classes.of(owner, Self::DIRECTION, context.pass());
            if !classes.is_empty() {
                for (keys, verdicts) in now.chunks(BATCH).zip(verdicts.chunks_mut(BATCH)) {
                    self.police(context, how, classes, keys, verdicts);
                }
            }
            (keys, found) = (later, rest);
        }
    }

    /// Find the class of each packet, then meter them in the order in which they came.
    fn police(
        &self,
        context: StageContext<'_>,
        how: (Variant, bool),
        classes: &[Class],
        keys: &[Key<F::Address>],
        verdicts: &mut [Verdict],
    ) {
        let (mut policers, mut answers) = ([NO_POLICER; BATCH], [0; BATCH]);
        let count = keys.len().min(BATCH);
        let (policers, answers) = (&mut policers[..count], &mut answers[..count]);
        let mut left = count;
        for class in classes {
            self.lists.find::<F>(class.list, how, context.pass(), keys, answers);
            for (policer, answer) in policers.iter_mut().zip(&*answers) {
                let takes = (*policer == NO_POLICER) & is_permitted(*answer);
                *policer = if takes { class.policer } else { *policer };
                left -= usize::from(takes);
            }
            if left == 0 {
                break;
            }
        }
        if left < count {
            self.meter(context, policers, keys, verdicts);
        }
    }

    fn meter(
        &self,
        context: StageContext<'_>,
        policers: &[u16],
        keys: &[Key<F::Address>],
        verdicts: &mut [Verdict],
    ) {
        let mut run = Neighbours::new(&self.policers, context.pass(), context.now_ns());
        for ((policer, key), verdict) in policers.iter().zip(keys).zip(verdicts) {
            // What no list takes is not metered.
            if *policer != NO_POLICER {
                *verdict = run.police(*policer, key.length.into(), || {
                    let code_point = (key.fields & field::DSCP) >> field::DSCP_SHIFT;
                    dscp::colour_of(code_point as u8)
                });
            }
        }
    }
}

impl<F: Keyed, const OUTPUT: bool> LookUp for Classify<F, OUTPUT> {
    const NAME: &'static str = Direction::of(OUTPUT).class_node(F::FAMILY);
    type Reason = PolicerDrop;
    type Key = Key<F::Address>;
    type Found = Verdict;
    /// Fields of fragments after the first.
    type InterfaceState = u32;

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) -> u32 {
        self.lists.later_fragments()
    }

    /// A block without a packet of the family.
    #[inline(always)]
    fn decide_all(
        &self,
        context: StageContext<'_>,
        _: u32,
        packets: &mut [Packet],
    ) -> Option<NodeId> {
        let on = Self::DIRECTION.interface_of(packets.first()?);
        if !none_is::<F>(packets, self.classes.is_bare(on)) {
            return None;
        }
        Some(self.twins.pass(context, on, packets, Self::end(context, on)?))
    }

    #[inline(always)]
    fn key(&self, later: u32, packet: &mut Packet) -> Key<F::Address> {
        let bytes = self.bytes(packet);
        match bytes.and_then(|bytes| F::key(bytes, noted(packet), later)) {
            Some(key) => Key {
                owner: Self::DIRECTION.interface_of(packet).index() as u32,
                length: packet.length() as u32,
                rx: packet.rx.index() as u32,
                ..key
            },
            None => Key { owner: NOBODY, ..Key::default() },
        }
    }

    fn find(&self, _: Variant, _: u32, _: &[Self::Key], found: &mut [Verdict]) {
        found.fill(Verdict::Pass); // the loop calls the others
    }

    #[inline(always)]
    fn find_in(
        &self,
        context: StageContext<'_>,
        variant: Variant,
        _: u32,
        keys: &[Self::Key],
        found: &mut [Verdict],
    ) {
        self.classify(context, (variant, false), keys, found);
    }

    #[inline(always)]
    fn find_uniform_in(
        &self,
        context: StageContext<'_>,
        variant: Variant,
        _: u32,
        keys: &[Self::Key],
        found: &mut [Verdict],
    ) {
        self.classify(context, (variant, true), keys, found);
    }

    #[inline(always)]
    fn resolve(
        &self,
        context: StageContext<'_>,
        _: u32,
        key: Self::Key,
        found: Verdict,
        packet: &mut Packet,
    ) -> Result<NodeId, PolicerDrop> {
        let id = Self::DIRECTION.interface_of(packet);
        match found {
            Verdict::Pass => {}
            Verdict::Drop => return Err(PolicerDrop::Policed),
            Verdict::Mark(code_point) => dscp::mark(packet, self.classes.is_bare(id), code_point),
        }
        let end = Self::end(context, id).ok_or(PolicerDrop::Gone)?;
        Ok(match key.owner {
            NOBODY => context.next_in_arc(self.twins.arc, id, packet, end),
            _ => self.twins.next(context, id, packet, end),
        })
    }
}

/// The declaration.
pub(crate) fn spec<F: Keyed, const OUTPUT: bool>(classes: &Arc<Classes>) -> NodeSpec {
    let classes = classes.clone();
    let direction = Direction::of(OUTPUT);
    let arc = if OUTPUT { INTERFACE_OUTPUT } else { DEVICE_INPUT };
    let help = match direction {
        Direction::Input => "Meters what interfaces receive by the policers of access lists",
        Direction::Output => "Meters what interfaces send by the policers of access lists",
    };
    NodeSpec::look_up(help, move |wiring| Classify::<F, OUTPUT> {
        lists: wiring.shared(),
        policers: wiring.shared(),
        classes: classes.clone(),
        twins: Twins::new::<F>(wiring, arc, |family| direction.class_node(family)),
        family: PhantomData,
    })
    .describe(move |record, names| {
        let (bytes, next) = (record.packet_bytes, names.node(record.next));
        let on = match direction {
            Direction::Input => record.rx,
            Direction::Output => record.tx,
        };
        format!("{bytes} bytes on {}, to {next}", names.interface(on))
    })
}
