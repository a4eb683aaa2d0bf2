//! Commands: one declaration gives a command its parser, help, completion, JSON form and page.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value as Json;

use crate::answers::{self, Published};
use crate::args::{Args, Slot};
use crate::automaton;
use crate::batch::{Batch, BatchRefusal};
use crate::changes::LinesRead;
use crate::document::{self, Argument, Comments, Entry, Placed, Shape};
use crate::error::Refusal;
use crate::files::Places;
use crate::generation::Changes;
use crate::inverse::{Declared, Exchanged, Inverse};
use crate::job::Job;
use crate::journal::Journal;
use crate::matcher::Matcher;
use crate::names::Names;
use crate::output::{Output, key_of};
use crate::rights::{Role, forbidden};
use crate::running::{Contributor, Phase};
use crate::script::document::Purpose;
use crate::syntax::{self, Choice, Node};
use crate::types::{Types, ValueType};
use crate::versions::Versions;
use crate::words::{self, End, Word};

/// Does what a command says.
pub type Run<S> = Box<dyn Fn(&mut S, &Args<'_>) -> Result<Output, Refusal>>;
/// Does what many commands of a kind say.
pub type RunMany<S> = Box<dyn Fn(&mut S, &Batch<'_>) -> Result<usize, BatchRefusal>>;
/// Begins what takes a while.
pub type Begin<S> = Box<dyn Fn(&mut S, &Args<'_>) -> Result<Box<dyn Job<S>>, Refusal>>;
/// Does what a command says, or begins it.
pub type RunOrBegin<S> = Box<dyn Fn(&mut S, &Args<'_>) -> Result<Work<S>, Refusal>>;

/// What a command that may take a while came to.
pub enum Work<S> {
    /// It is done.
    Done(Output),
    /// It takes a while.
    Begun(Box<dyn Job<S>>),
}

/// Says whether the router can be changed now.
pub(crate) type Gate<S> = Box<dyn Fn(&mut S) -> Result<(), Refusal>>;

/// Commands that change nothing, by their first word: no gate stands before them.
const UNGATED: [&str; 11] =
    ["show", "help", "exec", "ping", "clear", "echo", "comment", "history", "quit", "exit", "q"];

/// First words of commands that change no configuration and are an operator's all the same: they
/// send packets, or forget what others count.
const CHANGES_LITTLE: [&str; 2] = ["ping", "clear"];

/// Words of commands that make nothing.
pub(crate) const FREES: [&str; 5] = ["delete", "del", "disable", "off", "flush"];

/// A command under declaration; [`Commands::add`] registers it.
pub struct Command<S> {
    /// First the main form, then the others.
    forms: Vec<&'static str>,
    help: &'static str,
    details: &'static str,
    group: &'static str,
    words: Vec<(&'static str, &'static str)>,
    examples: Vec<&'static str>,
    action: Option<Action<S>>,
    /// And the value that varies from one to the next.
    many: Option<(&'static str, RunMany<S>)>,
    declared: Declared,
    /// Where its values live in a document, and when its lines are written.
    pub(crate) entries: Vec<(Phase, &'static str)>,
}

/// What a command leads to.
pub(crate) enum Action<S> {
    Run(Run<S>),
    Begin(Begin<S>),
    RunOrBegin(RunOrBegin<S>),
    Help,
    RunningConfig,
    Document(Purpose),
    History,
    ShowVersion,
    Exec,
    Quit,
}

impl<S> Command<S> {
    /// Declare a command by its syntax, in the notation of [`syntax`]. A `show`
    /// also takes `json` at its end.
    pub fn new(syntax: &'static str) -> Command<S> {
        Command {
            forms: vec![syntax],
            help: "",
            details: "",
            group: "",
            words: Vec::new(),
            examples: Vec::new(),
            action: None,
            many: None,
            declared: Declared::default(),
            entries: Vec::new(),
        }
    }

    /// Another form of the same command, with the same arguments: `loopback create-interface`, or
    /// a short word that operators use although it is not a unique prefix.
    pub fn also(mut self, syntax: &'static str) -> Self {
        self.forms.push(syntax);
        self
    }

    /// One line that says what it does, without a full stop.
    pub fn help(mut self, help: &'static str) -> Self {
        self.help = help;
        self
    }

    /// More, for the reference page.
    pub fn details(mut self, details: &'static str) -> Self {
        self.details = details;
        self
    }

    /// The chapter of the reference page.
    pub fn group(mut self, group: &'static str) -> Self {
        self.group = group;
        self
    }

    /// Say what a word or value is, for completion and the reference page.
    pub fn word(mut self, name: &'static str, help: &'static str) -> Self {
        self.words.push((name, help));
        self
    }

    /// A line that shows it in use. It must parse.
    pub fn example(mut self, line: &'static str) -> Self {
        self.examples.push(line);
        self
    }

    /// What it does.
    pub fn run(
        mut self,
        run: impl Fn(&mut S, &Args<'_>) -> Result<Output, Refusal> + 'static,
    ) -> Self {
        self.action = Some(Action::Run(Box::new(run)));
        self
    }

    /// What many of it in a row do, as in a file of routes, where the value called `varies` is what
    /// differs from one to the next. Returns how many were done; if that is not all, the next one
    /// runs alone, by [`run`](Self::run), which must be there too.
    pub fn run_many(
        mut self,
        varies: &'static str,
        run: impl Fn(&mut S, &Batch<'_>) -> Result<usize, BatchRefusal> + 'static,
    ) -> Self {
        self.many = Some((varies, Box::new(run)));
        self
    }

    /// For what takes a while: begin it, and return the rest as a job.
    pub fn begin(
        mut self,
        begin: impl Fn(&mut S, &Args<'_>) -> Result<Box<dyn Job<S>>, Refusal> + 'static,
    ) -> Self {
        self.action = Some(Action::Begin(Box::new(begin)));
        self
    }

    /// For what may take a while: do it, or begin it and return the rest as a job.
    pub fn run_or_begin(
        mut self,
        run: impl Fn(&mut S, &Args<'_>) -> Result<Work<S>, Refusal> + 'static,
    ) -> Self {
        self.action = Some(Action::RunOrBegin(Box::new(run)));
        self
    }

    /// The command that takes a line back: words over its arguments, such as `"ip route del
    /// <prefix> [table <table>]"`. `[…]` is left out unless what is in it was given; `<a=1>` is 1
    /// where `a` was left out, `<a!>` is nothing, but `a` must have been given. Of several the
    /// first whose arguments were given is taken. A command without one is no part of a
    /// configuration.
    pub fn undo(mut self, template: &'static str) -> Self {
        self.declared.undo.push(template);
        self
    }

    /// A line with the same values of these arguments replaces an earlier one, which needs not be
    /// taken back before.
    pub fn replaces(mut self, arguments: &'static [&'static str]) -> Self {
        self.declared.replaces = Some(arguments);
        self
    }

    /// An object that the line makes: its kind and its name over the arguments, as `"interface
    /// loop<instance>"`. Lines that need it are taken back before it, and come again when it is
    /// made anew.
    pub fn makes(mut self, object: &'static str) -> Self {
        self.declared.makes.push(object);
        self
    }

    /// An object that the line needs, as another line [makes](Self::makes) it. Interfaces that it
    /// names need not be declared.
    pub fn stands_on(mut self, object: &'static str) -> Self {
        self.declared.stands_on.push(object);
        self
    }

    /// Nothing takes the line back alone: this object is made anew without it.
    pub fn goes_with(mut self, object: &'static str) -> Self {
        self.declared.goes_with = Some(object);
        self
    }

    /// As [`replaces`](Self::replaces), but what the later line leaves out stays as the earlier one
    /// said it.
    pub fn amends(mut self, arguments: &'static [&'static str]) -> Self {
        self.declared.amends = true;
        self.replaces(arguments)
    }

    /// Executed before a line that [amends](Self::amends) another and leaves out an argument of it;
    /// the [inverse](Self::undo) unless it is declared.
    pub fn reset(mut self, template: &'static str) -> Self {
        self.declared.reset = Some(template);
        self
    }

    /// Nothing takes the line back while the router runs: `why` completes "it cannot be taken back:
    /// …".
    pub fn stays(mut self, why: &'static str) -> Self {
        self.declared.stays = Some(why);
        self
    }

    /// It refuses what is more than there is, and is lifted while other lines are added.
    pub fn is_limit(mut self) -> Self {
        self.declared.is_limit = true;
        self
    }

    /// Where a line goes and another with the same values of the arguments `same` comes, that one
    /// is executed as a command that begins with these words, followed by its arguments but for
    /// `without`; the line that goes is not taken back. So packets meet the one or the other.
    pub fn exchanged(
        mut self,
        words: &'static str,
        without: &'static str,
        same: &'static [&'static str],
    ) -> Self {
        self.declared.exchanged = Some(Exchanged { words, without, same });
        self
    }

    /// The line is about consecutive prefixes: `prefix` is the first, and there are `count`. Its
    /// declared texts have `[count <count>]` behind the prefix where they depend on it.
    pub fn counted(mut self, prefix: &'static str, count: &'static str) -> Self {
        self.declared.counted = Some((prefix, count));
        self
    }

    /// Arguments that say the same when they are left out, with these values.
    pub fn usual(mut self, values: &'static [(&'static str, &'static str)]) -> Self {
        self.declared.usual = values;
        self
    }

    pub(crate) fn action(mut self, action: Action<S>) -> Self {
        self.action = Some(action);
        self
    }
}

/// One form of a registered command: what the user sees of it.
pub(crate) struct Form {
    pub(crate) words: Vec<&'static str>,
    /// `words` in one string.
    pub(crate) name: String,
    /// The whole tree.
    pub(crate) tree: Node,
    /// Which command it is a form of.
    pub(crate) command: usize,
    /// Not the main form.
    pub(crate) is_alias: bool,
}

impl Form {
    /// Does anything follow its first words, besides `json`?
    pub(crate) fn takes_more(&self) -> bool {
        let mut more = false;
        self.tree.walk(&mut |node| match node {
            Node::Value { .. } => more = true,
            Node::Literal { word, flag: true } => more |= *word != "json",
            _ => {}
        });
        more
    }
}

/// A registered command.
pub(crate) struct Registered<S> {
    pub(crate) help: &'static str,
    pub(crate) details: &'static str,
    pub(crate) group: &'static str,
    pub(crate) words: Vec<(&'static str, &'static str)>,
    pub(crate) examples: Vec<&'static str>,
    pub(crate) action: Action<S>,
    pub(crate) many: Option<(&'static str, RunMany<S>)>,
    /// How its lines are taken back.
    pub(crate) inverse: Inverse,
    /// Its arguments that name interfaces.
    pub(crate) interfaces: Vec<&'static str>,
    /// Its arguments.
    pub(crate) arguments: Vec<Argument>,
    /// Those of them that stand in braces.
    pub(crate) blocks: Vec<&'static str>,
    /// Groups of them whose order means nothing.
    pub(crate) unordered: Vec<&'static str>,
    /// Where its values live in a document.
    pub(crate) entries: Vec<Placed>,
    /// Its main form.
    pub(crate) main_form: usize,
}

/// All commands of a router whose state is `S`.
pub struct Commands<S> {
    pub(crate) types: Types,
    pub(crate) matcher: Matcher,
    pub(crate) forms: Vec<Form>,
    pub(crate) commands: Vec<Registered<S>>,
    pub(crate) contributors: Vec<Contributor<S>>,
    pub(crate) gate: Option<Gate<S>>,
    /// Asked before commands that may make something.
    gate_of_additions: Option<Gate<S>>,
    /// Where clients may name files.
    pub(crate) places: Places,
    pub(crate) journal: Journal,
    /// What was applied and saved.
    pub(crate) versions: Versions,
    /// The JSON form of the answers of shows.
    pub(crate) answers: Published,
    /// Commands that were begun and may have changed something.
    pub(crate) changes: Changes,
    /// The schema of all of them, once somebody asked for it.
    pub(crate) schema: OnceCell<Arc<Json>>,
    /// Commands by the methods that they are, once a method was called.
    pub(crate) methods: OnceCell<HashMap<String, String>>,
    /// The document of the API, once somebody asked for it.
    pub(crate) openrpc: OnceCell<Arc<Json>>,
    /// The places of a document, once somebody asked for them.
    pub(crate) shape: OnceCell<Shape>,
    /// The comments of the document that was applied last.
    pub(crate) comments: RefCell<Comments>,
    /// The running configuration as it was read last.
    pub(crate) lines_read: LinesRead,
}

impl<S: Names + 'static> Default for Commands<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Names + 'static> Commands<S> {
    /// The commands that every router has: `help`, `exec` and `show running-config`.
    pub fn new() -> Commands<S> {
        let mut commands = Commands {
            types: Types::default(),
            matcher: Matcher::new(true),
            forms: Vec::new(),
            commands: Vec::new(),
            contributors: Vec::new(),
            gate: None,
            gate_of_additions: None,
            places: Places::default(),
            journal: Journal::default(),
            versions: Versions::default(),
            answers: Published::new(),
            changes: Changes::default(),
            schema: OnceCell::new(),
            methods: OnceCell::new(),
            openrpc: OnceCell::new(),
            shape: OnceCell::new(),
            comments: RefCell::default(),
            lines_read: LinesRead::default(),
        };
        commands.add(
            Command::new("help [<command:rest>]")
                .group("Session")
                .help("Say what commands there are, or how one is written")
                .example("help set interface")
                .action(Action::Help),
        );
        commands.add(
            Command::new("exec <file:path>")
                .group("Session")
                .help("Execute the commands of a file")
                .details(
                    "Stops at the first command that is refused, names the file and the line, and \
                     says how many commands before it were applied. A client that is neither root \
                     nor the router's own user names files in files-dir alone. quiverctl reads \
                     the file by itself, as its user.",
                )
                .example("exec /etc/quiver/setup.cli")
                .action(Action::Exec),
        );
        commands.add_session();
        crate::script::document::register(&mut commands);
        commands
    }

    /// Where clients may name files and sockets from now on.
    pub fn set_places(&mut self, places: Places) {
        self.places = places;
    }

    /// Add a type of value. Do it before the commands that use it.
    pub fn add_type(&mut self, value_type: ValueType) {
        self.types.add(value_type);
    }

    /// Add a command. Panics when the declaration is at fault, or collides with another.
    pub fn add(&mut self, command: Command<S>) {
        let syntax = command.forms[0];
        let action = command.action.unwrap_or_else(|| panic!("nothing runs: {syntax}"));
        let (mut names, mut interfaces) = (Vec::new(), Vec::new());
        let (mut arguments, main_form) = (Vec::new(), self.forms.len());
        for (index, syntax) in command.forms.iter().enumerate() {
            let mut tree = syntax::parse(syntax, &self.types);
            let words = tree.leading_words();
            assert!(!words.is_empty(), "a command begins with a word: {syntax}");
            if words[0] == "show" {
                let json = Node::Literal { word: "json", flag: true };
                tree = tree.then(Node::Opt(Box::new(json)));
            }
            check_keys(&tree, syntax);
            self.matcher.add(&words, automaton::compile(&tree.clone().without_leading_words()));
            if index == 0 {
                names = tree.recorded_names();
                interfaces = interface_names(&tree);
                arguments = document::notation::arguments(&tree);
            }
            let form = Form {
                name: words.join(" "),
                words,
                tree,
                command: self.commands.len(),
                is_alias: index > 0,
            };
            self.forms.push(form);
        }
        let texts: Vec<&'static str> = command.entries.iter().map(|(_, text)| *text).collect();
        let entries = Entry::read_all(&texts, &arguments);
        let phases = command.entries.iter().map(|(phase, _)| *phase);
        let placed = phases.zip(entries).map(|(phase, entry)| Placed { phase, entry });
        let entries: Vec<Placed> = placed.collect();
        let unordered = entries.iter().flat_map(|placed| placed.entry.value.sets()).collect();
        self.commands.push(Registered {
            help: command.help,
            details: command.details,
            group: command.group,
            words: command.words,
            examples: command.examples,
            action,
            many: command.many,
            inverse: command.declared.read(&names, syntax),
            interfaces,
            blocks: document::blocks(&arguments),
            arguments,
            unordered,
            entries,
            main_form,
        });
        self.matcher.check();
        self.schema.take();
        self.shape.take();
    }

    /// The values of a type that commands take: the command's words, and the value's name. For
    /// tests that know them all.
    pub fn values_of(&self, value_type: &str) -> Vec<(String, &'static str)> {
        let mut found = Vec::new();
        for form in self.forms.iter().filter(|form| !form.is_alias) {
            form.tree.walk(&mut |node| {
                if let Node::Value { name, choices } = node
                    && choices.iter().any(|c| matches!(c, Choice::Type(t) if t.name == value_type))
                {
                    found.push((form.name.clone(), *name));
                }
            });
        }
        found
    }

    /// Publish the JSON form of the answers of shows, as [`answers`](crate::answers) records it.
    pub fn publish_answers(&mut self, text: &str) {
        self.answers = answers::read(text);
        self.schema.take();
    }

    /// The names of all shows.
    pub fn shows(&self) -> impl Iterator<Item = &str> {
        let shows = self.forms.iter().filter(|form| form.words[0] == "show" && !form.is_alias);
        shows.map(|form| form.name.as_str())
    }

    /// Ask `gate` before every command that changes something; what it refuses is not done.
    pub fn before_changes(&mut self, gate: impl Fn(&mut S) -> Result<(), Refusal> + 'static) {
        self.gate = Some(Box::new(gate));
    }

    /// Ask `gate` before every command that may make something: those that change, but for those
    /// that delete, and that switch off.
    pub fn before_additions(&mut self, gate: impl Fn(&mut S) -> Result<(), Refusal> + 'static) {
        self.gate_of_additions = Some(Box::new(gate));
    }

    /// Keep what clients change, and what they are refused.
    pub fn keep_journal(&mut self, keep: impl Fn(&crate::journal::Entry<'_>) + 'static) {
        self.journal.set(Box::new(keep));
    }

    /// From here on, commands are executed on behalf of this client; `None` is the router itself.
    pub fn on_behalf_of(&self, who: Option<&str>) {
        self.journal.speaks(who);
    }

    /// May this command be done now?
    pub(crate) fn admit(
        &self,
        state: &mut S,
        form: usize,
        args: &Args<'_>,
        role: Role,
    ) -> Result<(), Refusal> {
        let words = &self.forms[form].words;
        let only_looks = self.only_looks(form);
        let is_harmless = only_looks && !CHANGES_LITTLE.contains(&words[0]) && !args.has("secrets");
        if role == Role::ReadOnly && !is_harmless {
            return Err(forbidden());
        }
        if only_looks {
            return Ok(());
        }
        self.gate.as_ref().map_or(Ok(()), |gate| gate(state))?;
        let frees = words.iter().any(|word| FREES.contains(word))
            || FREES.iter().any(|word| args.has(word));
        match &self.gate_of_additions {
            Some(gate) if !frees => gate(state),
            _ => Ok(()),
        }
    }

    /// Does this form only look at the router?
    pub(crate) fn only_looks(&self, form: usize) -> bool {
        let looks = match self.registered(form).action {
            Action::Document(purpose) => purpose.only_looks(),
            Action::History | Action::ShowVersion => true,
            _ => false,
        };
        looks || UNGATED.contains(&self.forms[form].words[0])
    }

    /// Parse a line without doing anything; `then` sees the arguments.
    ///
    /// # Errors
    /// The line is no command.
    pub fn parse<R>(
        &self,
        names: &dyn Names,
        line: &str,
        then: impl FnOnce(&Args<'_>) -> R,
    ) -> Result<R, Refusal> {
        let mut words = Vec::new();
        let mut slots = Vec::new();
        let form = self.parse_words(names, line, &mut words, &mut slots)?;
        Ok(then(&self.args(form, &slots)))
    }

    /// The first words of the command that a line is, written out, of its main form: `show
    /// interface`.
    pub fn name_of(&self, line: &str) -> Option<&str> {
        let (mut words, mut slots) = (Vec::new(), Vec::new());
        let form = self.parse_words(&(), line, &mut words, &mut slots).ok()?;
        let command = self.forms[form].command;
        self.forms.iter().find(|form| form.command == command).map(|form| form.name.as_str())
    }

    pub(crate) fn parse_words<'a>(
        &self,
        names: &dyn Names,
        line: &'a str,
        words: &mut Vec<Word>,
        slots: &mut Vec<Slot<'a>>,
    ) -> Result<usize, Refusal> {
        words.clear();
        closed(words::split(line, words)?, words.len())?;
        Ok(self.matcher.parse(names, line, words, slots)? as usize)
    }

    pub(crate) fn args<'a>(&'a self, form: usize, slots: &'a [Slot<'a>]) -> Args<'a> {
        let command = &self.forms[form].name;
        Args { names: &self.matcher.automata[form].names, slots, command, access: None }
    }

    pub(crate) fn registered(&self, form: usize) -> &Registered<S> {
        &self.commands[self.forms[form].command]
    }
}

/// The arguments that name interfaces.
fn interface_names(tree: &Node) -> Vec<&'static str> {
    let mut found = Vec::new();
    tree.walk(&mut |node| {
        let Node::Value { name, choices } = node else { return };
        let is_interface = |choice: &Choice| match choice {
            Choice::Type(value_type) => {
                matches!(value_type.reads, crate::types::Reads::Name("interface"))
            }
            Choice::Word(_) => false,
        };
        if choices.iter().any(is_interface) {
            found.push(*name);
        }
    });
    found
}

/// Our own faults: two arguments of a command must differ in JSON, too.
fn check_keys(tree: &Node, syntax: &str) {
    let mut keys = BTreeMap::new();
    tree.walk(&mut |node| {
        let name = match node {
            Node::Literal { word, flag: true } => *word,
            Node::Value { name, .. } | Node::Repeat { name, .. } => *name,
            _ => return,
        };
        let other = keys.insert(key_of(name), name).filter(|other| *other != name);
        assert!(other.is_none(), "{name} and {other:?} are one in JSON: {syntax}");
    });
}

/// Refuse braces that are still open.
pub(crate) fn closed(end: End, words: usize) -> Result<(), Refusal> {
    match end {
        End::Complete => Ok(()),
        End::Open(_) => Err(Refusal::new("a brace is not closed")
            .at_word(words as u32 + 1, "")
            .quoting_nothing()),
    }
}
