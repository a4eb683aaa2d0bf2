//! What a reader tells is taken over, a portion a turn of the control loop.

use std::net::IpAddr;

use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Fib, NextHopObjectId, Source};
use quiver_forwarding::ip::InterfaceAddresses;
use quiver_forwarding::neighbour::NeighbourState;
use quiver_wire::MacAddress;

use crate::mirror::{DELETION_NS, Feed, Mirror, Namespace, Origin, mirror};
use crate::reader::{Again, NeighbourFacts, ObjectHops, Order, Portion};
use crate::routes::{self, Meaning};
use crate::{addresses, link_state};

/// A portion of a namespace waits: take it.
pub(crate) fn take(engine: &mut Engine, namespace: &Namespace, origin: Origin) {
    let followed = mirror(engine).and_then(|mirror| mirror.followed.get_mut(namespace));
    let Some(feed) = followed.and_then(|followed| followed.feed(origin)) else { return };
    let Some(portion) = feed.reader.take() else { return };
    let Portion { links, addresses, neighbours, objects, routes } = portion;
    for (link, facts) in links {
        match facts {
            Some(facts) => link_state::take_link(engine, namespace, link, &facts),
            None => forget_link(engine, namespace, link),
        }
    }
    for (key, is_there) in addresses {
        addresses::take_address(engine, namespace, key, is_there);
    }
    for ((link, address), facts) in neighbours {
        take_neighbour(engine, namespace, link, address, facts);
    }
    take_objects(engine, namespace, origin, objects);
    engine.with(|engine, mirror: &mut Mirror| {
        let tables = main_tables(engine, mirror, namespace);
        let Mirror { by_link, followed, .. } = mirror;
        let Some(followed) = followed.get_mut(namespace) else { return };
        followed.main_tables = tables.unwrap_or(followed.main_tables);
        let main_tables = followed.main_tables;
        let Some(Feed { objects, routes: counts, owner, .. }) = followed.feed(origin) else {
            return;
        };
        let meaning = Meaning {
            interface: &|link| by_link.get(&(namespace.clone(), link)).copied(),
            object: &|number| objects.hops(number).to_vec(),
            owner: *owner,
            main_tables,
            is_followed: tables.is_some(),
            source: match origin {
                Origin::Kernel => Source::Kernel,
                Origin::Daemon => Source::Dynamic,
            },
        };
        routes::apply(engine, &routes, &meaning, counts);
    });
    end_if_over(engine, namespace);
}

/// A namespace in which nothing has a twin any more is followed until its routes are gone.
fn end_if_over(engine: &mut Engine, namespace: &Namespace) {
    let Some(mirror) = mirror(engine) else { return };
    let is_over = mirror.of_namespace(namespace).next().is_none()
        && mirror.followed.get(namespace).is_some_and(|followed| {
            followed.feeds().all(|(_, feed)| feed.reader.is_all_reported())
        });
    if is_over && let Some(gone) = mirror.followed.remove(namespace) {
        gone.feeds().for_each(|(_, feed)| engine.unwatch(feed.token));
    }
}

/// Linux has the link no more: a twin that was deleted there. Linux sets a link down and takes its
/// addresses away before it deletes it; the interface, which is to go on without a twin, gets both
/// back.
fn forget_link(engine: &mut Engine, namespace: &Namespace, link: u32) {
    let now_ns = engine.now_ns();
    let Some(mirror) = mirror(engine) else { return };
    let Some(id) = mirror.by_link.remove(&(namespace.clone(), link)) else { return };
    let Some(pair) = mirror.pairs.get_mut(&id) else { return };
    let is_with_it = |at_ns: u64| now_ns - at_ns < DELETION_NS;
    let is_down_with_it = pair.set_down_ns.take().is_some_and(is_with_it);
    let lost = std::mem::take(&mut pair.lost).into_iter().filter(|(_, at_ns)| is_with_it(*at_ns));
    let lost: Vec<_> = lost.map(|(own, _)| own).collect();
    (pair.link, pair.linux) = (None, None);
    pair.addresses.clear();
    let host_name = pair.host_name.clone();
    let name = engine.interface_name(id);
    tracing::warn!(
        "{name}: its twin {host_name} was deleted in Linux; `lcp delete {name}` and `lcp create` \
         make it anew"
    );
    if is_down_with_it && let Err(error) = engine.set_admin_up(id, true) {
        tracing::warn!("{name} stays down: {error}");
    }
    let Some(calls) = engine.get::<InterfaceAddresses>().copied() else { return };
    let has = (calls.of)(engine, id);
    for (address, length) in lost.into_iter().filter(|own| !has.contains(own)) {
        if let Err(why) = (calls.add)(engine, id, address, length) {
            tracing::warn!("{name}: {address}/{length} stays away: {why}");
        }
    }
}

fn take_neighbour(
    engine: &mut Engine,
    namespace: &Namespace,
    link: u32,
    address: IpAddr,
    facts: Option<NeighbourFacts>,
) {
    let Some(id) = engine.get::<Mirror>().and_then(|mirror| mirror.by_link(namespace, link)) else {
        return;
    };
    let now_ms = engine.now_ns() / 1_000_000;
    let Some(fib) = engine.get_mut::<Fib>() else { return };
    let known = fib.neighbours().get(id, address).map(|known| (known.mac, known.state));
    let done = match facts {
        Some(NeighbourFacts { mac, is_permanent: true }) => {
            fib.set_static_neighbour(id, address, MacAddress(mac), now_ms)
        }
        // The router has heard the answer itself, as a rule.
        Some(NeighbourFacts { mac, .. }) if known.is_none() => fib
            .learn_neighbour_as(NeighbourState::Stale, id, address, MacAddress(mac), now_ms)
            .map(|_| ()),
        None if known.is_some_and(|(_, state)| state == NeighbourState::Static) => {
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
        let meaning = Meaning {
            interface: &|link| by_link.get(&(namespace.clone(), link)).copied(),
            object: &|_| Vec::new(),
            owner: feed.owner,
            main_tables: [0; 2],
            is_followed: true,
            source: Source::Kernel,
        };
        for (number, hops) in objects {
            let id = NextHopObjectId { owner: feed.owner, number };
            let was_ours = !fib.next_hop_object(id).is_empty();
            let paths = hops.as_deref().map(|hops| meaning.object_paths(hops)).unwrap_or_default();
            let is_ours = !paths.is_empty();
            match is_ours {
                true => {
                    if let Err(error) = fib.set_next_hop_object(id, paths) {
                        feed.routes.last_refusal = Some(error);
                        feed.routes.refused += 1;
                    }
                }
                false => fib.remove_next_hop_object(id),
            }
            feed.objects.put(number, hops);
            if was_ours != is_ours {
                feed.reader.order(Order::Report(Again::Object(number)));
            }
        }
    });
}

/// The tables that Linux's main table is here: those of the first interface with a twin there;
/// none when there is no twin any more.
fn main_tables(engine: &Engine, mirror: &Mirror, namespace: &Namespace) -> Option<[u32; 2]> {
    let first: Option<InterfaceId> = mirror.of_namespace(namespace).next();
    let calls = engine.get::<InterfaceAddresses>();
    first.zip(calls).map(|(id, calls)| (calls.tables)(engine, id))
}
