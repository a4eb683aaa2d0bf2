//! `show control`: what clients' commands do to the control loop.

use std::cell::RefCell;
use std::rc::Rc;

use quiver_core::Engine;

use crate::args::Args;
use crate::error::Refusal;
use crate::grammar::Command;
use crate::output::{Cell, Output};
use crate::registry::Registry;
use crate::server::{ControlLoad, UNITS_PER_TURN_MAX};

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show control")
            .group("Seeing inside")
            .help("Show how long clients' commands keep the control loop from its timers")
            .details(
                "A turn ends when its time (4 ms) or its units of work are used up; the step of a \
                 command that has begun ends first. A unit is a command, a row of a table, or an \
                 entry that is changed. A command rests while its client does not read.",
            )
            .example("show control")
            .run(show),
    );
}

fn show(engine: &mut Engine, _: &Args<'_>) -> Result<Output, Refusal> {
    let load = engine
        .get::<Rc<RefCell<ControlLoad>>>()
        .map(|load| load.borrow().clone())
        .unwrap_or_default();
    let ms = |time: std::time::Duration| {
        let ms = time.as_secs_f64() * 1e3;
        Cell::new(format!("{ms:.3}"), ms)
    };
    Ok(Output::none()
        .field("Turns with commands", load.turns)
        .field("Turns cut short", load.cut_short)
        .field("Longest turn ms", ms(load.longest_turn))
        .field("Most units in a turn", load.units_most)
        .field("Units in a turn at most", UNITS_PER_TURN_MAX)
        .field("Steps", load.steps)
        .field("Longest step ms", ms(load.longest_step))
        .field("Longest step of", load.longest_command)
        .field("Commands that rested", load.rests)
        .field("Commands under way", load.running))
}
