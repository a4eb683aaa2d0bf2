//! An element of a named set.

use quiver_core::{Engine, InterfaceId};
use quiver_tables::prefix::IpPrefix;

use crate::named_set::Kind;

/// An element of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    Prefix(IpPrefix),
    /// The first and the last port.
    Ports(u16, u16),
    Interface(InterfaceId),
}

impl Element {
    pub const fn kind(self) -> Kind {
        match self {
            Element::Prefix(_) => Kind::Addresses,
            Element::Ports(..) => Kind::Ports,
            Element::Interface(_) => Kind::Interfaces,
        }
    }

    /// In the words of the commands.
    pub fn words(self, engine: &Engine) -> String {
        match self {
            Element::Interface(id) => engine.interface_name(id).to_string(),
            other => other.to_string(),
        }
    }
}

/// A range of ports, in the words of the commands.
pub(crate) fn range(first: u16, last: u16) -> String {
    if first == last { first.to_string() } else { format!("{first}-{last}") }
}

impl std::fmt::Display for Element {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Element::Prefix(prefix) => prefix.fmt(f),
            Element::Ports(first, last) => f.write_str(&range(*first, *last)),
            Element::Interface(id) => write!(f, "interface {}", id.index()),
        }
    }
}
