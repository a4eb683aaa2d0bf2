//! Linux hosts in namespaces that talk through two taps, with everything on their side as Linux has
//! it by default.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Instant;
use std::{cell::RefCell, thread};

use quiver_control::{Commands, Registry};
use quiver_core::clock::Clock;
use quiver_core::graph::builder::{EngineConfig, GraphBuilder};
use quiver_core::graph::node::Never;
use quiver_core::memory::mapping::PageSize;
use quiver_core::{Context, Engine, Frame, InterfaceId, Node, NodeId, NodeSpec};
use quiver_linux::lab::traffic::{IPERF_PORT, iperf, ping};
use quiver_linux::lab::{Namespace, PATIENCE, why_not};

/// Where frames go by the interface that they came in by: a cross-connect in the place of
/// `ethernet-input`.
type Patches = Arc<Vec<AtomicU16>>;

struct Patch(Patches);

impl Node for Patch {
    fn run(&mut self, _: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|p| Ok::<_, Never>(NodeId(self.0[p.rx.index()].load(Ordering::Relaxed))));
    }
}

/// Two namespaces, each with Linux's end of a tap.
struct Lab {
    engine: Engine,
    commands: Rc<RefCell<Commands<Engine>>>,
    patches: Patches,
    a: Namespace,
    b: Namespace,
}

impl Lab {
    /// None, with the reason printed, where namespaces cannot be made.
    fn new() -> Option<Lab> {
        if let Some(reason) = why_not() {
            eprintln!("skipped: {reason}");
            return None;
        }
        let config = EngineConfig {
            worker_cores: vec![0],
            buffers: 16_384,
            pages: PageSize::Small,
            ..EngineConfig::default()
        };
        let mut registry = Registry::new(GraphBuilder::new(config, Clock::tsc()).expect("graph"));
        let patches: Patches = Arc::new((0..64).map(|_| AtomicU16::new(0)).collect());
        let shared = patches.clone();
        let patch = NodeSpec::new("ethernet-input", "a cross-connect", move |_| {
            Box::new(Patch(shared.clone()))
        });
        registry.graph.node(patch.takes_offloads());
        quiver_tap::register(&mut registry);
        let (engine, commands) = registry.build().expect("engine");
        Some(Lab { engine, commands, patches, a: Namespace::new("a"), b: Namespace::new("b") })
    }

    fn try_run(&mut self, line: &str) -> Result<String, String> {
        let output = self.commands.borrow().execute(&mut self.engine, line);
        output.map(|o| o.to_text()).map_err(|e| e.to_string())
    }

    fn run(&mut self, line: &str) -> String {
        self.try_run(line).expect(line)
    }

    fn id(&self, name: &str) -> InterfaceId {
        self.engine.interface_id(name).expect(name)
    }

    /// Make both taps, set them up, and connect them.
    fn connect(&mut self, options: &str) {
        for (number, namespace) in [(0, self.a.name.clone()), (1, self.b.name.clone())] {
            let line = format!(
                "create tap id {number} host-if-name eth0 host-ns {namespace} host-ip4-addr \
                 10.9.0.{0}/24 host-ip6-addr 2001:db8:9::{0}/64 host-mac-addr 02:00:00:00:00:0{0} \
                 {options}",
                number + 1
            );
            assert_eq!(self.run(&line), format!("tap{number}\n"));
            let id = self.id(&format!("tap{number}"));
            self.engine.set_admin_up(id, true).expect("up");
        }
        for (from, to) in [("tap0", "tap1-output"), ("tap1", "tap0-output")] {
            let output = self.engine.node_id(to).expect("output");
            self.patches[self.id(from).index()].store(output.0, Ordering::Relaxed);
        }
        self.engine.start_threads().expect("threads");
        // Duplicate address detection of IPv6 takes a second or two.
        self.turn_until(|lab| {
            [&lab.a, &lab.b].iter().all(|n| {
                let text = n.ip("-6 addr show dev eth0");
                text.contains("2001:db8:9::") && !text.contains("tentative")
            })
        });
    }

    /// Let the control thread work until something holds; false when it does not in time.
    fn turn_until(&mut self, holds: impl Fn(&mut Lab) -> bool) -> bool {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            self.engine.turn(10);
            if holds(self) {
                return true;
            }
        }
        false
    }

    /// Have something done by the hosts while the router works.
    fn while_routing<R: Send>(
        &mut self,
        work: impl FnOnce(&Namespace, &Namespace) -> R + Send,
    ) -> R {
        let (a, b) = (&self.a, &self.b);
        let engine = &mut self.engine;
        thread::scope(|scope| {
            let hosts = scope.spawn(|| work(a, b));
            while !hosts.is_finished() {
                engine.turn(10);
            }
            hosts.join().unwrap_or_else(|panic| {
                let counts = engine.reason_counts(true);
                counts.iter().for_each(|r| eprintln!("{} {} {}", r.count, r.node, r.reason));
                std::panic::resume_unwind(panic)
            })
        })
    }

    /// Reasons counted by now.
    fn reason(&self, name: &str) -> u64 {
        self.engine.reason_counts(true).iter().filter(|r| r.reason == name).map(|r| r.count).sum()
    }

    /// Delete all taps; all buffers must be back, and Linux's ends gone.
    fn finish(mut self) {
        let names: Vec<String> = self.engine.all_interfaces().map(|i| i.name.clone()).collect();
        for name in names {
            self.run(&format!("delete tap {name}"));
        }
        assert_eq!(self.run("show tap"), "no taps\n");
        let total = self.engine.pool().total();
        let balanced = self.turn_until(|lab| lab.engine.pool().free() == total);
        assert!(balanced, "{} of {total} buffers are free", self.engine.pool().free());
        assert!(!self.a.ip("-o link").contains("eth0"));
    }
}

#[test]
fn hosts_ping_and_talk_tcp_and_udp_with_all_offloads_on() {
    let Some(mut lab) = Lab::new() else { return };
    lab.connect("rx-ring-size 1024 tx-ring-size 256");
    lab.while_routing(|a, b| {
        ping(a, "10.9.0.2", 56);
        ping(a, "10.9.0.2", 1472);
        ping(b, "2001:db8:9::1", 1452);
        for (address, name) in [("10.9.0.2", "IPv4"), ("2001:db8:9::2", "IPv6")] {
            let tcp = iperf(a, b, address, "");
            let back = iperf(a, b, address, "-R");
            let udp = iperf(a, b, address, "-u -b 50M -l 1400");
            let udp_back = iperf(a, b, address, "-u -b 50M -l 1400 -R");
            assert!(udp_back.has_arrived(), "UDP back over {name}");
            assert!(tcp.is_whole() && back.is_whole(), "TCP over {name}");
            assert!(udp.has_arrived(), "UDP over {name}");
        }
    });
    assert!(lab.reason("super-frame") > 0 && lab.reason("checksum-unfinished") > 0);
    assert_eq!(lab.reason("bad-offload") + lab.reason("tx-refused"), 0);
    assert!(lab.a.ip("-d link show eth0").contains("qlen 1024"));
    lab.finish();
}

#[test]
fn jumbo_frames_and_several_queues_work() {
    let Some(mut lab) = Lab::new() else { return };
    lab.connect("host-mtu-size 9000 num-rx-queues 2");
    lab.while_routing(|a, b| {
        ping(a, "10.9.0.2", 8972);
        ping(b, "2001:db8:9::1", 8952);
        let tcp = iperf(a, b, "10.9.0.2", "-P 4");
        assert!(tcp.is_whole(), "{} of {} bytes", tcp.received_bytes, tcp.sent_bytes);
    });
    assert_eq!(lab.engine.interface(lab.id("tap0")).expect("tap0").row().mtu_bytes, 9000);
    lab.finish();
}

#[test]
fn each_side_sees_the_other_go_down_and_away() {
    let Some(mut lab) = Lab::new() else { return };
    lab.connect("");
    let link_up = |lab: &mut Lab| lab.engine.interface(lab.id("tap0")).is_some_and(|i| i.link_up);
    assert!(lab.a.ip("link show eth0").contains("LOWER_UP"));
    let id = lab.id("tap0");
    lab.engine.set_admin_up(id, false).expect("down");
    assert!(lab.a.ip("link show eth0").contains("NO-CARRIER"));
    lab.engine.set_admin_up(id, true).expect("up");
    lab.a.ip("link set eth0 down");
    assert!(lab.turn_until(|lab| !link_up(lab)));
    lab.a.ip("link set eth0 mtu 1400");
    lab.a.ip("link set eth0 up");
    assert!(lab.turn_until(|lab| {
        link_up(lab) && lab.engine.interface(id).is_some_and(|i| i.row().mtu_bytes == 1400)
    }));
    lab.a.ip("link del eth0");
    assert!(lab.turn_until(|lab| !link_up(lab)));
    assert!(lab.run("show tap").contains("gone"));
    assert!(lab.engine.set_admin_up(id, true).is_err());
    // What the other host sends now finds the interface down, and is counted.
    lab.while_routing(|_, b| drop(b.output("ping -c 3 -i 0.1 -W 1 10.9.0.1")));
    assert!(lab.reason("interface-down") > 0);
    assert!(
        lab.turn_until(|lab| lab.engine.is_asleep(quiver_core::WorkerId(0))),
        "nothing keeps it awake"
    );
    lab.finish();
}

#[test]
fn the_mtu_set_on_our_end_is_linuxs_too_and_a_name_is_free_again_at_once() {
    let Some(mut lab) = Lab::new() else { return };
    lab.connect("");
    let id = lab.id("tap0");
    lab.engine.set_mtu(id, 4000).expect("mtu");
    assert!(lab.a.ip("link show eth0").contains("mtu 4000"));
    // More than Linux lets a tap have: its end stays as it is, and nothing goes back and forth.
    lab.engine.set_mtu(id, 65_535).expect("mtu");
    for _ in 0..100 {
        lab.engine.turn(10);
    }
    assert!(lab.a.ip("link show eth0").contains("mtu 4000"));
    let namespace = lab.a.name.clone();
    for _ in 0..5 {
        lab.run("delete tap tap0");
        lab.run(&format!("create tap id 0 host-if-name eth0 host-ns {namespace}"));
    }
    lab.finish();
}

#[test]
fn a_device_that_vanishes_under_traffic_costs_only_what_was_under_way() {
    let Some(mut lab) = Lab::new() else { return };
    lab.connect("num-rx-queues 2");
    lab.while_routing(|a, b| {
        let daemon = b.start("iperf3 -s -1");
        b.wait_for_listener(IPERF_PORT);
        let client = a.start("iperf3 -c 10.9.0.2 -t 600 -P 2 --bidir");
        b.wait_for_bytes("eth0", 4 << 20);
        b.ip("link del eth0");
        client.stop();
        daemon.stop();
    });
    assert!(lab.turn_until(|lab| !lab.engine.interface(lab.id("tap1")).is_some_and(|i| i.link_up)));
    assert!(lab.engine.interface(lab.id("tap0")).is_some_and(|i| i.link_up));
    assert!(lab.turn_until(|lab| lab.run("show tap").contains("gone")));
    lab.run("delete tap tap1");
    let namespace = lab.b.name.clone();
    lab.run(&format!("create tap id 1 host-if-name eth0 host-ns {namespace}"));
    lab.finish();
}

#[test]
fn a_tap_that_linux_moves_to_another_namespace_goes_on() {
    let Some(mut lab) = Lab::new() else { return };
    lab.connect("");
    let other = Namespace::new("c");
    lab.a.ip(&format!("link set eth0 netns {}", other.name));
    let link_up = |lab: &mut Lab| lab.engine.interface(lab.id("tap0")).is_some_and(|i| i.link_up);
    assert!(lab.turn_until(|lab| !link_up(lab)), "Linux sets down what it moves");
    other.ip("link set eth0 name moved0");
    other.ip("addr add 10.9.0.1/24 dev moved0");
    other.ip("link set moved0 up");
    assert!(lab.turn_until(link_up));
    assert!(lab.run("show tap").contains("moved0"));
    lab.while_routing(|_, b| ping(b, "10.9.0.1", 56));
    lab.finish();
}

#[test]
fn a_tap_without_a_number_gets_the_lowest_that_is_free() {
    let Some(mut lab) = Lab::new() else { return };
    let namespace = lab.a.name.clone();
    let create =
        |id: &str, end: &str| format!("create tap {id}host-if-name {end} host-ns {namespace}");
    assert_eq!(lab.run(&create("", "first")), "tap0\n");
    assert_eq!(lab.run(&create("id 1 ", "second")), "tap1\n");
    assert_eq!(lab.run(&create("", "third")), "tap2\n");
    lab.run("delete tap tap1");
    assert_eq!(lab.run(&create("", "fourth")), "tap1\n");
    let config = lab.commands.borrow().running_config(&lab.engine);
    assert!(config.contains("create tap id 2 host-if-name third"), "{config}");
    lab.finish();
}

#[test]
fn what_cannot_be_is_refused_in_words_and_leaves_nothing() {
    let Some(mut lab) = Lab::new() else { return };
    let namespace = lab.a.name.clone();
    let cases = [
        (
            "create tap id 7 host-ns no-such-namespace".to_owned(),
            "network namespace /run/netns/no-such-namespace",
        ),
        (
            format!("create tap id 7 host-ns {namespace} host-if-name lo"),
            "Linux has an interface lo already",
        ),
        (
            format!("create tap id 7 host-ns {namespace} host-if-name a/b"),
            "no name of a Linux interface",
        ),
        (
            format!("create tap id 7 host-ns {namespace} host-mac-addr ff:ff:ff:ff:ff:ff"),
            "not broadcast",
        ),
        ("create tap id".to_owned(), "ends too early"),
        ("delete tap tap7".to_owned(), "no interface 'tap7'"),
    ];
    for (line, expected) in cases {
        let refused = lab.try_run(&line).expect_err(&line);
        assert!(refused.contains(expected), "{line}: {refused}");
    }
    let full = format!(
        "create tap id 7 host-if-name x7 host-ns {namespace} host-ip4-addr 192.0.2.1/24 \
         host-ip6-addr 2001:db8::1/64 host-mac-addr 02:00:00:00:00:07 host-mtu-size 1600 \
         num-rx-queues 2 rx-ring-size 64"
    );
    lab.run(&full);
    assert!(lab.try_run(&full).is_err_and(|e| e.contains("interface tap7 exists already")));
    let text = lab.a.ip("addr show dev x7");
    for part in ["192.0.2.1/24", "2001:db8::1/64", "02:00:00:00:00:07", "mtu 1600"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(lab.commands.borrow().running_config(&lab.engine), format!("{full}\n"));
    lab.finish();
}
