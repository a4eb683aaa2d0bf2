//! Routes that follow from advertisements: default routers, routes behind routers, prefixes on the
//! link. They have a source of their own, which gives way to every other.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Fib, Path, Source, Target};
use quiver_tables::prefix::IpPrefix;
use quiver_wire::Ip6Prefix;

use super::Host;
use crate::config::Preference;

/// Paths of routes by table (its small number) and prefix.
type Routes = BTreeMap<(u32, Ip6Prefix), Vec<Path>>;

/// The advertised routes that are in the tables.
#[derive(Debug, Default)]
pub(super) struct Installed(Routes);

fn path_preference(preference: Preference) -> u8 {
    match preference {
        Preference::High => 0,
        Preference::Medium => 1,
        Preference::Low => 2,
    }
}

fn via(router: Ipv6Addr, id: InterfaceId, preference: Preference) -> Path {
    Path::via(router, Some(id)).preference(path_preference(preference))
}

/// The routes that should be there. Routers of one preference share the traffic (RFC 4191 §3.2, RFC
/// 4311).
fn wanted(fib: &Fib, interfaces: &BTreeMap<InterfaceId, Host>) -> Routes {
    let mut routes = Routes::new();
    for (id, host) in interfaces {
        let Some(info) = fib.interface(*id).filter(|info| info.up) else { continue };
        let mut add = |prefix: Ip6Prefix, path: Path| {
            routes.entry((info.ip6_table, prefix)).or_default().push(path);
        };
        for (prefix, known) in &host.learned.prefixes {
            if known.on_link_until_ns.is_some() {
                add(*prefix, Path::new(Target::Attached(*id)));
            }
        }
        if !host.default_route {
            continue;
        }
        if let Ok(everywhere) = Ip6Prefix::covering(Ipv6Addr::UNSPECIFIED, 0) {
            let routers = host.learned.routers.iter();
            routers
                .for_each(|(router, known)| add(everywhere, via(*router, *id, known.preference)));
        }
        for ((prefix, router), known) in &host.learned.routes {
            add(*prefix, via(*router, *id, known.preference));
        }
    }
    routes.values_mut().for_each(|paths| paths.sort_unstable());
    routes
}

impl Installed {
    /// Make the tables follow. A route that finds no room is tried again the next time.
    pub fn follow(&mut self, engine: &mut Engine, interfaces: &BTreeMap<InterfaceId, Host>) {
        let Some(fib) = engine.get_mut::<Fib>() else { return };
        let mut wanted = wanted(fib, interfaces);
        let to_fib = |prefix: Ip6Prefix| IpPrefix::new(prefix.address().into(), prefix.length());
        for (table, prefix) in self.0.keys().filter(|place| !wanted.contains_key(place)) {
            // It may be gone already with its interface.
            let _ = fib.remove_route(*table, to_fib(*prefix), Source::Advertised);
        }
        wanted.retain(|(table, prefix), paths| {
            self.0.get(&(*table, *prefix)) == Some(paths)
                || fib.replace_route(*table, to_fib(*prefix), Source::Advertised, paths).is_ok()
        });
        self.0 = wanted;
    }

    /// Is this default router in use?
    pub fn uses(&self, id: InterfaceId, router: Ipv6Addr) -> bool {
        let to_everywhere = self.0.iter().filter(|((_, prefix), _)| prefix.length() == 0);
        let is_it = |path: &Path| {
            path.target == Target::Via { next_hop: router.into(), interface: Some(id) }
        };
        let best = |paths: &[Path]| paths.iter().map(|path| path.preference).min();
        to_everywhere
            .flat_map(|(_, paths)| paths.iter().filter(|path| Some(path.preference) == best(paths)))
            .any(is_it)
    }
}
