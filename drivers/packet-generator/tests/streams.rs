//! Streams on an engine that is stepped by hand, from commands to counters.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{cell::RefCell, rc::Rc};

use quiver_control::{Commands, Registry};
use quiver_core::clock::Clock;
use quiver_core::graph::builder::{EngineConfig, GraphBuilder};
use quiver_core::graph::node::Never;
use quiver_core::memory::mapping::PageSize;
use quiver_core::pcap_file::{LINK_ETHERNET, PcapWriter};
use quiver_core::{Context, Engine, Frame, Node, NodeId, NodeSpec};
use quiver_packet_generator::{
    Edit, Order, StreamConfig, add_stream, enable_stream, stream_counts,
};

/// Sends everything to one node: in the place of `ethernet-input`.
struct To(NodeId);

impl Node for To {
    fn run(&mut self, _: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|_| Ok::<_, Never>(self.0));
    }
}

struct Router {
    engine: Engine,
    commands: Rc<RefCell<Commands<Engine>>>,
    time: Arc<AtomicU64>,
}

impl Router {
    fn new() -> Router {
        let (clock, time) = Clock::manual();
        let config =
            EngineConfig { buffers: 4096, pages: PageSize::Small, ..EngineConfig::default() };
        let graph = GraphBuilder::new(config, clock).expect("graph");
        let mut registry = Registry::new(graph);
        let drop = |w: &quiver_core::graph::node::Wiring<'_>| {
            Box::new(To(w.node("error-drop"))) as Box<dyn Node>
        };
        registry.graph.node(NodeSpec::new("ethernet-input", "stands in", drop));
        quiver_packet_generator::register(&mut registry);
        let (engine, commands) = registry.build().expect("engine");
        Router { engine, commands, time }
    }

    fn run(&mut self, line: &str) -> String {
        self.try_run(line).expect(line)
    }

    fn try_run(&mut self, line: &str) -> Result<String, String> {
        let output = self.commands.borrow().execute(&mut self.engine, line);
        output.map(|o| o.to_text()).map_err(|e| e.to_string())
    }

    fn up(&mut self, name: &str) {
        let id = self.engine.interface_id(name).expect(name);
        self.engine.set_admin_up(id, true).expect("up");
    }

    fn sent(&self, name: &str) -> u64 {
        let id = self.engine.interface_id(name).expect(name);
        self.engine.interface_totals(id).tx_packets
    }

    fn assert_balanced(&self) {
        assert_eq!(self.engine.pool().free(), self.engine.pool().total());
    }
}

const DATA: &str =
    "data { IP4: 1.2.3 -> 4.5.6 UDP: 1.0.0.1 - 1.0.0.254 -> 2.0.0.1 UDP: 5 -> 6 incrementing 18 }";

#[test]
fn a_stream_sends_its_limit_and_no_more() {
    let mut router = Router::new();
    assert_eq!(router.run("create packet-generator interface pg0"), "pg0\n");
    router.run("create packet-generator interface pg1");
    router.up("pg1");
    router.run(&format!(
        "packet-generator new {{ name x limit 1000 interface pg0 node pg1-output {DATA} }}"
    ));
    (0..10).for_each(|_| assert_eq!(router.engine.step(), 0));
    router.run("packet-generator enable-stream x");
    (0..10).for_each(|_| assert!(router.engine.step() <= 256));
    assert_eq!(router.sent("pg1"), 1000);
    let counts = stream_counts(&router.engine, "x").expect("stream");
    assert!(counts.done && counts.sent == 1000);
    assert!(router.run("show packet-generator").contains("done"));
    router.run("packet-generator enable-stream"); // again, from the start
    (0..10).for_each(|_| assert!(router.engine.step() <= 256));
    assert_eq!(router.sent("pg1"), 2000);
    router.assert_balanced();
}

#[test]
fn a_rate_holds_by_the_clock() {
    let mut router = Router::new();
    router.run("create packet-generator interface pg0");
    router.up("pg0");
    router.run(&format!(
        "packet-generator new {{ name x rate 100k size 64-128 node pg0-output {DATA} }}"
    ));
    router.run("packet-generator enable-stream x");
    for _ in 0..1000 {
        router.engine.step();
        router.time.fetch_add(100_000, Ordering::Relaxed);
    }
    let sent = router.sent("pg0");
    assert!((9_990..=10_001).contains(&sent), "{sent}");
    router.run("packet-generator disable-stream");
    router.time.fetch_add(1_000_000_000, Ordering::Relaxed);
    assert_eq!(router.engine.step(), 0);
    router.assert_balanced();
}

#[test]
fn without_a_node_packets_go_the_way_of_the_interface() {
    let mut router = Router::new();
    router.run("create packet-generator interface pg0");
    router.run(&format!("packet-generator new {{ name x limit 5 maxframe 2 {DATA} }}"));
    router.run("packet-generator enable-stream x");
    assert_eq!((router.engine.step(), router.engine.step(), router.engine.step()), (2, 2, 1));
    let id = router.engine.interface_id("pg0").expect("pg0");
    let totals = router.engine.interface_totals(id);
    assert_eq!((totals.rx_packets, totals.drops), (5, 5)); // down: dropped, and counted
    router.assert_balanced();
}

#[test]
fn jumbo_packets_are_chained_and_an_empty_pool_is_survived() {
    let mut router = Router::new();
    router.run("create packet-generator interface pg0");
    router.up("pg0");
    router.run(
        "packet-generator new { name x size 9000 limit 3000 node pg0-output data { hex 0x01 } }",
    );
    router.run("packet-generator enable-stream x");
    (0..100).for_each(|_| assert!(router.engine.step() <= 256));
    let id = router.engine.interface_id("pg0").expect("pg0");
    let totals = router.engine.interface_totals(id);
    assert_eq!(totals.tx_bytes, 9000 * 3000);
    router.assert_balanced();
}

#[test]
fn packets_come_from_a_file_as_they_are() {
    let file = std::env::temp_dir().join(format!("quiver-pg-{}.pcap", std::process::id()));
    let mut writer = PcapWriter::new(Vec::new(), LINK_ETHERNET).expect("writer");
    for size in [60, 1514, 300] {
        writer.write(1, &vec![size as u8; size]).expect("record");
    }
    std::fs::write(&file, writer.into_inner()).expect("file");
    let mut router = Router::new();
    router.run("create packet-generator interface pg0");
    router.up("pg0");
    router.run(&format!(
        "packet-generator new {{ name x limit 6 node pg0-output pcap {} }}",
        file.display()
    ));
    router.run("packet-generator enable-stream x");
    (0..3).for_each(|_| assert!(router.engine.step() <= 256));
    let id = router.engine.interface_id("pg0").expect("pg0");
    assert_eq!(router.engine.interface_totals(id).tx_bytes, 2 * (60 + 1514 + 300));
    let config = router.commands.borrow().running_config(&router.engine);
    assert!(config.contains(&format!("pcap \"{}\"", file.display())), "{config}");
    std::fs::write(&file, b"no pcap at all, this is").expect("file");
    let refused =
        router.try_run(&format!("packet-generator new {{ name y pcap {} }}", file.display()));
    assert!(refused.as_ref().is_err_and(|e| e.contains("not a pcap file")), "{refused:?}");
    let _ = std::fs::remove_file(&file);
}

#[test]
fn the_running_config_makes_the_same_streams() {
    let mut router = Router::new();
    router.run("create packet-generator interface pg3");
    router.run(
        "packet-generator new { name a rate 1.5M limit 7 maxframe 9 worker 0 size 64-70 interface \
         pg3
        node error-drop data { # a comment
            IP4: 1.2.3 -> 4.5.6
            UDP: 1.0.0.1 + 1.9.9.9 -> 2.0.0.1  UDP: 5 -> 6 } }",
    );
    router.run("packet-generator new { name b interface pg3 data { hex 0x00 } }");
    router.run("packet-generator enable-stream b");
    let first = router.commands.borrow().running_config(&router.engine);
    let mut second = Router::new();
    first.lines().for_each(|line| drop(second.run(line)));
    assert_eq!(second.commands.borrow().running_config(&second.engine), first);
    assert_eq!(second.run("show packet-generator json"), router.run("show packet-generator json"));
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let mut router = Router::new();
    router.run("create packet-generator interface pg0");
    let cases = [
        ("create packet-generator interface pg0", "exists already"),
        ("create packet-generator interface eth0", "pg0 to pg65535"),
        ("create packet-generator interface pg01", "pg0 to pg65535"),
        ("packet-generator new { name x }", "nothing to send"),
        ("packet-generator new { name x data { UDP: 1 => 2 } }", "'=>': `->` belongs here"),
        ("packet-generator new { name x size 0 data { hex 0x00 } }", "0 bytes"),
        (
            "packet-generator new { name x size 20 data { UDP: 1.1.1.1 + 2.2.2.2 -> 3.3.3.3 UDP: 1 \
             -> 2 } }",
            "ends at byte 28",
        ),
        ("packet-generator new { name x worker 9 data { hex 0x00 } }", "no worker 9"),
        ("packet-generator new { name x node nowhere data { hex 0x00 } }", "nowhere"),
        ("packet-generator new { name x pcap /nowhere data { hex 0x00 } }", "not both"),
        ("packet-generator new { name x pcap /nowhere.pcap }", "No such file"),
        ("packet-generator enable-stream y", "no stream y"),
        ("packet-generator delete y", "no stream y"),
    ];
    for (line, expected) in cases {
        let message = router.try_run(line).expect_err(line);
        assert!(message.contains(expected), "{line}: {message}");
    }
    assert_eq!(router.run("show packet-generator"), "no streams\n");
    router.run("packet-generator new { name x data { hex 0x00 } }");
    assert!(router.try_run("packet-generator new { name x data { hex 0x00 } }").is_err());
}

#[test]
fn an_interface_takes_its_streams_with_it() {
    let mut router = Router::new();
    router.run("create packet-generator interface pg0");
    router.run("packet-generator new { name x data { hex 0x00 } }");
    router.run("packet-generator enable-stream x");
    router.engine.step();
    router.run("delete packet-generator interface pg0");
    assert_eq!(router.run("show packet-generator"), "no streams\n");
    assert_eq!(router.engine.step(), 0);
    router.assert_balanced();
}

#[test]
fn a_program_adds_streams_with_edits_of_its_own() {
    let mut router = Router::new();
    router.run("create packet-generator interface pg0");
    router.up("pg0");
    let id = router.engine.interface_id("pg0").expect("pg0");
    let mut config = StreamConfig::new("x", vec![vec![0; 60], vec![0; 61]]);
    config.edits = vec![Edit::u32(30, 0x0a00_0000u32, 2_000_000, Order::Random, Vec::new())];
    config.node = Some("pg0-output".into());
    config.limit = 100;
    add_stream(&mut router.engine, id, config.clone()).expect("stream");
    enable_stream(&mut router.engine, "x").expect("enable");
    router.engine.step();
    assert_eq!(router.sent("pg0"), 100);
    config.name = "y".into();
    config.edits[0].offset = 57;
    let refused = add_stream(&mut router.engine, id, config).expect_err("outside").to_string();
    assert!(refused.contains("ends at byte 61, a packet at 60"), "{refused}");
    router.assert_balanced();
}
