//! How long packets may be whose first segments are SIDs of this router itself: they go on inside,
//! and leave by the link behind the last of those.

use std::net::Ipv6Addr;

use quiver_core::NodeId;
use quiver_core::graph::node::Wiring;
use quiver_encap::entries::HEADER_BYTES_MAX;
use quiver_encap::{EncapEntry, EncapOutput, EntryView, Mtu};
use quiver_forwarding::ip::IpTables;
use quiver_forwarding::next_hop_group::Hop;
use quiver_forwarding::nodes;
use quiver_tables::{CountedLines, GroupId, WorkerLines};
use quiver_wire::srh::{SrhHeader, segment};
use quiver_wire::{Header, Ip6Header};

use super::stack::{LAST_SEGMENT, SRH_PLACE, SegmentStack};
use crate::csid;
use crate::endpoint::sid_entry::SidEntryRef;
use crate::endpoint::{end, end_x};
use crate::local_sids::Flavors;

/// Steps inside of the router at most: as many as segments in a header.
const STEPS_MAX: usize = 16;

/// What a node of local SIDs does with a destination.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flavor {
    Plain,
    Next,
    Replace,
}

/// Nodes that a packet goes on from inside of the router.
pub(super) struct PolicyPathMtu {
    lines: WorkerLines,
    /// By what they do: those that look the next destination up, and those that name a neighbour.
    look_up: [Option<NodeId>; 3],
    cross: [Option<NodeId>; 3],
    in_table: NodeId,
    drop: NodeId,
}

/// A packet's headers on their way.
struct Headers<'a> {
    destination: u128,
    /// The SRH.
    srh: &'a mut [u8],
    /// Bytes that SIDs have taken off.
    gone: usize,
}

impl Headers<'_> {
    /// To the next segment of the list.
    fn advance(&mut self, pops: bool) -> Option<()> {
        let srh = SrhHeader::overlay(self.srh)?;
        let left = srh.segments_left().checked_sub(1)?;
        self.go(segment(self.srh, left.into())?.to_bits(), Some(left), pops && left == 0)
    }

    fn go(&mut self, to: u128, left: Option<u8>, pops: bool) -> Option<()> {
        self.destination = to;
        if let Some(left) = left {
            SrhHeader::overlay_mut(self.srh)?.set_segments_left(left);
        }
        if pops {
            self.gone += self.srh.len();
            self.srh = &mut [];
        }
        Some(())
    }

    /// What a SID makes of them; `None` when it does not send them on like that.
    fn step(&mut self, line: SidEntryRef<'_>, flavor: Flavor) -> Option<()> {
        let pops = line.flavors().has(Flavors::PSP);
        match flavor {
            Flavor::Plain => self.advance(pops),
            Flavor::Next => match line.structure()?.next(self.destination) {
                Some(to) => self.go(to, None, false),
                None => self.advance(pops),
            },
            Flavor::Replace => {
                let (to, left, last) =
                    csid::replaced(self.destination, line.structure()?, self.srh)?;
                self.go(to, Some(left), pops && last)
            }
        }
    }
}

impl PolicyPathMtu {
    pub fn new(wiring: &Wiring<'_>, lines: &CountedLines) -> PolicyPathMtu {
        let number = |name| wiring.number(name);
        let [next, next_x, replace, replace_x] = csid::NODES;
        PolicyPathMtu {
            lines: lines.of(wiring.worker),
            look_up: [end::NODE, next, replace].map(number),
            cross: [end_x::NODE, next_x, replace_x].map(number),
            in_table: wiring.node(nodes::ip6::LOOKUP_IN_TABLE),
            drop: wiring.node(nodes::ip6::DROP),
        }
    }

    /// The longest packet with an entry's header that may go by this hop. `last` is the packet's
    /// last segment, where that is its own.
    pub fn mtu(
        &self,
        output: &EncapOutput<SegmentStack>,
        entry: &EncapEntry,
        hop: Hop,
        hash: u32,
        last: Option<Ipv6Addr>,
    ) -> Mtu {
        output.mtu(entry, hop, || {
            self.find(&output.tables, entry, last, hop, hash, |hop| output.has_adjacency(hop))
        })
    }

    /// The hop by which a packet with an entry's header leaves in the end, and how many bytes
    /// shorter it is then. `last` is its last segment, where that is its own. `None` when it does
    /// not go on as a packet with these headers.
    #[cold]
    fn find(
        &self,
        tables: &IpTables,
        entry: &EncapEntry,
        last: Option<Ipv6Addr>,
        mut hop: Hop,
        hash: u32,
        leaves: impl Fn(Hop) -> bool,
    ) -> Option<(Hop, usize)> {
        let mut copy = [0; HEADER_BYTES_MAX];
        let own = copy.get_mut(..entry.header_len())?;
        own.copy_from_slice(entry.header());
        let destination = Ip6Header::overlay(own)?.destination().to_bits();
        if let (Some(last), Some(place)) = (last, own.get_mut(LAST_SEGMENT)) {
            place.copy_from_slice(&last.octets());
        }
        let mut headers = Headers { destination, srh: own.get_mut(SRH_PLACE..)?, gone: 0 };
        let resolve = |group: GroupId| tables.groups.resolve(group, hash);
        let look_up = |table: u32, address: u128| resolve(tables.ip6.table(table).lookup(address));
        if hop.next == self.drop {
            hop = look_up(EntryView(entry).table(), headers.destination);
        }
        for _ in 0..STEPS_MAX {
            if leaves(hop) {
                return Some((hop, headers.gone));
            }
            if hop.next == self.in_table {
                hop = look_up(hop.index, headers.destination);
                continue;
            }
            let is =
                |nodes: &[Option<NodeId>; 3]| nodes.iter().position(|node| *node == Some(hop.next));
            let (place, crosses) = match (is(&self.look_up), is(&self.cross)) {
                (Some(place), _) => (place, false),
                (None, Some(place)) => (place, true),
                (None, None) => return None,
            };
            let line = SidEntryRef(self.lines.line(hop.index));
            headers.step(line, [Flavor::Plain, Flavor::Next, Flavor::Replace][place])?;
            hop = if crosses {
                resolve(line.group6())
            } else {
                look_up(line.six(), headers.destination)
            };
        }
        None
    }
}
