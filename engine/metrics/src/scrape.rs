//! Scrapes on the control thread: written a slice a turn, shared by all clients that ask meanwhile
//! or shortly after.

use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use quiver_core::Engine;
use quiver_core::control::reactor::{Interest, Token};

use crate::collect::{Collectors, Part, Scope};
use crate::server::{ScrapeRequest, Server};
use crate::text::{Format, Names, Text};

/// The control thread writes for so long in one turn.
const SLICE: Duration = Duration::from_micros(300);
/// Things that are written before the clock is looked at.
const THINGS_PER_LOOK: usize = 32;
/// A document is given to clients that ask until it is so old: what scrapers can make the control
/// thread do is bounded.
const SHARED: Duration = Duration::from_millis(100);

/// What an operator set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Where the server listens.
    pub address: SocketAddr,
    /// How much a scrape has.
    pub scope: Scope,
    /// Which families.
    pub names: Names,
}

/// The last scrape.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Last {
    /// From its begin to its end, seconds.
    pub elapsed_s: f64,
    /// What the control thread worked on it, seconds.
    pub worked_s: f64,
    /// Its longest turn, seconds.
    pub longest_s: f64,
    /// Samples.
    pub samples: usize,
    /// Bytes.
    pub bytes: usize,
}

/// The exporter, kept in the engine.
#[derive(Default)]
pub struct Exporter {
    listening: Option<Listening>,
    /// Scrapes that were written.
    pub scrapes: u64,
    /// Answers that were given.
    pub answers: u64,
    /// The last scrape.
    pub last: Last,
}

struct Listening {
    settings: Settings,
    server: Server,
    watch: Token,
    /// Who waits for which form.
    waiting: Vec<ScrapeRequest>,
    /// The documents that were written last.
    documents: Vec<(Format, Instant, Arc<str>)>,
    running: Option<Scrape>,
}

/// A scrape under way.
struct Scrape {
    format: Format,
    begun: Instant,
    scope: Scope,
    /// The part that is written, once it is begun.
    part: Option<Part>,
    /// Its place.
    place: usize,
    text: Text,
    last: Last,
}

impl Scrape {
    fn begin(format: Format, settings: &Settings, bytes: usize) -> Scrape {
        Scrape {
            format,
            begun: Instant::now(),
            scope: settings.scope,
            part: None,
            place: 0,
            text: Text::new(format, settings.names, bytes),
            last: Last::default(),
        }
    }

    /// Write for a while. Is all written?
    fn slice(&mut self, engine: &Engine) -> bool {
        let begun = Instant::now();
        let mut is_done = false;
        while begun.elapsed() < SLICE {
            let next = || Collectors::begin(engine, self.place, self.scope);
            let Some(mut part) = self.part.take().or_else(next) else {
                is_done = true;
                break;
            };
            if part(engine, &mut self.text, THINGS_PER_LOOK) {
                self.place += 1;
            } else {
                self.part = Some(part);
            }
        }
        let worked_s = begun.elapsed().as_secs_f64();
        self.last.worked_s += worked_s;
        self.last.longest_s = self.last.longest_s.max(worked_s);
        is_done
    }

    fn finish(self) -> (Last, Arc<str>) {
        let samples = self.text.samples();
        let document: Arc<str> = self.text.finish().into();
        let elapsed_s = self.begun.elapsed().as_secs_f64();
        (Last { elapsed_s, samples, bytes: document.len(), ..self.last }, document)
    }
}

impl Exporter {
    /// What is set, while the server listens.
    pub fn settings(&self) -> Option<Settings> {
        self.listening.as_ref().map(|listening| listening.settings)
    }

    /// The server, while it listens.
    pub fn server(&self) -> Option<&Server> {
        self.listening.as_ref().map(|listening| &listening.server)
    }
}

/// Listen, or go on with other settings.
///
/// # Errors
/// The address cannot be listened on; nothing has changed then.
pub fn enable(engine: &mut Engine, settings: Settings) -> std::io::Result<()> {
    if let Some(listening) = listening(engine)
        && listening.settings.address == settings.address
    {
        listening.settings = settings;
        listening.documents.clear();
        return Ok(());
    }
    let server = Server::start(settings.address)?;
    disable(engine);
    let fd = server.bell().as_fd().as_raw_fd();
    let watch = engine.watch(fd, Interest::READ, take_requests);
    let listening = Listening {
        settings,
        server,
        watch,
        waiting: Vec::new(),
        documents: Vec::new(),
        running: None,
    };
    if let Some(exporter) = engine.get_mut::<Exporter>() {
        exporter.listening = Some(listening);
    }
    Ok(())
}

/// End the connections and free the port. Returns whether the server listened.
pub fn disable(engine: &mut Engine) -> bool {
    let old = engine.get_mut::<Exporter>().and_then(|exporter| exporter.listening.take());
    let Some(old) = old else { return false };
    engine.unwatch(old.watch);
    true
}

fn listening(engine: &mut Engine) -> Option<&mut Listening> {
    engine.get_mut::<Exporter>()?.listening.as_mut()
}

/// Clients ask.
fn take_requests(engine: &mut Engine) {
    let Some(exporter) = engine.get_mut::<Exporter>() else { return };
    let Some(listening) = &mut exporter.listening else { return };
    listening.server.bell().silence();
    listening.documents.retain(|(_, written, _)| written.elapsed() < SHARED);
    while let Some(one) = listening.server.next() {
        let ready = listening.documents.iter().find(|(format, ..)| *format == one.format);
        match ready {
            Some((_, _, document)) => {
                listening.server.answer(one.client, document);
                exporter.answers += 1;
            }
            None => listening.waiting.push(one),
        }
    }
    if listening.running.is_none() {
        begin_next(engine);
    }
}

/// Begin the scrape that the first client waits for.
fn begin_next(engine: &mut Engine) {
    let bytes = engine.get::<Exporter>().map_or(0, |exporter| exporter.last.bytes);
    let Some(listening) = listening(engine) else { return };
    let Some(first) = listening.waiting.first().copied() else { return };
    let settings = listening.settings;
    let scrape = Scrape::begin(first.format, &settings, bytes + bytes / 8);
    if let Some(listening) = self::listening(engine) {
        listening.running = Some(scrape);
        engine.after(0, go_on);
    }
}

/// Write the next slice.
fn go_on(engine: &mut Engine) {
    let Some(mut scrape) = listening(engine).and_then(|listening| listening.running.take()) else {
        return;
    };
    if !scrape.slice(engine) {
        if let Some(listening) = listening(engine) {
            listening.running = Some(scrape);
            engine.after(0, go_on);
        }
        return;
    }
    let format = scrape.format;
    let (last, document) = scrape.finish();
    let Some(exporter) = engine.get_mut::<Exporter>() else { return };
    let Some(listening) = &mut exporter.listening else { return };
    for one in listening.waiting.extract_if(.., |one| one.format == format) {
        listening.server.answer(one.client, &document);
        exporter.answers += 1;
    }
    listening.documents.retain(|(other, ..)| *other != format);
    listening.documents.push((format, Instant::now(), document));
    (exporter.last, exporter.scrapes) = (last, exporter.scrapes + 1);
    begin_next(engine);
}
