//! The command and the configuration.

use crate::frames::{Tcp, router, sizes};

#[test]
fn it_is_on_where_the_device_takes_super_frames_until_it_is_switched_off() {
    let mut router = router();
    assert!(router.cli("show interface features e1").contains("gro"));
    assert!(!router.cli("show interface features e0").contains("gro"));
    assert!(!router.cli("show running-config").contains("feature gro"));
    router.cli("set interface feature gro e1 disable");
    assert_eq!(sizes(&mut router, &Tcp::default().flow(4)), 4);
    assert!(router.cli("show running-config").contains("set interface feature gro e1 disable\n"));
    router.cli("set interface feature gro e1 enable");
    assert_eq!(sizes(&mut router, &Tcp::default().flow(4)), 1);
    assert!(!router.cli("show running-config").contains("feature gro"));
}

#[test]
fn it_cannot_be_on_where_the_device_takes_none() {
    let mut router = router();
    assert!(router.refused("set interface feature gro e0").contains("takes no super-frames"));
    router.cli("set interface feature gro e0 disable");
}
