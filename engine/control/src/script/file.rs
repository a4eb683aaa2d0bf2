//! Files of commands: executed, or only checked.
//!
//! A file may hold anything, and the router reads it with its own rights: of a line that is no
//! command no word is repeated, neither to the client nor in the log.

use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::run::Script;
use super::{Context, Execution, Kind, OnRefusal};
use crate::background::Elsewhere;
use crate::batch::lines_in;
use crate::error::{Refusal, printable_path};
use crate::files::Access;
use crate::grammar::{Action, Commands, closed};
use crate::job::Sink;
use crate::names::Names;
use crate::words::{self, Word};

/// Files that execute files, at most so deep.
pub const EXEC_DEPTH_MAX: usize = 8;

/// A file of commands is at most this long.
pub const EXEC_BYTES_MAX: u64 = words::TEXT_BYTES_MAX as u64;

/// Device and inode: the same for all names of a file.
pub(super) type FileId = (u64, u64);

impl<S: Names + 'static> Commands<S> {
    /// Execute a file to its end, up to the first command that is refused. Returns how many were
    /// applied.
    ///
    /// # Errors
    /// The file cannot be read, or a command of it is refused.
    pub fn execute_file(
        &self,
        state: &mut S,
        path: &Path,
        sink: &mut dyn Sink,
    ) -> Result<u64, Refusal> {
        self.execute_file_with(state, path, OnRefusal::Stop, sink)
    }

    /// The same, and say what happens when a command is refused.
    ///
    /// # Errors
    /// The file cannot be read, or a command of it is refused and `on_refusal` says to stop.
    pub fn execute_file_with(
        &self,
        state: &mut S,
        path: &Path,
        on_refusal: OnRefusal,
        sink: &mut dyn Sink,
    ) -> Result<u64, Refusal> {
        let mut context = Context::default();
        let (text, id) = read(path, &context.access, &[])?;
        context.files.push(id);
        let script = Script::new(text, Some(printable_path(path)), on_refusal, context);
        let output = Execution(Kind::Script(Box::new(script))).finish(self, state, sink)?;
        Ok(output.to_json()["commands"].as_u64().unwrap_or(0))
    }

    /// Parse every command of a file, and of the files that it executes, without doing anything.
    /// Returns what cannot be parsed; what a command names need not be there.
    pub fn check_file(&self, path: &Path) -> Vec<Refusal> {
        let mut faults = Vec::new();
        let mut checked = Checked::default();
        self.check_nested(path, &mut checked, &mut faults)
            .unwrap_or_else(|refusal| faults.push(refusal));
        faults
    }

    fn check_nested(
        &self,
        path: &Path,
        checked: &mut Checked,
        faults: &mut Vec<Refusal>,
    ) -> Result<(), Refusal> {
        let (script, id) = read(path, &Context::default().access, &checked.under_way)?;
        if checked.done.contains(&id) {
            return Ok(());
        }
        checked.under_way.push(id);
        let name = printable_path(path);
        let (mut at, mut line, mut words) = (0, 1, Vec::new());
        while let Some((length, end)) = words::logical_line(&script[at..], &mut words, true) {
            let text = &script[at..at + length];
            let split = end.and_then(|end| closed(end, words.len())).map_err(Refusal::unquoted);
            let parsed = split.and_then(|()| match words.is_empty() {
                true => Ok(()),
                false => self.check_words(text, &words, checked, faults),
            });
            if let Err(refusal) = parsed {
                faults.push(refusal.in_file(name.clone(), line));
            }
            line += lines_in(text);
            at += length;
        }
        checked.done.extend(checked.under_way.pop());
        Ok(())
    }

    fn check_words(
        &self,
        text: &str,
        words: &[Word],
        checked: &mut Checked,
        faults: &mut Vec<Refusal>,
    ) -> Result<(), Refusal> {
        let mut slots = Vec::new();
        let form =
            self.matcher.parse(&(), text, words, &mut slots).map_err(Refusal::unquoted)? as usize;
        match self.registered(form).action {
            Action::Exec => self.check_nested(
                Path::new(self.args(form, &slots).get::<&str>("file")?),
                checked,
                faults,
            ),
            _ => Ok(()),
        }
    }
}

/// Files that are checked, and those whose lines are under way.
#[derive(Default)]
struct Checked {
    under_way: Vec<FileId>,
    done: Vec<FileId>,
}

/// A file of commands that a thread of its own reads: a file system may take its time, or for ever.
pub(super) struct Reading {
    path: PathBuf,
    text: Elsewhere<(String, FileId)>,
    context: Context,
}

impl Reading {
    pub(super) fn begin(path: &Path, context: &Context) -> Result<Reading, Refusal> {
        let (access, own_path) = (Access::clone(&context.access), path.to_owned());
        let outer = context.files.clone();
        let text = Elsewhere::begin(move || read(&own_path, &access, &outer))?;
        Ok(Reading { path: path.to_owned(), text, context: context.clone() })
    }

    /// The script, once the file is read.
    pub(super) fn look<S: Names + 'static>(&mut self) -> Result<Option<Script<S>>, Refusal> {
        let Some((text, id)) = self.text.look()? else { return Ok(None) };
        let name = Some(printable_path(&self.path));
        let mut context = self.context.clone();
        context.files.push(id);
        Ok(Some(Script::new(text, name, OnRefusal::Stop, context)))
    }
}

/// Read a file of commands, which the files `outer` execute, each the next.
pub(super) fn read(
    path: &Path,
    access: &Access,
    outer: &[FileId],
) -> Result<(String, FileId), Refusal> {
    let name = printable_path(path);
    let failed = |why: String| Refusal::new(format!("cannot read {why}"));
    let file = access.open_to_read(path).map_err(failed)?;
    let about = file.metadata().map_err(|error| failed(format!("{name}: {error}")))?;
    let id = (about.dev(), about.ino());
    if outer.contains(&id) {
        return Err(Refusal::new(format!("{name} executes itself")));
    }
    if outer.len() == EXEC_DEPTH_MAX {
        return Err(Refusal::new(format!("files execute each other deeper than {EXEC_DEPTH_MAX}")));
    }
    let mut bytes = Vec::new();
    file.take(EXEC_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| failed(format!("{name}: {e}")))?;
    if bytes.len() as u64 > EXEC_BYTES_MAX {
        return Err(Refusal::new(format!("{name} is longer than 1 GiB")));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes()[..valid].iter().filter(|b| **b == b'\n').count();
        Refusal::new("not text in UTF-8").in_file(name, line as u32).after(0)
    })?;
    Ok((text, id))
}
