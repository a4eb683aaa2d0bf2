//! What a reader tells is taken over, a portion a turn of the control loop.

use std::collections::BTreeSet;
use std::net::IpAddr;

use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Fib, NextHopObjectId, Source};
use quiver_forwarding::neighbour::NeighbourState;
use quiver_wire::MacAddress;

use crate::evpn::stations;
use crate::mirror::{Feed, Mirror, Namespace, Origin, mirror};
use crate::reader::{Again, NeighbourFacts, ObjectHops, Order, Portion};
use crate::routes::{self, Meaning, object_paths};
use crate::segments::Holds;
use crate::{addresses, evpn, fdb, labels, link_state, tables, upper_links, vlan_links};

/// A portion of a namespace waits: take it.
pub(crate) fn take(engine: &mut Engine, namespace: &Namespace, origin: Origin) {
    let followed = mirror(engine).and_then(|mirror| mirror.followed.get_mut(namespace));
    let Some(feed) = followed.and_then(|followed| followed.feed(origin)) else { return };
    let Some(portion) = feed.reader.take() else { return };
    let Portion { links, addresses, neighbours, stations, far, objects, routes, labels, .. } =
        portion;
    for (link, facts) in links {
        upper_links::take_link(engine, namespace, link, facts.as_ref());
        vlan_links::take_link(engine, namespace, link, facts.as_ref());
        evpn::take_link(engine, namespace, link, facts.as_ref());
        match facts {
            Some(facts) => link_state::take_link(engine, namespace, link, &facts),
            None => forget_link(engine, namespace, link),
        }
    }
    for (key, is_there) in addresses {
        upper_links::take_address(engine, namespace, key.0, key.1, is_there);
        addresses::take_address(engine, namespace, key, is_there);
    }
    for ((link, address), facts) in neighbours {
        take_neighbour(engine, namespace, link, address, facts);
        stations::take_neighbour(engine, namespace, link, address, facts);
    }
    for (id, remote) in portion.far_objects {
        stations::take_far_object(engine, namespace, id, remote);
    }
    for (key, facts) in stations {
        fdb::take_station(engine, namespace, key, facts);
    }
    for (key, remote) in far {
        stations::take_far(engine, namespace, key, remote);
    }
    take_objects(engine, namespace, origin, objects);
    engine.with(|engine, mirror: &mut Mirror| {
        let is_followed = tables::follow(engine, mirror, namespace);
        let Mirror { by_link, followed, sids, .. } = mirror;
        let Some(followed) = followed.get_mut(namespace) else { return };
        let main_tables = followed.main_tables.unwrap_or_default();
        let Some(Feed { objects, lists, routes: counts, owner, .. }) = followed.feed(origin) else {
            return;
        };
        let meaning = Meaning {
            interface: &|link| by_link.get(&(namespace.clone(), link)).copied(),
            object: &|number| objects.hops(number).to_vec(),
            owner: *owner,
            main_tables,
            is_followed,
            source: match origin {
                Origin::Kernel => Source::Kernel,
                Origin::Daemon => Source::Dynamic,
            },
        };
        let mut holds = Holds { lists, sids };
        routes::apply(engine, &routes, &meaning, &mut holds, counts);
        labels::take(engine, &labels, &meaning, counts);
    });
    end_if_over(engine, namespace);
}

/// A namespace in which nothing has a twin any more is followed until its routes are gone.
fn end_if_over(engine: &mut Engine, namespace: &Namespace) {
    let Some(mirror) = mirror(engine) else { return };
    let is_over = mirror.of_namespace(namespace).next().is_none()
        && mirror.evpn.values().all(|twin| twin.namespace != *namespace)
        && mirror.followed.get(namespace).is_some_and(|followed| {
            followed.feeds().all(|(_, feed)| feed.reader.is_all_reported())
        });
    if is_over && let Some(gone) = mirror.followed.remove(namespace) {
        gone.feeds().for_each(|(_, feed)| engine.unwatch(feed.token));
    }
}

/// Linux has the link no more: a twin that was deleted there. What Linux took away with it (the
/// state, addresses) is not reported by itself, for the thread reports a link that is gone as a
/// whole. The interface goes on without a twin.
fn forget_link(engine: &mut Engine, namespace: &Namespace, link: u32) {
    let Some(mirror) = mirror(engine) else { return };
    let Some(id) = mirror.by_link.remove(&(namespace.clone(), link)) else { return };
    let Some(pair) = mirror.pairs.get_mut(&id) else { return };
    (pair.link, pair.linux, pair.linux_mac) = (None, None, None);
    (pair.is_bridge_port, pair.is_in_vrf) = (false, false);
    pair.addresses.clear();
    pair.written_neighbours.clear();
    let neighbours = std::mem::take(&mut pair.linux_neighbours);
    let (host_name, is_made_again) = (pair.host_name.clone(), pair.is_automatic);
    mirror.own.compare_all();
    let name = engine.interface_name(id);
    if !is_made_again {
        tracing::warn!(
            "{name}: its twin {host_name} was deleted in Linux; `lcp delete {name}` and `lcp \
             create` make it anew"
        );
    }
    forget_neighbours(engine, id, &neighbours);
    fdb::forget(engine, id);
    upper_links::fit_interface(engine, id);
}

/// Linux says nothing more of these neighbours.
pub(crate) fn forget_neighbours(
    engine: &mut Engine,
    id: InterfaceId,
    neighbours: &BTreeSet<IpAddr>,
) {
    let Some(fib) = engine.get_mut::<Fib>() else { return };
    for address in neighbours.iter().map(IpAddr::to_canonical) {
        let known = fib.neighbours().get(id, address);
        if known.is_some_and(|known| known.state == NeighbourState::External) {
            let _ = fib.remove_neighbour(id, address); // it is there
        }
    }
}

/// Linux says what a neighbour is. FRR calls an IPv4 next hop of IPv6 routes by an IPv4 address
/// that is mapped into IPv6: it is the neighbour with the IPv4 address, until Linux has neither.
fn take_neighbour(
    engine: &mut Engine,
    namespace: &Namespace,
    link: u32,
    known_as: IpAddr,
    facts: Option<NeighbourFacts>,
) {
    let address = known_as.to_canonical();
    let Some(id) = engine.get::<Mirror>().and_then(|mirror| mirror.by_link(namespace, link)) else {
        return;
    };
    let now_ms = engine.now_ns() / 1_000_000;
    let Some(pair) = mirror(engine).and_then(|mirror| mirror.pairs.get_mut(&id)) else { return };
    let named = &mut pair.linux_neighbours;
    match facts {
        Some(NeighbourFacts { is_permanent: true, .. }) => named.insert(known_as),
        _ => named.remove(&known_as),
    };
    let is_permanent = named.iter().any(|known| known.to_canonical() == address);
    let Some(fib) = engine.get_mut::<Fib>() else { return };
    let known = fib.neighbours().get(id, address).map(|known| known.state);
    let done = match facts {
        // One that the operator has configured stands; Linux reports it, too.
        Some(NeighbourFacts { mac, is_permanent: true }) => {
            fib.set_external_neighbour(id, address, MacAddress(mac), now_ms)
        }
        // The router has heard the answer itself, as a rule.
        Some(NeighbourFacts { mac, .. }) if known.is_none() => fib
            .learn_neighbour_as(NeighbourState::Stale, id, address, MacAddress(mac), now_ms)
            .map(|_| ()),
        _ if known == Some(NeighbourState::External) && !is_permanent => {
            fib.remove_neighbour(id, address)
        }
        _ => Ok(()),
    };
    if let Err(error) = done {
        tracing::debug!("{}: neighbour {address}: {error}", engine.interface_name(id));
    }
}

fn take_objects(
    engine: &mut Engine,
    namespace: &Namespace,
    origin: Origin,
    objects: Vec<(u32, Option<ObjectHops>)>,
) {
    engine.with(|engine, mirror: &mut Mirror| {
        let Mirror { by_link, followed, .. } = mirror;
        let followed = followed.get_mut(namespace);
        let Some(feed) = followed.and_then(|followed| followed.feed(origin)) else { return };
        let Some(fib) = engine.get_mut::<Fib>() else { return };
        let interface = |link| by_link.get(&(namespace.clone(), link)).copied();
        for (number, hops) in objects {
            let id = NextHopObjectId { owner: feed.owner, number };
            let was_ours = !fib.next_hop_object(id).is_empty();
            let paths = hops.as_deref().map(|hops| object_paths(hops, &interface));
            let paths = paths.unwrap_or_default();
            let is_ours = !paths.is_empty();
            match is_ours {
                true => {
                    if let Err(error) = fib.set_next_hop_object(id, paths) {
                        feed.routes.last_refusal = Some(error.to_string());
                        feed.routes.refused += 1;
                    }
                }
                false => fib.remove_next_hop_object(id),
            }
            let had_encap = routes::has_encap(feed.objects.hops(number));
            let has_encap = hops.as_deref().is_some_and(routes::has_encap);
            feed.objects.put(number, hops);
            // Routes by an object with segments have its hops themselves.
            if was_ours != is_ours || had_encap || has_encap {
                feed.reader.order(Order::Report(Again::Object(number)));
            }
        }
    });
}
