//! Taps that a feature needs: the tap driver, which features do not know, makes them.

use quiver_core::{Engine, InterfaceId};

/// What crosses a tap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TapKind {
    /// Ethernet frames (`IFF_TAP`).
    #[default]
    Tap,
    /// IP packets without a link-layer header (`IFF_TUN`).
    Tun,
}

impl TapKind {
    /// Its word in commands.
    pub fn word(self) -> &'static str {
        match self {
            TapKind::Tap => "tap",
            TapKind::Tun => "tun",
        }
    }
}

/// What a tap is to be like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TapWish {
    /// The interface is called `tap<id>`; the lowest number that is free without.
    pub id: Option<u32>,
    /// Frames or packets.
    pub kind: TapKind,
    /// What Linux calls its end.
    pub host_name: String,
    /// The network namespace of Linux's end, a name of `ip netns` or a path; none = ours.
    pub host_namespace: Option<String>,
    /// The layer 2 address of Linux's end; none for [`TapKind::Tun`].
    pub host_mac: Option<[u8; 6]>,
    /// MTU of both ends, bytes.
    pub mtu_bytes: u32,
    /// Who needs it; only that one deletes it.
    pub owner: &'static str,
}

/// Makes an interface of a device that Linux has made. Dropped, the device vanishes.
pub type AttachTap = Box<dyn FnOnce(&mut Engine) -> Result<InterfaceId, String> + Send>;

/// The calls, which the tap driver puts into the engine.
#[derive(Clone, Copy)]
pub struct TapMaker {
    /// Have Linux make the device, which may wait for it: not on the control thread. An error is a
    /// sentence for the operator.
    pub make: fn(TapWish) -> Result<AttachTap, String>,
    /// Delete the interface and the device.
    pub delete: fn(&mut Engine, InterfaceId) -> Result<(), String>,
    /// The number in the interface's name, when it is a tap.
    pub id: fn(&Engine, InterfaceId) -> Option<u32>,
}
