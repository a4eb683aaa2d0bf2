//! The router that stands by: it gets the sessions, mappings and port blocks that this one makes,
//! so that connections go on there when this one fails.
//!
//! | file | what |
//! | --- | --- |
//! | `change.rs` | a change, as a record of 41 bytes |
//! | `journal.rs` | what the owner writes |
//! | `apply.rs`, `owner_calls.rs` | what the peer tells, done by the owner; the bulk |
//! | `state.rs`, `state/turn.rs` | the link, on the control thread ([`quiver_standby`]) |
//! | `digest.rs` | what both must have the same |
//! | `commands.rs`, `shows.rs`, `metrics.rs` | what an operator says and sees |

mod apply;
mod change;
pub(crate) mod commands;
mod digest;
mod journal;
mod metrics;
mod owner_calls;
mod shows;
mod state;

use quiver_core::Engine;

pub(crate) use journal::{Feed, Journal};
pub(crate) use state::forget;

/// Begin without a link.
pub(crate) fn start(engine: &mut Engine) {
    engine.insert(state::Standby::default());
    engine.on_turn(state::turn);
    metrics::start(engine);
}
