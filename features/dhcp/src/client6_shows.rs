//! `show dhcp6 clients`, `show dhcp6 pd clients`, `show ip6 prefixes`, `show ip6 addresses`.

use std::fmt::Write;

use quiver_control::{Column, Command, Output, Registry, Table, by_interface_name};
use quiver_core::Engine;

use crate::client6::{Binding, Client6, IaType, State};
use crate::commands::GROUP;
use crate::config::Dhcp;
use crate::leases6::{is_discarded, prefixes};
use crate::show::{left_s, list, with_dhcp};

pub(crate) fn register(registry: &mut Registry) {
    for (line, help, ia_type) in [
        (
            "show dhcp6 clients [<interface>]",
            "Show the router's DHCPv6 clients and their leases",
            IaType::Na,
        ),
        (
            "show dhcp6 pd clients [<interface>]",
            "Show the router's clients of delegated prefixes and what they hold",
            IaType::Pd,
        ),
    ] {
        registry.command(Command::new(line).group(GROUP).help(help).run(
            move |engine: &mut Engine, args| {
                let only = args.optional_interface(engine, "interface")?;
                let chosen = |id| only.is_none_or(|only| only == id);
                Ok(with_dhcp(engine, |dhcp| clients(engine, dhcp, ia_type, chosen)))
            },
        ));
    }
    registry.command(
        Command::new("show ip6 prefixes")
            .group(GROUP)
            .help("Show the prefixes that were delegated to this router, by prefix group")
            .run(|engine: &mut Engine, _| Ok(with_dhcp(engine, |dhcp| held(engine, dhcp)))),
    );
    registry.command(
        Command::new("show ip6 addresses")
            .group(GROUP)
            .help("Show the addresses that are made of delegated prefixes")
            .run(|engine: &mut Engine, _| Ok(with_dhcp(engine, |dhcp| addresses(engine, dhcp)))),
    );
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

fn clients(
    engine: &Engine,
    dhcp: &Dhcp,
    ia_type: IaType,
    chosen: impl Fn(quiver_core::InterfaceId) -> bool,
) -> Output {
    let (leased, empty) = match ia_type {
        IaType::Na => ("Addresses", "No interface has a DHCPv6 client"),
        IaType::Pd => ("Prefixes", "No interface has a client of delegated prefixes"),
    };
    let mut columns = vec![Column::left("Interface"), Column::left("State")];
    columns.extend((ia_type == IaType::Pd).then(|| Column::left("Group")));
    columns.extend([
        Column::left(leased),
        Column::left("DUID"),
        Column::right("IAID"),
        Column::left("Server").key("server_duid"),
        Column::left("Server address"),
        Column::right("Preference"),
        Column::left("Name servers"),
        Column::right("Renews in").key("renew_s"),
        Column::right("Rebinds in").key("rebind_s"),
        Column::right("Ends in").key("lease_left_s"),
        Column::right("Sent"),
        Column::right("Received"),
        Column::right("Refused"),
        Column::right("Declined"),
        Column::right("Left out"),
    ]);
    let mut table = Table::new(columns).when_empty(empty);
    let now_ns = engine.now_ns();
    let all = dhcp.clients6.iter().filter(|((id, of), _)| *of == ia_type && chosen(*id));
    for (id, client) in by_interface_name(engine, all.map(|((id, _), client)| (*id, client))) {
        let Client6 { bindings, counts, .. } = client;
        let has = !bindings.is_empty();
        let runs = has && matches!(client.state, State::Bound | State::Renewing | State::Rebinding);
        let left = |at_ns: u64, is_shown: bool| {
            Some(at_ns).filter(|_| is_shown).and_then(|at_ns| left_s(at_ns, now_ns))
        };
        let end_ns = bindings.iter().map(|binding| binding.valid_until_ns).max();
        let row = table.row().cell(engine.interface_name(id)).cell(client.state.word());
        let row = match ia_type {
            IaType::Na => row,
            IaType::Pd => row.cell(dhcp.pd_groups.get(&id).cloned()),
        };
        let server = client.server.as_deref().filter(|_| has);
        row.cell(list(
            bindings.iter().map(|Binding { address, length, .. }| format!("{address}/{length}")),
        ))
        .cell(hex(&client.duid))
        .cell(client.iaid)
        .cell(server.map(hex))
        .cell(client.server_address.filter(|_| has).map(|address| address.to_string()))
        .cell(has.then_some(client.preference))
        .cell(list(client.name_servers.iter().filter(|_| has)))
        .cell(left(client.renew_ns, runs))
        .cell(left(client.rebind_ns, runs))
        .cell(left(end_ns.unwrap_or(u64::MAX), has))
        .cell(counts.sent)
        .cell(counts.received)
        .cell(counts.refused)
        .cell(counts.declined)
        .cell(counts.left_out);
    }
    Output::none().table("clients", table)
}

fn held(engine: &Engine, dhcp: &Dhcp) -> Output {
    let mut table = Table::new([
        Column::left("Group"),
        Column::left("Prefix"),
        Column::left("Interface"),
        Column::right("Preferred").key("preferred_s"),
        Column::right("Valid").key("valid_s"),
        Column::left("Discard route"),
    ])
    .when_empty("No prefix was delegated to this router");
    let now_ns = engine.now_ns();
    for (id, group, prefix, binding) in prefixes(dhcp) {
        table
            .row()
            .cell(group)
            .cell(prefix.to_string())
            .cell(engine.interface_name(id))
            .cell(left_s(binding.preferred_until_ns, now_ns))
            .cell(left_s(binding.valid_until_ns, now_ns))
            .cell(is_discarded(engine, dhcp, id, prefix));
    }
    Output::none().table("prefixes", table)
}

fn addresses(engine: &Engine, dhcp: &Dhcp) -> Output {
    let mut table = Table::new([
        Column::left("Interface"),
        Column::left("Group"),
        Column::left("Given"),
        Column::left("Address"),
        Column::left("In use").key("in_use"),
        Column::left("Reason"),
    ])
    .when_empty("No address is made of a delegated prefix");
    let all = dhcp.group_addresses.iter().map(|own| (own.interface, own));
    for (id, own) in by_interface_name(engine, all) {
        let given = format!("{}/{}", own.address, own.length);
        let held = prefixes(dhcp).filter(|(_, group, ..)| *group == own.group);
        let held: Vec<_> = held.map(|(.., prefix, _)| prefix).collect();
        let rows = held.iter().map(|prefix| match own.with(*prefix) {
            Some(made) => {
                let refused = dhcp.leases6.get(id, made).and_then(|known| known.refused.clone());
                (Some(made.to_string()), refused)
            }
            None => (None, Some(format!("{prefix} is longer than the length of the address"))),
        });
        let none = held.is_empty().then(|| (None, Some("the group has no prefix".to_owned())));
        for (made, reason) in rows.chain(none) {
            table
                .row()
                .cell(engine.interface_name(id))
                .cell(&own.group)
                .cell(&given)
                .cell(made)
                .cell(reason.is_none())
                .cell(reason);
        }
    }
    Output::none().table("addresses", table)
}
