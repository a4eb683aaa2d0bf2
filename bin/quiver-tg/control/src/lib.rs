#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod any_generator;
mod commands;
mod host;
mod job;
mod live;
pub mod make;
mod owner;
mod ports;
pub mod run;
mod sampler;
pub mod schema;
pub mod serve;
mod session;
mod shows;
mod stdio;
pub mod top;
mod transactions;

pub use any_generator::{AnyGenerator, AnyReport};
pub use commands::commands;
pub use host::{Endpoints, Host, default_socket};
pub use sampler::Rates;
pub use session::{Measured, Outcome, Session, UNTIL_STOPPED_S, read};
pub(crate) use transactions::line as transactions_line;
