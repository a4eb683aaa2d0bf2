//! Bridge domains and their ports as the control thread holds them.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use quiver_control::Refusal;
use quiver_core::{InterfaceId, NodeId};
use quiver_tables::mac::{DomainIndex, MacKey, MacWriter};
use quiver_wire::MacAddress;

use crate::events::{EVENTS_KEPT, EventLog};
use crate::learn_requests::LearnRings;
use crate::tables::{Domain, Member, Port, Published, Unknown, View};

/// Largest number of a bridge domain, as wide as a VXLAN identifier.
pub const DOMAIN_NUMBER_MAX: u32 = (1 << 24) - 1;
/// Addresses that a domain answers for at most: each change copies them.
pub const STATIONS_MAX: usize = 4096;

/// What a domain does with frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switches {
    /// Sources are learned.
    pub learn: bool,
    /// Known destinations are sent to.
    pub forward: bool,
    /// Frames to groups are flooded.
    pub flood: bool,
    /// Frames to unknown destinations are flooded.
    pub uu_flood: bool,
    /// Questions for addresses are answered.
    pub arp_term: bool,
    /// ARP frames to all go to the `uu-fwd` port alone, if there is one.
    pub arp_ufwd: bool,
}

impl Default for Switches {
    fn default() -> Switches {
        Switches {
            learn: true,
            forward: true,
            flood: true,
            uu_flood: true,
            arp_term: false,
            arp_ufwd: false,
        }
    }
}

/// A bridge domain.
#[derive(Clone, Debug)]
pub struct BridgeDomain {
    /// Its number inside of the router.
    pub index: DomainIndex,
    /// What it does.
    pub switches: Switches,
    /// Minutes after which it forgets; 0 is never.
    pub mac_age_minutes: u16,
    /// Addresses that it learns at most, when it has a limit of its own.
    pub learn_limit: Option<usize>,
    /// Its own routed interface.
    pub bvi: Option<InterfaceId>,
    /// The port for frames to stations that are not known.
    pub uu_fwd: Option<InterfaceId>,
    /// Who has which address.
    pub stations: Arc<BTreeMap<IpAddr, MacAddress>>,
}

/// What a port is to its domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum PortKind {
    /// A port like any other.
    #[default]
    Normal,
    /// The domain's own routed interface.
    Bvi,
    /// Frames to stations that are not known go there, instead of to all ports.
    UuFwd,
}

impl PortKind {
    /// As commands say it; nothing for an ordinary port.
    pub fn word(self) -> Option<&'static str> {
        match self {
            PortKind::Normal => None,
            PortKind::Bvi => Some("bvi"),
            PortKind::UuFwd => Some("uu-fwd"),
        }
    }
}

/// A port of a domain.
#[derive(Clone, Copy, Debug)]
pub struct BridgePort {
    /// The domain's number.
    pub domain: u32,
    /// Split-horizon group; 0 is none.
    pub group: u8,
    /// The node that sends by it.
    pub output: NodeId,
    /// What it is to its domain.
    pub kind: PortKind,
    /// Its own switches; those of the domain count, too.
    pub learn: bool,
    /// See [`learn`](Self::learn).
    pub forward: bool,
    /// See [`learn`](Self::learn).
    pub flood: bool,
}

impl BridgePort {
    /// Is it the domain's own routed interface?
    pub fn is_bvi(&self) -> bool {
        self.kind == PortKind::Bvi
    }
}

/// All of bridging, on the control thread.
pub struct Bridges {
    /// The MAC table.
    pub macs: MacWriter,
    pub(crate) domains: BTreeMap<u32, BridgeDomain>,
    pub(crate) ports: BTreeMap<InterfaceId, BridgePort>,
    /// Entries of the MAC table that other features have added, with their ports.
    pub(crate) added: HashMap<MacKey, InterfaceId>,
    pub(crate) events: EventLog,
    pub(crate) offices: LearnRings,
    /// Domain numbers by index.
    numbers: Vec<u32>,
    published: Arc<Published>,
    view: View,
    /// The minute when what is too old was last looked for.
    pub(crate) swept_minute: u16,
}

impl Bridges {
    pub(crate) fn new(macs: MacWriter, published: Arc<Published>, offices: LearnRings) -> Bridges {
        Bridges {
            macs,
            domains: BTreeMap::new(),
            ports: BTreeMap::new(),
            added: HashMap::new(),
            events: EventLog::new(EVENTS_KEPT),
            offices,
            numbers: Vec::new(),
            published,
            view: View::default(),
            swept_minute: 0,
        }
    }

    /// All domains by their numbers.
    pub fn domains(&self) -> &BTreeMap<u32, BridgeDomain> {
        &self.domains
    }

    /// All ports.
    pub fn ports(&self) -> &BTreeMap<InterfaceId, BridgePort> {
        &self.ports
    }

    /// The number of a domain.
    pub fn number(&self, index: DomainIndex) -> u32 {
        self.numbers.get(usize::from(index.0)).copied().unwrap_or_default()
    }

    /// A domain, which must exist.
    ///
    /// # Errors
    /// There is no such domain.
    pub fn domain(&self, number: u32) -> Result<&BridgeDomain, Refusal> {
        self.domains.get(&number).ok_or_else(|| no_domain(number))
    }

    pub(crate) fn domain_mut(&mut self, number: u32) -> Result<&mut BridgeDomain, Refusal> {
        self.domains.get_mut(&number).ok_or_else(|| no_domain(number))
    }

    pub(crate) fn open(
        &mut self,
        number: u32,
        switches: Switches,
        mac_age_minutes: u16,
    ) -> Result<(), Refusal> {
        if self.domains.contains_key(&number) {
            let refusal = Refusal::new(format!("bridge domain {number} exists already"));
            return Err(refusal.remedy("`set bridge-domain` changes it"));
        }
        let index = self.macs.open_domain()?;
        let place = usize::from(index.0);
        if self.numbers.len() <= place {
            self.numbers.resize(place + 1, 0);
        }
        self.numbers[place] = number;
        let (learn_limit, bvi, uu_fwd, stations) = (None, None, None, Arc::default());
        let domain =
            BridgeDomain { index, switches, mac_age_minutes, learn_limit, bvi, uu_fwd, stations };
        self.domains.insert(number, domain);
        self.publish(number);
        Ok(())
    }

    pub(crate) fn close(&mut self, number: u32) -> Result<(), Refusal> {
        let index = self.domain(number)?.index;
        let members = self.ports.values().filter(|port| port.domain == number).count();
        if members > 0 {
            let refusal = Refusal::new(format!("bridge domain {number} has {members} interfaces"));
            return Err(refusal.remedy("take them out first: `set interface l3 IF`"));
        }
        self.domains.remove(&number);
        if let Some(place) = self.view.domains.get_mut(usize::from(index.0)) {
            *place = None;
        }
        self.published.publish(self.view.clone());
        self.macs.close_domain(index);
        Ok(())
    }

    /// Let workers see a domain and its ports as they are now.
    pub(crate) fn publish(&mut self, number: u32) {
        let Some(domain) = self.domains.get(&number) else { return };
        let ports = self.ports.iter().filter(|(_, port)| port.domain == number);
        let mut members: Vec<(&InterfaceId, &BridgePort)> = ports.collect();
        // What is for the router itself comes last: the frame is not copied for it when it is the
        // only one.
        members.sort_by_key(|(id, port)| (port.is_bvi(), **id));
        let member = |(id, port): &(&InterfaceId, &BridgePort)| Member {
            interface: **id,
            output: port.output,
            group: port.group,
            is_bvi: port.is_bvi(),
        };
        let (to_one, flooded): (Vec<_>, Vec<_>) =
            members.iter().partition(|(_, port)| port.kind == PortKind::UuFwd);
        let shown = Domain {
            members: flooded.iter().map(member).collect(),
            uu_forward: to_one.first().map(member),
            stations: domain.stations.clone(),
        };
        let has_one = shown.uu_forward.is_some();
        let (place, on) = (usize::from(domain.index.0), domain.switches);
        for (id, port) in members {
            if self.view.ports.len() <= id.index() {
                self.view.ports.resize(id.index() + 1, None);
            }
            self.view.ports[id.index()] = Some(Port {
                domain: domain.index,
                group: port.group,
                learn: on.learn && port.learn,
                forward: on.forward && port.forward,
                flood: on.flood && port.flood,
                unknown: match (has_one, on.uu_flood && port.flood) {
                    (true, _) => Unknown::ToOne,
                    (false, true) => Unknown::Flood,
                    (false, false) => Unknown::Drop,
                },
                answer: on.arp_term,
                arp_to_one: on.arp_ufwd && has_one,
            });
        }
        if self.view.domains.len() <= place {
            self.view.domains.resize(place + 1, None);
        }
        self.view.domains[place] = Some(Arc::new(shown));
        self.published.publish(self.view.clone());
    }

    /// A port is one no more.
    pub(crate) fn publish_without(&mut self, id: InterfaceId, number: u32) {
        if let Some(place) = self.view.ports.get_mut(id.index()) {
            *place = None;
        }
        self.publish(number);
    }
}

#[cold]
fn no_domain(number: u32) -> Refusal {
    Refusal::new(format!("there is no bridge domain {number}")).remedy(format!(
        "`create bridge-domain {number}` makes it, `show bridge-domain` lists what there is"
    ))
}
