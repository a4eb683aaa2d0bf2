//! What a translator's control thread needs of the engine: tables that it names, workers that it
//! waits for, addresses of interfaces.

use std::net::IpAddr;

use quiver_control::Refusal;
use quiver_core::{Engine, InterfaceId, WorkerId};
use quiver_forwarding::fib::{Family, Fib};
use quiver_forwarding::ip::InterfaceAddresses;

/// An error as the answer to a command.
pub fn refusal(error: impl std::fmt::Display) -> Refusal {
    Refusal::new(error.to_string())
}

/// The small number of a table.
///
/// # Errors
/// There is no such table.
pub fn table_index(engine: &Engine, family: Family, id: u32) -> Result<u32, Refusal> {
    let index = engine.get::<Fib>().and_then(|fib| fib.table_index(family, id));
    index.ok_or_else(|| {
        Refusal::new(format!("there is no {family} table {id}"))
            .remedy(format!("{} table add {id}", family.word()))
    })
}

/// Let a table stay while `who` names it once more, or once less.
pub fn hold_table(engine: &mut Engine, family: Family, id: u32, who: &'static str, held: bool) {
    let Ok(index) = table_index(engine, family, id) else { return };
    let Some(fib) = engine.get_mut::<Fib>() else { return };
    match held {
        true => fib.hold_table(family, index, who),
        false => fib.release_table(family, index, who),
    }
}

/// Wait until every worker has ended the pass that it is in.
///
/// # Errors
/// A worker does not answer.
pub fn wait_for_workers(engine: &mut Engine) -> Result<(), Refusal> {
    for worker in 0..engine.worker_count() {
        engine.wait_for_worker(WorkerId(worker as u16)).map_err(refusal)?;
    }
    Ok(())
}

/// The addresses of an interface, of both families.
pub fn addresses_of(engine: &Engine, id: InterfaceId) -> Vec<IpAddr> {
    let Some(calls) = engine.get::<InterfaceAddresses>() else { return Vec::new() };
    (calls.of)(engine, id).into_iter().map(|(address, _)| address).collect()
}

/// How often addresses of interfaces have changed; it differs after a change.
pub fn address_changes(engine: &mut Engine) -> Option<u64> {
    let calls = engine.get::<InterfaceAddresses>().copied()?;
    Some((calls.changes)(engine))
}
