//! What is configured, on the control thread.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use quiver_control::Refusal;
use quiver_core::Engine;
use quiver_core::memory::epoch::Published;
use quiver_forwarding::fib::{Fib, Path, Source, Target};
use quiver_forwarding::next_hop_group::Hop;
use quiver_tables::prefix::IpPrefix;
use quiver_translation::versions::IP6_MTU_MIN;
use quiver_translation::versions::address::Prefix;

use crate::map::{Hosts, Map, Mapping};
use crate::node::{TO4, TO6};

/// Mappings at most: each packet is compared with them.
const MAPPINGS_MAX: usize = 256;
/// Small number of the table that the names of hosts are routed in.
const TABLE: u32 = 0;

/// The state of SIIT.
pub(crate) struct Siit {
    map: Arc<Published<Map>>,
    pub prefix: Option<(Prefix, Hosts)>,
    pub mappings: BTreeSet<Mapping>,
    /// To how many bytes packets to IPv6 are cut that may be.
    pub ip6_mtu_bytes: u16,
    /// Routes that lead to the translator.
    routes: BTreeSet<(IpAddr, u8)>,
}

impl Siit {
    pub fn new(map: Arc<Published<Map>>) -> Siit {
        Siit {
            map,
            prefix: None,
            mappings: BTreeSet::new(),
            ip6_mtu_bytes: IP6_MTU_MIN as u16,
            routes: BTreeSet::new(),
        }
    }

    /// What workers read.
    pub fn map(&self) -> Map {
        let mappings: Vec<_> = self.mappings.iter().copied().collect();
        Map::new(self.prefix, &mappings, self.ip6_mtu_bytes)
    }

    /// The names that lead to the translator.
    fn names(&self) -> BTreeSet<(IpAddr, u8)> {
        let of_prefix = self.prefix.map(|(prefix, hosts)| match hosts {
            Hosts::Ip4 => (Ipv6Addr::from_bits(prefix.bits()).into(), prefix.length()),
            Hosts::Ip6 => (Ipv4Addr::UNSPECIFIED.into(), 0),
        });
        let of_mappings = self.mappings.iter().map(|mapping| match mapping.hosts {
            Hosts::Ip4 => (Ipv6Addr::from_bits(mapping.ip6).into(), mapping.length6),
            Hosts::Ip6 => (Ipv4Addr::from(mapping.ip4).into(), mapping.length4),
        });
        of_mappings.chain(of_prefix).collect()
    }
}

/// Give workers what is configured now, and lead the names of hosts to the translator.
fn publish(engine: &mut Engine, siit: &mut Siit) -> Result<(), Refusal> {
    let nodes = [TO6, TO4].map(|name| engine.node_id(name));
    let [Some(to6), Some(to4)] = nodes else {
        return Err(Refusal::new("the SIIT nodes are not built in"));
    };
    siit.map.publish(siit.map());
    let wanted = siit.names();
    let Some(fib) = engine.get_mut::<Fib>() else { return Ok(()) };
    for (address, length) in siit.routes.difference(&wanted) {
        let _ = fib.remove_route(TABLE, IpPrefix::new(*address, *length), Source::Feature);
    }
    let mut now: BTreeSet<_> = siit.routes.intersection(&wanted).copied().collect();
    let mut refused = None;
    for place @ (address, length) in wanted.difference(&siit.routes) {
        let next = if address.is_ipv4() { to6 } else { to4 };
        let path = Path::new(Target::Feature(Hop { next, index: 0 }));
        match fib.add_route(TABLE, IpPrefix::new(*address, *length), Source::Feature, &[path]) {
            Ok(()) => {
                now.insert(*place);
            }
            Err(error) => refused = Some(Refusal::new(error.to_string())),
        }
    }
    siit.routes = now;
    refused.map_or(Ok(()), Err)
}

/// Change what is configured; a refusal changes nothing.
fn change(
    engine: &mut Engine,
    change: impl FnOnce(&mut Siit) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    engine.with(|engine, siit: &mut Siit| {
        let before = (siit.prefix, siit.mappings.clone());
        change(siit)?;
        if let Err(error) = publish(engine, siit) {
            (siit.prefix, siit.mappings) = before;
            publish(engine, siit)?;
            return Err(error);
        }
        Ok(())
    })
}

/// Let IPv4 addresses without mapping stand behind a prefix.
///
/// # Errors
/// There is another prefix.
pub(crate) fn set_prefix(engine: &mut Engine, prefix: Prefix, hosts: Hosts) -> Result<(), Refusal> {
    change(engine, |siit| {
        if let Some(known) = siit.prefix.filter(|known| *known != (prefix, hosts)) {
            let (known, of) = (written(known.0), known.1.word());
            return Err(Refusal::new(format!("the prefix is {known} for hosts of {of}"))
                .remedy(format!("siit add prefix {known} hosts {of} del")));
        }
        siit.prefix = Some((prefix, hosts));
        Ok(())
    })
}

/// The prefix no more.
///
/// # Errors
/// It is not the prefix.
pub(crate) fn remove_prefix(
    engine: &mut Engine,
    prefix: Prefix,
    hosts: Hosts,
) -> Result<(), Refusal> {
    change(engine, |siit| {
        if siit.prefix != Some((prefix, hosts)) {
            return Err(Refusal::new("that is not the prefix").remedy("`show siit` has it"));
        }
        siit.prefix = None;
        Ok(())
    })
}

/// Let addresses stand for each other.
///
/// # Errors
/// A prefix has a mapping already, or there are too many.
pub(crate) fn add_mapping(engine: &mut Engine, mapping: Mapping) -> Result<(), Refusal> {
    if 32 - mapping.length4 > 128 - mapping.length6 {
        return Err(Refusal::new(format!("{mapping}: the IPv6 prefix has fewer addresses"))
            .remedy(format!("an IPv6 prefix of at most {} bits", 96 + mapping.length4)));
    }
    change(engine, |siit| {
        if siit.mappings.contains(&mapping) {
            return Ok(());
        }
        if let Some(known) = siit.mappings.iter().find(|known| known.overlaps(&mapping)) {
            let (what, of) = (known.to_string(), known.hosts.word());
            return Err(Refusal::new(format!("there is a mapping {what} for hosts of {of}"))
                .remedy(format!("siit add mapping {what} hosts {of} del")));
        }
        if siit.mappings.len() >= MAPPINGS_MAX {
            return Err(Refusal::new(format!("there are {MAPPINGS_MAX} mappings already"))
                .remedy("join some into shorter prefixes"));
        }
        siit.mappings.insert(mapping);
        Ok(())
    })
}

/// A mapping no more.
///
/// # Errors
/// There is none.
pub(crate) fn remove_mapping(engine: &mut Engine, mapping: Mapping) -> Result<(), Refusal> {
    change(engine, |siit| match siit.mappings.remove(&mapping) {
        true => Ok(()),
        false => {
            Err(Refusal::new(format!("there is no mapping {mapping}"))
                .remedy("`show siit` lists them"))
        }
    })
}

/// Let packets to IPv6 be cut to so many bytes where they may be.
///
/// # Errors
/// The nodes are not built in.
pub(crate) fn set_ip6_mtu(engine: &mut Engine, bytes: u16) -> Result<(), Refusal> {
    change(engine, |siit| {
        siit.ip6_mtu_bytes = bytes;
        Ok(())
    })
}

/// A prefix as commands have it.
pub(crate) fn written(prefix: Prefix) -> String {
    format!("{}/{}", Ipv6Addr::from_bits(prefix.bits()), prefix.length())
}
