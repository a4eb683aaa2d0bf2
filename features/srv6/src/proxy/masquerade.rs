//! `sr-localsid-am` (End.AM): an IPv6 packet with segments left goes to a function as if its last
//! segment were its destination (draft-ietf-spring-sr-service-programming §6.4). With the caching
//! flavour (§6.4.3) its SRH is kept.

use std::sync::Arc;

use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_forwarding::ip::{Ip6, choose};
use quiver_tables::CountedLines;
use quiver_wire::srh::{SEGMENT_BYTES, SrhHeader, segment};
use quiver_wire::{Header, Ip6Header};

use super::cached_header::{CacheWrite, WORD_BYTES, WORDS, Word, stepped};
use super::return_interfaces::{Around, Back, Backs, Coming};
use crate::endpoint::next_nodes::NextNodes;
use crate::endpoint::reasons::{Bad, LocalSidDrop};
use crate::endpoint::segments;
use crate::endpoint::sid_entry::SidEntryRef;
use crate::endpoint::slow_path::Matter;

/// The node.
pub(crate) const NODE: &str = "sr-localsid-am";

/// `sr-localsid-am`, a packet's part of it.
pub struct Masquerade {
    next_nodes: NextNodes,
    backs: Backs,
}

#[inline(always)]
fn keeps(line: SidEntryRef<'_>) -> bool {
    line.has_proxy_option()
}

/// Words of the IPv6 header, which is not kept.
const HEADER_WORDS: usize = Ip6Header::LEN / WORD_BYTES;
/// Words of an SRH with the last segment, which each packet has of its own.
const LAST_WORDS: usize = SEGMENT_BYTES / WORD_BYTES;

/// An SRH as it is to be kept: with a segment less, and without what each packet has of its own,
/// what is inside and the last segment. So packets of all flows along one path keep the same.
fn to_keep(srh: &[u8]) -> Option<([Word; WORDS], usize)> {
    let bytes = srh.get(..SrhHeader::overlay(srh)?.len_bytes())?;
    let (words, _) = bytes.as_chunks();
    let mut all = [Word::default(); WORDS];
    let own = all.get_mut(HEADER_WORDS..)?.get_mut(..words.len())?;
    own.copy_from_slice(words);
    let (first, rest) = own.split_first_mut()?;
    *first = stepped(*first);
    first[0] = 0;
    rest.get_mut(..LAST_WORDS)?.fill(Word::default());
    Some((all, HEADER_WORDS + words.len()))
}

/// The last segment of the SRH that stands `at` bytes from the IPv6 header.
#[inline(always)]
fn last_segment(packet: &Packet, at: usize) -> u128 {
    packet.bytes().get(at..).and_then(|srh| segment(srh, 0)).map_or(0, |last| last.to_bits())
}

impl Masquerade {
    /// Keep the SRH at `at`, as it came.
    fn keep(
        &self,
        context: StageContext<'_>,
        line: SidEntryRef<'_>,
        at: usize,
        packet: &Packet,
    ) -> Result<(), LocalSidDrop> {
        let back = self.backs.read(InterfaceId(line.argument()), Coming::Ip6, context.pass());
        let Some(Back { around: Around::Masked { kept: Some(kept), .. }, .. }) = back else {
            return Err(LocalSidDrop::NotConfigured);
        };
        let srh = packet.bytes().get(at..).unwrap_or_default();
        let (words, count) = to_keep(srh).ok_or(LocalSidDrop::TooLongToKeep)?;
        let split = words.get(..count).and_then(<[Word]>::split_first_chunk);
        let (front, rest) = split.ok_or(LocalSidDrop::TooLongToKeep)?;
        match kept.keep(*front, rest) {
            CacheWrite::TooLong => Err(LocalSidDrop::TooLongToKeep),
            CacheWrite::Full => Err(LocalSidDrop::FlowsFull),
            CacheWrite::Same | CacheWrite::New | CacheWrite::Busy => Ok(()),
        }
    }

    #[cold]
    #[inline(never)]
    fn slow_path(
        &self,
        context: StageContext<'_>,
        packet: &mut Packet,
    ) -> Result<NodeId, LocalSidDrop> {
        let (line, came) = (self.next_nodes.entry(packet), packet.on_wire());
        let outcome = self.slow_path_outcome(context, line, packet);
        self.next_nodes.resolve(context, line.0, outcome, came, packet)
    }

    fn slow_path_outcome(
        &self,
        context: StageContext<'_>,
        line: SidEntryRef<'_>,
        packet: &mut Packet,
    ) -> Result<NodeId, Bad> {
        match self.next_nodes.matter(context, packet)? {
            Matter::Segments { srh, .. } => {
                let last = last_segment(packet, srh.at);
                if !segments::is_plain_segment(last) {
                    return Err(LocalSidDrop::NextSegment.into());
                }
                if keeps(line) {
                    self.keep(context, line, srh.at, packet)?;
                }
                self.next_nodes.advance(line, srh, last, packet);
                Ok(choose::<Ip6>(&self.next_nodes.tables.groups, line.group6(), packet))
            }
            Matter::Upper(upper) => self.next_nodes.upper(context, line, upper, packet),
        }
    }
}

impl Stage for Masquerade {
    const NAME: &'static str = NODE;
    type Reason = LocalSidDrop;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    fn ahead(&self, packet: &Packet) {
        self.next_nodes.prefetch_entry(packet);
        packet.prefetch_second();
    }

    #[inline(always)]
    fn decide(
        &self,
        context: StageContext<'_>,
        (): (),
        packet: &mut Packet,
    ) -> Result<NodeId, LocalSidDrop> {
        let last = last_segment(packet, Ip6Header::LEN);
        if (segments::next_if_plain(packet) == 0) | !segments::is_plain_segment(last) {
            return self.slow_path(context, packet);
        }
        let line = self.next_nodes.entry(packet);
        if keeps(line) && self.keep(context, line, Ip6Header::LEN, packet).is_err() {
            return self.slow_path(context, packet);
        }
        self.next_nodes.good(line.0, packet.length());
        segments::advance(packet, Ip6Header::LEN, last);
        Ok(choose::<Ip6>(&self.next_nodes.tables.groups, line.group6(), packet))
    }
}

/// The declaration.
pub(super) fn spec(lines: &Arc<CountedLines>, backs: &Backs) -> NodeSpec {
    let (lines, backs) = (lines.clone(), backs.clone());
    NodeSpec::stage(
        "End.AM: packets to a function as if they went to their last segment",
        move |wiring| Masquerade {
            next_nodes: NextNodes::new(wiring, &lines),
            backs: backs.clone(),
        },
    )
    .describe(crate::endpoint::description::record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_each_packet_has_of_its_own_is_not_kept() {
        let mut srh = vec![17, 4, 4, 2, 1, 0, 0, 77];
        srh.extend([[1; 16], [2; 16]].concat());
        let kept = |srh: &[u8]| to_keep(srh).map(|(words, count)| words[..count].concat());
        let expected =
            [vec![0; 40], vec![0, 4, 4, 1, 1, 0, 0, 77], vec![0; 16], vec![2; 16]].concat();
        assert_eq!(kept(&srh), Some(expected.clone()));
        (srh[0], srh[9]) = (6, 9);
        assert_eq!(kept(&srh), Some(expected));
        srh[15 + 16] = 9;
        assert_eq!(kept(&srh).map(|kept| kept[71]), Some(9), "another path");
        assert_eq!(kept(&srh[..39]), None, "shorter than it says");
        assert_eq!(kept(&[17, 0, 4, 0, 0, 0, 0, 0]), None, "no segments");
        let count = ((WORDS - HEADER_WORDS - 1) / LAST_WORDS) as u8;
        for (count, fits) in [(count, true), (count + 1, false)] {
            let mut srh = vec![0, 2 * count, 4, 1, count - 1, 0, 0, 0];
            srh.resize(8 + 16 * usize::from(count), 0);
            assert_eq!(kept(&srh).is_some(), fits, "{count}");
        }
    }
}
