//! Bridging in a router on the calling thread: frames, commands, limits, interfaces that go.

mod commands;
mod flooding;
mod forwarding;
mod learning;
mod random;
mod routed;
mod subscriptions;
mod uu_forward;

use quiver_testkit::{Register, Router, Settings};

const FEATURES: [Register; 4] = [
    quiver_bridge::register,
    quiver_ethernet::register,
    quiver_ip::register,
    quiver_fused::register,
];

const BROADCAST: [u8; 6] = [0xff; 6];

/// The n-th station's address.
fn mac(n: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, n]
}

/// A frame of 60 bytes.
fn frame(to: [u8; 6], from: [u8; 6]) -> Vec<u8> {
    let mut frame = to.to_vec();
    frame.extend(from);
    frame.extend([0x88, 0xb5]); // for local experiments (IEEE 802)
    frame.resize(60, 0xa5);
    frame
}

/// Interfaces e0 to e(ports - 1) in bridge domain 1.
fn bridge(ports: usize) -> Router {
    bridge_with(Settings::default(), ports)
}

fn bridge_with(settings: Settings, ports: usize) -> Router {
    let mut router = Router::with(settings, &FEATURES);
    router.cli("create bridge-domain 1");
    for port in 0..ports {
        router.interface(&format!("e{port}"));
        router.cli(&format!("set interface l2 bridge e{port} 1"));
    }
    router
}

/// How many frames each of the first `ports` interfaces has sent.
fn sent(router: &mut Router, ports: usize) -> Vec<usize> {
    (0..ports).map(|port| router.sent(&format!("e{port}")).len()).collect()
}

/// A station speaks, so that the bridge knows it.
fn speak(router: &mut Router, port: &str, from: u8) {
    router.send(port, &frame(BROADCAST, mac(from)));
    let names = router.interfaces();
    names.iter().for_each(|name| drop(router.sent(name)));
}

/// Behind which interface an address is, as `show l2fib` says.
fn known_at(router: &mut Router, from: [u8; 6]) -> Option<String> {
    let [a, b, c, d, e, f] = from;
    let text = format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}");
    let rows = router.json("show l2fib all")["entries"].as_array().cloned().unwrap_or_default();
    rows.iter()
        .find(|row| row["mac"] == text.as_str())
        .map(|row| row["interface"].as_str().unwrap_or("none").to_owned())
}
