//! Shows.

use std::net::{Ipv4Addr, Ipv6Addr};

use quiver_control::{
    Args, Column, Command, Listing, Output, Refusal, Registry, Table, Work, by_interface_name,
};
use quiver_core::Engine;

use crate::commands::GROUP;
use crate::config::{Map, domain_of4};
use crate::tables::{Direction, ENCAPSULATES, TRANSLATES};

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show map domain [index <index:0-65535>]")
            .group(GROUP)
            .help("Show the domains of MAP-E, MAP-T and lightweight 4over6")
            .run_or_begin(show_domains),
    );
    registry.command(
        Command::new("show map rule index <index:0-65535>")
            .group(GROUP)
            .help("Show the rules of a domain")
            .example("show map rule index 0")
            .run_or_begin(show_rules),
    );
    registry.command(
        Command::new("show map customer <address:ip4> port <port:0-65535>")
            .group(GROUP)
            .help("Compute which customer has an address and a port, and all of their ports")
            .example("show map customer 203.0.113.1 port 5127")
            .run(show_customer),
    );
    registry.command(
        Command::new("show map interface")
            .group(GROUP)
            .help("Show from which interfaces packets pass the border relay")
            .run(|engine: &mut Engine, _| Ok(show_interfaces(engine))),
    );
    registry.command(
        Command::new("show map stats")
            .group(GROUP)
            .help("Show how many packets of IPv4 have passed the border relay, by direction")
            .run(|engine: &mut Engine, _| Ok(show_stats(engine))),
    );
    registry.command(
        Command::new("show map fragments")
            .group(GROUP)
            .help("Show what becomes of long packets and of fragments, and the other parameters")
            .run(|engine: &mut Engine, _| Ok(show_fragments(engine))),
    );
}

fn domain_keys(engine: &Engine, args: &Args<'_>) -> Result<Vec<u32>, Refusal> {
    let only: Option<u32> = args.optional("index")?;
    let Some(map) = engine.get::<Map>() else { return Ok(Vec::new()) };
    if let Some(index) = only.filter(|index| !map.domains.contains_key(index)) {
        return Err(args
            .refuse("index", format!("there is no MAP domain {index}"))
            .remedy("`show map domain` lists them"));
    }
    Ok(only.map_or_else(|| map.domains.keys().copied().collect(), |index| vec![index]))
}

fn show_domains(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let keys = domain_keys(engine, args)?;
    let columns = [
        Column::right("Index"),
        Column::left("Tag"),
        Column::left("Mode"),
        Column::left("IPv4 prefix").key("ip4_prefix"),
        Column::left("IPv6 prefix").key("ip6_prefix"),
        Column::left("IPv6 source").key("ip6_source"),
        Column::right("EA bits").key("ea_bits"),
        Column::right("PSID offset").key("psid_offset"),
        Column::right("PSID bits").key("psid_bits"),
        Column::right("MTU").key("mtu_bytes"),
        Column::right("Rules"),
    ];
    Listing::over("domains", columns, keys, add_domain)
        .when_empty("no domains; `map add domain` adds one")
        .begin(engine)
}

fn add_domain(engine: &Engine, table: &mut Table, index: u32) {
    let Some(domain) = engine.get::<Map>().and_then(|map| map.domains.get(&index)) else { return };
    let config = &domain.config;
    let mode = match (config.translates, config.has_rules()) {
        (true, _) => "MAP-T",
        (false, true) => "lw4o6",
        (false, false) => "MAP-E",
    };
    let row = table.row().cell(index).cell(config.tag.clone()).cell(mode);
    let row = row.cell(config.ip4.to_string()).cell(config.ip6.to_string());
    let row = row.cell(config.ip6_source.to_string()).cell(u32::from(config.embedded));
    let row = row.cell(u32::from(config.psid_offset)).cell(u32::from(config.psid_length));
    row.cell(u32::from(config.mtu_bytes)).cell(domain.rules.len() as u64);
}

fn show_rules(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let index = domain_keys(engine, args)?.first().copied().unwrap_or(0);
    let domain = engine.get::<Map>().and_then(|map| map.domains.get(&index));
    let keys = domain.map_or_else(Vec::new, |domain| domain.rules.keys().copied().collect());
    let columns = [
        Column::right("PSID").key("psid"),
        Column::left("IPv6 destination").key("ip6_destination"),
    ];
    Listing::over("rules", columns, keys, move |engine: &Engine, table, psid: u16| {
        let domain = engine.get::<Map>().and_then(|map| map.domains.get(&index));
        if let Some(ip6) = domain.and_then(|domain| domain.rules.get(&psid)) {
            table.row().cell(u32::from(psid)).cell(ip6.to_string());
        }
    })
    .when_empty("no rules; `map add rule` adds one")
    .begin(engine)
}

fn show_customer(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let (address, port): (Ipv4Addr, u16) = (args.get("address")?, args.get("port")?);
    let Some(map) = engine.get::<Map>() else { return Ok(Output::none()) };
    let (index, domain) = domain_of4(map, address).ok_or_else(|| {
        args.refuse("address", format!("{address} is in no MAP domain"))
            .remedy("`show map domain` lists them")
    })?;
    let nobody = || args.refuse("port", format!("no customer has port {port} of {address}"));
    let ports = domain.config.ports().ok_or_else(nobody)?;
    let psid = ports.psid(port).ok_or_else(nobody)?;
    let computed = domain.config.domain(None)?.computed(address.to_bits(), psid);
    let ip6 = match domain.config.has_rules() {
        true => *domain.rules.get(&psid).ok_or_else(nobody)?,
        false => Ipv6Addr::from_bits(computed),
    };
    let mut table = Table::new(["First port", "Last port"].map(Column::right));
    for (first, last) in ports.ranges(psid) {
        table.row().cell(u32::from(first)).cell(u32::from(last));
    }
    Ok(Output::none()
        .field("Domain", u64::from(index))
        .field("PSID", u64::from(psid))
        .field("IPv6 address", ip6.to_string())
        .table("ports", table))
}

fn show_interfaces(engine: &Engine) -> Output {
    let mut table = Table::new(["Interface", "Encapsulation", "Translation"].map(Column::left))
        .when_empty("no interface; `map interface` names one");
    let Some(map) = engine.get::<Map>() else { return Output::none() };
    let interfaces = map.interfaces.iter().map(|(id, modes)| (*id, *modes));
    for (id, modes) in by_interface_name(engine, interfaces) {
        let row = table.row().cell(engine.interface_name(id));
        row.cell(modes & ENCAPSULATES != 0).cell(modes & TRANSLATES != 0);
    }
    Output::none().table("interfaces", table)
}

fn show_stats(engine: &Engine) -> Output {
    let columns = [Column::left("Direction"), Column::right("Packets"), Column::right("Bytes")];
    let mut table = Table::new(columns);
    let Some(map) = engine.get::<Map>() else { return Output::none() };
    for (direction, name) in Direction::ALL {
        let [packets, bytes] = map.shared.sums(direction);
        table.row().cell(name).cell(packets).cell(bytes);
    }
    Output::none()
        .field("Domains", map.domains.len() as u64)
        .field("Rules", map.rules as u64)
        .table("directions", table)
}

fn show_fragments(engine: &Engine) -> Output {
    let Some(map) = engine.get::<Map>() else { return Output::none() };
    let params = map.params;
    let class = params.traffic_class.map_or("copied".to_owned(), |class| class.to_string());
    let on = |on: bool| if on { "on" } else { "off" };
    Output::none()
        .field("Cut", if params.cuts_inner { "inner" } else { "outer" })
        .field("DF", if params.ignores_df { "ignored" } else { "honored" })
        .field("Security check", on(params.checks_source))
        .field("Security check of fragments", on(params.checks_fragments))
        .field("Traffic class", class)
        .field("TCP MSS", u64::from(params.mss_bytes))
        .field("ICMP source address", Ipv4Addr::from(params.icmp_source).to_string())
        .field("ICMPv6 unreachables", on(params.tells_refused))
}
