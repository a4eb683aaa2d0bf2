//! The router that stands by: it gets the sessions, mappings and port blocks that this one makes,
//! so that connections go on there when this one fails. The link is that of
//! [`quiver_standby_sessions`].
//!
//! | file | what |
//! | --- | --- |
//! | `journal.rs` | what the owner writes |
//! | `apply.rs`, `owner_calls.rs` | what the peer tells, done by the owner; the bulk |
//! | `digest.rs` | what both must have the same |

mod apply;
mod digest;
mod journal;
mod owner_calls;

use std::sync::atomic::Ordering;

use quiver_control::Refusal;
use quiver_core::{Engine, NodeId, WorkerId};
use quiver_sessions::OWNER;
use quiver_standby::wire::{GREETING_BYTES, Greeting};
use quiver_standby_sessions::bulk::{CHANGES_PER_CALL, CHANGES_PER_CALL_WITH_BINDINGS};
use quiver_standby_sessions::translator::Translator;
use quiver_standby_sessions::{Texts, texts};

use crate::commands::GROUP;
use crate::config::{Nat44, disabled, slow_path};
use crate::owner::SlowPath;

pub(crate) use journal::Journal;

impl Translator for Nat44 {
    type Node = SlowPath;
    const TEXTS: Texts = texts!("nat44", "NAT44", GROUP, "show nat ha", "show nat44 ha");
    const CHANNEL: u8 = 1;
    const OWNER: WorkerId = OWNER;

    fn node(engine: &Engine) -> Result<NodeId, Refusal> {
        slow_path(engine)
    }

    fn sessions_max(engine: &Engine) -> Result<usize, Refusal> {
        let nat = engine.get::<Nat44>().ok_or_else(disabled)?;
        Ok(nat.enabled()?.sessions)
    }

    fn version(engine: &Engine) -> u64 {
        engine.get::<Nat44>().map_or(0, |nat| nat.version)
    }

    fn greeting(engine: &Engine) -> Greeting {
        engine.get::<Nat44>().map_or([0; GREETING_BYTES], |nat| digest::digest(engine, nat))
    }

    fn places(engine: &Engine) -> usize {
        engine.get::<Nat44>().map_or(0, |nat| nat.shared.places.load(Ordering::Relaxed))
    }

    fn changes_per_call(engine: &Engine) -> usize {
        match engine.get::<Nat44>() {
            Some(nat) if nat.has_bindings => CHANGES_PER_CALL_WITH_BINDINGS,
            _ => CHANGES_PER_CALL,
        }
    }
}
