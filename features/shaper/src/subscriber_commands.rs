//! Commands that configure subscribers.

use std::fmt::Write as _;

use quiver_control::{
    Args, Command, ConfigWriter, Output, Refusal, Registry, Work, in_background, order, quoted,
};
use quiver_core::Engine;
use serde_json::json;

use crate::commands::{GROUP, prefixes};
use crate::config::Shapers;
use crate::file::{self, Mistakes};
use crate::subscribers::{self, Wanted};

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "shaper subscriber add <id:word> {profile <profile:word> [parent <parent:word>] \
             [upload <upload:word>]} address <address:prefix>...",
        )
        .entry(
            order::RESOURCES,
            "subscribers.<id>: {profile, parent, upload, address: <address>...}",
        )
        .undo("shaper subscriber del <id>")
        .replaces(&["id"])
        .stands_on("shaper <profile>")
        .stands_on("shaper <parent>")
        .stands_on("shaper <upload>")
        .group(GROUP)
        .help("Give a subscriber the plan of a shaper, or change one in place")
        .details(
            "The subscriber has a rate of its own, with the values of the profile, below the \
             profile's parent or the one that is said. Its packets are known by its addresses, of \
             either family, on interfaces that have a shaper (`shaper output`).",
        )
        .word("profile", "the shaper with the values of what it receives")
        .word("parent", "the shaper that it stands below, such as its site's")
        .word("upload", "the shaper with the values and the parent of what it sends")
        .word("address", "its prefixes: the longest one that matches a packet counts")
        .example("shaper subscriber add alice profile gold address 10.0.0.2/32 2001:db8:2::/48")
        .run(|engine: &mut Engine, args| {
            let id: String = args.get("id")?;
            let wanted = Wanted {
                addresses: prefixes(args, "address")?,
                profile: args.get("profile")?,
                parent: args.optional("parent")?,
                upload: args.optional("upload")?,
            };
            subscribers::put(engine, vec![(id, wanted)]).map(|()| Output::none())
        }),
    );
    registry.command(
        Command::new("shaper subscriber del <id:word>")
            .group(GROUP)
            .help("Delete a subscriber")
            .details("What waits of its packets is sent at once.")
            .example("shaper subscriber del alice")
            .run(|engine: &mut Engine, args| {
                subscribers::delete(engine, args.get("id")?).map(|()| Output::none())
            }),
    );
    registry.command(
        Command::new("shaper subscriber-file <file:path>")
            .group(GROUP)
            .help("Add or change subscribers from a file")
            .details(
                "The file has one subscriber a line, in the words of `shaper subscriber add` from \
                 the name on. # begins a comment. Mistakes are listed by line, and then nothing \
                 changes.",
            )
            .example("shaper subscriber-file /etc/quiver/subscribers")
            .run_or_begin(add_from_file),
    );
}

fn add_from_file(_: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let Some((path, opened)) = args.file_to_read("file")? else {
        return Err(Refusal::new("no file"));
    };
    let name = path.display().to_string();
    let of = name.clone();
    let work = move || file::read(opened).map_err(|mistakes| refusal(&of, mistakes));
    in_background(work, move |engine: &mut Engine, text: String| {
        let shapers = engine.get::<Shapers>().ok_or_else(|| Refusal::new("no shapers"))?;
        let all_wanted =
            file::parse(&text, shapers).map_err(|mistakes| refusal(&name, mistakes))?;
        let count = all_wanted.len();
        subscribers::put(engine, all_wanted)?;
        Ok(Output::both(format!("{count} subscribers"), json!({ "subscribers": count })))
    })
}

fn refusal(name: &str, mistakes: Mistakes) -> Refusal {
    match mistakes {
        Mistakes::Unreadable(what) => Refusal::new(format!("{name} cannot be read: {what}")),
        Mistakes::Lines { first, more } => {
            let mut text = format!("{} lines of {name} are wrong:", first.len() + more);
            for (line, what) in &first {
                let _ = write!(text, "\n  line {line}: {what}");
            }
            if more > 0 {
                let _ = write!(text, "\n  and {more} more");
            }
            let line = first.first().map_or(1, |(line, _)| *line);
            Refusal::new(text).in_file(name, line).remedy("nothing was changed")
        }
    }
}

/// The names of all subscribers.
pub(crate) fn ids(engine: &Engine) -> Vec<String> {
    let shapers = engine.get::<Shapers>();
    shapers.map_or_else(Vec::new, |of| of.subscribers.known.keys().cloned().collect())
}

/// `show running-config`: a subscriber.
pub(crate) fn write_subscriber(engine: &Engine, config: &mut ConfigWriter, id: String) {
    let known = engine.get::<Shapers>().and_then(|shapers| shapers.subscribers.known.get(&id));
    let Some(Wanted { addresses, profile, parent, upload }) = known.map(|known| &known.wanted)
    else {
        return;
    };
    let mut line = format!("shaper subscriber add {} profile {}", quoted(&id), quoted(profile));
    for (word, name) in [("parent", parent), ("upload", upload)] {
        if let Some(name) = name {
            let _ = write!(line, " {word} {}", quoted(name));
        }
    }
    line += " address";
    for address in addresses {
        let _ = write!(line, " {address}");
    }
    config.command(format_args!("{line}"));
}
