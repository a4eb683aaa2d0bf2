//! `show sr proxies`.

use quiver_control::{Column, Command, Output, Refusal, Registry, Table};
use quiver_core::Engine;

use super::proxies::Proxies;
use crate::commands::GROUP;
use crate::local_sids::{LocalSids, Names};

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show sr proxies")
            .group(GROUP)
            .help(
                "Show the SIDs that are proxies of functions, and what went to each and came back",
            )
            .details(
                "Bytes to a function count from the outer IPv6 header on, bytes back from the \
                 inner header. Bad packets came, and went no further; `show errors` says why. \
                 `clear sr localsid-counters` lets the counts begin at zero.",
            )
            .run(show),
    );
}

fn show(engine: &mut Engine, _: &quiver_control::Args<'_>) -> Result<Output, Refusal> {
    let mut table = Table::new([
        Column::left("SID").key("sid"),
        Column::left("Behavior"),
        Column::left("Back by"),
        Column::right("To packets"),
        Column::right("To bytes"),
        Column::right("To bad packets"),
        Column::right("Back packets"),
        Column::right("Back bytes"),
        Column::right("Back bad packets"),
        Column::right("Back bad bytes"),
    ])
    .when_empty("no SID is a proxy");
    let (Some(proxies), Some(sids)) = (engine.get::<Proxies>(), engine.get::<LocalSids>()) else {
        return Err(Refusal::new("the local SIDs are being changed"));
    };
    let names = Names { engine };
    for (id, claim) in proxies.iter() {
        let Some(sid) = sids.at(claim.place) else { continue };
        let [packets, bytes, bad, _] = sids.counted(sid);
        let [back, back_bytes, back_bad, back_bad_bytes] = claim.counted();
        let row = table.row().cell(claim.place.words(engine)).cell(sid.behavior.words(&names));
        let row = row.cell(engine.interface_name(id)).cell(packets).cell(bytes).cell(bad);
        row.cell(back).cell(back_bytes).cell(back_bad).cell(back_bad_bytes);
    }
    Ok(Output::none().table("proxies", table))
}
