//! Commands about sessions.

use quiver_control::{Command, ConfigWriter, Output, Registry, order};
use quiver_core::Engine;
use serde_json::json;

use crate::commands::GROUP;
use crate::config::Lists;
use crate::session::Class;
use crate::session_config::{self, SESSIONS_DEFAULT};
use crate::stateful::TIMEOUTS_S;

/// The timeouts, with the words that name them.
pub(crate) const TIMEOUTS: [(Class, &str); 3] = [
    (Class::Udp, "udp idle"),
    (Class::TcpIdle, "tcp idle"),
    (Class::TcpTransient, "tcp transient"),
];

pub(crate) fn register(registry: &mut Registry) {
    table(registry);
    timeouts(registry);
    registry.command(
        Command::new("set acl-plugin on-full deny|stateless")
            .entry(order::LIMITS, "acl.on-full: <deny?stateless>")
            .undo("set acl-plugin on-full deny")
            .replaces(&[])
            .group(GROUP)
            .help("Say what becomes of packets that would make a session when all are in use")
            .details(
                "With deny, the default, they are dropped and counted (acl-sessions-full). With \
                 stateless they pass without a session, counted as acl-stateless, and what answers \
                 them meets the lists. No live session ends for a new one in either case.",
            )
            .example("set acl-plugin on-full stateless")
            .run(|engine: &mut Engine, args| {
                let passes = args.has("stateless");
                engine.with(|_, lists: &mut Lists| {
                    lists.published().sessions.pass_when_full(passes);
                });
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("clear acl-plugin sessions [<interface>]")
            .group(GROUP)
            .help("End the sessions of access lists, all or those of an interface")
            .example("clear acl-plugin sessions e0")
            .run(|engine: &mut Engine, args| {
                let only = args.optional_interface(engine, "interface")?;
                session_config::clear(engine, only)?;
                Ok(Output::none())
            }),
    );
}

fn table(registry: &mut Registry) {
    registry.command(
        Command::new("set acl-plugin session table max-entries <sessions:64-16777216>")
            .entry(order::RESOURCES, "acl.sessions.max-entries: <sessions>")
            .undo("set acl-plugin session table max-entries 131072")
            .replaces(&[])
            .group(GROUP)
            .help("Size the table of the sessions that permit+reflect makes")
            .details(
                "The memory, 75 bytes a session, is taken as a whole when the first list with \
                 permit+reflect filters an interface. While one does, the size stays.",
            )
            .example("set acl-plugin session table max-entries 1000000")
            .run(|engine: &mut Engine, args| {
                let sessions = args.get::<u32>("sessions")?;
                let bytes = session_config::set_most(engine, sessions as usize)?;
                let text = format!("{sessions} sessions take {} MiB", bytes.div_ceil(1 << 20));
                Ok(Output::both(text, json!({ "sessions": sessions, "bytes": bytes })))
            }),
    );
    registry.command(
        Command::new("set acl-plugin reclassify-sessions <reclassify:0-1>")
            .entry(order::LIMITS, "acl.reclassify-sessions: <reclassify>")
            .undo("set acl-plugin reclassify-sessions 1")
            .replaces(&[])
            .group(GROUP)
            .help("Match sessions again when the lists of their interface are others, or keep them")
            .details(
                "With 1, the default, the next packet of a session has the new lists asked about \
                 the packet that made the session; the session ends when they do not make one of \
                 it. With 0 sessions stay until their time is over.",
            )
            .example("set acl-plugin reclassify-sessions 0")
            .run(|engine: &mut Engine, args| {
                let reclassify: u32 = args.get("reclassify")?;
                engine.with(|_, lists: &mut Lists| {
                    lists.published().sessions.keep(reclassify == 0);
                });
                Ok(Output::none())
            }),
    );
}

fn timeouts(registry: &mut Registry) {
    const ALL: [(usize, &str, &str, &str, &str); 3] = [
        (
            0,
            "set acl-plugin session timeout udp idle <seconds:1-604800>",
            "set acl-plugin session timeout udp idle 300",
            "acl.sessions.timeouts.udp-idle: <seconds>",
            "Set how long a session of UDP, ICMP or another protocol lasts without packets",
        ),
        (
            1,
            "set acl-plugin session timeout tcp idle <seconds:1-604800>",
            "set acl-plugin session timeout tcp idle 7440",
            "acl.sessions.timeouts.tcp-idle: <seconds>",
            "Set how long an established TCP session lasts without packets (RFC 5382 REQ-5)",
        ),
        (
            2,
            "set acl-plugin session timeout tcp transient <seconds:1-604800>",
            "set acl-plugin session timeout tcp transient 120",
            "acl.sessions.timeouts.tcp-transient: <seconds>",
            "Set how long a TCP session lasts that is opening, reset or closed",
        ),
    ];
    for (at, syntax, undo, entry, help) in ALL {
        registry.command(
            Command::new(syntax)
                .entry(order::LIMITS, entry)
                .undo(undo)
                .replaces(&[])
                .group(GROUP)
                .help(help)
                .example(undo)
                .run(move |engine: &mut Engine, args| {
                    let seconds = args.get("seconds")?;
                    engine.with(|_, lists: &mut Lists| {
                        lists.published().sessions.set_timeout_s(TIMEOUTS[at].0, seconds);
                    });
                    Ok(Output::none())
                }),
        );
    }
}

/// The size of the table in `show running-config`: before the lists that open it.
pub(crate) fn write_table(engine: &Engine, config: &mut ConfigWriter) {
    let Some(lists) = engine.get::<Lists>() else { return };
    let most = lists.room.most;
    if most != SESSIONS_DEFAULT {
        config.command(format_args!("set acl-plugin session table max-entries {most}"));
    }
}

/// The settings in `show running-config`.
pub(crate) fn write_settings(engine: &Engine, config: &mut ConfigWriter) {
    let Some(lists) = engine.get::<Lists>() else { return };
    let sessions = &lists.published().sessions;
    for (class, words) in TIMEOUTS {
        let seconds = sessions.timeout_s(class);
        if seconds != TIMEOUTS_S[class as usize] {
            config.command(format_args!("set acl-plugin session timeout {words} {seconds}"));
        }
    }
    if sessions.passes_when_full() {
        config.command(format_args!("set acl-plugin on-full stateless"));
    }
    if sessions.keeps() {
        config.command(format_args!("set acl-plugin reclassify-sessions 0"));
    }
}
