//! The block driver: it takes a vector through the graph in blocks of 128 packets.
//!
//! A [`Stage`](crate::graph::stage::Stage) or a [`LookUp`](crate::graph::stage::LookUp) becomes a
//! [`Kernel`]: a loop over the packets of a block that are marked in a mask. The driver runs the
//! kernel of a node, sees where the packets go, and runs the kernels of those nodes, until all
//! packets have come to nodes without a kernel. No list of paths is needed: the graph says what
//! follows. `docs/guide/performance.md` has the drawing, `docs/decisions/block-driver.md` the
//! figures.

mod costs;
mod driver;
mod kernel;
mod look_up;
mod output;
mod pair;
mod slot;
mod stage;
mod steer;
mod watch;

pub(crate) use driver::Driver;
pub(crate) use kernel::{Kernel, MakeKernel};
pub(crate) use look_up::LookUpKernel;
pub(crate) use output::OutputKernel;
pub use pair::PairSpec;
pub(crate) use pair::{Makers, Pair};
pub(crate) use slot::KernelSlot;
pub(crate) use stage::StageKernel;
pub(crate) use steer::SteerKernel;
pub(crate) use watch::WatchKernel;

/// Packets in a block.
pub(crate) const BLOCK_PACKETS: usize = 128;
/// A bit for each packet of a block.
pub(crate) type Mask = u128;
/// How many packets ahead a stage asks for what it will read
/// ([`Stage::soon`](crate::graph::stage::Stage::soon)).
const SOON_AHEAD: usize = 16;
/// How many packets ahead what a packet's index names is asked for
/// ([`Stage::ahead`](crate::graph::stage::Stage::ahead)). More would not stay in the L1 cache until
/// it is read.
const ENTRIES_AHEAD: usize = 2 * SOON_AHEAD;
