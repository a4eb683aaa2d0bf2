//! The paths of labels, as commands say them.

use std::fmt::Write as _;
use std::net::IpAddr;

use quiver_control::{Args, Refusal};
use quiver_core::Engine;
use quiver_forwarding::fib::{Family, Fib, FibError, Path, Target};
use quiver_forwarding::out_labels::{LabelMode, OUT_LABELS_MAX, OutLabel, OutLabels, PIPE_TTL};

use crate::state::{fib, table_index};

/// What can stand behind `via` of a label's route.
pub(super) const VIA: &str = "(via (<next-hop:ip> [<interface>] | drop | ip4-lookup-in-table \
    <table4:u32> | ip6-lookup-in-table <table6:u32> | mpls-lookup-in-table <label-table:u32> | \
    l2-input-on <l2:interface> | rx-ip4 <rx4:interface> | rx-ip6 <rx6:interface>) \
    {[weight <:1-65535>] [preference <:u8>] [out-labels <out-label:label>...] [uniform|pipe] \
    [ttl <:1-255>] [exp <:0-7>]})...";

/// What stands at the place of such a path in a document.
pub(super) const ENTRY: &str = "{next-hop, interface, drop, ip4-table: <table4>, ip6-table: \
    <table6>, mpls-table: <label-table>, l2-input-on: <l2>, rx-ip4: <rx4>, rx-ip6: <rx6>, weight, \
    preference, out-labels: <out-label>..., uniform, pipe, ttl, exp}";

/// The labels that a path puts on packets.
pub(crate) fn out_labels(via: &Args<'_>) -> Result<OutLabels, Refusal> {
    let labels = via.all::<u32>("out-label")?;
    let mode = if via.has("uniform") { LabelMode::Uniform } else { LabelMode::Pipe };
    let (ttl, class) = (via.or("ttl", PIPE_TTL)?, via.or("exp", 0u8)?);
    let labels = labels.into_iter().map(|label| OutLabel { label, class, ttl });
    OutLabels::new(mode, labels).ok_or_else(|| {
        via.refuse("out-label", format!("a path has at most {OUT_LABELS_MAX} labels"))
    })
}

/// The small number of the operator's table of a family.
fn ip_table(engine: &Engine, via: &Args<'_>, family: Family, name: &str) -> Result<u32, Refusal> {
    let id = via.get(name)?;
    let index = fib(engine)?.table_index(family, id);
    index.ok_or_else(|| via.refuse(name, FibError::NoTable { family, id }.to_string()))
}

/// One `via` as the FIB takes it.
fn path(engine: &Engine, via: &Args<'_>) -> Result<Path, Refusal> {
    let target = if let Some(next_hop) = via.optional::<IpAddr>("next-hop")? {
        Target::Via { next_hop, interface: via.optional_interface(engine, "interface")? }
    } else if via.has("table4") {
        let (family, name) = (Family::Ip4, "table4");
        Target::LookupIn { family, table: ip_table(engine, via, family, name)? }
    } else if via.has("table6") {
        let (family, name) = (Family::Ip6, "table6");
        Target::LookupIn { family, table: ip_table(engine, via, family, name)? }
    } else if via.has("label-table") {
        Target::LabelLookupIn { table: table_index(engine, via.get("label-table")?)? }
    } else if via.has("l2") {
        Target::FrameRx(via.interface(engine, "l2")?)
    } else if via.has("rx4") {
        Target::InterfaceRx(via.interface(engine, "rx4")?)
    } else if via.has("rx6") {
        Target::InterfaceRx(via.interface(engine, "rx6")?)
    } else {
        Target::Drop
    };
    let path = Path::new(target).labels(out_labels(via)?);
    Ok(path.weight(via.or("weight", 1u32)?).preference(via.or("preference", 0u8)?))
}

/// The paths that a command names.
pub(super) fn paths(engine: &Engine, args: &Args<'_>) -> Result<Vec<Path>, Refusal> {
    args.groups("via").map(|via| path(engine, &via)).collect()
}

/// A path in the words of the command.
pub(crate) fn words(engine: &Engine, fib: &Fib, path: &Path) -> String {
    let name = |id| engine.interface_name(id);
    let mut words = match path.target {
        Target::Via { next_hop, interface: Some(on) }
        | Target::Neighbour { address: next_hop, interface: on } => {
            format!("via {next_hop} {}", name(on))
        }
        Target::Via { next_hop, .. } | Target::Through { next_hop, .. } => {
            format!("via {next_hop}")
        }
        Target::LookupIn { family, table } => {
            let word = if family == Family::Ip4 { "ip4" } else { "ip6" };
            format!("via {word}-lookup-in-table {}", fib.table_id(family, table).unwrap_or(table))
        }
        Target::LabelLookupIn { table } => {
            format!("via mpls-lookup-in-table {}", fib.label_table_id(table).unwrap_or(table))
        }
        Target::FrameRx(on) => format!("via l2-input-on {}", name(on)),
        Target::InterfaceRx(on) => format!("via rx-ip4 {}", name(on)),
        Target::ThroughLabel { label, .. } => format!("via label {label}"),
        Target::NextHopObject(id) => format!("via next-hop-object {}", id.number),
        Target::Feature(hop) => format!("via {} {}", engine.node_name(hop.next), hop.index),
        _ => "via drop".to_owned(),
    };
    if path.weight != 1 {
        let _ = write!(words, " weight {}", path.weight);
    }
    if path.preference != 0 {
        let _ = write!(words, " preference {}", path.preference);
    }
    words + &path.labels.words()
}
