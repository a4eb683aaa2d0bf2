//! From a line to what it begins.

use std::path::Path;
use std::rc::Rc;

use super::file::Reading;
use super::run::Script;
use super::yaml::Writing;
use super::{Context, Execution, Kind, OnRefusal, Started};
use crate::args::{Args, Slot};
use crate::configuration::Configuration;
use crate::error::Refusal;
use crate::files::{Access, Trust};
use crate::filter::{Filters, pipe_of};
use crate::grammar::{Action, Commands, Work, closed};
use crate::job::{Collected, Sink as _};
use crate::names::Names;
use crate::output::Output;
use crate::rights::Rights;
use crate::words::{self, Word};

impl<S: Names + 'static> Commands<S> {
    /// Execute one line to its end. An empty line, or a comment, does nothing.
    ///
    /// # Errors
    /// The line is no command, or the command is refused.
    pub fn execute(&self, state: &mut S, line: &str) -> Result<Output, Refusal> {
        match self.start(state, line)? {
            Started::Done(output) => Ok(output),
            Started::Running(execution) => {
                let mut sink = Collected::default();
                let last = execution.finish(self, state, &mut sink)?;
                sink.output(last);
                let mut outputs = sink.outputs;
                if outputs.len() == 1 {
                    return Ok(outputs.remove(0));
                }
                Ok(Output::text(outputs.iter().map(Output::to_text).collect::<String>()))
            }
        }
    }

    /// Begin one line, with the router's own rights.
    ///
    /// # Errors
    /// The line is no command, or the command is refused.
    pub fn start(&self, state: &mut S, line: &str) -> Result<Started<S>, Refusal> {
        self.start_as(state, line, Trust::Full.into())
    }

    /// Begin one line of somebody's.
    ///
    /// # Errors
    /// The line is no command, this client may not give it, or the command is refused.
    pub fn start_as(
        &self,
        state: &mut S,
        line: &str,
        rights: Rights,
    ) -> Result<Started<S>, Refusal> {
        self.start_in(state, line, &self.context(rights))
    }

    /// Begin one line of somebody's, who sends the text of the file that it names along.
    pub(crate) fn start_with_text(
        &self,
        state: &mut S,
        line: &str,
        text: &str,
        rights: Rights,
    ) -> Result<Started<S>, Refusal> {
        let context = Context { attached: Some(text.into()), ..self.context(rights) };
        self.start_in(state, line, &context)
    }

    fn start_in(
        &self,
        state: &mut S,
        line: &str,
        context: &Context,
    ) -> Result<Started<S>, Refusal> {
        let mut words = Vec::new();
        let split = words::split(line, &mut words).and_then(|end| closed(end, words.len()));
        let started = split
            .map_err(Refused::NoCommand)
            .and_then(|()| self.start_words(state, line, &words, &mut Vec::new(), context));
        started.map_err(|refused| {
            let (refusal, is_command) = refused.parts();
            self.note_refused(&*state, line, &refusal, is_command);
            refusal
        })
    }

    /// Begin many lines, with the router's own rights; messages call their source `name`.
    pub fn start_script(
        &self,
        text: String,
        name: Option<String>,
        on_refusal: OnRefusal,
    ) -> Execution<S> {
        self.start_script_as(text, name, on_refusal, Trust::Full.into())
    }

    /// Begin many lines of somebody's.
    pub(crate) fn start_script_as(
        &self,
        text: String,
        name: Option<String>,
        on_refusal: OnRefusal,
        rights: Rights,
    ) -> Execution<S> {
        Execution(Kind::Script(Box::new(Script::new(text, name, on_refusal, self.context(rights)))))
    }

    pub(super) fn context(&self, Rights { trust, role }: Rights) -> Context {
        Context {
            role,
            access: Rc::new(Access { trust, places: self.places.clone() }),
            files: Vec::new(),
            attached: None,
        }
    }

    pub(super) fn start_words<'a>(
        &self,
        state: &mut S,
        line: &'a str,
        words: &[Word],
        slots: &mut Vec<Slot<'a>>,
        context: &Context,
    ) -> Result<Started<S>, Refused> {
        if let Some(pipe) = filters_of(line, words) {
            let mut filters = Filters::read(line, words, pipe).map_err(Refused::NoCommand)?;
            return Ok(match self.start_words(state, line, &words[..pipe], slots, context)? {
                Started::Done(output) => {
                    Started::Done(Output::text(filters.end(&output.as_printed())))
                }
                Started::Running(inner) => {
                    Started::Running(Execution(Kind::Filtered { inner: Box::new(inner), filters }))
                }
            });
        }
        let Some(last) = words.last() else { return Ok(Started::Done(Output::none())) };
        // A line of a file asks for no help, which could repeat its words.
        if !last.quoted && last.text(line) == "?" && context.files.is_empty() {
            return Ok(Started::Done(self.help_at(&*state, line, &words[..words.len() - 1])));
        }
        slots.clear();
        let form =
            self.matcher.parse(&*state, line, words, slots).map_err(Refused::NoCommand)? as usize;
        let started = self.start_form(state, form, slots, context).map_err(Refused::Command)?;
        if !self.only_looks(form) {
            self.note_done(&*state, line, 0);
        }
        Ok(started)
    }

    pub(super) fn start_form(
        &self,
        state: &mut S,
        form: usize,
        slots: &[Slot<'_>],
        context: &Context,
    ) -> Result<Started<S>, Refusal> {
        let args = Args { access: Some(&context.access), ..self.args(form, slots) };
        self.admit(state, form, &args, context.role)?;
        // Of a whole configuration each command counts that is executed for it.
        let is_document = matches!(self.registered(form).action, Action::Document(_));
        if !self.only_looks(form) && !is_document {
            self.note_change();
        }
        let as_json = self.forms[form].words[0] == "show" && args.has("json");
        let begun = |job| Ok(Started::Running(Execution(Kind::Job { job, as_json })));
        let output = match &self.registered(form).action {
            Action::Run(run) => run(state, &args)?,
            Action::Begin(begin) => return begun(begin(state, &args)?),
            Action::RunOrBegin(run) => match run(state, &args)? {
                Work::Done(output) => output,
                Work::Begun(job) => return begun(job),
            },
            Action::Help => self.help(&*state, args.or("command", "")?)?,
            Action::RunningConfig => {
                let hides_secrets = !args.has("secrets");
                if args.has("yaml") {
                    let writing = Box::new(Writing::begin(self, hides_secrets));
                    return Ok(Started::Running(Execution(Kind::Yaml { writing, as_json })));
                }
                let writing = Box::new(Configuration::new(self, hides_secrets));
                return Ok(Started::Running(Execution(Kind::Configuration { writing, as_json })));
            }
            Action::Exec => {
                let reading = Reading::begin(Path::new(args.get::<&str>("file")?), context)?;
                return Ok(Started::Running(Execution(Kind::Reading(reading))));
            }
            Action::Document(purpose) => {
                let documented = Box::new(self.start_document(*purpose, &args, context)?);
                return Ok(Started::Running(Execution(Kind::Documented { documented, as_json })));
            }
            Action::History => self.history()?,
            Action::ShowVersion => {
                let showing = Box::new(self.begin_show_version(&args)?);
                return Ok(Started::Running(Execution(Kind::Version { showing, as_json })));
            }
            Action::Quit => Output::none(),
        };
        Ok(Started::Done(if as_json { output.showing_json() } else { output }))
    }
}

/// The filters behind a command. A comment may say anything.
pub(super) fn filters_of(line: &str, words: &[Word]) -> Option<usize> {
    let first = words.first()?;
    pipe_of(line, words).filter(|_| first.text(line) != "comment")
}

/// Why a line did nothing.
pub(super) enum Refused {
    /// It does not fit the grammar, so it could be anything.
    NoCommand(Refusal),
    /// It is a command that cannot be done.
    Command(Refusal),
}

impl Refused {
    /// The refusal, and whether the line is a command.
    pub(super) fn parts(self) -> (Refusal, bool) {
        match self {
            Refused::NoCommand(refusal) => (refusal, false),
            Refused::Command(refusal) => (refusal, true),
        }
    }
}
