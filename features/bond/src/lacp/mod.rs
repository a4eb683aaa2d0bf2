//! The link aggregation control protocol (IEEE 802.1AX-2014 clause 6.4), without I/O: ports are
//! told what came in and what time it is, and say what to send and whether they carry frames.
//!
//! One file per machine: `receive`, `periodic`, `selection`, `mux`, `transmit`. An
//! [`Aggregator`] runs them over its ports until all rest.

mod aggregator;
mod mux;
mod periodic;
mod port;
mod receive;
mod selection;
#[cfg(test)]
mod tests;
mod transmit;

pub use aggregator::Aggregator;
pub use mux::MuxState;
pub use port::{Port, PortWish};
pub use receive::ReceiveState;
pub use selection::Selected;

/// A second.
pub(crate) const SECOND_NS: u64 = 1_000_000_000;
/// Between PDUs to a partner that wants them often (§6.4.4 a).
pub const FAST_PERIODIC_NS: u64 = SECOND_NS;
/// Between PDUs to a partner that wants them seldom (§6.4.4 b).
pub const SLOW_PERIODIC_NS: u64 = 30 * SECOND_NS;
/// A partner that is to speak often is lost after so long (§6.4.4 c).
pub const SHORT_TIMEOUT_NS: u64 = 3 * SECOND_NS;
/// A partner that is to speak seldom is lost after so long (§6.4.4 d).
pub const LONG_TIMEOUT_NS: u64 = 90 * SECOND_NS;
/// Further ports are waited for so long before one joins (§6.4.4 f).
pub const AGGREGATE_WAIT_NS: u64 = 2 * SECOND_NS;
/// PDUs in any [`FAST_PERIODIC_NS`] at most (§6.4.16).
pub const PDUS_PER_SECOND_MAX: usize = 3;
/// The priority of the router as a system, and of its ports, as others have it unless told
/// otherwise.
pub const SYSTEM_PRIORITY: u16 = 0xffff;
/// See [`SYSTEM_PRIORITY`].
pub const PORT_PRIORITY: u16 = 0xff;
