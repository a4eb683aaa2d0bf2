//! Interfaces and their addresses, as far as forwarding follows from them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use quiver_core::InterfaceId;
use quiver_tables::GroupId;
use quiver_tables::prefix::IpPrefix;

use super::families::Side;
use super::path::{Family, Path, Source, Target};
use super::path_list::ListKey;
use super::routes::{is_link_local, is_unicast};
use super::series::{Series, Step};
use super::{Fib, FibError, InterfaceInfo};

pub(super) struct Interface {
    pub info: InterfaceInfo,
    pub addresses: BTreeSet<(IpAddr, u8)>,
    /// Those of them that are not used: they have no routes, but nobody else gets their subnets.
    pub withheld: BTreeSet<(IpAddr, u8)>,
    /// Are broadcasts into its subnets forwarded (RFC 2644: not unless asked for)?
    pub directed_broadcast: bool,
    /// The table of its link-local addresses, once it speaks IPv6.
    pub link_local_table: Option<u32>,
}

/// Connected routes, by table and prefix.
type Connected = BTreeMap<(u32, IpPrefix), Path>;

impl Interface {
    /// The table that holds `address` of this interface.
    pub fn table_of(&self, address: IpAddr) -> u32 {
        match self.link_local_table {
            Some(table) if is_link_local(address) => table,
            _ => self.info.table(Family::of(address)),
        }
    }

    /// Its addresses that are used.
    fn used(&self) -> impl Iterator<Item = &(IpAddr, u8)> + Clone {
        self.addresses.difference(&self.withheld)
    }

    /// The routes that follow from all addresses: nobody else has them.
    fn connected(&self) -> Connected {
        self.routes_of(self.addresses.iter())
    }

    /// The routes that follow from some of the addresses while the interface is up.
    fn routes_of<'a>(
        &self,
        addresses: impl Iterator<Item = &'a (IpAddr, u8)> + Clone,
    ) -> Connected {
        let mut routes = Connected::new();
        let attached = Path::new(Target::Attached(self.info.id));
        for (address, len) in addresses.clone() {
            let table = self.table_of(*address);
            let subnet = IpPrefix::new(*address, *len);
            let bits = if address.is_ipv4() { 32 } else { 128 };
            if *len < bits {
                routes.insert((table, subnet), attached);
            }
            // The subnet's number and its broadcast address (RFC 1812 §4.2.3.1, RFC 2644); a /31
            // has neither (RFC 3021).
            if let (IpPrefix::V4(subnet), ..=30) = (subnet, *len) {
                let broadcast =
                    Target::Broadcast { interface: self.info.id, forward: self.directed_broadcast };
                for (end, target) in [(subnet.first(), Target::Drop), (subnet.last(), broadcast)] {
                    let end = IpPrefix::V4(quiver_tables::prefix::Prefix::host(end));
                    routes.entry((table, end)).or_insert(Path::new(target));
                }
            }
        }
        for (address, _) in addresses {
            let own = Path::new(Target::InterfaceAddress);
            routes.insert((self.table_of(*address), IpPrefix::host(*address)), own);
        }
        routes
    }
}

impl Fib {
    /// Tell the FIB of an interface, or of a change to it. Addresses keep it in its tables.
    ///
    /// # Errors
    /// The table does not exist, addresses keep the interface in its table, or there are too many
    /// adjacencies.
    pub fn set_interface(&mut self, info: InterfaceInfo) -> Result<(), FibError> {
        for family in [Family::Ip4, Family::Ip6] {
            let table = info.table(family);
            if !self.families.exists(family, table) {
                return Err(FibError::NoTableIndex { family, index: table });
            }
            if let Some(old) = self.interfaces.get(&info.id)
                && old.info.table(family) != table
                && old.addresses.iter().any(|(address, _)| Family::of(*address) == family)
            {
                let table = old.info.table(family);
                return Err(FibError::InterfaceHasAddresses { interface: info.id, family, table });
            }
        }
        let keys = self.adjacencies.on(info.id);
        if !self.adjacencies.slots().has_room(keys.len()) {
            return Err(FibError::AdjacenciesFull(self.limits.adjacencies));
        }
        let id = info.id;
        let (before, is_up) = (self.installed(id), info.up);
        match self.interfaces.get_mut(&id) {
            Some(known) => known.info = info,
            None => {
                let new = Interface {
                    info,
                    addresses: BTreeSet::new(),
                    withheld: BTreeSet::new(),
                    directed_broadcast: false,
                    link_local_table: None,
                };
                self.interfaces.insert(id, new);
            }
        }
        // Withdraw routes before their hops drop, and install them after their hops forward.
        if !is_up {
            self.install(&before, &self.installed(id))?;
        }
        self.refresh_adjacencies(&keys);
        self.resolve_again(self.lists.on(id));
        if is_up {
            self.install(&before, &self.installed(id))?;
        }
        self.refresh_neighbour_routes(id)
    }

    /// Forget an interface: its addresses, its neighbours, and every path that names it.
    ///
    /// # Errors
    /// The FIB does not know the interface, or a table is out of memory.
    pub fn remove_interface(&mut self, id: InterfaceId) -> Result<(), FibError> {
        let Some(interface) = self.interfaces.get(&id) else {
            return Err(FibError::NoInterface { asked: "delete".into(), interface: id });
        };
        for (address, len) in interface.addresses.clone() {
            self.remove_address(id, address, len)?;
        }
        let neighbours: Vec<_> = self.neighbours.on(id).map(|(address, _)| address).collect();
        for address in neighbours {
            self.remove_neighbour(id, address)?;
        }
        // First what holds no routes but its own: as a rule no path names it then.
        let link_local =
            self.interfaces.get_mut(&id).and_then(|interface| interface.link_local_table.take());
        if let Some(table) = link_local {
            self.drop_table(Family::Ip6, table);
        }
        self.remove_paths_on(id)?;
        self.objects.forget_interface(id);
        self.interfaces.remove(&id);
        self.resolve_again(self.lists.on(id));
        Ok(())
    }

    /// Routes lose the paths that name the interface: each list of paths is shortened once, and the
    /// routes that held it are moved together.
    fn remove_paths_on(&mut self, id: InterfaceId) -> Result<(), FibError> {
        let naming: BTreeMap<GroupId, Arc<ListKey>> = self
            .lists
            .naming(id)
            .filter_map(|group| Some((group, self.lists.get(group)?.key.clone())))
            .collect();
        if naming.is_empty() {
            return Ok(());
        }
        let mut shortened = BTreeMap::new();
        for (group, key) in &naming {
            let left: Vec<Path> =
                key.paths.iter().filter(|path| !path.names(id)).copied().collect();
            if !left.is_empty() {
                let now = self.list(key.payload, key.table, &left, key.of_default)?;
                shortened.insert(*group, now);
            }
        }
        self.move_routes::<u32>(&naming, &shortened)?;
        self.move_routes::<u128>(&naming, &shortened)?;
        self.move_label_routes(&naming, &shortened);
        self.sweep();
        Ok(())
    }

    /// Let every route of a family that holds one of `from` hold what it became, or go.
    fn move_routes<A: Side>(
        &mut self,
        from: &BTreeMap<GroupId, Arc<ListKey>>,
        to: &BTreeMap<GroupId, GroupId>,
    ) -> Result<(), FibError> {
        let mut held = A::tables(&self.families).holders(|group| from.contains_key(&group));
        held.sort_unstable_by_key(|(table, prefix, source)| (*table, *source, *prefix));
        for alike in held.chunk_by(|a, b| (a.0, a.2) == (b.0, b.2)) {
            let (table, _, source) = alike[0];
            let steps: Vec<_> = alike
                .iter()
                .map(|(_, prefix, _)| {
                    let said = A::tables(&self.families).says(table, *prefix, source);
                    (*prefix, Step::PutBack(said.and_then(|group| to.get(&group).copied())))
                })
                .collect();
            let series = Series { table, source, path_sets: &[] };
            let outcomes = self.plan(series, &steps)?;
            self.make_within(series, &outcomes)?;
        }
        Ok(())
    }

    /// What the FIB knows of an interface.
    pub fn interface(&self, id: InterfaceId) -> Option<&InterfaceInfo> {
        self.interfaces.get(&id).map(|interface| &interface.info)
    }

    /// The addresses of an interface that are used, with their prefix lengths.
    pub fn addresses(&self, id: InterfaceId) -> impl Iterator<Item = (IpAddr, u8)> {
        self.interfaces.get(&id).into_iter().flat_map(|interface| interface.used().copied())
    }

    /// The small number of the IPv6 table for link-local destinations on an interface.
    pub fn link_local_table(&self, id: InterfaceId) -> Option<u32> {
        self.interfaces.get(&id)?.link_local_table
    }

    fn known(
        &mut self,
        id: InterfaceId,
        asked: impl FnOnce() -> String,
    ) -> Result<&mut Interface, FibError> {
        match self.interfaces.get_mut(&id) {
            Some(interface) => Ok(interface),
            None => Err(FibError::NoInterface { asked: asked(), interface: id }),
        }
    }

    /// Give an interface an address: local, its subnet connected.
    ///
    /// # Errors
    /// The address is none of a host, the interface is unknown or has it already, or a table is
    /// full.
    pub fn add_address(
        &mut self,
        id: InterfaceId,
        address: IpAddr,
        len: u8,
    ) -> Result<(), FibError> {
        let bits = if address.is_ipv4() { 32 } else { 128 };
        if !is_unicast(address) || len > bits || len == 0 {
            return Err(FibError::BadAddress(address));
        }
        let interface = self.known(id, || format!("address {address}/{len}"))?;
        if interface.addresses.contains(&(address, len)) {
            return Err(FibError::AddressExists(address, len, id));
        }
        if address.is_ipv6() {
            self.enable_ip6(id)?;
        }
        self.change_addresses(id, |interface| {
            interface.addresses.insert((address, len));
        })
    }

    /// Take an address from an interface.
    ///
    /// # Errors
    /// The interface is unknown or does not have the address, or a table is out of memory.
    pub fn remove_address(
        &mut self,
        id: InterfaceId,
        address: IpAddr,
        len: u8,
    ) -> Result<(), FibError> {
        let interface = self.known(id, || format!("address {address}/{len}"))?;
        if !interface.addresses.contains(&(address, len)) {
            return Err(FibError::NoAddress(address, len, id));
        }
        self.change_addresses(id, |interface| {
            interface.addresses.remove(&(address, len));
            interface.withheld.remove(&(address, len));
        })
    }

    /// Let an address of an interface not be used, or be used again. Its subnet stays the
    /// interface's: no other one gets it meanwhile.
    ///
    /// # Errors
    /// The interface is unknown or does not have the address, or a table is full.
    pub fn withhold_address(
        &mut self,
        id: InterfaceId,
        address: IpAddr,
        len: u8,
        is_withheld: bool,
    ) -> Result<(), FibError> {
        let interface = self.known(id, || format!("address {address}/{len}"))?;
        if !interface.addresses.contains(&(address, len)) {
            return Err(FibError::NoAddress(address, len, id));
        }
        self.change_addresses(id, |interface| match is_withheld {
            true => interface.withheld.extend([(address, len)]),
            false => interface.withheld.retain(|known| *known != (address, len)),
        })
    }

    /// Are broadcasts into the subnets of an interface forwarded?
    pub fn directed_broadcast(&self, id: InterfaceId) -> bool {
        self.interfaces.get(&id).is_some_and(|interface| interface.directed_broadcast)
    }

    /// Let broadcasts into the IPv4 subnets of an interface be forwarded, or not (RFC 2644).
    ///
    /// # Errors
    /// The interface is unknown, or a table is full.
    pub fn set_directed_broadcast(
        &mut self,
        id: InterfaceId,
        forward: bool,
    ) -> Result<(), FibError> {
        self.known(id, || "directed broadcasts".into())?;
        self.change_addresses(id, |interface| interface.directed_broadcast = forward)
    }

    /// Let an interface have a table for link-local destinations, with fe80::/64 connected
    /// (RFC 4291 §2.5.6). Its first IPv6 address does this, too.
    ///
    /// # Errors
    /// The interface is unknown, or there is no table left.
    pub fn enable_ip6(&mut self, id: InterfaceId) -> Result<u32, FibError> {
        if let Some(table) = self.known(id, || "IPv6".into())?.link_local_table {
            return Ok(table);
        }
        let table = self.families.ip6.add(None)?;
        let prefix = IpPrefix::new(IpAddr::from([0xfe80, 0, 0, 0, 0, 0, 0, 0]), 64);
        let attached = Path::new(Target::Attached(id));
        if let Err(error) = self.replace_route(table, prefix, Source::Interface, &[attached]) {
            self.drop_table(Family::Ip6, table);
            return Err(error);
        }
        self.known(id, String::new)?.link_local_table = Some(table);
        Ok(table)
    }

    /// Change the set of addresses, and make the connected routes follow.
    fn change_addresses(
        &mut self,
        id: InterfaceId,
        change: impl FnOnce(&mut Interface),
    ) -> Result<(), FibError> {
        let installed = self.installed(id);
        let interface = self.known(id, String::new)?;
        let (old_addresses, claimed) = (interface.addresses.clone(), interface.connected());
        let (old_withheld, old_broadcast) =
            (interface.withheld.clone(), interface.directed_broadcast);
        change(interface);
        let claims = interface.connected();
        // An interface that is down keeps its subnets: it will come up again.
        let taken =
            claims.keys().find(|place| self.connected.get(place).is_some_and(|owner| *owner != id));
        let done = match taken {
            Some((_, prefix)) => Err(FibError::SubnetConnected(*prefix)),
            None => self.install(&installed, &self.installed(id)),
        };
        if let Err(error) = done {
            let interface = self.known(id, String::new)?;
            (interface.addresses, interface.withheld) = (old_addresses, old_withheld);
            interface.directed_broadcast = old_broadcast;
            return Err(error);
        }
        claimed.keys().filter(|place| !claims.contains_key(place)).for_each(|place| {
            self.connected.remove(place);
        });
        self.connected.extend(claims.into_keys().map(|place| (place, id)));
        Ok(())
    }

    /// The routes of an interface's addresses that should be in the tables: none while it is down
    /// (RFC 1812 §5.2.1: a router forwards by interfaces that are up).
    fn installed(&self, id: InterfaceId) -> Connected {
        let interface = self.interfaces.get(&id).filter(|interface| interface.info.up);
        interface.map_or_else(Connected::new, |interface| interface.routes_of(interface.used()))
    }

    /// Replace the connected routes `before` by `after`: all or none.
    fn install(&mut self, before: &Connected, after: &Connected) -> Result<(), FibError> {
        let link_local_subnet = |prefix: IpPrefix| match prefix {
            IpPrefix::V6(prefix) => {
                is_link_local(IpAddr::from(prefix.first().to_be_bytes())) && prefix.len() < 128
            }
            IpPrefix::V4(_) => false,
        };
        // fe80::/64 is connected for as long as the interface speaks IPv6.
        let differs = |other: &Connected, (place, path): &(&(u32, IpPrefix), &Path)| {
            other.get(place) != Some(path) && !link_local_subnet(place.1)
        };
        let added: Vec<_> = after.iter().filter(|route| differs(before, route)).collect();
        for (done, ((table, prefix), path)) in added.iter().enumerate() {
            if let Err(error) = self.replace_route(*table, *prefix, Source::Interface, &[**path]) {
                for (place, _) in &added[..done] {
                    let _ = match before.get(place) {
                        Some(path) => {
                            self.replace_route(place.0, place.1, Source::Interface, &[*path])
                        }
                        None => self.remove_route(place.0, place.1, Source::Interface),
                    };
                }
                return Err(error);
            }
        }
        for ((table, prefix), _) in before.iter().filter(|(place, _)| !after.contains_key(place)) {
            if !link_local_subnet(*prefix) {
                self.remove_route(*table, *prefix, Source::Interface)?;
            }
        }
        Ok(())
    }
}
