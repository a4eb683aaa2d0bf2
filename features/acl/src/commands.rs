//! Commands that change lists.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use quiver_classifier::RULES_MAX;
use quiver_control::{
    Args, Command, ConfigWriter, IpPrefix as Written, Output, Refusal, Registry, Work,
    in_background, order, quoted,
};
use quiver_core::Engine;
use quiver_core::control::interfaces::Interface;
use quiver_forwarding::fib::Family;
use quiver_tables::prefix::IpPrefix;
use serde_json::json;

use crate::acl::Acl;
use crate::config::{self, Change, Lists};
use crate::file::{self, Mistakes};
use crate::named_set::Role;
use crate::rules::{Action, Given, PROTOCOLS, Rule, SetNames};
use crate::tables::Direction;

pub(crate) const GROUP: &str = "Access lists";
/// Rules in a line of `show running-config`.
const RULES_PER_LINE: usize = 400;
/// Characters of a tag at most.
const TAG_CHARS_MAX: usize = 63;

/// Rules in the words of a command.
macro_rules! rules_syntax {
    () => {
        "(<action:permit|deny|permit+reflect> {[log] [ipv4] [ipv6] [src <:prefix>] [dst \
         <:prefix>] [proto <:0-255|tcp|udp|icmp|icmp6>] [sport <:range>] [dport <:range>] \
         [src-set <:word>] [dst-set <:word>] [sport-set <:word>] [dport-set <:word>] \
         [rx-set <:word>] [tcpflags <:u8>] [mask <:u8>] [dscp <:0-63>] [fragment]} [','])..."
    };
}

/// The same in a document of a configuration.
macro_rules! rules_entry {
    () => {
        "rules: [action: {action, log, ipv4, ipv6, src, dst, proto, sport, dport, src-set, \
         dst-set, sport-set, dport-set, rx-set, tcpflags, mask, dscp, fragment}]"
    };
}

pub(crate) fn register(registry: &mut Registry) {
    lists(registry);
    attachments(registry);
    settings(registry);
}

fn lists(registry: &mut Registry) {
    registry.command(
        Command::new(concat!(
            "set acl-plugin acl [index <:u32>] ",
            rules_syntax!(),
            " [tag <:text>]"
        ))
        .entry(order::RESOURCES, concat!("access-lists.<index>: {tag, ", rules_entry!(), "}"))
        .undo("delete acl-plugin acl index <index>")
        .replaces(&["index"])
        .makes("access list <index>")
        .group(GROUP)
        .help("Make an access list, or replace all of its rules at once")
        .details(
            "The first rule that a packet matches says whether it goes on; a packet that matches \
             no rule of its interface's lists is dropped. What is left out of a rule does not \
             matter: without prefixes and ipv4 or ipv6 it is for both families. For proto icmp and \
             icmp6, sport is the type and dport the code. A TCP packet matches tcpflags when its \
             flags are the same where mask has ones. A prefix with bits behind its length is taken \
             as the network. Without index the smallest free number is taken. A list of many rules \
             is compiled beside the router's work; then one store exchanges it.",
        )
        .word("index", "the number of the list")
        .word("log", "log what the rule decides about (`set acl-plugin logging`)")
        .word("sport", "source ports, or ICMP types")
        .word("dport", "destination ports, or ICMP codes")
        .word("src-set", "an address set that has the source")
        .word("dst-set", "an address set that has the destination")
        .word("sport-set", "a port set that has the source port")
        .word("dport-set", "a port set that has the destination port")
        .word("rx-set", "an interface set that has the interface which received the packet")
        .word("fragment", "fragments only, the first one too")
        .word("tag", "a text of yours")
        .example("set acl-plugin acl permit src 10.0.0.0/8 proto tcp dport 80-443, deny tag web")
        .example("set acl-plugin acl index 3 deny proto tcp tcpflags 2 mask 18, permit")
        .run_or_begin(set),
    );
    registry.command(
        Command::new(concat!(
            "set acl-plugin acl-rest <index:u32> from <from:u32> [",
            rules_syntax!(),
            "]"
        ))
        .entry(
            order::RESOURCES,
            concat!("access-list-rests.<index>.<from>: {", rules_entry!(), "}"),
        )
        .undo("set acl-plugin acl-rest <index> from <from>")
        .replaces(&["index", "from"])
        .stands_on("access list <index>")
        .makes("access list <index> from <from>")
        .group(GROUP)
        .help("Replace the rules of an access list behind its first ones, or remove them")
        .details(
            "With from, as many rules of the list as it says stay, and these follow them. `show \
             running-config` writes a long list so.",
        )
        .word("from", "how many of the list's rules stay before these")
        .example("set acl-plugin acl-rest 3 from 2 deny src 192.0.2.0/24, permit")
        .run_or_begin(|engine: &mut Engine, args| {
            let (index, from) = (args.get("index")?, args.get("from")?);
            let behind = |acl: &Acl| places(acl, from, None);
            let change = config::edited(engine, index, behind, rules(args)?)?;
            put(engine, index, change)
        }),
    );
    edits(registry);
    registry.command(
        Command::new("set acl-plugin acl-file [index <index:u32>] <file:path> [tag <:text>]")
            .group(GROUP)
            .help("Make or replace an access list from a file of rules")
            .details(
                "The file has one rule a line, in the words of `set acl-plugin acl` or as a JSON \
                 object with their names. # begins a comment. Mistakes are listed by line, and \
                 then nothing changes.",
            )
            .example("set acl-plugin acl-file index 7 /etc/quiver/edge.rules")
            .run_or_begin(set_from_file),
    );
    registry.command(
        Command::new("delete acl-plugin acl index <index:u32>")
            .group(GROUP)
            .help("Delete an access list that no interface has")
            .example("delete acl-plugin acl index 3")
            .run(|engine: &mut Engine, args| {
                config::delete(engine, args.get("index")?)?;
                Ok(Output::none())
            }),
    );
}

fn edits(registry: &mut Registry) {
    registry.command(
        Command::new(concat!(
            "set acl-plugin acl-rule <index:u32> insert|replace <place:u32> ",
            rules_syntax!()
        ))
        .group(GROUP)
        .help("Insert rules into an access list, or replace one of its rules")
        .details(
            "Places count from 0, as `show acl-plugin acl index` shows them. insert puts the rules \
             before the one at the place; the place behind the last rule appends them. replace \
             puts them in its place. Other rules keep their counts. In a list of more than 512 \
             rules, up to 64 new rules and 64 that are gone stand beside what is compiled: the \
             list is compiled again beside the router's work, and the change does not wait for \
             that. With more of them it waits, and is refused when the list was changed meanwhile.",
        )
        .word("place", "the place of a rule in the list")
        .example("set acl-plugin acl-rule 3 insert 0 deny src 203.0.113.7/32")
        .example("set acl-plugin acl-rule 3 replace 4 permit proto tcp dport 443")
        .run_or_begin(|engine: &mut Engine, args| {
            let (index, place) = (args.get("index")?, args.get("place")?);
            let removed = if args.has("replace") { 1 } else { 0 };
            let at = |acl: &Acl| places(acl, place, Some(removed));
            let change = config::edited(engine, index, at, rules(args)?)?;
            put(engine, index, change)
        }),
    );
    registry.command(
        Command::new(
            "delete acl-plugin acl-rule <index:u32> <place:u32> [count <count:1-1048576>]",
        )
        .group(GROUP)
        .help("Delete a rule of an access list, or several from a place on")
        .details("A list keeps at least one rule. Other rules keep their counts.")
        .word("place", "the place of the first rule that goes")
        .word("count", "how many rules go; 1 without it")
        .example("delete acl-plugin acl-rule 3 4")
        .run_or_begin(|engine: &mut Engine, args| {
            let (index, place) = (args.get("index")?, args.get("place")?);
            let removed = args.optional("count")?.unwrap_or(1);
            let at = |acl: &Acl| places(acl, place, Some(removed));
            let change = config::edited(engine, index, at, Vec::new())?;
            put(engine, index, change)
        }),
    );
}

/// So many places of a list from one on; without a number, all that are behind it.
fn places(acl: &Acl, from: u32, count: Option<u32>) -> Result<Range<usize>, Refusal> {
    let (index, rules, from) = (acl.index, acl.len(), from as usize);
    let to = count.map_or(rules, |count| from.saturating_add(count as usize));
    if from.max(to) <= rules {
        return Ok(from..to);
    }
    let wanted = from.max(to);
    Err(Refusal::new(format!("access list {index} has {rules} rules, fewer than {wanted}"))
        .remedy(format!("show acl-plugin acl index {index}")))
}

fn attachments(registry: &mut Registry) {
    registry.command(
        Command::new(
            "set acl-plugin interface <interface> input|output acl <acl:u32> \
             {[sequence <:u32>] [del]}",
        )
        .entry(
            order::FEATURES,
            "interfaces.<interface>.access-lists.<input|output>.<acl>: {sequence}",
        )
        .undo("set acl-plugin interface <interface> [input] [output] acl <acl> del")
        .stands_on("access list <acl>")
        .group(GROUP)
        .help("Let an access list filter what an interface receives or sends, or no more")
        .details(
            "Several lists of an interface are one, in the order of their sequence numbers. \
             Without a number a list comes behind the others. On bridge ports lists filter the IP \
             packets in frames; other frames pass.",
        )
        .word("sequence", "its place among the interface's lists")
        .example("set acl-plugin interface e0 input acl 3")
        .example("set acl-plugin interface e0 input acl 3 del")
        .run_or_begin(attach),
    );
}

fn settings(registry: &mut Registry) {
    registry.command(
        Command::new("set acl-plugin l4-match-nonfirst-fragment <match:0-1>")
            .entry(order::FEATURES, "acl.l4-match-nonfirst-fragment: <match>")
            .undo("set acl-plugin l4-match-nonfirst-fragment 1")
            .replaces(&[])
            .group(GROUP)
            .help("Say whether rules with ports match fragments after the first")
            .details(
                "Their ports, ICMP types and TCP flags are unknown. With 1, the default, these do \
                 not matter then.",
            )
            .example("set acl-plugin l4-match-nonfirst-fragment 0")
            .run(|engine: &mut Engine, args| {
                let matches: u32 = args.get("match")?;
                config::match_later_fragments(engine, matches == 1);
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("set acl-plugin virtual-reassembly on|off")
            .entry(order::FEATURES, "acl.virtual-reassembly: <on?off>")
            .undo("set acl-plugin virtual-reassembly off")
            .replaces(&[])
            .group(GROUP)
            .help("Learn the ports of fragments by virtual reassembly where lists filter")
            .example("set acl-plugin virtual-reassembly on")
            .run(|engine: &mut Engine, args| {
                config::set_reassembly(engine, args.has("on"))?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("set acl-plugin counters on|off")
            .entry(order::FEATURES, "acl.counters: <on?off>")
            .undo("set acl-plugin counters off")
            .replaces(&[])
            .group(GROUP)
            .help("Count the packets and bytes that each rule decides about, or no more")
            .details("Counts begin at zero when a list is replaced.")
            .example("set acl-plugin counters on")
            .run(|engine: &mut Engine, args| {
                config::set_counting(engine, args.has("on"));
                Ok(Output::none())
            }),
    );
}

fn prefix(args: &Args<'_>, name: &str) -> Result<Option<IpPrefix>, Refusal> {
    let written = args.optional::<Written>(name)?;
    Ok(written.map(|written| IpPrefix::new(written.address, written.length)))
}

/// The names of the sets that a rule asks.
fn set_names(args: &Args<'_>) -> Result<SetNames, Refusal> {
    let mut names = SetNames::default();
    for role in Role::ALL {
        names[role as usize] = args.optional::<&str>(role.word())?.map(Arc::from);
    }
    Ok(names)
}

/// The rule of a group of words.
fn rule(args: &Args<'_>) -> Result<Rule, Refusal> {
    let action = Action::of(args.get("action")?).map_err(|what| args.refuse("action", what))?;
    let protocol = match args.optional::<&str>("proto") {
        Ok(word) => word
            .and_then(|word| PROTOCOLS.iter().find(|(known, _)| *known == word))
            .map(|(_, p)| p.0),
        Err(_) => args.optional::<u8>("proto")?,
    };
    let family = match (args.has("ipv4"), args.has("ipv6")) {
        (true, true) => return Err(args.refuse("action", "a rule is of one family")),
        (true, false) => Some(Family::Ip4),
        (false, true) => Some(Family::Ip6),
        (false, false) => None,
    };
    let given = Given {
        family,
        source: prefix(args, "src")?,
        destination: prefix(args, "dst")?,
        protocol,
        source_ports: args.optional("sport")?,
        destination_ports: args.optional("dport")?,
        tcp_flags: args.optional("tcpflags")?,
        tcp_mask: args.optional("mask")?,
        dscp: args.optional("dscp")?,
        fragment: args.has("fragment"),
        log: args.has("log"),
        sets: set_names(args)?,
    };
    Rule::new(action, given).map_err(|what| args.refuse("action", what))
}

/// The tag of a list.
pub(crate) fn tag(args: &Args<'_>) -> Result<Option<String>, Refusal> {
    let tag: Option<String> = args.optional("tag")?;
    match &tag {
        Some(text) if text.chars().count() > TAG_CHARS_MAX => {
            Err(args.refuse("tag", format!("a tag has at most {TAG_CHARS_MAX} characters")))
        }
        _ => Ok(tag),
    }
}

/// The number of the list that a command names, or a free one.
fn index(engine: &Engine, args: &Args<'_>) -> Result<u32, Refusal> {
    let free = || engine.get::<Lists>().map_or(0, Lists::free);
    Ok(args.optional("index")?.unwrap_or_else(free))
}

fn put(engine: &mut Engine, index: u32, change: Change) -> Result<Work<Engine>, Refusal> {
    let answer = Output::both(format!("ACL index:{index}"), json!({ "index": index }));
    config::change(engine, change, answer)
}

fn set(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let index = index(engine, args)?;
    let acl = config::acl(engine, index, tag(args)?.unwrap_or_default(), rules(args)?)?;
    put(engine, index, Change::Put { acl: Arc::new(acl), of: None })
}

fn rules(args: &Args<'_>) -> Result<Vec<Rule>, Refusal> {
    args.groups("action").map(|words| rule(&words)).collect()
}

fn set_from_file(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let Some((path, opened)) = args.file_to_read("file")? else {
        return Err(Refusal::new("no file"));
    };
    let (index, tag) = (index(engine, args)?, tag(args)?.unwrap_or_default());
    let name = path.display().to_string();
    let sets = engine.get::<Lists>().map_or_else(BTreeMap::new, |lists| lists.sets.snapshot());
    let affected = engine.get::<Lists>().map_or_else(Vec::new, |lists| lists.sets_with(index));
    let work = move || {
        let rules = file::read(opened, RULES_MAX).map_err(|mistakes| refusal(&name, mistakes))?;
        if rules.is_empty() {
            return Err(Refusal::new(format!("{name} has no rule")));
        }
        let acl = Acl::new(index, tag, rules, |set| sets.get(set).cloned());
        let acl = Arc::new(acl.map_err(|what| Refusal::new(format!("{name}: {what}")))?);
        let ready = config::compile_with(affected, index, &acl)?;
        Ok((acl, ready))
    };
    in_background(work, move |engine: &mut Engine, (acl, ready)| {
        let count = acl.len();
        config::apply(engine, Change::Put { acl, of: None }, ready)?;
        let text = format!("ACL index:{index}, {count} rules");
        Ok(Output::both(text, json!({ "index": index, "rules": count })))
    })
}

/// What is wrong with a file, in a refusal.
pub(crate) fn refusal(name: &str, mistakes: Mistakes) -> Refusal {
    match mistakes {
        Mistakes::Unreadable(what) => Refusal::new(format!("{name} cannot be read: {what}")),
        Mistakes::Lines { first, more } => {
            let mut text = format!("{} lines of {name} are wrong:", first.len() + more);
            for (line, what) in &first {
                let _ = write!(text, "\n  line {line}: {what}");
            }
            if more > 0 {
                let _ = write!(text, "\n  and {more} more");
            }
            let line = first.first().map_or(1, |(line, _)| *line);
            Refusal::new(text).in_file(name, line).remedy("nothing was changed")
        }
    }
}

fn attach(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let direction = if args.has("input") { Direction::Input } else { Direction::Output };
    let on = (args.interface(engine, "interface")?, direction);
    let acl = args.get("acl")?;
    let change = match args.has("del") {
        true => Change::Detach(on, acl),
        false => {
            let given = args.optional("sequence")?;
            let sequence = given.unwrap_or_else(|| config::next_sequence(engine, on));
            Change::Attach(on, sequence, acl)
        }
    };
    config::change(engine, change, Output::none())
}

/// The lists in `show running-config`, in lines of a bounded number of rules.
pub(crate) fn write_lists() -> impl FnMut(&Engine, &mut ConfigWriter, usize) -> bool {
    // The list that is being written, and how many of its rules are.
    let mut at: Option<(u32, usize)> = None;
    let mut after = None;
    move |engine, config, most| {
        let Some(lists) = engine.get::<Lists>() else { return true };
        for _ in 0..most {
            let (index, from) = match at {
                Some(at) => at,
                None => match lists.after(after).next() {
                    Some((index, _)) => (index, 0),
                    None => return true,
                },
            };
            at = None;
            after = Some(index);
            let Some(acl) = lists.get(index) else { continue };
            let rest = acl.entries_from(from).take(RULES_PER_LINE);
            let rules: Vec<String> = rest.map(|entry| entry.rule.to_string()).collect();
            let place = match from {
                0 => format!("acl index {index}"),
                _ => format!("acl-rest {index} from {from}"),
            };
            let tag = match acl.tag.as_str() {
                tag if from == 0 && !tag.is_empty() => format!(" tag {}", quoted(tag)),
                _ => String::new(),
            };
            let rules = rules.join(", ");
            config.command(format_args!("set acl-plugin {place} {rules}{tag}"));
            if acl.len() > from + RULES_PER_LINE {
                at = Some((index, from + RULES_PER_LINE));
            }
        }
        false
    }
}

/// Where they are attached, in `show running-config`: by interface.
pub(crate) fn write_attached(engine: &Engine, interface: &Interface, config: &mut ConfigWriter) {
    let Some(lists) = engine.get::<Lists>() else { return };
    for direction in Direction::ALL {
        for (sequence, acl) in lists.of((interface.id, direction)) {
            let (name, word) = (&interface.name, direction.word());
            config.command(format_args!(
                "set acl-plugin interface {name} {word} acl {acl} sequence {sequence}"
            ));
        }
    }
}

/// The settings in `show running-config`.
pub(crate) fn write_settings(engine: &Engine, config: &mut ConfigWriter) {
    let Some(lists) = engine.get::<Lists>() else { return };
    if !lists.published().matches_later_fragments() {
        config.command(format_args!("set acl-plugin l4-match-nonfirst-fragment 0"));
    }
    if lists.reassembles() {
        config.command(format_args!("set acl-plugin virtual-reassembly on"));
    }
    if lists.published().is_counting() {
        config.command(format_args!("set acl-plugin counters on"));
    }
}
