//! Commands that make named sets and change their elements.

use quiver_control::{
    Args, Command, ConfigWriter, IpPrefix as Written, Output, Refusal, Registry, Value, ValueType,
    order,
};
use quiver_core::Engine;
use quiver_core::control::interfaces::Interface;
use quiver_tables::prefix::{Address, IpPrefix};

use crate::commands::GROUP;
use crate::config::Lists;
use crate::element::Element;
use crate::named_set::Kind;
use crate::set_config;
use crate::set_file;

pub(crate) fn register(registry: &mut Registry) {
    registry.commands.add_type(ValueType::strict(
        "network",
        "an address such as 192.0.2.1, or a prefix such as 192.0.2.0/24 or 2001:db8::/32",
        "192.0.2.0/24",
        network,
    ));
    make(registry);
    for kind in Kind::ALL {
        elements(registry, kind);
    }
    registry.command(
        Command::new("set acl-plugin set-file <set:word> <file:path>")
            .group(GROUP)
            .help("Replace the elements of a set of addresses or ports by those of a file")
            .details(
                "The file has one element a line: a prefix, an address, a port, or a range of \
                 ports. # begins a comment. Mistakes are listed by line, and then nothing changes. \
                 Elements that stay are not touched; new ones are added before others go. Other \
                 commands go on meanwhile, and the command answers when all is in force.",
            )
            .example("set acl-plugin set-file blocked /etc/quiver/blocked.txt")
            .run_or_begin(set_file::load),
    );
    registry.command(
        Command::new("delete acl-plugin set <set:word> [when-unused]")
            .group(GROUP)
            .help("Delete a set that no access list uses")
            .details(
                "While a rule names the set, it is refused; with when-unused the set goes with the \
                 last list that uses it, at once where none does.",
            )
            .example("delete acl-plugin set blocked")
            .run(|engine: &mut Engine, args| {
                set_config::delete(engine, args.get("set")?, args.has("when-unused"))?;
                Ok(Output::none())
            }),
    );
}

/// A network as a value of a command.
fn network(text: &str) -> Option<Value<'_>> {
    let (address, length) = match set_file::network(text)? {
        IpPrefix::V4(prefix) => (prefix.first().ip(), prefix.len()),
        IpPrefix::V6(prefix) => (prefix.first().ip(), prefix.len()),
    };
    Some(Value::Prefix(Written { address, length }))
}

fn make(registry: &mut Registry) {
    registry.command(
        Command::new("set acl-plugin set <set:word> addresses|ports|interfaces")
            .entry(order::RESOURCES, "access-list-sets.<set>.of: <addresses|ports|interfaces>")
            .undo("delete acl-plugin set <set> when-unused")
            .makes("set <set>")
            .group(GROUP)
            .help("Make a named set of addresses, ports or interfaces that access lists ask")
            .details(
                "A rule names it by src-set, dst-set, sport-set, dport-set or rx-set. Its elements \
                 change while the lists stay compiled as they are; a set without elements matches \
                 nothing. A set of addresses has prefixes of both families.",
            )
            .word("set", "its name, of at most 63 characters")
            .example("set acl-plugin set blocked addresses")
            .run(|engine: &mut Engine, args| {
                let is_of = |kind: &Kind| args.has(kind.elements());
                let kind = Kind::ALL.into_iter().find(is_of).unwrap_or(Kind::Addresses);
                set_config::make(engine, kind, args.get("set")?)?;
                Ok(Output::none())
            }),
    );
}

fn elements(registry: &mut Registry, kind: Kind) {
    let (syntax, phase, entry, undo, example) = match kind {
        Kind::Addresses => (
            "set acl-plugin address-set <set:word> add|del <prefix:network>",
            order::RESOURCES,
            "access-list-sets.<set>.prefixes[]: <prefix> with add",
            "set acl-plugin address-set <set> del <prefix>",
            "set acl-plugin address-set blocked add 203.0.113.0/24",
        ),
        Kind::Ports => (
            "set acl-plugin port-set <set:word> add|del <ports:range>",
            order::RESOURCES,
            "access-list-sets.<set>.ports[]: <ports> with add",
            "set acl-plugin port-set <set> del <ports>",
            "set acl-plugin port-set web add 8080-8089",
        ),
        Kind::Interfaces => (
            "set acl-plugin interface-set <set:word> add|del <interface>",
            order::FEATURES,
            "interfaces.<interface>.access-list-sets[]: <set> with add",
            "set acl-plugin interface-set <set> del <interface>",
            "set acl-plugin interface-set inside add e0",
        ),
    };
    registry.command(
        Command::new(syntax)
            .entry(phase, entry)
            .undo(undo)
            .stands_on("set <set>")
            .group(GROUP)
            .help("Add an element to a set, or remove one")
            .details(
                "The next packet meets the set with it, or without it. Sessions of lists that use \
                 the set are matched again. An address without a length is that of one host. A \
                 prefix may stand in others of the set; a range of \
                 ports may not overlap another one.",
            )
            .example(example)
            .run(move |engine: &mut Engine, args| {
                let element = element(engine, args, kind)?;
                set_config::change(engine, args.get("set")?, element, args.has("add"))?;
                Ok(Output::none())
            }),
    );
}

fn element(engine: &Engine, args: &Args<'_>, kind: Kind) -> Result<Element, Refusal> {
    Ok(match kind {
        Kind::Addresses => {
            let written: Written = args.get("prefix")?;
            Element::Prefix(IpPrefix::new(written.address, written.length))
        }
        Kind::Ports => set_file::ports(args.get("ports")?).map_err(|e| args.refuse("ports", e))?,
        Kind::Interfaces => Element::Interface(args.interface(engine, "interface")?),
    })
}

/// A place among all elements of all sets, as they are written.
#[derive(Clone)]
struct At {
    set: String,
    /// The last element that was written; none behind the line that makes the set.
    element: Option<Element>,
}

/// The sets in `show running-config`, each with its elements but for interfaces.
pub(crate) fn write_sets() -> impl FnMut(&Engine, &mut ConfigWriter, usize) -> bool {
    let mut at: Option<At> = None;
    move |engine, config, most| {
        let Some(lists) = engine.get::<Lists>() else { return true };
        let mut left = most;
        while left > 0 {
            let Some(here) = at.clone() else {
                let Some(name) = lists.sets.names().next() else { return true };
                write_head(lists, name, config);
                at = Some(At { set: name.to_owned(), element: None });
                left -= 1;
                continue;
            };
            let found = match lists.sets.get(&here.set).map(|set| set.kind()) {
                Some(Kind::Interfaces) | None => Vec::new(),
                Some(_) => lists.sets.elements(&here.set, here.element, left),
            };
            for element in &found {
                let (word, set) = (element.kind().word(), &here.set);
                config.command(format_args!("set acl-plugin {word} {set} add {element}"));
            }
            match found.last() {
                Some(last) => at = Some(At { set: here.set, element: Some(*last) }),
                None => match lists.sets.name_after(&here.set) {
                    Some(name) => {
                        write_head(lists, name, config);
                        at = Some(At { set: name.to_owned(), element: None });
                    }
                    None => return true,
                },
            }
            left = left.saturating_sub(found.len().max(1));
        }
        false
    }
}

fn write_head(lists: &Lists, name: &str, config: &mut ConfigWriter) {
    if let Some(set) = lists.sets.get(name) {
        let of = set.kind().elements();
        config.command(format_args!("set acl-plugin set {name} {of}"));
    }
}

/// The sets of interfaces that an interface is in, in `show running-config`.
pub(crate) fn write_interfaces(engine: &Engine, interface: &Interface, config: &mut ConfigWriter) {
    let Some(lists) = engine.get::<Lists>() else { return };
    for name in lists.sets.names().filter(|name| lists.sets.has_interface(name, interface.id)) {
        let of = &interface.name;
        config.command(format_args!("set acl-plugin interface-set {name} add {of}"));
    }
}
