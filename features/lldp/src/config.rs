//! LLDP as the control thread holds it: what this router says of itself on which interfaces, and
//! what it has heard there.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use quiver_control::Refusal;
use quiver_core::memory::epoch::Epochs;
use quiver_core::{Engine, InterfaceId};
use quiver_wire::lldp::TEXT_BYTES_MAX;

use crate::neighbours::{Neighbours, Statistics};
use crate::table::Published;
use crate::text::encode_oid;

/// Seconds between LLDPDUs unless told otherwise (§9.2.5.7, msgTxInterval).
pub const TX_INTERVAL_S: u16 = 30;
/// What is said holds for so many intervals unless told otherwise (§9.2.5.6, msgTxHold).
pub const TX_HOLD: u16 = 4;

/// What is said of one interface, beyond its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortWords {
    /// The port in words.
    pub description: Option<String>,
    /// Where the router is managed.
    pub ip4: Option<Ipv4Addr>,
    /// Where the router is managed.
    pub ip6: Option<Ipv6Addr>,
    /// What is managed there: an object identifier, dotted.
    pub oid: Option<String>,
}

/// An interface on which LLDP is spoken.
#[derive(Debug, Default)]
pub struct Port {
    /// What is said of it.
    pub words: PortWords,
    /// Who was heard there.
    pub neighbours: Neighbours,
    /// What was counted there.
    pub statistics: Statistics,
    /// The next LLDPDU is due then.
    pub(crate) due_ns: u64,
    /// So many more are sent a second apart (§9.2.5.18, txFast).
    pub(crate) fast: u8,
    /// When the last one was sent.
    pub(crate) sent_ns: Option<u64>,
}

/// LLDP.
pub struct Lldp {
    /// The system's name, when it is not the host's.
    pub system_name: Option<String>,
    /// What is said holds for so many intervals.
    pub tx_hold: u16,
    /// Seconds between LLDPDUs.
    pub tx_interval_s: u16,
    pub(crate) ports: BTreeMap<InterfaceId, Port>,
    enabled: Arc<Published>,
}

impl Lldp {
    pub(crate) fn new(epochs: &Arc<Epochs>) -> Lldp {
        Lldp {
            system_name: None,
            tx_hold: TX_HOLD,
            tx_interval_s: TX_INTERVAL_S,
            ports: BTreeMap::new(),
            enabled: Arc::new(Published::new(epochs, Vec::new())),
        }
    }

    pub(crate) fn enabled(&self) -> &Arc<Published> {
        &self.enabled
    }

    /// The interfaces on which LLDP is spoken.
    pub fn ports(&self) -> impl Iterator<Item = (InterfaceId, &Port)> {
        self.ports.iter().map(|(id, port)| (*id, port))
    }

    /// An interface on which LLDP is spoken.
    pub(crate) fn port(&self, id: InterfaceId) -> Option<&Port> {
        self.ports.get(&id)
    }

    /// How long what is said holds (§9.2.5.22, txTTL).
    pub fn ttl_s(&self) -> u16 {
        (u32::from(self.tx_interval_s) * u32::from(self.tx_hold) + 1).min(u32::from(u16::MAX))
            as u16
    }

    /// Say everything anew at once.
    pub(crate) fn say_all(&mut self) {
        self.ports.values_mut().for_each(|port| port.due_ns = 0);
    }

    pub(crate) fn publish(&self) {
        let length = self.ports.keys().next_back().map_or(0, |last| last.index() + 1);
        let mut enabled = vec![false; length];
        self.ports.keys().for_each(|id| enabled[id.index()] = true);
        self.enabled.publish(enabled);
    }
}

pub(crate) fn lldp(engine: &mut Engine) -> Result<&mut Lldp, Refusal> {
    engine.get_mut::<Lldp>().ok_or_else(|| Refusal::new("LLDP is being changed"))
}

/// Refuse a text that does not fit in a TLV, or would not be read back from a configuration.
pub(crate) fn check_text(what: &str, text: &str) -> Result<(), Refusal> {
    if text.is_empty() || text.len() > TEXT_BYTES_MAX {
        let length = text.len();
        return Err(Refusal::new(format!(
            "a {what} has 1 to {TEXT_BYTES_MAX} bytes, this one {length}"
        )));
    }
    if text.chars().any(|c| c.is_control() || c == '"') {
        return Err(Refusal::new(format!(
            "a {what} has neither quotation marks nor control characters"
        )));
    }
    Ok(())
}

/// Speak LLDP on an interface, saying this of it.
pub fn enable(engine: &mut Engine, id: InterfaceId, words: PortWords) -> Result<(), Refusal> {
    if let Some(description) = &words.description {
        check_text("port description", description)?;
    }
    if let Some(oid) = &words.oid
        && encode_oid(oid).is_none()
    {
        return Err(
            Refusal::new(format!("{oid} is no object identifier")).remedy("such as 1.3.6.1.2.1.17")
        );
    }
    if words.oid.is_some() && words.ip4.is_none() && words.ip6.is_none() {
        return Err(Refusal::new("an object identifier says what is managed at an address")
            .remedy("give mgmt-ip4 or mgmt-ip6, too"));
    }
    let name = engine.interface_name(id);
    let Some(interface) = engine.interface(id) else {
        return Err(Refusal::new("there is no such interface"));
    };
    let kind = interface.device.kind();
    if matches!(kind, "bond" | "sub-interface" | "loopback") {
        return Err(Refusal::new(format!(
            "{name} is a {kind}: LLDP is spoken on ports, which have a link"
        ))
        .remedy("give the port: the member of the bond, the parent of the sub-interface"));
    }
    let lldp = lldp(engine)?;
    let port = lldp.ports.entry(id).or_default();
    port.words = words;
    port.due_ns = 0;
    lldp.publish();
    Ok(())
}

/// Speak LLDP no more on an interface; neighbours forget it at once, and what they said is
/// forgotten.
pub fn disable(engine: &mut Engine, id: InterfaceId) -> Result<(), Refusal> {
    let name = engine.interface_name(id);
    if !lldp(engine)?.ports.contains_key(&id) {
        return Err(Refusal::new(format!("LLDP is not enabled on {name}")));
    }
    crate::transmit::take_back(engine, id);
    forget(engine, id);
    Ok(())
}

/// Take an interface out of the lists.
pub(crate) fn forget(engine: &mut Engine, id: InterfaceId) {
    if let Some(lldp) = engine.get_mut::<Lldp>()
        && lldp.ports.remove(&id).is_some()
    {
        lldp.publish();
    }
}
