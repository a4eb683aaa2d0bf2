//! The profile: which ports there are, and what is sent from which to which. README.md describes
//! it.

mod addresses;
pub mod capture;
mod document;
pub mod faults;
pub mod field;
mod genome;
pub mod header;
pub mod layers;
pub mod layout;
mod port;
pub mod quantity;
mod same_ports;
pub mod scalar;
mod schema_types;
mod schemas;
mod sizes;
pub mod stateful;
mod stream;
mod stream_list;
mod tags;
pub mod timing;

pub use addresses::{Address, Addresses};
pub use document::{
    BURST_MAX, PORTS_MAX, PROFILE_BYTES_MAX, PROFILE_VERSION, Profile, ProfileError,
};
pub use field::{Field, Order, RUN_VALUES_MAX, Values};
pub use layers::{Layer, Layers};
pub use layout::{Layout, Part, PortAddresses};
pub use port::{AfPacket, AfXdp, Memif, MemifRole, Port, Tap, XdpTransmit};
pub use quantity::{StreamRate, read_seconds};
pub use sizes::{FRAME_BYTES_MAX, FRAME_BYTES_MIN, FrameShare, FrameSizes, Sizes};
pub use stream::{
    Bursts, Flows, HEX_PACKETS_MAX, Hex, NAME_CHARACTERS_MAX, Pacing, Pcap, Stream, Together,
};
pub use stream_list::{StreamList, no_stream};
pub use tags::{TAGS_MAX, Tag, Tags};

#[cfg(test)]
mod tests;
