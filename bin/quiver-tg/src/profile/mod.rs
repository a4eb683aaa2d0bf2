//! The profile: which ports there are, and what is sent from which to which. README.md describes it.

pub mod field;
mod frame;
mod number;

use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use quiver_wire::MacAddress;
use serde::Deserialize;
use serde_saphyr::{Location, Spanned};

pub use field::Field;
pub use frame::{FRAME_BYTES_MAX, FRAME_BYTES_MIN, FrameShare, FrameSizes};
use number::mac;

use crate::stamp::STREAMS_MAX;

/// The version of the format.
pub const PROFILE_VERSION: u32 = 1;
/// Ports of one generator.
pub const PORTS_MAX: usize = 64;
/// Frames in a transmit burst.
pub const BURST_MAX: usize = 256;

/// What is wrong with a profile: where, what, and what would be right.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The file.
    #[error("{path}: {source}")]
    Read {
        /// Which.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// Its text.
    #[error("{path}:{line}: {message}")]
    Text {
        /// Which.
        path: String,
        /// Counted from 1.
        line: u64,
        /// What is wrong.
        message: String,
    },
}

/// The whole file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// [`PROFILE_VERSION`].
    #[serde(default = "default_version")]
    pub version: Spanned<u32>,
    /// Cores of the send and receive thread; empty: the first that the process may use.
    #[serde(default)]
    pub cores: Vec<usize>,
    /// How long to wait for the ports' links.
    #[serde(default = "default_link_timeout_s")]
    pub link_timeout_s: f64,
    /// Frames in a transmit burst at most.
    #[serde(default)]
    pub burst: Option<Spanned<usize>>,
    /// The ports; a port's number is its place.
    pub ports: Vec<Spanned<Port>>,
    /// The streams.
    pub streams: Vec<Spanned<Stream>>,
    /// Where it was read, for messages.
    #[serde(skip)]
    pub path: PathBuf,
}

fn default_version() -> Spanned<u32> {
    Spanned::new(PROFILE_VERSION, Location::UNKNOWN, Location::UNKNOWN)
}

fn default_link_timeout_s() -> f64 {
    10.0
}

/// One port: exactly one kind, and the addresses that it plays.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Port {
    /// An end of a memif.
    #[serde(default)]
    pub memif: Option<Memif>,
    /// A Linux interface through a packet socket.
    #[serde(default)]
    pub af_packet: Option<AfPacket>,
    /// A tap device.
    #[serde(default)]
    pub tap: Option<Tap>,
    /// The layer 2 address that it answers with; otherwise that of its first stream.
    #[serde(default, deserialize_with = "mac::optional")]
    pub mac: Option<MacAddress>,
    /// IPv4 addresses that it answers ARP for.
    #[serde(default)]
    pub ip4: Vec<Ipv4Addr>,
    /// IPv6 addresses that it answers neighbour solicitations for.
    #[serde(default)]
    pub ip6: Vec<Ipv6Addr>,
}

/// Which end of a memif.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemifRole {
    /// Listens, owns nothing.
    Master,
    /// Connects, owns the memory.
    Slave,
}

/// One end of a memif.
#[derive(Clone, Debug, Deserialize)]
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
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AfPacket {
    /// Its name.
    pub interface: String,
}

/// A tap device.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tap {
    /// Its name.
    pub name: String,
}

/// What goes from one port to another.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// The port that sends.
    pub from: usize,
    /// The port where the frames should come back.
    pub to: usize,
    /// Its share of the total rate.
    #[serde(default = "default_weight")]
    pub weight: f64,
    /// Sizes from the destination address to the end of the payload, without FCS.
    pub frame: FrameSizes,
    /// Headers.
    pub layers: Layers,
}

fn default_weight() -> f64 {
    1.0
}

/// Headers from the outside in; without IP it is a plain Ethernet frame of type 0x88b5.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layers {
    /// Layer 2.
    pub ethernet: Ethernet,
    /// IPv4.
    #[serde(default)]
    pub ip4: Option<Ip4>,
    /// IPv6.
    #[serde(default)]
    pub ip6: Option<Ip6>,
    /// UDP in either.
    #[serde(default)]
    pub udp: Option<Udp>,
}

/// Layer 2 addresses.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ethernet {
    /// Source.
    pub src: Field<MacAddress>,
    /// Destination.
    pub dst: Field<MacAddress>,
}

/// An IPv4 header.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ip4 {
    /// Source.
    pub src: Field<Ipv4Addr>,
    /// Destination.
    pub dst: Field<Ipv4Addr>,
    /// Time to live.
    #[serde(default = "default_ttl")]
    pub ttl: u8,
}

/// An IPv6 header.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ip6 {
    /// Source.
    pub src: Field<Ipv6Addr>,
    /// Destination.
    pub dst: Field<Ipv6Addr>,
    /// Hop limit.
    #[serde(default = "default_ttl")]
    pub hop_limit: u8,
}

fn default_ttl() -> u8 {
    64
}

/// A UDP header.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Udp {
    /// Source port.
    #[serde(default = "default_port")]
    pub src_port: Field<u16>,
    /// Destination port.
    #[serde(default = "default_port")]
    pub dst_port: Field<u16>,
}

fn default_port() -> Field<u16> {
    Field::One(1024)
}

impl Profile {
    /// Read and check a file.
    pub fn read(path: &Path) -> Result<Profile, ProfileError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|source| ProfileError::Read { path: name.clone(), source })?;
        Profile::parse(&text, path)
    }

    /// Check a text; `path` is for messages.
    pub fn parse(text: &str, path: &Path) -> Result<Profile, ProfileError> {
        let mut profile: Profile = serde_saphyr::from_str(text).map_err(|error| {
            let line = error.location().map_or(0, |l| l.line());
            let message = error.without_snippet().to_string();
            ProfileError::Text { path: path.display().to_string(), line, message: one_line(&message) }
        })?;
        profile.path = path.to_owned();
        profile.check()?;
        Ok(profile)
    }

    fn wrong<T>(&self, at: &Location, message: impl Into<String>) -> Result<T, ProfileError> {
        let (path, line) = (self.path.display().to_string(), at.line());
        Err(ProfileError::Text { path, line, message: message.into() })
    }

    fn check(&self) -> Result<(), ProfileError> {
        if self.version.value != PROFILE_VERSION {
            let message =
                format!("version {} is not known here; it is {PROFILE_VERSION}", self.version.value);
            return self.wrong(&self.version.referenced, message);
        }
        if self.cores.len() > 1 {
            let message = format!("cores names {} cores; the generator runs on one", self.cores.len());
            return self.wrong(&Location::UNKNOWN, message);
        }
        if !(self.link_timeout_s >= 0.0 && self.link_timeout_s <= 3600.0) {
            let message = format!("link_timeout_s {} is outside 0..=3600", self.link_timeout_s);
            return self.wrong(&Location::UNKNOWN, message);
        }
        if let Some(burst) = &self.burst
            && !(1..=BURST_MAX).contains(&burst.value)
        {
            let message = format!("burst {} is outside 1..={BURST_MAX}", burst.value);
            return self.wrong(&burst.referenced, message);
        }
        if self.ports.is_empty() || self.ports.len() > PORTS_MAX {
            let message = format!("{} ports; there must be 1 to {PORTS_MAX}", self.ports.len());
            return self.wrong(&Location::UNKNOWN, message);
        }
        if self.streams.is_empty() || self.streams.len() > STREAMS_MAX {
            let message = format!("{} streams; there must be 1 to {STREAMS_MAX}", self.streams.len());
            return self.wrong(&Location::UNKNOWN, message);
        }
        self.ports.iter().try_for_each(|port| self.check_port(port))?;
        self.streams.iter().enumerate().try_for_each(|(index, stream)| self.check_stream(index, stream))
    }

    fn check_port(&self, port: &Spanned<Port>) -> Result<(), ProfileError> {
        let at = &port.referenced;
        let port = &port.value;
        let kinds = [port.memif.is_some(), port.af_packet.is_some(), port.tap.is_some()];
        if kinds.iter().filter(|k| **k).count() != 1 {
            return self.wrong(at, "a port is exactly one of memif, af_packet and tap");
        }
        if let Some(memif) = &port.memif {
            if !memif.ring_size.is_power_of_two() || !(32..=16_384).contains(&memif.ring_size) {
                let message = format!("ring_size {} is not a power of two from 32 to 16384", memif.ring_size);
                return self.wrong(at, message);
            }
            if !(256..=65_535).contains(&memif.buffer_size) {
                return self.wrong(at, format!("buffer_size {} is outside 256..=65535", memif.buffer_size));
            }
            if !(1..=16).contains(&memif.queues) {
                return self.wrong(at, format!("queues {} is outside 1..=16", memif.queues));
            }
        }
        Ok(())
    }

    fn check_stream(&self, index: usize, stream: &Spanned<Stream>) -> Result<(), ProfileError> {
        let at = &stream.referenced;
        let stream = &stream.value;
        for (key, port) in [("from", stream.from), ("to", stream.to)] {
            if port >= self.ports.len() {
                let last = self.ports.len() - 1;
                return self.wrong(
                    at,
                    format!("stream {index}: {key} names port {port}; there are ports 0 to {last}"),
                );
            }
        }
        if !(stream.weight > 0.0 && stream.weight.is_finite()) {
            return self.wrong(at, format!("stream {index}: weight {} is not above 0", stream.weight));
        }
        let layers = &stream.layers;
        if layers.ip4.is_some() && layers.ip6.is_some() {
            return self.wrong(at, format!("stream {index}: layers has ip4 and ip6; choose one"));
        }
        if layers.udp.is_some() && layers.ip4.is_none() && layers.ip6.is_none() {
            return self.wrong(at, format!("stream {index}: udp needs ip4 or ip6 below it"));
        }
        let need = layers.frame_bytes_min();
        for share in stream.frame.shares(layers.ip6.is_some()) {
            let size = share.size;
            if size < need || size > FRAME_BYTES_MAX {
                let message = format!(
                    "stream {index}: frame of {size} bytes; with these headers and the stamp it is \
                     {need} to {FRAME_BYTES_MAX}"
                );
                return self.wrong(at, message);
            }
        }
        Ok(())
    }
}

impl Layers {
    /// Bytes of all headers.
    pub fn header_bytes(&self) -> usize {
        14 + 20 * usize::from(self.ip4.is_some())
            + 40 * usize::from(self.ip6.is_some())
            + 8 * usize::from(self.udp.is_some())
    }

    /// The smallest frame that holds them and a stamp.
    pub fn frame_bytes_min(&self) -> usize {
        (self.header_bytes() + crate::stamp::STAMP_BYTES).max(FRAME_BYTES_MIN)
    }
}

fn one_line(message: &str) -> String {
    message.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
