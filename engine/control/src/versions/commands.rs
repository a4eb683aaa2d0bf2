//! Versions as commands show them.

use serde_json::json;

use super::time;
use crate::args::Args;
use crate::background::Elsewhere;
use crate::error::Refusal;
use crate::grammar::Commands;
use crate::job::{Sink, Step};
use crate::names::Names;
use crate::output::{Cell, Column, Output, Table};
use crate::words::{COMMAND_BYTES_MAX, logical_line};

/// Lines that are shown before the loop is asked whether to pause.
const LINES_AT_ONCE: usize = 64;

/// The text of a version on its way to a client.
pub(crate) struct Showing {
    reading: Elsewhere<String>,
    with_secrets: bool,
    text: Option<String>,
    at: usize,
    shown: String,
}

impl<S: Names + 'static> Commands<S> {
    /// All versions, the newest first.
    pub(crate) fn history(&self) -> Result<Output, Refusal> {
        let kept = self.versions.needed()?;
        let mut table = Table::new([
            Column::right("Version").key("number"),
            Column::left("When"),
            Column::left("Who"),
            Column::left("State"),
            Column::left("Message"),
        ])
        .when_empty("no version is kept\n");
        for version in kept.list.iter().rev() {
            let number = Some(version.number);
            let state = match () {
                () if kept.current.saved == number => Some("saved"),
                () if kept.pending.as_ref().map(|pending| pending.version) == number => {
                    Some("pending")
                }
                () if kept.current.returned.contains(&version.number) => Some("returned"),
                () => None,
            };
            let row = table.row().cell(version.number).cell(time::utc(version.when_s));
            row.cell(&version.who).cell(Cell::optional(state, "")).cell(&version.message);
        }
        Ok(Output::none().table("versions", table))
    }

    /// Begin to show a version.
    pub(crate) fn begin_show_version(&self, args: &Args<'_>) -> Result<Showing, Refusal> {
        let number = self.known_version(args.get("version")?, args, "version")?;
        let store = self.versions.needed()?.store.clone();
        let with_secrets = args.has("secrets");
        let reading = Elsewhere::begin(move || {
            let text = store.text_of(number).map_err(Refusal::new)?;
            Ok(text.document.filter(|_| with_secrets).unwrap_or(text.commands))
        })?;
        Ok(Showing { reading, with_secrets, text: None, at: 0, shown: String::new() })
    }
}

impl Showing {
    pub(crate) fn step<S: Names + 'static>(
        &mut self,
        commands: &Commands<S>,
        names: &S,
        sink: &mut dyn Sink,
    ) -> Result<Step, Refusal> {
        let Some(text) = &self.text else {
            let Some(text) = self.reading.look()? else { return Ok(Elsewhere::<String>::pause()) };
            if self.with_secrets {
                return Ok(Step::Done(answer(text)));
            }
            self.text = Some(text);
            return Ok(Step::Again);
        };
        let mut words = Vec::new();
        loop {
            for _ in 0..LINES_AT_ONCE {
                let rest = &text[self.at..];
                let Some((length, _)) = logical_line(rest, &mut words, true) else {
                    return Ok(Step::Done(answer(std::mem::take(&mut self.shown))));
                };
                let line = &rest[..length];
                // What has no secret is shown as it was written.
                match commands.has_secret(names, line) {
                    true => {
                        self.shown += &commands.masked_within(names, line, COMMAND_BYTES_MAX);
                        self.shown.push('\n');
                    }
                    false => self.shown += line,
                }
                self.at += length;
            }
            sink.spend(LINES_AT_ONCE as u64);
            if sink.must_pause() {
                return Ok(Step::Again);
            }
        }
    }
}

fn answer(text: String) -> Output {
    let json = json!({ "text": text });
    Output::both(text, json)
}
