//! `lcp lcp-auto-subint on`: sub-interfaces of interfaces with twins get twins by themselves, which
//! are called as the parent's twin with the number of the sub-interface behind it: `e0.100`.

use std::os::fd::AsRawFd;
use std::sync::mpsc::channel;

use quiver_core::control::reactor::{Interest, Token};
use quiver_core::{Engine, InterfaceId};
use quiver_linux::TapKind;
use rustix::event::{EventfdFlags, eventfd};

use crate::mirror::Mirror;
use crate::pairs::{self, PairWish};
use crate::vlan_links;

/// An interface was made: does it get a twin?
pub(crate) fn interface_made(engine: &mut Engine, id: InterfaceId) {
    let wish = engine.get::<Mirror>().and_then(|mirror| wish(engine, mirror, id));
    if let Some(wish) = wish {
        begin(engine, wish);
    }
}

/// An interface got a twin: its sub-interfaces get theirs.
pub(crate) fn twin_made(engine: &mut Engine, parent: InterfaceId) {
    let parts: Vec<InterfaceId> = engine.sub_interfaces(parent).collect();
    parts.into_iter().for_each(|id| interface_made(engine, id));
}

/// An interface has no twin any more: twins of its sub-interfaces that were made for it go.
pub(crate) fn twin_gone(engine: &mut Engine, parent: InterfaceId) {
    let parts: Vec<InterfaceId> = engine.sub_interfaces(parent).collect();
    for id in parts {
        let pair = engine.get::<Mirror>().and_then(|mirror| mirror.pairs.get(&id));
        if pair.is_some_and(|pair| pair.is_automatic)
            && let Err(refusal) = pairs::delete(engine, id)
        {
            tracing::warn!("{}: its twin stays: {refusal}", engine.interface_name(id));
        }
        vlan_links::delete_made(engine, id);
    }
}

/// The twin that a sub-interface gets.
fn wish(engine: &Engine, mirror: &Mirror, id: InterfaceId) -> Option<PairWish> {
    let interface =
        engine.interface(id).filter(|_| mirror.has_automatic_twins && !mirror.vlans.is_making)?;
    let row = interface.row();
    let is_part = row.is_sub_interface() && !interface.passes_on_only;
    let parent = mirror.pairs.get(&row.parent).filter(|_| is_part)?;
    if mirror.pairs.contains_key(&id) {
        return None;
    }
    let (_, number) = interface.name.rsplit_once('.')?;
    Some(PairWish {
        id,
        kind: TapKind::Tap,
        host_name: format!("{}.{number}", parent.host_name),
        namespace: parent.namespace.clone(),
        tap: None,
        tap_name: None,
        is_automatic: true,
    })
}

/// Have a thread make the tap, and the control thread the pair.
fn begin(engine: &mut Engine, wish: PairWish) {
    let name = engine.interface_name(wish.id);
    if let Err(refusal) = try_begin(engine, wish) {
        tracing::warn!("{name} gets no twin: {refusal}");
    }
}

fn try_begin(engine: &mut Engine, wish: PairWish) -> Result<(), quiver_control::Refusal> {
    let make = pairs::prepare(engine, &wish)?;
    let ready =
        eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).map_err(std::io::Error::from)?;
    let raise = ready.try_clone()?;
    let (send, made) = channel();
    std::thread::Builder::new().name("quiver_twin".into()).spawn(move || {
        let _ = send.send(make());
        let _ = rustix::io::write(&raise, &1u64.to_ne_bytes());
    })?;
    let fd = ready.as_raw_fd();
    let mut waits = Some((wish, made, ready));
    let token: std::rc::Rc<std::cell::Cell<Option<Token>>> = std::rc::Rc::default();
    let own = token.clone();
    token.set(Some(engine.watch(fd, Interest::READ, move |engine| {
        let Some((wish, made, _ready)) = waits.take() else { return };
        if let Some(token) = own.take() {
            engine.unwatch(token);
        }
        let name = engine.interface_name(wish.id);
        let done = made.recv().map_err(|_| quiver_control::Refusal::new("its thread has ended"));
        let done = done.and_then(|attach| attach);
        if let Err(refusal) = done.and_then(|attach| pairs::finish(engine, wish, attach)) {
            tracing::warn!("{name} gets no twin: {refusal}");
        }
    })));
    Ok(())
}
