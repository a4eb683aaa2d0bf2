//! The commands of layer 2 patch and cross-connect.

use quiver_control::{Column, Command, Output, Registry, Table, order};
use quiver_core::Engine;

use crate::cross::Kind;
use crate::state::{CrossConnects, connect, disconnect};

const GROUP: &str = "Layer 2";

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("set interface l2 xconnect <interface> <peer:interface>")
            .entry(order::FEATURES, "interfaces.<interface>.xconnect: <peer>")
            .undo("set interface l3 <interface>")
            .makes("layer of <interface>")
            .group(GROUP)
            .help("Send every frame that an interface receives out of another")
            .details(
                "One direction; give the command twice, the second time the other way round, for \
                 both.",
            )
            .example("set interface l2 xconnect memif0/0 memif0/1")
            .run(|engine: &mut Engine, args| {
                let (from, to) =
                    (args.interface(engine, "interface")?, args.interface(engine, "peer")?);
                connect(engine, Kind::Xconnect, from, to)?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("test l2patch rx <rx:interface> tx <tx:interface> [del]")
            .entry(order::FEATURES, "interfaces.<rx>.l2patch: <tx>")
            .undo("test l2patch rx <rx> tx <tx> del")
            .group(GROUP)
            .help("Send every frame of an interface out of another, before anything looks at it")
            .example("test l2patch rx memif0/0 tx memif0/1")
            .run(|engine: &mut Engine, args| {
                let (from, to) = (args.interface(engine, "rx")?, args.interface(engine, "tx")?);
                if args.has("del") {
                    disconnect(engine, Kind::Patch, from)?;
                } else {
                    connect(engine, Kind::Patch, from, to)?;
                }
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("show l2patch")
            .group(GROUP)
            .help("Show which interfaces are patched to which")
            .run(|engine: &mut Engine, _| Ok(listing(engine, Kind::Patch))),
    );
}

fn listing(engine: &Engine, kind: Kind) -> Output {
    let mut table = Table::new([Column::left("Rx"), Column::left("Tx")]);
    if let Some(crosses) = engine.get::<CrossConnects>() {
        for (from, to) in crosses.all(kind) {
            table.row().cell(engine.interface_name(*from)).cell(engine.interface_name(*to));
        }
    }
    Output::none().table("patches", table)
}
