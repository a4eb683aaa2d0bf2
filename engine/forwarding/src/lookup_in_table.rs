//! `ip4-lookup-in-table`, `ip6-lookup-in-table`: a route that says "look again, in that table"; and
//! `ip4-source-lookup-in-table`, `ip6-source-lookup-in-table`: one that says "look the source up,
//! in that table", whose route decides where the packet goes.

use std::marker::PhantomData;

use quiver_core::cpu::Variant;
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_tables::GroupId;

use crate::fib::Family;
use crate::handover::TableIndex;
use crate::ip::{IpFamily, IpTables, choose, one_hop, take_hop};
use crate::nodes;

quiver_core::reasons! {
    /// Why a second look-up drops.
    pub enum LookupInTableDrop {
        /// Round and round.
        Loop = "lookup-loop", "look-ups in further tables never end: two tables point at each \
            other";
        /// Not the family of the table.
        WrongFamily = "wrong-family", "the route leads to a table of the other address family";
    }
}

/// Which address of a packet is looked up.
pub trait Side: Send + 'static {
    /// The names of the nodes, for IPv4 and IPv6.
    const NAMES: [&'static str; 2];
    /// What they do.
    const HELP: [&'static str; 2];
    /// What stands before a packet's description in a trace.
    const TRACE: &'static str;

    /// The address.
    fn address<F: IpFamily>(bytes: &[u8]) -> Option<F::Address>;
}

/// The destination.
pub struct Destination;

impl Side for Destination {
    const NAMES: [&'static str; 2] = [nodes::ip4::LOOKUP_IN_TABLE, nodes::ip6::LOOKUP_IN_TABLE];
    const HELP: [&'static str; 2] = [
        "Looks a destination up in another IPv4 table",
        "Looks a destination up in another IPv6 table",
    ];
    const TRACE: &'static str = "";

    #[inline(always)]
    fn address<F: IpFamily>(bytes: &[u8]) -> Option<F::Address> {
        F::destination(bytes)
    }
}

/// The source.
pub struct Source;

impl Side for Source {
    const NAMES: [&'static str; 2] =
        [nodes::ip4::SOURCE_LOOKUP_IN_TABLE, nodes::ip6::SOURCE_LOOKUP_IN_TABLE];
    const HELP: [&'static str; 2] =
        ["Looks a packet's source up in a table, and sends the packet by its route"; 2];
    const TRACE: &'static str = "source of ";

    #[inline(always)]
    fn address<F: IpFamily>(bytes: &[u8]) -> Option<F::Address> {
        F::source(bytes)
    }
}

/// The place of a family in pairs.
const fn place<F: IpFamily>() -> usize {
    match F::FAMILY {
        Family::Ip4 => 0,
        Family::Ip6 => 1,
    }
}

/// What is looked up, and in which table; or why nothing is.
#[derive(Clone, Copy, Default)]
struct Question<A> {
    address: A,
    table: u32,
    refused: Option<LookupInTableDrop>,
}

/// Addresses that are put side by side for the match.
const COLUMN: usize = 64;
/// In place of a group: nothing was looked up.
const REFUSED: GroupId = GroupId(u32::MAX);

struct LookupInTable<F, S> {
    tables: IpTables,
    kind: PhantomData<fn() -> (F, S)>,
}

impl<F: IpFamily, S: Side> LookupInTable<F, S> {
    /// Look addresses up that are to be found in one table.
    #[inline(always)]
    fn find_in_one(
        &self,
        questions: &[Question<F::Address>],
        found: &mut [GroupId],
        look_up: impl Fn(u32, &[F::Address], &mut [GroupId]),
    ) {
        let Some(first) = questions.first() else { return };
        if first.refused.is_some() {
            return found.fill(REFUSED);
        }
        let mut addresses = [F::Address::default(); COLUMN];
        for (questions, found) in questions.chunks(COLUMN).zip(found.chunks_mut(COLUMN)) {
            for (address, question) in addresses.iter_mut().zip(questions) {
                *address = question.address;
            }
            look_up(first.table, &addresses[..questions.len()], found);
        }
        self.tables.groups.prefetch_found(found);
    }

    /// Look addresses up, table by table.
    #[inline(always)]
    fn find_each(
        &self,
        mut questions: &[Question<F::Address>],
        mut found: &mut [GroupId],
        look_up: impl Fn(u32, &[F::Address], &mut [GroupId]),
    ) {
        while let Some(first) = questions.first() {
            let alike = questions.iter().take_while(|question| {
                (question.table == first.table) & (question.refused == first.refused)
            });
            let count = alike.count().min(found.len());
            let (now, later) = questions.split_at(count);
            let (answers, rest) = std::mem::take(&mut found).split_at_mut(count);
            self.find_in_one(now, answers, &look_up);
            (questions, found) = (later, rest);
            if found.is_empty() {
                return;
            }
        }
    }
}

impl<F: IpFamily, S: Side> LookUp for LookupInTable<F, S> {
    const NAME: &'static str = S::NAMES[place::<F>()];
    type Reason = LookupInTableDrop;
    type Key = Question<F::Address>;
    type Found = GroupId;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline(always)]
    fn key(&self, (): (), packet: &mut Packet) -> Question<F::Address> {
        let refuse = |why| Question { refused: Some(why), ..Question::default() };
        if !packet.turn() {
            return refuse(LookupInTableDrop::Loop);
        }
        let version = packet.bytes().first().map_or(0, |byte| byte >> 4);
        let address = S::address::<F>(packet.bytes()).filter(|_| version == F::VERSION);
        let Some(address) = address else { return refuse(LookupInTableDrop::WrongFamily) };
        let TableIndex(table) = packet.handed_over();
        Question { address, table, refused: None }
    }

    #[inline(always)]
    fn find(&self, variant: Variant, (): (), keys: &[Question<F::Address>], found: &mut [GroupId]) {
        self.find_each(keys, found, |table, addresses, found| {
            F::table(&self.tables, table).lookup_slice(variant, addresses, found);
        });
    }

    #[inline(always)]
    fn find_uniform(
        &self,
        variant: Variant,
        (): (),
        keys: &[Question<F::Address>],
        found: &mut [GroupId],
    ) {
        self.find_each(keys, found, |table, addresses, found| {
            F::table(&self.tables, table).lookup_uniform(variant, addresses, found);
        });
    }

    #[inline(always)]
    fn resolve_all(
        &self,
        _: StageContext<'_>,
        (): (),
        found: &[GroupId],
        packets: &mut [Packet],
    ) -> Option<NodeId> {
        if *found.first()? == REFUSED {
            return None;
        }
        one_hop(&self.tables.groups, found).map(|hop| take_hop(hop, packets))
    }

    #[inline(always)]
    fn resolve(
        &self,
        _: StageContext<'_>,
        (): (),
        key: Question<F::Address>,
        group: GroupId,
        packet: &mut Packet,
    ) -> Result<NodeId, LookupInTableDrop> {
        match key.refused {
            None => Ok(choose::<F>(&self.tables.groups, group, packet)),
            Some(why) => Err(why),
        }
    }
}

/// The declaration of one of the four.
pub fn spec<F: IpFamily, S: Side>(tables: &IpTables) -> NodeSpec {
    let (tables, adjacencies) = (tables.clone(), tables.adjacencies.clone());
    NodeSpec::look_up(S::HELP[place::<F>()], move |wiring| {
        F::wire_route_targets(wiring);
        LookupInTable::<F, S> { tables: tables.clone(), kind: PhantomData }
    })
    .takes_offloads()
    .describe(move |record, names| {
        let hop = crate::hop_description::describe(&adjacencies, record, names);
        format!("{}{} → {hop}", S::TRACE, F::describe(record.bytes()))
    })
}
