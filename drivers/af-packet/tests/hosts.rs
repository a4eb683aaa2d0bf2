//! Linux hosts in namespaces that talk through two host interfaces, with everything on their side
//! as Linux has it by default: checksum and segmentation offload are on.

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
use quiver_linux::lab::traffic::{iperf, ping};
use quiver_linux::lab::{Namespace, PATIENCE, run, unique, why_not};

/// Where frames go by the interface that they came in by: a cross-connect in the place of
/// `ethernet-input`.
type Patches = Arc<Vec<AtomicU16>>;

struct Patch(Patches);

impl Node for Patch {
    fn run(&mut self, _: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|p| Ok::<_, Never>(NodeId(self.0[p.rx.index()].load(Ordering::Relaxed))));
    }
}

/// Two namespaces, `a` and `b`, each with a veth whose other end the router has.
struct Lab {
    engine: Engine,
    commands: Rc<RefCell<Commands<Engine>>>,
    patches: Patches,
    a: Namespace,
    b: Namespace,
    ends: [String; 2],
}

impl Drop for Lab {
    fn drop(&mut self) {
        for end in &self.ends {
            let _ = std::process::Command::new("ip").args(["link", "del", end]).output();
        }
    }
}

/// A veth between the router and a host.
fn plug_in(end: &str, host: &Namespace, number: u8, mtu: u32) {
    run("ip", &["link", "add", end, "type", "veth", "peer", "name", "eth0", "netns", &host.name]);
    host.ip(&format!("link set eth0 mtu {mtu}"));
    run("ip", &["link", "set", end, "mtu", &mtu.to_string()]);
    host.ip(&format!("addr add 10.9.0.{number}/24 dev eth0"));
    host.ip(&format!("addr add 2001:db8:9::{number}/64 dev eth0 nodad"));
    host.ip("link set eth0 up");
}

impl Lab {
    /// None, with the reason printed, where namespaces cannot be made.
    fn new(mtu: u32) -> Option<Lab> {
        if let Some(reason) = why_not() {
            eprintln!("skipped: {reason}");
            return None;
        }
        let (a, b) = (Namespace::new("a"), Namespace::new("b"));
        let ends = [short(), short()];
        for (end, host, number) in [(&ends[0], &a, 1), (&ends[1], &b, 2)] {
            plug_in(end, host, number, mtu);
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
        quiver_af_packet::register(&mut registry);
        let (engine, commands) = registry.build().expect("engine");
        Some(Lab { engine, commands, patches, a, b, ends })
    }

    fn run(&mut self, line: &str) -> String {
        let output = self.commands.borrow().execute(&mut self.engine, line);
        output.map(|o| o.to_text()).expect(line)
    }

    fn id(&self, end: usize) -> InterfaceId {
        self.engine.interface_id(&format!("host-{}", self.ends[end])).expect("interface")
    }

    /// Make both interfaces, set them up, and connect them.
    fn connect(&mut self, options: &str) {
        for end in 0..2 {
            let line = format!("create host-interface name {}{options}", self.ends[end]);
            assert_eq!(self.run(&line), format!("host-{}\n", self.ends[end]));
            let id = self.id(end);
            self.engine.set_admin_up(id, true).expect("up");
        }
        for (from, to) in [(0, 1), (1, 0)] {
            let output =
                self.engine.node_id(&format!("host-{}-output", self.ends[to])).expect("output");
            self.patches[self.id(from).index()].store(output.0, Ordering::Relaxed);
        }
        self.engine.start_threads().expect("threads");
        self.turn_until(|lab| {
            (0..2).all(|end| lab.engine.interface(lab.id(end)).is_some_and(|i| i.link_up))
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

    /// Delete both interfaces; all buffers must be back.
    fn finish(mut self) {
        for end in self.ends.clone() {
            self.run(&format!("delete host-interface name {end}"));
        }
        let total = self.engine.pool().total();
        let balanced = self.turn_until(|lab| lab.engine.pool().free() == total);
        assert!(balanced, "{} of {total} buffers are free", self.engine.pool().free());
    }
}

/// A name that fits a link.
fn short() -> String {
    unique("e")
}

#[test]
fn hosts_ping_and_talk_tcp_and_udp_with_all_offloads_on() {
    let Some(mut lab) = Lab::new(1500) else { return };
    lab.connect("");
    lab.while_routing(|a, b| {
        ping(a, "10.9.0.2", 56);
        ping(a, "10.9.0.2", 1472);
        ping(b, "2001:db8:9::1", 1452);
        for (address, name) in [("10.9.0.2", "IPv4"), ("2001:db8:9::2", "IPv6")] {
            let tcp = iperf(a, b, address, "");
            let back = iperf(a, b, address, "-R");
            let udp = iperf(a, b, address, "-u -b 200M -l 1400");
            assert!(tcp.is_whole() && back.is_whole(), "TCP over {name}");
            assert!(udp.has_arrived(), "UDP over {name}");
        }
    });
    assert!(lab.reason("super-frame") > 0, "the veths sent super-frames");
    assert!(lab.reason("checksum-unfinished") > 0, "the veths left checksums");
    assert_eq!(lab.reason("bad-offload") + lab.reason("tx-too-long"), 0);
    lab.finish();
}

#[test]
fn jumbo_frames_and_several_queues_work() {
    let Some(mut lab) = Lab::new(9000) else { return };
    lab.connect(" num-rx-queues 2 num-tx-queues 1");
    lab.while_routing(|a, b| {
        ping(a, "10.9.0.2", 8972);
        ping(b, "2001:db8:9::1", 8952);
        let tcp = iperf(a, b, "10.9.0.2", "-P 4");
        assert!(tcp.is_whole(), "{} of {} bytes", tcp.received_bytes, tcp.sent_bytes);
    });
    assert_eq!(lab.engine.interface(lab.id(0)).expect("interface").row().mtu_bytes, 9000);
    lab.finish();
}

#[test]
fn tags_that_the_kernel_takes_out_are_put_back() {
    let Some(mut lab) = Lab::new(1500) else { return };
    lab.connect("");
    // The kernel here has no VLAN devices: tagged frames are made and looked at by packet sockets.
    let sent = "import socket,sys;s=socket.socket(socket.AF_PACKET,socket.SOCK_RAW);\
                s.bind(('eth0',0));\
                f=bytes.fromhex('0200000000020200000000018100600588b5')+b'quiver'*10;\
                [s.send(f)for _ in range(10)]";
    let seen = lab.while_routing(|a, b| {
        let dump = b.start("timeout 60 tcpdump -n -e -i eth0 -c 10 -Q in vlan 5");
        b.wait_for_packet_socket();
        let script = std::env::temp_dir().join(format!("{}.py", unique("vlan")));
        std::fs::write(&script, sent).expect("script");
        a.run(&format!("python3 {}", script.display()));
        let _ = std::fs::remove_file(&script);
        dump.finish()
    });
    assert!(seen.lines().filter(|l| l.contains("vlan 5, p 3")).count() == 10, "{seen}");
    lab.finish();
}

#[test]
fn mtu_address_and_link_are_followed_until_the_link_is_gone() {
    let Some(mut lab) = Lab::new(1500) else { return };
    lab.connect("");
    let end = lab.ends[0].clone();
    run("ip", &["link", "set", &end, "mtu", "2000"]);
    run("ip", &["link", "set", &end, "address", "02:00:00:00:77:01"]);
    let followed = lab.turn_until(|lab| {
        let id = lab.id(0);
        let row = lab.engine.interface(id).expect("interface").row().clone();
        row.mtu_bytes == 2000 && row.mac == [2, 0, 0, 0, 0x77, 1]
    });
    assert!(followed);
    lab.a.ip("link set eth0 down");
    assert!(lab.turn_until(|lab| lab.engine.interface(lab.id(0)).is_some_and(|i| !i.link_up)));
    lab.a.ip("link set eth0 up");
    assert!(lab.turn_until(|lab| lab.engine.interface(lab.id(0)).is_some_and(|i| i.link_up)));
    run("ip", &["link", "del", &end]);
    assert!(lab.turn_until(|lab| lab.engine.interface(lab.id(0)).is_some_and(|i| !i.link_up)));
    let id = lab.id(0);
    let facts = lab.engine.interface(id).expect("interface").device.facts();
    assert!(facts.iter().any(|(name, value)| name == "times-gone" && *value == 1), "{facts:?}");
    // Frames from the other side find nobody, and are counted.
    lab.while_routing(|_, b| drop(b.output("ping -c 3 -i 0.1 -W 1 10.9.0.1")));
    assert!(lab.reason("interface-down") > 0);
    let asleep = lab.turn_until(|lab| lab.engine.is_asleep(quiver_core::WorkerId(0)));
    assert!(asleep, "nothing keeps the worker awake");
    lab.finish();
}

#[test]
fn a_link_that_returns_is_used_again() {
    for options in ["", " num-rx-queues 3 num-tx-queues 1"] {
        let Some(mut lab) = Lab::new(1500) else { return };
        lab.connect(options);
        let (end, id) = (lab.ends[0].clone(), lab.id(0));
        for times in 1..=3 {
            run("ip", &["link", "del", &end]);
            if times < 3 {
                // Once seen to be gone, and once there again before anybody looked.
                assert!(lab.turn_until(|lab| lab.engine.interface(id).is_some_and(|i| !i.link_up)));
            }
            plug_in(&end, &lab.a, 1, 2000);
            assert!(lab.turn_until(|lab| lab.engine.interface(id).is_some_and(|i| i.link_up)));
            let mac = run("cat", &[&format!("/sys/class/net/{end}/address")]);
            let interface = lab.engine.interface(id).expect("interface");
            let [a, b, c, d, e, f] = interface.row().mac;
            assert_eq!(mac.trim(), format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}"));
            assert_eq!(interface.row().mtu_bytes, 2000);
            let facts = interface.device.facts();
            assert!(
                facts.iter().any(|(name, value)| name == "times-gone" && *value == times),
                "{facts:?}"
            );
            lab.while_routing(|a, b| {
                a.run("ping -c 5 -i 0.05 -W 5 10.9.0.2");
                b.run("ping -c 5 -i 0.05 -W 5 10.9.0.1");
            });
        }
        lab.finish();
    }
}

#[test]
fn the_mtu_is_linuxs_at_most_and_the_operators_below_it() {
    let Some(mut lab) = Lab::new(1500) else { return };
    lab.connect("");
    let (end, id) = (lab.ends[0].clone(), lab.id(0));
    let mtu = |lab: &mut Lab| lab.engine.interface(id).map_or(0, |i| i.row().mtu_bytes);
    lab.engine.set_mtu(id, 9000).expect("mtu");
    assert_eq!(mtu(&mut lab), 1500);
    run("ip", &["link", "set", &end, "mtu", "9000"]);
    assert!(lab.turn_until(|lab| mtu(lab) == 9000), "what was asked for is possible now");
    lab.engine.set_mtu(id, 1400).expect("mtu");
    run("ip", &["link", "set", &end, "mtu", "1300"]);
    assert!(lab.turn_until(|lab| mtu(lab) == 1300), "Linux's is less");
    run("ip", &["link", "set", &end, "mtu", "2000"]);
    assert!(lab.turn_until(|lab| mtu(lab) == 1400), "the operator's is back");
    lab.finish();
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    let Some(mut lab) = Lab::new(1500) else { return };
    let end = lab.ends[0].clone();
    let cases = [
        ("create host-interface name no-such-link", "there is no Linux interface no-such-link"),
        ("create host-interface name far-too-long-for-linux", "no name of a Linux interface"),
        ("delete host-interface name no-such-link", "no such interface"),
    ];
    for (line, expected) in cases {
        let refused =
            lab.commands.borrow().execute(&mut lab.engine, line).expect_err(line).to_string();
        assert!(refused.contains(expected), "{refused}");
    }
    lab.run(&format!("create host-interface name {end} num-rx-queues 2"));
    let twice = format!("create host-interface name {end}");
    let refused =
        lab.commands.borrow().execute(&mut lab.engine, &twice).expect_err("twice").to_string();
    assert!(refused.contains("exists already"), "{refused}");
    let config = lab.commands.borrow().running_config(&lab.engine);
    assert_eq!(config, format!("create host-interface name {end} num-rx-queues 2\n"));
    lab.run(&format!("delete host-interface name {end}"));
    assert_eq!(lab.commands.borrow().running_config(&lab.engine), "");
    assert_eq!(lab.engine.pool().free(), lab.engine.pool().total());
}
