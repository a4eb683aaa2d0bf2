//! `clear` of several kinds of counters at once.

use quiver_core::Engine;

use crate::grammar::Command;
use crate::output::Output;
use crate::registry::Registry;

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("clear counters")
            .group("Seeing inside")
            .help("Count packets, errors and the work of nodes from here")
            .details("As `clear interfaces`, `clear errors` and `clear runtime` together.")
            .run(|engine: &mut Engine, _| {
                engine.clear_interfaces();
                engine.clear_reasons();
                engine.clear_runtime();
                Ok(Output::none())
            }),
    );
}
