//! What the control thread keeps: per interface what it advertises and how far it is, and the
//! routers that were heard.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use quiver_core::InterfaceId;
use quiver_core::control::reactor::Alarm;
use quiver_core::jitter::Jitter;

use crate::config::RaConfig;
use crate::message::{Gone, Own};
use crate::neighbor_routers::Routers;

/// Answers to single hosts that wait for their moment, on one interface.
pub const ANSWERS_WAITING_MAX: usize = 256;

/// Counts of one interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Advertisements to all nodes.
    pub sent: u64,
    /// Advertisements to single hosts.
    pub sent_unicast: u64,
    /// Advertisements that no worker had room for.
    pub not_sent: u64,
    /// Solicitations heard.
    pub solicitations: u64,
    /// Solicitations not answered: too many wait.
    pub unanswered: u64,
    /// Advertisements of other routers.
    pub advertisements: u64,
    /// Those that contradict ours (RFC 4861 §6.2.7).
    pub inconsistent: u64,
}

/// How far advertising on an interface is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Nothing is sent.
    #[default]
    Silent,
    /// Advertisements are sent.
    Advertising {
        /// Of the quick beginning, so many are left.
        initial_left: u8,
        /// When the next one to all nodes is sent.
        next_ns: u64,
        /// What the last one was made of.
        own: Own,
        /// Prefixes that have just gone.
        gone: Vec<Gone>,
        /// Hosts that get an answer of their own, and when.
        answers: Vec<(u64, Ipv6Addr)>,
    },
    /// The last ones are sent, which say that the router is none any more.
    Ceasing {
        /// So many are left.
        left: u8,
        /// When the next one is sent.
        next_ns: u64,
        /// What they are made of.
        own: Own,
    },
}

impl Phase {
    /// When something is to be done.
    pub fn due_ns(&self) -> Option<u64> {
        match self {
            Phase::Silent => None,
            Phase::Advertising { next_ns, answers, .. } => {
                let first = answers.iter().map(|(at, _)| *at).min();
                Some(first.map_or(*next_ns, |at| at.min(*next_ns)))
            }
            Phase::Ceasing { next_ns, .. } => Some(*next_ns),
        }
    }

    /// The word for it.
    pub fn word(&self) -> &'static str {
        match self {
            Phase::Silent => "silent",
            Phase::Advertising { .. } => "advertising",
            Phase::Ceasing { .. } => "ceasing",
        }
    }
}

/// One interface.
#[derive(Clone, Debug, Default)]
pub struct Advertiser {
    /// What is configured.
    pub config: RaConfig,
    /// How far it is.
    pub phase: Phase,
    /// When the last one to all nodes was sent.
    pub last_ns: Option<u64>,
    /// Counts.
    pub counts: Counts,
}

/// All of it.
pub struct RaState {
    /// Interfaces on which something is configured or was heard.
    pub interfaces: BTreeMap<InterfaceId, Advertiser>,
    /// Other routers.
    pub routers: Routers,
    /// For delays.
    pub jitter: Jitter,
    /// Fires when the next thing is to be said.
    pub alarm: Alarm,
}

impl RaState {
    /// Nothing is configured.
    pub fn new() -> RaState {
        let (interfaces, routers) = (BTreeMap::new(), Routers::default());
        RaState { interfaces, routers, jitter: Jitter::random(), alarm: Alarm::default() }
    }
}
