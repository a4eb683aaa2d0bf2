//! What a profile is measured with: streams of frames, or transactions.

use quiver_core::Engine;
use schemars::JsonSchema;
use serde::Serialize;

use quiver_tg_measuring::generator::Generator;
use quiver_tg_measuring::outcome::StreamFacts;
use quiver_tg_measuring::rates;
use quiver_tg_measuring::report::Report;
use quiver_tg_measuring::request::{Measure, Rate};
use quiver_tg_measuring::surroundings::{PortState, Surroundings};
use quiver_tg_measuring::table::render;
use quiver_tg_measuring::turn::Turn;
use quiver_tg_stateful::generator::StatefulGenerator;
use quiver_tg_stateful::report::StatefulReport;
use quiver_tg_traffic::profile::StreamRate;

/// One of both.
pub enum Machine<S> {
    /// Frames of streams.
    Streams(Box<Generator<S>>),
    /// Clients and servers.
    Transactions(Box<StatefulGenerator<S>>),
}

/// What one measurement found.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Found {
    /// Of streams.
    Streams(Box<Report>),
    /// Of transactions.
    Transactions(Box<StatefulReport>),
}

impl Found {
    /// As people read it.
    pub fn render(&self) -> String {
        match self {
            Found::Streams(report) => render(report),
            Found::Transactions(report) => report.render(),
        }
    }
}

impl<S> From<Generator<S>> for Machine<S> {
    fn from(generator: Generator<S>) -> Machine<S> {
        Machine::Streams(Box::new(generator))
    }
}

impl<S> From<StatefulGenerator<S>> for Machine<S> {
    fn from(generator: StatefulGenerator<S>) -> Machine<S> {
        Machine::Transactions(Box::new(generator))
    }
}

/// The same of both.
macro_rules! both {
    ($machine:expr, $generator:ident => $result:expr) => {
        match $machine {
            Machine::Streams($generator) => $result,
            Machine::Transactions($generator) => $result,
        }
    };
}

impl<S: Surroundings> Machine<S> {
    /// The engine below.
    pub fn engine(&mut self) -> &mut Engine {
        both!(self, generator => generator.engine())
    }

    /// Do what is due on the control thread for at most so long.
    pub fn wait(&mut self, at_most_ns: u64) {
        both!(self, generator => generator.wait(at_most_ns));
    }

    /// Until when the ports may be without links, if they begin to wait now.
    pub fn link_deadline_ns(&self) -> u64 {
        both!(self, generator => generator.link_deadline_ns())
    }

    /// Has every port a link? Not to be ready after `deadline_ns` is an error.
    pub fn has_links(&mut self, deadline_ns: u64) -> anyhow::Result<bool> {
        both!(self, generator => generator.has_links(deadline_ns))
    }

    /// What its ports have done since they were made.
    pub fn port_states(&self) -> Vec<PortState> {
        both!(self, generator => generator.port_states())
    }

    /// Its streams; transactions have none.
    pub fn streams(&self) -> &[StreamFacts] {
        match self {
            Machine::Streams(generator) => generator.streams(),
            Machine::Transactions(_) => &[],
        }
    }

    /// The generator of streams, if it is one.
    pub fn of_streams(&mut self) -> Option<&mut Generator<S>> {
        if let Machine::Streams(generator) = self { Some(generator) } else { None }
    }

    /// The generator of transactions, if it is one.
    pub fn of_transactions(&mut self) -> Option<&mut StatefulGenerator<S>> {
        if let Machine::Transactions(generator) = self { Some(generator) } else { None }
    }

    /// A rate in frames a second: of one stream, or of all that share the rate of the whole; of
    /// transactions it is theirs a second.
    pub fn rate_in_frames(&self, rate: StreamRate, stream: Option<usize>) -> Result<Rate, String> {
        match (self, rate) {
            (Machine::Streams(generator), _) => generator.rate_in_frames(rate, stream),
            (Machine::Transactions(_), StreamRate::Pps(_) | StreamRate::Max) => {
                rates::in_frames(&[], rate, None)
            }
            (Machine::Transactions(_), _) => {
                Err("transactions begin at so many a second, like 100k, or max".to_owned())
            }
        }
    }

    /// Begin to measure.
    pub fn begin(&mut self, request: &Measure) -> anyhow::Result<()> {
        both!(self, generator => generator.begin(request))
    }

    /// End the sending; the report comes from [`turn`](Self::turn).
    pub fn stop(&mut self) -> anyhow::Result<()> {
        both!(self, generator => generator.stop())
    }

    /// Is a measurement under way?
    pub fn is_measuring(&self) -> bool {
        both!(self, generator => generator.is_measuring())
    }

    /// Go on with the measurement under way. An error ends it.
    pub fn turn(&mut self) -> anyhow::Result<Turn<Found>> {
        Ok(match self {
            Machine::Streams(generator) => with(generator.turn()?, Found::Streams),
            Machine::Transactions(generator) => {
                if let Some(look) = generator.look() {
                    generator.sampler.see(&look);
                }
                with(generator.turn()?, Found::Transactions)
            }
        })
    }

    /// May the measurement under way be changed yet?
    pub fn counts(&self) -> bool {
        both!(self, generator => generator.counts())
    }

    /// Change the rate of one stream, or of all; of transactions there is one rate.
    pub fn set_rate(&mut self, stream: Option<usize>, rate: Rate) -> anyhow::Result<()> {
        match self {
            Machine::Streams(generator) => generator.set_rate(stream, rate),
            Machine::Transactions(generator) => {
                no_stream(stream)?;
                generator.set_rate(rate)
            }
        }
    }

    /// Let one stream, or all, or transactions, rest or go on.
    pub fn set_paused(&mut self, stream: Option<usize>, is_paused: bool) -> anyhow::Result<()> {
        match self {
            Machine::Streams(generator) => generator.set_paused(stream, is_paused),
            Machine::Transactions(generator) => {
                no_stream(stream)?;
                generator.set_paused(is_paused)
            }
        }
    }
}

fn no_stream(stream: Option<usize>) -> anyhow::Result<()> {
    anyhow::ensure!(stream.is_none(), "transactions are no streams; leave `stream` out");
    Ok(())
}

fn with<R>(turn: Turn<R>, found: fn(Box<R>) -> Found) -> Turn<Found> {
    match turn {
        Turn::Idle => Turn::Idle,
        Turn::Until(then_ns) => Turn::Until(then_ns),
        Turn::Done(report) => Turn::Done(Box::new(found(report))),
    }
}
