//! The commands of policies.

use std::fmt::Write as _;
use std::net::Ipv6Addr;

use quiver_control::{
    Args, Cell, Column, Command, ConfigWriter, Output, Refusal, Registry, Table, Work, in_slices,
    order,
};
use quiver_core::Engine;
use quiver_forwarding::fib::{Family, Fib, FibError};
use quiver_wire::ip6::address;

use super::outer_commands::with_warning;
use super::policies::Policies;
use super::policy::{Behavior, List, New, Policy, Wanted, no_policy};
use crate::commands::GROUP;
use crate::mobile;

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            format!(
                "sr policy add bsid <bsid:ip6> ((next <sid:ip6>)... {{[weight <:1-65535>] \
                 [fib-table <fib-table:u32>] [spray] [encap|encap.red|insert|insert.red] [hmac \
                 <hmac:u32>] [encap-src <encap-src:ip6>]}} | {})",
                mobile::POLICY_SYNTAX
            )
            .leak(),
        )
        .entry(
            order::ROUTES,
            "sr.policies.<bsid>: {segment-lists[0]: some{segments: [next: <sid>], weight}, table: \
             <fib-table>, mode: <encap|encap.red|insert|insert.red>, spray, hmac, encap-src}",
        )
        .entry(
            order::ROUTES,
            "sr.policies.<bsid>: {behavior: <t.m.gtp4.d|h.m.gtp4.d>, prefix: <sr-prefix>, \
             source-prefix: <v6src>, nhtype, table: <lookup-table>, drop-in, segments: [next: \
             <segment>]}",
        )
        .undo("sr policy del bsid <bsid>")
        .makes("SR policy <bsid>")
        .group(GROUP)
        .help("Add an SR policy: a list of segments that packets are sent along")
        .details(
            "Packets are steered into it by `sr steer`, or come to its binding SID with segments \
             left. Without a word it encapsulates. The reduced forms leave the first segment out \
             of the list. The binding SID stands in table 0 or `fib-table`, where first segments \
             are looked up, too. With `behavior` it is a gateway of the mobile user plane \
             (H.M.GTP4.D, RFC 9433 §6.7), which GTP-U over IPv4 is steered into: the IPv4 \
             destination and the session stand in the SID behind `sr-prefix`, the IPv4 source and \
             UDP port in the outer source behind `v6src_prefix`.",
        )
        .word("t.m.gtp4.d", "from GTP-U over IPv4 to SRv6, by its older name")
        .word("h.m.gtp4.d", "from GTP-U over IPv4 to SRv6")
        .word("nhtype", "what users' packets are; without it, what the first bits of each say")
        .word("drop-in", "echo requests are for the other end; without it, they are answered")
        .example(
            "sr policy add bsid fc00:0:1::d behavior t.m.gtp4.d fc01::/32 v6src_prefix \
             fc00:0:1::/64 nhtype ipv4",
        )
        .word("behavior", "a gateway of the mobile user plane instead of a list of segments")
        .word(
            "encap-src",
            "the source of the policy's outer headers, instead of that of `set sr encaps source \
             addr`",
        )
        .word(
            "fib-table",
            "the table that the binding SID stands in, and what comes of it is looked up in; 0",
        )
        .word("next", "a segment, in the order of the path")
        .word("weight", "the list's share of the flows, relative to other lists; 1")
        .word("spray", "a copy of every packet to every list")
        .word("encap", "an outer IPv6 header with an SRH (H.Encaps, H.Encaps.L2, End.B6.Encaps)")
        .word("encap.red", "the same, reduced (H.Encaps.Red, H.Encaps.L2.Red, End.B6.Encaps.Red)")
        .word("insert", "an SRH in the IPv6 packet itself (H.Insert, End.B6.Insert)")
        .word("insert.red", "the same, reduced (H.Insert.Red, End.B6.Insert.Red)")
        .word(
            "hmac",
            "sign the SRH with this key (`sr hmac key`): what is inserted for every packet anew, \
             which is slow",
        )
        .example("sr policy add bsid fc00:0:f::1 next fc00:0:1::1 next fc00:0:2::6 encap")
        .example("sr policy add bsid fc00:0:f::3 next fc00:0:2::6 encap encap-src fc00:0:9::1")
        .example("sr policy add bsid fc00:0:f::2 next fc00:0:2::6 fib-table 10 encap.red")
        .run(add),
    );
    registry.command(
        Command::new("sr policy del bsid <bsid:ip6>")
            .group(GROUP)
            .help("Delete an SR policy that nothing is steered into")
            .example("sr policy del bsid fc00:0:f::1")
            .run(|engine: &mut Engine, args| {
                let bsid = args.get("bsid")?;
                match mobile::delete(engine, bsid) {
                    Some(done) => done?,
                    None => engine
                        .with(|engine, policies: &mut Policies| policies.delete(engine, bsid))?,
                }
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new(
            "sr policy mod bsid <bsid:ip6> (add sl (next <sid:ip6>)... [weight <:1-65535>] | del \
             sl index <deleted:u32> | mod sl index <index:u32> weight <to:1-65535>)",
        )
        .entry(
            order::ROUTES,
            "sr.policies.<bsid>.segment-lists[]: {segments: [next: <sid>], weight}",
        )
        .goes_with("SR policy <bsid>")
        .stands_on("SR policy <bsid>")
        .group(GROUP)
        .help("Add a segment list to an SR policy, delete one, or give one another weight")
        .details(
            "A flow keeps to one list; lists share flows by their weights. Packets go by the old \
             lists or the new.",
        )
        .word("add", "a list more")
        .word("del", "a list less; one must be left")
        .word("mod", "another weight")
        .word("index", "the list's number in `show sr policies`")
        .example("sr policy mod bsid fc00:0:f::1 add sl next fc00:0:3::1 next fc00:0:2::6 weight 3")
        .example("sr policy mod bsid fc00:0:f::1 del sl index 1")
        .example("sr policy mod bsid fc00:0:f::1 mod sl index 0 weight 5")
        .run(change),
    );
    registry.command(
        Command::new("show sr policies [<bsid:ip6>]")
            .group(GROUP)
            .help("Show SR policies, their segment lists, and how many packets went by each")
            .details(
                "Bytes count from the outer IPv6 header on; of what is inserted, from the IPv6 \
                 header on. The MTU of a list's path is that which a router on the way has told in \
                 an ICMPv6 error: for the whole packet, in bytes, for 10 minutes.",
            )
            .run_or_begin(show),
    );
    registry.command(
        Command::new("clear sr pmtu")
            .group(GROUP)
            .help("Forget what routers have told of the paths of segment lists")
            .run(|engine: &mut Engine, _| {
                engine.with(|_, policies: &mut Policies| policies.forget_path_mtus(u64::MAX));
                Ok(Output::none())
            }),
    );
}

/// May this be a segment, or a binding SID?
pub(super) fn check_sid(args: &Args<'_>, name: &str, sid: Ipv6Addr) -> Result<(), Refusal> {
    check_routed(args, name, sid, "a SID")
}

/// May this be that, which is found by routes of other routers?
pub(super) fn check_routed(
    args: &Args<'_>,
    name: &str,
    given: Ipv6Addr,
    what: &str,
) -> Result<(), Refusal> {
    if address::is_unicast(given) && !address::is_link_local(given) {
        return Ok(());
    }
    let what = format!("{given} cannot be {what}: it is no unicast address that is routed");
    Err(args.refuse(name, what).remedy("take one of a prefix that is routed"))
}

fn wanted(args: &Args<'_>) -> Result<Wanted, Refusal> {
    let mut path = Vec::new();
    for next in args.groups("next") {
        let sid = next.get("sid")?;
        check_sid(&next, "sid", sid)?;
        path.push(sid);
    }
    Ok(Wanted { path, weight: args.or("weight", 1u32)? })
}

fn add(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let bsid = args.get("bsid")?;
    check_sid(args, "bsid", bsid)?;
    if mobile::is_gateway(args)? {
        return mobile::add(engine, args, bsid);
    }
    let (family, id) = (Family::Ip6, args.or("fib-table", 0u32)?);
    let table = crate::local_sids::fib(engine)?.table_index(family, id);
    let table = table
        .ok_or_else(|| args.refuse("fib-table", FibError::NoTable { family, id }.to_string()))?;
    let word = Behavior::WORDS.iter().find(|(word, _)| args.has(word));
    let behavior = word.map_or(Behavior::WORDS[0].1, |(_, behavior)| *behavior);
    let hmac = args.optional("hmac")?;
    let own_source: Option<Ipv6Addr> = args.optional("encap-src")?;
    if let Some(own) = own_source {
        check_routed(args, "encap-src", own, "the source of outer headers")?;
        if matches!(behavior, Behavior::Insert(_)) {
            let refusal = args.refuse("encap-src", "what inserts segments makes no outer header");
            return Err(refusal.remedy("encap or encap.red"));
        }
    }
    let new = New {
        behavior,
        spray: args.has("spray"),
        table,
        hmac,
        source: own_source,
        list: wanted(args)?,
    };
    let source = engine.with(|engine, policies: &mut Policies| {
        policies.add(engine, bsid, new).map(|()| own_source.unwrap_or(policies.source))
    })?;
    let output = crate::local_sids::warn_if_shadowed(
        engine,
        table,
        super::policies::host(bsid),
        Output::none(),
    );
    Ok(match behavior {
        Behavior::Encaps(_) => with_warning(engine, source, output),
        Behavior::Insert(_) => output,
    })
}

fn change(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let bsid = args.get("bsid")?;
    let (deleted, index): (Option<u32>, Option<u32>) =
        (args.optional("deleted")?, args.optional("index")?);
    engine.with(|engine, policies: &mut Policies| match (deleted, index) {
        (Some(number), _) => policies.delete_list(engine, bsid, number),
        (None, Some(number)) => policies.set_weight(engine, bsid, number, args.get("to")?),
        (None, None) => policies.add_list(engine, bsid, wanted(args)?),
    })?;
    Ok(Output::none())
}

/// A path in words: `fc00::1 fc00::2`.
fn path_words(list: &List) -> String {
    let words: Vec<String> = list.path.iter().map(Ipv6Addr::to_string).collect();
    words.join(" ")
}

fn behavior_words(policy: &Policy) -> String {
    let mut words = policy.behavior.word().to_owned();
    if policy.spray {
        words.push_str(" spray");
    }
    if let Some(key) = policy.hmac {
        let _ = write!(words, " hmac {key}");
    }
    if let Some(source) = policy.source {
        let _ = write!(words, " encap-src {source}");
    }
    words
}

fn table_id(engine: &Engine, table: u32) -> u32 {
    engine.get::<Fib>().and_then(|fib| fib.table_id(Family::Ip6, table)).unwrap_or(table)
}

fn show(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let only: Option<Ipv6Addr> = args.optional("bsid")?;
    let policies = engine
        .get::<Policies>()
        .ok_or_else(|| Refusal::new("the SR policies are being changed"))?;
    let gateways = mobile::policy_rows(engine);
    let is_gateway = |bsid: &Ipv6Addr| gateways.iter().any(|(gateway, ..)| gateway == bsid);
    if let Some(bsid) = only.filter(|bsid| policies.get(*bsid).is_none() && !is_gateway(bsid)) {
        return Err(no_policy(bsid));
    }
    let keys = match only {
        Some(bsid) => vec![bsid],
        None => policies.iter().map(|(bsid, _)| bsid).collect(),
    };
    let end = move |engine: &Engine, mut made: Made| {
        for (bsid, id, words, [packets, bytes]) in
            gateways.into_iter().filter(|(bsid, ..)| only.is_none_or(|only| only == *bsid))
        {
            let row =
                made.table.row().cell(bsid.to_string()).cell(id).cell(words).cell(None::<String>);
            row.cell(packets).cell(bytes);
        }
        let shown = Output::none().table("policies", made.table).table("lists", made.lists);
        made.sources.into_iter().fold(shown, |shown, source| with_warning(engine, source, shown))
    };
    Ok(in_slices(engine, keys, Made::new(), Made::add, end))
}

/// `show sr policies` as far as it is made.
struct Made {
    table: Table,
    lists: Table,
    sources: std::collections::BTreeSet<Ipv6Addr>,
}

impl Made {
    fn new() -> Made {
        let table = Table::new([
            Column::left("BSID"),
            Column::right("Table"),
            Column::left("Behavior"),
            Column::left("Source"),
            Column::right("Packets"),
            Column::right("Bytes"),
        ]);
        let lists = Table::new([
            Column::left("Policy"),
            Column::right("List"),
            Column::left("Segments"),
            Column::right("Weight"),
            Column::right("Path MTU").key("path_mtu_bytes"),
            Column::right("Forgotten in").key("path_mtu_left_s"),
            Column::right("Packets"),
            Column::right("Bytes"),
        ]);
        let (table, lists) =
            (table.when_empty("no SR policies"), lists.when_empty("no segment lists"));
        Made { table, lists, sources: std::collections::BTreeSet::new() }
    }

    fn add(engine: &Engine, made: &mut Made, bsid: Ipv6Addr) {
        let Some(policies) = engine.get::<Policies>() else { return };
        let Some(policy) = policies.get(bsid) else { return };
        let [packets, bytes] = policies.counted_all(policy);
        let row = made.table.row().cell(bsid.to_string()).cell(table_id(engine, policy.table));
        let encapsulates = matches!(policy.behavior, Behavior::Encaps(_));
        let source = encapsulates.then(|| policies.source_of(policy));
        made.sources.extend(source);
        let row = row.cell(behavior_words(policy)).cell(source.map(|source| source.to_string()));
        row.cell(packets).cell(bytes);
        for (number, list) in &policy.lists {
            let [packets, bytes] = policies.counted(list);
            let segments: Vec<String> = list.path.iter().map(Ipv6Addr::to_string).collect();
            let row = made.lists.row().cell(bsid.to_string()).cell(*number);
            let row = row.cell(Cell::new(path_words(list), segments));
            let known = policies.path_mtu(list);
            let left =
                known.map(|path| path.until_ns.saturating_sub(engine.now_ns()) / 1_000_000_000);
            let row = row.cell(list.weight).cell(known.map(|path| path.mtu_bytes)).cell(left);
            row.cell(packets).cell(bytes);
        }
    }
}

/// ` next A next B weight 3`.
fn list_words(list: &List) -> String {
    let mut words = String::new();
    for segment in &list.path {
        let _ = write!(words, " next {segment}");
    }
    if list.weight != 1 {
        let _ = write!(words, " weight {}", list.weight);
    }
    words
}

/// The part of `show running-config`.
pub(super) fn write_config(
    engine: &Engine,
    config: &mut ConfigWriter,
    after: Option<Ipv6Addr>,
    most: usize,
) -> Option<Ipv6Addr> {
    let mut last = None;
    let policies = engine.get::<Policies>()?;
    for (bsid, policy) in policies.after(after).take(most) {
        last = Some(bsid);
        if !policies.is_configured(bsid) {
            continue;
        }
        let mut lists = policy.lists.values();
        let Some(first) = lists.next() else { continue };
        let table = match table_id(engine, policy.table) {
            0 => String::new(),
            id => format!(" fib-table {id}"),
        };
        let (list, behavior) = (list_words(first), behavior_words(policy));
        config.command(format_args!("sr policy add bsid {bsid}{list}{table} {behavior}"));
        for list in lists {
            config.command(format_args!("sr policy mod bsid {bsid} add sl{}", list_words(list)));
        }
    }
    last
}
