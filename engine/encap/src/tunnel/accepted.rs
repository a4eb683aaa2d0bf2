//! Words of VPP that switch a short path for packets of tunnels on, interface by interface. They
//! change nothing here, where packets of tunnels are recognised on every interface. They are
//! accepted, and written back.

use std::collections::{BTreeMap, BTreeSet};

use quiver_control::{Command, ConfigWriter, Output, Registry, by_interface_name, order};
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::{Engine, InterfaceId};

/// One of the commands.
#[derive(Clone, Copy, Debug)]
pub struct AcceptedWords {
    /// The command before the interface, as `set interface ip geneve-bypass`.
    pub command: &'static str,
    /// Its syntax: the command, `<interface> [del]`.
    pub syntax: &'static str,
    /// The command that takes it back, over the same arguments.
    pub undo: &'static str,
    /// Where it lives in a document, over the same.
    pub entry: &'static str,
    /// One line, without a full stop.
    pub help: &'static str,
    /// A line that shows it in use.
    pub example: &'static str,
}

/// The interfaces that operators have named, by command.
#[derive(Default)]
struct Accepted(BTreeMap<&'static str, BTreeSet<InterfaceId>>);

/// Register a command whose words are accepted and kept.
pub fn accept(registry: &mut Registry, words: AcceptedWords) {
    registry.command(
        Command::new(words.syntax)
            .entry(order::FEATURES, words.entry)
            .undo(words.undo)
            .group("Tunnels")
            .help(words.help)
            .details(
                "The words are accepted and kept for configurations of VPP. Packets of tunnels \
                 take the short path on every interface without them.",
            )
            .example(words.example)
            .run(move |engine: &mut Engine, args| {
                let id = args.interface(engine, "interface")?;
                set(engine, words.command, id, !args.has("del"));
                Ok(Output::none())
            }),
    );
    registry.running_config(order::FEATURES, move |engine: &Engine, config: &mut ConfigWriter| {
        write_config(engine, config, words.command);
    });
    registry.on_start(move |engine| {
        engine.on_interface_change(move |engine, id, change| {
            if change == InterfaceChange::Deleted {
                set(engine, words.command, id, false);
            }
        });
    });
}

fn set(engine: &mut Engine, command: &'static str, id: InterfaceId, on: bool) {
    if engine.get::<Accepted>().is_none() {
        engine.insert(Accepted::default());
    }
    let Some(accepted) = engine.get_mut::<Accepted>() else { return };
    let interfaces = accepted.0.entry(command).or_default();
    match on {
        true => interfaces.insert(id),
        false => interfaces.remove(&id),
    };
}

/// The part of `show running-config`.
fn write_config(engine: &Engine, config: &mut ConfigWriter, command: &'static str) {
    let named = engine.get::<Accepted>().and_then(|accepted| accepted.0.get(command));
    let all = named.into_iter().flatten().map(|id| (*id, ()));
    for (id, ()) in by_interface_name(engine, all) {
        config.command(format_args!("{command} {}", engine.interface_name(id)));
    }
}
