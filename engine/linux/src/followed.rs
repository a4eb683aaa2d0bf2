//! A link that an interface of the router stands on, followed while Linux changes it: its state,
//! its MTU and its address are taken over. When it is gone, the interface stays, with its
//! addresses; a link of the same name that appears later is taken up in its place.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use quiver_core::control::interfaces::{MTU_BYTES_MAX, MTU_BYTES_MIN};
use quiver_core::control::reactor::Interest;
use quiver_core::worker::device::Device;
use quiver_core::{Engine, InterfaceId};
use quiver_netlink::{Group, NetlinkSocket};

use crate::link::{LinkError, LinkSocket, LinkState};

/// What an interface knows of its link.
pub struct FollowedLink {
    linux_name: String,
    index: i32,
    /// As last heard; none when the link is gone.
    seen: Option<LinkState>,
    /// The operator has chosen an address of ours, which Linux does not know.
    own_mac: bool,
    following: bool,
    times_gone: u64,
    /// Linux's MTU when it was last taken over, bytes.
    mtu_bytes: Option<u32>,
    /// Why a link that is there again could not be taken up; said once.
    refusal: Option<String>,
}

/// A device whose interface stands on a link.
pub trait FollowsLink: Device + 'static {
    /// Its link.
    fn link(&mut self) -> &mut FollowedLink;

    /// Its link is there again, under this number: open there what was open at the old one, and
    /// leave all else of the interface as it is.
    ///
    /// # Errors
    /// The device cannot be opened; the text says why.
    fn reopen(
        engine: &mut Engine,
        id: InterfaceId,
        index: i32,
        state: &LinkState,
    ) -> Result<(), String>
    where
        Self: Sized;
}

impl FollowedLink {
    /// The Ethernet link of this name, as it is now. What it takes to ask is `capability`.
    ///
    /// # Errors
    /// There is no such link, it is not Ethernet, or the system refuses.
    pub fn ethernet(
        linux_name: &str,
        capability: &'static str,
    ) -> Result<(FollowedLink, LinkState), LinkError> {
        let socket = LinkSocket::new()
            .map_err(|e| LinkError::of(e, format!("a socket for {linux_name}"), capability))?;
        let index = socket.index_of(linux_name)?;
        let seen = socket.state(index).ok_or_else(|| LinkError::Unknown(linux_name.to_owned()))?;
        if !seen.is_ethernet {
            return Err(LinkError::NotEthernet(linux_name.to_owned()));
        }
        let link = FollowedLink {
            linux_name: seen.name.clone(),
            index,
            seen: Some(seen.clone()),
            own_mac: false,
            following: false,
            times_gone: 0,
            mtu_bytes: None,
            refusal: None,
        };
        Ok((link, seen))
    }

    /// Its number in Linux.
    pub fn index(&self) -> i32 {
        self.index
    }

    /// The interface is set up or down. The link is set up as well, but never down: others may use
    /// it.
    ///
    /// # Errors
    /// The system refuses; the text says why.
    pub fn set_admin_up(&self, up: bool) -> Result<(), String> {
        match &self.seen {
            Some(seen) if up && !seen.is_up => {
                let link = LinkSocket::new().map_err(|e| e.to_string())?;
                link.set_up(&seen.name, true).map_err(|e| e.to_string())
            }
            _ => Ok(()), // one that is gone is set up when it is there again
        }
    }

    /// The interface has another address. Frames to any address are received, so it need not be
    /// Linux's.
    pub fn set_mac(&mut self) {
        self.own_mac |= !self.following;
    }

    /// For `show hardware-interfaces`.
    pub fn facts(&self) -> Vec<(String, serde_json::Value)> {
        let state = match &self.seen {
            None => "gone",
            Some(seen) if seen.is_running => "running",
            Some(seen) if seen.is_up => "up, no carrier",
            Some(_) => "down",
        };
        let name = self.seen.as_ref().map_or(&self.linux_name, |seen| &seen.name);
        vec![
            ("linux-name".into(), name.as_str().into()),
            ("linux-index".into(), self.index.into()),
            ("linux-state".into(), state.into()),
            ("linux-mtu-bytes".into(), self.seen.as_ref().map_or(0, |s| s.mtu_bytes).into()),
            ("times-gone".into(), self.times_gone.into()),
        ]
    }
}

/// The MTU of an interface on such a link, bytes.
pub fn mtu_of(state: &LinkState) -> u32 {
    state.mtu_bytes.clamp(MTU_BYTES_MIN, MTU_BYTES_MAX)
}

/// Kinds of devices whose links are followed.
#[derive(Default)]
struct Kinds(BTreeSet<&'static str>);

/// Hear of changes to the links of all devices of this kind from now on: from its first interface
/// on.
///
/// # Errors
/// The system refuses the netlink socket.
pub fn follow<D: FollowsLink>(engine: &mut Engine, kind: &'static str) -> io::Result<()> {
    let kinds = engine.get::<Kinds>();
    if kinds.is_some_and(|kinds| kinds.0.contains(kind)) {
        return Ok(());
    }
    if kinds.is_none() {
        engine.insert(Kinds::default());
    }
    let watch = NetlinkSocket::open(Group::LINKS)?;
    engine.watch(watch.as_fd().as_raw_fd(), Interest::READ, move |engine| {
        if watch.drain() {
            let ids: Vec<InterfaceId> =
                engine.all_interfaces().filter(|i| i.device.kind() == kind).map(|i| i.id).collect();
            ids.into_iter().for_each(|id| refresh::<D>(engine, id));
        }
    });
    if let Some(kinds) = engine.get_mut::<Kinds>() {
        kinds.0.insert(kind);
    }
    Ok(())
}

/// Take over what Linux now says of an interface's link.
pub fn refresh<D: FollowsLink>(engine: &mut Engine, id: InterfaceId) {
    let Ok(socket) = LinkSocket::new() else { return };
    let Some(device) = engine.device::<D>(id) else { return };
    let link = device.link();
    let was_there = link.seen.is_some();
    let index = link.index;
    link.seen = if was_there { socket.state(index) } else { None };
    if was_there && link.seen.is_none() {
        link.times_gone += 1;
        tracing::warn!(
            "{}: Linux has no interface {} any more",
            engine.interface_name(id),
            name_of::<D>(engine, id)
        );
    }
    if engine.device::<D>(id).is_some_and(|device| device.link().seen.is_none()) {
        // What the engine refuses here (an interface that is just going) needs no answer.
        let _ = engine.set_link_up(id, false);
        take_up::<D>(engine, id, &socket);
    }
    let Some(now) = engine.device::<D>(id).and_then(|device| device.link().seen.clone()) else {
        return;
    };
    let _ = engine.set_link_up(id, now.is_running);
    take_over_mtu::<D>(engine, id, &now);
    take_over_mac::<D>(engine, id, &now);
}

fn name_of<D: FollowsLink>(engine: &mut Engine, id: InterfaceId) -> String {
    engine.device::<D>(id).map(|device| device.link().linux_name.clone()).unwrap_or_default()
}

/// Use a link that has the name of the one that is gone, if there is one.
fn take_up<D: FollowsLink>(engine: &mut Engine, id: InterfaceId, socket: &LinkSocket) {
    let linux_name = name_of::<D>(engine, id);
    let Ok(index) = socket.index_of(&linux_name) else { return };
    let Some(state) = socket.state(index).filter(|state| state.is_ethernet) else { return };
    let reopened = D::reopen(engine, id, index, &state);
    let (name, is_up) =
        (engine.interface_name(id), engine.interface(id).is_some_and(|i| i.admin_up));
    let Some(device) = engine.device::<D>(id) else { return };
    let link = device.link();
    match reopened {
        Ok(()) => {
            (link.index, link.seen, link.refusal) = (index, Some(state), None);
            tracing::info!("{name}: Linux has an interface {linux_name} again, and it is used");
            if let Err(error) = link.set_admin_up(is_up) {
                tracing::warn!("{name}: {linux_name} stays down: {error}");
            }
            link.seen = socket.state(index);
        }
        Err(error) if link.refusal.as_ref() != Some(&error) => {
            tracing::warn!(
                "{name}: Linux has an interface {linux_name} again, but it cannot be used: {error}"
            );
            link.refusal = Some(error);
        }
        Err(_) => {}
    }
}

/// The interface's MTU is Linux's at most, and follows it unless the operator has chosen another.
fn take_over_mtu<D: FollowsLink>(engine: &mut Engine, id: InterfaceId, now: &LinkState) {
    let mtu_bytes = mtu_of(now);
    let Some(device) = engine.device::<D>(id) else { return };
    let before = device.link().mtu_bytes.replace(mtu_bytes);
    if before == Some(mtu_bytes) {
        return;
    }
    let follows = engine.interface(id).is_some_and(|i| Some(i.wanted_mtu_bytes()) == before);
    let _ = engine.limit_mtu(id, Some(mtu_bytes));
    if follows {
        let _ = engine.set_mtu(id, mtu_bytes);
    }
}

/// The interface's address is Linux's, unless the operator has chosen another.
fn take_over_mac<D: FollowsLink>(engine: &mut Engine, id: InterfaceId, now: &LinkState) {
    let own_mac = engine.device::<D>(id).is_none_or(|device| device.link().own_mac);
    if own_mac || engine.interface(id).is_none_or(|interface| interface.row().mac == now.mac) {
        return;
    }
    let say = |engine: &mut Engine, following| {
        if let Some(device) = engine.device::<D>(id) {
            device.link().following = following;
        }
    };
    say(engine, true);
    let _ = engine.set_mac(id, now.mac);
    say(engine, false);
}
