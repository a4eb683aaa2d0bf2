//! A profile as a document: it is read, checked, and the frames of its streams are laid out.

use std::io;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_saphyr::{Location, Spanned};

use super::capture::{CAPTURES_MAX, CaptureSpec};
use super::header;
use super::layers::{Layer, Layers};
use super::layout::{self, PortAddresses};
use super::port::Port;
use super::stateful::Stateful;
use super::stream::{HEX_PACKETS_MAX, NAME_CHARACTERS_MAX, Stream};
use super::timing::Timing;
use crate::bounded_file;
use crate::stamp::STREAMS_MAX;

/// The version of the format.
pub const PROFILE_VERSION: u32 = 1;
/// Bytes of a profile.
pub const PROFILE_BYTES_MAX: usize = 1 << 26;
/// Ports of one generator.
pub const PORTS_MAX: usize = 64;
/// Frames in a transmit burst at most, paced and flat out. A pass of the worker has a cost of its
/// own, hundreds of microseconds where frames go through the kernel: a smaller burst limits the
/// rate that pacing reaches.
pub const BURST_MAX: usize = 256;

/// An error of a profile: place, mistake, and what would be right.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The file.
    #[error("{path} cannot be read")]
    Read {
        /// Which.
        path: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// Its text.
    #[error("{path}:{line}: {message}")]
    Text {
        /// Which.
        path: String,
        /// Counted from 1.
        line: u64,
        /// The mistake, and what would be right.
        message: String,
    },
}

/// The whole file.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Of the format: [`PROFILE_VERSION`].
    #[serde(default = "default_version")]
    #[schemars(with = "u32")]
    pub version: Spanned<u32>,
    /// Cores of the send and receive thread; empty: the first that the process may use.
    #[serde(default)]
    pub cores: Vec<usize>,
    /// How long to wait for the ports' links.
    #[serde(default = "default_link_timeout_s")]
    pub link_timeout_s: f64,
    /// Frames in a transmit burst at most.
    #[serde(default)]
    #[schemars(with = "Option<usize>")]
    pub burst: Option<Spanned<usize>>,
    /// The ports; a port's number is its place.
    #[schemars(with = "Vec<Port>")]
    pub ports: Vec<Spanned<Port>>,
    /// The streams.
    #[serde(default)]
    #[schemars(with = "Vec<Stream>")]
    pub streams: Vec<Spanned<Stream>>,
    /// Transactions, in the place of streams.
    #[serde(default)]
    #[schemars(with = "Option<Stateful>")]
    pub stateful: Option<Spanned<Stateful>>,
    /// Which frames of the load are timed.
    #[serde(default)]
    pub latency: Timing,
    /// The generator measures itself with these streams before it opens the ports.
    #[serde(default = "tests_itself")]
    pub self_test: bool,
    /// Captures.
    #[serde(default)]
    #[schemars(with = "Vec<CaptureSpec>")]
    pub captures: Vec<Spanned<CaptureSpec>>,
    /// Where it was read, for messages.
    #[serde(skip)]
    pub path: PathBuf,
    /// The text that was read.
    #[serde(skip)]
    pub text: String,
}

fn default_version() -> Spanned<u32> {
    Spanned::new(PROFILE_VERSION, Location::UNKNOWN, Location::UNKNOWN)
}

fn tests_itself() -> bool {
    true
}

fn default_link_timeout_s() -> f64 {
    10.0
}

impl Profile {
    /// Read and check a regular file or a pipe; waits for the end of a pipe.
    ///
    /// # Errors
    /// When the file cannot be read, is longer than [`PROFILE_BYTES_MAX`], or holds no profile that
    /// can be sent; the error names file and line.
    pub fn read(path: &Path) -> Result<Profile, ProfileError> {
        Profile::from_bytes(bounded_file::read_or_pipe(path, PROFILE_BYTES_MAX), path)
    }

    /// Read and check a regular file: never waits.
    ///
    /// # Errors
    /// As [`read`](Self::read), and when the path names a pipe.
    pub fn read_regular(path: &Path) -> Result<Profile, ProfileError> {
        Profile::from_bytes(bounded_file::read(path, PROFILE_BYTES_MAX), path)
    }

    fn from_bytes(read: io::Result<Vec<u8>>, path: &Path) -> Result<Profile, ProfileError> {
        let failed = |source| ProfileError::Read { path: path.display().to_string(), source };
        let text = String::from_utf8(read.map_err(failed)?)
            .map_err(|error| failed(io::Error::new(io::ErrorKind::InvalidData, error)))?;
        Profile::parse(&text, path)
    }

    /// Check a text; `path` is for messages.
    ///
    /// # Errors
    /// When it is no profile that can be sent; the error names the line.
    pub fn parse(text: &str, path: &Path) -> Result<Profile, ProfileError> {
        let mut profile: Profile = serde_saphyr::from_str(text).map_err(|error| {
            let line = error.location().map_or(0, |l| l.line());
            let message = error.without_snippet().to_string();
            ProfileError::Text {
                path: path.display().to_string(),
                line,
                message: one_line(&message),
            }
        })?;
        (profile.path, profile.text) = (path.to_owned(), text.to_owned());
        profile.check()?;
        for number in 0..profile.streams.len() {
            profile.make_stream(number)?;
        }
        Ok(profile)
    }

    fn wrong<T>(&self, at: &Location, message: impl Into<String>) -> Result<T, ProfileError> {
        let (path, line) = (self.path.display().to_string(), at.line());
        Err(ProfileError::Text { path, line, message: message.into() })
    }

    fn check(&self) -> Result<(), ProfileError> {
        if self.version.value != PROFILE_VERSION {
            let message = format!(
                "version {} is not known here; it is {PROFILE_VERSION}",
                self.version.value
            );
            return self.wrong(&self.version.referenced, message);
        }
        if self.cores.len() > 1 {
            let message =
                format!("cores names {} cores; the generator runs on one", self.cores.len());
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
        for port in &self.ports {
            port.value.check().or_else(|message| self.wrong(&port.referenced, message))?;
        }
        if self.captures.len() > CAPTURES_MAX {
            let message = format!("{} captures; there may be {CAPTURES_MAX}", self.captures.len());
            return self.wrong(&Location::UNKNOWN, message);
        }
        for capture in &self.captures {
            let checked = capture.value.check(self.ports.len());
            checked.or_else(|message| self.wrong(&capture.referenced, message))?;
        }
        if let Some(stateful) = &self.stateful {
            return self.check_stateful(stateful);
        }
        if self.streams.is_empty() || self.streams.len() > STREAMS_MAX {
            let message =
                format!("{} streams; there must be 1 to {STREAMS_MAX}", self.streams.len());
            return self.wrong(&Location::UNKNOWN, message);
        }
        self.streams
            .iter()
            .enumerate()
            .try_for_each(|(index, stream)| self.check_stream(index, stream))
    }

    fn check_stateful(&self, stateful: &Spanned<Stateful>) -> Result<(), ProfileError> {
        if let Some(stream) = self.streams.first() {
            return self
                .wrong(&stream.referenced, "streams and stateful do not go together; choose one");
        }
        let checked = stateful.value.check(&self.ports);
        checked.or_else(|message| self.wrong(&stateful.referenced, format!("stateful: {message}")))
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
        if let Some(name) = &stream.name {
            let is_word = name.chars().all(|c| c.is_alphanumeric() || "-_.:/".contains(c));
            if name.is_empty() || name.chars().count() > NAME_CHARACTERS_MAX || !is_word {
                let message = format!(
                    "stream {index}: name `{name}` is not 1 to {NAME_CHARACTERS_MAX} letters, \
                     digits and -_.:/"
                );
                return self.wrong(at, message);
            }
            if self.number_of(name) != Some(index) {
                return self.wrong(
                    at,
                    format!("stream {index}: another stream has the name `{name}`, too"),
                );
            }
        }
        stream
            .check_times()
            .or_else(|message| self.wrong(at, format!("stream {index}: {message}")))?;
        self.check_chain(index, stream)
            .or_else(|message| self.wrong(at, format!("stream {index}: {message}")))?;
        if let Some(rate) = stream.rate {
            let line = self.ports[stream.from].value.line_rate;
            let resolved = rate.pps(1.0, line);
            resolved
                .map(|_| ())
                .or_else(|message| self.wrong(at, format!("stream {index}: {message}")))?;
        }
        let kinds = [stream.layers.is_some(), stream.pcap.is_some(), !stream.packets.is_empty()];
        if kinds.iter().filter(|kind| **kind).count() > 1 {
            return self
                .wrong(at, format!("stream {index}: choose one of layers, pcap and packets"));
        }
        if stream.packets.len() > HEX_PACKETS_MAX {
            return self.wrong(
                at,
                format!("stream {index}: more than {HEX_PACKETS_MAX} packets; use pcap"),
            );
        }
        Ok(())
    }

    /// The number of a stream by its name; the first that has it.
    pub fn number_of(&self, name: &str) -> Option<usize> {
        self.streams.iter().position(|stream| stream.value.name.as_deref() == Some(name))
    }

    /// Does a chain lead to a beginning, and does every stream before the last one end?
    fn check_chain(&self, index: usize, stream: &Stream) -> Result<(), String> {
        let mut before = stream.after.as_deref();
        for _ in 0..self.streams.len() {
            let Some(name) = before else { return Ok(()) };
            let number = self.number_of(name);
            let number = number
                .ok_or_else(|| format!("after names `{name}`, and no stream is called so"))?;
            let found = &self.streams[number].value;
            if found.bursts.is_none() && found.pcap.is_none() {
                return Err(format!("after names `{name}`, which never ends; give it `bursts`"));
            }
            before = found.after.as_deref();
        }
        Err(format!("after leads from stream {index} back to itself; a chain has a beginning"))
    }

    /// The MAC address that a port answers with: its own, that of its first stream, or one made up.
    pub fn port_mac(&self, number: usize) -> quiver_wire::MacAddress {
        let own = self.ports.get(number).and_then(|port| port.value.mac);
        let mut streams = self.streams.iter().map(|s| &s.value).filter(|s| s.from == number);
        own.or_else(|| streams.find_map(Stream::source_mac)).unwrap_or(Port::mac_made_up(number))
    }

    /// Addresses of the ports at both ends of a stream.
    fn ends(&self, stream: &Stream) -> PortAddresses {
        let (own, peer) = (&self.ports[stream.from].value, &self.ports[stream.to].value);
        let mac = |number| u128::from(self.port_mac(number).to_u64());
        let awaited = own.gateway.map(|_| 0);
        PortAddresses {
            own_mac: mac(stream.from),
            gateway_mac: own.gateway_mac.map(|mac| u128::from(mac.to_u64())).or(awaited),
            peer_mac: mac(stream.to),
            own_ip4: own.ip4.first().map(|address| u128::from(address.to_bits())),
            own_ip6: own.ip6.first().map(|address| address.to_bits()),
            peer_ip4: peer.ip4.first().map(|address| u128::from(address.to_bits())),
            peer_ip6: peer.ip6.first().map(|address| address.to_bits()),
        }
    }

    /// Lay out a stream's frames.
    fn make_stream(&mut self, number: usize) -> Result<(), ProfileError> {
        let spanned = &self.streams[number];
        let (at, mut stream) = (spanned.referenced, spanned.value.clone());
        if stream.pcap.is_none() && stream.packets.is_empty() {
            let ends = self.ends(&stream);
            let here = stream.layers.as_ref().map_or(at, |layers| layers.referenced);
            let named = |message: String| format!("stream {number}: {message}");
            let mut layers = match &stream.layers {
                Some(layers) => layers.value.clone(),
                None => usual_layers(&ends),
            };
            self.ports[stream.from].value.vlan.put_on(&mut layers);
            let says_destination =
                layers.first(&header::ETHERNET).is_some_and(|e| e.field("dst").is_some());
            let from = &self.ports[stream.from].value;
            stream.awaits_gateway =
                !says_destination && from.gateway_mac.is_none() && from.gateway.is_some();
            if let Some(std::net::IpAddr::V4(gateway)) =
                from.gateway.filter(|_| stream.awaits_gateway)
                && from.ip4.is_empty()
            {
                let what = format!(
                    "gateway {gateway} is resolved from an address of port {}",
                    stream.from
                );
                return self
                    .wrong(&self.ports[stream.from].referenced, format!("{what}: give it `ip4`"));
            }
            let laid_out = layout::complete(&layers, &ends).and_then(|layers| {
                stream.layout = layout::lay_out(&layers)?;
                stream.layers = Some(Spanned::new(layers, here, here));
                Ok(())
            });
            laid_out.or_else(|message| self.wrong(&here, named(message)))?;
            match stream.frame.resolve(stream.layout.frame_bytes_min(stream.stamp_bytes())) {
                Ok(sizes) => stream.sizes = sizes,
                Err(message) => return self.wrong(&at, named(message)),
            }
            if let Some(flows) = &stream.flows {
                let checked = stream.check_flows(&flows.value);
                checked.or_else(|message| self.wrong(&flows.referenced, named(message)))?;
            }
        }
        self.streams[number].value = stream;
        Ok(())
    }
}

/// The headers of a stream that says none: UDP over what both ports have addresses of.
fn usual_layers(ends: &PortAddresses) -> Layers {
    let ip =
        if ends.own_ip4.is_none() && ends.own_ip6.is_some() { &header::IP6 } else { &header::IP4 };
    Layers(vec![Layer::new(ip), Layer::new(&header::UDP)])
}

fn one_line(message: &str) -> String {
    message.lines().next().unwrap_or_default().to_owned()
}
