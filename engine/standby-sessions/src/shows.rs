//! The show of a translator's link: `show nat ha`, `show nat64 ha`.

use quiver_control::{Cell, Command, Output, Registry};
use quiver_core::Engine;

use crate::counts::{ALL, Numbers};
use crate::state::{Open, Standby};
use crate::translator::Translator;
use quiver_standby::link::State;

/// Nanoseconds of a second and of a microsecond.
const SECOND_NS: u64 = 1_000_000_000;
const MICROSECOND_NS: u64 = 1_000;

pub(crate) fn register<T: Translator>(registry: &mut Registry) {
    let Some((name, others)) = T::TEXTS.shows.split_first() else { return };
    registry.command(
        others
            .iter()
            .fold(Command::new(name), |command, other| command.also(other))
            .group(T::TEXTS.group)
            .help("Show the link to the router that stands by, and what went to and fro")
            .details(
                "Role: to whom packets came last. Missed: changes while the other router was not \
                 there; it gets all when it is. Overflows: changes that came faster than the \
                 control thread took them, after which it gets all, too. Kept: told by the other \
                 router and not done, because packets come here. Other version: datagrams of a \
                 router whose software writes them in another form; update both. Refused: it is \
                 not done because there is no room, or the address is not configured here.",
            )
            .run(|engine: &mut Engine, _| Ok(show::<T>(engine))),
    );
}

fn show<T: Translator>(engine: &Engine) -> Output {
    let Some(standby) = engine.get::<Standby<T>>() else { return Output::none() };
    let settings = &standby.settings;
    let now_ns = engine.now_ns();
    let ago_s = |at_ns: Option<u64>| at_ns.map(|at_ns| now_ns.saturating_sub(at_ns) / SECOND_NS);
    let role = standby.is_active().map(|active| if active { "active" } else { "standby" });
    let place = |place: Option<std::net::SocketAddr>| {
        Cell::optional(place.map(|place| place.to_string()), "none")
    };
    let output = Output::none()
        .field("Role", Cell::optional(role, "none"))
        .field("Listener", place(settings.listener.map(|(place, _)| place)))
        .field("Failover", place(settings.failover.map(|(place, _)| place)))
        .field("Key", if settings.secret.is_some() { "set" } else { "none" })
        .field("State", standby.open.as_ref().map_or("off", state_word))
        .field("Takeovers", standby.takeovers)
        .field("Last takeover ago s", Cell::optional(ago_s(standby.takeover_ns), "never"));
    let output = with_link(output, standby.open.as_ref(), now_ns);
    let output = with_resync(output, engine, standby);
    let numbers = Numbers::of(standby);
    ALL.iter().fold(output, |output, number| output.field(number.label, (number.read)(&numbers)))
}

fn state_word(open: &Open) -> &'static str {
    match open.link.state() {
        State::Down if open.link.hears_other_version() => "version-differs",
        State::Disagrees => "configuration-differs",
        state => state.word(),
    }
}

fn with_link(output: Output, open: Option<&Open>, now_ns: u64) -> Output {
    let since = open.filter(|open| open.link.since_ns() != 0);
    let since_s = since.map(|open| now_ns.saturating_sub(open.link.since_ns()) / SECOND_NS);
    let round_trip = open.map(|open| open.link.round_trip_ns()).filter(|ns| *ns != 0);
    let error = open.and_then(|open| open.socket.error().zip(open.socket.error_word()));
    let error = error.map(|(text, word)| Cell::new(text, word));
    output
        .field("Since s", Cell::optional(since_s, "never"))
        .field("Error", Cell::optional(error, "none"))
        .field("Round trip us", Cell::optional(round_trip.map(|ns| ns / MICROSECOND_NS), "none"))
}

fn with_resync<T: Translator>(output: Output, engine: &Engine, standby: &Standby<T>) -> Output {
    let open = standby.open.as_ref();
    let places = T::places(engine);
    let bulk = open.and_then(|open| open.bulk.as_ref());
    let progress = bulk.map(|cursor| match places {
        0 => 0,
        places => 100 * u64::from(cursor.next_session()) / places as u64,
    });
    let is_told = open.is_some_and(|open| open.is_in_bulk);
    output
        .field("Resync sent percent", Cell::optional(progress, "none under way"))
        .field("Resync being received", is_told)
}
