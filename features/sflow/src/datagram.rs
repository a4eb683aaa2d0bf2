//! Datagrams of sFlow version 5 (sflow_version_5.txt §5; of dropped packets sflow_drops.txt §2), in
//! the external data representation (RFC 4506): words of 32 bits, the most significant byte first.

use std::net::IpAddr;

/// Version of the format.
const VERSION: u32 = 5;
/// Bytes of a datagram at most: it fits into a frame of Ethernet behind headers of IPv6 and UDP.
pub const DATAGRAM_BYTES_MAX: usize = 1_400;
/// The longest head: that of an agent with an IPv6 address, bytes.
const HEAD_BYTES_MAX: usize = 40;
/// Kinds of samples.
const FLOW_SAMPLE: u32 = 1;
const COUNTERS_SAMPLE: u32 = 2;
const DISCARDED_PACKET: u32 = 5;
/// The class of a source that is an interface, by its number.
const CLASS_IF_INDEX: u32 = 0;
/// Kinds of records of a flow sample or of a discarded packet.
const RAW_PACKET: u32 = 1;
const EXTENDED_FUNCTION: u32 = 1_038;
/// Bytes of the name of a function at most (`extended_function`).
pub const SYMBOL_BYTES_MAX: usize = 64;
const EXTENDED_ROUTER: u32 = 1_002;
/// Kinds of records of a counters sample.
const GENERIC_COUNTERS: u32 = 1;
const ETHERNET_COUNTERS: u32 = 2;
/// The value of a counter that is not known.
pub const UNKNOWN: u32 = u32::MAX;

/// What a sampled packet begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderKind {
    /// An Ethernet header.
    Ethernet = 1,
    /// An IPv4 header.
    Ip4 = 11,
    /// An IPv6 header.
    Ip6 = 12,
}

/// How a sampled packet is routed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Router {
    /// Next hop; none where the destination is attached.
    pub next_hop: Option<IpAddr>,
    /// Lengths of the routes to source and destination, bits.
    pub lengths: (u8, u8),
}

/// A sampled packet. Numbers of interfaces are those of [`quiver_export::route::if_index`].
#[derive(Clone, Copy, Debug)]
pub struct Flow<'a> {
    /// Number of this sample among those of its source.
    pub sequence: u32,
    /// The interface where it was sampled.
    pub source: u32,
    /// One of so many packets is sampled.
    pub rate: u32,
    /// Packets that could have been sampled.
    pub pool: u32,
    /// Samples that were lost.
    pub drops: u32,
    /// The interface that received it; 0 when it is not known.
    pub input: u32,
    /// The interface that sends it; 0 when it is not known.
    pub output: u32,
    /// What `header` begins with.
    pub kind: HeaderKind,
    /// Bytes on the wire, without a checksum of the frame.
    pub frame_bytes: u32,
    /// The first bytes.
    pub header: &'a [u8],
    /// How it is routed.
    pub router: Option<Router>,
}

/// A packet that was not sent on. Numbers of interfaces are as in [`Flow`].
#[derive(Clone, Copy, Debug)]
pub struct Discarded<'a> {
    /// Number of this notification among those of its source.
    pub sequence: u32,
    /// The interface by which it came in.
    pub source: u32,
    /// Packets that no notification was made of.
    pub drops: u32,
    /// The interface that received it; 0 when it is not known.
    pub input: u32,
    /// The interface that would have sent it; 0 when it was not chosen yet.
    pub output: u32,
    /// Why: a `drop_reason`.
    pub reason: u32,
    /// What `header` begins with.
    pub kind: HeaderKind,
    /// Bytes on the wire, without a checksum of the frame.
    pub frame_bytes: u32,
    /// The first bytes.
    pub header: &'a [u8],
    /// What dropped it, [`SYMBOL_BYTES_MAX`] at most; the rest is cut off.
    pub symbol: &'a str,
}

/// Counts of one direction of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes.
    pub bytes: u64,
    /// Packets.
    pub packets: u32,
    /// Packets that were discarded.
    pub discards: u32,
    /// Errors.
    pub errors: u32,
}

/// Counters of an interface.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Number of this sample among those of its source.
    pub sequence: u32,
    /// The interface.
    pub source: u32,
    /// Is it Ethernet?
    pub is_ethernet: bool,
    /// Up by configuration, and by its link.
    pub is_up: (bool, bool),
    /// What it received.
    pub input: Traffic,
    /// What it sent.
    pub output: Traffic,
    /// Does it receive frames to all addresses?
    pub is_promiscuous: bool,
}

/// The head of a datagram.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// The agent.
    pub agent: IpAddr,
    /// Which of the agent's exporters it is.
    pub sub_agent: u32,
    /// Number of the datagram.
    pub sequence: u32,
    /// Milliseconds since the agent started.
    pub uptime_ms: u32,
}

/// A datagram that is being written.
#[derive(Debug)]
pub struct Datagram {
    finished: Vec<u8>,
    samples: Vec<u8>,
    count: u32,
}

fn word(out: &mut Vec<u8>, value: u32) {
    out.extend(value.to_be_bytes());
}

fn hyper(out: &mut Vec<u8>, value: u64) {
    out.extend(value.to_be_bytes());
}

/// An address: its family, its bytes.
fn address(out: &mut Vec<u8>, address: Option<IpAddr>) {
    match address {
        None => word(out, 0),
        Some(IpAddr::V4(address)) => {
            word(out, 1);
            out.extend(address.octets());
        }
        Some(IpAddr::V6(address)) => {
            word(out, 2);
            out.extend(address.octets());
        }
    }
}

/// Bytes behind their number, padded to whole words.
fn opaque(out: &mut Vec<u8>, bytes: &[u8]) {
    word(out, bytes.len() as u32);
    out.extend(bytes);
    out.resize(out.len() + bytes.len().next_multiple_of(4) - bytes.len(), 0);
}

/// A record or sample: its kind, its length, and what `write` writes.
fn structure(out: &mut Vec<u8>, kind: u32, write: impl FnOnce(&mut Vec<u8>)) {
    word(out, kind);
    let at = out.len();
    word(out, 0);
    write(out);
    let length = (out.len() - at - 4) as u32;
    if let Some(place) = out.get_mut(at..at + 4) {
        place.copy_from_slice(&length.to_be_bytes());
    }
}

/// A packet's first bytes (`sampled_header`).
fn raw_packet(out: &mut Vec<u8>, kind: HeaderKind, frame_bytes: u32, header: &[u8]) {
    structure(out, RAW_PACKET, |out| {
        // A frame ends with a checksum of 4 bytes, which devices take off.
        let stripped = if kind == HeaderKind::Ethernet { 4 } else { 0 };
        word(out, kind as u32);
        word(out, frame_bytes.saturating_add(stripped));
        word(out, stripped);
        opaque(out, header);
    });
}

impl Default for Datagram {
    fn default() -> Datagram {
        let room = || Vec::with_capacity(2 * DATAGRAM_BYTES_MAX);
        Datagram { finished: room(), samples: room(), count: 0 }
    }
}

impl Datagram {
    /// Has it no samples?
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Would one more sample of so many bytes make it too long?
    pub fn is_full_with(&self, bytes: usize) -> bool {
        !self.is_empty() && HEAD_BYTES_MAX + self.samples.len() + bytes > DATAGRAM_BYTES_MAX
    }

    /// Throw the samples away.
    pub fn clear(&mut self) {
        self.samples.clear();
        self.count = 0;
    }

    /// Add a sample of a packet.
    pub fn flow(&mut self, flow: &Flow<'_>) {
        self.count += 1;
        structure(&mut self.samples, FLOW_SAMPLE, |out| {
            for value in [
                flow.sequence,
                flow.source,
                flow.rate,
                flow.pool,
                flow.drops,
                flow.input,
                flow.output,
                1 + u32::from(flow.router.is_some()),
            ] {
                word(out, value);
            }
            raw_packet(out, flow.kind, flow.frame_bytes, flow.header);
            if let Some(router) = flow.router {
                structure(out, EXTENDED_ROUTER, |out| {
                    address(out, router.next_hop);
                    word(out, router.lengths.0.into());
                    word(out, router.lengths.1.into());
                });
            }
        });
    }

    /// Add a packet that was not sent on.
    pub fn discarded(&mut self, discarded: &Discarded<'_>) {
        self.count += 1;
        structure(&mut self.samples, DISCARDED_PACKET, |out| {
            for value in [
                discarded.sequence,
                CLASS_IF_INDEX,
                discarded.source,
                discarded.drops,
                discarded.input,
                discarded.output,
                discarded.reason,
                2,
            ] {
                word(out, value);
            }
            raw_packet(out, discarded.kind, discarded.frame_bytes, discarded.header);
            structure(out, EXTENDED_FUNCTION, |out| {
                let symbol = discarded.symbol.as_bytes();
                opaque(out, symbol.get(..SYMBOL_BYTES_MAX).unwrap_or(symbol));
            });
        });
    }

    /// Add the counters of an interface.
    pub fn counters(&mut self, counters: &Counters) {
        self.count += 1;
        structure(&mut self.samples, COUNTERS_SAMPLE, |out| {
            word(out, counters.sequence);
            word(out, counters.source);
            word(out, 1 + u32::from(counters.is_ethernet));
            structure(out, GENERIC_COUNTERS, |out| generic(out, counters));
            if counters.is_ethernet {
                structure(out, ETHERNET_COUNTERS, |out| ethernet(out, counters));
            }
        });
    }

    /// The bytes; the next one begins.
    pub fn finish(&mut self, head: &Head) -> &[u8] {
        self.finished.clear();
        word(&mut self.finished, VERSION);
        address(&mut self.finished, Some(head.agent));
        for value in [head.sub_agent, head.sequence, head.uptime_ms, self.count] {
            word(&mut self.finished, value);
        }
        self.finished.append(&mut self.samples);
        self.count = 0;
        &self.finished
    }
}

/// Counters of RFC 2233 (`if_counters`).
fn generic(out: &mut Vec<u8>, counters: &Counters) {
    /// ifType of Ethernet, and of what is nothing else (RFC 2863).
    const ETHERNET_CSMACD: u32 = 6;
    const OTHER: u32 = 1;
    const FULL_DUPLEX: u32 = 1;
    let Counters { input, output, is_up, .. } = counters;
    word(out, counters.source);
    word(out, if counters.is_ethernet { ETHERNET_CSMACD } else { OTHER });
    hyper(out, 0); // the speed is not known
    word(out, FULL_DUPLEX);
    word(out, u32::from(is_up.0) | u32::from(is_up.1) << 1);
    // Packets to groups and to all are counted with the others.
    hyper(out, input.bytes);
    for value in [input.packets, UNKNOWN, UNKNOWN, input.discards, input.errors, UNKNOWN] {
        word(out, value);
    }
    hyper(out, output.bytes);
    for value in [output.packets, UNKNOWN, UNKNOWN, output.discards, output.errors] {
        word(out, value);
    }
    word(out, u32::from(counters.is_promiscuous));
}

/// Counters of RFC 2358 (`ethernet_counters`): errors of the device in both directions.
fn ethernet(out: &mut Vec<u8>, counters: &Counters) {
    const FIELDS: usize = 13;
    /// Places of dot3StatsInternalMacTransmitErrors and dot3StatsInternalMacReceiveErrors.
    const TRANSMIT_ERRORS: usize = 8;
    const RECEIVE_ERRORS: usize = 11;
    for field in 0..FIELDS {
        word(
            out,
            match field {
                TRANSMIT_ERRORS => counters.output.errors,
                RECEIVE_ERRORS => counters.input.errors,
                _ => UNKNOWN,
            },
        );
    }
}
