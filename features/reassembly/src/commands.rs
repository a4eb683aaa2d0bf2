//! Commands of reassembly.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use quiver_control::{
    Args, Cell, Column, Command, ConfigWriter, Output, Refusal, Registry, Table, Value, order,
};
use quiver_core::Engine;
use quiver_core::control::interfaces::Interface;
use quiver_core::memory::packet::handover::Handover;
use quiver_forwarding::requests::ReassemblyRequest;
use quiver_wire::IpProtocol;

use crate::config::{self, Detail, OPERATOR, Settings};
use crate::tables::Kind;

const GROUP: &str = "IP reassembly";

/// Register them.
pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("set interface reassembly <interface> [full|virtual] [on|off|ip4|ip6]")
            .entry(
                order::FEATURES,
                "interfaces.<interface>.reassembly.<full|virtual>: <on|ip4|ip6>",
            )
            .undo("set interface reassembly <interface> [full] [virtual] off")
            .replaces(&["interface", "full", "virtual"])
            .group(GROUP)
            .help("Put fragments together that arrive on an interface")
            .details(
                "In full, packets go on whole; this is for features that need to see all of a \
                 packet. Virtually, fragments go on as they are, once the first of them says what \
                 layer 4 they belong to; this is for features that need ports. Packets to the \
                 router itself are always put together.",
            )
            .example("set interface reassembly e0 on")
            .example("set interface reassembly e0 virtual ip4")
            .run(enable),
    );
    registry.command(
        Command::new(
            "set ip reassembly [full|virtual] [ip4|ip6] \
             { [timeout <:1-600000>] [max-reassemblies <:1-65536>] [max-reassembly-length \
             <:1-8192>] [expire-walk-interval <:10-60000>] }",
        )
        .entry(
            order::FEATURES,
            "ip.reassembly.<full|virtual>.<ip4|ip6>: some{timeout, max-reassemblies, \
             max-reassembly-length, expire-walk-interval}",
        )
        .undo(
            "<full!> set ip reassembly full [ip4] [ip6] timeout 60000 \
             max-reassemblies 1024 max-reassembly-length 128 expire-walk-interval 100",
        )
        .undo(
            "<virtual!> set ip reassembly virtual [ip4] [ip6] timeout 2000 \
             max-reassemblies 1024 max-reassembly-length 128 expire-walk-interval 100",
        )
        .amends(&["full", "virtual", "ip4", "ip6"])
        .group(GROUP)
        .help("Say how long and how many packets wait for their fragments")
        .details(
            "Times are in milliseconds, packets are those of one worker, lengths are counted in \
             fragments. Without a kind or family, it holds for both. When there are more packets, \
             the oldest makes room.",
        )
        .example("set ip reassembly full ip6 timeout 60000")
        .example("set ip reassembly virtual max-reassemblies 4096 max-reassembly-length 45")
        .run(set),
    );
    registry.command(
        Command::new("set ip reassembly max-buffers <:64-16777216|default>")
            .entry(order::FEATURES, "ip.reassembly.max-buffers: <max-buffers>")
            .undo("set ip reassembly max-buffers default")
            .replaces(&[])
            .group(GROUP)
            .help("Say how many buffers fragments that wait may hold, all together")
            .example("set ip reassembly max-buffers 8192")
            .run(|engine: &mut Engine, args| {
                let buffers: u32 = match args.get("max-buffers")? {
                    Value::Word(_) => config::buffers_default(engine) as u32,
                    _ => args.get("max-buffers")?,
                };
                let total = engine.pool().total();
                if buffers as usize > total / 2 {
                    let what = format!(
                        "{buffers} buffers are more than half of the {total} that there are"
                    );
                    return Err(args
                        .refuse("max-buffers", what)
                        .remedy("buffers { buffers-per-numa N }"));
                }
                config::set_buffers(engine, buffers as usize)?;
                Ok(Output::none())
            }),
    );
    for (kind, syntax) in [
        (Kind::Full4, "show ip4-full-reassembly [details]"),
        (Kind::Full6, "show ip6-full-reassembly [details]"),
        (Kind::Virtual4, "show ip4-sv-reassembly [details]"),
        (Kind::Virtual6, "show ip6-sv-reassembly [details]"),
    ] {
        registry.command(
            Command::new(syntax)
                .group(GROUP)
                .help("Show the packets that wait for fragments, and their limits")
                .run(move |engine: &mut Engine, args| show(engine, kind, args.has("details"))),
        );
    }
}

/// The kinds that a command names; all without a word about it.
fn kinds(args: &Args<'_>) -> impl Iterator<Item = Kind> {
    let [full, shallow, four, six] = ["full", "virtual", "ip4", "ip6"].map(|word| args.has(word));
    Kind::ALL.into_iter().filter(move |kind| {
        let is_kind = if kind.is_virtual() { shallow || !full } else { full || !shallow };
        is_kind && if kind.is_six() { six || !four } else { four || !six }
    })
}

fn enable(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let on = args.interface(engine, "interface")?;
    for kind in Kind::ALL.into_iter().filter(|kind| kind.is_virtual() == args.has("virtual")) {
        let family = if kind.is_six() { "ip6" } else { "ip4" };
        let only = args.has("ip4") || args.has("ip6");
        let enabled = !args.has("off") && (!only || args.has(family));
        config::enable(engine, on, kind, enabled)?;
    }
    Ok(Output::none())
}

fn set(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let names = ["timeout", "max-reassemblies", "max-reassembly-length", "expire-walk-interval"];
    if !names.iter().any(|name| args.has(name)) {
        let what = "nothing is said about reassembly that could be set";
        return Err(Refusal::new(what).remedy(names.join(", ")));
    }
    for kind in kinds(args) {
        let old = config::state(engine)?.settings(kind);
        let new = Settings {
            timeout_ms: args.or("timeout", old.timeout_ms)?,
            reassemblies: args.or("max-reassemblies", old.reassemblies)?,
            fragments: args.or("max-reassembly-length", old.fragments)?,
            walk_ms: args.or("expire-walk-interval", old.walk_ms)?,
        };
        config::set(engine, kind, new)?;
    }
    Ok(Output::none())
}

fn show(engine: &mut Engine, kind: Kind, with_details: bool) -> Result<Output, Refusal> {
    let state = config::state(engine)?;
    let (settings, shared) = (state.settings(kind), state.shared());
    let mut output = Output::none()
        .field("Packets under way", shared.packets(kind))
        .field("Buffers held", shared.buffers(kind))
        .field("Most packets per worker", settings.reassemblies)
        .field("Most fragments per packet", settings.fragments)
        .field("Most buffers, all kinds", state.buffers())
        .field("Timeout (ms)", settings.timeout_ms)
        .field("Expire walk interval (ms)", settings.walk_ms)
        .table("interfaces", interfaces(engine, kind));
    if with_details {
        let details = config::details(engine, kind)?;
        output = output.table("packets", packets(kind, &details));
    }
    Ok(output)
}

/// Where it is enabled, and who needs it.
fn interfaces(engine: &Engine, kind: Kind) -> Table {
    let mut table = Table::new([Column::left("Interface"), Column::left("Needed by")])
        .when_empty("Enabled on no interface");
    let (Some(arc), Some(node)) = (engine.arc_id(kind.arc()), engine.node_id(kind.feature()))
    else {
        return table;
    };
    for interface in engine.interfaces_by_name() {
        let who: Vec<&str> = interface.who_needs(arc, node).collect();
        if !who.is_empty() {
            let needed_by = Cell::new(who.join(", "), who);
            table.row().cell(interface.name.as_str()).cell(needed_by);
        }
    }
    table
}

/// Place of the protocol among the columns of packets that wait.
const PROTOCOL_COLUMN: usize = 4;

fn packets(kind: Kind, details: &[Detail]) -> Table {
    let mut columns = vec![
        Column::right("Worker"),
        Column::left("Source"),
        Column::left("Destination"),
        Column::right("Id"),
        Column::left("Protocol"),
        Column::left("For"),
        Column::right("Fragments"),
        Column::right("Bytes"),
        Column::right("Of"),
        Column::right("Age").key("age_s"),
        Column::left("State"),
    ];
    // IPv6 fragments of one packet are not told apart by their protocol (RFC 8200 section 4.5).
    let has_protocol = !kind.is_six();
    if !has_protocol {
        columns.remove(PROTOCOL_COLUMN);
    }
    let mut table = Table::new(columns).when_empty("No packet waits for fragments");
    let address = |bits: u128| match kind.is_six() {
        true => IpAddr::V6(Ipv6Addr::from_bits(bits)),
        false => IpAddr::V4(Ipv4Addr::from_bits(bits as u32)),
    };
    for Detail { worker, context, age_ns } in details {
        let key = &context.key;
        let request = ReassemblyRequest::from_index(key.scope);
        let (whose, scope) =
            if request.is_local { ("the router", "local") } else { ("others", "transit") };
        let state = match (context.refused, context.upper.is_some()) {
            (true, _) => ("refused", "refused"),
            (false, true) => ("first seen", "first_seen"),
            (false, false) => ("waits", "waits"),
        };
        let mut row = table
            .row()
            .cell(u32::from(worker.0))
            .cell(address(key.source))
            .cell(address(key.destination))
            .cell(key.identification);
        if has_protocol {
            row = row.cell(IpProtocol(key.protocol).to_string());
        }
        row.cell(Cell::new(whose, scope))
            .cell(context.count)
            .cell(context.have)
            .cell(context.end())
            .cell(Cell::real(*age_ns as f64 / 1e9, 1))
            .cell(Cell::new(state.0, state.1));
    }
    table
}

/// Write the commands that make it what it is.
pub(crate) fn write_config(engine: &Engine, config: &mut ConfigWriter) {
    let Ok(state) = config::state(engine) else { return };
    if state.buffers() != config::buffers_default(engine) {
        config.command(format_args!("set ip reassembly max-buffers {}", state.buffers()));
    }
    for kind in Kind::ALL {
        let (is, usual) = (state.settings(kind), Settings::default_of(kind));
        if is != usual {
            let which = if kind.is_virtual() { "virtual" } else { "full" };
            let family = if kind.is_six() { "ip6" } else { "ip4" };
            config.command(format_args!(
                "set ip reassembly {which} {family} timeout {} max-reassemblies {} \
                 max-reassembly-length {} expire-walk-interval {}",
                is.timeout_ms, is.reassemblies, is.fragments, is.walk_ms
            ));
        }
    }
}

/// The part of `show running-config` of one interface.
pub(super) fn write_interface(engine: &Engine, interface: &Interface, config: &mut ConfigWriter) {
    let has = |kind: Kind| {
        let ids = engine.arc_id(kind.arc()).zip(engine.node_id(kind.feature()));
        ids.is_some_and(|(arc, node)| interface.who_needs(arc, node).any(|who| who == OPERATOR))
    };
    for (which, four, six) in
        [("full", Kind::Full4, Kind::Full6), ("virtual", Kind::Virtual4, Kind::Virtual6)]
    {
        let families = match (has(four), has(six)) {
            (true, true) => "on",
            (true, false) => "ip4",
            (false, true) => "ip6",
            (false, false) => continue,
        };
        config.command(format_args!(
            "set interface reassembly {} {which} {families}",
            interface.name
        ));
    }
}
