//! `l2-input-vtr` and `l2-output-vtr`: VLAN tag rewrite, on the way in and, the other way round, on
//! the way out; `l2-efp-filter`: a sub-interface sends only frames that it would take back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use quiver_core::graph::arc::{ArcId, DEVICE_INPUT, INTERFACE_OUTPUT};
use quiver_core::graph::counters::INTERFACES_MAX;
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};

use super::frame::FrameTags;
use super::rewrite::{RewriteWord, Unfit};
use super::table::VlanTable;

/// The nodes' names.
pub(crate) const IN: &str = "l2-input-vtr";
pub(crate) const OUT: &str = "l2-output-vtr";
pub(crate) const FILTER: &str = "l2-efp-filter";

quiver_core::reasons! {
    /// Why frames die that are to be rewritten.
    pub enum RewriteDrop {
        /// See [`Unfit`].
        Truncated = "truncated", "frame shorter than its Ethernet header and tags";
        /// See [`Unfit`].
        TooFewTags = "too-few-tags", "the rewrite takes off more VLAN tags than the frame has";
        /// See [`Unfit`].
        NoHeadroom = "no-headroom", "no room in the buffer for the VLAN tags";
        /// Gone meanwhile.
        Gone = "interface-removed", "the interface was deleted while the frame was under way";
    }
}

impl From<Unfit> for RewriteDrop {
    fn from(unfit: Unfit) -> RewriteDrop {
        match unfit {
            Unfit::Truncated => RewriteDrop::Truncated,
            Unfit::TooFewTags => RewriteDrop::TooFewTags,
            Unfit::NoHeadroom => RewriteDrop::NoHeadroom,
        }
    }
}

/// Rewrites of one direction, by interface.
pub struct RewriteWords(Box<[AtomicU32]>);

impl RewriteWords {
    pub fn new() -> RewriteWords {
        RewriteWords((0..INTERFACES_MAX).map(|_| AtomicU32::new(0)).collect())
    }

    #[inline(always)]
    fn get(&self, id: InterfaceId) -> RewriteWord {
        RewriteWord(self.0.get(id.index()).map_or(0, |word| word.load(Ordering::Relaxed)))
    }

    /// Change the rewrite of an interface (control thread).
    pub fn set(&self, id: InterfaceId, rewrite: RewriteWord) {
        if let Some(word) = self.0.get(id.index()) {
            word.store(rewrite.0, Ordering::Relaxed);
        }
    }
}

/// `l2-output-vtr` (`OUTPUT`) or `l2-input-vtr`, a packet's part of it.
struct TagRewrite<const OUTPUT: bool> {
    words: Arc<RewriteWords>,
}

impl<const OUTPUT: bool> Stage for TagRewrite<OUTPUT> {
    const NAME: &'static str = if OUTPUT { OUT } else { IN };
    const LOOKS_FIRST: bool = true;
    type Reason = RewriteDrop;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline]
    fn decide(
        &self,
        context: StageContext<'_>,
        (): (),
        packet: &mut Packet,
    ) -> Result<NodeId, RewriteDrop> {
        let (id, arc) =
            if OUTPUT { (packet.tx, INTERFACE_OUTPUT) } else { (packet.rx, DEVICE_INPUT) };
        self.words.get(id).apply(packet)?;
        walk_on::<OUTPUT>(context, arc, id, packet).ok_or(RewriteDrop::Gone)
    }
}

/// The next feature of the arc, or what stands behind all of them.
#[inline(always)]
fn walk_on<const OUTPUT: bool>(
    context: StageContext<'_>,
    arc: ArcId,
    id: InterfaceId,
    packet: &mut Packet,
) -> Option<NodeId> {
    let row = context.interface(id)?;
    Some(context.next_in_arc(arc, id, packet, if OUTPUT { row.tx } else { row.input }))
}

quiver_core::reasons! {
    /// Why `l2-efp-filter` drops.
    pub enum FilterDrop {
        /// Shorter than what it announces.
        Truncated = "truncated", "frame shorter than its Ethernet header and tags";
        /// Would belong to another.
        OtherVlan = "other-vlan", "the frame's VLAN tags are not those of the sub-interface that \
            it would leave by";
        /// Gone meanwhile.
        Gone = "interface-removed", "the sub-interface was deleted while the frame was under way";
    }
}

/// `l2-efp-filter`, a packet's part of it.
struct Filter {
    table: Arc<VlanTable>,
}

impl Stage for Filter {
    const NAME: &'static str = FILTER;
    const LOOKS_FIRST: bool = true;
    type Reason = FilterDrop;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline]
    fn decide(
        &self,
        context: StageContext<'_>,
        (): (),
        packet: &mut Packet,
    ) -> Result<NodeId, FilterDrop> {
        let row = context.interface(packet.tx).ok_or(FilterDrop::Gone)?;
        let tags = FrameTags::read(packet.bytes()).ok_or(FilterDrop::Truncated)?;
        if self.table.taker(row.parent, &tags) != Some(packet.tx) {
            return Err(FilterDrop::OtherVlan);
        }
        Ok(context.next_in_arc(INTERFACE_OUTPUT, packet.tx, packet, row.tx))
    }
}

/// The declaration of one of the two.
pub(crate) fn spec<const OUTPUT: bool>(words: &Arc<RewriteWords>) -> NodeSpec {
    let words = words.clone();
    let help = if OUTPUT {
        "Rewrites VLAN tags of frames that leave"
    } else {
        "Rewrites VLAN tags of received frames"
    };
    NodeSpec::stage(help, move |_| TagRewrite::<OUTPUT> { words: words.clone() })
        .takes_offloads()
        .describe(|record, names| {
            let interface = names.interface(if OUTPUT { record.tx } else { record.rx });
            let (now, next) = (words_of(record.bytes()), names.node(record.next));
            format!("tags rewritten for {interface}: {now}, to {next}")
        })
}

/// The declaration of `l2-efp-filter`.
pub(crate) fn filter_spec(table: &Arc<VlanTable>) -> NodeSpec {
    let table = table.clone();
    NodeSpec::stage("Lets a sub-interface send only frames of its VLAN", move |_| Filter {
        table: table.clone(),
    })
    .takes_offloads()
    .describe(|record, names| {
        let (now, interface) = (words_of(record.bytes()), names.interface(record.tx));
        format!("{now} on {interface}, to {}", names.node(record.next))
    })
}

/// A frame's tags in words.
pub(crate) fn words_of(frame: &[u8]) -> String {
    let Some(tags) = FrameTags::read(frame) else { return "a frame that is cut short".to_owned() };
    match (tags.outer, tags.inner) {
        (None, _) => format!("untagged {}", tags.ether_type),
        (Some((kind, outer)), None) => format!("{kind} {outer} {}", tags.ether_type),
        (Some((kind, outer)), Some(inner)) => {
            format!("{kind} {outer} inner-dot1q {inner} {}", tags.ether_type)
        }
    }
}
