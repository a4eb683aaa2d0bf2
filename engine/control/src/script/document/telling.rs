//! What commands for a whole configuration answer.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};

use super::{Documented, Purpose};
use crate::changes::{Changes, Mistake};
use crate::error::Refusal;
use crate::grammar::Commands;
use crate::names::Names;
use crate::output::Output;
use crate::versions::{Kept, time};
use crate::words::COMMAND_BYTES_MAX;

/// A mistake more than these is counted, not told.
const MISTAKES_LISTED_MAX: usize = 100;

impl<S: Names + 'static> Documented<S> {
    /// All mistakes in one refusal.
    pub(super) fn unreadable(&self, mistakes: Vec<Mistake>) -> Refusal {
        let mistakes: Vec<Mistake> = match &self.document {
            Some(document) => mistakes.into_iter().map(|one| document.placed(one)).collect(),
            None => mistakes,
        };
        let Some(first) = mistakes.first() else {
            return Refusal::new("the configurations cannot be compared");
        };
        let name = &self.wanted.name;
        if mistakes.len() == 1 {
            return match first.line {
                0 => first.refusal.clone(),
                line => {
                    let refusal = first.refusal.clone().in_file(name.clone(), line);
                    refusal.at_column(first.column)
                }
            };
        }
        let mut text = format!("{name} has {} mistakes", mistakes.len());
        for mistake in mistakes.iter().take(MISTAKES_LISTED_MAX) {
            let Mistake { line, column, refusal } = mistake;
            let _ = match column {
                0 => write!(text, "\n  line {line}: {refusal}"),
                _ => write!(text, "\n  {name}:{line}:{column}: {refusal}"),
            };
        }
        if let Some(more) = mistakes.len().checked_sub(MISTAKES_LISTED_MAX).filter(|more| *more > 0)
        {
            let _ = write!(text, "\n  and {more} more");
        }
        Refusal::new(text)
    }

    /// The changes, as `diff` prints them, without secrets.
    pub(super) fn listed(&self, commands: &Commands<S>, state: &S, changes: &Changes) -> Output {
        let hides = |line: &String| commands.masked_within(state, line, COMMAND_BYTES_MAX);
        let all = |lines: &[String]| lines.iter().map(hides).collect::<Vec<String>>();
        let (removed, added) = (all(&changes.removed), all(&changes.added));
        let executed: Vec<String> =
            changes.commands.iter().map(|change| hides(&change.command)).collect();
        let lines = removed.iter().map(|line| format!("- {line}\n"));
        let text: String = lines.chain(added.iter().map(|line| format!("+ {line}\n"))).collect();
        let text = match self.difference(commands, &hides) {
            Some(document) if text.is_empty() => document,
            Some(document) => format!("{document}\nas commands:\n{text}"),
            None => text,
        };
        let output = Output::text(text)
            .json("removed", json!(removed))
            .json("added", json!(added))
            .json("commands", json!(executed));
        match self.purpose {
            Purpose::Diff => output.json("generation", json!(commands.generation())),
            _ => output,
        }
    }

    /// What differs in the document, key by key.
    fn difference(
        &self,
        commands: &Commands<S>,
        hides: &dyn Fn(&String) -> String,
    ) -> Option<String> {
        let document = |lines: &str| {
            let hidden = lines.lines().map(|line| hides(&line.to_owned()) + "\n");
            commands.document_of(&hidden.collect::<String>()).ok()
        };
        self.document.as_ref()?;
        Some(document(&self.running)?.difference(&document(&self.wanted.text)?))
    }

    /// Which version runs, what waits, and what nobody has saved.
    pub(super) fn status(&self, commands: &Commands<S>, changes: &Changes) -> Output {
        let Some(kept) = commands.versions.kept() else { return Output::none() };
        status_of(&kept, changes, &commands.generation())
    }
}

fn status_of(kept: &Kept, changes: &Changes, generation: &str) -> Output {
    let saved = kept.current.saved.and_then(|number| kept.version(number));
    let mut text = match saved {
        Some(version) => {
            let when = time::utc(version.when_s);
            let mut text = format!("version {} of {when} by {}", version.number, version.who);
            if !version.message.is_empty() {
                text += &format!(": {}", version.message);
            }
            text + "\n"
        }
        None => "no version is saved\n".to_owned(),
    };
    if let Some(pending) = &kept.pending {
        let (until, left) = (time::utc(pending.until_s), pending.left_s());
        let _ = writeln!(
            text,
            "version {} of {} waits for its confirmation until {until}, {left} s from now",
            pending.version, pending.who
        );
    }
    // The changes lead back to the version.
    let (removed, added) = (changes.added.len(), changes.removed.len());
    let differs = saved.is_none() || !changes.is_empty();
    text += &match (differs, saved) {
        (_, None) => "what runs is saved by `configuration save`\n".to_owned(),
        (false, _) => "what runs is that version\n".to_owned(),
        (true, Some(version)) => format!(
            "what runs differs from it in {removed} lines that are gone and {added} that are new: \
             `configuration diff version {}`\n",
            version.number
        ),
    };
    let version = |number: u32| -> Json {
        kept.version(number).map_or(Json::Null, |version| {
            json!({
                "number": version.number, "when": time::utc(version.when_s), "who": version.who,
                "message": version.message,
            })
        })
    };
    let pending = kept.pending.as_ref().map(|pending| {
        json!({
            "number": pending.version, "who": pending.who, "until": time::utc(pending.until_s),
            "left_s": pending.left_s(),
        })
    });
    let json = json!({
        "saved": kept.current.saved.map_or(Json::Null, version),
        "pending": pending,
        "differs": differs,
        "lines_gone": removed,
        "lines_new": added,
        "generation": generation,
    });
    Output::both(text, json).nullable(&["saved", "pending"])
}
