//! Offloads that are switched off in front of a device that takes them.

use quiver_core::memory::buffer::Offload;
use quiver_testkit::Router;

/// Frames and their work, as e1 gets them of a super-frame of three segments and of a packet with
/// an open checksum.
fn taken(router: &mut Router) -> Vec<(usize, bool)> {
    let mut frame = crate::segments::tcp(&[7; 2500]);
    let offload = crate::segments::offload(2500, 1000);
    router.send_unfinished("e0", &frame, offload);
    frame.truncate(1000);
    let offload = Offload { segment_bytes: 0, checksum_bytes: 1000 - 34, ..offload };
    router.send_unfinished("e0", &frame, offload);
    let sent = router.sent_unfinished("e1");
    sent.into_iter().map(|(frame, offload)| (frame.len(), offload.is_some())).collect()
}

#[test]
fn each_offload_can_be_switched_off_where_the_device_takes_it() {
    let mut router = Router::new(&[quiver_ethernet::register, quiver_gso::register]);
    router.interface("e0");
    router.cli("create test interface e1 takes-offloads");
    router.cli("set interface state e1 up");
    router.cli("set interface l2 xconnect e0 e1");
    let cut = |is_open| [(1054, false), (1054, false), (554, false), (1000, is_open)];
    assert_eq!(taken(&mut router), [(2554, true), (1000, true)]);

    router.cli("set interface feature gso e1 disable");
    assert_eq!(taken(&mut router), cut(true));
    assert!(router.cli("show running-config").contains("set interface feature gso e1 disable\n"));
    router.cli("set interface feature gso e1");
    assert_eq!(taken(&mut router).len(), 2);

    router.cli("set interface feature tx-checksum-offload e1 disable");
    assert_eq!(taken(&mut router), cut(false));
    assert!(
        router
            .cli("show running-config")
            .contains("set interface feature tx-checksum-offload e1 disable\n")
    );
    router.cli("set interface feature tx-checksum-offload e1 enable");
    assert_eq!(taken(&mut router).len(), 2);
    assert!(!router.cli("show running-config").contains("set interface feature"));
}

#[test]
fn in_front_of_other_devices_there_is_nothing_to_switch() {
    let mut router = Router::new(&[quiver_ethernet::register, quiver_gso::register]);
    router.interface("e0");
    for state in ["", " enable", " disable"] {
        for offload in ["gso", "tx-checksum-offload"] {
            let told = router.cli(&format!("set interface feature {offload} e0{state}"));
            assert!(told.contains("finished in front of it"), "{told}");
        }
    }
    assert!(!router.cli("show running-config").contains("set interface feature"));
}
