//! The tunnel endpoint information base: behind which outer address a next hop on a multipoint
//! tunnel is (VPP: TEIB; the table that NHRP fills, RFC 2332).

use std::collections::BTreeMap;
use std::net::IpAddr;

use quiver_core::{Engine, InterfaceId};

use super::config::TunnelError;

/// Entries at most.
pub const TEIB_ENTRIES_MAX: usize = 1 << 16;

/// Where a next hop is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHop {
    /// The outer address.
    pub address: IpAddr,
    /// The number of the table that has it.
    pub table: u32,
}

/// A protocol's function that makes a tunnel follow its entries.
type Follower = fn(&mut Engine, InterfaceId) -> Result<(), TunnelError>;

/// All entries, by interface and next hop.
#[derive(Debug, Default)]
pub struct Teib {
    entries: BTreeMap<(InterfaceId, IpAddr), NextHop>,
    followers: Vec<Follower>,
}

impl Teib {
    /// All entries, in order.
    pub fn iter(&self) -> impl Iterator<Item = (InterfaceId, IpAddr, NextHop)> {
        self.entries.iter().map(|((interface, peer), next_hop)| (*interface, *peer, *next_hop))
    }

    /// The entries of an interface.
    pub fn on(&self, interface: InterfaceId) -> impl Iterator<Item = (IpAddr, NextHop)> {
        let of_it = self.iter().filter(move |(on, ..)| *on == interface);
        of_it.map(|(_, peer, next_hop)| (peer, next_hop))
    }

    /// The entry of a next hop.
    pub fn get(&self, interface: InterfaceId, peer: IpAddr) -> Option<NextHop> {
        self.entries.get(&(interface, peer)).copied()
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn of(engine: &mut Engine) -> &mut Teib {
        if engine.get::<Teib>().is_none() {
            engine.insert(Teib::default());
        }
        engine.get_mut().expect("inserted before")
    }

    /// Let a protocol's tunnels follow changes.
    pub(super) fn follow(engine: &mut Engine, follower: Follower) {
        Teib::of(engine).followers.push(follower);
    }

    fn put(
        engine: &mut Engine,
        interface: InterfaceId,
        peer: IpAddr,
        next_hop: Option<NextHop>,
    ) -> (Option<NextHop>, Result<(), TunnelError>) {
        let teib = Teib::of(engine);
        let before = match next_hop {
            Some(next_hop) => teib.entries.insert((interface, peer), next_hop),
            None => teib.entries.remove(&(interface, peer)),
        };
        let followers = teib.followers.clone();
        let followed = followers.into_iter().try_for_each(|follower| follower(engine, interface));
        (before, followed)
    }

    /// Add, change or remove (`None`) the entry of a next hop. Nothing changes when the tunnel
    /// cannot send there.
    ///
    /// # Errors
    /// The interface is no multipoint tunnel, the addresses do not fit it, or there is no such
    /// entry.
    pub fn set(
        engine: &mut Engine,
        interface: InterfaceId,
        peer: IpAddr,
        next_hop: Option<NextHop>,
    ) -> Result<(), TunnelError> {
        let (before, followed) = Teib::put(engine, interface, peer, next_hop);
        if followed.is_err() {
            let _ = Teib::put(engine, interface, peer, before);
        }
        followed
    }

    /// An interface is gone.
    pub fn forget(engine: &mut Engine, interface: InterfaceId) {
        Teib::of(engine).entries.retain(|(on, _), _| *on != interface);
    }
}
