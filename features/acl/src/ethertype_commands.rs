//! White lists of EtherTypes: what is configured, and its commands.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use quiver_control::{
    Args, Cell, Column, Command, ConfigWriter, Listing, Output, Refusal, Registry, Table, Value,
    ValueType, Work, order,
};
use quiver_core::control::interfaces::{Interface, InterfaceChange};
use quiver_core::{Engine, InterfaceId};
use quiver_wire::EtherType;

use crate::commands::GROUP;
use crate::ethertypes::{EthertypeTables, LLC};
use crate::lists::On;
use crate::tables::Direction;

/// EtherTypes of a list at most.
const TYPES_MAX: usize = 64;
/// The word for [`LLC`].
const LLC_WORD: &str = "llc";

/// All white lists, kept in the engine.
pub(crate) struct Whitelists {
    tables: Arc<EthertypeTables>,
    /// In the order in which they were given.
    lists: BTreeMap<On, Vec<u16>>,
}

impl Whitelists {
    pub fn new(tables: Arc<EthertypeTables>) -> Whitelists {
        Whitelists { tables, lists: BTreeMap::new() }
    }
}

/// `llc`, or an EtherType in digits: [`LLC`] or a number.
fn read(text: &str) -> Option<Value<'_>> {
    if text == LLC_WORD {
        return Some(Value::Number(LLC.into()));
    }
    let number = match text.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16).ok()?,
        None => text.parse().ok()?,
    };
    (number >= EtherType::SMALLEST.0).then_some(Value::Number(number.into()))
}

pub(crate) fn register(registry: &mut Registry) {
    registry.commands.add_type(ValueType::strict(
        "ethertype",
        "an EtherType such as 0x806, 0x600 or more, or llc",
        "0x806",
        read,
    ));
    registry.command(
        Command::new(
            "set acl-plugin ethertype-whitelist <interface> input|output \
             (<ethertype:ethertype>... | off)",
        )
        .entry(
            order::FEATURES,
            "interfaces.<interface>.ethertype-whitelist.<input|output>: <ethertype>...",
        )
        .undo("set acl-plugin ethertype-whitelist <interface> [input] [output] off")
        .replaces(&["interface", "input", "output"])
        .group(GROUP)
        .help("Let only frames with these EtherTypes pass, beside those of IPv4 and IPv6")
        .details(
            "On bridge ports and routed interfaces. IPv4 and IPv6 always pass: access lists are \
             for them. All else is dropped unless it is listed, ARP (0x806) too. Types are read \
             behind up to two VLAN tags. llc is every frame with a length in the place of the \
             type, as those of spanning trees and IS-IS. Another list takes the place of the one \
             that is there at once.",
        )
        .word("ethertype", "types of frames that pass: 0x806 is ARP, 0x88cc LLDP, 0x8847 MPLS")
        .word("off", "all frames pass again")
        .example("set acl-plugin ethertype-whitelist e0 input 0x806 0x88cc")
        .example("set acl-plugin ethertype-whitelist e0 input off")
        .run(set),
    );
    registry.command(
        Command::new("show acl-plugin ethertype-whitelist [<interface>]")
            .group(GROUP)
            .help("Show which EtherTypes pass where others than those of IP are dropped")
            .run_or_begin(show),
    );
}

fn word(ethertype: u16) -> String {
    if ethertype == LLC { LLC_WORD.to_owned() } else { format!("{ethertype:#x}") }
}

fn set(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let direction = if args.has("input") { Direction::Input } else { Direction::Output };
    let on = (args.interface(engine, "interface")?, direction);
    if args.has("off") {
        clear(engine, on)?;
        return Ok(Output::none());
    }
    put(engine, on, args.all("ethertype")?)?;
    Ok(Output::none())
}

fn put(engine: &mut Engine, on: On, list: Vec<u16>) -> Result<(), Refusal> {
    let sorted: BTreeSet<u16> = list.iter().copied().collect();
    if list.len() > TYPES_MAX {
        let what = format!("a white list has at most {TYPES_MAX} EtherTypes");
        return Err(Refusal::new(what).remedy("list fewer"));
    }
    engine.with(|engine, all: &mut Whitelists| {
        let is_bare = engine.interface(on.0).is_none_or(|interface| interface.row().mac == [0; 6]);
        if is_bare {
            let what = format!("{} has no frames with EtherTypes", engine.interface_name(on.0));
            return Err(Refusal::new(what).remedy("use an access list there"));
        }
        if !all.lists.contains_key(&on) {
            let (arc, node) = (on.1.frame_arc(), on.1.ethertype_node());
            engine.set_feature(on.0, arc, node, true)?;
        }
        all.tables.publish(on.0, on.1, Some(sorted.into_iter().collect()));
        all.lists.insert(on, list);
        Ok(())
    })
}

fn clear(engine: &mut Engine, on: On) -> Result<(), Refusal> {
    engine.with(|engine, all: &mut Whitelists| {
        if !all.lists.contains_key(&on) {
            let (name, word) = (engine.interface_name(on.0), on.1.word());
            let what = format!("{word} of {name} has no white list of EtherTypes");
            return Err(Refusal::new(what).remedy("`show acl-plugin ethertype-whitelist`"));
        }
        engine.set_feature(on.0, on.1.frame_arc(), on.1.ethertype_node(), false)?;
        all.tables.publish(on.0, on.1, None);
        all.lists.remove(&on);
        Ok(())
    })
}

/// An interface that goes takes its lists along.
pub(crate) fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    if change != InterfaceChange::Deleted {
        return;
    }
    engine.with(|_, all: &mut Whitelists| {
        for direction in Direction::ALL {
            all.tables.publish(id, direction, None);
            all.lists.remove(&(id, direction));
        }
    });
}

fn show(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let only = args.optional_interface(engine, "interface")?;
    let columns = ["Interface", "Direction", "EtherTypes"].map(Column::left);
    let all = engine.get::<Whitelists>().into_iter().flat_map(|all| all.lists.keys());
    let keys: Vec<On> =
        all.filter(|(id, _)| only.is_none_or(|only| only == *id)).copied().collect();
    let add = |engine: &Engine, table: &mut Table, on: On| {
        let list = engine.get::<Whitelists>().and_then(|all| all.lists.get(&on));
        let words: Vec<String> = list.into_iter().flatten().map(|kind| word(*kind)).collect();
        let row = table.row().cell(engine.interface_name(on.0)).cell(on.1.word());
        row.cell(Cell::new(words.join(" "), words));
    };
    Listing::over("whitelists", columns, keys, add)
        .when_empty("no interface has a white list of EtherTypes")
        .begin(engine)
}

/// The white lists in `show running-config`: by interface.
pub(crate) fn write_interface(engine: &Engine, interface: &Interface, config: &mut ConfigWriter) {
    let Some(all) = engine.get::<Whitelists>() else { return };
    for direction in Direction::ALL {
        if let Some(list) = all.lists.get(&(interface.id, direction)) {
            let words: Vec<String> = list.iter().map(|kind| word(*kind)).collect();
            let (name, on, words) = (&interface.name, direction.word(), words.join(" "));
            config.command(format_args!("set acl-plugin ethertype-whitelist {name} {on} {words}"));
        }
    }
}
