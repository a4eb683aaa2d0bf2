//! What can be seen of a router from outside, and the forms in which it must be the same.

use std::collections::BTreeMap;
use std::fmt::Debug;

use proptest::prelude::*;
use quiver_core::WorkerId;
use quiver_core::cpu::Variant;
use quiver_testkit::{Router, Settings, flow};

/// All that can be seen from outside. Frames of one port are sorted by their flows, those of a flow
/// stand as they left.
#[derive(Debug, PartialEq)]
pub struct Seen {
    pub frames: Vec<Vec<Vec<u8>>>,
    pub dropped: Vec<(String, String, u64)>,
    pub events: Vec<(String, String, u64)>,
    pub interfaces: Vec<[u64; 11]>,
    pub packets_by_node: BTreeMap<String, u64>,
}

/// What has left by e0, e1 and e2, and all that was counted.
pub fn seen(router: &mut Router) -> Seen {
    seen_of(router, &["e0", "e1", "e2"])
}

/// The same of these ports.
pub fn seen_of(router: &mut Router, ports: &[&str]) -> Seen {
    let frames = ports.iter().map(|name| {
        let mut frames = router.sent(name);
        frames.sort_by_cached_key(|frame| flow(frame)); // stable: a flow's frames stay in their order
        frames
    });
    let frames = frames.collect();
    let all: Vec<String> = router.engine().all_interfaces().map(|i| i.name.clone()).collect();
    let interfaces =
        all.iter().map(|name| router.totals(name).fields().map(|(_, value)| value)).collect();
    let (dropped, events) = (router.dropped(), router.events());
    let engine = router.engine();
    let nodes: Vec<_> = engine.all_nodes().map(|(id, node)| (id, node.spec.name.clone())).collect();
    let packets_by_node = nodes
        .into_iter()
        .map(|(id, name)| (name, engine.node_totals(WorkerId(0), id).vectors))
        .collect();
    Seen { frames, dropped, events, interfaces, packets_by_node }
}

/// Every way to run.
pub fn forms() -> impl Iterator<Item = Settings> {
    Variant::available().flat_map(|variant| {
        [false, true].map(|superblocks| Settings { variant, superblocks, ..Settings::default() })
    })
}

/// What is seen is the same in every form.
pub fn alike<T: Debug + PartialEq>(
    mut run: impl FnMut(Settings) -> T,
) -> Result<(), TestCaseError> {
    let plain = Settings { variant: Variant::Scalar, superblocks: false, ..Settings::default() };
    let expected = run(plain);
    for form in forms() {
        prop_assert_eq!(&run(form), &expected, "{:?}", form);
    }
    Ok(())
}

/// With the frames of a port in one order, whatever flows they are of: for routers that take
/// headers off. Packets that came in other headers each may be of one flow inside, and what differs
/// in front has no order.
pub fn in_any_order(mut seen: Seen) -> Seen {
    seen.frames.iter_mut().for_each(|frames| frames.sort());
    seen
}

/// Without the identifications of fragments, which no two routers choose alike (RFC 7739).
pub fn without_identifications(mut seen: Seen) -> Seen {
    for frame in seen.frames.iter_mut().flatten() {
        let (is_routed, behind) =
            (frame.get(20) == Some(&43), frame.get(54..56).map(<[u8]>::to_vec));
        if let (true, Some([44, length])) = (is_routed, behind.as_deref()) {
            let at = 54 + (usize::from(*length) + 1) * 8 + 4;
            frame[at..at + 4].fill(0);
        }
    }
    seen
}
