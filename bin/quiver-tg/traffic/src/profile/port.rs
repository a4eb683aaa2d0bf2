//! The ports of a generator: which devices they are, and who they play.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use quiver_wire::MacAddress;
use schemars::JsonSchema;
use serde::Deserialize;

use super::addresses::Addresses;
use super::quantity::{line_rate, mac};
use super::schema_types::{MacText, Quantity};
use super::tags::Tags;
use crate::profile::faults::Faults;

/// One port: exactly one kind, and the addresses that it plays.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Port {
    /// An end of a memif.
    #[serde(default)]
    pub memif: Option<Memif>,
    /// A Linux interface through a packet socket.
    #[serde(default)]
    pub af_packet: Option<AfPacket>,
    /// A Linux interface through an AF_XDP socket.
    #[serde(default)]
    pub af_xdp: Option<AfXdp>,
    /// A tap device.
    #[serde(default)]
    pub tap: Option<Tap>,
    /// The layer 2 address that it answers with; otherwise that of its first stream.
    #[serde(default, deserialize_with = "mac::optional")]
    #[schemars(with = "Option<MacText>")]
    pub mac: Option<MacAddress>,
    /// IPv4 addresses that it answers ARP and echo requests for.
    #[serde(default)]
    pub ip4: Addresses<Ipv4Addr>,
    /// IPv6 addresses that it answers neighbour solicitations and echo requests for.
    #[serde(default)]
    pub ip6: Addresses<Ipv6Addr>,
    /// Tags of what it says, and of its streams' frames unless their headers say others.
    #[serde(default)]
    pub vlan: Tags,
    /// Where its streams' frames go on layer 2 when they do not say.
    #[serde(default, deserialize_with = "mac::optional")]
    #[schemars(with = "Option<MacText>")]
    pub gateway_mac: Option<MacAddress>,
    /// The next hop whose MAC address is resolved (ARP, neighbour discovery) when streams give
    /// none.
    #[serde(default)]
    pub gateway: Option<IpAddr>,
    /// Line rate of the port, bits a second; rates in per cent are of this.
    #[serde(default, deserialize_with = "line_rate")]
    #[schemars(with = "Option<Quantity>")]
    pub line_rate: Option<f64>,
    /// Faults of the generator's frames that it receives.
    #[serde(default)]
    pub faults: Option<Faults>,
}

impl Port {
    /// Check the kind and the ranges of a port.
    ///
    /// # Errors
    /// When it has not exactly one kind, or a value is outside its range; the message says what
    /// would be right.
    pub fn check(&self) -> Result<(), String> {
        let kinds = [
            self.memif.is_some(),
            self.af_packet.is_some(),
            self.af_xdp.is_some(),
            self.tap.is_some(),
        ];
        if kinds.iter().filter(|k| **k).count() != 1 {
            return Err("a port is exactly one of memif, af_packet, af_xdp and tap".to_owned());
        }
        if let Some(memif) = &self.memif {
            if !memif.ring_size.is_power_of_two() || !(32..=16_384).contains(&memif.ring_size) {
                return Err(format!(
                    "ring_size {} is not a power of two from 32 to 16384",
                    memif.ring_size
                ));
            }
            if !(256..=65_535).contains(&memif.buffer_size) {
                return Err(format!("buffer_size {} is outside 256..=65535", memif.buffer_size));
            }
            if !(1..=16).contains(&memif.queues) {
                return Err(format!("queues {} is outside 1..=16", memif.queues));
            }
        }
        if let Some(xdp) = &self.af_xdp
            && (!xdp.ring_size.is_power_of_two() || !(64..=32_768).contains(&xdp.ring_size))
        {
            return Err(format!(
                "ring_size {} is not a power of two from 64 to 32768",
                xdp.ring_size
            ));
        }
        self.faults.as_ref().map_or(Ok(()), Faults::check)
    }

    /// The address that it answers with when neither it nor its streams say one.
    pub fn mac_made_up(number: usize) -> MacAddress {
        MacAddress([2, 0, 0, 0, 0, number as u8])
    }
}

/// Which end of a memif.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MemifRole {
    /// Listens, owns nothing.
    Master,
    /// Connects, owns the memory.
    Slave,
}

/// One end of a memif.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Memif {
    /// The Unix socket.
    pub socket: PathBuf,
    /// Which interface behind the socket.
    #[serde(default)]
    pub id: u32,
    /// Which end.
    #[serde(default = "default_role")]
    pub role: MemifRole,
    /// Descriptors in a ring, a power of two.
    #[serde(default = "default_ring_size")]
    pub ring_size: u32,
    /// Bytes of a buffer.
    #[serde(default = "default_buffer_size")]
    pub buffer_size: u32,
    /// Rings in each direction. The one worker serves one.
    #[serde(default = "default_queues")]
    pub queues: u32,
}

fn default_role() -> MemifRole {
    MemifRole::Slave
}

fn default_ring_size() -> u32 {
    1024
}

fn default_buffer_size() -> u32 {
    2048
}

fn default_queues() -> u32 {
    1
}

/// A Linux interface through a packet socket.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AfPacket {
    /// Its name.
    pub interface: String,
}

/// How frames leave through an AF_XDP port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum XdpTransmit {
    /// By the socket: to any device.
    #[default]
    Socket,
    /// By the kernel's live frames: faster, into a veth whose other end has an XDP program or GRO.
    Live,
}

/// A Linux interface through an AF_XDP socket.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AfXdp {
    /// Its name.
    pub interface: String,
    /// Frames in a ring, a power of two.
    #[serde(default = "default_xdp_ring_size")]
    pub ring_size: u32,
    /// How frames leave.
    #[serde(default)]
    pub transmit: XdpTransmit,
}

fn default_xdp_ring_size() -> u32 {
    4096
}

/// A tap device.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tap {
    /// Its name.
    pub name: String,
}
