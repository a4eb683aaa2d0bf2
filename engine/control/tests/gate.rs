//! The gate before changes: what is not to be changed now is refused by every door, and can be
//! looked at.

use quiver_control::{Command, Commands, Output, Refusal};
use quiver_core::clock::Clock;
use quiver_core::graph::builder::{EngineConfig, GraphBuilder};
use quiver_core::memory::mapping::PageSize;

/// How often a command ran, and whether the gate is shut.
#[derive(Default)]
struct State {
    changes: u32,
    is_shut: bool,
}

impl quiver_control::Names for State {}

fn commands() -> Commands<State> {
    let mut commands = Commands::new();
    let change = |state: &mut State| state.changes += 1;
    commands.add(Command::new("show things").help("look").run(|_, _| Ok(Output::text("things\n"))));
    commands.add(
        Command::new("set thing <:u32>")
            .help("change")
            .run(move |state: &mut State, _| {
                change(state);
                Ok(Output::none())
            })
            .run_many("thing", move |state, batch| {
                batch.rows().for_each(|_| change(state));
                Ok(batch.len())
            }),
    );
    commands.before_changes(|state: &mut State| match state.is_shut {
        true => Err(Refusal::new("worker 0 has not finished a pass for 12.0 s")),
        false => Ok(()),
    });
    commands
}

#[test]
fn a_shut_gate_refuses_changes_by_line_and_by_script_and_lets_shows_pass() {
    let (commands, mut state) = (commands(), State { is_shut: true, ..State::default() });
    assert!(commands.execute(&mut state, "show things").is_ok());
    let refusal = commands.execute(&mut state, "set thing 1").unwrap_err();
    assert!(refusal.to_string().contains("worker 0 has not finished a pass"));
    let script = commands.start_script(
        "set thing 1\nset thing 2\n".into(),
        Some("file".into()),
        quiver_control::OnRefusal::Stop,
    );
    let refused = script
        .finish(&commands, &mut state, &mut quiver_control::Collected::default())
        .unwrap_err();
    assert_eq!(refused.source(), Some(("file", 1)));
    assert_eq!(state.changes, 0);
    state.is_shut = false;
    commands.execute(&mut state, "set thing 1").unwrap();
    assert_eq!(state.changes, 1);
}

#[test]
fn where_nothing_is_to_be_made_things_can_be_deleted() {
    let (mut commands, mut state) = (commands(), State::default());
    let change = |state: &mut State, _: &quiver_control::Args<'_>| {
        state.changes += 1;
        Ok(Output::none())
    };
    commands.add(Command::new("delete thing <:u32>").help("delete").run(change));
    commands.add(Command::new("set other <:u32> [del]").help("change").run(change));
    commands.before_additions(|_| Err(Refusal::new("memory is short")));
    for line in ["set thing 1", "set other 1"] {
        let refusal = commands.execute(&mut state, line).unwrap_err();
        assert!(refusal.to_string().contains("memory is short"), "{line}");
    }
    for line in ["delete thing 1", "set other 1 del", "show things"] {
        commands.execute(&mut state, line).expect(line);
    }
    assert_eq!(state.changes, 2);
}

#[test]
fn show_workers_tells_what_each_is_at_and_what_waits() {
    let config = EngineConfig {
        worker_cores: vec![0, 1],
        buffers: 256,
        pages: PageSize::Small,
        ..EngineConfig::default()
    };
    let mut registry =
        quiver_control::Registry::new(GraphBuilder::new(config, Clock::tsc()).unwrap());
    quiver_control::commands::register(&mut registry);
    let (mut engine, commands) = registry.build().unwrap();
    engine.step();
    let commands = commands.borrow();
    let shown = commands.execute(&mut engine, "show workers").unwrap();
    let json = shown.to_json();
    assert_eq!(json["workers"].as_array().unwrap().len(), 2);
    for worker in json["workers"].as_array().unwrap() {
        assert_eq!((&worker["state"], &worker["stalls"]), (&"running".into(), &0.into()));
        assert!(worker["passes"].as_u64().unwrap() > 0);
    }
    assert_eq!(json["waiting"]["retired"], 0);
    assert_eq!(json["stall_timeout_ms"], 1000);
    assert!(shown.to_text().contains("Waiting for workers: 0 of 1024 replaced values"));
    commands.execute(&mut engine, "set watchdog timeout 250").unwrap();
    assert_eq!(engine.stall_timeout_ns(), 250_000_000);
    assert!(commands.running_config(&engine).contains("set watchdog timeout 250"));
    assert!(commands.execute(&mut engine, "set watchdog timeout 5").is_err());
}
