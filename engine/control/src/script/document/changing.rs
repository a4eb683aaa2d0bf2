//! A configuration becomes the router's, and a version of its own.

use serde_json::json;

use super::{At, Documented, Executing, Purpose, keeping};
use crate::background::Elsewhere;
use crate::changes::Changes;
use crate::error::Refusal;
use crate::grammar::Commands;
use crate::job::Step;
use crate::names::Names;
use crate::output::Output;
use crate::versions::{Current, Pending};

use super::keeping::{Committed, New};

impl<S: Names + 'static> Documented<S> {
    /// Write the version, and execute the changes then.
    pub(super) fn keep(
        &mut self,
        commands: &Commands<S>,
        changes: Changes,
        is_saved: bool,
    ) -> Result<Step, Refusal> {
        let Some(kept) = commands.versions.kept() else {
            self.at = At::Executing(Box::new(Executing::new(changes.commands, false)));
            return Ok(Step::Again);
        };
        let saved = kept.current.saved;
        let is_saved =
            saved.is_some() && (is_saved || commands.versions.running(self.begun) == saved);
        let says_it = match self.purpose {
            Purpose::Save => is_saved,
            _ => is_saved && self.says_the_same && changes.is_empty(),
        };
        if let Some(number) = saved.filter(|_| says_it) {
            let said = format!("version {number} says this already");
            return Ok(Step::Done(
                Output::text(said).json("commands", json!(0)).json("version", json!(number)),
            ));
        }
        let before = !is_saved && self.purpose != Purpose::Save;
        let new = New {
            store: kept.store.clone(),
            current: kept.current.clone(),
            who: self.who.clone(),
            message: match self.purpose {
                Purpose::Rollback if self.options.message.is_empty() => {
                    format!("rollback to {}", self.wanted.name)
                }
                _ => self.options.message.clone(),
            },
            language: self.wanted.language.clone(),
            text: self.wanted.text.clone(),
            document: self.wanted.document.clone(),
            before: before.then(|| self.running.clone()),
            confirm: self.options.confirm,
        };
        self.changes = changes.commands;
        self.at = At::Storing(Elsewhere::begin(move || new.store())?);
        Ok(Step::Again)
    }

    /// What was written becomes the router's version.
    pub(super) fn commit(&mut self, commands: &Commands<S>) -> Result<Step, Refusal> {
        let list = commands.versions.kept().map(|kept| kept.list.clone()).unwrap_or_default();
        let Some(stored) = self.stored.take() else { return Ok(Step::Again) };
        match Elsewhere::surely(move || stored.commit(list)) {
            Ok(committing) => self.at = At::Committing(committing),
            Err(refusal) => return self.take_back(commands, refusal),
        }
        Ok(Step::Again)
    }

    /// It is the router's version.
    pub(super) fn committed(
        &mut self,
        commands: &Commands<S>,
        committed: Committed,
    ) -> Result<Step, Refusal> {
        let entered = commands.versions.change(|kept| {
            let number = committed.enter(kept, &self.running);
            (number, kept.pending.clone())
        });
        let Some((number, pending)) = entered else {
            return Ok(Step::Done(Output::none()));
        };
        commands.versions.runs(number, commands.changes.begun());
        let what = match self.purpose {
            Purpose::Save => "saved".to_owned(),
            _ => format!("applied by {} commands", self.done),
        };
        let mut said = format!("version {number} is {what}");
        if let Some(Pending { until_s, .. }) = &pending {
            let until = crate::versions::time::utc(*until_s);
            said +=
                &format!(", and is taken back at {until} unless `configuration confirm` is said");
        }
        tracing::info!("{said}, for {}", self.who);
        let output = Output::text(said).json("commands", json!(self.done));
        let until = pending.map(|pending| pending.until_s);
        let output = output.json("version", json!(number)).json("confirm_until_s", json!(until));
        Ok(Step::Done(output.nullable(&["confirm_until_s"])))
    }

    /// The configuration is what it was before the version that was not confirmed.
    pub(super) fn returned(
        &mut self,
        commands: &Commands<S>,
        refused: Option<(Refusal, u64)>,
    ) -> Result<Step, Refusal> {
        self.refused = refused;
        let kept = commands.versions.needed()?;
        let (store, mut current) = (kept.store.clone(), kept.current.clone());
        let there: Vec<u32> = kept.list.iter().map(|version| version.number).collect();
        drop(kept);
        let waiting = current.waiting.take().map(|waiting| waiting.version);
        current.returned.extend(waiting);
        current.returned.retain(|number| there.contains(number));
        match Elsewhere::surely(move || keeping::put(&store, &current)) {
            Ok(putting) => self.at = At::Putting(putting),
            Err(refusal) => return self.not_put(commands, refusal),
        }
        Ok(Step::Again)
    }

    /// It is entered which version is which.
    pub(super) fn put(
        &mut self,
        commands: &Commands<S>,
        current: Current,
    ) -> Result<Step, Refusal> {
        let saved = current.saved;
        let pending = commands.versions.change(|kept| {
            kept.current = current;
            kept.pending.take()
        });
        let number = pending.flatten().map_or(0, |pending| pending.version);
        if self.purpose == Purpose::Confirm {
            let said = format!("version {number} is confirmed");
            tracing::info!("{said} by {}", self.who);
            return Ok(Step::Done(Output::text(said).json("version", json!(number))));
        }
        match self.refused.take() {
            None => {
                if let Some(saved) = saved {
                    commands.versions.runs(saved, commands.changes.begun());
                }
                let said = format!("version {number} is taken back by {} commands", self.done);
                tracing::info!("{said}, for {}", self.who);
                let output = Output::text(said).json("commands", json!(self.done));
                Ok(Step::Done(output.json("version", json!(saved)).nullable(&["version"])))
            }
            Some((refusal, count)) => {
                let what = format!(
                    "version {number} is taken back but for {count} commands; the first: {refusal}"
                );
                tracing::error!("{what}");
                Err(Refusal::new(what).remedy("`configuration diff version` says what differs"))
            }
        }
    }

    /// It could not be entered which version is which.
    pub(super) fn not_put(
        &mut self,
        commands: &Commands<S>,
        refusal: Refusal,
    ) -> Result<Step, Refusal> {
        if self.purpose == Purpose::Return {
            // The file says that the version waits still: a start takes the one before, too.
            commands.versions.change(|kept| {
                let waiting = kept.current.waiting.take();
                kept.current.returned.extend(waiting.map(|waiting| waiting.version));
                kept.pending = None;
            });
            tracing::error!("the configuration is what it was before, but {refusal}");
        }
        Err(refusal)
    }
}
