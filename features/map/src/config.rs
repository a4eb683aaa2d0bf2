//! What is configured, on the control thread.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use quiver_control::Refusal;
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Fib, Path, Source, Target};
use quiver_forwarding::next_hop_group::Hop;
use quiver_tables::GroupId;
use quiver_tables::lpm::{LpmWriter, Route};
use quiver_tables::prefix::{self, Prefix};
use quiver_wire::ip6::address::is_unicast;

use crate::border::{FROM_CUSTOMERS, TABLE, TO_CUSTOMERS, TO_IP4, TO_IP6};
use crate::domain::{Bindings, Domain, UNBOUND};
use crate::domain_config::DomainConfig;
use crate::tables::{DOMAINS_MAX, NO_DOMAIN, Params, Shared, TRANSLATES};

/// PSIDs that rules of all domains may bind at most, each of 16 bytes.
pub(crate) const PSIDS_MAX: usize = 4_194_304;
/// Who needs virtual reassembly.
const WHO: &str = "map";

/// A domain.
pub(crate) struct Configured {
    pub config: DomainConfig,
    /// The IPv6 addresses of PSIDs.
    pub rules: BTreeMap<u16, Ipv6Addr>,
}

/// A route to a border relay's address, or to a default mapping rule.
struct Border {
    /// How many domains have it.
    domains: usize,
    translates: bool,
}

/// The state of MAP.
pub(crate) struct Map {
    pub shared: Arc<Shared>,
    pub domains: BTreeMap<u32, Configured>,
    /// The indices of domains, by IPv4 prefix.
    by_prefix4: BTreeMap<(u32, u8), u32>,
    borders: BTreeMap<(u128, u8), Border>,
    /// The domains that translate, by IPv6 prefix; made with the first of them.
    by_prefix6: Option<LpmWriter<u128>>,
    pub params: Params,
    /// The modes of which interfaces take packets.
    pub interfaces: BTreeMap<InterfaceId, u8>,
    pub rules: usize,
    /// PSIDs that rules may bind.
    psids: usize,
}

impl Configured {
    fn psids(&self) -> usize {
        if self.config.has_rules() { sets_of(&self.config) } else { 0 }
    }

    /// What workers read, with the rules as they are.
    fn domain(&self) -> Result<Domain, Refusal> {
        let mut bindings: Bindings = vec![UNBOUND; self.psids()].into();
        for (psid, ip6) in &self.rules {
            if let Some(place) = bindings.get_mut(usize::from(*psid)) {
                *place = ip6.to_bits();
            }
        }
        self.config.domain(self.config.has_rules().then_some(bindings))
    }
}

fn sets_of(config: &DomainConfig) -> usize {
    config.ports().map_or(0, |ports| ports.sets())
}

fn not_built_in(node: &str) -> Refusal {
    Refusal::new(format!("the node {node} is not built in"))
}

fn missing(index: u32) -> Refusal {
    Refusal::new(format!("there is no MAP domain {index}")).remedy("`show map domain` lists them")
}

/// Add a route of a feature to a node, with this index.
fn lead(engine: &mut Engine, prefix: IpAddr, length: u8, hop: (&str, u32)) -> Result<(), Refusal> {
    let next = engine.node_id(hop.0).ok_or_else(|| not_built_in(hop.0))?;
    let fib = engine.get_mut::<Fib>().ok_or_else(|| not_built_in("ip4-lookup"))?;
    let path = Path::new(Target::Feature(Hop { next, index: hop.1 }));
    let prefix = prefix::IpPrefix::new(prefix, length);
    fib.add_route(TABLE, prefix, Source::Feature, &[path])
        .map_err(|error| Refusal::new(error.to_string()))
}

/// Take a route back.
fn lead_no_more(engine: &mut Engine, prefix: IpAddr, length: u8) {
    if let Some(fib) = engine.get_mut::<Fib>() {
        let prefix = prefix::IpPrefix::new(prefix, length);
        let _ = fib.remove_route(TABLE, prefix, Source::Feature);
    }
}

impl Map {
    pub fn new(shared: Arc<Shared>) -> Map {
        Map {
            shared,
            domains: BTreeMap::new(),
            by_prefix4: BTreeMap::new(),
            borders: BTreeMap::new(),
            by_prefix6: None,
            params: Params::USUAL,
            interfaces: BTreeMap::new(),
            rules: 0,
            psids: 0,
        }
    }

    fn free_index(&self) -> Option<u32> {
        let count = self.domains.len() as u32;
        // Without gaps the last one has the number before.
        if self.domains.last_key_value().is_none_or(|(last, _)| *last + 1 == count) {
            return (count < DOMAINS_MAX as u32).then_some(count);
        }
        (0..DOMAINS_MAX as u32)
            .zip(self.domains.keys())
            .find(|(index, of)| index != *of)
            .map(|(index, _)| index)
    }

    /// May a domain be added beside those that are there?
    fn check_beside(&self, config: &DomainConfig) -> Result<(), Refusal> {
        if let Some(other) = self.by_prefix4.get(&config.prefix4()) {
            let what = format!("MAP domain {other} has {} already", config.ip4);
            return Err(Refusal::new(what).remedy(format!("map del domain index {other}")));
        }
        let place = source_of(config);
        let border = self.borders.get(&place);
        if border.is_some_and(|border| border.translates != config.translates) {
            let what = format!("ip6-src {} is of domains of the other kind", config.ip6_source);
            return Err(Refusal::new(what).remedy(
                "domains that encapsulate and those with map-t need an ip6-src of their own",
            ));
        }
        if config.translates {
            let has_prefix = |(_, other): &(&u32, &Configured)| {
                other.config.translates && other.config.prefix6() == config.prefix6()
            };
            if let Some((other, _)) = self.domains.iter().find(has_prefix) {
                let what = format!("MAP domain {other} translates {} already", config.ip6);
                return Err(Refusal::new(what).remedy(format!("map del domain index {other}")));
            }
        }
        Ok(())
    }

    /// The match of IPv6 prefixes.
    fn prefixes6(&mut self) -> Result<&mut LpmWriter<u128>, Refusal> {
        if self.by_prefix6.is_none() {
            let made = LpmWriter::new(self.shared.epochs(), NO_DOMAIN)
                .map_err(|error| Refusal::new(error.to_string()))?;
            self.shared.set_prefixes6(made.space());
            self.by_prefix6 = Some(made);
        }
        self.by_prefix6.as_mut().ok_or_else(|| Refusal::new("no memory for prefixes"))
    }

    /// Let workers know a domain, and routes lead to it.
    fn open(
        &mut self,
        engine: &mut Engine,
        index: u32,
        config: &DomainConfig,
        domain: Domain,
    ) -> Result<(), Refusal> {
        self.shared.set_domain(index, Some(domain));
        if config.translates {
            let (bits, length) = config.prefix6();
            let route = Route { group: GroupId(index + 1), note: 0 };
            self.prefixes6()?
                .insert(0, Prefix::new(bits, length), route)
                .map_err(|error| Refusal::new(error.to_string()))?;
        }
        let nodes =
            if config.translates { [TO_IP6, TO_IP4] } else { [TO_CUSTOMERS, FROM_CUSTOMERS] };
        let (source, source_length) = source_of(config);
        if !self.borders.contains_key(&(source, source_length)) {
            let address = Ipv6Addr::from_bits(source).into();
            lead(engine, address, source_length, (nodes[1], 0))?;
        }
        let border = self.borders.entry((source, source_length));
        border.or_insert(Border { domains: 0, translates: config.translates }).domains += 1;
        let (bits, length) = config.prefix4();
        lead(engine, Ipv4Addr::from(bits).into(), length, (nodes[0], index))?;
        self.by_prefix4.insert((bits, length), index);
        Ok(())
    }

    /// How many domains have the border relay's address or default mapping rule of one.
    fn border_domains(&self, config: &DomainConfig) -> usize {
        self.borders.get(&source_of(config)).map_or(0, |border| border.domains)
    }

    /// The reverse of [`open`](Self::open), of as much as was done: `has_border` says whether the
    /// domain is counted where its border relay's address is.
    fn close(&mut self, engine: &mut Engine, index: u32, config: &DomainConfig, has_border: bool) {
        let (bits, length) = config.prefix4();
        if self.by_prefix4.remove(&(bits, length)).is_some() {
            lead_no_more(engine, Ipv4Addr::from(bits).into(), length);
        }
        let place = source_of(config);
        if let Some(border) = self.borders.get_mut(&place).filter(|_| has_border) {
            border.domains -= 1;
            if border.domains == 0 {
                self.borders.remove(&place);
                lead_no_more(engine, Ipv6Addr::from_bits(place.0).into(), place.1);
            }
        }
        if let (true, Some(prefixes)) = (config.translates, &mut self.by_prefix6) {
            let (bits, length) = config.prefix6();
            // What cannot be removed leads to an empty slot.
            let _ = prefixes.remove(0, Prefix::new(bits, length));
        }
        self.shared.set_domain(index, None);
    }
}

/// The border relay's address, or the default mapping rule.
fn source_of(config: &DomainConfig) -> (u128, u8) {
    match config.ip6_source.address {
        IpAddr::V6(address) => (address.to_bits(), config.ip6_source.length),
        IpAddr::V4(_) => (0, 0),
    }
}

/// Add a domain; its index.
///
/// # Errors
/// It makes no domain, another one is in its place, or there are too many.
pub(crate) fn add_domain(
    engine: &mut Engine,
    index: Option<u32>,
    config: DomainConfig,
) -> Result<u32, Refusal> {
    engine.with(|engine, map: &mut Map| {
        config.domain(None)?;
        if let Some((index, known)) = index.and_then(|index| map.domains.get_key_value(&index)) {
            return match known.config == config {
                true => Ok(*index),
                false => Err(Refusal::new(format!("there is another MAP domain {index}"))
                    .remedy(format!("map del domain index {index}"))),
            };
        }
        map.check_beside(&config)?;
        let index = index.or_else(|| map.free_index()).ok_or_else(|| {
            Refusal::new(format!("there are {DOMAINS_MAX} MAP domains already"))
                .remedy("join some into shorter prefixes")
        })?;
        let psids = if config.has_rules() { sets_of(&config) } else { 0 };
        if map.psids + psids > PSIDS_MAX {
            return Err(Refusal::new(format!("rules would have more than {PSIDS_MAX} PSIDs"))
                .remedy("a smaller psid-len"));
        }
        let bindings = config.has_rules().then(|| vec![UNBOUND; psids].into());
        let domain = config.domain(bindings)?;
        let before = map.border_domains(&config);
        if let Err(error) = map.open(engine, index, &config, domain) {
            let has_border = map.border_domains(&config) > before;
            map.close(engine, index, &config, has_border);
            return Err(error);
        }
        map.psids += psids;
        map.domains.insert(index, Configured { config, rules: BTreeMap::new() });
        Ok(index)
    })
}

/// Delete a domain with its rules.
///
/// # Errors
/// There is none.
pub(crate) fn delete_domain(engine: &mut Engine, index: u32) -> Result<(), Refusal> {
    engine.with(|engine, map: &mut Map| {
        let domain = map.domains.remove(&index).ok_or_else(|| missing(index))?;
        map.rules -= domain.rules.len();
        map.psids -= domain.psids();
        map.close(engine, index, &domain.config, true);
        Ok(())
    })
}

/// Bind a PSID of a domain to an IPv6 address, which takes the place of another one.
///
/// # Errors
/// The domain has no rules or no such PSID, or the address is outside of its prefix.
pub(crate) fn add_rule(
    engine: &mut Engine,
    index: u32,
    psid: u16,
    ip6: Ipv6Addr,
) -> Result<(), Refusal> {
    engine.with(|_, map: &mut Map| {
        let domain = map.domains.get_mut(&index).ok_or_else(|| missing(index))?;
        if !domain.config.has_rules() {
            let what = format!("the addresses of MAP domain {index} follow from its prefix");
            return Err(Refusal::new(what)
                .remedy("rules are for a domain with psid-len and without ea-bits-len"));
        }
        if !is_unicast(ip6) {
            return Err(Refusal::new(format!("{ip6} is no address of one host"))
                .remedy("name the address of the customer's edge"));
        }
        let sets = sets_of(&domain.config);
        if usize::from(psid) >= sets {
            return Err(Refusal::new(format!("MAP domain {index} has no PSID {psid}"))
                .remedy(format!("0 to {}", sets.saturating_sub(1))));
        }
        let prefix = domain.config.ip6;
        if !prefix::IpPrefix::new(prefix.address, prefix.length).contains(ip6.into()) {
            return Err(Refusal::new(format!(
                "{ip6} is not in {prefix}, the prefix of the domain"
            ))
            .remedy("name an address of that prefix, or add the domain with ip6-pfx ::/0"));
        }
        let known = domain.rules.insert(psid, ip6);
        if known != Some(ip6) {
            map.shared.set_domain(index, Some(domain.domain()?));
        }
        map.rules += usize::from(known.is_none());
        Ok(())
    })
}

/// Bind a PSID to nothing.
///
/// # Errors
/// There is no such rule.
pub(crate) fn delete_rule(
    engine: &mut Engine,
    index: u32,
    psid: u16,
    ip6: Option<Ipv6Addr>,
) -> Result<(), Refusal> {
    engine.with(|_, map: &mut Map| {
        let domain = map.domains.get_mut(&index).ok_or_else(|| missing(index))?;
        let known = domain.rules.get(&psid).copied();
        if known.is_none_or(|known| ip6.is_some_and(|wanted| wanted != known)) {
            let what = format!("MAP domain {index} has no such rule for PSID {psid}");
            return Err(Refusal::new(what).remedy(format!("`show map rule index {index}`")));
        }
        domain.rules.remove(&psid);
        map.shared.set_domain(index, Some(domain.domain()?));
        map.rules -= 1;
        Ok(())
    })
}

/// Change what holds for all domains.
pub(crate) fn change_params(engine: &mut Engine, change: impl FnOnce(&mut Params)) {
    engine.with(|_, map: &mut Map| {
        change(&mut map.params);
        map.shared.set_params(map.params);
    });
}

/// Let an interface take packets of domains of a mode, or no more.
///
/// # Errors
/// It is so already, or virtual reassembly is not built in.
pub(crate) fn set_interface(
    engine: &mut Engine,
    id: InterfaceId,
    mode: u8,
    on: bool,
) -> Result<(), Refusal> {
    engine.with(|engine, map: &mut Map| {
        let before = map.interfaces.get(&id).copied().unwrap_or(0);
        let modes = if on { before | mode } else { before & !mode };
        if modes == before {
            let name = engine.interface_name(id);
            return Err(Refusal::new(format!("{name} is that already"))
                .remedy("`show map interface` lists them"));
        }
        if let Err(error) = reassemble(engine, id, modes) {
            reassemble(engine, id, before)?;
            return Err(error);
        }
        map.shared.set_modes(id, modes);
        match modes {
            0 => map.interfaces.remove(&id),
            modes => map.interfaces.insert(id, modes),
        };
        Ok(())
    })
}

/// Fragments to customers need the ports of their first ones, and those of customers of MAP-T.
fn reassemble(engine: &mut Engine, id: InterfaceId, modes: u8) -> Result<(), Refusal> {
    engine.need_feature(id, "ip4-unicast", "ip4-sv-reassembly-feature", WHO, modes != 0)?;
    let translates = modes & TRANSLATES != 0;
    engine.need_feature(id, "ip6-unicast", "ip6-sv-reassembly-feature", WHO, translates)?;
    Ok(())
}

/// An interface that goes takes its configuration along.
pub(crate) fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    if change == InterfaceChange::Deleted {
        engine.with(|_, map: &mut Map| {
            map.interfaces.remove(&id);
            map.shared.set_modes(id, 0);
        });
    }
}

/// Give memory back that no worker reads any more.
pub(crate) fn collect(engine: &mut Engine) {
    if let Some(prefixes) = engine.get_mut::<Map>().and_then(|map| map.by_prefix6.as_mut()) {
        prefixes.collect();
    }
}

/// Is an address of IPv4 in the domain that the longest prefix names?
pub(crate) fn domain_of4(map: &Map, address: Ipv4Addr) -> Option<(u32, &Configured)> {
    let bits = address.to_bits();
    (1..=32u8).rev().find_map(|length| {
        let first = bits & u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
        let index = *map.by_prefix4.get(&(first, length))?;
        Some((index, map.domains.get(&index)?))
    })
}
