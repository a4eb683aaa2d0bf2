//! A link that an interface of the router stands on, followed while Linux changes it: its state, its MTU
//! and its address are taken over, until it is gone.

use std::collections::BTreeSet;
use std::io;

use quiver_core::device::Device;
use quiver_core::interfaces::{MTU_BYTES_MAX, MTU_BYTES_MIN};
use quiver_core::reactor::Interest;
use quiver_core::{Engine, InterfaceId};

use crate::link::{LinkError, LinkSocket, LinkState};
use crate::link_watch::LinkWatch;

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
}

/// A device whose interface stands on a link.
pub trait FollowsLink: Device + 'static {
    /// Its link.
    fn link(&mut self) -> &mut FollowedLink;
}

impl FollowedLink {
    /// The Ethernet link of this name, as it is now. What it takes to ask is `capability`.
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
        };
        Ok((link, seen))
    }

    /// Its number in Linux.
    pub fn index(&self) -> i32 {
        self.index
    }

    /// The interface is set up or down. The link is set up as well, but never down: others may use it.
    pub fn set_admin_up(&self, up: bool) -> Result<(), String> {
        match &self.seen {
            Some(seen) if up && !seen.is_up => {
                let link = LinkSocket::new().map_err(|e| e.to_string())?;
                link.set_up(&seen.name, true).map_err(|e| e.to_string())
            }
            None if up => Err(format!(
                "the Linux interface {} is gone; delete this interface and create it again",
                self.linux_name
            )),
            _ => Ok(()),
        }
    }

    /// The interface has another address. Frames to any address are received, so it need not be Linux's.
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
            ("linux-mtu".into(), self.seen.as_ref().map_or(0, |s| s.mtu_bytes).into()),
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

/// Hear of changes to the links of all devices of this kind from now on: from its first interface on.
pub fn follow<D: FollowsLink>(engine: &mut Engine, kind: &'static str) -> io::Result<()> {
    let kinds = engine.get::<Kinds>();
    if kinds.is_some_and(|kinds| kinds.0.contains(kind)) {
        return Ok(());
    }
    if kinds.is_none() {
        engine.insert(Kinds::default());
    }
    let watch = LinkWatch::new()?;
    engine.watch(watch.fd(), Interest::READ, move |engine| {
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
    let now = socket.state(link.index);
    let before = std::mem::replace(&mut link.seen, now.clone());
    link.times_gone += u64::from(before.is_some() && now.is_none());
    let own_mac = link.own_mac;
    // What the engine refuses here (an interface that is just going) needs no answer.
    let _ = engine.set_link_up(id, now.as_ref().is_some_and(|s| s.is_running));
    let (Some(before), Some(now)) = (before, now) else { return };
    if mtu_of(&before) != mtu_of(&now) {
        let _ = engine.set_mtu(id, mtu_of(&now));
    }
    if before.mac != now.mac && !own_mac {
        let say = |engine: &mut Engine, following| {
            if let Some(device) = engine.device::<D>(id) {
                device.link().following = following;
            }
        };
        say(engine, true);
        let _ = engine.set_mac(id, now.mac);
        say(engine, false);
    }
}
