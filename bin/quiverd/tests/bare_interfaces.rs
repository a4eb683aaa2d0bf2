//! Tunnels of layer 3 carry IP packets: whatever needs Ethernet frames refuses them, and says so.

use quiver_testkit::{Router, Settings};
use quiverd::features;

#[test]
fn what_needs_frames_refuses_tunnels_of_layer_3() {
    let mut router = Router::whole(Settings::default(), features::register);
    router.interface("e0");
    router.cli("set interface ip address e0 192.0.2.1/24");
    let tunnels = [
        ("gre0", "create gre tunnel src 192.0.2.1 dst 192.0.2.2"),
        ("ipip0", "create ipip tunnel src 192.0.2.1 dst 192.0.2.3"),
        ("vxlan_gpe_tunnel0", "create vxlan-gpe tunnel local 192.0.2.1 remote 192.0.2.4 vni 7"),
        ("mpls-tunnel0", "create mpls tunnel"),
    ];
    for (_, create) in tunnels {
        router.cli(create);
    }
    let before = router.cli("show running-config");
    for (name, _) in tunnels {
        for line in [
            format!("set interface l2 bridge {name} 5"),
            format!("set interface l2 xconnect {name} e0"),
            format!("set interface l2 xconnect e0 {name}"),
            format!("test l2patch rx e0 tx {name}"),
            format!("create sub-interfaces {name} 10"),
            format!("set interface mac address {name} 02:00:00:00:00:01"),
            format!("set interface span e0 destination {name}"),
            format!("set interface span {name} destination e0"),
            format!("set interface lldp {name}"),
            format!("set dhcp client intfc {name}"),
            format!("vrrp vr add {name} vr_id 3 192.0.2.9"),
            format!("sr localsid address 2001:db8::a behavior end.dx2 {name}"),
        ] {
            let refusal = router.refused(&line);
            assert!(refusal.contains(&format!("{name} carries IP packets")), "{line}: {refusal}");
        }
    }
    assert_eq!(router.cli("show running-config"), before);
}
