//! Refused memory: the router keeps a reserve, ends what it is at with it, and makes nothing more
//! until the reserve is there again.

use quiver_control::{Refusal, Registry, SharedCommands};
use quiver_core::Engine;
use quiver_core::memory::reserve::{RESERVE_BYTES, Reserve};

#[global_allocator]
static MEMORY: Reserve = Reserve::new();

/// How often the router looks whether the reserve can be taken again.
const LOOK_NS: u64 = 500_000_000;

/// Add the reserve to `show memory`.
pub fn register(registry: &mut Registry) {
    registry.memory(|_| vec![("reserve", MEMORY.held_bytes() as u64)]);
}

/// Take the reserve: first of all, so that a start that is refused memory says so.
///
/// # Errors
/// When there is no memory for it.
pub fn take_reserve() -> anyhow::Result<()> {
    let mebibytes = RESERVE_BYTES >> 20;
    anyhow::ensure!(MEMORY.hold(), "no memory for a reserve of {mebibytes} MiB");
    Ok(())
}

/// Watch over the reserve.
///
/// # Errors
/// When the start has used it up.
pub fn keep_reserve(engine: &mut Engine, commands: &SharedCommands) -> anyhow::Result<()> {
    let mebibytes = RESERVE_BYTES >> 20;
    take_reserve()?;
    commands.borrow_mut().before_additions(|_| match MEMORY.is_short() {
        true => Err(Refusal::new("the router is short of memory and makes nothing more")
            .remedy("delete something, or raise the limit of its memory")),
        false => Ok(()),
    });
    let mut seen = 0;
    engine.every(LOOK_NS, move |_| {
        if !MEMORY.is_short() {
            return;
        }
        if seen != MEMORY.releases() {
            seen = MEMORY.releases();
            tracing::error!(
                "memory was refused: the reserve of {mebibytes} MiB is in use, nothing more is made"
            );
        }
        if MEMORY.hold() {
            tracing::warn!("the reserve of {mebibytes} MiB is there again");
        }
    });
    Ok(())
}
