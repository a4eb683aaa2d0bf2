//! What Linux has configured in a namespace, as far as the router follows it.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use quiver_netlink::message::flag;
use quiver_netlink::mpls::{LabelHop, LabelRoute};
use quiver_netlink::{Message, address, family, link, neighbour, next_hop, route};

use super::far_objects::FarObjects;
use super::kept::{Before, Kept};
use super::orders::Again;
use super::routes::{Encap, RouteKey, Routes};
use crate::routes::LOCAL_TABLE;

/// A link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LinkFacts {
    /// Its name.
    pub name: String,
    /// Is it administratively up?
    pub is_up: bool,
    /// Its MTU, bytes.
    pub mtu_bytes: u32,
    /// Its layer 2 address.
    pub mac: [u8; 6],
    /// Can it send and receive?
    pub is_running: bool,
    /// The link that it stands on.
    pub parent: Option<u32>,
    /// Is it a macvlan?
    pub is_macvlan: bool,
    /// The EtherType and the ID of a VLAN.
    pub vlan: Option<(u16, u16)>,
    /// Is it a port of a bridge?
    pub is_bridge_port: bool,
    /// Does it belong to a VRF device?
    pub is_in_vrf: bool,
    /// The VNI of a VXLAN device.
    pub vni: Option<u32>,
}

/// An address of a link, with the length of its prefix.
pub(crate) type AddressKey = (u32, IpAddr, u8);

/// A neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NeighbourFacts {
    /// Its layer 2 address.
    pub mac: [u8; 6],
    /// Was it configured, or put there by a daemon that says when it goes (`NUD_NOARP` with
    /// `NTF_EXT_LEARNED`, as FRR has next hops of EVPN)?
    pub is_permanent: bool,
}

/// A station behind a port of a bridge: the port's link, the layer 2 address, and the VLAN, 0 for
/// none.
pub(crate) type StationKey = (u32, [u8; 6], u16);

/// A station behind a port of a bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StationFacts {
    /// Does it neither age nor move?
    pub is_static: bool,
    /// Did somebody else than the kernel learn it?
    pub is_external: bool,
}

/// A station behind a far end of a VXLAN device: the device's link and the layer 2 address; for
/// address 0, which stands for all stations, each far end has an entry.
pub(crate) type FarKey = (u32, [u8; 6], Option<IpAddr>);

/// Behind what a station of a VXLAN device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FarValue {
    /// Behind this far end.
    Vtep(IpAddr),
    /// Behind the far ends of a next-hop object.
    Object(u32),
}

/// What the route of a label says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LabelFacts {
    /// Its hops.
    pub hops: Vec<LabelHop>,
    /// Does the TTL go on into what is behind the label?
    pub propagates_ttl: bool,
}

/// What a next-hop object says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Object {
    /// Packets are dropped.
    Blackhole,
    /// One hop.
    Hop {
        /// The next hop; none when hosts are on the link.
        gateway: Option<IpAddr>,
        /// The number of the link.
        link: u32,
        /// What it puts around packets.
        encap: Option<Arc<Encap>>,
    },
    /// Other objects with their shares.
    Group(Vec<(u32, u32)>),
}

impl Object {
    /// Is it a group with a member of which `of` is true?
    fn has_member(&self, of: impl Fn(u32) -> bool) -> bool {
        matches!(self, Object::Group(members) if members.iter().any(|member| of(member.0)))
    }
}

/// Hops of a next-hop object with their shares.
pub(crate) type ObjectHops = Vec<(Object, u32)>;

/// All of it.
pub(crate) struct Model {
    pub links: Kept<u32, LinkFacts>,
    pub addresses: Kept<AddressKey, ()>,
    pub neighbours: Kept<(u32, IpAddr), NeighbourFacts>,
    /// Stations of bridges, behind their ports.
    pub stations: Kept<StationKey, StationFacts>,
    /// The port that a station of a bridge is behind, by bridge, layer 2 address and VLAN. A
    /// station that moves is reported at its new port alone.
    station_ports: HashMap<(u32, [u8; 6], u16), u32>,
    /// Stations behind far ends of VXLAN devices.
    pub far: Kept<FarKey, FarValue>,
    /// Next-hop objects that such stations name.
    pub far_objects: FarObjects,
    pub objects: Kept<u32, Object>,
    /// Objects that groups name, and that are not there.
    awaited: HashSet<u32>,
    pub routes: Routes,
    /// Routes of labels.
    pub labels: Kept<u32, LabelFacts>,
    /// Routes of this router, or of an earlier one, in Linux.
    pub own_routes: HashSet<RouteKey>,
    /// Neighbours that the router has made.
    pub own_neighbours: HashSet<(u32, IpAddr)>,
    /// A link that went down or lost an address since somebody looked: it may be about to go.
    pub leaving: Option<u32>,
}

impl Model {
    pub fn new() -> Model {
        Model {
            links: Kept::new(),
            addresses: Kept::new(),
            neighbours: Kept::new(),
            stations: Kept::new(),
            station_ports: HashMap::new(),
            far: Kept::new(),
            far_objects: FarObjects::new(),
            objects: Kept::new(),
            awaited: HashSet::new(),
            routes: Routes::new(),
            labels: Kept::new(),
            own_routes: HashSet::new(),
            own_neighbours: HashSet::new(),
            leaving: None,
        }
    }

    /// Take over what a message says. What this router does not follow is passed over.
    pub fn take(&mut self, message: &Message<'_>) {
        match message.kind {
            route::NEW | route::DELETED => self.take_route(message),
            link::NEW | link::DELETED => self.take_link(message),
            address::NEW | address::DELETED => self.take_address(message),
            neighbour::NEW | neighbour::DELETED => self.take_neighbour(message),
            next_hop::NEW => self.take_object(message),
            next_hop::DELETED => match next_hop::NextHop::read(message.body) {
                Some(object) if object.is_far_end => self.far_objects.went(object.id),
                Some(object) => self.object_went(object.id),
                None => {}
            },
            _ => {}
        }
    }

    fn take_label(&mut self, kind: u16, read: LabelRoute) {
        match kind {
            route::NEW => {
                // Linux propagates where nobody says otherwise (`ip_ttl_propagate`).
                let propagates_ttl = read.propagates_ttl.unwrap_or(true);
                self.labels.put(read.label, LabelFacts { hops: read.hops, propagates_ttl });
            }
            _ => {
                self.labels.remove(read.label);
            }
        }
    }

    fn take_route(&mut self, message: &Message<'_>) {
        if let Some(read) = LabelRoute::read(message.body) {
            return self.take_label(message.kind, read);
        }
        let Some(read) = route::Route::read(message.body) else { return };
        if read.protocol == route::protocol::QUIVER {
            let key = RouteKey { table: read.table, prefix: read.prefix };
            match message.kind {
                route::NEW => self.own_routes.insert(key),
                _ => self.own_routes.remove(&key),
            };
            return;
        }
        // Subnets of addresses come with the addresses.
        if read.protocol == route::protocol::KERNEL || read.table == LOCAL_TABLE {
            return;
        }
        match message.kind {
            route::NEW => self.routes.put(&read, message.flags & flag::APPEND != 0),
            _ => self.routes.remove(&read),
        }
    }

    fn take_link(&mut self, message: &Message<'_>) {
        let Some(read) = link::Link::read(message.body) else { return };
        if read.family != family::UNSPECIFIED {
            return;
        }
        let was_up = self.links.get(read.index).is_some_and(|known| known.is_up);
        let is_up = message.kind == link::NEW && read.is_up;
        match message.kind {
            link::NEW => {
                let facts = LinkFacts {
                    name: read.name.unwrap_or_default().to_owned(),
                    is_up,
                    mtu_bytes: read.mtu_bytes.unwrap_or(0),
                    mac: read.mac.unwrap_or_default(),
                    is_running: read.is_running,
                    parent: read.parent,
                    is_macvlan: read.kind == Some("macvlan"),
                    vlan: read.vlan,
                    is_bridge_port: read.master_kind == Some("bridge"),
                    is_in_vrf: read.master_kind == Some("vrf"),
                    vni: read.vni,
                };
                self.links.put(read.index, facts);
            }
            _ => {
                self.links.remove(read.index);
                self.addresses.remove_those(|(link, ..), ()| *link == read.index);
                self.neighbours.remove_those(|(link, _), _| *link == read.index);
                self.stations.remove_those(|(link, ..), _| *link == read.index);
                self.station_ports.retain(|_, port| *port != read.index);
                self.far.remove_those(|(link, ..), _| *link == read.index);
            }
        }
        if was_up && !is_up {
            self.leaving = (message.kind == link::NEW).then_some(read.index).or(self.leaving);
            self.link_went_down(read.index);
        }
    }

    /// What Linux takes away with a link that went down, and does not say.
    fn link_went_down(&mut self, index: u32) {
        let links = &self.links;
        let is_down = |link: u32| link == index || links.get(link).is_some_and(|l| !l.is_up);
        self.routes.links_went_down(is_down);
        let of_link =
            |object: &Object| matches!(object, Object::Hop { link, .. } if *link == index);
        let gone: Vec<u32> = self.objects.keys_of(|_, object| of_link(object));
        gone.into_iter().for_each(|id| self.object_went(id));
    }

    /// An object is gone. Groups lose the member; one that has no other is gone too.
    fn object_went(&mut self, id: u32) {
        let mut gone = vec![id];
        while let Some(id) = gone.pop() {
            self.objects.remove(id);
            self.routes.object_went(id);
            for group in self.objects.keys_of(|_, object| object.has_member(|member| member == id))
            {
                let Some(Object::Group(members)) = self.objects.get(group) else { continue };
                let left: Vec<_> =
                    members.iter().filter(|member| member.0 != id).copied().collect();
                match left.is_empty() {
                    true => gone.push(group),
                    false => self.objects.amend(group, Object::Group(left)),
                }
            }
        }
    }

    /// An object is this now. A group is reported as the hops of its members, so it is reported
    /// again when one of them is another now.
    fn put_object(&mut self, id: u32, object: Object) {
        let is_known = self.objects.get(id).is_some();
        if let Object::Group(members) = &object {
            let missing = members.iter().filter(|member| self.objects.get(member.0).is_none());
            self.awaited.extend(missing.map(|member| member.0));
        }
        let is_change = self.objects.replace(id, object) != Before::Same;
        if is_change && (self.awaited.remove(&id) || is_known) {
            self.objects.report_again(|_, object| object.has_member(|member| member == id));
        }
    }

    /// A dump of objects is whole: groups lose members that are not in it.
    pub fn sweep_objects(&mut self) {
        self.objects.sweep();
        let mut missing = HashSet::new();
        for group in self.objects.keys_of(|_, object| matches!(object, Object::Group(_))) {
            let Some(Object::Group(members)) = self.objects.get(group) else { continue };
            let members = members.iter().map(|member| member.0);
            missing.extend(members.filter(|member| self.objects.get(*member).is_none()));
        }
        let is_new = |member| missing.contains(&member) && !self.awaited.contains(&member);
        self.objects.report_again(|_, object| object.has_member(is_new));
        self.awaited = missing;
    }

    fn take_address(&mut self, message: &Message<'_>) {
        let Some(read) = address::LinkAddress::read(message.body) else { return };
        let key = (read.link, read.address, read.length);
        match message.kind == address::NEW && !read.is_duplicate {
            true => self.addresses.put(key, ()),
            false => {
                self.addresses.remove(key);
                self.leaving = Some(read.link);
            }
        }
    }

    fn take_neighbour(&mut self, message: &Message<'_>) {
        let Some(read) = neighbour::Neighbour::read(message.body) else { return };
        if read.family == family::BRIDGE {
            return self.take_station(message.kind, &read);
        }
        let Some(address) = read.address else { return };
        let key = (read.link, address);
        let is_there = message.kind == neighbour::NEW && read.is_usable();
        if is_there && read.protocol == route::protocol::QUIVER {
            self.own_neighbours.insert(key);
            self.neighbours.remove(key);
            return;
        }
        self.own_neighbours.remove(&key);
        match read.mac.filter(|_| is_there) {
            Some(mac) => {
                let is_daemons = read.is_external && read.is_static();
                let is_permanent = read.is_permanent() || is_daemons;
                let facts = NeighbourFacts { mac, is_permanent };
                self.neighbours.put(key, facts);
            }
            None => {
                self.neighbours.remove(key);
            }
        }
    }

    /// An entry of a bridge for a station behind a port. The addresses of the ports themselves
    /// (`NUD_PERMANENT`), and filters of links that are no ports, are none.
    fn take_station(&mut self, kind: u16, read: &neighbour::Neighbour) {
        let object = read.object.filter(|id| *id != 0).map(FarValue::Object);
        let far = read.address.map(FarValue::Vtep).or(object);
        if let (Some(mac), Some(far), None) = (read.mac, far, read.master) {
            let key = (read.link, mac, read.address.filter(|_| mac == [0; 6]));
            match kind == neighbour::NEW {
                true => self.far.put(key, far),
                // A station that has moved is behind another one already.
                false if self.far.get(key) == Some(&far) => {
                    self.far.remove(key);
                }
                false => {}
            }
            return;
        }
        let (Some(mac), Some(bridge)) = (read.mac, read.master) else { return };
        let vlan = read.vlan.unwrap_or(0);
        let (key, place) = ((read.link, mac, vlan), (bridge, mac, vlan));
        match kind == neighbour::NEW && read.is_usable() && !read.is_permanent() {
            true => {
                let old = self.station_ports.insert(place, read.link);
                if let Some(old) = old.filter(|old| *old != read.link) {
                    self.stations.remove((old, mac, vlan));
                }
                let (is_static, is_external) = (read.is_static(), read.is_external);
                self.stations.put(key, StationFacts { is_static, is_external });
            }
            false => {
                self.stations.remove(key);
                if self.station_ports.get(&place) == Some(&read.link) {
                    self.station_ports.remove(&place);
                }
            }
        }
    }

    fn take_object(&mut self, message: &Message<'_>) {
        let Some(read) = next_hop::NextHop::read(message.body) else { return };
        if read.is_far_end {
            return self.far_objects.put(read);
        }
        let object = match read.kind {
            next_hop::Kind::Blackhole => Object::Blackhole,
            next_hop::Kind::Hop { gateway, link, encap } => {
                Object::Hop { gateway, link, encap: encap.map(Encap::of) }
            }
            next_hop::Kind::Group(members) => Object::Group(members),
        };
        self.put_object(read.id, object);
    }

    /// The hops of an object, its groups' members and theirs among them, with their shares; none
    /// when it is not there, or drops.
    pub fn hops_of(&self, id: u32) -> ObjectHops {
        match self.objects.get(id) {
            Some(Object::Group(members)) => {
                let hop = |(member, weight): &(u32, u32)| match self.objects.get(*member) {
                    Some(Object::Group(_)) | None => None, // Linux has no groups of groups
                    Some(hop) => Some((hop.clone(), *weight)),
                };
                members.iter().filter_map(hop).collect()
            }
            Some(hop) => vec![(hop.clone(), 1)],
            None => Vec::new(),
        }
    }

    /// Tell again what somebody follows now, or no more.
    pub fn report_again(&mut self, what: Again) {
        match what {
            Again::Link(index) => self.report_link_again(index),
            Again::Object(id) => self.routes.report_again_by(id),
            Again::All => self.report_all_again(),
        }
    }

    fn report_link_again(&mut self, index: u32) {
        self.links.report_again(|link, _| *link == index);
        self.addresses.report_again(|(link, ..), ()| *link == index);
        self.neighbours.report_again(|(link, _), _| *link == index);
        self.stations.report_again(|(link, ..), _| *link == index);
        self.far.report_again(|(link, ..), _| *link == index);
        let of_link =
            |object: &Object| matches!(object, Object::Hop { link, .. } if *link == index);
        let objects = self.objects.keys_of(|_, object| of_link(object));
        self.objects.report_again(|id, object| {
            objects.contains(id) || object.has_member(|member| objects.contains(&member))
        });
        self.routes.used.report_again(|_, (_, value)| value.names(index));
        self.labels.report_again(|_, facts| facts.hops.iter().any(|hop| hop.link == index));
    }

    fn report_all_again(&mut self) {
        self.links.report_again(|_, _| true);
        self.addresses.report_again(|_, ()| true);
        self.neighbours.report_again(|_, _| true);
        self.stations.report_again(|_, _| true);
        self.far_objects.report_all_again();
        self.far.report_again(|_, _| true);
        self.objects.report_again(|_, _| true);
        self.routes.used.report_again(|_, _| true);
        self.labels.report_again(|_, _| true);
    }

    /// How many changes are to be told.
    pub fn unreported(&self) -> usize {
        self.links.unreported()
            + self.addresses.unreported()
            + self.neighbours.unreported()
            + self.stations.unreported()
            + self.far_objects.unreported()
            + self.far.unreported()
            + self.objects.unreported()
            + self.routes.used.unreported()
            + self.labels.unreported()
    }

    /// Changes that went into ones that were not told yet.
    pub fn coalesced(&self) -> u64 {
        self.links.coalesced
            + self.addresses.coalesced
            + self.neighbours.coalesced
            + self.stations.coalesced
            + self.far_objects.coalesced()
            + self.far.coalesced
            + self.objects.coalesced
            + self.routes.used.coalesced
            + self.labels.coalesced
    }
}

#[cfg(test)]
mod tests {
    use quiver_netlink::Messages;
    use quiver_netlink::request::attribute_bytes;

    use super::*;

    fn hop(last: u8) -> Object {
        Object::Hop { gateway: Some([10, 0, 0, last].into()), link: 1, encap: None }
    }

    /// The objects that are to be reported, as the hops that they come to.
    fn reported(model: &mut Model) -> Vec<(u32, Option<ObjectHops>)> {
        let objects = model.objects.take_unreported(9);
        let hops = |(id, object): (u32, Option<Object>)| (id, object.map(|_| model.hops_of(id)));
        let mut reported: Vec<_> = objects.into_iter().map(hops).collect();
        reported.sort_by_key(|(id, _)| *id);
        reported
    }

    #[test]
    fn a_group_is_reported_again_when_a_member_is_another_now() {
        let mut model = Model::new();
        model.put_object(9, Object::Group(vec![(1, 1), (2, 3)]));
        assert_eq!(reported(&mut model), [(9, Some(vec![]))], "its members are not there yet");
        model.put_object(1, hop(1));
        assert_eq!(reported(&mut model)[1], (9, Some(vec![(hop(1), 1)])));
        model.put_object(2, hop(2));
        reported(&mut model);
        model.put_object(2, hop(7));
        let both = vec![(hop(1), 1), (hop(7), 3)];
        assert_eq!(reported(&mut model), [(2, Some(vec![(hop(7), 1)])), (9, Some(both))]);
        model.put_object(2, hop(7));
        assert_eq!(reported(&mut model), [], "the same again is no change");
    }

    #[test]
    fn a_group_loses_members_that_are_not_in_a_dump() {
        let mut model = Model::new();
        model.put_object(1, hop(1));
        model.put_object(2, hop(2));
        model.put_object(9, Object::Group(vec![(1, 1), (2, 1)]));
        reported(&mut model);
        model.objects.begin_dump();
        model.put_object(1, hop(1));
        model.put_object(9, Object::Group(vec![(1, 1), (2, 1)]));
        model.sweep_objects();
        assert_eq!(reported(&mut model), [(2, None), (9, Some(vec![(hop(1), 1)]))]);
    }

    #[test]
    fn a_group_without_members_is_gone_and_so_are_groups_of_it() {
        let mut model = Model::new();
        model.put_object(1, hop(1));
        model.put_object(2, Object::Group(vec![(1, 1)]));
        model.put_object(3, Object::Group(vec![(2, 1), (2, 1)]));
        reported(&mut model);
        model.object_went(1);
        assert_eq!(reported(&mut model), [(1, None), (2, None), (3, None)]);
    }

    /// A message of Linux, as it comes in a datagram.
    fn message(kind: u16, header: &[u8], attributes: &[(u16, Vec<u8>)]) -> Vec<u8> {
        let attributes = attributes.iter();
        let attributes = attributes.flat_map(|(number, value)| attribute_bytes(*number, value));
        let body: Vec<u8> = header.iter().copied().chain(attributes).collect();
        let mut message = (body.len() as u32 + 16).to_ne_bytes().to_vec();
        message.extend(kind.to_ne_bytes());
        message.resize(16, 0);
        message.extend(body);
        message
    }

    fn take(model: &mut Model, message: &[u8]) {
        Messages::of(message).for_each(|message| model.take(&message));
    }

    /// `RTM_NEWLINK` of a link (linux/if_link.h).
    fn link_message(kind: u16, number: u32, attributes: &[(u16, Vec<u8>)]) -> Vec<u8> {
        const UP: u32 = 1;
        let mut header = [0; 16];
        header[4..8].copy_from_slice(&number.to_ne_bytes());
        header[8..12].copy_from_slice(&UP.to_ne_bytes());
        message(kind, &header, attributes)
    }

    #[test]
    fn a_vlan_of_linux_is_read_with_its_tag_and_the_link_that_it_stands_on() {
        let info = |protocol: u16| {
            let id = attribute_bytes(1, &100u16.to_ne_bytes());
            let data = [id, attribute_bytes(5, &protocol.to_be_bytes())].concat();
            [attribute_bytes(1, b"vlan\0"), attribute_bytes(2, &data)].concat()
        };
        let attributes = |protocol| {
            let (name, on) = (b"e0.100\0".to_vec(), 7u32.to_ne_bytes().to_vec());
            vec![(3, name), (5, on), (18, info(protocol))]
        };
        let mut model = Model::new();
        for protocol in [0x8100, 0x88a8] {
            take(&mut model, &link_message(link::NEW, 9, &attributes(protocol)));
            let facts = model.links.get(9).expect("a link");
            assert_eq!((facts.vlan, facts.parent), (Some((protocol, 100)), Some(7)));
            assert!(facts.is_up && !facts.is_bridge_port);
        }
        take(&mut model, &link_message(link::DELETED, 9, &[]));
        assert!(model.links.get(9).is_none());
    }

    /// `RTM_NEWNEIGH` of a bridge's entry (linux/neighbour.h).
    fn entry(kind: u16, state: u16, flags: u8, attributes: &[(u16, Vec<u8>)]) -> Vec<u8> {
        let mut header = [0; 12];
        header[0] = family::BRIDGE;
        header[4..8].copy_from_slice(&9u32.to_ne_bytes());
        header[8..10].copy_from_slice(&state.to_ne_bytes());
        header[10] = flags;
        message(kind, &header, attributes)
    }

    #[test]
    fn stations_behind_ports_are_those_that_a_bridge_has() {
        const REACHABLE: u16 = 2;
        const STATIC: u16 = 0x40;
        const PERMANENT: u16 = 0x80;
        const EXTERNAL: u8 = 0x10;
        let bridge = (9, 3u32.to_ne_bytes().to_vec());
        let mac = |last: u8| [2, 0, 0, 0, 0, last];
        let own = |last: u8| vec![(2, mac(last).to_vec()), bridge.clone()];
        let mut model = Model::new();
        let new = neighbour::NEW;
        take(&mut model, &entry(new, STATIC, 0, &own(1)));
        take(&mut model, &entry(new, REACHABLE, EXTERNAL, &own(2)));
        let in_vlan = [own(3), vec![(5, 7u16.to_ne_bytes().to_vec())]].concat();
        take(&mut model, &entry(new, REACHABLE, 0, &in_vlan));
        // The port's own address, and a filter of a link that is no port.
        take(&mut model, &entry(new, PERMANENT, 0, &own(4)));
        take(&mut model, &entry(new, PERMANENT, 2, &[(2, mac(5).to_vec())]));
        let facts = |last: u8, vlan| {
            let facts = model.stations.get((9, mac(last), vlan));
            facts.map(|facts| (facts.is_static, facts.is_external))
        };
        assert_eq!(facts(1, 0), Some((true, false)));
        assert_eq!(facts(2, 0), Some((false, true)));
        assert_eq!(facts(3, 7), Some((false, false)));
        assert_eq!(model.stations.len(), 3);
        take(&mut model, &entry(neighbour::DELETED, STATIC, 0, &own(1)));
        assert_eq!(model.stations.len(), 2);
        take(&mut model, &link_message(link::DELETED, 9, &[]));
        assert_eq!(model.stations.len(), 0, "entries go with their port");
    }
}
