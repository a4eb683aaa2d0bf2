//! The commands as operators write them.

use quiver_control::{Refusal, Registry, SharedCommands};
use quiver_core::clock::Clock;
use quiver_core::graph::builder::{EngineConfig, GraphBuilder};
use quiver_core::memory::mapping::PageSize;
use quiver_core::{Engine, NodeSpec};
use serde_json::json;

struct Console {
    engine: Engine,
    commands: SharedCommands,
}

impl Console {
    fn new() -> Console {
        let config =
            EngineConfig { buffers: 512, pages: PageSize::Small, ..EngineConfig::default() };
        let mut registry = Registry::new(GraphBuilder::new(config, Clock::tsc()).expect("graph"));
        registry.graph.node(NodeSpec::input("ethernet-input", "stands in"));
        registry.graph.node(NodeSpec::input("ip-input", "stands in"));
        quiver_memif::register(&mut registry);
        let (engine, commands) = registry.build().expect("engine");
        Console { engine, commands }
    }

    fn run(&mut self, line: &str) -> Result<quiver_control::Output, Refusal> {
        self.commands.borrow().execute(&mut self.engine, line)
    }

    fn text(&mut self, line: &str) -> String {
        self.run(line).expect(line).to_text()
    }

    fn refused(&mut self, line: &str) -> String {
        self.run(line).expect_err(line).to_string()
    }
}

fn name(of: &str) -> String {
    format!("@quiver-memif-commands-{of}-{}", std::process::id())
}

#[test]
fn what_was_configured_is_what_the_running_configuration_says_and_makes_again() {
    let (first, second) = (name("a"), name("b"));
    let script = [
        format!("create memif socket id 1 filename {first}"),
        format!("create memif socket id 7 filename {second}"),
        "create interface memif id 3 socket-id 1 master rx-queues 2 tx-queues 4 secret \"open \
         sesame\" hw-addr 02:fe:00:00:00:01"
            .into(),
        "create interface memif id 0 socket-id 7 slave mode ip ring-size 512 buffer-size \
         4096"
            .into(),
    ];
    let mut console = Console::new();
    script.iter().for_each(|line| drop(console.run(line).expect(line)));
    let config = console.text("show running-config secrets");
    for line in &script {
        assert!(
            config
                .lines()
                .any(|l| l.split(' ').collect::<String>() == line.split(' ').collect::<String>()),
            "{line}\nis not in\n{config}"
        );
    }
    drop(console);
    let mut again = Console::new();
    config
        .lines()
        .filter(|l| !l.starts_with('#'))
        .for_each(|line| drop(again.run(line).expect(line)));
    assert_eq!(again.text("show running-config secrets"), config);
}

#[test]
fn an_interface_is_created_shown_and_deleted() {
    let path = name("life");
    let mut console = Console::new();
    console.text(&format!("create memif socket id 1 filename {path}"));
    assert_eq!(console.text("create interface memif socket-id 1 id 2 master"), "memif1/2\n");
    let shown = console.run("show memif").unwrap();
    assert!(shown.to_text().contains("memif1/2"), "{}", shown.to_text());
    let json = shown.to_json();
    assert_eq!(json["interfaces"][0]["interface"], json!("memif1/2"));
    assert_eq!(json["interfaces"][0]["link"], json!("down"));
    assert_eq!(json["sockets"][1]["path"], json!(path));
    assert!(console.refused("delete memif socket id 1").contains("memif1/2"));
    console.text("delete interface memif memif1/2");
    console.text("delete memif socket id 1");
    assert!(console.text("show memif").contains("there is no memif interface"));
}

#[test]
fn a_refused_command_says_what_would_be_right_and_changes_nothing() {
    let path = name("refused");
    let mut console = Console::new();
    console.text(&format!("create memif socket id 1 filename {path}"));
    let before = console.text("show running-config");
    let lines = [
        ("create interface memif id 0 socket-id 9 master", "create memif socket id 9"),
        ("create interface memif id 0 socket-id 1 master ring-size 1000", "power of two"),
        ("create interface memif id 0 socket-id 1 slave buffer-size 70000", "64..=65472"),
        (
            "create interface memif id 0 socket-id 1 slave secret \"0123456789012345678901234\"",
            "1 to 23",
        ),
        ("create interface memif id 0 socket-id 1", "expected"),
        ("create memif socket id 1 filename /x", "exists already"),
        ("create memif socket id 0 filename /x", ""),
        ("delete memif socket id 5", "no memif socket 5"),
        ("delete interface memif memif1/0", "no interface"),
        ("show memif memif1/0", "no interface"),
    ];
    for (line, says) in lines {
        let refused = console.refused(line);
        assert!(refused.contains(says), "{line}: {refused}");
        assert!(!refused.contains('\n'));
    }
    console.refused(&format!("create memif socket id 2 filename /{}", "x".repeat(200)));
    assert_eq!(console.text("show running-config"), before);
}

#[test]
fn a_connection_is_shown_with_its_rings_and_every_descriptor() {
    let path = name("rings");
    let mut console = Console::new();
    console.text(&format!("create memif socket id 1 filename {path}"));
    console.text(&format!("create memif socket id 2 filename /unused{path}"));
    console.text("create interface memif socket-id 1 id 0 master");
    let mut peer = Console::new();
    peer.text(&format!("create memif socket id 1 filename {path}"));
    peer.text("create interface memif socket-id 1 id 0 slave ring-size 16");
    for _ in 0..50 {
        console.engine.turn(1);
        peer.engine.turn(1);
    }
    for side in [&mut console, &mut peer] {
        let shown = side.run("show memif memif1/0 descriptors").unwrap();
        assert_eq!(shown.to_json()["interfaces"][0]["link"], json!("up"), "{}", shown.to_text());
        let detail = &shown.to_json()["rings"];
        assert_eq!(
            (detail[0]["ring"].as_str(), detail[1]["ring"].as_str()),
            (Some("receive"), Some("send"))
        );
        assert_eq!(shown.to_json()["descriptors"].as_array().unwrap().len(), 32);
        assert!(shown.to_text().contains("this router") || shown.to_text().contains("the peer"));
    }
}

#[test]
fn an_end_of_a_link_has_the_same_address_each_time_and_the_other_end_another() {
    let path = name("mac");
    let address = |role: &str| {
        let mut console = Console::new();
        console.run(&format!("create memif socket id 1 filename {path}")).expect("a socket");
        console
            .run(&format!("create interface memif id 0 socket-id 1 {role}"))
            .expect("an interface");
        assert!(!console.text("show running-config").contains("hw-addr"));
        let id = console.engine.interface_id("memif1/0").expect("its name");
        console.engine.interface(id).expect("an interface").row().mac
    };
    assert_eq!(address("slave"), address("slave"));
    assert_ne!(address("slave"), address("master"));
}
