//! Resolution of a port's gateway by ARP or neighbour discovery, with refreshes.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quiver_wire::MacAddress;

/// Interval of solicitations until the gateway answers (RFC 4861 §10 says a second; links of tests
/// are fast).
const SOLICIT_EVERY_NS: u64 = 250_000_000;
/// Interval of solicitations once its MAC address is known.
const REFRESH_EVERY_NS: u64 = 30_000_000_000;

/// The MAC address of a gateway by its last reply; the worker writes it, the control thread reads
/// it.
#[derive(Debug, Default)]
pub struct GatewayMac(AtomicU64);

/// Set above the 48 bits of an address: there is one.
const IS_THERE: u64 = 1 << 63;

impl GatewayMac {
    /// Publish the address of the last reply.
    pub fn set(&self, mac: MacAddress) {
        self.0.store(mac.to_u64() | IS_THERE, Ordering::Relaxed);
    }

    /// The address of the last reply.
    pub fn get(&self) -> Option<MacAddress> {
        let value = self.0.load(Ordering::Relaxed);
        (value & IS_THERE != 0).then(|| MacAddress::from_u64(value & !IS_THERE))
    }
}

/// The control thread's state of a gateway that streams wait for.
#[derive(Clone, Debug)]
pub struct Gateway {
    /// Its IP address.
    pub address: IpAddr,
    solicitation: Vec<u8>,
    gateway_mac: Arc<GatewayMac>,
    /// Streams send to this one.
    used: Option<MacAddress>,
    solicit_at_ns: u64,
    /// Solicitations sent.
    pub solicitations: u64,
}

impl Gateway {
    /// Not known yet.
    pub fn new(address: IpAddr, solicitation: Vec<u8>, gateway_mac: Arc<GatewayMac>) -> Gateway {
        Gateway {
            address,
            solicitation,
            gateway_mac,
            used: None,
            solicit_at_ns: 0,
            solicitations: 0,
        }
    }

    /// It has answered.
    pub fn is_known(&self) -> bool {
        self.used.is_some()
    }

    /// A new address that streams do not use yet, once.
    pub fn take_update(&mut self) -> Option<MacAddress> {
        let mac = self.gateway_mac.get().filter(|mac| self.used != Some(*mac))?;
        self.used = Some(mac);
        Some(mac)
    }

    /// The solicitation, when one is due at `now_ns`.
    pub fn solicitation(&mut self, now_ns: u64) -> Option<&[u8]> {
        if now_ns < self.solicit_at_ns {
            return None;
        }
        let pause_ns = if self.is_known() { REFRESH_EVERY_NS } else { SOLICIT_EVERY_NS };
        self.solicit_at_ns = now_ns + pause_ns;
        self.solicitations += 1;
        Some(&self.solicitation)
    }

    /// The message for a gateway that never answered.
    pub fn no_answer(&self) -> String {
        let protocol = if self.address.is_ipv4() { "ARP" } else { "neighbour discovery" };
        format!(
            "nobody answers for its gateway {} (asked {} times by {protocol}); is it there, on \
             this VLAN, and is \
             the port's own address in its network?",
            self.address, self.solicitations
        )
    }
}
