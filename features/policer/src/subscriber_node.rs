//! `policer-subscriber-input`, `policer-subscriber-output`: each subscriber's packets are metered
//! by buckets of its own, by their source where they come in, by their destination where they go
//! out.
//!
//! A block's addresses are looked up together. The lines that they lead to are asked for some
//! packets before they are used.

use std::sync::Arc;

use quiver_core::cpu::Variant;
use quiver_core::graph::arc::{DEVICE_INPUT, INTERFACE_OUTPUT};
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::{Ip4, Ip6, IpFamily, ip_header, traffic_class};
use quiver_policing::{NO_POLICER, Policers, Verdict, dscp};
use quiver_tables::GroupId;
use quiver_tables::lpm::LpmSpace;
use quiver_tables::prefix::Address;

use crate::node::PolicerDrop;
use crate::subscribers::SubscriberTables;
use crate::tables::Direction;

/// Packets that are looked up in step.
const BATCH: usize = 128;
/// Lines that are asked for before they are used: as many as a core can wait for at once.
const AHEAD: usize = 16;
/// What a prefix match answers for an address that is no subscriber's.
pub(crate) const NO_SUBSCRIBER: GroupId = GroupId(0);

impl Direction {
    /// The name of the node that meters subscribers.
    pub(crate) const fn subscriber_node(self) -> &'static str {
        match self {
            Direction::Input => "policer-subscriber-input",
            Direction::Output => "policer-subscriber-output",
        }
    }
}

/// A packet's address that may be a subscriber's.
#[derive(Clone, Copy, Default)]
pub(crate) struct Key {
    address: u128,
    length: u32,
    /// The IP version; 0: it is no packet that is metered.
    version: u8,
    code_point: u8,
}

/// Whose a packet is: the subscriber's number, and its policer or [`NO_POLICER`].
#[derive(Clone, Copy, PartialEq, Eq)]
struct Owner {
    subscriber: u32,
    policer: u16,
}

/// A worker's instance.
pub(crate) struct Subscribers<const OUTPUT: bool> {
    policers: Arc<Policers>,
    tables: Arc<SubscriberTables>,
}

impl<const OUTPUT: bool> Subscribers<OUTPUT> {
    const DIRECTION: Direction = if OUTPUT { Direction::Output } else { Direction::Input };

    #[inline(always)]
    fn address<F: IpFamily>(bytes: &[u8]) -> Option<F::Address> {
        if OUTPUT { F::destination(bytes) } else { F::source(bytes) }
    }

    /// The address of an IP packet that counts, and its code point.
    #[inline(always)]
    fn key_of(&self, packet: &Packet) -> Option<Key> {
        let is_bare = self.tables.is_bare(Self::DIRECTION.interface_of(packet), Self::DIRECTION)?;
        let (at, family) = ip_header(packet.bytes(), is_bare)?;
        let bytes = packet.bytes().get(at..)?;
        let (address, version) = match family {
            Family::Ip4 => (Self::address::<Ip4>(bytes)?.into(), Ip4::VERSION),
            Family::Ip6 => (Self::address::<Ip6>(bytes)?, Ip6::VERSION),
        };
        let code_point = traffic_class(family, bytes)? >> 2;
        Some(Key { address, length: packet.length() as u32, version, code_point })
    }

    /// Find the owners of the packets of one version.
    #[inline(always)]
    fn look_up<A: Address + Default>(
        &self,
        how: (Variant, bool),
        (version, space): (u8, Option<&Arc<LpmSpace<A>>>),
        keys: &[Key],
        (of, owners): (impl Fn(u128) -> A, &mut [Owner; BATCH]),
    ) {
        let Some(space) = space else { return };
        let (mut addresses, mut places) = ([A::default(); BATCH], [0_u8; BATCH]);
        let mut count = 0;
        for (place, key) in keys.iter().enumerate().take(BATCH) {
            addresses[count % BATCH] = of(key.address);
            places[count % BATCH] = place as u8;
            count += usize::from(key.version == version);
        }
        if count == 0 {
            return;
        }
        let (mut found, table) = ([NO_SUBSCRIBER; BATCH], space.table(0));
        let (variant, is_uniform) = how;
        match is_uniform {
            true => table.lookup_uniform(variant, &addresses[..count], &mut found[..count]),
            false => table.lookup_slice(variant, &addresses[..count], &mut found[..count]),
        }
        for at in 0..count {
            let Some(prefix) = found[at].0.checked_sub(1) else { continue };
            let place = self.tables.place(prefix);
            let subscriber = place.number(addresses[at]);
            let policer = place.policers[Self::DIRECTION as usize];
            owners[usize::from(places[at]) % BATCH] = Owner { subscriber, policer };
        }
    }

    #[inline(always)]
    fn police(
        &self,
        context: StageContext<'_>,
        how: (Variant, bool),
        keys: &[Key],
        verdicts: &mut [Verdict],
    ) {
        verdicts.fill(Verdict::Pass);
        for (keys, verdicts) in keys.chunks(BATCH).zip(verdicts.chunks_mut(BATCH)) {
            let mut owners = [Owner { subscriber: 0, policer: NO_POLICER }; BATCH];
            let (ip4, ip6) = (self.tables.ip4.get(), self.tables.ip6.get());
            let as_ip4 = |address: u128| address as u32;
            self.look_up(how, (Ip4::VERSION, ip4), keys, (as_ip4, &mut owners));
            self.look_up(how, (Ip6::VERSION, ip6), keys, (|address| address, &mut owners));
            self.meter(context, &owners, keys, verdicts);
        }
    }

    #[inline(always)]
    fn meter(
        &self,
        context: StageContext<'_>,
        owners: &[Owner; BATCH],
        keys: &[Key],
        verdicts: &mut [Verdict],
    ) {
        let meters = &self.tables.meters[Self::DIRECTION as usize];
        let count = keys.len().min(verdicts.len()).min(BATCH);
        let (keys, verdicts) = (&keys[..count], &mut verdicts[..count]);
        let ask = |place: usize| {
            if let Some(owner) = owners.get(place).filter(|owner| owner.policer != NO_POLICER) {
                meters.prefetch(owner.subscriber);
            }
        };
        (0..AHEAD).for_each(ask);
        let (mut number, mut policer, mut place) = (NO_POLICER, None, 0);
        while place < count {
            let owner = owners[place];
            if owner.policer != number {
                number = owner.policer;
                policer = self.policers.get(number, context.pass());
            }
            let Some(policer) = policer else {
                ask(place + AHEAD);
                place += 1;
                continue;
            };
            let mut held = meters.hold(owner.subscriber, policer, context.now_ns());
            while place < count && owners[place] == owner {
                ask(place + AHEAD);
                let key = &keys[place];
                let before = || dscp::colour_of(key.code_point);
                verdicts[place] = held.police(key.length.into(), before);
                place += 1;
            }
        }
    }
}

impl<const OUTPUT: bool> LookUp for Subscribers<OUTPUT> {
    const NAME: &'static str =
        if OUTPUT { Direction::Output } else { Direction::Input }.subscriber_node();
    type Reason = PolicerDrop;
    type Key = Key;
    type Found = Verdict;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline(always)]
    fn key(&self, (): (), packet: &mut Packet) -> Key {
        self.key_of(packet).unwrap_or_default()
    }

    fn find(&self, _: Variant, (): (), _: &[Key], found: &mut [Verdict]) {
        found.fill(Verdict::Pass); // the loop calls the others
    }

    #[inline(always)]
    fn find_in(
        &self,
        context: StageContext<'_>,
        variant: Variant,
        (): (),
        keys: &[Key],
        found: &mut [Verdict],
    ) {
        self.police(context, (variant, false), keys, found);
    }

    #[inline(always)]
    fn find_uniform_in(
        &self,
        context: StageContext<'_>,
        variant: Variant,
        (): (),
        keys: &[Key],
        found: &mut [Verdict],
    ) {
        self.police(context, (variant, true), keys, found);
    }

    #[inline(always)]
    fn resolve(
        &self,
        context: StageContext<'_>,
        (): (),
        _: Key,
        found: Verdict,
        packet: &mut Packet,
    ) -> Result<NodeId, PolicerDrop> {
        let id = Self::DIRECTION.interface_of(packet);
        match found {
            Verdict::Pass => {}
            Verdict::Drop => return Err(PolicerDrop::Policed),
            Verdict::Mark(code_point) => {
                let is_bare = self.tables.is_bare(id, Self::DIRECTION).unwrap_or_default();
                dscp::mark(packet, is_bare, code_point);
            }
        }
        let row = context.interface(id).ok_or(PolicerDrop::Gone)?;
        Ok(match Self::DIRECTION {
            Direction::Input => context.next_in_arc(DEVICE_INPUT, id, packet, row.input),
            Direction::Output => context.next_in_arc(INTERFACE_OUTPUT, id, packet, row.tx),
        })
    }
}

/// The declaration.
pub(crate) fn spec<const OUTPUT: bool>(tables: &Arc<SubscriberTables>) -> NodeSpec {
    let tables = tables.clone();
    let help = match OUTPUT {
        false => "Meters what subscribers send, each by its own rate",
        true => "Meters what subscribers receive, each by its own rate",
    };
    NodeSpec::look_up(help, move |wiring| Subscribers::<OUTPUT> {
        policers: wiring.shared(),
        tables: tables.clone(),
    })
    .describe(move |record, names| {
        let (bytes, next) = (record.packet_bytes, names.node(record.next));
        let on = if OUTPUT { record.tx } else { record.rx };
        format!("{bytes} bytes on {}, to {next}", names.interface(on))
    })
}
