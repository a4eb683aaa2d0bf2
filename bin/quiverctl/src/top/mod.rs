//! `quiverctl top`: what a router does, live, by differences between two looks at its counters.

mod ask;
mod grid;
mod rates;
mod snapshot;

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use quiver_screen::{Ask, Choice, is_screen, show, speaks_utf8, text};
use serde_json::json;

use crate::connection::{Failure, Place};
use crate::print::Printer;
use ask::Router;
use rates::Picture;

/// What the router does, live: nodes, interfaces, workers, drops.
///
/// On a terminal, a screen; keys are explained by `?`. Elsewhere, or with --once, one picture as
/// text.
#[derive(Parser)]
#[command(name = "quiverctl top")]
struct Arguments {
    /// The router's API socket
    #[arg(short, long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Print one picture and end
    #[arg(short = '1', long)]
    once: bool,
    /// Print one picture as JSON and end
    #[arg(short, long)]
    json: bool,
    /// Seconds between two looks at the counters
    #[arg(short, long, value_name = "SECONDS", default_value_t = 1.0, value_parser = interval)]
    interval: f64,
    /// Show only names that contain this
    #[arg(short, long, value_name = "NAME", default_value = "")]
    filter: String,
}

fn interval(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.1..=3600.0).contains(&seconds) { Ok(seconds) } else { Err("0.1 to 3600 seconds".into()) }
}

/// Run it with the words behind `top`.
pub fn run(
    words: &[String],
    place: Place,
    as_json: bool,
    printer: &mut Printer,
) -> Result<(), Failure> {
    let arguments = Arguments::parse_from(
        std::iter::once("quiverctl top".to_owned()).chain(words.iter().cloned()),
    );
    let place = arguments.socket.clone().map_or(place, Place::Here);
    let interval = Duration::from_secs_f64(arguments.interval);
    let as_json = as_json || arguments.json;
    if as_json || arguments.once || !is_screen() {
        return once(place, interval, as_json, &arguments.filter, printer);
    }
    let name = place.to_string();
    show::<Picture>(Router::new(place), name, interval, arguments.filter)
        .map_err(|error| Failure::Unreachable(format!("the terminal cannot be used: {error}")))
}

/// Two looks, and what happened between them.
fn once(
    place: Place,
    interval: Duration,
    as_json: bool,
    filter: &str,
    printer: &mut Printer,
) -> Result<(), Failure> {
    let mut router = Router::new(place);
    let before = router.ask().map_err(Failure::Unreachable)?;
    std::thread::sleep(interval);
    let now = router.ask().map_err(Failure::Unreachable)?;
    let unusable = || Failure::Unreachable("the router's clock stands still".into());
    let picture = Picture::between(&before, &now).ok_or_else(unusable)?;
    if as_json {
        return printer.text(&format!("{:#}\n", json!(picture)));
    }
    let choice = Choice { filter: filter.to_owned(), ..Choice::default() };
    printer.text(&text(&picture, &choice, speaks_utf8()))
}

#[cfg(test)]
mod tests;
