//! The router that stands by: it gets the sessions that this one makes, and with them their
//! bindings, so that connections go on there when this one fails. The link is that of
//! [`quiver_standby_sessions`].
//!
//! | file | what |
//! | --- | --- |
//! | `journal.rs` | what the owner writes |
//! | `apply.rs` | what the peer tells, done by the owner |
//! | `keeper.rs` | the worker calls; the bulk |
//! | `digest.rs` | what both must have the same |

mod apply;
mod digest;
mod journal;
mod keeper;

use std::sync::atomic::Ordering;

use quiver_control::Refusal;
use quiver_core::{Engine, NodeId, WorkerId};
use quiver_sessions::OWNER;
use quiver_standby::wire::{GREETING_BYTES, Greeting};
use quiver_standby_sessions::bulk::CHANGES_PER_CALL_WITH_BINDINGS;
use quiver_standby_sessions::translator::Translator;
use quiver_standby_sessions::{Texts, texts};

use crate::commands::GROUP;
use crate::config::{Nat64, disabled, slow_path};
use crate::owner::SlowPath;

pub(crate) use journal::Journal;

impl Translator for Nat64 {
    type Node = SlowPath;
    const TEXTS: Texts = texts!("nat64", "NAT64", GROUP, "show nat64 ha");
    const CHANNEL: u8 = 2;
    const OWNER: WorkerId = OWNER;

    fn node(engine: &Engine) -> Result<NodeId, Refusal> {
        slow_path(engine)
    }

    fn sessions_max(engine: &Engine) -> Result<usize, Refusal> {
        let nat = engine.get::<Nat64>().ok_or_else(disabled)?;
        Ok(nat.enabled()?.sessions)
    }

    fn version(engine: &Engine) -> u64 {
        engine.get::<Nat64>().map_or(0, |nat| nat.version)
    }

    fn greeting(engine: &Engine) -> Greeting {
        engine.get::<Nat64>().map_or([0; GREETING_BYTES], |nat| digest::digest(engine, nat))
    }

    fn places(engine: &Engine) -> usize {
        engine.get::<Nat64>().map_or(0, |nat| nat.shared.places.load(Ordering::Relaxed))
    }

    /// Each session needs a binding.
    fn changes_per_call(_: &Engine) -> usize {
        CHANGES_PER_CALL_WITH_BINDINGS
    }
}
