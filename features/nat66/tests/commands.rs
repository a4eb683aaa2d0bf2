//! Configuration: written down, typed again, refused.

use quiver_testkit::configuration::running;

use crate::fixture::router;

#[test]
fn what_is_configured_is_written_down_and_can_be_typed_again() {
    let mut router = router(1000);
    for line in [
        "ip6 table add 7",
        "nat66 add pool address 2001:db8:2::18 - 2001:db8:2::19 tenant-vrf 7",
        "nat66 add interface address e1",
        "nat66 add static mapping udp local fd00:1::3 53 external 2001:db8:2::10 4000",
        "nat66 add static mapping icmp local fd00:7::3 9 external 2001:db8:2::17 9 vrf 7",
        "nat66 add static mapping local fd00:1::9 external 2001:db8:2::99",
        "nat66 filtering address-dependent",
        "nat66 subscriber-limit sessions 100 prefix-length 56",
        "set nat66 timeouts udp 30 icmp 20",
    ] {
        router.cli(line);
        let written = router.cli("show running-config");
        assert!(written.contains(line), "{line} in {written}");
    }
    let before = running(&mut router);
    let refusal = router.refused("ip6 table del 7");
    assert!(refusal.contains("nat66"), "{refusal}");
    for line in [
        "nat66 add pool address 2001:db8:2::10",
        "nat66 add pool address 2001:db8:2::1f - 2001:db8:2::11",
        "nat66 add pool address 2001:db8:2:: - 2001:db8:3::",
        "nat66 add pool address ff02::1",
        "nat66 add pool address fe80::1",
        "nat66 add pool address 2001:db8:2::99",
        "nat66 add pool address 2001:db8:2::50 del",
        "nat66 add static mapping tcp local ff02::1 1 external 2001:db8:2::10 1",
        "nat66 add static mapping udp local fd00:1::4 1 external 2001:db8:2::10 4000",
        "nat66 add static mapping tcp local fd00:1::4 1 external 2001:db8:2::99 4000",
        "nat66 add static mapping local fd00:1::4 external 2001:db8:2::10",
        "nat66 add static mapping local fd00:1::4 external 2001:db8:2::99",
        "nat66 add static mapping local fd00:1::4 external 2001:db8:2::98 del",
        "nat66 add static mapping local fd00:1::4 external 2001:db8:2::98 vrf 8",
        "set interface nat66 out e0",
        "set interface nat66 out e0 del",
        "nat66 plugin enable sessions 7",
    ] {
        router.refused(line);
        assert_eq!(running(&mut router), before, "{line}");
    }
    router.cli("nat66 plugin disable");
    let text = router.cli("show running-config");
    assert!(!text.contains("nat66 add") && !text.contains("nat66 in"), "{text}");
    router.cli("ip6 table del 7");
    let refusal = router.refused("nat66 add pool address 2001:db8:2::10");
    assert!(refusal.contains("not enabled"), "{refusal}");
    router.cli("nat66 plugin enable sessions 20");
}

#[test]
fn an_interface_that_is_deleted_takes_its_configuration_along() {
    let mut router = router(1000);
    router.cli("create loopback interface instance 4");
    router.cli("set interface nat66 in loop4");
    router.cli("nat66 add interface address loop4");
    router.cli("delete loopback interface intfc loop4");
    let text = router.cli("show running-config");
    assert!(!text.contains("loop4"), "{text}");
    assert_eq!(router.json("show nat66 interfaces").as_array().map(Vec::len), Some(2));
}
