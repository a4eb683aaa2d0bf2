//! Commands.

use std::fmt::Write as _;
use std::ops::RangeInclusive;

use quiver_access_lists::hold;
use quiver_control::{
    Args, Cell, Column, Command, ConfigWriter, IpPrefix as Written, Listing, Output, Refusal,
    Registry, Table, Work, order,
};
use quiver_core::Engine;
use quiver_core::control::interfaces::Interface;
use quiver_forwarding::fib::{Family, Fib, Path};
use quiver_tables::prefix::IpPrefix;
use quiver_wire::IpProtocol;
use serde_json::json;

use crate::config::{self, List, Policies, Policy};
use crate::fields::Match;
use crate::paths;

const GROUP: &str = "Layer 3";
/// Protocols that have a word.
const PROTOCOLS: [(&str, IpProtocol); 4] = [
    ("tcp", IpProtocol::TCP),
    ("udp", IpProtocol::UDP),
    ("icmp", IpProtocol::ICMP),
    ("icmp6", IpProtocol::ICMP6),
];

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "abf policy add id <id:u32> [acl <acl:u32>] [match {[src <:prefix>] [dst <:prefix>] \
             [proto <:0-255|tcp|udp|icmp|icmp6>] [sport <:word>] [dport <:word>] [dscp <:0-63>]}] \
             [drop-if-unusable] [(via (<next-hop:ip> [<interface>] | <out:interface> | drop | \
             unreachable | prohibit | ip4-lookup-in-table <table4:u32> | ip6-lookup-in-table \
             <table6:u32>) {[weight <:1-65535>] [preference <:u8>] [next-hop-table <:u32>]})...]",
        )
        .entry(
            order::FEATURES,
            "policies.<id>: {acl, match: some{src, dst, proto, sport, dport, dscp}, \
             drop-if-unusable, via: [via: <drop|unreachable|prohibit> / <next-hop> / {interface: \
             <out>, weight, preference, next-hop-table} / {next-hop, interface, drop, \
             unreachable, prohibit, ip4-table: <table4>, ip6-table: <table6>, weight, preference, \
             next-hop-table}]}",
        )
        .undo("abf policy del id <id>")
        .makes("policy <id>")
        .stands_on("access list <acl>")
        .group(GROUP)
        .help(
            "Add a policy: packets that match go by these paths, not by their destination's route",
        )
        .details(
            "Paths for a policy that is there already join its others, without `match` or with the \
             same. With acl, the packets that an access list permits match; when the list is \
             replaced, so is what matches, at once. What is left out of `match` does not matter. \
             The paths are those of `ip route`, and follow neighbours, interfaces and routes as \
             theirs do. When none of them can be used, the next policy is asked, and then the \
             routes, unless the policy drops. A fragment has ports only on an interface with \
             virtual reassembly (`set interface reassembly`), which knows them from the first.",
        )
        .word("acl", "the number of an access list that says what matches (`set acl-plugin acl`)")
        .word("sport", "source ports, one or A-B")
        .word("dport", "destination ports, one or A-B")
        .word("drop-if-unusable", "packets die when none of the paths can be used")
        .example(
            "abf policy add id 1 match src 192.0.2.0/24 proto tcp dport 80-443 via 198.51.100.1",
        )
        .example(
            "abf policy add id 2 match dscp 46 drop-if-unusable via 10.0.0.2 e0 via 10.0.1.2 e1",
        )
        .example("abf policy add id 3 acl 7 via 10.0.0.2 e0")
        .run_or_begin(add),
    );
    registry.command(
        Command::new(
            "abf policy del id <id:u32> \
             [(via (<next-hop:ip> [<interface>] | <out:interface> | drop | unreachable | prohibit \
             | ip4-lookup-in-table <table4:u32> | ip6-lookup-in-table <table6:u32>) \
             {[weight <:1-65535>] [preference <:u8>] [next-hop-table <:u32>]})...]",
        )
        .group(GROUP)
        .help("Delete a policy that is attached nowhere, or some of a policy's paths")
        .example("abf policy del id 1")
        .example("abf policy del id 2 via 10.0.0.2 e0")
        .run(|engine: &mut Engine, args| {
            let (id, paths) = (args.get("id")?, paths_of(engine, args)?);
            match paths.is_empty() {
                true => config::delete(engine, id)?,
                false => config::remove_paths(engine, id, &paths)?,
            }
            Ok(Output::none())
        }),
    );
    registry.command(
        Command::new(
            "abf attach ip4|ip6 [del] policy <policy:u32> {[priority <:u32>] <interface>}",
        )
        .entry(order::FEATURES, "interfaces.<interface>.policies.<ip4|ip6>.<policy>: {priority}")
        .undo("abf attach [ip4] [ip6] del policy <policy> <interface>")
        .stands_on("policy <policy>")
        .group(GROUP)
        .help("Let a policy decide about what an interface receives, or no more")
        .details("Policies with a lower priority number are asked first.")
        .word("priority", "its place among the policies there; 0")
        .example("abf attach ip4 policy 1 priority 10 e0")
        .example("abf attach ip4 del policy 1 e0")
        .run(attach),
    );
    registry.command(
        Command::new("show abf policy [<policy:u32>]")
            .group(GROUP)
            .help("Show policies: what they match, where packets go, and how many went")
            .details(
                "Counted are the packets that a policy has sent or dropped, wherever it is \
                 attached, and their bytes from the IP header on; not those that it passed over \
                 because none of its paths could be used.",
            )
            .run_or_begin(|engine: &mut Engine, args| {
                let only: Option<u32> = args.optional("policy")?;
                show_policies(engine, only)
            }),
    );
    registry.command(
        Command::new("show abf attach [<interface>]")
            .group(GROUP)
            .help("Show where policies are attached, in the order in which they are asked")
            .run_or_begin(|engine: &mut Engine, args| {
                let only = args.optional_interface(engine, "interface")?;
                attachments(engine, only)
            }),
    );
}

fn prefix(args: &Args<'_>, name: &str) -> Result<Option<IpPrefix>, Refusal> {
    let Some(written) = args.optional::<Written>(name)? else { return Ok(None) };
    if written.has_host_bits() {
        let what = format!("{written} has bits set behind its length");
        return Err(args
            .refuse(name, what)
            .remedy(format!("{} would be right", written.network())));
    }
    Ok(Some(IpPrefix::new(written.address, written.length)))
}

/// `80` or `80-443`.
fn ports(args: &Args<'_>, name: &str) -> Result<Option<RangeInclusive<u16>>, Refusal> {
    let Some(text) = args.optional::<&str>(name)? else { return Ok(None) };
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    match (from.parse::<u16>(), to.parse::<u16>()) {
        (Ok(from), Ok(to)) if from <= to => Ok(Some(from..=to)),
        _ => Err(args
            .refuse(name, format!("'{text}' is no range of ports"))
            .remedy("80 or 80-443 would be")),
    }
}

fn matched(args: &Args<'_>) -> Result<Match, Refusal> {
    let protocol = match args.optional::<&str>("proto") {
        Ok(word) => word
            .and_then(|word| PROTOCOLS.iter().find(|(known, _)| *known == word))
            .map(|(_, p)| p.0),
        Err(_) => args.optional::<u8>("proto")?,
    };
    let matched = Match {
        source: prefix(args, "src")?,
        destination: prefix(args, "dst")?,
        protocol,
        source_ports: ports(args, "sport")?,
        destination_ports: ports(args, "dport")?,
        dscp: args.optional("dscp")?,
    };
    if let (Some(source), Some(destination)) = (matched.source, matched.destination)
        && source.is_ip6() != destination.is_ip6()
    {
        let what =
            format!("no packet goes from {source} to {destination}: they are of two families");
        return Err(args.refuse("dst", what).remedy("give both of one"));
    }
    let has_ports = matched.source_ports.is_some() || matched.destination_ports.is_some();
    if let Some(protocol) =
        matched.protocol.filter(|protocol| has_ports && !IpProtocol(*protocol).has_ports())
    {
        let what = format!("protocol {protocol} has no ports");
        return Err(args.refuse("proto", what).remedy("leave the ports out, or name tcp or udp"));
    }
    Ok(matched)
}

fn paths_of(engine: &Engine, args: &Args<'_>) -> Result<Vec<Path>, Refusal> {
    let fib =
        engine.get::<Fib>().ok_or_else(|| Refusal::new("the forwarding table is being changed"))?;
    args.groups("via").map(|via| paths::path(engine, fib, &via)).collect()
}

fn add(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let (id, paths): (u32, _) = (args.get("id")?, paths_of(engine, args)?);
    let acl: Option<u32> = args.optional("acl")?;
    let (matched, drops) = (matched(args)?, args.has("drop-if-unusable"));
    if acl.is_some() && matched != Match::default() {
        let what = "the access list says what matches";
        return Err(args.refuse("acl", what).remedy("leave `match` out, or `acl`"));
    }
    let policy = Policy { matched, list: None, paths, drops };
    let known = engine.get::<Policies>().and_then(|policies| policies.policy(id));
    let is_known = known.is_some();
    let joins = known.is_some_and(|known| {
        let says_nothing = acl.is_none() && policy.matched == Match::default() && !policy.drops;
        let is_same = known.list.map(|list| list.number) == acl
            && known.matched == policy.matched
            && known.drops == policy.drops;
        says_nothing || is_same
    });
    match acl {
        _ if joins && !policy.paths.is_empty() => config::add_paths(engine, id, &policy.paths)?,
        // A policy that is there already is refused before its list is looked for.
        Some(number) if !is_known => {
            return hold(engine, number, config::list_user(id), move |engine, slot| {
                let list = Some(List { number, slot });
                config::add(engine, id, Policy { list, ..policy })?;
                Ok(Output::none())
            });
        }
        _ => config::add(engine, id, policy)?,
    }
    Ok(Work::Done(Output::none()))
}

fn attach(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let family = if args.has("ip4") { Family::Ip4 } else { Family::Ip6 };
    let (policy, interface) = (args.get("policy")?, args.interface(engine, "interface")?);
    if args.has("del") {
        config::detach(engine, family, policy, interface)?;
    } else {
        config::attach(engine, family, policy, args.or("priority", 0u32)?, interface)?;
    }
    Ok(Output::none())
}

/// What a policy matches, in the words of the command.
fn match_words(policy: &Policy) -> String {
    match policy.list {
        Some(list) => format!("acl {}", list.number),
        None => own_match_words(&policy.matched),
    }
}

fn own_match_words(matched: &Match) -> String {
    let mut words = String::new();
    let range = |range: &RangeInclusive<u16>| match range.start() == range.end() {
        true => range.start().to_string(),
        false => format!("{}-{}", range.start(), range.end()),
    };
    let protocol = |number: u8| {
        let known = PROTOCOLS.iter().find(|(_, protocol)| protocol.0 == number);
        known.map_or_else(|| number.to_string(), |(word, _)| (*word).to_owned())
    };
    for (word, value) in [
        ("src", matched.source.map(|prefix| prefix.to_string())),
        ("dst", matched.destination.map(|prefix| prefix.to_string())),
        ("proto", matched.protocol.map(protocol)),
        ("sport", matched.source_ports.as_ref().map(range)),
        ("dport", matched.destination_ports.as_ref().map(range)),
        ("dscp", matched.dscp.map(|dscp| dscp.to_string())),
    ] {
        if let Some(value) = value {
            let _ = write!(words, " {word} {value}");
        }
    }
    words.trim_start().to_owned()
}

fn family_word(family: Family) -> &'static str {
    match family {
        Family::Ip4 => "ip4",
        Family::Ip6 => "ip6",
    }
}

fn show_policies(engine: &mut Engine, only: Option<u32>) -> Result<Work<Engine>, Refusal> {
    let columns = [
        Column::right("Policy"),
        Column::left("Match"),
        Column::left("Paths"),
        Column::left("State").key("attached"),
        Column::left("Drop if unusable"),
        Column::right("Packets"),
        Column::right("Bytes"),
    ];
    let all = engine.get::<Policies>().into_iter().flat_map(Policies::policies).map(|(id, _)| id);
    let ids: Vec<u32> = all.filter(|id| only.is_none_or(|only| only == *id)).collect();
    Listing::over("policies", columns, ids, add_policy).begin(engine)
}

fn add_policy(engine: &Engine, table: &mut Table, id: u32) {
    let (Some(policies), Some(fib)) = (engine.get::<Policies>(), engine.get::<Fib>()) else {
        return;
    };
    let Some(policy) = policies.policy(id) else { return };
    let path_words: Vec<_> =
        policy.paths.iter().map(|path| paths::words(engine, fib, path)).collect();
    let states = [Family::Ip4, Family::Ip6].into_iter().filter_map(|family| {
        let states = fib.path_states(policies.group(id, family)?);
        let used =
            states.iter().any(|(_, state)| *state == quiver_forwarding::fib::PathState::Used);
        Some((family_word(family), used))
    });
    let states: Vec<(&str, bool)> = states.collect();
    let mut words: Vec<String> =
        states.iter().map(|(family, used)| state_words(family, *used)).collect();
    if states.is_empty() {
        words.push("not attached".to_owned());
    }
    let families = states.iter().map(|(family, used)| json!({ "family": family, "usable": used }));
    let state = Cell::new(words.join(", "), families.collect::<Vec<_>>());
    let [packets, bytes] = policies.counted(id);
    table
        .row()
        .cell(id)
        .cell(match_words(policy))
        .cell(Cell::new(path_words.join(" "), path_words.clone()))
        .cell(state)
        .cell(policy.drops)
        .cell(packets)
        .cell(bytes);
}

fn state_words(family: &str, used: bool) -> String {
    format!("{family}: {}", if used { "in use" } else { "no path can be used" })
}

fn attachments(
    engine: &mut Engine,
    only: Option<quiver_core::InterfaceId>,
) -> Result<Work<Engine>, Refusal> {
    let columns = [
        Column::left("Interface"),
        Column::left("Family"),
        Column::right("Priority"),
        Column::right("Policy"),
    ];
    let all = engine.get::<Policies>().into_iter().flat_map(Policies::attachments);
    let wanted = all.filter(|(_, on, ..)| only.is_none_or(|only| only == *on)).collect();
    let add = |engine: &Engine, table: &mut Table, attachment| {
        let (family, on, priority, policy): (Family, quiver_core::InterfaceId, u32, u32) =
            attachment;
        let row = table.row().cell(engine.interface_name(on)).cell(family_word(family));
        row.cell(priority).cell(policy);
    };
    Listing::over("attachments", columns, wanted, add).begin(engine)
}

/// The policies in `show running-config`.
pub(crate) fn write_policies(
    engine: &Engine,
    config: &mut ConfigWriter,
    after: Option<u32>,
    most: usize,
) -> Option<u32> {
    let (policies, fib) = (engine.get::<Policies>()?, engine.get::<Fib>()?);
    let mut last = None;
    for (id, policy) in policies.policies_after(after).take(most) {
        last = Some(id);
        let matched = match match_words(policy) {
            words if words.is_empty() => words,
            words if policy.list.is_some() => format!(" {words}"),
            words => format!(" match {words}"),
        };
        let drops = if policy.drops { " drop-if-unusable" } else { "" };
        let mut via = String::new();
        for path in &policy.paths {
            let _ = write!(via, " {}", paths::words(engine, fib, path));
        }
        config.command(format_args!("abf policy add id {id}{matched}{drops}{via}"));
    }
    last
}

/// Where they are attached, in `show running-config`: by interface.
pub(crate) fn write_attached(engine: &Engine, interface: &Interface, config: &mut ConfigWriter) {
    let Some(policies) = engine.get::<Policies>() else { return };
    for (family, priority, policy) in policies.attached_to(interface.id) {
        let (family, name) = (family_word(family), &interface.name);
        config.command(format_args!(
            "abf attach {family} policy {policy} priority {priority} {name}"
        ));
    }
}
