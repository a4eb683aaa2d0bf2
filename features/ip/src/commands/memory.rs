//! What the forwarding tables take, in `show memory`.

use quiver_core::Engine;
use quiver_forwarding::fib::Fib;

/// The rows, and the sum of them.
pub(crate) fn rows(engine: &Engine) -> Vec<(&'static str, u64)> {
    let Some(weight) = engine.get::<Fib>().map(Fib::weight) else { return Vec::new() };
    let mut rows = vec![
        ("forwarding: prefix matches", weight.prefix_match as u64),
        ("forwarding: routes as given", weight.routes as u64),
        ("forwarding: next-hop groups", weight.groups as u64),
        ("forwarding: adjacencies", weight.adjacencies as u64),
    ];
    rows.push(("forwarding, all of it", rows.iter().map(|(_, bytes)| bytes).sum()));
    rows
}
