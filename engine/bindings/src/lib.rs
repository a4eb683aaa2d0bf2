#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(missing_docs, clippy::missing_errors_doc)]

mod ahead;
mod bindings;
pub mod control;
mod flags;
mod owner;
mod ports;
mod timeouts;

pub use ahead::prefetch_sessions;
pub use bindings::{
    Binding, Bindings, Key, Limit, Readers, Writer, inside_key, outside_key, subscriber,
};
pub use flags::Flags;
pub use owner::{External, NoSession};
pub use ports::{OutOfPorts, PoolAddress, Ports, Random, Wanted};
pub use timeouts::{Class, TIMEOUT_WORDS, TIMEOUTS_S, Timeouts};

/// An external end, of IPv6 or of IPv4.
pub use quiver_translation::ip6::flow::End;

/// Which remote hosts may send to a binding (RFC 4787 §5, RFC 6146 §3.5.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Filtering {
    /// All.
    #[default]
    EndpointIndependent,
    /// Those that the host has sent something to from the same port.
    AddressDependent,
}

impl Filtering {
    /// Its word in commands.
    pub fn word(self) -> &'static str {
        match self {
            Filtering::EndpointIndependent => "endpoint-independent",
            Filtering::AddressDependent => "address-dependent",
        }
    }
}
