//! Which frames of a port a sub-interface takes.

use std::fmt;

use quiver_core::graph::interface::Encapsulation;
use quiver_wire::vlan::VlanId;

use super::frame::TagType;

/// A tag's VLAN as a sub-interface wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Vid {
    /// Whichever.
    Any,
    /// This one.
    Exactly(VlanId),
}

/// Which frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Matching {
    /// By their tags.
    Tagged {
        /// Kind of the first tag.
        kind: TagType,
        /// The first tag.
        outer: Vid,
        /// The second tag, a customer tag.
        inner: Option<Vid>,
        /// Only with these tags and no more.
        exact: bool,
    },
    /// Those without a tag.
    Untagged,
    /// Those that nothing else takes.
    Default,
}

impl Matching {
    /// `dot1q ID exact-match`: what a sub-interface takes of which nothing is said.
    pub fn plain(vlan: VlanId) -> Matching {
        let outer = Vid::Exactly(vlan);
        Matching::Tagged { kind: TagType::Dot1q, outer, inner: None, exact: true }
    }

    /// The bytes that its frames carry behind their addresses; `None` when not all carry the same.
    pub fn encapsulation(self) -> Option<Encapsulation> {
        let tag = |kind: TagType, vlan: VlanId| {
            let ([a, b], [c, d]) = (kind.ether_type().0.to_be_bytes(), vlan.get().to_be_bytes());
            [a, b, c, d]
        };
        match self {
            Matching::Untagged => Some(Encapsulation::default()),
            Matching::Tagged { kind, outer: Vid::Exactly(outer), inner: None, exact: true } => {
                Encapsulation::new(&tag(kind, outer))
            }
            Matching::Tagged {
                kind,
                outer: Vid::Exactly(outer),
                inner: Some(Vid::Exactly(inner)),
                exact: true,
            } => Encapsulation::new(&[tag(kind, outer), tag(TagType::Dot1q, inner)].concat()),
            _ => None,
        }
    }

    /// The same place in the table of a port: two that differ in `exact` only contradict each
    /// other.
    pub fn place(self) -> Matching {
        match self {
            Matching::Tagged { kind, outer, inner, .. } => {
                Matching::Tagged { kind, outer, inner, exact: false }
            }
            other => other,
        }
    }
}

impl fmt::Display for Vid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Vid::Any => f.write_str("any"),
            Vid::Exactly(vlan) => vlan.fmt(f),
        }
    }
}

impl fmt::Display for TagType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TagType::Dot1q => "dot1q",
            TagType::Dot1ad => "dot1ad",
        })
    }
}

/// As the command has it.
impl fmt::Display for Matching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, outer, inner, exact) = match self {
            Matching::Untagged => return f.write_str("untagged"),
            Matching::Default => return f.write_str("default"),
            Matching::Tagged { kind, outer, inner, exact } => (kind, outer, inner, exact),
        };
        write!(f, "{kind} {outer}")?;
        if let Some(inner) = inner {
            write!(f, " inner-dot1q {inner}")?;
        }
        if *exact { f.write_str(" exact-match") } else { Ok(()) }
    }
}
