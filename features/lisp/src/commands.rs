//! The commands of LISP. `lisp` and `one` are two names of one table, as in VPP.

use std::net::IpAddr;

use quiver_control::{
    Args, Command, ConfigWriter, IpPrefix, Output, Refusal, Registry, order, with_interface_names,
};
use quiver_core::{Engine, InterfaceId};

use crate::config::{self, LispError, State};
use crate::database::{
    Action, Database, Eid, LOCATOR_SETS_MAX, LOCATORS_MAX, LocalLocator, Locator, MAPPINGS_MAX,
    Mapping,
};

/// The heading of these commands.
pub(crate) const GROUP: &str = "LISP";
/// The names of the table of commands; configurations are written with the first.
pub(crate) const NAMES: [&str; 2] = ["lisp", "one"];

/// A command in both names.
pub(crate) fn command(syntax: &str) -> Command<Engine> {
    let [lisp, one] = NAMES.map(|name| syntax.replacen("lisp", name, 1).leak());
    Command::new(lisp).also(one).group(GROUP)
}

pub(crate) fn register(registry: &mut Registry) {
    register_switches(registry);
    register_locators(registry);
    register_mappings(registry);
}

fn register_switches(registry: &mut Registry) {
    registry.command(
        command("lisp enable")
            .help("Enable LISP, and make the interface of instance 0, lisp_gpe0")
            .details(
                "Packets to EIDs with a mapping leave in LISP by the locators of the mapping. What \
                 comes in LISP for a locator of this router is looked up in the table of its \
                 instance.",
            )
            .entry(order::INTERFACES, "lisp.enabled: true")
            .undo("lisp disable")
            .makes("interface lisp_gpe0")
            .example("lisp enable")
            .run(|engine, _| set_enabled(engine, true)),
    );
    registry.command(
        command("lisp disable")
            .help("Disable LISP; what is configured stays, what was learned goes")
            .example("lisp disable")
            .run(|engine, _| set_enabled(engine, false)),
    );
    registry.command(
        command("lisp header plain|gpe")
            .help("Send the header of LISP, or that of LISP-GPE, which names what follows")
            .details("LISP-GPE (RFC 9305) unless it is set, as in VPP. Both are received.")
            .entry(order::FEATURES, "lisp.header: <plain|gpe>")
            .undo("lisp header gpe")
            .example("lisp header plain")
            .run(|engine, args| {
                let is_plain = args.has("plain");
                changed(engine, |database| {
                    database.is_plain = is_plain;
                    Vec::new()
                })
            }),
    );
    registry.command(
        command("lisp eid-table map [del] vni <vni:1-16777215> vrf <vrf:u32>")
            .help("Let the EIDs of an instance be in a table, and make its interface")
            .details(
                "The tables of that number of both families are made where they are missing. \
                 Instance 0 is in table 0.",
            )
            .word("vni", "the instance ID, 24 bits")
            .word("vrf", "the table of its EIDs")
            .word("del", "forget the instance")
            .entry(order::INTERFACES, "lisp.instances.<vni>.vrf: <vrf>")
            .undo("lisp eid-table map del vni <vni> vrf <vrf>")
            .makes("interface lisp_gpe<vni>")
            .example("lisp eid-table map vni 7 vrf 7")
            .run(map),
    );
}

fn register_locators(registry: &mut Registry) {
    registry.command(
        command("lisp locator-set add <name:word> [(iface <interface> p <p:u8> w <w:u8>)...]")
            .help("Make a locator set: addresses of interfaces by which this site is reached")
            .details("With interfaces, they are its locators from then on.")
            .word("iface", "an interface whose addresses are locators")
            .word("p", "locators with the lowest are used; 255: never")
            .word("w", "the share of the traffic among these")
            .entry(
                order::FEATURES,
                "lisp.locator-sets.<name>: {locators: (iface: {interface: <interface>, \
                 priority: <p>, weight: <w>})}",
            )
            .undo("lisp locator-set del <name>")
            .makes("locator set <name>")
            .example("lisp locator-set add site iface e0 p 1 w 1")
            .run(add_set),
    );
    registry.command(
        command("lisp locator-set del <name:word>")
            .help("Delete a locator set")
            .example("lisp locator-set del site")
            .run(delete_set),
    );
    registry.command(
        command(
            "lisp locator add|del locator-set <name:word> iface <interface> [p <p:u8>] [w <w:u8>]",
        )
        .help("Add an interface to a locator set, or take it out")
        .details("A configuration is written with `lisp locator-set add`.")
        .word("locator-set", "the locator set")
        .word("iface", "the interface")
        .word("p", "locators with the lowest are used; 1 unless given")
        .word("w", "the share of the traffic among these; 1 unless given")
        .entry(
            order::FEATURES,
            "lisp.locators.<name>.<interface>: {priority: <p>, weight: <w>} with add",
        )
        .undo("lisp locator del locator-set <name> iface <interface>")
        .stands_on("locator set <name>")
        .example("lisp locator add locator-set site iface e1 p 2 w 1")
        .run(locator),
    );
    registry.command(
        command("lisp map-resolver add|del <address:ip>")
            .help("Request mappings from a map resolver (RFC 9301 §4.2)")
            .details(
                "They are requested for packets to EIDs whose action is send-map-request, and kept \
                 as long as the reply says, at most a day.",
            )
            .entry(order::FEATURES, "lisp.map-resolvers.<address>: true with add")
            .undo("lisp map-resolver del <address>")
            .example("lisp map-resolver add 192.0.2.9")
            .run(resolver),
    );
    registry.command(
        command("lisp pitr (ls <name:word> | disable)")
            .help("Name the locator set of packets from elsewhere (proxy ITR, RFC 6832)")
            .details("A router without EIDs of its own sends by the locators of this set.")
            .word("ls", "the locator set")
            .word("disable", "none")
            .entry(order::FEATURES, "lisp.pitr: <name>")
            .undo("lisp pitr disable")
            .stands_on("locator set <name>")
            .example("lisp pitr ls site")
            .run(pitr),
    );
}

fn register_mappings(registry: &mut Registry) {
    registry.command(
        command(
            "lisp eid-table add|del {eid <eid:prefix> [vni <vni:0-16777215>] locator-set \
             <name:word>}",
        )
        .help("Let a prefix be an EID of this site")
        .details("Requests for its mapping are answered with the locators of the set.")
        .word("eid", "the prefix")
        .word("vni", "its instance; 0 unless given")
        .word("locator-set", "its locators")
        .entry(order::FEATURES, "lisp.instances.<vni=0>.eids.<eid>.locator-set: <name> with add")
        .undo("lisp eid-table del eid <eid> vni <vni=0> locator-set <name>")
        .stands_on("locator set <name>")
        .example("lisp eid-table add eid 10.1.0.0/16 locator-set site")
        .run(local_eid),
    );
    registry.command(
        command(
            "lisp remote-mapping add {[vni <vni:0-16777215>] eid <eid:prefix> \
             [action (no-action | natively-forward | send-map-request | drop)] \
             [(rloc <rloc:ip> p <p:u8> w <w:u8>)...]}",
        )
        .help("Say where an EID is: its locators, or what is done with packets to it")
        .details(
            "Locators with the lowest priority that can be reached share the traffic by their \
             weights, flow by flow.",
        )
        .word("vni", "its instance; 0 unless given")
        .word("eid", "the prefix")
        .word("action", "without locators: what is done with packets")
        .word("no-action", "they are dropped")
        .word("natively-forward", "they go by the other routes of the table")
        .word("send-map-request", "they are dropped, and a mapping is requested")
        .word("drop", "they are dropped")
        .word("rloc", "a locator")
        .word("p", "locators with the lowest are used; 255: never")
        .word("w", "the share of the traffic among these")
        .entry(
            order::FEATURES,
            "lisp.instances.<vni=0>.mappings.<eid>: {action: \
             <no-action|natively-forward|send-map-request|drop>, locators: (rloc: {rloc: <rloc>, \
             priority: <p>, weight: <w>})}",
        )
        .undo("lisp remote-mapping del vni <vni=0> eid <eid>")
        .example("lisp remote-mapping add vni 0 eid 10.2.0.0/16 rloc 203.0.113.2 p 1 w 1")
        .run(add_mapping),
    );
    registry.command(
        command("lisp remote-mapping del (del-all | {[vni <vni:0-16777215>] eid <eid:prefix>})")
            .help("Forget where an EID is, or all of them")
            .word("del-all", "all of them")
            .example("lisp remote-mapping del vni 0 eid 10.2.0.0/16")
            .run(delete_mapping),
    );
    registry.command(
        command(
            "lisp adjacency add|del {[vni <vni:0-16777215>] reid <reid:prefix> leid <leid:prefix>}",
        )
        .help("Name a pair of a remote and a local EID")
        .details(
            "Packets leave by the mapping of their destination without it: the words are accepted \
             and kept for configurations of VPP.",
        )
        .word("vni", "their instance; 0 unless given")
        .word("reid", "the remote EID")
        .word("leid", "the local EID")
        .entry(order::FEATURES, "lisp.instances.<vni=0>.adjacencies.<reid>.<leid>: true with add")
        .undo("lisp adjacency del vni <vni=0> reid <reid> leid <leid>")
        .example("lisp adjacency add vni 0 reid 10.2.0.0/16 leid 10.1.0.0/16")
        .run(adjacency),
    );
}

fn state(engine: &Engine) -> Result<&State, Refusal> {
    engine.get::<State>().ok_or_else(|| Refusal::new("LISP is being changed"))
}

fn refusal(engine: &Engine, error: LispError) -> Refusal {
    Refusal::new(with_interface_names(engine, error))
}

/// Change the database by a command.
fn changed(
    engine: &mut Engine,
    change: impl FnOnce(&mut Database) -> Vec<Eid>,
) -> Result<Output, Refusal> {
    config::change(engine, change).map_err(|error| refusal(engine, error))?;
    Ok(Output::none())
}

fn set_enabled(engine: &mut Engine, is_enabled: bool) -> Result<Output, Refusal> {
    changed(engine, |database| {
        database.is_enabled = is_enabled;
        let mapped = database.mapped();
        if !is_enabled {
            database.learned.clear();
        }
        mapped
    })
}

fn map(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let (vni, vrf): (u32, u32) = (args.get("vni")?, args.get("vrf")?);
    let known = state(engine)?.database.vrfs.get(&vni).copied();
    if args.has("del") {
        if known != Some(vrf) {
            let what = format!("instance {vni} is not in table {vrf}");
            return Err(args.refuse("vni", what).remedy("`show lisp eid-table map`"));
        }
        return changed(engine, |database| {
            database.vrfs.remove(&vni);
            Vec::new()
        });
    }
    changed(engine, |database| {
        database.vrfs.insert(vni, vrf);
        Vec::new()
    })
}

/// The interfaces that a command names, with their priorities and weights.
fn locals(engine: &Engine, args: &Args<'_>) -> Result<Vec<(InterfaceId, LocalLocator)>, Refusal> {
    let mut locals = Vec::new();
    for group in args.groups("iface") {
        let locator = LocalLocator { priority: group.get("p")?, weight: group.get("w")? };
        locals.push((group.interface(engine, "interface")?, locator));
    }
    Ok(locals)
}

fn add_set(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let name: String = args.get("name")?;
    let locals = locals(engine, args)?;
    let sets = &state(engine)?.database.locator_sets;
    if !sets.contains_key(&name) && sets.len() >= LOCATOR_SETS_MAX {
        let what = format!("there are {LOCATOR_SETS_MAX} locator sets already");
        return Err(args.refuse("name", what).remedy("delete some"));
    }
    if locals.len() > LOCATORS_MAX {
        return Err(args.refuse("name", format!("a set has at most {LOCATORS_MAX} locators")));
    }
    changed(engine, |database| {
        database.locator_sets.insert(name, locals.into_iter().collect());
        Vec::new()
    })
}

/// The locator set that a command names.
fn named_set(engine: &Engine, args: &Args<'_>) -> Result<String, Refusal> {
    let name: String = args.get("name")?;
    match state(engine)?.database.locator_sets.contains_key(&name) {
        true => Ok(name),
        false => Err(args
            .refuse("name", format!("there is no locator set {name}"))
            .remedy("`lisp locator-set add` makes one")),
    }
}

fn delete_set(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let name = named_set(engine, args)?;
    if let Some(user) = state(engine)?.database.users_of(&name) {
        let what = format!("{name} has the locators of {user}");
        return Err(args.refuse("name", what).remedy("delete that first"));
    }
    changed(engine, |database| {
        database.locator_sets.remove(&name);
        Vec::new()
    })
}

fn locator(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let name = named_set(engine, args)?;
    let id = args.interface(engine, "interface")?;
    let set = state(engine)?.database.locator_sets.get(&name).cloned().unwrap_or_default();
    if args.has("del") {
        if !set.contains_key(&id) {
            let what = format!("{} is not in {name}", engine.interface_name(id));
            return Err(args.refuse("interface", what).remedy("`show lisp locator-set`"));
        }
        return changed(engine, |database| {
            database.locator_sets.get_mut(&name).and_then(|set| set.remove(&id));
            Vec::new()
        });
    }
    if !set.contains_key(&id) && set.len() >= LOCATORS_MAX {
        return Err(args.refuse("name", format!("a set has at most {LOCATORS_MAX} locators")));
    }
    let locator = LocalLocator { priority: args.or("p", 1)?, weight: args.or("w", 1)? };
    changed(engine, |database| {
        database.locator_sets.entry(name).or_default().insert(id, locator);
        Vec::new()
    })
}

fn resolver(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let address: IpAddr = args.get("address")?;
    let is_known = state(engine)?.database.resolvers.contains(&address);
    if args.has("del") && !is_known {
        let what = format!("{address} is no map resolver");
        return Err(args.refuse("address", what).remedy("`show lisp map-resolver`"));
    }
    let del = args.has("del");
    changed(engine, |database| {
        match del {
            true => database.resolvers.remove(&address),
            false => database.resolvers.insert(address),
        };
        Vec::new()
    })
}

fn pitr(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let name = match args.has("disable") {
        true => None,
        false => Some(named_set(engine, args)?),
    };
    changed(engine, |database| {
        database.pitr = name;
        Vec::new()
    })
}

fn eid(args: &Args<'_>, name: &str) -> Result<Eid, Refusal> {
    let prefix: IpPrefix = args.get(name)?;
    if prefix.has_host_bits() {
        let what = format!("{prefix} has bits behind its length");
        return Err(args.refuse(name, what).remedy(format!("{}", prefix.network())));
    }
    Ok(Eid::new(args.or("vni", 0)?, prefix))
}

fn local_eid(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let eid = eid(args, "eid")?;
    if args.has("del") {
        if !state(engine)?.database.local.contains_key(&eid) {
            let what = format!("{} is no EID of this site in instance {}", eid.prefix, eid.vni);
            return Err(args.refuse("eid", what).remedy("`show lisp eid-table local`"));
        }
        return changed(engine, |database| {
            database.local.remove(&eid);
            Vec::new()
        });
    }
    let name = named_set(engine, args)?;
    if state(engine)?.database.local.len() >= MAPPINGS_MAX {
        return Err(args.refuse("eid", format!("there are {MAPPINGS_MAX} EIDs already")));
    }
    changed(engine, |database| {
        database.local.insert(eid, name);
        Vec::new()
    })
}

fn add_mapping(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let eid = eid(args, "eid")?;
    let mut locators = Vec::new();
    for group in args.groups("rloc") {
        let (priority, weight) = (group.get("p")?, group.get("w")?);
        let address: IpAddr = group.get("rloc")?;
        if address.is_unspecified() || address.is_multicast() {
            return Err(group.refuse("rloc", format!("{address} is no address that one host has")));
        }
        if locators.iter().any(|known: &Locator| known.address == address) {
            return Err(group.refuse("rloc", format!("{address} is named twice")));
        }
        locators.push(Locator { address, priority, weight });
    }
    if locators.len() > LOCATORS_MAX {
        let what = format!("an EID has at most {LOCATORS_MAX} locators");
        return Err(args.refuse("eid", what));
    }
    locators.sort();
    let action = Action::ALL.into_iter().find(|action| args.has(action.word()));
    if action.is_some() && !locators.is_empty() {
        let what = "an action is for an EID without locators";
        return Err(args.refuse("eid", what).remedy("leave one of both out"));
    }
    let database = &state(engine)?.database;
    if !database.has_room() && !database.remote.contains_key(&eid) {
        let what = format!("there are {MAPPINGS_MAX} mappings already");
        return Err(args.refuse("eid", what).remedy("delete some"));
    }
    let mapping = Mapping { locators, action: action.unwrap_or_default(), expires_ns: None };
    config::set_remote(engine, eid, Some(mapping)).map_err(|error| refusal(engine, error))?;
    Ok(Output::none())
}

fn delete_mapping(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    if args.has("del-all") {
        return changed(engine, |database| {
            std::mem::take(&mut database.remote).into_keys().collect()
        });
    }
    let eid = eid(args, "eid")?;
    if !state(engine)?.database.remote.contains_key(&eid) {
        let what = format!("no mapping of {} in instance {} is configured", eid.prefix, eid.vni);
        return Err(args.refuse("eid", what).remedy("`show lisp eid-table remote`"));
    }
    config::set_remote(engine, eid, None).map_err(|error| refusal(engine, error))?;
    Ok(Output::none())
}

fn adjacency(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let (remote, local) = (eid(args, "reid")?, eid(args, "leid")?);
    if remote.prefix.address.is_ipv4() != local.prefix.address.is_ipv4() {
        return Err(args.refuse("leid", "the two EIDs are of two families"));
    }
    let pair = (remote.vni, remote.prefix, local.prefix);
    let is_known = state(engine)?.database.adjacencies.contains(&pair);
    if args.has("del") && !is_known {
        let what = "there is no such adjacency";
        return Err(args.refuse("reid", what).remedy("`show lisp adjacencies`"));
    }
    if !is_known && state(engine)?.database.adjacencies.len() >= MAPPINGS_MAX {
        return Err(args.refuse("reid", format!("there are {MAPPINGS_MAX} adjacencies already")));
    }
    let del = args.has("del");
    changed(engine, |database| {
        match del {
            true => database.adjacencies.remove(&pair),
            false => database.adjacencies.insert(pair),
        };
        Vec::new()
    })
}

/// `show running-config`: what makes interfaces.
pub(crate) fn write_instances(engine: &Engine, config: &mut ConfigWriter) {
    let Some(state) = engine.get::<State>() else { return };
    if state.database.is_enabled {
        config.command(format_args!("lisp enable"));
    }
    for (vni, vrf) in &state.database.vrfs {
        // The tables are written before what holds them.
        for family in ["ip", "ip6"].into_iter().filter(|_| *vrf != 0) {
            config.command(format_args!("{family} table add {vrf}"));
        }
        config.command(format_args!("lisp eid-table map vni {vni} vrf {vrf}"));
    }
}

/// `show running-config`: the rest.
pub(crate) fn write_config(engine: &Engine, config: &mut ConfigWriter) {
    let Some(state) = engine.get::<State>() else { return };
    let database = &state.database;
    for (_, id) in state.instances() {
        if engine.interface(id).is_some_and(|interface| !interface.row().up) {
            config.command(format_args!("set interface state {} down", engine.interface_name(id)));
        }
    }
    if database.is_plain {
        config.command(format_args!("lisp header plain"));
    }
    for (name, set) in &database.locator_sets {
        let mut locators: Vec<_> = set
            .iter()
            .map(|(id, locator)| {
                let name = engine.interface_name(*id);
                format!(" iface {name} p {} w {}", locator.priority, locator.weight)
            })
            .collect();
        locators.sort();
        let name = quiver_control::quoted(name);
        config.command(format_args!("lisp locator-set add {name}{}", locators.concat()));
    }
    for (eid, set) in &database.local {
        let Eid { vni, prefix } = eid;
        let set = quiver_control::quoted(set);
        let vni = vni_words(*vni);
        config.command(format_args!("lisp eid-table add eid {prefix} {vni}locator-set {set}"));
    }
    for (eid, mapping) in &database.remote {
        config.command(format_args!("lisp remote-mapping add {}", mapping_words(eid, mapping)));
    }
    for (vni, remote, local) in &database.adjacencies {
        let vni = vni_words(*vni);
        config.command(format_args!("lisp adjacency add {vni}reid {remote} leid {local}"));
    }
    for address in &database.resolvers {
        config.command(format_args!("lisp map-resolver add {address}"));
    }
    if let Some(set) = &database.pitr {
        config.command(format_args!("lisp pitr ls {}", quiver_control::quoted(set)));
    }
}

/// The words of an instance in front of others: none for instance 0.
fn vni_words(vni: u32) -> String {
    if vni == 0 { String::new() } else { format!("vni {vni} ") }
}

fn mapping_words(eid: &Eid, mapping: &Mapping) -> String {
    let mut words = vec![format!("{}eid {}", vni_words(eid.vni), eid.prefix)];
    if mapping.action != Action::None {
        words.push(format!("action {}", mapping.action.word()));
    }
    words.extend(mapping.locators.iter().map(|locator| {
        format!("rloc {} p {} w {}", locator.address, locator.priority, locator.weight)
    }));
    words.join(" ")
}
