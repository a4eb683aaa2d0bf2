//! `show ip neighbor-counters`: messages of ARP and neighbour discovery by interface.

use quiver_control::{Column, Command, Output, Registry, Table};
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::ip::{Direction, NeighbourMessage, NeighbourProtocol};

use super::{GROUP, busy};
use crate::state::IpState;

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show ip neighbor-counters [<interface>]")
            .group(GROUP)
            .help(
                "Show how many messages of ARP and neighbour discovery interfaces have received \
                 and sent",
            )
            .details(
                "A request of neighbour discovery is a solicitation, a reply a solicited \
                 advertisement; gratuitous are announcements of the sender's own address.",
            )
            .run(|engine: &mut Engine, args| {
                let only = args.optional_interface(engine, "interface")?;
                Ok(listing(engine, only))
            }),
    );
    registry.command(
        Command::new("clear ip neighbor-counters [<interface>]")
            .group(GROUP)
            .help("Count messages of ARP and neighbour discovery from zero again")
            .example("clear ip neighbor-counters e0")
            .run(|engine: &mut Engine, args| {
                let only = args.optional_interface(engine, "interface")?;
                let all = engine.all_interfaces().map(|interface| interface.id);
                let all: Vec<_> = all.filter(|id| only.is_none_or(|only| only == *id)).collect();
                let ip = engine.get::<IpState>().ok_or_else(busy)?;
                all.into_iter().for_each(|id| ip.tables().messages.clear(id));
                Ok(Output::none())
            }),
    );
}

fn listing(engine: &Engine, only: Option<InterfaceId>) -> Output {
    let mut table = Table::new([
        Column::left("Interface"),
        Column::left("Protocol"),
        Column::right("Requests received").key("rx_requests"),
        Column::right("Replies received").key("rx_replies"),
        Column::right("Gratuitous received").key("rx_gratuitous"),
        Column::right("Requests sent").key("tx_requests"),
        Column::right("Replies sent").key("tx_replies"),
        Column::right("Gratuitous sent").key("tx_gratuitous"),
    ]);
    let Some(ip) = engine.get::<IpState>() else { return Output::none() };
    let messages = &ip.tables().messages;
    let kinds = [NeighbourMessage::Request, NeighbourMessage::Reply, NeighbourMessage::Gratuitous];
    for interface in engine.all_interfaces().filter(|one| only.is_none_or(|only| only == one.id)) {
        for (protocol, word) in [(NeighbourProtocol::Arp, "arp"), (NeighbourProtocol::Nd, "nd")] {
            let counts: Vec<u64> = [Direction::Rx, Direction::Tx]
                .into_iter()
                .flat_map(|direction| {
                    kinds.map(|kind| messages.get(interface.id, (protocol, direction, kind)))
                })
                .collect();
            if counts.iter().any(|count| *count > 0) {
                let row = table.row().cell(&*interface.name).cell(word);
                counts.into_iter().fold(row, |row, count| row.cell(count));
            }
        }
    }
    Output::none().table("neighbor_counters", table)
}
