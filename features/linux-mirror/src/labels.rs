//! Routes of labels in Linux, and of routing daemons (LDP, BGP), become routes of labels of the
//! FIB, in label table 0.

use quiver_core::Engine;
use quiver_forwarding::fib::{Family, Fib, FibError, LabelKey, Path, Target};
use quiver_forwarding::out_labels::{LabelMode, OutLabel, OutLabels, PIPE_TTL};
use quiver_netlink::mpls::{LabelHop, LabelStack};

use crate::reader::LabelFacts;
use crate::routes::{Meaning, RouteCounts, share};

/// The label table of Linux here.
const TABLE: u32 = 0;

/// Labels as a path says them; `None` when there are too many. Linux gives them the TTL of the
/// packet, unless the route says another.
pub(crate) fn out_labels(labels: &[u32], ttl: Option<u8>) -> Option<OutLabels> {
    let mode = if ttl.is_some() { LabelMode::Pipe } else { LabelMode::Uniform };
    let out = |label: &u32| OutLabel { ttl: ttl.unwrap_or(PIPE_TTL), ..OutLabel::new(*label) };
    OutLabels::new(mode, labels.iter().map(out))
}

/// The labels of a lightweight tunnel.
pub(crate) fn of_stack(stack: &LabelStack) -> Option<OutLabels> {
    out_labels(&stack.labels, stack.ttl)
}

/// The path of a hop for packets with the label as the last one, or in front of others.
fn path(
    hop: &LabelHop,
    facts: &LabelFacts,
    is_bottom: bool,
    meaning: &Meaning<'_>,
    tables: [u32; 2],
) -> Option<Path> {
    let labels = out_labels(&hop.labels, None)?;
    let mode = if facts.propagates_ttl { LabelMode::Uniform } else { LabelMode::Pipe };
    let labels = OutLabels::new(mode, labels.iter())?;
    let target = match (hop.gateway, is_bottom) {
        (Some(next_hop), _) => {
            Target::Via { next_hop, interface: Some((meaning.interface)(hop.link)?) }
        }
        (None, true) => Target::LookupIn { family: Family::Ip4, table: tables[0] },
        (None, false) => Target::LabelLookupIn { table: tables[1] },
    };
    Some(Path::new(target).labels(labels).weight(share(hop.weight)))
}

/// Take over the routes of labels.
pub(crate) fn take(
    engine: &mut Engine,
    labels: &[(u32, Option<LabelFacts>)],
    meaning: &Meaning<'_>,
    counts: &mut RouteCounts,
) {
    let Some(fib) = engine.get_mut::<Fib>().filter(|_| !labels.is_empty()) else { return };
    let index = match fib.label_table_index(TABLE) {
        Some(index) => Ok(index),
        None => fib.add_label_table(TABLE),
    };
    let main = fib.table_index(Family::Ip4, meaning.main_tables[0]).unwrap_or(0);
    let mut refused = |error: &FibError, label: u32| {
        counts.refused += 1;
        counts.last_refusal = Some(error.about(&format!("label {label}")));
    };
    let index = match index {
        Ok(index) => index,
        Err(error) => return refused(&error, 0),
    };
    for (label, facts) in labels {
        let facts = facts.as_ref().filter(|_| meaning.is_followed);
        for is_bottom in [false, true] {
            let key = LabelKey { label: *label, is_bottom };
            let hops = facts.map(|facts| (facts, facts.hops.iter()));
            let paths: Vec<Path> = hops
                .into_iter()
                .flat_map(|(facts, hops)| {
                    hops.filter_map(move |hop| path(hop, facts, is_bottom, meaning, [main, index]))
                })
                .collect();
            if paths.is_empty() {
                let _ = fib.remove_label_route(index, key, meaning.source); // it may not be there
            } else if let Err(error) = fib.replace_label_route(index, key, meaning.source, &paths) {
                let _ = fib.remove_label_route(index, key, meaning.source);
                refused(&error, *label);
            }
        }
    }
}
