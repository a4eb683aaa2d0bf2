//! The key `stateful` of a profile: one transaction, who has how many of them, and how fast.

mod check;
pub mod hosts;

use std::fmt;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

use self::hosts::Hosts;

/// The longest segment's or datagram's data, bytes: it fits a buffer with its headers.
pub const SEGMENT_BYTES_MAX: usize = 1940;
/// Bytes of a transaction in one direction.
pub const BYTES_MAX: u32 = 1 << 30;
/// Packets of a UDP transaction in one direction.
pub const PACKETS_MAX: u16 = 4096;
/// The longest times, seconds.
pub const SECONDS_MAX: f64 = 3600.0;
/// Entries of one side.
pub const ENTRIES_MAX: usize = 1 << 25;
/// Bytes of a label.
pub const LABEL_BYTES: usize = 8;
/// Entries of a table unless the profile says otherwise.
const CONCURRENT_DEFAULT: usize = 1 << 20;
/// Servers whose MAC addresses are resolved one by one, where there is no gateway.
pub const ON_LINK_MAX: u32 = 4096;

/// The transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Requests and responses in packets.
    Udp,
    /// Handshake, bytes, close.
    Tcp,
}

/// The order in which sessions are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// One after the other.
    #[default]
    Sequential,
    /// In an order that `seed` decides, each once a round.
    Random,
}

/// Which side of a TCP connection closes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClosingSide {
    /// The client, when it has all.
    Client,
    /// The server, when it has sent all.
    Server,
}

/// How far a transaction must have come to be successful.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Success {
    /// The handshake is done; of UDP, one response has come.
    Connected,
    /// All of it: everything sent, answered and closed.
    #[default]
    Complete,
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
#[derive(Clone, Debug, Deserialize, JsonSchema)]
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
}

/// The servers.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
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
}

/// The key `stateful`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
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
    /// UDP: bytes of a frame without tags and FCS.
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
    pub close: Option<ClosingSide>,
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
    /// The condition of success.
    #[serde(default)]
    pub success: Success,
    /// How long a transaction rests: a TCP client between handshake and request, a UDP server
    /// between requests and responses.
    #[serde(default)]
    pub hold_s: f64,
    /// After this long, without the rest, a transaction has failed.
    #[serde(default = "timeout_s")]
    pub timeout_s: f64,
    /// How long the clients' pings may take to come back before transactions begin all the same; 0:
    /// none are sent.
    #[serde(default = "ready_s")]
    pub ready_s: f64,
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

fn ready_s() -> f64 {
    5.0
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
    /// Whether clients and servers have IPv6 addresses.
    pub fn is_ip6(&self) -> bool {
        self.servers.first.is_ipv6()
    }

    /// Bytes of Ethernet, IP and UDP headers.
    pub fn header_bytes(&self) -> usize {
        if self.is_ip6() { 62 } else { 42 }
    }

    /// The whole of it on a line.
    pub fn in_words(&self) -> String {
        let kind = match self.kind {
            Kind::Udp => format!("UDP, {} + {} packets", self.requests(), self.responses()),
            Kind::Tcp => {
                let bytes =
                    [self.request_bytes, self.response_bytes].map(|bytes| bytes.unwrap_or(0));
                format!("TCP, {} + {} bytes", bytes[0], bytes[1])
            }
        };
        let clients = self.clients.as_ref().map_or("real clients".to_owned(), |clients| {
            let (count, ports) = (clients.count, clients.ports_per_host);
            format!("{count} clients on port {} with {ports} ports each", clients.on)
        });
        let servers = match self.servers.on {
            Some(on) => format!("{} servers on port {on}", self.servers.count),
            None => format!("{} real servers", self.servers.count),
        };
        format!("{kind}; {clients}; {servers}")
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

    /// The side that closes first.
    pub fn closing_side(&self) -> ClosingSide {
        let has_bytes = self.request_bytes.unwrap_or(0) > 0 || self.response_bytes.unwrap_or(0) > 0;
        self.close.unwrap_or(if has_bytes { ClosingSide::Server } else { ClosingSide::Client })
    }

    /// Entries of the clients' table.
    pub fn concurrent(&self) -> usize {
        let sessions = self.clients.as_ref().map_or(CONCURRENT_DEFAULT, |clients| {
            clients.count as usize * usize::from(clients.ports_per_host)
        });
        self.concurrent.unwrap_or(sessions.min(CONCURRENT_DEFAULT))
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
                let port = text
                    .parse()
                    .map_err(|_| E::custom(format!("`{text}` is neither a port nor `same`")))?;
                self.visit_u64(port)
            }
        }
        deserializer.deserialize_any(PortVisitor)
    }
}

#[cfg(test)]
pub(super) mod tests {
    pub(super) fn two_ports() -> Vec<serde_saphyr::Spanned<crate::profile::port::Port>> {
        serde_saphyr::from_str("[{tap: {name: a}}, {tap: {name: b}}]").expect("ports")
    }
}
