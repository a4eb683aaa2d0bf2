//! A port's gateway: its MAC address is asked for until it answers, and now and then again.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quiver_wire::MacAddress;

/// Between two questions while nobody answers (RFC 4861 §10 says a second; links of tests are
/// fast).
const ASK_EVERY_NS: u64 = 250_000_000;
/// Between two questions when it is known.
const REFRESH_EVERY_NS: u64 = 30_000_000_000;

/// The last MAC address that a gateway told; the worker writes it, the control thread reads it.
#[derive(Debug, Default)]
pub struct Heard(AtomicU64);

/// Set above the 48 bits of an address: there is one.
const IS_THERE: u64 = 1 << 63;

impl Heard {
    /// It is here.
    pub fn set(&self, mac: MacAddress) {
        self.0.store(mac.to_u64() | IS_THERE, Ordering::Relaxed);
    }

    /// Where it is.
    pub fn get(&self) -> Option<MacAddress> {
        let value = self.0.load(Ordering::Relaxed);
        (value & IS_THERE != 0).then(|| MacAddress::from_u64(value & !IS_THERE))
    }
}

/// What the control thread knows of a gateway that streams wait for.
#[derive(Clone, Debug)]
pub struct Gateway {
    /// Who is asked for.
    pub address: IpAddr,
    question: Vec<u8>,
    heard: Arc<Heard>,
    /// Streams send to this one.
    used: Option<MacAddress>,
    ask_at_ns: u64,
    /// Questions that were sent.
    pub asked: u64,
}

impl Gateway {
    /// Not known yet.
    pub fn new(address: IpAddr, question: Vec<u8>, heard: Arc<Heard>) -> Gateway {
        Gateway { address, question, heard, used: None, ask_at_ns: 0, asked: 0 }
    }

    /// Is it known?
    pub fn is_known(&self) -> bool {
        self.used.is_some()
    }

    /// An address that streams do not use yet.
    pub fn news(&mut self) -> Option<MacAddress> {
        let mac = self.heard.get().filter(|mac| self.used != Some(*mac))?;
        self.used = Some(mac);
        Some(mac)
    }

    /// The question, when it is time to ask.
    pub fn question(&mut self, now_ns: u64) -> Option<&[u8]> {
        if now_ns < self.ask_at_ns {
            return None;
        }
        let pause_ns = if self.is_known() { REFRESH_EVERY_NS } else { ASK_EVERY_NS };
        self.ask_at_ns = now_ns + pause_ns;
        self.asked += 1;
        Some(&self.question)
    }

    /// Nobody answers, in words.
    pub fn silence(&self) -> String {
        let way = if self.address.is_ipv4() { "ARP" } else { "neighbour discovery" };
        format!(
            "nobody answers for its gateway {} (asked {} times by {way}); is it there, on this VLAN, and is \
             the port's own address in its network?",
            self.address, self.asked
        )
    }
}
