//! Routers at the edge of a layer 2 service, with a tunnel to each other one, and the core between
//! them.

use quiver_testkit::Router;

pub const BROADCAST: [u8; 6] = [0xff; 6];

/// The n-th station's address.
pub fn mac(n: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0xaa, n]
}

/// A frame of so many bytes.
pub fn frame(to: [u8; 6], from: [u8; 6], bytes: usize) -> Vec<u8> {
    let mut frame = [to, from].concat();
    frame.extend([0x88, 0xb5]); // for local experiments (IEEE 802)
    frame.resize(bytes, 0xa5);
    frame
}

/// A router whose port to the core is `core`, and whose ports e0, e1, … are in bridge domain 1.
pub fn bare(number: u8, ports: usize) -> Router {
    let mut router = Router::new(&[
        quiver_ethernet::register,
        quiver_ip::register,
        quiver_bridge::register,
        quiver_srv6::register,
        quiver_fused::register,
    ]);
    router.interface("core");
    for line in [
        format!("set interface ip address core 2001:db8::{number}/64"),
        format!("set interface mac address core 02:00:00:00:cc:0{number}"),
        format!("set sr encaps source addr fc00:0:{number}::1"),
        "create bridge-domain 1".to_owned(),
    ] {
        router.cli(&line);
    }
    for port in 0..ports {
        router.interface(&format!("e{port}"));
        router.cli(&format!("set interface l2 bridge e{port} 1"));
    }
    router
}

/// Router `number` with a tunnel to each of `others`: End.DT2U at `fc00:0:N:M::1`, End.DT2M behind
/// `fc00:0:N:M:d2::/112`, for what router M sends to router N.
pub fn edge(number: u8, others: &[u8], ports: usize) -> Router {
    let mut router = bare(number, ports);
    for (place, other) in others.iter().enumerate() {
        for line in [
            format!("ip neighbor core 2001:db8::{other} 02:00:00:00:cc:0{other}"),
            format!("ip route add fc00:0:{other}::/48 via 2001:db8::{other} core"),
            format!(
                "sr policy add bsid fc00:0:{number}::a{other} next fc00:0:{other}:{number}::1 \
                 encap.red"
            ),
            format!(
                "sr policy add bsid fc00:0:{number}::b{other} next fc00:0:{other}:{number}:d2:: \
                 encap.red"
            ),
            format!(
                "create sr l2-tunnel unicast bsid fc00:0:{number}::a{other} flood bsid \
                 fc00:0:{number}::b{other}"
            ),
            format!("set interface state sr_l2_tunnel{place} up"),
            format!("set interface l2 bridge sr_l2_tunnel{place} 1"),
            format!(
                "sr localsid address fc00:0:{number}:{other}::1 behavior end.dt2u \
                 sr_l2_tunnel{place}"
            ),
            format!(
                "sr localsid address fc00:0:{number}:{other}:d2::/112 behavior end.dt2m \
                 sr_l2_tunnel{place}"
            ),
        ] {
            router.cli(&line);
        }
    }
    router
}

/// What a router has sent into the core goes to the routers it is for; how many packets that were.
pub fn carry(routers: &mut [Router]) -> usize {
    let mut carried = 0;
    loop {
        let mut sent = Vec::new();
        for router in routers.iter_mut() {
            sent.append(&mut router.sent("core"));
        }
        if sent.is_empty() {
            return carried;
        }
        carried += sent.len();
        for packet in sent {
            let to = usize::from(packet[5]) - 1;
            routers[to].send("core", &packet);
        }
    }
}
