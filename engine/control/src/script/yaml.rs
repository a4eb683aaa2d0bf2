//! `show running-config yaml` under way: the lines are written as always, then each is put where it
//! lives in the document, and a thread of its own makes the text.

use serde_json::{Value as Json, json};

use super::document::Quiet;
use crate::background::Elsewhere;
use crate::configuration::Configuration;
use crate::document::{Comments, DocumentWriter};
use crate::error::Refusal;
use crate::grammar::Commands;
use crate::job::{Sink, Step};
use crate::names::Names;
use crate::output::Output;

/// A document under way.
pub(super) struct Writing<S>(At<S>);

enum At<S> {
    /// The commands are written.
    Commands { running: Box<Configuration<S>>, text: String },
    /// Each line is put where it lives.
    Lines { text: String, at: usize, writer: Box<DocumentWriter> },
    /// Text and JSON are made.
    Text(Elsewhere<(String, Json)>),
}

impl<S: Names + 'static> Writing<S> {
    pub(super) fn begin(commands: &Commands<S>, hides_secrets: bool) -> Writing<S> {
        let running = Box::new(Configuration::new(commands, hides_secrets));
        Writing(At::Commands { running, text: String::new() })
    }

    /// Do some of it.
    pub(super) fn step(
        &mut self,
        commands: &Commands<S>,
        state: &S,
        sink: &mut dyn Sink,
    ) -> Result<Step, Refusal> {
        match &mut self.0 {
            At::Commands { running, text } => {
                match running.step(commands, state, &mut Quiet { text, sink }) {
                    Step::Done(last) => text.push_str(&last.to_text()),
                    step => return Ok(step),
                }
                let text = std::mem::take(text);
                self.0 = At::Lines { text, at: 0, writer: Box::default() };
                Ok(Step::Again)
            }
            At::Lines { text, at, writer } => {
                while let Some(line) = text[*at..].lines().next() {
                    if sink.must_pause() {
                        return Ok(Step::Again);
                    }
                    writer.add(commands, line)?;
                    sink.spend(1);
                    *at = (*at + line.len() + 1).min(text.len());
                }
                let (writer, comments) = (std::mem::take(writer), commands.comments());
                let lines = std::mem::take(text);
                let made = Elsewhere::begin(move || Ok(made(*writer, &comments, &lines)))?;
                self.0 = At::Text(made);
                Ok(Step::Again)
            }
            At::Text(made) => match made.look()? {
                Some((text, json)) => Ok(Step::Done(Output::both(text, json))),
                None => Ok(Elsewhere::<String>::pause()),
            },
        }
    }
}

/// The text, and the document as JSON beside its lines.
fn made(writer: DocumentWriter, comments: &Comments, lines: &str) -> (String, Json) {
    let document = writer.finish();
    // What the lines say to people, as of secrets that are hidden.
    let remarks = lines.lines().filter_map(|line| line.strip_prefix('#'));
    let comments = comments.clone().with_more(remarks);
    let lines: Vec<&str> = lines.lines().collect();
    (document.yaml(&comments), json!({ "commands": lines, "document": document.json() }))
}
