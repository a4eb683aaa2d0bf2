//! The start-up file: sections in braces, each declared in the notation of commands.
//!
//! ```text
//! unix { nodaemon cli-listen /run/quiver/cli.sock exec /etc/quiver/setup.cli }
//! cpu  { main-core 0 corelist-workers 1-3 }   # comments go to the end of the line
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use quiver_core::cpu::Variant;

use crate::args::{Args, Slot};
use crate::automaton;
use crate::error::{Refusal, either, nearest, printable, printable_path};
use crate::matcher::Matcher;
use crate::syntax::{self, Node};
use crate::types::{Types, core_list};
use crate::words::{self, End, Word, line_of};

/// A start-up file is at most this long.
pub const STARTUP_BYTES_MAX: u64 = 1 << 20;

/// A section under declaration.
#[derive(Clone, Debug)]
pub struct Section {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) entries: Vec<(&'static str, &'static str)>,
    /// Entries that are known and do nothing: which one, and why.
    idle: Vec<(usize, &'static str)>,
    /// Entries under an old name: which one, and the new name.
    renamed: Vec<(usize, &'static str)>,
    /// Why the whole section does nothing, where it does nothing.
    pub(crate) does_nothing: Option<&'static str>,
    /// The value that may stand in place of the braces.
    bare: Option<&'static str>,
}

impl Section {
    /// A section of this name.
    pub fn new(name: &'static str) -> Section {
        Section {
            name,
            help: "",
            entries: Vec::new(),
            idle: Vec::new(),
            renamed: Vec::new(),
            does_nothing: None,
            bare: None,
        }
    }

    /// What it is about, without a full stop.
    pub fn help(mut self, help: &'static str) -> Section {
        self.help = help;
        self
    }

    /// Add an entry, in the notation of [`syntax`]. Entries come in any order, each
    /// once; one that ends in `...` comes as often as wanted:
    /// `(dev <address:word> ['{' {[name <:word>]} '}'])...`.
    pub fn entry(mut self, syntax: &'static str, help: &'static str) -> Section {
        self.entries.push((syntax, help));
        self
    }

    /// Add an entry of VPP's that does nothing here. `why` is said once in the log where a file has
    /// it.
    pub fn idle(mut self, syntax: &'static str, why: &'static str) -> Section {
        self.idle.push((self.entries.len(), why));
        self.entry(syntax, why)
    }

    /// Add the old name of an entry. The log says the new name once where a file has the old one.
    pub fn renamed(mut self, syntax: &'static str, new_name: &'static str) -> Section {
        self.renamed.push((self.entries.len(), new_name));
        self.entry(syntax, "old name of the entry before it")
    }

    /// The whole section is known from VPP and does nothing here. `why` is said once in the log.
    pub fn does_nothing(mut self, why: &'static str) -> Section {
        self.does_nothing = Some(why);
        self
    }

    /// This value may follow the section's name, without braces.
    pub fn bare(mut self, syntax: &'static str) -> Section {
        self.bare = Some(syntax);
        self
    }
}

/// A section of a feature, and the commands that its entries mean: a start-up file changes nothing
/// that a command could not.
pub struct StartupPart {
    /// The declaration.
    pub section: Section,
    lines: Lines,
}

type Lines = Box<dyn Fn(&Args<'_>) -> Result<Vec<String>, Refusal>>;

impl StartupPart {
    /// `lines` makes commands of the section's entries.
    pub fn new(
        section: Section,
        lines: impl Fn(&Args<'_>) -> Result<Vec<String>, Refusal> + 'static,
    ) -> StartupPart {
        StartupPart { section, lines: Box::new(lines) }
    }
}

/// All sections that this router has.
pub struct StartupSchema {
    types: Types,
    matcher: Matcher,
    sections: Vec<Section>,
    /// The same as a tree, for the reference page.
    trees: Vec<Vec<Node>>,
    /// The section of each form that the matcher knows.
    forms: Vec<usize>,
}

impl Default for StartupSchema {
    fn default() -> Self {
        Self::new(Types::default())
    }
}

impl StartupSchema {
    /// The sections that every router has: `unix`, `cpu` and `buffers`.
    pub fn new(types: Types) -> StartupSchema {
        let mut schema = StartupSchema {
            types,
            matcher: Matcher::new(false),
            sections: Vec::new(),
            trees: Vec::new(),
            forms: Vec::new(),
        };
        schema.add(
            Section::new("unix")
                .help("The process")
                .entry("nodaemon", "stay in the foreground")
                .entry("interactive", "read commands from the terminal, and stay in the foreground")
                .entry(
                    "cli-listen <:path>",
                    "socket for command lines; by default cli.sock in runtime-dir",
                )
                .entry("log <:path>", "file for the log")
                .entry("exec <:path>", "file of commands to execute at start")
                .entry("startup-config <:path>", "the same as exec")
                .entry("exec-strict", "a command of that file that is refused ends the start")
                .entry(
                    "runtime-dir <:path>",
                    "folder for the sockets; by default $QUIVER_RUNTIME_DIR, or /run/quiver",
                )
                .entry(
                    "files-dir <:path>",
                    "folder for the files that clients name; by default files in runtime-dir",
                )
                .entry(
                    "state-dir <:path>",
                    "folder for the versions of the configuration; by default $STATE_DIRECTORY, \
                     which systemd sets, or state in runtime-dir",
                )
                .entry(
                    "versions-kept <:1-10000>",
                    "so many versions of the configuration are kept; by default 100",
                )
                .entry(
                    "pidfile <:path>",
                    "file for the process number; by default quiverd.pid in runtime-dir",
                )
                .entry("gid <:word>", "group that may use the sockets, by name or number")
                .entry(
                    "read-only-gid <:word>",
                    "group that may look at the router through them and not change it",
                )
                .entry(
                    "user <:word>",
                    "user that root's rights are given up for, by name or number",
                )
                .entry(
                    "user-namespaces",
                    "that user may enter other network namespaces, with CAP_SYS_ADMIN",
                )
                .entry(
                    "coredump-size <:unlimited|0-9223372036854775807>",
                    "largest core file, bytes",
                )
                .entry("full-coredump", "a core file holds all memory, also the buffers")
                .idle("nosyslog", "the log goes to a file or to standard error, never to syslog")
                .idle("nobanner", "there is no banner")
                .idle("nocolor", "colours are only used on a terminal")
                .idle("cli-line-mode", "quiverctl reads whole lines from what is no terminal")
                .idle("cli-prompt <:word>", "the prompt is quiverctl's")
                .idle("cli-history-limit <:u32>", "the history is quiverctl's")
                .idle("cli-no-banner", "there is no banner")
                .idle("cli-no-pager", "the pager is quiverctl's")
                .idle("cli-pager-buffer-limit <:u32>", "the pager is quiverctl's")
                .idle(
                    "poll-sleep-usec <:u32>",
                    "a worker without packets sleeps by itself; `set interface rx-mode` says how",
                ),
        );
        schema.add(crate::startup_api::section());
        schema.add(
            Section::new("cpu")
                .help("Which threads run where")
                .entry("main-core <:0-4095>", "core of the control thread")
                .entry("corelist-workers <:cores>", "cores of the workers, one each, in this order")
                .entry("workers <:0-4095>", "number of workers, on the first cores that are free")
                .entry("skip-cores <:0-4095>", "leave out so many cores, counted from the first")
                .entry(
                    "variant <:best|scalar|avx2|avx512>",
                    "the form of loops and look-ups, to compare them",
                )
                .entry("no-block-driver", "every vector goes node by node, to compare")
                .renamed("no-superblocks", "no-block-driver")
                .idle(
                    "relative",
                    "cores are counted as Linux counts them; `corelist-workers` names them",
                )
                .idle(
                    "scheduler-policy <:other|batch|idle|fifo|rr>",
                    "start quiverd with chrt for that",
                )
                .idle("scheduler-priority <:1-99>", "start quiverd with chrt for that"),
        );
        schema.add(
            Section::new("buffers")
                .help("Memory for packets")
                .entry("buffers-per-numa <:256-16777216>", "number of buffers on each NUMA node")
                .entry("default data-size <:256-65536>", "bytes of data in each buffer")
                .entry("page-size <:default|default-hugepage|4K|2M|1G>", "size of the memory pages")
                .idle(
                    "(numa <numa-node:0-63> ['{' [buffers <:u32>] '}'])...",
                    "buffers-per-numa holds for every node",
                ),
        );
        crate::startup_vpp::sections().into_iter().for_each(|section| schema.add(section));
        schema
    }

    /// Add a section of a feature. Panics when the declaration is at fault.
    pub fn add(&mut self, section: Section) {
        let exists = self.sections.iter().any(|known| known.name == section.name);
        assert!(!exists, "the section {} exists twice", section.name);
        let tree = |(syntax, _): &(&'static str, &'static str)| syntax::parse(syntax, &self.types);
        let trees: Vec<Node> = section.entries.iter().map(tree).collect();
        // A lone word is a flag, as in a command.
        let members = trees.iter().cloned().map(|entry| match entry {
            Node::Literal { word, .. } => Node::Opt(Box::new(Node::Literal { word, flag: true })),
            entry => Node::Opt(Box::new(entry)),
        });
        let close = Node::Literal { word: "}", flag: false };
        let body = Node::Seq(vec![Node::Set(members.collect()), close]);
        self.matcher.add(&[section.name, "{"], automaton::compile(&body));
        self.forms.push(self.sections.len());
        if let Some(value) = section.bare {
            self.matcher
                .add(&[section.name], automaton::compile(&syntax::parse(value, &self.types)));
            self.forms.push(self.sections.len());
        }
        self.matcher.check();
        self.trees.push(trees);
        self.sections.push(section);
    }

    /// The declared sections, each with the trees of its entries.
    pub(crate) fn declared(&self) -> impl Iterator<Item = (&Section, &[Node])> {
        self.sections.iter().zip(self.trees.iter().map(Vec::as_slice))
    }

    /// Read a file's sections. The refusal names the file and the line.
    ///
    /// # Errors
    /// A section or an argument is unknown or malformed.
    pub fn parse<'a>(&'a self, file: &'a StartupFile) -> Result<Startup<'a>, Refusal> {
        let text = file.text.as_str();
        let mut words = Vec::new();
        let place = |refusal: Refusal, word: Option<Word>| {
            let at = word.map_or(text.len(), |word| word.start as usize);
            Refusal::new(refusal.what())
                .remedy(refusal.remedy_text())
                .in_file(file.name.clone(), line_of(text, at))
        };
        let end = words::split(text, &mut words);
        let end = end.map_err(|refusal| {
            let at = refusal.place().map_or(0, |place| place.word as usize).saturating_sub(1);
            place(refusal, words.get(at).copied())
        })?;
        let mut found: Vec<Found<'a>> = Vec::new();
        let mut at = 0;
        while at < words.len() {
            let name = words[at].text(text);
            let is_bare =
                self.sections.iter().any(|known| known.name == name && known.bare.is_some());
            let length = section_length(text, &words[at..], is_bare);
            let own = words[at..at + length].to_vec();
            let name = own[0].text(text);
            self.check_name(name, &own, text).map_err(|refusal| place(refusal, Some(own[0])))?;
            if end != End::Complete && at + length == words.len() {
                let refusal = Refusal::new(format!("the section {name} is not closed"))
                    .remedy("close it with }");
                return Err(place(refusal, Some(own[0])));
            }
            if found.iter().any(|other| self.sections[other.section].name == name) {
                let refusal = Refusal::new(format!("the section {name} is given twice"));
                return Err(place(refusal.remedy("put its entries together"), Some(own[0])));
            }
            let mut slots = Vec::new();
            let form = self.matcher.parse(&(), text, &own, &mut slots).map_err(|refusal| {
                let word = refusal.place().map_or(0, |place| place.word as usize).saturating_sub(1);
                place(refusal, own.get(word).copied())
            })?;
            let form = form as usize;
            found.push(Found { section: self.forms[form], form, slots, words: own });
            at += length;
        }
        Ok(Startup { schema: self, file, found })
    }

    fn check_name(&self, name: &str, own: &[Word], text: &str) -> Result<(), Refusal> {
        let known = self.sections.iter().map(|section| section.name);
        let quoted = printable(name);
        if !known.clone().any(|known| known == name) {
            let near = nearest(name, known.clone());
            let lives = |section: &&Section| section.does_nothing.is_none();
            let all: Vec<&str> =
                self.sections.iter().filter(lives).map(|section| section.name).collect();
            let remedy = match near.is_empty() {
                true => format!("its sections are {}", all.join(", ")),
                false => format!("did you mean {}?", either(&near)),
            };
            return Err(
                Refusal::new(format!("this router has no section '{quoted}'")).remedy(remedy)
            );
        }
        match own.get(1) {
            Some(brace) if brace.text(text) == "{" => Ok(()),
            Some(_)
                if self.sections.iter().any(|known| known.name == name && known.bare.is_some()) =>
            {
                Ok(())
            }
            _ => Err(Refusal::new(format!("the section {quoted} has no braces"))
                .remedy(format!("write {quoted} {{ … }}"))),
        }
    }
}

/// How many words the section that begins here has, with its name and its braces.
fn section_length(text: &str, words: &[Word], is_bare: bool) -> usize {
    let opens = words.get(1).is_some_and(|next| next.text(text) == "{");
    if is_bare && !opens {
        return words.len().min(2);
    }
    let mut open = 0;
    for (index, word) in words.iter().enumerate() {
        match word.text(text) {
            "{" if !word.quoted => open += 1,
            "}" if !word.quoted => open -= 1,
            _ => {}
        }
        let next_opens = words.get(index + 1).is_some_and(|next| next.text(text) == "{");
        if open == 0 && (index > 0 || !next_opens) {
            return index + 1;
        }
    }
    words.len()
}

/// A start-up file's text.
#[derive(Clone, Debug)]
pub struct StartupFile {
    name: String,
    text: String,
}

impl StartupFile {
    /// Read it.
    ///
    /// # Errors
    /// The file cannot be read, or is longer than 1 MiB.
    pub fn read(path: &Path) -> Result<StartupFile, Refusal> {
        let name = printable_path(path);
        let failed = |error: std::io::Error| Refusal::new(format!("cannot read {name}: {error}"));
        let metadata = fs::metadata(path).map_err(failed)?;
        if !metadata.is_file() || metadata.len() > STARTUP_BYTES_MAX {
            return Err(Refusal::new(format!("{name} is not a file of at most 1 MiB")));
        }
        let text = fs::read(path).map_err(failed)?;
        match String::from_utf8(text) {
            Ok(text) => Ok(StartupFile { name, text }),
            Err(_) => Err(Refusal::new(format!("{name} is not text in UTF-8"))),
        }
    }

    /// A text of this name.
    pub fn from_text(name: &str, text: &str) -> StartupFile {
        StartupFile { name: printable(name), text: text.into() }
    }
}

struct Found<'a> {
    section: usize,
    /// Which of the matcher's forms it is written in.
    form: usize,
    slots: Vec<Slot<'a>>,
    words: Vec<Word>,
}

/// What a start-up file says.
pub struct Startup<'a> {
    schema: &'a StartupSchema,
    file: &'a StartupFile,
    found: Vec<Found<'a>>,
}

impl Startup<'_> {
    fn found(&self, name: &str) -> Option<&Found<'_>> {
        self.found.iter().find(|found| self.schema.sections[found.section].name == name)
    }

    /// The entries of a section, when the file has it.
    pub fn section(&self, name: &str) -> Option<Args<'_>> {
        let found = self.found(name)?;
        let automaton = &self.schema.matcher.automata[found.form];
        let command = self.schema.sections[found.section].name;
        Some(Args { names: &automaton.names, slots: &found.slots, command, access: None })
    }

    /// A refusal of something in this section, with its file and line.
    pub fn refuse_in(&self, section: &str, refusal: Refusal) -> Refusal {
        let Some(found) = self.found(section) else { return refusal };
        let word = refusal.place().map_or(0, |place| place.word as usize).saturating_sub(1);
        let at = found.words.get(word).map_or(0, |word| word.start as usize);
        Refusal::new(refusal.what())
            .remedy(refusal.remedy_text())
            .in_file(self.file.name.clone(), line_of(&self.file.text, at))
    }

    /// Entries of the file that do nothing here, with the reason, and entries under an old name,
    /// with the new one; each with its place.
    pub fn idle(&self) -> Vec<String> {
        let place = |word: Word| line_of(&self.file.text, word.start as usize);
        let mut said = Vec::new();
        for found in &self.found {
            let section = &self.schema.sections[found.section];
            let names = &self.schema.matcher.automata[found.form].names;
            if let Some(why) = section.does_nothing {
                let at = place(found.words[0]);
                said.push(format!(
                    "{}:{at}: {} does nothing here: {why}",
                    self.file.name, section.name
                ));
            }
            let mut note = |entry: usize, what: &str| {
                let own = self.schema.trees[found.section][entry].recorded_names();
                let slot = found.slots.iter().find(|slot| own.contains(&names[slot.name as usize]));
                if let Some(word) = slot.and_then(|slot| found.words.get(slot.word as usize)) {
                    let (name, at) = (&self.file.name, place(*word));
                    said.push(format!("{name}:{at}: {} {} {what}", section.name, own[0]));
                }
            };
            for (entry, why) in &section.idle {
                note(*entry, &format!("does nothing here: {why}"));
            }
            for (entry, new_name) in &section.renamed {
                note(*entry, &format!("is an old name: write {new_name}"));
            }
        }
        said
    }

    /// The commands that these parts mean, where the file has their sections.
    ///
    /// # Errors
    /// An argument of a section means no command.
    pub fn commands(&self, parts: &[StartupPart]) -> Result<Vec<String>, Refusal> {
        let mut commands = Vec::new();
        for part in parts {
            let Some(args) = self.section(part.section.name) else { continue };
            let lines = (part.lines)(&args);
            commands.extend(lines.map_err(|refusal| self.refuse_in(part.section.name, refusal))?);
        }
        Ok(commands)
    }

    /// The section `unix`.
    ///
    /// # Errors
    /// A value has another form, or two arguments contradict each other.
    pub fn unix(&self) -> Result<Unix, Refusal> {
        let Some(args) = self.section("unix") else { return Ok(Unix::default()) };
        let path = |name: &str| Ok::<_, Refusal>(args.optional::<String>(name)?.map(PathBuf::from));
        let (exec, startup_config) = (path("exec")?, path("startup-config")?);
        if exec.is_some() && startup_config.is_some() {
            let refusal = args.refuse("startup-config", "both exec and startup-config are given");
            return Err(self.refuse_in("unix", refusal.remedy("give one of them")));
        }
        if let Some(listen) = args.optional::<&str>("cli-listen")?
            && is_host_and_port(listen)
        {
            let refusal = args.refuse("cli-listen", format!("{} is not a path", printable(listen)));
            let remedy = "name a socket in the file system; `ssh -L` reaches it from elsewhere";
            return Err(self.refuse_in("unix", refusal.remedy(remedy)));
        }
        let core_bytes_max = match args.optional::<&str>("coredump-size") {
            Ok(Some("unlimited")) => Some(u64::MAX),
            _ => args.optional::<u64>("coredump-size")?,
        };
        Ok(Unix {
            nodaemon: args.has("nodaemon"),
            interactive: args.has("interactive"),
            cli_listen: path("cli-listen")?,
            log: path("log")?,
            exec: exec.or(startup_config),
            exec_strict: args.has("exec-strict"),
            state_dir: path("state-dir")?,
            versions_kept: args.optional::<usize>("versions-kept")?,
            pidfile: path("pidfile")?,
            core_bytes_max,
            full_coredump: args.has("full-coredump"),
            runtime_dir: path("runtime-dir")?,
            files_dir: path("files-dir")?,
            gid: args.optional("gid")?,
            read_only_gid: args.optional("read-only-gid")?,
            user: args.optional("user")?,
            user_namespaces: args.has("user-namespaces"),
        })
    }

    /// The section `cpu`.
    ///
    /// # Errors
    /// A value has another form, or the cores and the number of workers contradict each other.
    pub fn cpu(&self) -> Result<Cpu, Refusal> {
        let Some(args) = self.section("cpu") else { return Ok(Cpu::default()) };
        let main_core: Option<u16> = args.optional("main-core")?;
        let cores = args.optional::<&str>("corelist-workers")?.and_then(core_list);
        let count: Option<u16> = args.optional("workers")?;
        let workers = match (cores, count) {
            (Some(_), Some(_)) => {
                let refusal = args.refuse("workers", "both corelist-workers and workers are given");
                return Err(self.refuse_in("cpu", refusal.remedy("give one of them")));
            }
            (Some(cores), None) => Workers::Cores(cores),
            (None, Some(count)) => Workers::Count(count),
            (None, None) => Workers::Default,
        };
        if let (Some(core), Workers::Cores(cores)) = (main_core, &workers)
            && cores.contains(&core)
        {
            let refusal =
                args.refuse("main-core", format!("core {core} is both main-core and a worker's"));
            return Err(self.refuse_in("cpu", refusal.remedy("take it out of corelist-workers")));
        }
        let variant = match args.optional::<&str>("variant")?.unwrap_or("best") {
            "scalar" => Some(Variant::Scalar),
            "avx2" => Some(Variant::Avx2),
            "avx512" => Some(Variant::Avx512),
            _ => None,
        };
        if let Some(variant) = variant.filter(|v| !v.is_available()) {
            let refusal =
                args.refuse("variant", format!("this processor cannot run {}", variant.name()));
            let best = format!("{} is the best it has", Variant::best().name());
            return Err(self.refuse_in("cpu", refusal.remedy(best)));
        }
        let no_block_driver = args.has("no-block-driver") || args.has("no-superblocks");
        Ok(Cpu {
            main_core,
            workers,
            skip_cores: args.or("skip-cores", 0)?,
            variant,
            no_block_driver,
        })
    }

    /// The section `buffers`.
    ///
    /// # Errors
    /// A value has another form or is out of range.
    pub fn buffers(&self) -> Result<Buffers, Refusal> {
        let Some(args) = self.section("buffers") else { return Ok(Buffers::default()) };
        Ok(Buffers {
            per_numa: args.optional("buffers-per-numa")?,
            data_size_bytes: args.optional("data-size")?,
            page_size: match args.or("page-size", "default")? {
                "4K" => PageSize::Kilobytes4,
                "2M" => PageSize::Megabytes2,
                "1G" => PageSize::Gigabyte1,
                _ => PageSize::Default,
            },
        })
    }
}

/// `localhost:5002`, as VPP takes it?
fn is_host_and_port(text: &str) -> bool {
    let port = text.rsplit_once(':').map(|(_, port)| port);
    !text.contains('/') && port.is_some_and(|port| port.parse::<u16>().is_ok())
}

/// The section `unix`: the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unix {
    /// Stay in the foreground.
    pub nodaemon: bool,
    /// Read commands from the terminal.
    pub interactive: bool,
    /// Socket for command lines.
    pub cli_listen: Option<PathBuf>,
    /// File for the log.
    pub log: Option<PathBuf>,
    /// File of commands to execute at start.
    pub exec: Option<PathBuf>,
    /// A command of that file that is refused ends the start.
    pub exec_strict: bool,
    /// Folder for the versions of the configuration.
    pub state_dir: Option<PathBuf>,
    /// So many versions of the configuration are kept.
    pub versions_kept: Option<usize>,
    /// File for the process number.
    pub pidfile: Option<PathBuf>,
    /// Largest core file, bytes.
    pub core_bytes_max: Option<u64>,
    /// A core file holds all memory.
    pub full_coredump: bool,
    /// Folder for the sockets.
    pub runtime_dir: Option<PathBuf>,
    /// Folder for the files that clients name.
    pub files_dir: Option<PathBuf>,
    /// Group that may use the sockets.
    pub gid: Option<String>,
    /// Group that may look at the router through them.
    pub read_only_gid: Option<String>,
    /// User that root's rights are given up for.
    pub user: Option<String>,
    /// That user may enter other network namespaces.
    pub user_namespaces: bool,
}

/// The section `cpu`: which threads run where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// Core of the control thread.
    pub main_core: Option<u16>,
    /// The workers.
    pub workers: Workers,
    /// Cores to leave out, counted from the first.
    pub skip_cores: u16,
    /// The form of loops and look-ups; the best when not given.
    pub variant: Option<Variant>,
    /// Every vector goes node by node.
    pub no_block_driver: bool,
}

/// How the workers are placed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Workers {
    /// As the router likes.
    #[default]
    Default,
    /// So many, on the first free cores.
    Count(u16),
    /// One on each of these cores.
    Cores(Vec<u16>),
}

/// The section `buffers`: memory for packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buffers {
    /// Buffers on each NUMA node.
    pub per_numa: Option<u32>,
    /// Bytes of data in each buffer.
    pub data_size_bytes: Option<u32>,
    /// Pages to take.
    pub page_size: PageSize,
}

/// Size of memory pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageSize {
    /// Huge pages when there are some.
    #[default]
    Default,
    /// 4 KiB.
    Kilobytes4,
    /// 2 MiB.
    Megabytes2,
    /// 1 GiB.
    Gigabyte1,
}

#[cfg(test)]
mod tests;
