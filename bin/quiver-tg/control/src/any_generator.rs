//! The generator of a profile: of streams, or of transactions.

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

/// A generator of either kind.
pub enum AnyGenerator<S> {
    /// Frames of streams.
    Streams(Box<Generator<S>>),
    /// Clients and servers.
    Transactions(Box<StatefulGenerator<S>>),
}

/// The report of one measurement.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Found")]
pub enum AnyReport {
    /// Of streams.
    Streams(Box<Report>),
    /// Of transactions.
    Transactions(Box<StatefulReport>),
}

impl AnyReport {
    /// The report as text.
    pub fn render(&self) -> String {
        match self {
            AnyReport::Streams(report) => render(report),
            AnyReport::Transactions(report) => report.render(),
        }
    }
}

impl<S> From<Generator<S>> for AnyGenerator<S> {
    fn from(generator: Generator<S>) -> AnyGenerator<S> {
        AnyGenerator::Streams(Box::new(generator))
    }
}

impl<S> From<StatefulGenerator<S>> for AnyGenerator<S> {
    fn from(generator: StatefulGenerator<S>) -> AnyGenerator<S> {
        AnyGenerator::Transactions(Box::new(generator))
    }
}

/// Calls the same method on either kind.
macro_rules! both {
    ($any:expr, $generator:ident => $result:expr) => {
        match $any {
            AnyGenerator::Streams($generator) => $result,
            AnyGenerator::Transactions($generator) => $result,
        }
    };
}

impl<S: Surroundings> AnyGenerator<S> {
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

    /// Every port has a link.
    ///
    /// # Errors
    /// When a link or a gateway's answer is missing after `deadline_ns`.
    pub fn has_links(&mut self, deadline_ns: u64) -> anyhow::Result<bool> {
        both!(self, generator => generator.has_links(deadline_ns))
    }

    /// Link and counters of its ports since they were made.
    pub fn port_states(&self) -> Vec<PortState> {
        both!(self, generator => generator.port_states())
    }

    /// Its streams; transactions have none.
    pub fn streams(&self) -> &[StreamFacts] {
        match self {
            AnyGenerator::Streams(generator) => generator.streams(),
            AnyGenerator::Transactions(_) => &[],
        }
    }

    /// The generator of streams, if it is one.
    pub fn as_streams(&mut self) -> Option<&mut Generator<S>> {
        if let AnyGenerator::Streams(generator) = self { Some(generator) } else { None }
    }

    /// The generator of transactions, if it is one.
    pub fn as_transactions(&mut self) -> Option<&mut StatefulGenerator<S>> {
        if let AnyGenerator::Transactions(generator) = self { Some(generator) } else { None }
    }

    /// A rate in frames a second: of one stream, or of all that share the rate of the whole; of
    /// transactions it is theirs a second.
    ///
    /// # Errors
    /// When the rate needs a line rate that the profile does not give, when there is no such
    /// stream, or when transactions are given a rate in bits or per cent.
    pub fn rate_in_frames(&self, rate: StreamRate, stream: Option<usize>) -> Result<Rate, String> {
        match (self, rate) {
            (AnyGenerator::Streams(generator), _) => generator.rate_in_frames(rate, stream),
            (AnyGenerator::Transactions(_), StreamRate::Pps(_) | StreamRate::Max) => {
                rates::in_frames(&[], rate, None)
            }
            (AnyGenerator::Transactions(_), _) => {
                Err("transactions begin at so many a second, like 100k, or max".to_owned())
            }
        }
    }

    /// Begin to measure.
    ///
    /// # Errors
    /// When the request is impossible, a measurement is under way, a port has no link, or the
    /// worker does not answer.
    pub fn begin(&mut self, request: &Measure) -> anyhow::Result<()> {
        both!(self, generator => generator.begin(request))
    }

    /// End the sending; the report comes from [`turn`](Self::turn).
    ///
    /// # Errors
    /// When the worker does not answer.
    pub fn stop(&mut self) -> anyhow::Result<()> {
        both!(self, generator => generator.stop())
    }

    /// Is a measurement under way?
    pub fn is_measuring(&self) -> bool {
        both!(self, generator => generator.is_measuring())
    }

    /// Continue the measurement under way.
    ///
    /// # Errors
    /// When a link is lost or the worker does not answer: the measurement is over then, without a
    /// report.
    pub fn turn(&mut self) -> anyhow::Result<Turn<AnyReport>> {
        Ok(match self {
            AnyGenerator::Streams(generator) => with(generator.turn()?, AnyReport::Streams),
            AnyGenerator::Transactions(generator) => {
                with(generator.turn()?, AnyReport::Transactions)
            }
        })
    }

    /// The warm-up is over: the measurement may be changed.
    pub fn counts(&self) -> bool {
        both!(self, generator => generator.counts())
    }

    /// Change the rate of one stream, or of all; of transactions there is one rate.
    ///
    /// # Errors
    /// When nothing is sent, when there is no such stream, when transactions are given a stream, or
    /// when the worker does not answer.
    pub fn set_rate(&mut self, stream: Option<usize>, rate: Rate) -> anyhow::Result<()> {
        match self {
            AnyGenerator::Streams(generator) => generator.set_rate(stream, rate),
            AnyGenerator::Transactions(generator) => {
                no_stream(stream)?;
                generator.set_rate(rate)
            }
        }
    }

    /// Pause or resume one stream, all streams, or the transactions.
    ///
    /// # Errors
    /// As [`set_rate`](Self::set_rate).
    pub fn set_paused(&mut self, stream: Option<usize>, is_paused: bool) -> anyhow::Result<()> {
        match self {
            AnyGenerator::Streams(generator) => generator.set_paused(stream, is_paused),
            AnyGenerator::Transactions(generator) => {
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

fn with<R>(turn: Turn<R>, found: fn(Box<R>) -> AnyReport) -> Turn<AnyReport> {
    match turn {
        Turn::Idle => Turn::Idle,
        Turn::Until(then_ns) => Turn::Until(then_ns),
        Turn::Done(report) => Turn::Done(Box::new(found(report))),
    }
}
