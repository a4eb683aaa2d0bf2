//! The commands of sub-interfaces and tag rewrites.

use std::fmt::Write as _;

use quiver_control::{
    Args, Column, Command, Listing, Output, Refusal, Registry, Table, Work, in_pages, order,
};
use quiver_core::{Engine, InterfaceId};
use quiver_wire::vlan::VlanId;
use serde_json::{Value, json};

use super::frame::TagType;
use super::matching::{Matching, Vid};
use super::rewrite::{Rewrite, Tag};
use super::rewrites::{self, Rewrites};
use super::sub_interfaces::{self, SubInterfaces};

const GROUP: &str = "Interfaces";
const GROUP_LAYER_2: &str = "Layer 2";

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "create sub-interfaces <interface> <id:range> [default|untagged] \
             [(dot1q <:1-4094|any> | dot1ad <:1-4094|any>) [inner-dot1q <:1-4094|any>] \
             [exact-match]]",
        )
        .entry(
            order::SUB_INTERFACES,
            "interfaces.<interface>.sub-interfaces.<id>: {dot1q, dot1ad, inner-dot1q, \
             exact-match, default, untagged}",
        )
        .undo("delete sub-interface <interface>.<id>")
        .makes("interface <interface>.<id>")
        .group(GROUP)
        .help("Create a sub-interface, which takes frames of an interface by their VLAN tags")
        .details(
            "The number alone takes the VLAN of that number, as dot1q and exact-match say. With \
             exact-match only frames with these tags and no more are taken, and the sub-interface \
             can route; without, more tags may follow. A range makes one for each VLAN of it.",
        )
        .word("untagged", "frames without a tag, or with a priority only")
        .word("default", "frames that no other sub-interface takes")
        .example("create sub-interfaces memif0/0 100")
        .example("create sub-interfaces memif0/0 7 dot1ad 100 inner-dot1q any")
        .example("create sub-interfaces memif0/0 1-4000")
        .run(create),
    );
    registry.command(
        Command::new("delete sub-interface <interface>")
            .group(GROUP)
            .help("Delete a sub-interface")
            .example("delete sub-interface memif0/0.100")
            .run(|engine: &mut Engine, args| {
                sub_interfaces::delete(engine, args.interface(engine, "interface")?)?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("show vlan")
            .group(GROUP)
            .help("Show which frames each sub-interface takes, and which tags are rewritten")
            .run_or_begin(|engine: &mut Engine, _| show(engine)),
    );
    registry.command(
        Command::new("show interface l2 tag-rewrite [<interface>]")
            .also("show interface vtr [<interface>]")
            .group(GROUP_LAYER_2)
            .help("Show how the VLAN tags of interfaces' frames are rewritten")
            .run_or_begin(show_rewrites),
    );
    registry.command(
        Command::new(
            "set interface l2 tag-rewrite <interface> (disable | pop <count:1-2> \
             | push (dot1q|dot1ad) <tag1:1-4094> [<tag2:1-4094>] \
             | translate (1-1|2-1|1-2|2-2) (dot1q|dot1ad) <tag1:1-4094> [<tag2:1-4094>])",
        )
        .entry(
            order::FEATURES,
            "interfaces.<interface>.tag-rewrite: {pop: <count>} / {push: <dot1q|dot1ad>, outer: \
             <tag1>, inner: <tag2>} / {translate: <1-1|2-1|1-2|2-2>, type: <dot1q|dot1ad>, outer: \
             <tag1>, inner: <tag2>}",
        )
        .undo("set interface l2 tag-rewrite <interface> disable")
        .replaces(&["interface"])
        .group(GROUP_LAYER_2)
        .help(
            "Change the VLAN tags of frames that an interface receives, and change them back when \
             it sends",
        )
        .details(
            "In force while the interface is cross-connected or bridged. What comes off on the \
             way in must be tags that the sub-interface names, for they are put back on the way \
             out. A new tag has the priority of the one in whose place it comes. With two tags, \
             dot1ad is the kind of the outer one.",
        )
        .example("set interface l2 tag-rewrite memif0/0.100 pop 1")
        .example("set interface l2 tag-rewrite memif0/0.100 translate 1-2 dot1ad 200 100")
        .run(set_rewrite),
    );
}

fn vid(args: &Args<'_>, name: &str) -> Result<Option<Vid>, Refusal> {
    if !args.has(name) {
        return Ok(None);
    }
    if args.get::<&str>(name).is_ok_and(|word| word == "any") {
        return Ok(Some(Vid::Any));
    }
    let vlan = VlanId::new(args.get(name)?);
    Ok(Some(Vid::Exactly(
        vlan.ok_or_else(|| args.refuse(name, "a VLAN is a number from 1 to 4094"))?,
    )))
}

/// What the command says of frames; `None` when it says nothing.
fn matching(args: &Args<'_>) -> Result<Option<Matching>, Refusal> {
    let tagged = match (vid(args, "dot1q")?, vid(args, "dot1ad")?) {
        (Some(outer), _) => Some((TagType::Dot1q, outer)),
        (_, Some(outer)) => Some((TagType::Dot1ad, outer)),
        _ => None,
    };
    let other = match (args.has("untagged"), args.has("default")) {
        (true, _) => Some(Matching::Untagged),
        (_, true) => Some(Matching::Default),
        _ => None,
    };
    match (tagged, other) {
        (Some(_), Some(other)) => Err(args.refuse(
            if other == Matching::Untagged { "untagged" } else { "default" },
            format!("{other} names frames by what they have not: no VLAN goes with it"),
        )),
        (Some((kind, outer)), None) => {
            let (inner, exact) = (vid(args, "inner-dot1q")?, args.has("exact-match"));
            Ok(Some(Matching::Tagged { kind, outer, inner, exact }))
        }
        (None, other) => Ok(other),
    }
}

fn create(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let parent = args.interface(engine, "interface")?;
    let (first, last): (u64, u64) = args.get("id")?;
    let said = matching(args)?;
    if first != last && said.is_some() {
        return Err(args.refuse(
            "id",
            "a range makes one sub-interface for each VLAN of it: nothing else goes with it",
        ));
    }
    let number = |id: u64| {
        u32::try_from(id).map_err(|_| args.refuse("id", "a sub-interface's number has 32 bits"))
    };
    let plain = |id: u64| {
        let vlan = u16::try_from(id).ok().and_then(VlanId::new);
        let refusal =
            || args.refuse("id", format!("{id} is no VLAN")).remedy("say which: dot1q VLAN");
        vlan.map(Matching::plain).ok_or_else(refusal)
    };
    let wanted: Vec<(u32, Matching)> = match said {
        Some(said) => vec![(number(first)?, said)],
        None if plain(last).is_err() => {
            return Err(plain(last).err().unwrap_or_else(|| Refusal::new("")));
        }
        None => (first..=last)
            .map(|id| Ok((number(id)?, plain(id)?)))
            .collect::<Result<_, Refusal>>()?,
    };
    let made = create_all(engine, parent, &wanted)?;
    let names: Vec<String> = made.iter().map(|id| engine.interface_name(*id)).collect();
    let text = match names.as_slice() {
        [first, .., last] => format!("{first} to {last}"),
        _ => names.join(""),
    };
    Ok(Output::default().line(text).json("names", names.into()))
}

/// All, or none.
fn create_all(
    engine: &mut Engine,
    parent: InterfaceId,
    wanted: &[(u32, Matching)],
) -> Result<Vec<InterfaceId>, Refusal> {
    let mut made = Vec::new();
    for (number, matching) in wanted {
        match sub_interfaces::create(engine, parent, *number, *matching) {
            Ok(id) => made.push(id),
            Err(refusal) => {
                for id in made {
                    sub_interfaces::delete(engine, id)?;
                }
                return Err(refusal);
            }
        }
    }
    Ok(made)
}

/// The tags that are put in front: the kind goes with the outer one, the inner one is a customer
/// tag.
fn tags(args: &Args<'_>) -> Result<Vec<Tag>, Refusal> {
    let outer = if args.has("dot1ad") { TagType::Dot1ad } else { TagType::Dot1q };
    let mut tags = Vec::new();
    for (name, kind) in [("tag1", outer), ("tag2", TagType::Dot1q)] {
        let Some(vlan) = args.optional::<u16>(name)? else { continue };
        let vlan = VlanId::new(vlan)
            .ok_or_else(|| args.refuse(name, "a VLAN is a number from 1 to 4094"))?;
        tags.push(Tag { kind, vlan });
    }
    Ok(tags)
}

fn set_rewrite(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let id = args.interface(engine, "interface")?;
    let translations = [("1-1", 1, 1), ("2-1", 2, 1), ("1-2", 1, 2), ("2-2", 2, 2)];
    let translation = translations.into_iter().find(|(words, ..)| args.has(words));
    let push = tags(args)?;
    if let Some((words, _, count)) = translation
        && push.len() != count
    {
        let refusal =
            Refusal::new(format!("translate {words} puts {count} in front, {} named", push.len()));
        return Err(refusal.remedy("one VLAN for each"));
    }
    let pop = translation.map_or(args.or("count", 0u8)?.into(), |(_, pop, _)| pop);
    rewrites::set(engine, id, Rewrite { pop, push })?;
    Ok(Output::none())
}

fn show(engine: &mut Engine) -> Result<Work<Engine>, Refusal> {
    let columns = ["Interface", "Parent", "Takes", "Input", "Tag rewrite"].map(Column::left);
    let ids: Vec<InterfaceId> = engine.all_interfaces().map(|interface| interface.id).collect();
    let add =
        |engine: &Engine, table: &mut Table, id: InterfaceId| {
            let Some(interface) = engine.interface(id) else { return };
            let sub = engine.get::<SubInterfaces>().and_then(|subs| subs.all().get(&id));
            let rewrite = engine.get::<Rewrites>().and_then(|rewrites| rewrites.all().get(&id));
            if sub.is_none() && rewrite.is_none() {
                return;
            }
            table
                .row()
                .cell(interface.name.clone())
                .cell(sub.map_or(String::new(), |sub| engine.interface_name(sub.parent)))
                .cell(sub.map_or("what no sub-interface takes".to_owned(), |sub| {
                    sub.matching.to_string()
                }))
                .cell(engine.node_name(interface.row().input))
                .cell(rewrite.map_or(String::new(), Rewrite::to_string));
        };
    Listing::over("interfaces", columns, ids, add).begin(engine)
}

fn show_rewrites(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let only = args.optional_interface(engine, "interface")?;
    let all = engine.get::<Rewrites>().into_iter().flat_map(Rewrites::all).map(|(id, _)| *id);
    let ids: Vec<InterfaceId> = all.filter(|id| only.is_none_or(|only| only == *id)).collect();
    let head = if ids.is_empty() { "no tags are rewritten\n" } else { "" };
    let add = |engine: &Engine, text: &mut String, list: &mut Vec<Value>, id: InterfaceId| {
        let Some(rewrite) = engine.get::<Rewrites>().and_then(|rewrites| rewrites.all().get(&id))
        else {
            return;
        };
        let name = engine.interface_name(id);
        let _ = writeln!(text, "{name}: {rewrite}");
        let tag = |tag: &Tag| json!({ "kind": tag.kind.to_string(), "vlan": tag.vlan.get() });
        let push: Vec<Value> = rewrite.push.iter().map(tag).collect();
        list.push(json!({ "interface": name, "pop": rewrite.pop, "push": push }));
    };
    Ok(in_pages(engine, "interfaces", head.to_owned(), ids, add))
}
