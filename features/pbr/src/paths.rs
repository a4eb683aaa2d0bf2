//! Paths in the words of `ip route`.

use std::fmt::Write as _;
use std::net::IpAddr;

use quiver_control::{Args, Refusal};
use quiver_core::Engine;
use quiver_forwarding::fib::{Family, Fib, FibError, Path, Target};

/// One `via`.
pub(crate) fn path(engine: &Engine, fib: &Fib, via: &Args<'_>) -> Result<Path, Refusal> {
    let table = |family, name: &str| {
        let id: u32 = via.get(name)?;
        let index = fib.table_index(family, id);
        index.ok_or_else(|| via.refuse(name, FibError::NoTable { family, id }.to_string()))
    };
    let target = if let Some(next_hop) = via.optional::<IpAddr>("next-hop")? {
        let interface = via.optional_interface(engine, "interface")?;
        match via.has("next-hop-table") {
            true if interface.is_some() => {
                let what = "a next hop on an interface is looked up in no table";
                return Err(via
                    .refuse("next-hop-table", what)
                    .remedy("leave it out, or the interface"));
            }
            true => {
                Path::resolved(next_hop, Some(table(Family::of(next_hop), "next-hop-table")?), None)
                    .target
            }
            false => Target::Via { next_hop, interface },
        }
    } else if via.has("table4") {
        Target::LookupIn { family: Family::Ip4, table: table(Family::Ip4, "table4")? }
    } else if via.has("table6") {
        Target::LookupIn { family: Family::Ip6, table: table(Family::Ip6, "table6")? }
    } else if via.has("drop") {
        Target::Drop
    } else if via.has("unreachable") {
        Target::Unreachable
    } else if via.has("prohibit") {
        Target::Prohibit
    } else {
        Target::Attached(via.interface(engine, "out")?)
    };
    Ok(Path::new(target).weight(via.or("weight", 1u32)?).preference(via.or("preference", 0u8)?))
}

/// A path in those words.
pub(crate) fn words(engine: &Engine, fib: &Fib, path: &Path) -> String {
    let id = |family, index| fib.table_id(family, index).unwrap_or(index);
    let mut words = match path.target {
        Target::Via { next_hop, interface: Some(interface) } => {
            format!("via {next_hop} {}", engine.interface_name(interface))
        }
        Target::Via { next_hop, interface: None } => format!("via {next_hop}"),
        Target::Through { next_hop, table: Some(index), .. } => {
            format!("via {next_hop} next-hop-table {}", id(Family::of(next_hop), index))
        }
        Target::Through { next_hop, .. } => format!("via {next_hop}"),
        Target::Attached(interface) => format!("via {}", engine.interface_name(interface)),
        Target::LookupIn { family: Family::Ip4, table } => {
            format!("via ip4-lookup-in-table {}", id(Family::Ip4, table))
        }
        Target::LookupIn { family: Family::Ip6, table } => {
            format!("via ip6-lookup-in-table {}", id(Family::Ip6, table))
        }
        Target::Unreachable => "via unreachable".to_owned(),
        Target::Prohibit => "via prohibit".to_owned(),
        _ => "via drop".to_owned(),
    };
    if path.weight != 1 {
        let _ = write!(words, " weight {}", path.weight);
    }
    if path.preference != 0 {
        let _ = write!(words, " preference {}", path.preference);
    }
    words
}
