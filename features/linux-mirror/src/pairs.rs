//! Pairs are made and deleted.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use quiver_control::Refusal;
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::control::reactor::Interest;
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Family, Fib, FibError, Path, Target};
use quiver_linux::link::check_name;
use quiver_linux::{AttachTap, TapKind, TapMaker, TapWish};

use crate::mirror::{Feed, Followed, Mirror, Namespace, Origin, Pair, mirror, name_of};
use crate::reader::{Again, Reader};
use crate::twins::Crossing;
use crate::{apply, auto_subint, evpn, fdb, from_host, link_state, to_host, upper_links};

/// Who owns the taps.
pub(crate) const OWNER: &str = "the Linux mirror";

/// What is asked for.
#[derive(Clone, Debug)]
pub(crate) struct PairWish {
    pub id: InterfaceId,
    pub kind: TapKind,
    pub host_name: String,
    pub namespace: Namespace,
    pub tap: Option<u32>,
    /// What Linux calls the tap, unless that is the twin itself: the port of a bridge, which then
    /// is the twin.
    pub tap_name: Option<String>,
    /// Is it made because of another twin, so that no line of the configuration makes it?
    pub is_automatic: bool,
}

/// Can this pair be made?
pub(crate) fn check(engine: &Engine, wish: &PairWish) -> Result<(), Refusal> {
    for name in [Some(&wish.host_name), wish.tap_name.as_ref()].into_iter().flatten() {
        check_name(name).map_err(|error| Refusal::new(error.to_string()))?;
    }
    let name = engine.interface_name(wish.id);
    let Some(interface) = engine.interface(wish.id) else {
        return Err(Refusal::new("the interface is gone"));
    };
    check_kind(engine, wish, &name, interface.row().mac != [0; 6])?;
    if interface.passes_on_only {
        return Err(Refusal::new(format!("{name} has not one VLAN, so no twin"))
            .remedy("create the sub-interface with exact-match, and one VLAN in each tag"));
    }
    let Some(mirror) = engine.get::<Mirror>() else { return Ok(()) };
    if mirror.pairs.contains_key(&wish.id) {
        return Err(Refusal::new(format!("{name} has a twin already"))
            .remedy(format!("`show lcp`, `lcp delete {name}`")));
    }
    if let Some(of) = mirror.mirrored_by(wish.id) {
        let of = engine.interface_name(of);
        return Err(Refusal::new(format!("{name} is itself the twin of {of}")));
    }
    let same =
        |pair: &&Pair| (&pair.host_name, &pair.namespace) == (&wish.host_name, &wish.namespace);
    if let Some(pair) = mirror.pairs.values().find(same) {
        return Err(Refusal::new(format!("Linux has a twin called {} there", pair.host_name)));
    }
    Ok(())
}

/// Does a twin of this kind fit the interface?
fn check_kind(engine: &Engine, wish: &PairWish, name: &str, has_mac: bool) -> Result<(), Refusal> {
    let is_multipoint = engine.get::<Fib>().is_some_and(|fib| fib.is_multipoint(wish.id));
    match wish.kind {
        TapKind::Tap if !has_mac => {
            Err(Refusal::new(format!("{name} has no Ethernet address, so its twin is no tap"))
                .remedy("`lcp create … tun` makes a twin for packets without one"))
        }
        TapKind::Tun if has_mac => {
            Err(Refusal::new(format!("{name} has an Ethernet address, so its twin is no tun"))
                .remedy("leave `tun` out"))
        }
        TapKind::Tun if is_multipoint => {
            Err(Refusal::new(format!("{name} is a multipoint tunnel, so it has no twin"))
                .remedy("a tunnel with one destination (dst) can have one"))
        }
        _ => Ok(()),
    }
}

/// What it takes to make the twin; not on the control thread.
pub(crate) fn prepare(
    engine: &Engine,
    wish: &PairWish,
) -> Result<impl FnOnce() -> Result<AttachTap, Refusal> + Send + 'static, Refusal> {
    check(engine, wish)?;
    let maker = *engine.get::<TapMaker>().ok_or_else(no_taps)?;
    let row = engine.interface(wish.id).map(|interface| interface.row().clone());
    let row = row.ok_or_else(|| Refusal::new("the interface is gone"))?;
    let tap = TapWish {
        id: wish.tap,
        host_name: wish.tap_name.as_ref().unwrap_or(&wish.host_name).clone(),
        host_namespace: wish.namespace.clone(),
        kind: wish.kind,
        host_mac: (wish.kind == TapKind::Tap).then_some(row.mac),
        mtu_bytes: row.mtu_bytes,
        owner: OWNER,
    };
    Ok(move || (maker.make)(tap).map_err(Refusal::new))
}

fn no_taps() -> Refusal {
    Refusal::new("this router is built without taps")
}

/// Make the pair of a tap that Linux has made.
pub(crate) fn finish(
    engine: &mut Engine,
    wish: PairWish,
    attach: AttachTap,
) -> Result<InterfaceId, Refusal> {
    check(engine, &wish)?;
    follow(engine, &wish.namespace)?;
    let twin = attach(engine).map_err(Refusal::new)?;
    if let Err(refusal) = connect(engine, wish, twin) {
        let maker = engine.get::<TapMaker>().copied();
        maker.map(|maker| (maker.delete)(engine, twin));
        return Err(refusal);
    }
    Ok(twin)
}

fn connect(engine: &mut Engine, wish: PairWish, twin: InterfaceId) -> Result<(), Refusal> {
    let failed =
        |error: quiver_core::control::interfaces::InterfaceError| Refusal::new(error.to_string());
    engine.set_feature(twin, "device-input", from_host::NAME, true).map_err(failed)?;
    let crossing = crossing(engine, &wish)?;
    if let Err(refusal) = give_host(engine, wish.id) {
        release(engine, crossing);
        return Err(refusal);
    }
    let PairWish { id, host_name, namespace, is_automatic, .. } = wish;
    let mut pair = Pair::new(twin, crossing, host_name, namespace);
    pair.is_automatic = is_automatic;
    if let Some(mirror) = mirror(engine) {
        mirror.pairs.insert(id, pair);
        mirror.publish();
        mirror.own.compare_all();
    }
    link_state::show_carrier(engine, id);
    // The link may have been told before there was a pair that it belongs to.
    find_link(engine, id);
    auto_subint::twin_made(engine, id);
    Ok(())
}

/// Let Linux deal with what the router has no use for on an interface.
pub(crate) fn give_host(engine: &mut Engine, id: InterfaceId) -> Result<(), Refusal> {
    let host = engine.node_id(to_host::NAME).ok_or_else(no_taps)?;
    Ok(engine.set_host_node(id, Some(host))?)
}

/// How packets cross the pair that is made.
fn crossing(engine: &mut Engine, wish: &PairWish) -> Result<Crossing, Refusal> {
    if wish.kind == TapKind::Tap {
        return Ok(Crossing::Frames);
    }
    let fib = engine.get_mut::<Fib>().ok_or_else(no_taps)?;
    let out = [Path::new(Target::Attached(wish.id))];
    let refused = |error: FibError| Refusal::new(error.to_string());
    let four = fib.hold_paths(Family::Ip4, 0, &out).map_err(refused)?;
    match fib.hold_paths(Family::Ip6, 0, &out) {
        Ok(six) => Ok(Crossing::Packets([four, six])),
        Err(error) => {
            fib.release_paths(four);
            Err(refused(error))
        }
    }
}

/// Nothing crosses a pair in this way any more.
fn release(engine: &mut Engine, crossing: Crossing) {
    if let (Crossing::Packets(groups), Some(fib)) = (crossing, engine.get_mut::<Fib>()) {
        groups.into_iter().for_each(|group| fib.release_paths(group));
    }
}

/// Have all told: the pair's link, and what leads to it.
fn find_link(engine: &Engine, id: InterfaceId) {
    let Some(mirror) = engine.get::<Mirror>() else { return };
    if let Some(pair) = mirror.pairs.get(&id) {
        mirror.report_again(&pair.namespace, Again::All);
    }
}

/// Follow a namespace, if it is not followed yet.
fn follow(engine: &mut Engine, namespace: &Namespace) -> Result<(), Refusal> {
    let Some(mirror) = engine.get::<Mirror>() else { return Ok(()) };
    if mirror.followed.contains_key(namespace) {
        return Ok(());
    }
    let reader = Reader::of_kernel(namespace.as_deref(), mirror.buffer_bytes)
        .map_err(|error| of_namespace("netlink", namespace, error))?;
    let kernel = feed(engine, namespace, Origin::Kernel, reader);
    if let Some(mirror) = engine.get_mut::<Mirror>() {
        let far_objects = BTreeMap::new();
        let followed = Followed { kernel, daemon: None, far_objects, main_tables: None };
        mirror.followed.insert(namespace.clone(), followed);
    }
    Ok(())
}

fn of_namespace(what: &str, namespace: &Namespace, error: std::io::Error) -> Refusal {
    Refusal::new(format!("{what} in namespace `{}`: {error}", name_of(namespace)))
}

/// Hear of what a reader tells from now on.
fn feed(engine: &mut Engine, namespace: &Namespace, origin: Origin, reader: Reader) -> Feed {
    let of = namespace.clone();
    let token = engine.watch(reader.fd(), Interest::READ, move |engine| {
        apply::take(engine, &of, origin);
    });
    let owner = mirror(engine).map_or(0, |mirror| {
        let owner = mirror.next_owner;
        mirror.next_owner = owner.wrapping_add(1).max(1);
        owner
    });
    let (objects, lists, routes) = Default::default();
    Feed { reader, token, objects, lists, routes, owner }
}

/// Let a routing daemon connect to an address of a namespace with twins.
pub(crate) fn listen(
    engine: &mut Engine,
    namespace: &Namespace,
    address: SocketAddr,
) -> Result<(), Refusal> {
    let followed = engine.get::<Mirror>().and_then(|mirror| mirror.followed.get(namespace));
    let Some(followed) = followed else {
        let what = format!("nothing has a twin in namespace `{}`", name_of(namespace));
        return Err(Refusal::new(what).remedy("`lcp create` first"));
    };
    if let Some((known, _)) = &followed.daemon {
        return Err(Refusal::new(format!("a daemon is waited for at {known} already")));
    }
    let reader = Reader::of_daemon(namespace.as_deref(), address)
        .map_err(|error| of_namespace(&format!("FPM at {address}"), namespace, error))?;
    let feed = feed(engine, namespace, Origin::Daemon, reader);
    if let Some(followed) = mirror(engine).and_then(|mirror| mirror.followed.get_mut(namespace)) {
        followed.daemon = Some((address, feed));
    }
    Ok(())
}

/// Delete a pair: the twin vanishes, and routes by it.
pub(crate) fn delete(engine: &mut Engine, id: InterfaceId) -> Result<(), Refusal> {
    let name = engine.interface_name(id);
    let Some(pair) = mirror(engine).and_then(|mirror| mirror.pairs.remove(&id)) else {
        return Err(Refusal::new(format!("{name} has no twin")).remedy("`show lcp` lists pairs"));
    };
    let _ = engine.set_host_node(id, None); // an interface that is just going has none
    let is_last = mirror(engine).is_none_or(|mirror| {
        mirror.by_link.retain(|_, of| *of != id);
        mirror.publish();
        mirror.own.compare_all();
        let is_last = mirror.of_namespace(&pair.namespace).next().is_none();
        if is_last {
            let changes = mirror.own.withdraw(&pair.namespace);
            mirror.write(&pair.namespace, changes);
        }
        is_last
    });
    release(engine, pair.crossing);
    apply::forget_neighbours(engine, id, &pair.linux_neighbours);
    fdb::forget(engine, id);
    upper_links::fit_interface(engine, id);
    auto_subint::twin_gone(engine, id);
    if let Some(mirror) = engine.get::<Mirror>() {
        let again = pair.link.filter(|_| !is_last).map_or(Again::All, Again::Link);
        mirror.report_again(&pair.namespace, again);
    }
    if pair.crossing == Crossing::Tagged {
        return Ok(()); // its frames crossed the twin of the port
    }
    if let (Some(maker), Some(_)) = (engine.get::<TapMaker>().copied(), engine.interface(pair.twin))
    {
        (maker.delete)(engine, pair.twin).map_err(Refusal::new)?;
    }
    Ok(())
}

/// Something happened to an interface.
pub(crate) fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    if change == InterfaceChange::Created {
        auto_subint::interface_made(engine, id);
        return;
    }
    let Some(mirror) = engine.get::<Mirror>() else { return };
    if change == InterfaceChange::Deleted && mirror.evpn.contains_key(&id) {
        evpn::end(engine, id);
        return;
    }
    if change == InterfaceChange::Deleted {
        let is_pair = mirror.pairs.contains_key(&id);
        if let Some(mirror) = engine.get_mut::<Mirror>() {
            mirror.vlans.forget(id);
        }
        if is_pair {
            if let Err(refusal) = delete(engine, id) {
                tracing::warn!("{}: its twin stays: {refusal}", engine.interface_name(id));
            }
        } else if let Some(of) = engine.get::<Mirror>().and_then(|m| m.mirrored_by(id)) {
            let _ = delete(engine, of);
        }
        return;
    }
    if mirror.pairs.contains_key(&id) {
        link_state::follow_interface(engine, id, change);
    }
}
