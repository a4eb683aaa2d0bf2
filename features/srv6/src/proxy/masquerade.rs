//! `sr-localsid-am` (End.AM): an IPv6 packet with segments left goes to a function as if its last segment were its
//! destination (draft-ietf-spring-sr-service-programming §6.4).

use std::sync::Arc;

use quiver_core::node::NodeSpec;
use quiver_core::stage::{Stage, Tally};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_tables::CountedLines;
use quiver_tables::ip::{Ip6, choose};
use quiver_wire::srh::segment;
use quiver_wire::{Header, Ip6Header};

use crate::endpoint::closer::Matter;
use crate::endpoint::line::Line;
use crate::endpoint::reasons::{Bad, LocalSidDrop};
use crate::endpoint::segments;
use crate::endpoint::ways::Ways;

/// The node.
pub(crate) const NODE: &str = "sr-localsid-am";

/// `sr-localsid-am`, a packet's part of it.
pub struct Masquerade {
    ways: Ways,
}

/// The last segment of the SRH that stands `at` bytes from the IPv6 header.
#[inline(always)]
fn last_segment(packet: &Packet, at: usize) -> u128 {
    packet.bytes().get(at..).and_then(|srh| segment(srh, 0)).map_or(0, |last| last.to_bits())
}

impl Masquerade {
    #[cold]
    #[inline(never)]
    fn closer(&self, tally: Tally<'_>, packet: &mut Packet) -> Result<NodeId, LocalSidDrop> {
        let (line, bytes) = (Line(self.ways.lines.line(packet.index)), packet.length());
        let outcome = self.closer_still(tally, line, packet);
        self.ways.settle(tally, line.0, outcome, bytes, packet)
    }

    fn closer_still(&self, tally: Tally<'_>, line: Line<'_>, packet: &mut Packet) -> Result<NodeId, Bad> {
        match self.ways.matter(tally, packet)? {
            Matter::Segments { srh, .. } => {
                let last = last_segment(packet, srh.at);
                if !segments::is_plain_segment(last) {
                    return Err(LocalSidDrop::NextSegment.into());
                }
                self.ways.advance(line, srh, last, packet);
                Ok(choose::<Ip6>(&self.ways.tables.groups, line.group6(), packet))
            }
            Matter::Upper(upper) => self.ways.upper(tally, line, upper, packet),
        }
    }
}

impl Stage for Masquerade {
    const NAME: &'static str = NODE;
    type Reason = LocalSidDrop;
    type Common = ();

    fn common(&self, _: &Context<'_>, _: InterfaceId) {}

    fn ahead(&self, packet: &Packet) {
        self.ways.lines.prefetch(packet.index);
        packet.prefetch_second();
    }

    #[inline(always)]
    fn decide(&self, tally: Tally<'_>, (): (), packet: &mut Packet) -> Result<NodeId, LocalSidDrop> {
        let last = last_segment(packet, Ip6Header::LEN);
        if (segments::next_if_plain(packet) == 0) | !segments::is_plain_segment(last) {
            return self.closer(tally, packet);
        }
        let line = Line(self.ways.lines.line(packet.index));
        self.ways.good(line.0, packet.length());
        segments::advance(packet, Ip6Header::LEN, last);
        Ok(choose::<Ip6>(&self.ways.tables.groups, line.group6(), packet))
    }
}

/// The declaration.
pub(super) fn spec(lines: &Arc<CountedLines>) -> NodeSpec {
    let lines = lines.clone();
    NodeSpec::stage("End.AM: packets to a function as if they went to their last segment", move |wiring| {
        Masquerade { ways: Ways::new(wiring, &lines) }
    })
    .describe(crate::endpoint::words::record)
}
