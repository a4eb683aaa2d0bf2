//! Encapsulation for every tunnel: header stacks put on and taken off, TTL and hop limit, DSCP and
//! ECN, the path MTU of a stack, and ICMP errors from the underlay relayed to the senders of inner
//! packets. It knows no tunnel protocol.
//!
//! - [`EncapEntries`]: ready-made header stacks with counters, one for each object that
//!   encapsulates.
//! - [`EncapOutput`]: a packet gets an entry's stack and leaves by the underlay's next-hop group.
//! - [`decapsulated`]: an inner packet without its outer headers, checked.
//! - [`relay`], [`path_mtu`]: what routers of the underlay report.
#![deny(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

pub mod decapsulated;
pub mod ecn;
pub mod entries;
pub mod entry;
pub mod flow;
pub mod handover;
pub mod inner;
pub mod outer;
pub mod output;
pub mod path_mtu;
pub mod relay;
pub mod softwire;
pub mod tunnel;

pub use entries::{EncapEntries, EncapEntry, WorkerEncapEntries};
pub use entry::{EntryView, EntryWords};
pub use inner::{InnerFields, InnerPacket};
pub use outer::{HeaderStack, Inside, OuterHeader};
pub use output::{EncapError, EncapLink, EncapOutput, IcmpRecipient, Mtu};
