//! The key `stateful` of a profile: one transaction, who has how many of them, and how fast.

use std::fmt;
use std::net::IpAddr;

use quiver_wire::MacAddress;
use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

use super::hosts::{HOSTS_MAX, Hosts};
use super::table::ENTRIES_MAX;

/// The longest segment's or datagram's data, bytes: it fits a buffer with its headers.
pub const SEGMENT_BYTES_MAX: usize = 1940;
/// Bytes of a transaction in one direction.
pub const BYTES_MAX: u32 = 1 << 30;
/// Packets of a UDP transaction in one direction.
pub const PACKETS_MAX: u16 = 4096;
/// The longest times, seconds.
pub const SECONDS_MAX: f64 = 3600.0;
/// Entries of a table unless the profile says otherwise.
const CONCURRENT_DEFAULT: usize = 1 << 20;
/// Servers that are asked for one by one, where there is no gateway.
pub const ON_LINK_MAX: u32 = 4096;

/// The transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Requests and responses in packets.
    Udp,
    /// Handshake, bytes, close.
    Tcp,
}

/// In which order sessions have their turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// One after the other.
    #[default]
    Sequential,
    /// In an order that `seed` decides, each once a round.
    Random,
}

/// Which side of a TCP connection closes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Closer {
    /// The client, when it has all.
    Client,
    /// The server, when it has sent all.
    Server,
}

/// How far a transaction must have come to be successful.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Success {
    /// The handshake is done; of UDP, one response has come.
    Connected,
    /// All of it: everything sent, answered and closed.
    #[default]
    Complete,
}

/// To whom frames go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gateway {
    /// Asked for by ARP or neighbour discovery.
    Ip(IpAddr),
    /// Known.
    Mac(MacAddress),
}

/// The port that a server listens on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerPort {
    /// The one that the client sends from.
    Same,
    /// One for all.
    One(u16),
}

/// The clients.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clients {
    /// The generator's port that they are behind.
    pub on: usize,
    /// The first address.
    pub first: IpAddr,
    /// Addresses.
    #[serde(default = "one")]
    pub count: u32,
    /// Source ports of each address.
    #[serde(default = "ports_per_host")]
    pub ports_per_host: u16,
    /// The first of them.
    #[serde(default = "first_port")]
    pub first_port: u16,
    /// To whom they send; left out: to each server itself.
    #[serde(default)]
    pub gateway: Option<Gateway>,
}

/// The servers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Servers {
    /// The generator's port that they are behind; left out: they are real ones.
    #[serde(default)]
    pub on: Option<usize>,
    /// The first address.
    pub first: IpAddr,
    /// Addresses.
    #[serde(default = "one")]
    pub count: u32,
    /// Where they listen.
    #[serde(default)]
    pub port: ServerPort,
    /// To whom they send; left out: to the layer 2 address that the client's packet came from.
    #[serde(default)]
    pub gateway: Option<Gateway>,
}

/// What `stateful` says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stateful {
    /// The transport.
    pub kind: Kind,
    /// UDP: packets from the client.
    #[serde(default)]
    pub requests: Option<u16>,
    /// UDP: packets from the server, when it has all requests.
    #[serde(default)]
    pub responses: Option<u16>,
    /// UDP: bytes of a frame without FCS.
    #[serde(default)]
    pub frame: Option<usize>,
    /// TCP: bytes from the client.
    #[serde(default)]
    pub request_bytes: Option<u32>,
    /// TCP: bytes from the server, when it has the request.
    #[serde(default)]
    pub response_bytes: Option<u32>,
    /// TCP: bytes of data in a segment at most.
    #[serde(default)]
    pub segment: Option<usize>,
    /// TCP: who closes first; left out: the client if there are no bytes, the server if there are.
    #[serde(default)]
    pub close: Option<Closer>,
    /// TCP: how long the end that closes first remembers the connection.
    #[serde(default = "time_wait_s")]
    pub time_wait_s: f64,
    /// The clients; left out: real ones.
    #[serde(default)]
    pub clients: Option<Clients>,
    /// The servers.
    pub servers: Servers,
    /// The order of the sessions.
    #[serde(default)]
    pub order: Order,
    /// Decides a random order.
    #[serde(default)]
    pub seed: u64,
    /// Transactions a second; left out: as `--rate` says.
    #[serde(default)]
    pub rate_cps: Option<f64>,
    /// How long the rate takes to grow to its value.
    #[serde(default)]
    pub ramp_up_s: f64,
    /// Transactions in all; left out: as many as come due in the time.
    #[serde(default)]
    pub limit: Option<u64>,
    /// What is successful.
    #[serde(default)]
    pub success: Success,
    /// How long a transaction rests: a TCP client between handshake and request, a UDP server between
    /// requests and responses.
    #[serde(default)]
    pub hold_s: f64,
    /// After this long, without the rest, a transaction has failed.
    #[serde(default = "timeout_s")]
    pub timeout_s: f64,
    /// Transactions that can be open at a time on each side.
    #[serde(default)]
    pub concurrent: Option<usize>,
    /// Look at every byte that arrives; false: the other side sends other data than this generator.
    #[serde(default = "yes")]
    pub verify: bool,
}

fn one() -> u32 {
    1
}

fn ports_per_host() -> u16 {
    63
}

fn first_port() -> u16 {
    1024
}

fn timeout_s() -> f64 {
    10.0
}

fn time_wait_s() -> f64 {
    0.1
}

fn yes() -> bool {
    true
}

impl Default for ServerPort {
    fn default() -> Self {
        ServerPort::One(80)
    }
}

impl Clients {
    /// Their addresses.
    pub fn hosts(&self) -> Option<Hosts> {
        Hosts::new(self.first, self.count)
    }
}

impl Servers {
    /// Their addresses.
    pub fn hosts(&self) -> Option<Hosts> {
        Hosts::new(self.first, self.count)
    }
}

impl Stateful {
    /// Check what a port alone does not say; what is wrong, and what would be right.
    pub fn check(&self, ports: usize) -> Result<(), String> {
        self.check_hosts(ports)?;
        self.check_transaction()?;
        let seconds =
            [("ramp_up_s", self.ramp_up_s), ("hold_s", self.hold_s), ("time_wait_s", self.time_wait_s)];
        for (key, value) in seconds {
            if !(0.0..=SECONDS_MAX).contains(&value) {
                return Err(format!("{key} {value} is outside 0..={SECONDS_MAX}"));
            }
        }
        if !(self.timeout_s > 0.0 && self.timeout_s <= SECONDS_MAX) {
            return Err(format!("timeout_s {} is not above 0 and at most {SECONDS_MAX}", self.timeout_s));
        }
        if self.rate_cps.is_some_and(|rate| !(rate > 0.0 && rate <= 1e9)) {
            return Err("rate_cps is not above 0 and at most 1e9; leave it out to go as fast as --rate says"
                .to_owned());
        }
        if self.limit == Some(0) {
            return Err(
                "limit 0 begins no transaction; leave it out to go on until the time is over".to_owned()
            );
        }
        if self.concurrent.is_some_and(|n| !(1..=ENTRIES_MAX).contains(&n)) {
            return Err(format!("concurrent is outside 1..={ENTRIES_MAX}"));
        }
        Ok(())
    }

    fn check_hosts(&self, ports: usize) -> Result<(), String> {
        let last = ports.saturating_sub(1);
        let on = [("clients", self.clients.as_ref().map(|c| c.on)), ("servers", self.servers.on)];
        for (key, port) in on {
            if port.is_some_and(|port| port >= ports) {
                return Err(format!("{key}: on names a port that is not there; there are ports 0 to {last}"));
            }
        }
        let range =
            |key: &str| format!("{key}: count is outside 1..={HOSTS_MAX}, or leaves the addresses' family");
        let servers = self.servers.hosts().ok_or_else(|| range("servers"))?;
        let Some(clients) = &self.clients else {
            let played = self.servers.on.is_some();
            return if played {
                Ok(())
            } else {
                Err("neither clients nor servers are on a port: nobody to play".into())
            };
        };
        let hosts = clients.hosts().ok_or_else(|| range("clients"))?;
        if hosts.is_ip6() != servers.is_ip6() {
            return Err(
                "clients and servers are of different families; give both IPv4 or both IPv6 addresses".into(),
            );
        }
        if hosts.overlaps(&servers) {
            return Err("clients and servers share addresses; give each its own".into());
        }
        if self.servers.on == Some(clients.on) {
            return Err("clients and servers are on the same port; give each its own".into());
        }
        let last_port = u32::from(clients.first_port) + u32::from(clients.ports_per_host);
        if clients.ports_per_host == 0 || clients.first_port == 0 || last_port > 65_536 {
            return Err("ports_per_host: the ports from first_port on are outside 1..=65535".into());
        }
        if u64::from(clients.count) * u64::from(clients.ports_per_host) > u64::from(u32::MAX) {
            return Err(format!("clients: hosts times ports are more than {} sessions", u32::MAX));
        }
        for (key, gateway) in [("clients", clients.gateway), ("servers", self.servers.gateway)] {
            if matches!(gateway, Some(Gateway::Ip(ip)) if ip.is_ipv6() != hosts.is_ip6()) {
                return Err(format!("{key}: gateway is of another family than the addresses"));
            }
        }
        if clients.gateway.is_none() && self.servers.count > ON_LINK_MAX {
            return Err(format!(
                "clients: without a gateway there are at most {ON_LINK_MAX} servers; name a gateway"
            ));
        }
        Ok(())
    }

    fn check_transaction(&self) -> Result<(), String> {
        let misfit = |key: &str, kind: &str| Err(format!("{key} is for kind: {kind}; leave it out"));
        match self.kind {
            Kind::Udp => {
                let tcp = [
                    ("request_bytes", self.request_bytes.is_some()),
                    ("response_bytes", self.response_bytes.is_some()),
                    ("segment", self.segment.is_some()),
                    ("close", self.close.is_some()),
                ];
                if let Some((key, _)) = tcp.iter().find(|(_, given)| *given) {
                    return misfit(key, "tcp");
                }
                for (key, packets) in [("requests", self.requests()), ("responses", self.responses())] {
                    if !(1..=PACKETS_MAX).contains(&packets) {
                        return Err(format!("{key} {packets} is outside 1..={PACKETS_MAX}"));
                    }
                }
                let (least, most) =
                    (self.header_bytes() + super::udp::LABEL_BYTES, self.header_bytes() + SEGMENT_BYTES_MAX);
                if !(least..=most).contains(&self.frame_bytes()) {
                    return Err(format!("frame {} is outside {least}..={most}", self.frame_bytes()));
                }
            }
            Kind::Tcp => {
                let udp = [
                    ("requests", self.requests.is_some()),
                    ("responses", self.responses.is_some()),
                    ("frame", self.frame.is_some()),
                ];
                if let Some((key, _)) = udp.iter().find(|(_, given)| *given) {
                    return misfit(key, "udp");
                }
                for (key, bytes) in
                    [("request_bytes", self.request_bytes), ("response_bytes", self.response_bytes)]
                {
                    if bytes.is_some_and(|bytes| bytes > BYTES_MAX) {
                        return Err(format!("{key} is above {BYTES_MAX}"));
                    }
                }
                if !(64..=SEGMENT_BYTES_MAX).contains(&self.segment_bytes()) {
                    return Err(format!(
                        "segment {} is outside 64..={SEGMENT_BYTES_MAX}",
                        self.segment_bytes()
                    ));
                }
            }
        }
        Ok(())
    }

    fn is_ip6(&self) -> bool {
        self.servers.first.is_ipv6()
    }

    /// Bytes of Ethernet, IP and UDP headers.
    fn header_bytes(&self) -> usize {
        if self.is_ip6() { 62 } else { 42 }
    }

    /// UDP packets from the client.
    pub fn requests(&self) -> u16 {
        self.requests.unwrap_or(1)
    }

    /// UDP packets from the server.
    pub fn responses(&self) -> u16 {
        self.responses.unwrap_or(1)
    }

    /// Bytes of a UDP frame.
    pub fn frame_bytes(&self) -> usize {
        self.frame.unwrap_or(if self.is_ip6() { 78 } else { 64 })
    }

    /// Bytes of data in a UDP packet.
    pub fn datagram_bytes(&self) -> usize {
        self.frame_bytes().saturating_sub(self.header_bytes())
    }

    /// Bytes of data in a TCP segment at most: what fits an MTU of 1500.
    pub fn segment_bytes(&self) -> usize {
        self.segment.unwrap_or(if self.is_ip6() { 1440 } else { 1460 })
    }

    /// The longest frame.
    pub fn frame_bytes_max(&self) -> usize {
        match self.kind {
            Kind::Udp => self.frame_bytes(),
            Kind::Tcp => self.header_bytes() + 12 + self.segment_bytes(),
        }
    }

    /// Who closes first.
    pub fn closer(&self) -> Closer {
        let has_bytes = self.request_bytes.unwrap_or(0) > 0 || self.response_bytes.unwrap_or(0) > 0;
        self.close.unwrap_or(if has_bytes { Closer::Server } else { Closer::Client })
    }

    /// Entries of the clients' table.
    pub fn concurrent(&self) -> usize {
        let sessions = self.clients.as_ref().map_or(CONCURRENT_DEFAULT, |clients| {
            clients.count as usize * usize::from(clients.ports_per_host)
        });
        self.concurrent.unwrap_or(sessions.min(CONCURRENT_DEFAULT))
    }
}

impl<'de> Deserialize<'de> for Gateway {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let mac = || text.parse().map(Gateway::Mac).ok();
        text.parse()
            .map(Gateway::Ip)
            .ok()
            .or_else(mac)
            .ok_or_else(|| D::Error::custom(format!("`{text}` is neither an IP nor a MAC address")))
    }
}

impl<'de> Deserialize<'de> for ServerPort {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PortVisitor;
        impl Visitor<'_> for PortVisitor {
            type Value = ServerPort;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a port from 1 to 65535, or `same` for the client's")
            }
            fn visit_u64<E: Error>(self, port: u64) -> Result<ServerPort, E> {
                u16::try_from(port)
                    .ok()
                    .filter(|port| *port > 0)
                    .map(ServerPort::One)
                    .ok_or_else(|| E::custom(format!("{port} is not a port from 1 to 65535")))
            }
            fn visit_i64<E: Error>(self, port: i64) -> Result<ServerPort, E> {
                self.visit_u64(u64::try_from(port).unwrap_or(0))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<ServerPort, E> {
                if text == "same" {
                    return Ok(ServerPort::Same);
                }
                let port =
                    text.parse().map_err(|_| E::custom(format!("`{text}` is neither a port nor `same`")))?;
                self.visit_u64(port)
            }
        }
        deserializer.deserialize_any(PortVisitor)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::stateful) fn stateful(text: &str) -> Stateful {
        let stateful: Stateful = serde_saphyr::from_str(text).expect("YAML");
        stateful.check(2).expect("checked");
        stateful
    }

    fn refused(change: &str) -> String {
        let text =
            format!("{{clients: {{on: 0, first: 10.0.0.0}}, servers: {{on: 1, first: 20.0.0.0}}, {change}}}");
        let parsed: Result<Stateful, _> = serde_saphyr::from_str(&text);
        parsed.map_err(|error| error.to_string()).and_then(|s| s.check(2)).expect_err("must be refused")
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_would_be_right() {
        assert!(refused("kind: tcp, requests: 3").contains("kind: udp"));
        assert!(refused("kind: udp, request_bytes: 3").contains("kind: tcp"));
        assert!(refused("kind: udp, responses: 0").contains("outside 1..=4096"));
        assert!(refused("kind: udp, frame: 40").contains("outside 50..="));
        assert!(refused("kind: tcp, segment: 9000").contains("outside 64..="));
        assert!(refused("kind: tcp, hold_s: -1").contains("hold_s"));
        assert!(refused("kind: tcp, rate_cps: 0").contains("above 0"));
        assert!(refused("kind: tcp, limit: 0").contains("limit 0"));
        assert!(refused("kind: tcp, concurrent: 0").contains("concurrent"));
        assert!(refused("kind: sctp").contains("sctp"));
        assert!(refused("kind: tcp, speed: 1").contains("speed"));
    }

    #[test]
    fn hosts_that_cannot_be_are_refused() {
        let refused = |text: &str| {
            let parsed: Result<Stateful, _> = serde_saphyr::from_str(text);
            parsed.map_err(|error| error.to_string()).and_then(|s| s.check(2)).expect_err("must be refused")
        };
        let servers = "servers: {on: 1, first: 20.0.0.0";
        assert!(
            refused(&format!("{{kind: tcp, clients: {{on: 7, first: 10.0.0.0}}, {servers}}}}}"))
                .contains("0 to 1")
        );
        assert!(
            refused(&format!("{{kind: tcp, clients: {{on: 1, first: 10.0.0.0}}, {servers}}}}}"))
                .contains("same port")
        );
        assert!(
            refused(&format!("{{kind: tcp, clients: {{on: 0, first: 20.0.0.0}}, {servers}}}}}"))
                .contains("share")
        );
        assert!(
            refused(&format!("{{kind: tcp, clients: {{on: 0, first: \"::1\"}}, {servers}}}}}"))
                .contains("families")
        );
        assert!(refused("{kind: tcp, servers: {first: 20.0.0.0}}").contains("nobody"));
        assert!(refused(&format!("{{kind: tcp, {servers}, port: 0}}}}")).contains("1 to 65535"));
        assert!(refused(&format!("{{kind: tcp, {servers}, port: any}}}}")).contains("same"));
        assert!(refused(&format!("{{kind: tcp, {servers}, gateway: here}}}}")).contains("MAC"));
        let many = "{kind: tcp, clients: {on: 0, first: 10.0.0.0}, servers: {first: 20.0.0.0, count: 5000}}";
        assert!(refused(many).contains("gateway"));
    }
}
