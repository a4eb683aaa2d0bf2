//! Which configuration a command is about, and reading it.

use std::path::{Path, PathBuf};

use super::super::Context;
use super::super::file;
use super::{At, Documented, Options, Purpose, ROUTER, keeping};
use crate::args::Args;
use crate::background::Elsewhere;
use crate::changes::Mistake;
use crate::document::{Language, Parsed, parse};
use crate::error::{Refusal, printable_path};
use crate::files::Access;
use crate::grammar::Commands;
use crate::names::Names;
use crate::versions::{self, COMMANDS, Store};

/// A configuration that is wanted.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    /// What messages call it.
    pub(super) name: String,
    pub(super) text: String,
    pub(super) language: String,
    /// The YAML document that says it, where it is one.
    pub(super) document: Option<String>,
}

/// What was read.
#[derive(Default)]
pub(super) struct Fetched {
    pub(super) wanted: Option<Wanted>,
    /// The document in it, where it is one.
    pub(super) parsed: Option<Result<Parsed, Mistake>>,
    /// The version that another one is compared with.
    pub(super) base: Option<String>,
    /// The version that the router starts with.
    pub(super) saved: Option<Wanted>,
}

/// What is to be read.
#[derive(Default)]
struct Places {
    file: Option<PathBuf>,
    /// Its language.
    is_yaml: bool,
    /// What it says, if that came with the command.
    text: Option<String>,
    wanted: Option<u32>,
    base: Option<u32>,
    saved: Option<u32>,
}

impl Places {
    fn fetch(
        &self,
        store: Option<&Store>,
        access: &Access,
        outer: &[file::FileId],
    ) -> Result<Fetched, Refusal> {
        let version = |number: u32| -> Result<Wanted, Refusal> {
            let none = || Refusal::new("this router keeps no versions");
            let kept = store.ok_or_else(none)?.text_of(number).map_err(Refusal::new)?;
            let (text, language, document) = (kept.commands, kept.version.language, kept.document);
            versions::readable(&language)?;
            Ok(Wanted { name: format!("version {number}"), text, language, document })
        };
        let mut fetched = Fetched::default();
        if let Some(path) = &self.file {
            let text = match &self.text {
                Some(text) => text.clone(),
                None => file::read(path, access, outer)?.0,
            };
            let (name, language) = (printable_path(path), COMMANDS.to_owned());
            fetched.parsed = self.is_yaml.then(|| parse(&text));
            let document = self.is_yaml.then(|| text.clone());
            fetched.wanted = Some(Wanted { name, text, language, document });
        }
        if let Some(number) = self.wanted {
            fetched.wanted = Some(version(number)?);
        }
        fetched.base = self.base.map(version).transpose()?.map(|base| base.text);
        // A damaged one differs.
        fetched.saved = self.saved.and_then(|number| version(number).ok());
        Ok(fetched)
    }
}

impl<S: Names + 'static> Commands<S> {
    pub(super) fn begin_document(
        &self,
        purpose: Purpose,
        options: Options,
        args: &Args<'_>,
        context: &Context,
    ) -> Result<Documented<S>, Refusal> {
        let who = self.journal.who().unwrap_or_else(|| ROUTER.to_owned());
        let mut places = Places::default();
        let is_pending = self.versions.kept().is_some_and(|kept| kept.pending.is_some());
        match purpose {
            Purpose::Check | Purpose::Diff | Purpose::Apply => {
                let path = Path::new(args.get::<&str>("file")?);
                places.file = Some(path.to_owned());
                places.is_yaml = match args.optional::<&str>("format")? {
                    Some(format) => format == "yaml",
                    None => Language::of_file(path) == Language::Yaml,
                };
                places.text = context.attached.as_deref().map(str::to_owned);
            }
            Purpose::DiffVersion => {
                let number = self.known_version(args.get("version")?, args, "version")?;
                match args.optional::<u32>("other")? {
                    Some(other) => {
                        places.base = Some(number);
                        places.wanted = Some(self.known_version(other, args, "other")?);
                    }
                    None => places.wanted = Some(number),
                }
            }
            Purpose::Rollback => {
                let number = args.optional::<u32>("version")?;
                if is_pending && number.is_none() {
                    return self.begin_back(who, context);
                }
                let kept = self.versions.needed()?;
                let number = number.or_else(|| kept.before_saved()).ok_or_else(|| {
                    Refusal::new("there is no version before").remedy("`configuration history`")
                })?;
                places.wanted = Some(self.known_version(number, args, "version")?);
            }
            Purpose::Status => places.wanted = self.versions.needed()?.current.saved,
            Purpose::Save => _ = self.versions.needed()?,
            Purpose::Confirm => return self.begin_confirm(who, context),
            Purpose::Return => return self.begin_back(who, context),
        }
        let mut turn = None;
        if !purpose.only_looks() {
            self.versions.refuse_while_pending()?;
            turn = Some(self.versions.take_turn(&who)?);
            if options.confirm.is_some() {
                self.versions.needed()?;
            }
            places.saved = self.versions.kept().and_then(|kept| kept.current.saved);
        }
        let store = self.versions.kept().map(|kept| kept.store.clone());
        let (access, outer) = (Access::clone(&context.access), context.files.clone());
        let fetch = move || places.fetch(store.as_ref(), &access, &outer);
        let at = At::Fetching(Elsewhere::begin(fetch)?);
        Ok(Documented { _turn: turn, options, ..Documented::new(purpose, context, who, at) })
    }

    /// A version that is kept.
    pub(crate) fn known_version(
        &self,
        number: u32,
        args: &Args<'_>,
        name: &str,
    ) -> Result<u32, Refusal> {
        match self.versions.needed()?.version(number) {
            Some(_) => Ok(number),
            None => Err(args
                .refuse(name, format!("there is no version {number}"))
                .remedy("`configuration history` lists them")),
        }
    }

    /// Keep the version that waits.
    fn begin_confirm(&self, who: String, context: &Context) -> Result<Documented<S>, Refusal> {
        let kept = self.versions.needed()?;
        let Some(pending) = &kept.pending else {
            return Err(Refusal::new("no version waits for its confirmation"));
        };
        if pending.is_over {
            return Err(Refusal::new("its time is over, and it is taken back"));
        }
        let _turn = Some(self.versions.take_turn(&who)?);
        let mut current = kept.current.clone();
        (current.saved, current.waiting) = (Some(pending.version), None);
        let store = kept.store.clone();
        let at = At::Putting(Elsewhere::begin(move || keeping::put(&store, &current))?);
        Ok(Documented { _turn, ..Documented::new(Purpose::Confirm, context, who, at) })
    }

    /// Go back to what was before the version that waits.
    pub(super) fn begin_back(
        &self,
        who: String,
        context: &Context,
    ) -> Result<Documented<S>, Refusal> {
        let kept = self.versions.needed()?;
        let Some(pending) = &kept.pending else {
            return Err(Refusal::new("no version waits for its confirmation"));
        };
        let _turn = Some(self.versions.take_turn(&who)?);
        let (name, text) = ("the configuration before".to_owned(), pending.before.to_string());
        let wanted = Wanted { name, text, language: COMMANDS.to_owned(), document: None };
        let at = At::Discarding(Elsewhere::done(()));
        let mut back =
            Documented { _turn, wanted, ..Documented::new(Purpose::Return, context, who, at) };
        back.write(self)?;
        Ok(back)
    }
}

impl<S> Documented<S> {
    fn new(purpose: Purpose, context: &Context, who: String, at: At<S>) -> Documented<S> {
        Documented {
            purpose,
            context: context.clone(),
            options: Options::default(),
            who,
            _turn: None,
            wanted: Wanted::default(),
            document: None,
            saved: None,
            says_the_same: false,
            running: String::new(),
            begun: 0,
            attempts: 0,
            failed: None,
            changes: Vec::new(),
            stored: None,
            refused: None,
            done: 0,
            at,
        }
    }
}
