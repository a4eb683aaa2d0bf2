//! What operators type, and what becomes of packets, with a clock moved by hand.

use std::time::Duration;

use quiver_testkit::{Router, Settings};
use serde_json::Value;

fn router() -> Router {
    router_of(1)
}

fn router_of(workers: usize) -> Router {
    let settings = Settings { workers, ..Settings::default() };
    let features = &[quiver_ethernet::register, quiver_ip::register, quiver_shaper::register];
    let mut router = Router::with(settings, features);
    for (name, net) in [("e0", 0), ("e1", 1)] {
        router.interface(name);
        router.cli(&format!("set interface ip address {name} 10.0.{net}.1/24"));
        for host in 2..9 {
            router.cli(&format!("ip neighbor {name} 10.0.{net}.{host} 02:00:00:00:00:0{host}"));
        }
    }
    router
}

/// A frame of 1,000 bytes to a host, with a port of its own and a traffic class.
fn frame(host: u8, port: u16, class: u8) -> Vec<u8> {
    let mut header = vec![0x45, class, 3, 0xda, 0, 0, 0, 0, 64, 17, 0, 0];
    header.extend([10, 0, 0, 2, 10, 0, 1, host]);
    let sum = checksum(&header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    let ethernet = [2, 0xfe, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 8, 0];
    let ports = [port.to_be_bytes(), [0, 2]].concat();
    [&ethernet[..], &header[..], &ports, &[3, 0xc6, 0, 0], &[0; 958]].concat()
}

fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]])));
    let all: u32 = words.sum();
    !((all & 0xffff) + (all >> 16)) as u16
}

fn send(router: &mut Router, count: usize, host: u8) {
    (0..count).for_each(|_| router.inject("e0", &frame(host, 1, 0)));
    router.run();
}

/// Let time pass, in steps as small as a worker's.
fn pass(router: &mut Router, ms: u64) {
    for _ in 0..4 * ms {
        router.advance(Duration::from_micros(250));
    }
}

/// How many packets leave in so many milliseconds.
fn left_in(router: &mut Router, ms: u64) -> usize {
    pass(router, ms);
    router.sent("e1").len()
}

fn number(rows: &Value, row: usize, key: &str) -> u64 {
    rows[row][key].as_u64().unwrap_or_else(|| panic!("no {key} in {rows}"))
}

#[test]
fn what_is_above_the_rate_waits_and_leaves_at_the_rate() {
    let mut router = router();
    router.cli("shaper add name home rate 8M burst 10000");
    router.cli("shaper output home e1");
    send(&mut router, 60, 2);
    let at_once = router.sent("e1").len();
    assert!((10..=12).contains(&at_once), "{at_once}");
    // A million bytes a second.
    let in_time = left_in(&mut router, 20);
    assert!((19..=21).contains(&in_time), "{in_time}");
    let rows = router.json("show shaper home");
    assert_eq!(number(&rows, 0, "waiting"), 60 - (at_once + in_time) as u64);
    assert_eq!(number(&rows, 0, "flows"), 1);
    assert!(number(&rows, 0, "p99_us") > number(&rows, 0, "p50_us"));
    assert_eq!(left_in(&mut router, 100), 60 - at_once - in_time);
    let rows = router.json("show shaper home");
    assert_eq!((number(&rows, 0, "packets"), number(&rows, 0, "waiting")), (60, 0));
    assert_eq!(number(&rows, 0, "bytes"), 60_000);
    assert_eq!(router.count("shaper-output", "codel"), 0);
}

#[test]
fn a_flow_under_its_rate_passes_at_once() {
    let mut router = router();
    router.cli("shaper add name home rate 8M");
    router.cli("shaper output home e1");
    for _ in 0..50 {
        send(&mut router, 1, 2);
        assert_eq!(router.sent("e1").len(), 1);
        router.advance(Duration::from_micros(1100));
    }
    assert_eq!(router.count("shaper-output", "queued"), 0);
}

#[test]
fn subscribers_have_rates_of_their_own_below_their_site() {
    let mut router = router();
    for line in [
        "shaper add name site rate 24M",
        "shaper add name gold rate 16M parent site",
        "shaper add name silver rate 8M parent site",
        "shaper output site e1",
        "shaper subscriber add a profile gold address 10.0.1.2/32",
        "shaper subscriber add b profile silver address 10.0.1.3/32 10.0.1.4/32",
    ] {
        router.cli(line);
    }
    for host in [2, 3, 4] {
        send(&mut router, 200, host);
    }
    left_in(&mut router, 20);
    pass(&mut router, 40);
    let frames = router.sent("e1");
    let of = |host: u8| frames.iter().filter(|frame| frame[33] == host).count();
    assert!((72..=90).contains(&of(2)), "{}", of(2));
    assert!((36..=46).contains(&(of(3) + of(4))), "{} {}", of(3), of(4));
    assert!(of(3).abs_diff(of(4)) <= 4, "addresses of a subscriber share");
    let rows = router.json("show shaper subscribers b");
    assert_eq!(rows[0]["parent"], "site");
    assert_eq!(number(&rows, 0, "flows"), 2);
    let top = router.json("show shaper top 1");
    assert_eq!(top[0]["subscriber"], "b");
    assert!(number(&router.json("show shaper buffers"), 0, "used") > 200);
    router.advance(Duration::from_secs(60));
    router.sent("e1");
    assert_eq!(number(&router.json("show shaper buffers"), 0, "used"), 0);
}

#[test]
fn upload_plans_are_found_by_the_source() {
    let mut router = router();
    for line in [
        "shaper add name down rate 80M",
        "shaper add name up rate 8M burst 4000",
        "shaper add name uplink rate 1G",
        "shaper output uplink e1 upload",
        "shaper subscriber add a profile down upload up address 10.0.0.0/24",
    ] {
        router.cli(line);
    }
    send(&mut router, 40, 2);
    let at_once = router.sent("e1").len();
    assert!((4..=6).contains(&at_once), "{at_once}");
    let rows = router.json("show shaper subscribers a");
    assert_eq!((&rows[1]["direction"], &rows[1]["profile"]), (&"upload".into(), &"up".into()));
    assert!(number(&rows, 1, "waiting") > 30);
    left_in(&mut router, 200);
}

#[test]
fn a_change_of_rate_keeps_what_waits() {
    let mut router = router();
    router.cli("shaper add name home rate 1M burst 2000");
    router.cli("shaper output home e1");
    send(&mut router, 100, 2);
    router.sent("e1");
    router.cli("shaper add name home rate 80M");
    assert!(left_in(&mut router, 20) >= 96);
    assert_eq!(number(&router.json("show shaper home"), 0, "packets"), 100);
}

#[test]
fn what_waits_goes_on_when_its_shaper_or_subscriber_goes() {
    let mut router = router();
    for line in [
        "shaper add name home rate 1M burst 2000",
        "shaper output home e1",
        "shaper subscriber add a profile home parent home address 10.0.1.3/32",
    ] {
        router.cli(line);
    }
    send(&mut router, 50, 2);
    send(&mut router, 50, 3);
    let before = router.sent("e1").len();
    router.cli("shaper subscriber del a");
    router.cli("shaper output home e1 del");
    router.cli("shaper del name home");
    router.run();
    assert_eq!(before + left_in(&mut router, 1), 100);
    // Their numbers are taken again.
    router.cli("shaper add name home rate 1M");
    router.cli("shaper output home e1");
    send(&mut router, 1, 2);
    assert_eq!(router.sent("e1").len(), 1);
}

#[test]
fn packets_that_wait_die_counted_when_their_interface_goes_down() {
    let mut router = router();
    router.cli("shaper add name home rate 8M burst 2000");
    router.cli("shaper output home e1");
    send(&mut router, 20, 2);
    let sent = router.sent("e1").len() as u64;
    router.cli("set interface state e1 down");
    pass(&mut router, 40);
    let dropped = router.dropped();
    let queue = router.json("show shaper home");
    let count = router.count("shaper-output", "interface-down");
    assert_eq!(count, 20 - sent, "{dropped:?} {queue}");
}

/// RFC 8289 §5.5 and RFC 3168 §5: a flow that does not yield is marked when it allows it, and
/// dropped otherwise.
#[test]
fn codel_marks_or_drops_flows_that_wait_for_too_long() {
    let mut router = router();
    router.cli("shaper add name home rate 8M");
    router.cli("shaper output home e1");
    let mut marked = 0;
    for _ in 0..400 {
        for _ in 0..2 {
            router.inject("e0", &frame(2, 1, 2));
            router.inject("e0", &frame(2, 2, 0));
        }
        pass(&mut router, 2);
        for frame in router.sent("e1") {
            assert_eq!(checksum(&frame[14..34]), 0);
            marked += u64::from(frame[15] == 3);
        }
    }
    let rows = router.json("show shaper home");
    assert!(marked > 5 && number(&rows, 0, "marked") == marked, "{marked} {rows}");
    let dropped = router.count("shaper-output", "codel");
    assert!(dropped > 5 && number(&rows, 0, "dropped") == dropped);
    router.advance(Duration::from_secs(60));
}

/// Half of the 2,048 buffers, and who has most loses.
#[test]
fn a_flood_takes_half_of_the_buffers_and_others_pass() {
    let mut router = router();
    for line in [
        "shaper add name site rate 800M",
        "shaper add name slow rate 1M",
        "shaper output site e1",
        "shaper subscriber add flooded profile slow address 10.0.1.2/32",
        "shaper subscriber add other profile slow address 10.0.1.3/32",
    ] {
        router.cli(line);
    }
    for _ in 0..30 {
        send(&mut router, 50, 2);
    }
    send(&mut router, 10, 3);
    let rows = router.json("show shaper buffers");
    assert!(number(&rows, 0, "used") <= number(&rows, 0, "most"));
    assert_eq!(number(&rows, 0, "most"), 1024);
    assert!(router.count("shaper-output", "overlimit") > 0);
    assert_eq!(number(&router.json("show shaper subscribers other"), 0, "dropped"), 0);
    for id in ["flooded", "other"] {
        router.cli(&format!("shaper subscriber del {id}"));
    }
    left_in(&mut router, 50);
    assert_eq!(number(&router.json("show shaper buffers"), 0, "used"), 0);
}

#[test]
fn packets_of_all_workers_meet_at_one() {
    let mut router = router_of(2);
    router.cli("set interface rx-placement e0 worker 1");
    router.cli("shaper add name home rate 8M burst 5000");
    router.cli("shaper output home e1");
    send(&mut router, 50, 2);
    let at_once = router.sent("e1").len();
    assert!((5..=7).contains(&at_once), "{at_once}");
    assert_eq!(left_in(&mut router, 100), 50 - at_once);
}

#[test]
fn mistakes_are_refused_and_change_nothing() {
    let mut router = router();
    for line in [
        "shaper add name a rate 8M",
        "shaper add name b rate 8M parent a",
        "shaper add name c rate 8M parent b",
        "shaper add name d rate 8M parent c",
        "shaper add name e rate 8M parent d",
        "shaper output a e1",
        "shaper subscriber add x profile e address 10.0.1.2/32",
    ] {
        router.cli(line);
    }
    let config = router.cli("show running-config");
    for (line, why) in [
        ("shaper add name z rate 0", "from 8k to"),
        ("shaper add name z rate 8M ceil 4M", "less than rate"),
        ("shaper add name z rate 8M target 200 interval 100", "not less than interval"),
        ("shaper add name z rate 8M parent q", "no shaper q"),
        ("shaper add name a rate 8M parent a", "below a, or is it"),
        ("shaper add name a rate 8M parent c", "below a, or is it"),
        ("shaper add name f rate 8M parent e", "above each other"),
        ("shaper del name a", "shapes what e1 sends"),
        ("shaper del name b", "parent of shaper c"),
        ("shaper del name e", "subscriber x needs"),
        ("shaper del name q", "no shaper q"),
        ("shaper output q e1", "no shaper q"),
        ("shaper output b e1 del", "does not shape"),
        ("shaper subscriber add y profile q address 10.0.1.3/32", "no shaper q"),
        ("shaper subscriber add y profile a address 10.0.1.2/32", "is subscriber x's"),
        ("shaper subscriber add y profile a address 10.0.1.3/32 10.0.1.3/32", "twice"),
        ("shaper subscriber del y", "no subscriber y"),
        ("show shaper q", "no shaper q"),
        ("show shaper subscribers y", "no subscriber y"),
    ] {
        let refused = router.refused(line);
        assert!(refused.contains(why), "{line}: {refused}");
    }
    assert_eq!(router.cli("show running-config"), config);
    assert!(router.cli("shaper add name small rate 8M burst 100").contains("warning"));
    // With another parent for the children, a deeper tree does not come about by the back door.
    router.cli("shaper add name top rate 8M");
    assert!(router.refused("shaper add name a rate 8M parent top").contains("above each other"));
}

#[test]
fn a_file_adds_subscribers_or_lists_all_of_its_mistakes() {
    let mut router = router();
    router.cli("shaper add name gold rate 8M");
    let folder = std::env::temp_dir();
    let path = folder.join(format!("subscribers-{}", std::process::id()));
    let load = |router: &mut Router, text: &str| {
        std::fs::write(&path, text).expect("file");
        let answer = router.execute(&format!("shaper subscriber-file {}", path.display()));
        std::fs::remove_file(&path).expect("file");
        answer.map(|output| output.to_text()).map_err(|refusal| refusal.to_string())
    };
    let good: String = (0..2000)
        .map(|n| {
            format!(
                "s{n} profile gold address 10.9.{}.{}/32
",
                n / 250,
                n % 250
            )
        })
        .collect();
    let bad = good.replace("s7 profile gold", "s7 profile silver")
        + "s8 profile gold address 1.1.1.1/32
x";
    let refused = load(&mut router, &bad).expect_err("refused");
    for why in
        ["3 lines", "line 8: there is no shaper silver", "line 2001: subscriber s8", "line 2002"]
    {
        assert!(refused.contains(why), "{refused}");
    }
    assert_eq!(router.json("show shaper subscribers"), Value::Array(Vec::new()));
    assert!(load(&mut router, &good).expect("loads").contains("2000 subscribers"));
    let rows = router.json("show shaper subscribers s1999");
    assert_eq!(rows[0]["addresses"], "10.9.7.249/32");
    let config = router.cli("show running-config");
    assert!(config.contains("shaper subscriber add s7 profile gold address 10.9.0.7/32"));
}
