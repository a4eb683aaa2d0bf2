//! External ends of new sessions: an address of the pool and a free port of it, of a block of the
//! subscriber where there are blocks.

use quiver_core::cpu::Variant;
use quiver_nat_log::Event;
use quiver_tables::exact::NOT_FOUND;
use quiver_translation::flow::{End, Flow, Key};
use quiver_wire::IpProtocol;

use crate::bindings::{
    block_at, block_of, mapping_from, mapping_to, quarantined, subscriber_address, subscriber_keys,
};
use crate::node::Nat44Drop;
use crate::owned::{Owner, Refused};
use crate::session::Flags;
use crate::softwires::{SOFTWIRE, b4_of, is_softwire};
use crate::tables::{Blocks, FIRST_PORT, PORTS, Rules};

/// Ports that are tried in one look-up.
pub(crate) const PORTS_PER_LOOK_UP: u32 = 64;
/// Ports that are tried before that: where half of an address's are free, one of them nearly always
/// is.
const PORTS_AT_FIRST: usize = 8;
/// Addresses whose whole range is searched for one packet; of the others, one look-up's ports are
/// tried. So many take about 2 ms.
const ADDRESSES_SEARCHED: usize = 4;
/// Destinations of which it is remembered that no port is free.
pub(crate) const EXHAUSTED_MAX: usize = 256;

/// What no port is left for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Exhausted {
    remote: End,
    protocol: u8,
    tables: (u32, u32),
    /// The only address that a paired subscriber may have; 0 of others.
    paired: u32,
    /// Second until which it is believed.
    until_s: u32,
}

/// A flow from inside that needs an external end.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'r> {
    pub rules: &'r Rules,
    /// As it comes from inside.
    pub flow: Flow,
    /// The remote end as it is outside.
    pub remote: End,
    /// Small number of the table outside.
    pub table: u32,
    pub now_s: u32,
}

impl Wanted<'_> {
    /// The flow of packets from outside to an external end.
    pub fn outside(&self, external: End) -> Flow {
        let is_icmp = self.flow.is_icmp();
        Flow {
            // An identifier is the same at both ends.
            source: if is_icmp { End { port: external.port, ..self.remote } } else { self.remote },
            destination: external,
            protocol: self.flow.protocol,
            table: self.table,
        }
    }

    fn has_ports(&self) -> bool {
        matches!(self.flow.protocol, IpProtocol::TCP | IpProtocol::UDP) || self.flow.is_icmp()
    }

    fn source(&self) -> (u32, u32) {
        let Flow { table, source, .. } = self.flow;
        (table, subscriber_address(table, source.address))
    }
}

/// Consecutive ports of an address.
#[derive(Clone, Copy)]
pub(crate) struct Range {
    first: u16,
    count: u32,
}

pub(crate) const ALL_PORTS: Range = Range { first: FIRST_PORT, count: PORTS };

impl Range {
    fn has(self, port: u16) -> bool {
        port >= self.first && u32::from(port - self.first) < self.count
    }
}

impl Owner {
    fn exhausted_place(what: &Exhausted) -> usize {
        let word = u64::from(what.remote.address) << 24
            ^ u64::from(what.remote.port) << 8
            ^ u64::from(what.protocol)
            ^ u64::from(what.paired).rotate_left(20);
        (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize % EXHAUSTED_MAX
    }

    fn is_exhausted(&self, what: Exhausted, now_s: u32) -> bool {
        let known = self.exhausted[Self::exhausted_place(&what)];
        known.until_s > now_s && Exhausted { until_s: 0, ..known } == what
    }

    fn note_exhausted(&mut self, what: Exhausted, now_s: u32) {
        self.exhausted[Self::exhausted_place(&what)] = Exhausted { until_s: now_s + 1, ..what };
    }

    /// An external end for a flow, and flags of its session.
    pub fn external_end(&mut self, wanted: &Wanted<'_>) -> Result<(End, Flags), Refused> {
        let Wanted { rules, flow, now_s, .. } = *wanted;
        let is_independent = self.is_independent(rules) && wanted.has_ports();
        if is_independent && let Some(bindings) = &self.bindings {
            let key = mapping_from(flow.source, flow.protocol, flow.table);
            if let Some(mapping) = bindings.read.find(&key) {
                let external = mapping.flow(crate::session::Direction::OutToIn).destination;
                return Ok((external, Flags::POOLED.with(Flags::MAPPED)));
            }
        }
        self.check_ports(wanted, is_independent)?;
        let end = match rules.provider.blocks.filter(|_| wanted.has_ports()) {
            Some(blocks) if self.bindings.is_some() => self.end_in_block(wanted, blocks)?,
            _ => self.end_of_pool(wanted)?,
        };
        let mut flags = Flags::POOLED;
        let has_blocks = rules.provider.blocks.is_some() && wanted.has_ports();
        let Some(bindings) = &mut self.bindings else { return Ok((end, flags)) };
        if is_independent {
            let inside = (flow.source, flow.protocol, flow.table);
            let log = (now_s, &mut self.log);
            let made = bindings.make_mapping(inside, end, log, &rules.provider);
            made.map_err(|_| Refused::Answered(Nat44Drop::BindingsExceeded))?;
            flags = flags.with(Flags::MAPPED);
        } else if has_blocks {
            flags = flags.with(Flags::IN_BLOCK);
        }
        Ok((end, flags))
    }

    fn is_independent(&self, rules: &Rules) -> bool {
        rules.provider.independent.is_some() && self.bindings.is_some()
    }

    /// The limit of ports of a subscriber: of mappings, or of sessions where each has its own end.
    fn check_ports(&mut self, wanted: &Wanted<'_>, is_independent: bool) -> Result<(), Refused> {
        let most = wanted.rules.provider.limits.ports;
        let Some(bindings) = self.bindings.as_ref().filter(|_| most > 0) else { return Ok(()) };
        let (table, address) = wanted.source();
        let owner = bindings.read.find(&subscriber_keys(table, address)[0]);
        let used =
            owner.map_or(0, |owner| if is_independent { owner.mappings() } else { owner.users() });
        if used < most {
            return Ok(());
        }
        self.log.quota(Event::SubscriberQuota, (table, address), most);
        Err(Refused::Answered(Nat44Drop::SubscriberLimit))
    }

    /// A port of an address for which the flow's end is free: the source's own, or one of the
    /// first `tries` from a random one on.
    pub fn port(
        &mut self,
        wanted: &Wanted<'_>,
        address: u32,
        range: Range,
        tries: u32,
    ) -> Option<u16> {
        let own = wanted.flow.source.port;
        if own != 0 && (range.count == PORTS || range.has(own)) {
            let found = match self.is_independent(wanted.rules) {
                true => self.bindings.as_ref().and_then(|bindings| {
                    let key = mapping_to(End { address, port: own }, wanted.flow.protocol);
                    bindings.read.table.lookup(&key)
                }),
                false => self.writer.table().lookup(&self.key_of(wanted, address, own)),
            };
            if self.is_free(wanted, End { address, port: own }, found.unwrap_or(NOT_FOUND)) {
                return Some(own);
            }
        }
        let start = (((self.random() >> 32) * u64::from(range.count)) >> 32) as u32;
        let end =
            |at: u32| End { address, port: range.first + ((start + at) % range.count) as u16 };
        // No port is tried twice: a block may have fewer than one look-up tries.
        let tries = tries.min(range.count);
        self.first_free::<PORTS_AT_FIRST>(wanted, tries, end).or_else(|| {
            let mut firsts = (PORTS_AT_FIRST as u32..tries).step_by(PORTS_PER_LOOK_UP as usize);
            firsts.find_map(|first| {
                let end = |at| end(first + at);
                self.first_free::<{ PORTS_PER_LOOK_UP as usize }>(wanted, tries - first, end)
            })
        })
    }

    /// The port of the first of `N` ends that is free, but of `tries` at most, by one look-up.
    fn first_free<const N: usize>(
        &mut self,
        wanted: &Wanted<'_>,
        tries: u32,
        end: impl Fn(u32) -> End,
    ) -> Option<u16> {
        let count = N.min(tries as usize);
        let end = |at: usize| end(at as u32);
        let keys: [Key; N] = std::array::from_fn(|at| {
            let End { address, port } = end(at);
            self.key_of(wanted, address, port)
        });
        let mut found = [NOT_FOUND; N];
        let table = match (&self.bindings, self.is_independent(wanted.rules)) {
            (Some(bindings), true) => bindings.read.table.clone(),
            _ => self.writer.table(),
        };
        table.lookup_slice(Variant::best(), &keys[..count], &mut found[..count]);
        let free = (0..count).find(|at| self.is_free(wanted, end(*at), found[*at]));
        free.map(|at| end(at).port)
    }

    /// What says whether a port is in use: the mapping's key, or that of packets from outside.
    fn key_of(&self, wanted: &Wanted<'_>, address: u32, port: u16) -> Key {
        let external = End { address, port };
        match self.is_independent(wanted.rules) {
            true => mapping_to(external, wanted.flow.protocol),
            false => wanted.outside(external).key(),
        }
    }

    /// May an end be used whose key has led to `found`?
    fn is_free(&mut self, wanted: &Wanted<'_>, end: End, found: u32) -> bool {
        let Wanted { rules, flow, now_s, .. } = *wanted;
        if rules.is_reserved(end, flow.protocol) {
            return false;
        }
        let is_independent = self.is_independent(rules);
        let provider = &rules.provider;
        let outside = wanted.outside(end);
        if self.algs.expected.find(&outside).is_some() {
            return false;
        }
        if found != NOT_FOUND {
            let number = found >> 1;
            let Some(bindings) = self.bindings.as_mut().filter(|_| is_independent) else {
                return false;
            };
            if !bindings.is_over(number, now_s, provider) {
                return false;
            }
            bindings.end(number, now_s, provider, &mut self.log);
        }
        if is_independent {
            return self.writer.get(&outside.key()).is_none();
        }
        let Some(bindings) = self.bindings.as_mut().filter(|_| provider.reuse_s > 0) else {
            return true;
        };
        let Some(number) = bindings.read.number(&quarantined(outside)) else { return true };
        let waiting = bindings.read.get(number).flow(crate::session::Direction::InToOut);
        let is_own = waiting.key() == quarantined(flow);
        if !is_own && !bindings.is_over(number, now_s, provider) {
            return false;
        }
        bindings.end(number, now_s, provider, &mut self.log);
        true
    }

    /// The pool's addresses for a flow, the subscriber's own first; only that when it is paired.
    fn addresses<'r>(
        &self,
        wanted: &Wanted<'r>,
    ) -> (impl Iterator<Item = u32> + Clone + use<'r>, usize) {
        let Wanted { rules, flow, .. } = *wanted;
        let group = if is_softwire(flow.table) { SOFTWIRE } else { flow.table };
        let own = rules.pool.iter().any(|address| address.tenant == Some(group));
        let tenant = own.then_some(group);
        let pool = rules.pool.iter().filter(move |address| address.tenant == tenant);
        let count = pool.clone().count();
        // A host keeps its address while that has ports (RFC 4787 REQ-2).
        let (table, address) = wanted.source();
        let number = b4_of(table).map_or(0, u64::from);
        let hash = (u64::from(address) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let by_hash = ((hash * count as u64) >> 32) as usize;
        let paired = self.paired(wanted);
        let place = pool.clone().position(|pooled| Some(pooled.address) == paired);
        let first = place.unwrap_or(by_hash);
        let is_paired = rules.provider.is_paired && self.bindings.is_some();
        let used = if is_paired { count.min(1) } else { count };
        (pool.cycle().skip(first).map(|pooled| pooled.address), used)
    }

    /// The external address that a subscriber has.
    fn paired(&self, wanted: &Wanted<'_>) -> Option<u32> {
        let bindings = self.bindings.as_ref().filter(|_| wanted.rules.provider.is_paired)?;
        let (table, address) = wanted.source();
        let owner = bindings.read.find(&subscriber_keys(table, address)[0])?;
        Some(owner.paired()).filter(|paired| *paired != 0)
    }

    /// An end of the pool.
    fn end_of_pool(&mut self, wanted: &Wanted<'_>) -> Result<End, Refused> {
        let Wanted { rules, flow, remote, table, now_s } = *wanted;
        let is_independent = self.is_independent(rules);
        // Ahead for paired subscribers only: what is known to be exhausted spares others the pool.
        let of_paired = rules.provider.is_paired.then(|| self.addresses(wanted));
        let paired = of_paired.as_ref().and_then(|(addresses, _)| addresses.clone().next());
        let what = Exhausted {
            remote: match is_independent {
                true => End::default(),
                false if flow.is_icmp() => End { port: 0, ..remote },
                false => remote,
            },
            protocol: flow.protocol.0,
            tables: (flow.table, table),
            paired: paired.unwrap_or(0),
            until_s: 0,
        };
        if self.is_exhausted(what, now_s) {
            return Err(Refused::Answered(Nat44Drop::OutOfPorts));
        }
        let (mut addresses, count) = of_paired.unwrap_or_else(|| self.addresses(wanted));
        if !wanted.has_ports() {
            let ends = addresses.by_ref().take(count).map(|address| End { address, port: 0 });
            let mut ends = ends;
            let free = ends.find(|end| self.writer.get(&wanted.outside(*end).key()).is_none());
            return free.ok_or_else(|| self.no_port(wanted));
        }
        let all: FewAddresses =
            FewAddresses::of(addresses.clone().take(count.min(ADDRESSES_SEARCHED)));
        // One look-up in each, as many as there are; then all ports of the first few.
        for address in addresses.take(count) {
            if let Some(port) = self.port(wanted, address, ALL_PORTS, PORTS_PER_LOOK_UP) {
                return Ok(End { address, port });
            }
        }
        for address in all {
            if let Some(port) = self.port(wanted, address, ALL_PORTS, PORTS) {
                return Ok(End { address, port });
            }
        }
        self.note_exhausted(what, now_s);
        Err(self.no_port(wanted))
    }

    /// An end of a block that the subscriber has, or of a new one.
    fn end_in_block(&mut self, wanted: &Wanted<'_>, blocks: Blocks) -> Result<End, Refused> {
        let (table, address) = wanted.source();
        let mut free_number = None;
        let mut own_address = None;
        for nth in 0..blocks.max {
            let Some(bindings) = &self.bindings else { break };
            let Some(block) = bindings.read.find(&block_of(table, address, nth)) else {
                free_number = free_number.or(Some(nth));
                continue;
            };
            let at = block.flow(crate::session::Direction::OutToIn).destination;
            own_address = own_address.or(Some(at.address));
            let range =
                Range { first: blocks.first_port(at.port - 1), count: u32::from(blocks.size) };
            if let Some(port) = self.port(wanted, at.address, range, range.count) {
                return Ok(End { address: at.address, port });
            }
        }
        let Some(nth) = free_number else {
            let most = u32::from(blocks.max) * u32::from(blocks.size);
            self.log.quota(Event::SubscriberQuota, (table, address), most);
            return Err(Refused::Answered(Nat44Drop::SubscriberLimit));
        };
        let (addresses, count) = self.addresses(wanted);
        let mut tried = FewAddresses::of(addresses.take(count));
        if let Some(own) = own_address {
            // A subscriber with blocks stays at its address while that has blocks.
            tried = match wanted.rules.provider.is_paired {
                true => FewAddresses::of([own].into_iter()),
                false => FewAddresses::of([own].into_iter().chain(tried)),
            };
        }
        for external in tried {
            let Some(index) = self.free_block(wanted, blocks, external) else { continue };
            let Some(bindings) = &mut self.bindings else { break };
            let log = (wanted.now_s, &mut self.log);
            let made = bindings.make_block((table, address), nth, (external, index), log, blocks);
            made.map_err(|_| Refused::Answered(Nat44Drop::BindingsExceeded))?;
            let range = Range { first: blocks.first_port(index), count: u32::from(blocks.size) };
            if let Some(port) = self.port(wanted, external, range, range.count) {
                return Ok(End { address: external, port });
            }
        }
        Err(self.no_port(wanted))
    }

    /// No port is left that the host may use: of its only address, or of all.
    fn no_port(&mut self, wanted: &Wanted<'_>) -> Refused {
        let (mut addresses, count) = self.addresses(wanted);
        let only = if count == 1 { addresses.next() } else { None };
        self.log.exhausted(only.unwrap_or(0), wanted.flow.protocol.0);
        Refused::Answered(Nat44Drop::OutOfPorts)
    }

    /// A block of an address that nobody has, or that nobody uses any more.
    fn free_block(&mut self, wanted: &Wanted<'_>, blocks: Blocks, external: u32) -> Option<u16> {
        let count = u32::from(blocks.per_address());
        let start = (((self.random() >> 32) * u64::from(count)) >> 32) as u32;
        let bindings = self.bindings.as_mut()?;
        let provider = &wanted.rules.provider;
        let mut over = None;
        for at in 0..count {
            let index = ((start + at) % count) as u16;
            match bindings.read.number(&block_at(external, index)) {
                None => return Some(index),
                Some(number) if over.is_none() => {
                    let is_over = bindings.is_over(number, wanted.now_s, provider);
                    over = is_over.then_some((number, index));
                }
                Some(_) => {}
            }
        }
        let (number, index) = over?;
        bindings.end(number, wanted.now_s, provider, &mut self.log);
        Some(index)
    }

    /// An end of the twice-NAT pool for a remote host of a session: `key_of` is the key of packets
    /// from inside to it.
    pub fn twice_end(
        &mut self,
        rules: &Rules,
        exact: u32,
        remote: End,
        key_of: impl Fn(End) -> Key,
    ) -> Result<End, Refused> {
        let is_free = |owner: &Owner, end: End| owner.writer.get(&key_of(end)).is_none();
        for address in &rules.twice_pool {
            let address = *address;
            if exact != 0 && exact != address {
                continue;
            }
            let own = End { address, port: remote.port };
            if remote.port != 0 && is_free(self, own) {
                return Ok(own);
            }
            let start = (((self.random() >> 32) * u64::from(PORTS)) >> 32) as u32;
            let port = |at: u32| FIRST_PORT + ((start + at) % PORTS) as u16;
            let ends = (0..PORTS).map(|at| End { address, port: port(at) });
            if let Some(end) = ends.into_iter().find(|end| is_free(self, *end)) {
                return Ok(end);
            }
        }
        self.log.exhausted(exact, 0);
        Err(Refused::Answered(Nat44Drop::OutOfPorts))
    }
}

/// Up to [`ADDRESSES_SEARCHED`] addresses.
#[derive(Clone, Copy)]
struct FewAddresses {
    addresses: [u32; ADDRESSES_SEARCHED],
    count: usize,
}

impl FewAddresses {
    fn of(from: impl Iterator<Item = u32>) -> FewAddresses {
        let mut few = FewAddresses { addresses: [0; ADDRESSES_SEARCHED], count: 0 };
        for address in from {
            if few.addresses[..few.count].contains(&address) {
                continue;
            }
            let Some(place) = few.addresses.get_mut(few.count) else { break };
            *place = address;
            few.count += 1;
        }
        few
    }
}

impl IntoIterator for FewAddresses {
    type Item = u32;
    type IntoIter = std::iter::Take<std::array::IntoIter<u32, ADDRESSES_SEARCHED>>;

    fn into_iter(self) -> Self::IntoIter {
        self.addresses.into_iter().take(self.count)
    }
}
