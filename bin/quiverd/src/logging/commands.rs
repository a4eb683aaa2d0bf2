//! `show logging`, `set logging …` and the section `logging` of the start-up file, in VPP's words.

use std::collections::BTreeSet;
use std::sync::Arc;

use quiver_control::{
    Args, BuiltIn, Column, Command, ConfigWriter, Output, Refusal, Registry, Section, StartupPart,
    Table, order,
};
use quiver_core::Engine;

use super::settings::{self, Differs, Format, Level};
use super::store::Log;

const GROUP: &str = "Log";
/// Classes that are no feature.
const OTHERS: [&str; 7] = ["cli", "control", "core", "link", "linux", "quiverd", "tables"];

/// Register the log's commands. A router that is not `quiverd` has a log that is only kept.
pub fn register(registry: &mut Registry) {
    register_shows(registry);
    registry.command(
        Command::new(
            "set logging class <class:word> {[rate-limit <:u32>] \
             [level <:emerg|alert|crit|err|warn|notice|info|debug|disabled>] \
             [syslog-level <:emerg|alert|crit|err|warn|notice|info|debug|disabled>] [del]}",
        )
        .entry(order::RESOURCES, "logging.classes.<class>: some{rate-limit, level, syslog-level}")
        .undo("set logging class <class> del")
        .amends(&["class"])
        .group(GROUP)
        .help("Say what is kept and written of the messages of one class")
        .word("rate-limit", "messages a second; more are left out for the unthrottle-time")
        .word("level", "the least grave that is kept for `show logging`")
        .word(
            "syslog-level",
            "the least grave that is written to the log file or to standard error",
        )
        .word("del", "what is said of all classes holds for it again")
        .example("set logging class memif level debug")
        .run(|engine: &mut Engine, args| {
            let class: String = args.get("class")?;
            check_class(engine, args, &class)?;
            let new = differs(args)?;
            let is_usual = args.has("del");
            log(engine)?.change(|settings| {
                if is_usual {
                    settings.classes.remove(&class);
                    return;
                }
                let own = settings.classes.entry(class).or_default();
                own.level = new.level.or(own.level);
                own.written = new.written.or(own.written);
                own.rate_per_s = new.rate_per_s.or(own.rate_per_s);
                settings.classes.retain(|_, own| *own != Differs::default());
            });
            Ok(Output::none())
        }),
    );
    registry.command(
        Command::new(
            "set logging default {[rate-limit <:u32>] \
             [level <:emerg|alert|crit|err|warn|notice|info|debug|disabled>] \
             [syslog-level <:emerg|alert|crit|err|warn|notice|info|debug|disabled>]}",
        )
        .entry(order::RESOURCES, "logging.default: some{rate-limit, level, syslog-level}")
        .undo("set logging default level info syslog-level info rate-limit 50")
        .amends(&[])
        .group(GROUP)
        .help(
            "Say what is kept and written of the messages of classes of which nothing else is said",
        )
        .example("set logging default level notice syslog-level err")
        .run(|engine: &mut Engine, args| {
            let new = differs(args)?;
            log(engine)?.change(|settings| {
                let usual = &mut settings.usual;
                usual.level = new.level.unwrap_or(usual.level);
                usual.written = new.written.unwrap_or(usual.written);
                usual.rate_per_s = new.rate_per_s.unwrap_or(usual.rate_per_s);
            });
            Ok(Output::none())
        }),
    );
    registry.command(
        Command::new("set logging size <entries:0-100000>")
            .entry(order::RESOURCES, "logging.size: <entries>")
            .undo("set logging size 512")
            .replaces(&[])
            .group(GROUP)
            .help("Say how many messages are kept for `show logging`")
            .example("set logging size 2000")
            .run(|engine: &mut Engine, args| {
                let size: usize = args.get("entries")?;
                log(engine)?.change(|settings| settings.size = size);
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("set logging unthrottle-time <seconds:0-86400>")
            .entry(order::RESOURCES, "logging.unthrottle-time: <seconds>")
            .undo("set logging unthrottle-time 3")
            .replaces(&[])
            .group(GROUP)
            .help("Say for how many seconds a class that says too much is silent")
            .example("set logging unthrottle-time 10")
            .run(|engine: &mut Engine, args| {
                let seconds: u32 = args.get("seconds")?;
                log(engine)?.change(|settings| settings.unthrottle_s = seconds);
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("set logging format <format:text|json>")
            .entry(order::RESOURCES, "logging.format: <format>")
            .undo("set logging format text")
            .replaces(&[])
            .group(GROUP)
            .help("Say what a line of the log file or of standard error is")
            .details("A line of JSON is an object with time, level, class, message and fields.")
            .example("set logging format json")
            .run(|engine: &mut Engine, args| {
                let is_json = args.get::<&str>("format")? == "json";
                let format = if is_json { Format::Json } else { Format::Text };
                log(engine)?.change(|settings| settings.format = format);
                Ok(Output::none())
            }),
    );
    registry.running_config(order::RESOURCES, write_config).named("logging");
    registry.on_start(|engine| engine.insert(Arc::new(Log::default())));
}

fn register_shows(registry: &mut Registry) {
    registry.command(
        Command::new("show logging")
            .group(GROUP)
            .help("Show the last messages of the log, the oldest first")
            .run(|engine: &mut Engine, _| {
                let columns = ["Time", "Level", "Class", "Message"].map(Column::left);
                let mut table = Table::new(columns).when_empty("no messages");
                for entry in log(engine)?.entries() {
                    let row = table.row().cell(entry.time).cell(entry.level.word());
                    row.cell(entry.class).cell(entry.message);
                }
                Ok(Output::none().table("messages", table))
            }),
    );
    registry.command(
        Command::new("show logging configuration")
            .group(GROUP)
            .help("Show what is kept and written of each class of messages")
            .run(|engine: &mut Engine, _| {
                let settings = log(engine)?.settings();
                let mut table = Table::new([
                    Column::left("Class"),
                    Column::left("Level"),
                    Column::left("Syslog Level").key("syslog_level"),
                    Column::right("Rate Limit").key("rate_limit_per_s"),
                ]);
                for class in classes(engine) {
                    let own = settings.of(&class);
                    let row = table.row().cell(class).cell(own.level.word());
                    row.cell(own.written.word()).cell(u64::from(own.rate_per_s));
                }
                let usual = settings.usual;
                Ok(Output::none()
                    .field("Buffer messages", settings.size)
                    .field("Unthrottle time s", u64::from(settings.unthrottle_s))
                    .field("Default level", usual.level.word())
                    .field("Default syslog level", usual.written.word())
                    .field("Default rate limit per s", u64::from(usual.rate_per_s))
                    .table("classes", table))
            }),
    );
    registry.command(
        Command::new("clear logging").group(GROUP).help("Forget the messages of the log").run(
            |engine: &mut Engine, _| {
                log(engine)?.clear();
                Ok(Output::none())
            },
        ),
    );
}

fn log(engine: &Engine) -> Result<Arc<Log>, Refusal> {
    engine.get::<Arc<Log>>().cloned().ok_or_else(|| Refusal::new("there is no log"))
}

fn classes(engine: &Engine) -> BTreeSet<String> {
    let features = engine.get::<BuiltIn>().into_iter().flat_map(|built| &built.0);
    let names = features.map(|feature| feature.name).chain(OTHERS);
    names.map(str::to_owned).collect()
}

fn check_class(engine: &Engine, args: &Args<'_>, class: &str) -> Result<(), Refusal> {
    let known = classes(engine);
    if known.contains(class) {
        return Ok(());
    }
    let all: Vec<&str> = known.iter().map(String::as_str).collect();
    Err(args
        .refuse("class", format!("no class '{class}'"))
        .remedy(format!("there are {}", all.join(", "))))
}

fn differs(args: &Args<'_>) -> Result<Differs, Refusal> {
    let level = |name: &str| Ok::<_, Refusal>(args.optional::<&str>(name)?.and_then(Level::of));
    Ok(Differs {
        level: level("level")?,
        written: level("syslog-level")?,
        rate_per_s: args.optional("rate-limit")?,
    })
}

/// The part of `show running-config`.
fn write_config(engine: &Engine, config: &mut ConfigWriter) {
    let Ok(log) = log(engine) else { return };
    let settings = log.settings();
    if settings.size != settings::SIZE {
        config.command(format_args!("set logging size {}", settings.size));
    }
    if settings.unthrottle_s != settings::UNTHROTTLE_S {
        config.command(format_args!("set logging unthrottle-time {}", settings.unthrottle_s));
    }
    if settings.format == Format::Json {
        config.command(format_args!("set logging format json"));
    }
    let (is, usual) = (settings.usual, settings::USUAL);
    let differs = Differs {
        level: Some(is.level).filter(|level| *level != usual.level),
        written: Some(is.written).filter(|level| *level != usual.written),
        rate_per_s: Some(is.rate_per_s).filter(|rate| *rate != usual.rate_per_s),
    };
    if differs != Differs::default() {
        config.command(format_args!("set logging default{}", words(differs)));
    }
    for (class, differs) in &settings.classes {
        config.command(format_args!("set logging class {class}{}", words(*differs)));
    }
}

/// The options of a command, each with a space in front.
fn words(differs: Differs) -> String {
    let rate = differs.rate_per_s.map(|rate| format!(" rate-limit {rate}"));
    let level = differs.level.map(|level| format!(" level {}", level.word()));
    let written = differs.written.map(|level| format!(" syslog-level {}", level.word()));
    [rate, level, written].into_iter().flatten().collect()
}

/// The section `logging` of the start-up file.
pub fn startup() -> StartupPart {
    let section = Section::new("logging")
        .help("The log")
        .entry("size <:0-100000>", "messages that `show logging` has")
        .entry(
            "unthrottle-time <:0-86400>",
            "seconds for which a class that says too much is silent",
        )
        .entry("format <format:text|json>", "what a line of the log file is; text when not given")
        .entry(
            "default-log-level <:emerg|alert|crit|err|warn|notice|info|debug|disabled>",
            "the least grave that is kept",
        )
        .entry(
            "default-syslog-log-level <:emerg|alert|crit|err|warn|notice|info|debug|disabled>",
            "the least grave that is written to the log file or to standard error",
        )
        .entry(
            "(class <class-name:word> ['{' {[rate-limit <:u32>] \
             [level <:emerg|alert|crit|err|warn|notice|info|debug|disabled>] \
             [syslog-level <:emerg|alert|crit|err|warn|notice|info|debug|disabled>]} '}'])...",
            "what differs for one class",
        )
        .idle("add-to-elog", "there is no event log; `show logging` has all messages");
    StartupPart::new(section, commands)
}

fn commands(args: &Args<'_>) -> Result<Vec<String>, Refusal> {
    let mut lines = Vec::new();
    if let Some(size) = args.optional::<u64>("size")? {
        lines.push(format!("set logging size {size}"));
    }
    if let Some(seconds) = args.optional::<u64>("unthrottle-time")? {
        lines.push(format!("set logging unthrottle-time {seconds}"));
    }
    if let Some(format) = args.optional::<&str>("format")? {
        lines.push(format!("set logging format {format}"));
    }
    for (entry, word) in
        [("default-log-level", "level"), ("default-syslog-log-level", "syslog-level")]
    {
        if let Some(level) = args.optional::<&str>(entry)? {
            lines.push(format!("set logging default {word} {level}"));
        }
    }
    for class in args.groups("class") {
        let name: &str = class.get("class-name")?;
        lines.push(format!("set logging class {name}{}", words(differs(&class)?)));
    }
    Ok(lines)
}
