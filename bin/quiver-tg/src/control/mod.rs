//! Control of a generator that runs: one state, typed commands on it, and the doors through which they
//! come, the same for `run` and `serve`.

mod commands;
mod host;
mod job;
mod machine;
mod sampler;
mod shows;
mod station;
mod stdio;
mod transactions;

pub use commands::commands;
pub use host::{Host, Places, default_socket};
pub use machine::{Found, Machine};
pub use sampler::Rates;
pub use station::{Measured, Outcome, Station, UNTIL_STOPPED_S, read};
pub(crate) use transactions::line as transactions_line;
