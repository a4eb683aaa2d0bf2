//! `set acl-plugin macip …`: lists of senders, and the interfaces that have them.

use std::collections::BTreeMap;
use std::sync::Arc;

use quiver_control::{
    Args, Cell, Column, Command, ConfigWriter, IpPrefix as Written, Listing, Output, Refusal,
    Registry, Table, Work, order, quoted,
};
use quiver_core::control::interfaces::{Interface, InterfaceChange};
use quiver_core::{Engine, InterfaceId};
use quiver_tables::prefix::IpPrefix;
use serde_json::json;

use crate::commands::{GROUP, tag};
use crate::macip::{MACIP, MacipList, MacipRule, MacipTables};
use crate::rules::Action;

/// Lists at most.
const LISTS_MAX: usize = 4_096;
/// Rules of a list at most: they are one line of the configuration.
const RULES_MAX: usize = 400;

/// All lists, in the engine.
pub(crate) struct MacipLists {
    lists: BTreeMap<u32, Arc<MacipList>>,
    attached: BTreeMap<InterfaceId, u32>,
    tables: Arc<MacipTables>,
}

impl MacipLists {
    pub fn new(tables: Arc<MacipTables>) -> MacipLists {
        MacipLists { lists: BTreeMap::new(), attached: BTreeMap::new(), tables }
    }

    fn users(&self, index: u32) -> impl Iterator<Item = InterfaceId> {
        self.attached.iter().filter(move |(_, list)| **list == index).map(|(id, _)| *id)
    }
}

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "set acl-plugin macip acl [index <:u32>] \
             (<action:permit|deny> {[ip <:prefix>] [mac <:mac>] [mask <:mac>]} [','])... \
             [tag <:text>]",
        )
        .entry(
            order::RESOURCES,
            "macip-lists.<index>: {tag, rules: [action: {action, ip, mac, mask}]}",
        )
        .undo("delete acl-plugin macip acl index <index>")
        .replaces(&["index"])
        .makes("macip list <index>")
        .group(GROUP)
        .help("Make a list of senders by MAC and IP address, or replace all of its rules at once")
        .details(
            "The first rule that has the source of an IPv4 or IPv6 packet, or the sender of an ARP \
             packet, and the source MAC address of its frame decides; what no rule has is dropped. \
             An ARP packet whose sender has another MAC address than the frame is dropped. Frames \
             of other protocols pass. A mask has its ones first; without it all of the address is \
             compared. Hosts that have no address yet send from 0.0.0.0 or ::.",
        )
        .word("index", "the number of the list")
        .word("mask", "which bits of the MAC address are compared: its first ones")
        .word("tag", "a text of yours")
        .example(
            "set acl-plugin macip acl index 2 permit ip 192.0.2.10/32 mac 02:fe:00:00:00:10, \
             permit ip 0.0.0.0/32",
        )
        .run(set),
    );
    registry.command(
        Command::new("delete acl-plugin macip acl index <index:u32>")
            .group(GROUP)
            .help("Delete a list of senders that no interface has")
            .example("delete acl-plugin macip acl index 2")
            .run(|engine: &mut Engine, args| {
                delete(engine, args.get("index")?)?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("set acl-plugin macip interface <interface> <acl:u32> [del]")
            .entry(order::FEATURES, "interfaces.<interface>.macip-list: <acl>")
            .undo("set acl-plugin macip interface <interface> <acl> del")
            .replaces(&["interface"])
            .stands_on("macip list <acl>")
            .group(GROUP)
            .help("Let a list of senders say who may send from an interface, or no more")
            .details("Another list takes the place of the one that the interface has.")
            .example("set acl-plugin macip interface e0 2")
            .run(|engine: &mut Engine, args| {
                let id = args.interface(engine, "interface")?;
                attach(engine, id, args.get("acl")?, !args.has("del"))?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("show acl-plugin macip acl")
            .group(GROUP)
            .help("Show the lists of senders with their rules")
            .run_or_begin(|engine: &mut Engine, _| lists(engine)),
    );
    registry.command(
        Command::new("show acl-plugin macip interface")
            .group(GROUP)
            .help("Show which list of senders each interface has")
            .run(|engine: &mut Engine, _| Ok(interfaces(engine))),
    );
}

fn no_list(index: u32) -> Refusal {
    Refusal::new(format!("there is no macip list {index}")).remedy("`show acl-plugin macip acl`")
}

fn rule(args: &Args<'_>) -> Result<MacipRule, Refusal> {
    let action = Action::of(args.get("action")?).map_err(|what| args.refuse("action", what))?;
    let prefix = args.optional::<Written>("ip")?;
    let prefix = prefix.map(|written| IpPrefix::new(written.address, written.length));
    MacipRule::new(action, prefix, args.optional("mac")?, args.optional("mask")?)
        .map_err(|what| args.refuse("action", what))
}

fn set(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let rules: Vec<MacipRule> =
        args.groups("action").map(|words| rule(&words)).collect::<Result<_, _>>()?;
    if rules.len() > RULES_MAX {
        return Err(Refusal::new(format!("a macip list has at most {RULES_MAX} rules")));
    }
    let list = MacipList::new(tag(args)?.unwrap_or_default(), rules).map_err(Refusal::new)?;
    let given = args.optional("index")?;
    engine.with(|_, all: &mut MacipLists| {
        let free = || (0..).find(|index| !all.lists.contains_key(index)).unwrap_or(u32::MAX);
        let index: u32 = given.unwrap_or_else(free);
        if !all.lists.contains_key(&index) && all.lists.len() >= LISTS_MAX {
            let what = format!("there are {LISTS_MAX} macip lists already");
            return Err(Refusal::new(what).remedy("delete one"));
        }
        let list = Arc::new(list);
        for id in all.users(index) {
            all.tables.publish(id, Some(list.clone()));
        }
        all.lists.insert(index, list);
        Ok(Output::both(format!("macip list index:{index}"), json!({ "index": index })))
    })
}

fn delete(engine: &mut Engine, index: u32) -> Result<(), Refusal> {
    engine.with(|engine, all: &mut MacipLists| {
        all.lists.get(&index).ok_or_else(|| no_list(index))?;
        if let Some(id) = all.users(index).next() {
            let name = engine.interface_name(id);
            let what = format!("macip list {index} is that of {name}");
            return Err(Refusal::new(what)
                .remedy(format!("set acl-plugin macip interface {name} {index} del")));
        }
        all.lists.remove(&index);
        Ok(())
    })
}

fn attach(engine: &mut Engine, id: InterfaceId, index: u32, is_added: bool) -> Result<(), Refusal> {
    engine.with(|engine, all: &mut MacipLists| {
        let name = engine.interface_name(id).to_string();
        if !is_added {
            if all.attached.get(&id) != Some(&index) {
                let what = format!("macip list {index} is not that of {name}");
                return Err(Refusal::new(what).remedy("`show acl-plugin macip interface`"));
            }
            engine.set_feature(id, "device-input", MACIP, false)?;
            all.attached.remove(&id);
            all.tables.publish(id, None);
            return Ok(());
        }
        let list = all.lists.get(&index).ok_or_else(|| no_list(index))?.clone();
        let is_bare = engine.interface(id).is_none_or(|interface| interface.row().mac == [0; 6]);
        if is_bare {
            let what = format!("{name} receives no frames with MAC addresses");
            return Err(Refusal::new(what).remedy("use an access list there"));
        }
        if !all.attached.contains_key(&id) {
            engine.set_feature(id, "device-input", MACIP, true)?;
        }
        all.attached.insert(id, index);
        all.tables.publish(id, Some(list));
        Ok(())
    })
}

/// An interface that goes takes along which list it has.
pub(crate) fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    if matches!(change, InterfaceChange::Deleted) {
        engine.with(|_, all: &mut MacipLists| {
            all.attached.remove(&id);
            all.tables.publish(id, None);
        });
    }
}

fn lists(engine: &mut Engine) -> Result<Work<Engine>, Refusal> {
    let columns = [
        Column::right("ACL"),
        Column::left("Tag"),
        Column::left("Rules"),
        Column::left("Interfaces"),
    ];
    let indexes = engine.get::<MacipLists>().map(|all| all.lists.keys().copied().collect());
    let indexes: Vec<u32> = indexes.unwrap_or_default();
    let add = |engine: &Engine, table: &mut Table, index: u32| {
        let Some(all) = engine.get::<MacipLists>() else { return };
        let Some(list) = all.lists.get(&index) else { return };
        let rules: Vec<String> = list.rules.iter().map(MacipRule::to_string).collect();
        let users: Vec<String> =
            all.users(index).map(|id| engine.interface_name(id).to_string()).collect();
        let row = table.row().cell(index).cell(list.tag.clone());
        row.cell(Cell::new(rules.join(", "), rules)).cell(Cell::new(users.join(", "), users));
    };
    Listing::over("lists", columns, indexes, add)
        .when_empty("no macip lists; `set acl-plugin macip acl` makes one")
        .begin(engine)
}

fn interfaces(engine: &Engine) -> Output {
    let mut table = Table::new([Column::left("Interface"), Column::right("ACL")])
        .when_empty("no interface has a macip list");
    if let Some(all) = engine.get::<MacipLists>() {
        for interface in engine.interfaces_by_name() {
            if let Some(list) = all.attached.get(&interface.id) {
                table.row().cell(interface.name.to_string()).cell(*list);
            }
        }
    }
    Output::none().table("interfaces", table)
}

/// The lists in `show running-config`.
pub(crate) fn write_lists(engine: &Engine, config: &mut ConfigWriter) {
    let Some(all) = engine.get::<MacipLists>() else { return };
    for (index, list) in &all.lists {
        let rules: Vec<String> = list.rules.iter().map(MacipRule::to_string).collect();
        let tag = match list.tag.as_str() {
            "" => String::new(),
            tag => format!(" tag {}", quoted(tag)),
        };
        let rules = rules.join(", ");
        config.command(format_args!("set acl-plugin macip acl index {index} {rules}{tag}"));
    }
}

/// Who has one, in `show running-config`: by interface.
pub(crate) fn write_attached(engine: &Engine, interface: &Interface, config: &mut ConfigWriter) {
    let attached = engine.get::<MacipLists>().and_then(|all| all.attached.get(&interface.id));
    if let Some(index) = attached {
        let name = &interface.name;
        config.command(format_args!("set acl-plugin macip interface {name} {index}"));
    }
}
