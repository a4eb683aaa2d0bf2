//! From the macros of `tracing` to the log.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use tracing::field::{Field, Visit};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::layer::{Context, SubscriberExt};

use super::settings::Level;
use super::store::Log;

/// Send what this program says to the log from now on. False when something else is installed.
pub fn install(log: Arc<Log>) -> bool {
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(ToLog(log))).is_ok()
}

/// The time as the log writes it.
pub fn now() -> String {
    let mut text = String::new();
    let _ = SystemTime.format_time(&mut Writer::new(&mut text));
    text
}

struct ToLog(Arc<Log>);

fn level_of(metadata: &Metadata<'_>) -> Level {
    match *metadata.level() {
        tracing::Level::ERROR => Level::Err,
        tracing::Level::WARN => Level::Warn,
        tracing::Level::INFO => Level::Info,
        _ => Level::Debug,
    }
}

/// `quiver_af_packet::driver` is `af-packet`.
pub(super) fn class_of(target: &str) -> String {
    let krate = target.split("::").next().unwrap_or(target);
    krate.strip_prefix("quiver_").unwrap_or(krate).replace('_', "-")
}

impl<S: Subscriber> Layer<S> for ToLog {
    /// What is taken changes while the router runs.
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        self.0.takes(level_of(metadata))
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        let mut text = Text::default();
        event.record(&mut text);
        let Text { message, fields } = text;
        let class = class_of(metadata.target());
        self.0.add(now(), level_of(metadata), &class, message, &fields);
    }
}

/// The message, and what else the event has.
#[derive(Default)]
struct Text {
    message: String,
    fields: Vec<(String, String)>,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => drop(write!(self.message, "{value:?}")),
            name => self.fields.push((name.to_owned(), format!("{value:?}"))),
        }
    }
}
