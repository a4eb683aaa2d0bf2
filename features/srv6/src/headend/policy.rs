//! What a policy is, on the control thread: what it does with packets, and its segment lists.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use quiver_control::Refusal;
use quiver_core::Engine;
use quiver_forwarding::fib::FibError;
use quiver_tables::GroupId;
use quiver_wire::srh::Form;

use super::Kind;

/// What a policy does with packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behavior {
    /// H.Encaps, or its reduced form.
    Encaps(Form),
    /// H.Insert, or its reduced form.
    Insert(Form),
}

impl Behavior {
    /// The words of commands.
    pub const WORDS: [(&'static str, Behavior); 4] = [
        ("encap", Behavior::Encaps(Form::Full)),
        ("encap.red", Behavior::Encaps(Form::Reduced)),
        ("insert", Behavior::Insert(Form::Full)),
        ("insert.red", Behavior::Insert(Form::Reduced)),
    ];

    /// Its word.
    pub fn word(self) -> &'static str {
        Behavior::WORDS.iter().find(|(_, known)| *known == self).map_or("", |(word, _)| word)
    }

    /// The kinds of packets that it takes.
    pub fn kinds(self) -> &'static [Kind] {
        match self {
            Behavior::Encaps(_) => &[Kind::Ip6, Kind::Ip4, Kind::L2, Kind::Binding],
            Behavior::Insert(_) => &[Kind::Ip6, Kind::Binding],
        }
    }

    /// The node that packets of a kind go to.
    pub fn node(self, kind: Kind) -> &'static str {
        kind.node(matches!(self, Behavior::Encaps(_)))
    }
}

/// What an operator says of a segment list.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub path: Vec<Ipv6Addr>,
    pub weight: u32,
}

/// A segment list of a policy.
#[derive(Debug)]
pub(super) struct List {
    pub path: Vec<Ipv6Addr>,
    pub weight: u32,
    pub made: Made,
    /// What entries counted that it had before.
    pub past: [u64; 2],
}

/// What was made of a list for workers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    /// The entry for packets that are steered.
    pub entry: u32,
    /// The entry for packets to the binding SID, where that is another.
    pub bound: Option<u32>,
    /// The way to the first segment.
    pub group: GroupId,
}

impl Made {
    /// The entry for packets of a kind.
    pub fn entry(&self, kind: Kind) -> u32 {
        if kind == Kind::Binding { self.bound.unwrap_or(self.entry) } else { self.entry }
    }
}

/// A policy.
#[derive(Debug)]
pub(super) struct Policy {
    pub behavior: Behavior,
    /// A copy to every list?
    pub spray: bool,
    /// Small number of the table of the binding SID, in which first segments are looked up.
    pub table: u32,
    /// The key of its HMAC.
    pub hmac: Option<u32>,
    /// The source of its outer headers, when it has one of its own.
    pub source: Option<Ipv6Addr>,
    /// By number.
    pub lists: BTreeMap<u32, List>,
    /// Its places in the slots of spray, by kind.
    pub slot: u32,
    /// What lists counted that are gone.
    pub past: [u64; 2],
}

/// A policy as an operator asks for it.
pub(super) struct New {
    pub behavior: Behavior,
    pub spray: bool,
    /// Small number.
    pub table: u32,
    pub hmac: Option<u32>,
    pub source: Option<Ipv6Addr>,
    pub list: Wanted,
}

/// There is no such policy.
pub(super) fn no_policy(bsid: Ipv6Addr) -> Refusal {
    Refusal::new(format!("there is no SR policy with binding SID {bsid}"))
        .remedy("`show sr policies`")
}

/// A refusal of the FIB, where a route means the policy.
pub(super) fn refusal(engine: &Engine, bsid: Ipv6Addr, error: FibError) -> Refusal {
    Refusal::of_table(engine, error.about(&format!("SR policy {bsid}")))
}

/// There is no such list.
pub(super) fn no_list(bsid: Ipv6Addr, number: u32) -> Refusal {
    Refusal::new(format!("SR policy {bsid} has no segment list {number}"))
        .remedy(format!("`show sr policies {bsid}` lists them"))
}
