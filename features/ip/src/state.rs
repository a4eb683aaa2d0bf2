//! What the control thread keeps of IP beside the FIB.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::Fib;
use quiver_forwarding::ip::AutoSettings;
use quiver_forwarding::ip::{Addresses, IpTables, NOT_ENABLED};
use quiver_wire::{Ip4InterfaceAddress, Ip6InterfaceAddress};

use crate::addresses::duplicate_detection::Ownerships;
use crate::addresses::leases::Leased6;
use crate::addresses::published::PublishedAddresses;
use crate::commands::replace::Replacing;
use crate::local::icmp_limits::IcmpLimits;
use crate::local::path_mtu::PathMtus;
use crate::local::pending_pings::WaitingPings;
use crate::local::ping::Mailboxes;
use crate::local::punt::Punts;
use crate::neighbor::pending_packets::HeldCounts;
use crate::neighbor::pending_resolutions::PendingResolutions;
use crate::neighbor::proxies::ArpProxies;

/// What is configured on one interface.
#[derive(Clone, Debug, Default)]
pub(crate) struct InterfaceIp {
    /// Small number of its IPv4 table.
    pub table4: u32,
    /// Small number of its IPv6 table.
    pub table6: u32,
    /// Its IPv4 addresses, in the order given.
    pub ip4: Vec<Ip4InterfaceAddress>,
    /// The one of them that a DHCP server leased.
    pub leased: Option<Ip4InterfaceAddress>,
    /// Its IPv6 addresses, in the order given, link-local ones left out.
    pub ip6: Vec<Ip6InterfaceAddress>,
    /// A link-local address that the operator chose.
    pub chosen_link_local: Option<Ip6InterfaceAddress>,
    /// Those of `ip6` that a DHCPv6 server leased, or that are made of prefixes that one delegated.
    pub leased6: Vec<Leased6>,
    /// A DHCPv6 client of the router is on it: it speaks IPv6.
    pub has_client6: bool,
    /// Speaks IPv6 though it has no address of its own choice.
    pub enabled6: bool,
    /// The link-local address that it should have.
    pub link_local: Option<Ip6InterfaceAddress>,
    /// Is ARP for others answered on it?
    pub proxy_arp: bool,
    /// Are solicitations for all that routes lead to elsewhere answered on it?
    pub nd_mirror: bool,
    /// IPv6 addresses of hosts behind it, which the router advertises on the other interfaces of
    /// its table.
    pub nd_proxies: BTreeSet<Ipv6Addr>,
    /// Addresses of it that are not used, and not in the FIB: others are asked for them first, or
    /// have them.
    pub withheld: Vec<IpAddr>,
    /// Addresses that others are being asked for.
    pub tentative: Vec<IpAddr>,
    /// The interface whose addresses it uses, having none of its own.
    pub unnumbered: Option<InterfaceId>,
    /// Does that one speak IPv6?
    pub lent6: bool,
    /// What routers advertise for it, as far as it is used, while it takes that.
    pub autoconfig: Option<AutoSettings>,
}

impl InterfaceIp {
    /// Does the interface speak IPv6?
    pub fn speaks_ip6(&self) -> bool {
        !self.ip6.is_empty()
            || self.chosen_link_local.is_some()
            || self.enabled6
            || self.has_client6
            || self.lent6
            || self.autoconfig.is_some()
    }

    /// Has it addresses that the operator gave it?
    pub fn has_own(&self) -> bool {
        !self.ip4.is_empty() || !self.ip6.is_empty() || self.chosen_link_local.is_some()
    }

    /// Its own addresses as workers see them.
    pub fn addresses(&self) -> Addresses {
        let used = |address: IpAddr| !self.withheld.contains(&address);
        let ip6 = self.ip6.iter().copied().chain(self.auto_interface_addresses());
        let auto = self.auto_addresses().filter(|auto| auto.deprecated).map(|auto| auto.address);
        let leased = self.leased6.iter().filter(|leased| leased.deprecated);
        let leased = leased.map(|leased| leased.own.address());
        Addresses {
            ip4: self.ip4.iter().copied().filter(|own| used(own.address().into())).collect(),
            ip6: ip6.filter(|own| used(own.address().into())).collect(),
            link_local: self.link_local.map(|own| own.address()).filter(|own| used((*own).into())),
            deprecated: auto.chain(leased).collect(),
            hop_limit: self.autoconfig.as_ref().and_then(|settings| settings.hop_limit),
            tentative: self.tentative.clone(),
            nd_mirror: self.nd_mirror,
            ..Addresses::default()
        }
    }
}

/// The state of IP on the control thread; the [`Fib`] stands beside it in the engine.
pub struct IpState {
    pub(crate) tables: IpTables,
    pub(crate) pings: Arc<WaitingPings>,
    pub(crate) mailboxes: Mailboxes,
    pub(crate) interfaces: BTreeMap<InterfaceId, InterfaceIp>,
    /// How often addresses of any of them were changed.
    pub(crate) address_changes: u64,
    /// What workers see of them.
    pub(crate) shown: PublishedAddresses,
    /// Neighbours that were asked for.
    pub(crate) asked: PendingResolutions,
    /// What was given since a replacement began.
    pub(crate) replacing: Replacing,
    /// What becomes of packets for the host.
    pub(crate) punts: Punts,
    /// How many ICMP errors workers may send.
    pub(crate) icmp_limits: Arc<IcmpLimits>,
    /// How long packets of our own may be.
    pub(crate) path_mtus: PathMtus,
    /// Hosts that solicitations are answered for, by IPv6 table (a small number), in order.
    nd_proxies: BTreeMap<u32, Arc<[Ipv6Addr]>>,
    /// Whom ARP is answered for.
    pub(crate) arp_proxies: ArpProxies,
    /// How sure it is that our addresses are ours.
    pub(crate) ownerships: Ownerships,
    /// How many packets wait for neighbours that were asked for.
    pub(crate) held: Arc<HeldCounts>,
    /// Neighbours that there was no room for, of IPv4 and IPv6.
    pub(crate) not_learned: [u64; 2],
}

impl IpState {
    pub(crate) fn new(
        tables: IpTables,
        pings: Arc<WaitingPings>,
        icmp_limits: Arc<IcmpLimits>,
        held: Arc<HeldCounts>,
        punts: Punts,
    ) -> IpState {
        IpState {
            tables,
            pings,
            mailboxes: Mailboxes::default(),
            interfaces: BTreeMap::new(),
            address_changes: 0,
            shown: PublishedAddresses::default(),
            asked: PendingResolutions::default(),
            replacing: Replacing::default(),
            punts,
            icmp_limits,
            path_mtus: PathMtus::default(),
            nd_proxies: BTreeMap::new(),
            arp_proxies: ArpProxies::default(),
            ownerships: Ownerships::default(),
            held,
            not_learned: [0; 2],
        }
    }

    /// How long packets of the router's own may be that are looked up in this table (a small
    /// number) and go to `address`, in bytes, when routers on the way have told.
    pub fn path_mtu(&self, table: u32, address: IpAddr) -> Option<u16> {
        self.path_mtus.get((table, address))
    }

    /// What workers read, for features that look up too.
    pub fn tables(&self) -> &IpTables {
        &self.tables
    }

    /// What is configured on an interface, to be changed perhaps: the next `publish` looks at it.
    pub(crate) fn interface(&mut self, id: InterfaceId) -> &mut InterfaceIp {
        self.shown.touch(id);
        self.interfaces.entry(id).or_default()
    }

    /// Has the operator given an interface this address, with this length?
    pub(crate) fn has(&self, id: InterfaceId, prefix: quiver_control::IpPrefix) -> bool {
        let Some(own) = self.interfaces.get(&id) else { return false };
        let is = |address: IpAddr, length: u8| (address, length) == (prefix.address, prefix.length);
        own.ip4.iter().any(|own| is(own.address().into(), own.length()))
            || own
                .ip6
                .iter()
                .chain(&own.chosen_link_local)
                .any(|own| is(own.address().into(), own.length()))
    }

    /// The addresses of an interface as workers see them: its own, or those that it borrows.
    pub(crate) fn addresses(&self, id: InterfaceId) -> Addresses {
        let Some(interface) = self.interfaces.get(&id) else { return Addresses::default() };
        let mut own = self.own_or_borrowed(interface);
        if own.ip6.is_empty() && own.link_local.is_some() {
            // An address to speak to the world with, where this interface has none.
            own.elsewhere6 = self.shown.chosen6(interface.table6);
        }
        own
    }

    /// The addresses of an interface without those of others of its table.
    pub(crate) fn own_or_borrowed(&self, interface: &InterfaceIp) -> Addresses {
        let own = interface.addresses();
        let Some(lender) = interface.unnumbered.and_then(|lender| self.interfaces.get(&lender))
        else {
            return own;
        };
        let lent = lender.addresses();
        Addresses {
            ip4: lent.ip4,
            ip6: lent.ip6,
            deprecated: lent.deprecated,
            borrowed: true,
            ..own
        }
    }

    /// Who answers ARP for others has other ranges: the next `publish` looks at them.
    pub(crate) fn touch_arp_proxies(&mut self) {
        let answering = self.interfaces.iter().filter(|(_, interface)| interface.proxy_arp);
        answering.for_each(|(id, _)| self.shown.touch(*id));
    }

    /// Hosts that solicitations are answered for on the interfaces of an IPv6 table (a small
    /// number).
    pub(crate) fn nd_proxies(&self, table: u32) -> Arc<[Ipv6Addr]> {
        self.nd_proxies.get(&table).cloned().unwrap_or_default()
    }

    /// Interfaces of an IPv6 table have other hosts behind them that are answered for: the next
    /// `publish` looks at all of the table.
    pub(crate) fn touch_nd_proxies(&mut self, table: u32) {
        let here = || self.interfaces.iter().filter(|(_, interface)| interface.table6 == table);
        let proxied: BTreeSet<Ipv6Addr> =
            here().flat_map(|(_, interface)| interface.nd_proxies.iter().copied()).collect();
        let near: Vec<InterfaceId> = here().map(|(id, _)| *id).collect();
        near.into_iter().for_each(|id| self.shown.touch(id));
        match proxied.is_empty() {
            true => self.nd_proxies.remove(&table),
            false => self.nd_proxies.insert(table, proxied.into_iter().collect()),
        };
    }

    /// The interface is gone.
    pub(crate) fn forget(&mut self, id: InterfaceId) {
        self.tables.messages.clear(id);
        let old = self.interfaces.remove(&id);
        self.shown.touch(id);
        if let Some(old) = old.filter(|old| !old.nd_proxies.is_empty()) {
            self.touch_nd_proxies(old.table6);
        }
        self.asked.forget_interface(id);
        self.ownerships.forget_interface(id);
        self.tables.interfaces.set_tables(id, NOT_ENABLED, NOT_ENABLED, NOT_ENABLED);
    }
}

/// Work with the state, the FIB and the engine at once.
pub(crate) fn with_ip<R>(
    engine: &mut Engine,
    work: impl FnOnce(&mut Engine, &mut IpState, &mut Fib) -> R,
) -> R {
    engine
        .with(|engine, ip: &mut IpState| engine.with(|engine, fib: &mut Fib| work(engine, ip, fib)))
}
