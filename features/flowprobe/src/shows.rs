//! `show flowprobe …`.

use std::sync::atomic::Ordering;

use quiver_control::{Cell, Column, Command, Output, Registry, Table};
use quiver_core::Engine;

use crate::commands::{GROUP, LAYERS, WORDS, direction};
use crate::config::Flowprobe;

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show flowprobe params")
            .group(GROUP)
            .help("Show which fields flow records have, and when they are exported")
            .run(|engine: &mut Engine, _| Ok(params(engine))),
    );
    registry.command(
        Command::new("show flowprobe feature")
            .group(GROUP)
            .help("Show which interfaces are recorded")
            .run(|engine: &mut Engine, _| Ok(features(engine))),
    );
    registry.command(
        Command::new("show flowprobe statistics")
            .group(GROUP)
            .help("Show how many flows live, and what became of records")
            .run(|engine: &mut Engine, _| Ok(statistics(engine))),
    );
}

fn params(engine: &Engine) -> Output {
    let Some(own) = engine.get::<Flowprobe>() else { return Output::none() };
    let settings = &own.settings;
    let layers = LAYERS.iter().filter(|(layer, _)| settings.shape.has(*layer));
    let layers: Vec<&str> = layers.map(|(_, word)| *word).collect();
    Output::none()
        .field("Record", Cell::new(layers.join(" "), layers))
        .field("Active s", settings.active_s)
        .field("Passive s", settings.passive_s)
        .field("Domain", settings.domain)
        .field("Flows of a worker", own.flows_max)
}

fn features(engine: &Engine) -> Output {
    let mut table =
        Table::new(["Interface", "Packets", "Direction"].map(Column::left)).when_empty("none");
    let Some(own) = engine.get::<Flowprobe>() else { return Output::none() };
    for interface in engine.interfaces_by_name() {
        let Some(of) = own.interfaces.get(&interface.id) else { continue };
        for (kinds, word) in WORDS {
            if let Some(direction) = direction(of, kinds) {
                table.row().cell(&interface.name).cell(word).cell(direction);
            }
        }
    }
    Output::none().table("features", table)
}

fn statistics(engine: &Engine) -> Output {
    let Some(own) = engine.get::<Flowprobe>() else { return Output::none() };
    let mut workers = Table::new(["Worker", "Flows"].map(Column::right));
    for (number, worker) in own.shared.workers.iter().enumerate() {
        workers.row().cell(number as u64).cell(worker.live.load(Ordering::Relaxed));
    }
    let mut records =
        Table::new([Column::left("Reason"), Column::right("Made"), Column::right("Lost")]);
    for (word, counts) in own.records.counts() {
        records.row().cell(word).cell(counts.made).cell(counts.lost);
    }
    Output::none()
        .field("Exported", own.exported)
        .table("workers", workers)
        .table("records", records)
}
