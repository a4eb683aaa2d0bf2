//! Routes.

use std::fmt::Write as _;
use std::net::IpAddr;

use quiver_control::{
    Args, Command, ConfigWriter, IpPrefix as Written, Job, Output, Refusal, Registry, Work, order,
};
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Family, Fib, Only, Path, RangeAction, RouteView, Source, Target};
use quiver_forwarding::out_labels::{LabelMode, OUT_LABELS_MAX, OutLabel, OutLabels, PIPE_TTL};
use quiver_tables::GroupId;
use quiver_tables::prefix::IpPrefix;

use super::route_range::RangeJob;
use super::{GROUP, fib as fib_of, route_batch, table_of};

/// Prefixes that one command can count.
const COUNT: &str = "<:1-100000000>";

/// What stands at the place of a route in a document.
fn entry(place: &str) -> &'static str {
    let also = "weight, preference, next-hop-table, resolve-via-host, resolve-via-attached, \
                src-lookup, out-labels: <out-label>..., uniform, ttl, exp";
    let path = format!(
        "<drop|unreachable|prohibit|null-send-unreach|null-send-prohibit|local|punt> / <next-hop> \
         / {{interface: <out>, {also}}} / {{next-hop, interface, ip4-table: <table4>, ip6-table: \
         <table6>, rx-ip4: <rx4>, rx-ip6: <rx6>, drop, unreachable, prohibit, null-send-unreach, \
         null-send-prohibit, local, punt, {also}}}"
    );
    format!("{place}: {{count, via: (via: {path})}} with add").leak()
}

pub(crate) fn register(registry: &mut Registry) {
    let syntax = "ip route [add|del|replace] {<prefix> [table <:u32>] [count <:1-100000000>] \
        [(via (<next-hop:ip> [<interface>] | <out:interface> | drop | unreachable | prohibit \
        | null-send-unreach | null-send-prohibit | local | punt \
        | ip4-lookup-in-table <table4:u32> | ip6-lookup-in-table <table6:u32> \
        | rx-ip4 <rx4:interface> | rx-ip6 <rx6:interface>) \
        {[weight <:1-65535>] [preference <:u8>] [next-hop-table <:u32>] [resolve-via-host] \
        [resolve-via-attached] [src-lookup] [out-labels <out-label:label>...] [uniform|pipe] \
        [ttl <:1-255>] [exp <:0-7>]})...]}";
    debug_assert!(syntax.contains(COUNT));
    registry.command(
        Command::new(syntax)
            .entry(order::ROUTES, entry("routes.<prefix>"))
            .entry(order::ROUTES, entry("tables.<table>.routes.<prefix>"))
            .undo("ip route del <prefix> [table <table>] [count <count>]")
            .exchanged("ip route replace", "add", &["prefix", "table"])
            .counted("prefix", "count")
            .usual(&[("add", "add"), ("replace", "replace"), ("count", "1"), ("table", "0")])
            .group(GROUP)
            .help("Add or delete a route, IPv4 or IPv6")
            .details(
                "Several `via` share the traffic by their weights, flow by flow; those with the \
                 lowest preference that can be used do. A path that is added to a route that is \
                 there already joins the others; with `replace` the paths that are named are the \
                 only ones from then on, and no packet is lost. Without one of these words it is \
                 added. A next hop \
                 without an interface is looked up, through up to 8 routes behind each other; \
                 `show ip fib PREFIX` says why a path cannot be used. `del` without `via` takes \
                 the whole route away. `count` does the same for so many consecutive prefixes, \
                 all or none; other sessions go on while it works.",
            )
            .word(
                "next-hop",
                "the neighbour's address; without an interface it is looked up itself",
            )
            .word("out", "an interface, whose hosts are reached directly")
            .word("drop", "packets die silently")
            .word("rx-ip4", "packets are received once more, on this interface")
            .word("rx-ip6", "packets are received once more, on this interface")
            .word("src-lookup", "look the source up in the table, not the destination")
            .word("out-labels", "labels that packets get, the one that is sent first in front")
            .word("uniform", "labels have the TTL and the class of the packet (RFC 3443 §2.2)")
            .word("pipe", "labels have a TTL and a class of their own (the default)")
            .word("ttl", "the TTL of labels; 255 when left out")
            .word("exp", "the traffic class of labels; 0 when left out")
            .word(
                "unreachable",
                "packets die, and their senders are told that the destination is unreachable",
            )
            .word("prohibit", "packets die, and their senders are told that it is prohibited")
            .word("null-send-unreach", "unreachable")
            .word("null-send-prohibit", "prohibit")
            .word("local", "packets are for the router itself")
            .word("punt", "packets are for the host")
            .word("count", "how many consecutive prefixes")
            .word("weight", "share of the traffic, relative to the other paths")
            .word(
                "next-hop-table",
                "the table in which the next hop is looked up, instead of the route's own",
            )
            .word(
                "resolve-via-host",
                "use the path only while there is a route for the next hop alone",
            )
            .word(
                "resolve-via-attached",
                "use the path only while the next hop is a neighbour's address",
            )
            .word("preference", "paths with the lowest that can be used share the traffic")
            .example("ip route add 198.51.100.0/24 via 192.0.2.2")
            .example("ip route 198.51.100.0/24 via 192.0.2.2")
            .example("ip route add table 10 198.51.100.0/24 via 192.0.2.2 e0")
            .example(
                "ip route add 2001:db8:1::/48 table 10 via 2001:db8::2 weight 3 via 2001:db8::3",
            )
            .example("ip route add 16.0.0.0/32 count 1000000 via 192.0.2.2")
            .example("ip route add 203.0.113.0/24 via 198.51.100.1 resolve-via-host")
            .example("ip route add 203.0.113.0/24 via 198.51.100.1 next-hop-table 10")
            .example("ip route add 198.51.100.0/24 via 192.0.2.2 e0 out-labels 100 200")
            .example("ip route add 10.0.0.0/8 via unreachable")
            .example("ip route replace 198.51.100.0/24 via 192.0.2.3")
            .example("ip route del 198.51.100.0/24")
            .run_or_begin(change)
            .run_many("prefix", route_batch::change_many),
    );
}

/// The prefix of a route, which has no bits behind its length.
pub(super) fn checked(args: &Args<'_>, written: Written) -> Result<IpPrefix, Refusal> {
    if written.has_host_bits() {
        let what = format!("{written} has bits set behind its length");
        return Err(args
            .refuse("prefix", what)
            .remedy(format!("{} would be right", written.network())));
    }
    Ok(IpPrefix::new(written.address, written.length))
}

/// The paths that a command names.
pub(super) fn paths(engine: &Engine, args: &Args<'_>) -> Result<Vec<Path>, Refusal> {
    args.groups("via").map(|via| path(engine, &via)).collect()
}

fn change(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let written: Written = args.get("prefix")?;
    let prefix = checked(args, written)?;
    let table = table_of(engine, args, Family::of(written.address), "table")?;
    let (count, mut paths) = (args.or("count", 1u64)?, paths(engine, args)?);
    if count == 1 {
        make_neighbours(fib_of(engine)?, prefix, &mut paths);
    }
    let fib = engine.get_mut::<Fib>().ok_or_else(super::busy)?;
    if count > 1 {
        let action = match (!args.has("del"), paths.is_empty()) {
            (true, _) if args.has("replace") => RangeAction::Replace(paths),
            (true, _) => RangeAction::Add(paths),
            (false, false) => RangeAction::RemovePaths(paths),
            (false, true) => RangeAction::Remove,
        };
        let range = fib.begin_range(table, prefix, count, Source::Static, action);
        let range = range.map_err(|error| Refusal::of_table(engine, error))?;
        return Ok(Work::Begun(Box::new(RangeJob::new(prefix, range)) as Box<dyn Job<Engine>>));
    }
    let done = if args.has("replace") {
        fib.replace_route(table, prefix, Source::Static, &paths)
    } else if !args.has("del") {
        fib.add_route(table, prefix, Source::Static, &paths)
    } else if paths.is_empty() {
        fib.remove_route(table, prefix, Source::Static)
    } else {
        fib.remove_paths(table, prefix, Source::Static, &paths)
    };
    done.map_err(|error| Refusal::of_table(engine, error))?;
    Ok(Work::Done(Output::none()))
}

/// One host on an interface with neighbours is one of them: the host itself is the next hop.
fn make_neighbours(fib: &Fib, prefix: IpPrefix, paths: &mut [Path]) {
    let host = match prefix {
        IpPrefix::V4(prefix) if prefix.len() == 32 => IpAddr::from(prefix.first().to_be_bytes()),
        IpPrefix::V6(prefix) if prefix.len() == 128 => IpAddr::from(prefix.first().to_be_bytes()),
        _ => return,
    };
    for path in paths {
        if let Target::Attached(interface) = path.target
            && has_neighbours(fib, interface)
        {
            path.target = Target::Via { next_hop: host, interface: Some(interface) };
        }
    }
}

fn has_neighbours(fib: &Fib, interface: InterfaceId) -> bool {
    fib.interface(interface).is_some_and(|info| info.mac.is_some())
}

/// Does a path mean something else for one host?
pub(super) fn depends_on_prefix(engine: &Engine, paths: &[Path]) -> bool {
    let Ok(fib) = fib_of(engine) else { return true };
    paths.iter().any(|path| matches!(path.target, Target::Attached(on) if has_neighbours(fib, on)))
}

fn next(prefix: IpPrefix) -> Option<IpPrefix> {
    match prefix {
        IpPrefix::V4(prefix) => prefix.next().map(IpPrefix::V4),
        IpPrefix::V6(prefix) => prefix.next().map(IpPrefix::V6),
    }
}

/// One `via` as the FIB takes it.
fn path(engine: &Engine, via: &Args<'_>) -> Result<Path, Refusal> {
    let interface = via.optional_interface(engine, "interface")?;
    let target = if let Some(next_hop) = via.optional::<IpAddr>("next-hop")? {
        if interface.is_none() {
            looked_up(engine, via, next_hop)?
        } else {
            Target::Via { next_hop, interface }
        }
    } else if via.has("table4") {
        looked_up_in(via, Family::Ip4, table_of(engine, via, Family::Ip4, "table4")?)
    } else if via.has("table6") {
        looked_up_in(via, Family::Ip6, table_of(engine, via, Family::Ip6, "table6")?)
    } else if via.has("rx4") {
        Target::InterfaceRx(via.interface(engine, "rx4")?)
    } else if via.has("rx6") {
        Target::InterfaceRx(via.interface(engine, "rx6")?)
    } else if via.has("drop") {
        Target::Drop
    } else if via.has("unreachable") || via.has("null-send-unreach") {
        Target::Unreachable
    } else if via.has("prohibit") || via.has("null-send-prohibit") {
        Target::Prohibit
    } else if via.has("local") {
        Target::Local
    } else if via.has("punt") {
        Target::Punt
    } else {
        Target::Attached(via.interface(engine, "out")?)
    };
    let is_looked_up =
        matches!(target, Target::Via { interface: None, .. } | Target::Through { .. });
    for word in ["next-hop-table", "resolve-via-host", "resolve-via-attached"] {
        if via.has(word) && !is_looked_up {
            let what = format!(
                "`{word}` says how a next hop is looked up, but this path needs no look-up"
            );
            return Err(via.refuse(word, what).remedy("leave it out, or the interface"));
        }
    }
    let is_table = matches!(target, Target::LookupIn { .. } | Target::SourceLookupIn { .. });
    if via.has("src-lookup") && !is_table {
        let what =
            "`src-lookup` says that a table is asked for the source, but this path names no table";
        return Err(via.refuse("src-lookup", what).remedy("ip4-lookup-in-table N src-lookup"));
    }
    let labels = out_labels(via)?;
    if !labels.is_empty() && !matches!(target, Target::Via { .. } | Target::Through { .. }) {
        let what = "labels are put on packets to a next hop, but this path has none";
        return Err(via.refuse("out-labels", what).remedy("via 192.0.2.2 e0 out-labels 100"));
    }
    let path = Path::new(target).labels(labels);
    Ok(path.weight(via.or("weight", 1u32)?).preference(via.or("preference", 0u8)?))
}

/// The labels that a path puts on packets.
fn out_labels(via: &Args<'_>) -> Result<OutLabels, Refusal> {
    let labels = via.all::<u32>("out-label")?;
    for word in ["uniform", "pipe", "ttl", "exp"] {
        if labels.is_empty() && via.has(word) {
            let what = format!("`{word}` says what labels look like, but this path has none");
            return Err(via.refuse(word, what).remedy("out-labels 100"));
        }
    }
    let mode = if via.has("uniform") { LabelMode::Uniform } else { LabelMode::Pipe };
    let (ttl, class) = (via.or("ttl", PIPE_TTL)?, via.or("exp", 0u8)?);
    let labels = labels.into_iter().map(|label| OutLabel { label, class, ttl });
    OutLabels::new(mode, labels).ok_or_else(|| {
        let what = format!("a path has at most {OUT_LABELS_MAX} labels");
        via.refuse("out-label", what)
    })
}

/// A path that looks the destination up in a table, or the source.
fn looked_up_in(via: &Args<'_>, family: Family, table: u32) -> Target {
    match via.has("src-lookup") {
        true => Target::SourceLookupIn { family, table },
        false => Target::LookupIn { family, table },
    }
}

/// A next hop that the FIB says how to reach.
fn looked_up(engine: &Engine, via: &Args<'_>, next_hop: IpAddr) -> Result<Target, Refusal> {
    let table = match via.has("next-hop-table") {
        true => Some(table_of(engine, via, Family::of(next_hop), "next-hop-table")?),
        false => None,
    };
    let only = match (via.has("resolve-via-host"), via.has("resolve-via-attached")) {
        (true, true) => {
            let what = "a path is resolved via a host or via what is attached, not both";
            return Err(via.refuse("resolve-via-attached", what).remedy("leave one out"));
        }
        (true, false) => Some(Only::Host),
        (false, true) => Some(Only::Attached),
        (false, false) => None,
    };
    Ok(Path::resolved(next_hop, table, only).target)
}

/// A path in the words of the command.
pub(crate) fn path_words(engine: &Engine, fib: &Fib, prefix: IpPrefix, path: &Path) -> String {
    let mut words = match path.target {
        Target::Via { next_hop, interface: Some(interface) }
        | Target::Neighbour { address: next_hop, interface } => {
            format!("via {next_hop} {}", engine.interface_name(interface))
        }
        Target::Via { next_hop, interface: None } => format!("via {next_hop}"),
        Target::Through { next_hop, table, only } => {
            let family = Family::of(next_hop);
            let table = table.map_or(String::new(), |index| match fib.table_id(family, index) {
                Some(id) => format!(" next-hop-table {id}"),
                None => " in a table of that feature".to_owned(),
            });
            let only = match only {
                None => "",
                Some(Only::Host) => " resolve-via-host",
                Some(Only::Attached) => " resolve-via-attached",
            };
            format!("via {next_hop}{table}{only}")
        }
        Target::Attached(interface) => format!("via {}", engine.interface_name(interface)),
        Target::Broadcast { interface, forward } => {
            let forward = if forward { "" } else { " own-hosts" };
            format!("broadcast {}{forward}", engine.interface_name(interface))
        }
        Target::Local | Target::InterfaceAddress => "via local".to_owned(),
        Target::Drop => "via drop".to_owned(),
        Target::Unreachable => "via unreachable".to_owned(),
        Target::Prohibit => "via prohibit".to_owned(),
        Target::Punt => "via punt".to_owned(),
        Target::LookupIn { family, table } => {
            let word = if family == Family::Ip4 { "ip4" } else { "ip6" };
            format!("via {word}-lookup-in-table {}", fib.table_id(family, table).unwrap_or(table))
        }
        Target::SourceLookupIn { family, table } => {
            let word = if family == Family::Ip4 { "ip4" } else { "ip6" };
            format!(
                "via {word}-lookup-in-table {} src-lookup",
                fib.table_id(family, table).unwrap_or(table)
            )
        }
        Target::LabelLookupIn { table } => {
            format!("via mpls-lookup-in-table {}", fib.label_table_id(table).unwrap_or(table))
        }
        Target::ThroughLabel { label, .. } => format!("via label {label}"),
        Target::FrameRx(interface) => {
            format!("via l2-input-on {}", engine.interface_name(interface))
        }
        Target::InterfaceRx(interface) => {
            format!(
                "via rx-{} {}",
                if prefix.is_ip6() { "ip6" } else { "ip4" },
                engine.interface_name(interface)
            )
        }
        Target::NextHopObject(id) => format!("via next-hop-object {}", id.number),
        Target::Feature(hop) => format!("via {} {}", engine.node_name(hop.next), hop.index),
    };
    if path.weight != 1 {
        let _ = write!(words, " weight {}", path.weight);
    }
    if path.preference != 0 {
        let _ = write!(words, " preference {}", path.preference);
    }
    words + &path.labels.words()
}

/// The part of `show running-config`: consecutive prefixes with the same paths are one command.
pub(crate) fn begin_config() -> impl FnMut(&Engine, &mut ConfigWriter, usize) -> bool {
    let mut writing = Writing::default();
    move |engine, config, most| writing.slice(engine, config, most)
}

/// Routes that are being written, family by family and table by table.
#[derive(Default)]
struct Writing {
    /// Tables of both families: which one, its number and its place.
    tables: Option<Vec<(Family, u32, u32)>>,
    at: usize,
    after: Option<IpPrefix>,
    run: Option<Run>,
}

/// Consecutive prefixes of a table with the same paths.
struct Run {
    first: IpPrefix,
    last: IpPrefix,
    count: u64,
    group: GroupId,
}

impl Writing {
    /// Look at so many routes more. Returns whether those were all.
    fn slice(&mut self, engine: &Engine, config: &mut ConfigWriter, most: usize) -> bool {
        let Some(fib) = engine.get::<Fib>() else { return true };
        let tables = self.tables.get_or_insert_with(|| {
            let of =
                |family| fib.tables(family).into_iter().map(move |(id, index)| (family, id, index));
            of(Family::Ip4).chain(of(Family::Ip6)).collect()
        });
        let mut left = most;
        while let Some((family, id, index)) = tables.get(self.at).copied() {
            let is_there = fib.table_index(family, id) == Some(index);
            let mut looked_at = 0;
            for best in fib.routes(family, index, self.after).take(if is_there { left } else { 0 })
            {
                looked_at += 1;
                self.after = Some(best.prefix);
                let Some(route) = fib.of_source(index, best, Source::Static) else { continue };
                match &mut self.run {
                    Some(run)
                        if run.group == route.group && next(run.last) == Some(route.prefix) =>
                    {
                        (run.last, run.count) = (route.prefix, run.count + 1);
                    }
                    run => {
                        let (prefix, group) = (route.prefix, route.group);
                        let new = Run { first: prefix, last: prefix, count: 1, group };
                        write_run(engine, fib, config, (id, index), run.replace(new));
                    }
                }
            }
            left -= looked_at;
            if left == 0 {
                return false;
            }
            write_run(engine, fib, config, (id, index), self.run.take());
            (self.at, self.after) = (self.at + 1, None);
        }
        true
    }
}

fn write_run(
    engine: &Engine,
    fib: &Fib,
    config: &mut ConfigWriter,
    (id, index): (u32, u32),
    run: Option<Run>,
) {
    let Some(run) = run else { return };
    let first =
        fib.route(index, run.first).into_iter().find(|route| route.source == Source::Static);
    // One that was deleted meanwhile is left out, and those behind it with it.
    if let Some(first) = first {
        write_route(engine, fib, config, id, &first, run.count);
    }
}

fn write_route(
    engine: &Engine,
    fib: &Fib,
    config: &mut ConfigWriter,
    table: u32,
    route: &RouteView<'_>,
    count: u64,
) {
    let mut words = format!("ip route add {}", route.prefix);
    if table != 0 {
        let _ = write!(words, " table {table}");
    }
    if count > 1 {
        let _ = write!(words, " count {count}");
    }
    // In the order of their words: that of the numbers of interfaces is another after a restart.
    let mut paths: Vec<String> =
        route.paths.iter().map(|path| path_words(engine, fib, route.prefix, path)).collect();
    paths.sort_unstable();
    config.command(format_args!("{words} {}", paths.join(" ")));
}
