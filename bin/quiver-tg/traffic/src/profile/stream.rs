//! A stream: what goes from one port to another, how fast, when.

use std::fmt;
use std::path::PathBuf;

use quiver_wire::MacAddress;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde_saphyr::Spanned;

use super::field::{Order, RUN_VALUES_MAX, ValueOrder};
use super::layers::{Layers, hex};
use super::layout::Layout;
use super::quantity::{StreamRate, mac, seconds};
use super::schema_types::{MacText, Quantity};
use super::sizes::{FrameSizes, Sizes};
use crate::stamp::STAMP_BYTES;

/// Packets that a profile holds as text.
pub const HEX_PACKETS_MAX: usize = 65_536;
/// Characters of a stream's name.
pub const NAME_CHARACTERS_MAX: usize = 64;
/// Frames of a burst, bursts of a stream, turns of a chain.
pub const COUNT_MAX: u64 = 1 << 40;

/// Frames from one port to another.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// Its name; by default its number.
    #[serde(default)]
    pub name: Option<String>,
    /// The port that sends.
    pub from: usize,
    /// The port where the frames should come back.
    pub to: usize,
    /// Its share of the total rate.
    #[serde(default = "default_weight")]
    pub weight: f64,
    /// Its own rate, whatever the total.
    #[serde(default)]
    pub rate: Option<StreamRate>,
    /// A stream that measures times beside the load: it is no part of the load's counts.
    #[serde(default)]
    pub latency: bool,
    /// How its frames are spread over time.
    #[serde(default)]
    pub pacing: Pacing,
    /// So many frames, and again; left out: as long as the measurement lasts.
    #[serde(default)]
    pub bursts: Option<Bursts>,
    /// It begins when the stream of this name has ended.
    #[serde(default)]
    pub after: Option<String>,
    /// How long behind that, or behind the beginning, seconds.
    #[serde(default, deserialize_with = "seconds")]
    #[schemars(with = "Quantity")]
    pub delay: f64,
    /// It sends nothing until it is resumed.
    #[serde(default)]
    pub paused: bool,
    /// How often the chain that begins with it is sent.
    #[serde(default = "default_loops")]
    pub loops: u64,
    /// Sizes from the destination address to the end of the payload, without FCS.
    #[serde(default = "default_frame")]
    pub frame: FrameSizes,
    /// Headers.
    #[serde(default)]
    #[schemars(with = "Option<Layers>")]
    pub layers: Option<Spanned<Layers>>,
    /// Fields that vary together.
    #[serde(default)]
    #[schemars(with = "Option<Flows>")]
    pub flows: Option<Spanned<Flows>>,
    /// Packets from a file in place of headers.
    #[serde(default)]
    pub pcap: Option<Pcap>,
    /// Packets as hexadecimal digits in place of headers.
    #[serde(default)]
    pub packets: Vec<Hex>,
    /// The frames carry a stamp; without one they are sent as they are and not counted when they
    /// come back.
    #[serde(default = "default_stamp")]
    pub stamp: bool,
    /// The layout of its frames, derived from the keys above.
    #[serde(skip)]
    pub layout: Layout,
    /// The sizes of its frames, derived from the keys above.
    #[serde(skip, default = "no_sizes")]
    pub sizes: Sizes,
    /// The destination MAC address is resolved when the links are up.
    #[serde(skip)]
    pub awaits_gateway: bool,
}

fn default_weight() -> f64 {
    1.0
}

fn default_loops() -> u64 {
    1
}

fn default_frame() -> FrameSizes {
    FrameSizes::Default
}

fn default_stamp() -> bool {
    true
}

fn no_sizes() -> Sizes {
    Sizes::Cycle(Vec::new())
}

/// How frames are spread over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pacing {
    /// One every 1 / rate.
    #[default]
    Constant,
    /// Gaps as between calls in a telephone exchange: exponentially distributed.
    Poisson,
    /// So many one behind the other every so many / rate.
    BurstsOf(u32),
}

impl fmt::Display for Pacing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pacing::Constant => f.write_str("constant"),
            Pacing::Poisson => f.write_str("poisson"),
            Pacing::BurstsOf(frames) => write!(f, "bursts of {frames}"),
        }
    }
}

/// So many frames, and again.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bursts {
    /// Frames of one burst.
    pub packets: u64,
    /// How many bursts.
    #[serde(default = "default_loops")]
    pub count: u64,
    /// From the last frame of one to the first of the next, seconds.
    #[serde(default, deserialize_with = "seconds")]
    #[schemars(with = "Quantity")]
    pub gap: f64,
}

/// How the fields of a flow are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Together {
    /// Every value of one with every value of the others; the first field turns fastest.
    #[default]
    Product,
    /// The first values of all, then the second of all.
    Lockstep,
}

impl Together {
    /// As a profile says it.
    pub fn word(self) -> &'static str {
        match self {
            Together::Product => "product",
            Together::Lockstep => "lockstep",
        }
    }
}

/// Fields that vary together: a frame belongs to a flow, and the flow's number says every field.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flows {
    /// How many; otherwise as many as the fields make.
    #[serde(default)]
    pub count: Option<u64>,
    /// How the fields make them.
    #[serde(default)]
    pub fields: Together,
    /// In which order they come.
    #[serde(default)]
    pub order: Order,
    /// Seed of the random orders.
    #[serde(default)]
    pub seed: Option<u64>,
    /// Of zipf.
    #[serde(default)]
    pub exponent: Option<f64>,
}

impl Flows {
    /// In which order they come.
    pub fn value_order(&self) -> ValueOrder {
        ValueOrder { order: Some(self.order), seed: self.seed, exponent: self.exponent }
    }
}

/// Packets from a file.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pcap {
    /// A pcap or pcapng file.
    pub file: PathBuf,
    /// At its own times, not at a rate.
    #[serde(default)]
    pub own_times: bool,
    /// How much faster than at its own times.
    #[serde(default = "default_weight")]
    pub speed: f64,
    /// In place of every packet's source.
    #[serde(default, deserialize_with = "mac::optional")]
    #[schemars(with = "Option<MacText>")]
    pub src_mac: Option<MacAddress>,
    /// In place of every packet's destination.
    #[serde(default, deserialize_with = "mac::optional")]
    #[schemars(with = "Option<MacText>")]
    pub dst_mac: Option<MacAddress>,
}

/// A packet.
#[derive(Clone, Debug)]
pub struct Hex(pub Vec<u8>);

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = hex::<D::Error>(&String::deserialize(deserializer)?)?;
        if bytes.len() < 14 {
            return Err(D::Error::custom(format!(
                "{} bytes are no Ethernet frame; it has 14 at least",
                bytes.len()
            )));
        }
        Ok(Hex(bytes))
    }
}

impl Stream {
    /// Bytes that the stamp takes at the end of a frame.
    pub fn stamp_bytes(&self) -> usize {
        if self.stamp { STAMP_BYTES } else { 0 }
    }

    /// The longest frame, bytes.
    pub fn frame_bytes_max(&self) -> usize {
        self.sizes.max()
    }

    /// A frame on average, bytes.
    pub fn frame_bytes_mean(&self) -> f64 {
        self.sizes.mean()
    }

    /// The source MAC address of its first frame, if it says one.
    pub fn source_mac(&self) -> Option<MacAddress> {
        let ethernet = self.layers.as_ref()?.value.0.first()?;
        let first = ethernet.field("src").filter(|_| ethernet.spec.name == "ethernet")?.first()?;
        Some(MacAddress::from_u64(first as u64))
    }

    /// Its name, or its number.
    pub fn name_or(&self, number: usize) -> String {
        self.name.clone().unwrap_or_else(|| number.to_string())
    }

    /// Check weight, pacing, bursts, loops and speed.
    ///
    /// # Errors
    /// When weight, pacing, bursts, loops or speed are outside their ranges, or do not fit
    /// together; the message says what would be right.
    pub fn check_times(&self) -> Result<(), String> {
        if !(self.weight > 0.0 && self.weight.is_finite()) {
            return Err(format!("weight {} is not above 0", self.weight));
        }
        if let Pacing::BurstsOf(frames) = self.pacing
            && !(1..=4096).contains(&frames)
        {
            return Err(format!("bursts_of {frames} is outside 1..=4096"));
        }
        if let Some(bursts) = &self.bursts {
            for (name, value) in [("packets", bursts.packets), ("count", bursts.count)] {
                if !(1..=COUNT_MAX).contains(&value) {
                    return Err(format!("bursts: {name} {value} is outside 1..={COUNT_MAX}"));
                }
            }
        }
        if !(1..=COUNT_MAX).contains(&self.loops) {
            return Err(format!("loops {} is outside 1..={COUNT_MAX}", self.loops));
        }
        if self.loops > 1 && self.bursts.is_none() {
            return Err(
                "loops needs `bursts`: a stream without an end has nothing behind it".to_owned()
            );
        }
        if self.loops > 1 && self.after.is_some() {
            return Err(
                "loops belongs to the first stream of a chain, not to one with `after`".to_owned()
            );
        }
        if self.pcap.as_ref().is_some_and(|pcap| !(pcap.speed > 0.0 && pcap.speed.is_finite())) {
            return Err("pcap: speed is above 0".to_owned());
        }
        Ok(())
    }

    /// Check the flows.
    ///
    /// # Errors
    /// When their number is outside its range, or a field has an order of its own.
    pub fn check_flows(&self, flows: &Flows) -> Result<(), String> {
        if let Some(count) = flows.count
            && !(1..=RUN_VALUES_MAX).contains(&count)
        {
            return Err(format!("flows: count {count} is outside 1..={RUN_VALUES_MAX}"));
        }
        flows
            .value_order()
            .check::<serde::de::value::Error>()
            .map_err(|error| error.to_string())?;
        if let Some(part) = self.layout.parts.iter().find(|part| {
            part.field.value_order.is_given()
                && part.field.value_order
                    != ValueOrder { order: Some(Order::Sequential), ..ValueOrder::default() }
        }) {
            return Err(format!(
                "{} has an order of its own; in flows it follows `flows: order`",
                part.name
            ));
        }
        Ok(())
    }
}
