//! Trees of rates, with a clock moved by hand.

use proptest::prelude::*;
use quiver_shaping::Death;
use quiver_shaping::fair::Arrival;
use quiver_shaping::node::{CHUNK, Chunk, SettingsChunk};
use quiver_shaping::scheduler::{DEPTH_MAX, Offer, Scheduler};
use quiver_shaping::settings::{Plan, Settings};

use crate::packets::{Collected, Packet};

const MEGA: u64 = 1_000_000;
const BUFFERS: usize = 4000;
const SECOND: u64 = 1_000_000_000;

struct Tree {
    scheduler: Scheduler<Packet>,
    out: Collected,
    now: u64,
    due: Option<u64>,
    put: usize,
}

impl Tree {
    /// Nodes with their parents; each has settings of its own.
    fn new(nodes: &[(Option<u32>, Plan)]) -> Tree {
        let mut scheduler = Scheduler::new(BUFFERS);
        let chunks = nodes.len().div_ceil(CHUNK).max(1);
        for _ in 0..chunks {
            scheduler.grow(Chunk::new().0).expect("room");
            scheduler.grow_settings(SettingsChunk::default()).expect("room");
        }
        for (number, (parent, plan)) in (0..).zip(nodes) {
            assert!(scheduler.set_settings(number, Settings::new(plan)));
            assert!(scheduler.add(number, *parent, number));
        }
        Tree { scheduler, out: Collected::default(), now: 100 * SECOND, due: None, put: 0 }
    }

    fn put(&mut self, node: u32, bytes: u32) -> Offer {
        self.put += 1;
        let packet = Packet::new(node, bytes);
        let offer = self.scheduler.offer(node, bytes, self.now);
        match offer {
            Offer::Passes | Offer::Unknown => self.out.sent.push(packet),
            Offer::Waits => {
                let arrival = Arrival { node, flow: 1, host: 0, tin: 0 };
                self.scheduler.enqueue(&arrival, packet, self.now, &mut self.out);
                self.due = Some(self.now);
            }
        }
        offer
    }

    /// Go on, serving whenever something is due.
    fn advance(&mut self, ns: u64) {
        let end = self.now + ns;
        while let Some(due) = self.due.filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.due = self.scheduler.serve(self.now, 256, &mut self.out);
            if self.due == Some(self.now) {
                self.now += 1000;
            }
        }
        self.now = end;
    }

    /// Let nodes be full for so long; the bits a second that each has sent.
    fn overload(&mut self, nodes: &[u32], ns: u64) -> Vec<f64> {
        self.out.sent.clear();
        let (begun, steps) = (self.now, ns / 200_000);
        for _ in 0..steps {
            for node in nodes {
                while self.scheduler.queue(*node).is_some_and(|queue| queue.packets < 20) {
                    self.put(*node, 1514);
                }
            }
            self.advance(200_000);
        }
        let took = (self.now - begun) as f64 / SECOND as f64;
        let bits = |node: u32| {
            let of = self.out.sent.iter().filter(|packet| packet.of == node);
            of.map(|packet| f64::from(packet.bytes) * 8.0).sum::<f64>() / took
        };
        nodes.iter().map(|node| bits(*node)).collect()
    }

    fn check_balance(&self) {
        let waiting = self.scheduler.buffers().0;
        assert_eq!(self.put, self.out.sent.len() + self.out.dropped.len() + waiting);
    }
}

fn plan(rate: u64) -> Plan {
    Plan { burst_bytes: 3028, ..Plan::of_rate(rate) }
}

fn near(measured: f64, wanted: u64, percent: f64) -> bool {
    (measured / wanted as f64 - 1.0).abs() * 100.0 <= percent
}

#[test]
fn every_rate_is_met_within_half_a_percent() {
    for (rate, seconds) in [(MEGA, 60), (20 * MEGA, 10), (333_333_333, 2), (1000 * MEGA, 1)] {
        let mut tree = Tree::new(&[(None, plan(rate))]);
        let sent = tree.overload(&[0], seconds * SECOND)[0];
        assert!(near(sent, rate, 0.5), "{sent} of {rate}");
    }
}

#[test]
fn a_rate_of_a_frame_in_seconds_is_met_over_the_coarse_level_of_the_wheel() {
    let mut tree = Tree::new(&[(None, plan(8000))]);
    for _ in 0..20 {
        tree.put(0, 1000);
    }
    let mut sent = Vec::new();
    for second in 1..=12 {
        tree.advance(SECOND);
        sent.push((second, tree.out.sent.len()));
    }
    assert!(
        sent.iter().all(|(second, count)| (3 + second..=4 + second).contains(count)),
        "{sent:?}"
    );
    tree.check_balance();
}

#[test]
fn a_subscriber_under_its_rate_never_waits() {
    let mut tree = Tree::new(&[(None, plan(100 * MEGA)), (Some(0), plan(20 * MEGA))]);
    for _ in 0..10_000 {
        assert_eq!(tree.put(1, 1000), Offer::Passes);
        tree.advance(401_000);
    }
    let queue = tree.scheduler.queue(1).expect("node");
    assert_eq!((queue.packets, queue.flows), (0, 0), "no state");
}

#[test]
fn siblings_share_by_their_rates_and_the_parent_is_not_exceeded() {
    let child = |rate| (Some(0), Plan::of_rate(rate * MEGA));
    let nodes = [(None, plan(30 * MEGA)), child(10), child(20), child(30)];
    let mut tree = Tree::new(&nodes);
    let sent = tree.overload(&[1, 2, 3], 10 * SECOND);
    assert!(near(sent.iter().sum(), 30 * MEGA, 0.5), "{sent:?}");
    for (sent, wanted) in sent.iter().zip([5, 10, 15]) {
        assert!(near(*sent, wanted * MEGA, 2.0), "{sent} {wanted}");
    }
}

#[test]
fn what_a_sibling_does_not_use_is_used_up_to_the_ceiling() {
    let ceil = |rate, ceil| Plan { ceil_bps: ceil * MEGA, ..plan(rate * MEGA) };
    let nodes = [(None, plan(30 * MEGA)), (Some(0), ceil(10, 25)), (Some(0), ceil(20, 30))];
    let mut tree = Tree::new(&nodes);
    assert!(near(tree.overload(&[1], 5 * SECOND)[0], 25 * MEGA, 0.5));
    assert!(near(tree.overload(&[2], 5 * SECOND)[0], 30 * MEGA, 1.0));
    let both = tree.overload(&[1, 2], 5 * SECOND);
    assert!(near(both[0], 10 * MEGA, 2.0) && near(both[1], 20 * MEGA, 2.0), "{both:?}");
}

#[test]
fn five_levels_of_parents_hold_and_a_sixth_is_refused() {
    let nodes: Vec<_> = (0..6_u32)
        .map(|level| (level.checked_sub(1), plan((60 - 10 * u64::from(level)) * MEGA)))
        .collect();
    let mut tree = Tree::new(&nodes);
    let sent = tree.overload(&[5], 4 * SECOND)[0];
    assert!(near(sent, 10 * MEGA, 0.5), "{sent}");
    assert!(!tree.scheduler.add(6, Some(5), 0));
    assert!(!tree.scheduler.change(0, Some(3), 0, tree.now), "no loops");
    assert!(!tree.scheduler.change(2, Some(2), 0, tree.now), "nor itself");
}

#[test]
fn a_change_of_rate_or_parent_loses_nothing() {
    let mut tree =
        Tree::new(&[(None, plan(10 * MEGA)), (None, plan(5 * MEGA)), (Some(0), plan(8 * MEGA))]);
    tree.overload(&[2], SECOND);
    tree.scheduler.set_settings(2, Settings::new(&plan(3 * MEGA)));
    tree.scheduler.reconsider(2, tree.now);
    assert!(near(tree.overload(&[2], 4 * SECOND)[0], 3 * MEGA, 1.0));
    tree.scheduler.set_settings(2, Settings::new(&plan(8 * MEGA)));
    assert!(tree.scheduler.change(2, Some(1), 2, tree.now));
    tree.due = Some(tree.now);
    assert!(near(tree.overload(&[2], 4 * SECOND)[0], 5 * MEGA, 1.0));
    let queue = tree.scheduler.queue(2).expect("node");
    assert!(queue.packets > 0);
    assert!(tree.out.dropped.iter().all(|(_, why)| *why == Death::Codel), "nothing else drops");
}

#[test]
fn what_waits_in_a_node_that_is_deleted_goes_on_and_its_number_is_free() {
    let mut tree = Tree::new(&[(None, plan(MEGA)), (Some(0), plan(MEGA))]);
    for _ in 0..100 {
        tree.put(1, 1000);
    }
    assert!(!tree.scheduler.remove(1, tree.now));
    assert!(!tree.scheduler.is_free(1));
    tree.due = Some(tree.now);
    tree.advance(1_000_000);
    assert_eq!((tree.out.sent.len(), tree.out.dropped.len()), (100, 0));
    assert!(tree.scheduler.is_free(1) && tree.scheduler.remove(0, tree.now));
    assert!(tree.scheduler.add(1, None, 1));
}

/// RFC 8290 §4.1, over all nodes: who waits longest at his rate pays.
#[test]
fn when_buffers_run_short_the_node_furthest_over_its_share_loses() {
    let mut tree = Tree::new(&[(None, plan(MEGA)), (None, plan(100 * MEGA)), (None, plan(MEGA))]);
    (0..1000).for_each(|_| _ = tree.put(1, 1000));
    (0..10).for_each(|_| _ = tree.put(2, 1000));
    (0..5000).for_each(|_| _ = tree.put(0, 1000));
    assert_eq!(tree.scheduler.buffers().0.max(BUFFERS), BUFFERS);
    assert!(tree.out.dropped.iter().all(|(packet, _)| packet.of == 0));
    tree.check_balance();
    tree.scheduler.clear(&mut tree.out);
    assert_eq!(tree.scheduler.buffers().0, 0);
}

/// Levels from a node to its root; more than may be in a loop.
fn depth(parents: &[Option<u32>], node: u32) -> usize {
    let levels = std::iter::successors(Some(node), |node| parents[*node as usize]);
    levels.take(DEPTH_MAX + 1).count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever happens, no packet is lost without being counted, no rate is exceeded by more
    /// than its burst, and all that waits leaves in the end.
    #[test]
    fn trees_keep_their_balance(
        steps in prop::collection::vec((0..8u8, 0..12u32, 0..12u32, 0..3_000_000u64), 1..400),
    ) {
        let nodes: Vec<_> = (0..12_u32)
            .map(|n| (n.checked_sub(1).map(|n| n / 2), plan(u64::from(n + 1) * 2 * MEGA)))
            .collect();
        let mut parents: Vec<Option<u32>> = nodes.iter().map(|(parent, _)| *parent).collect();
        let mut tree = Tree::new(&nodes);
        for (what, a, b, ns) in steps {
            match what {
                0..4 => {
                    (0..4).for_each(|_| _ = tree.put(a, 60 + 120 * b));
                }
                4 | 5 => tree.advance(ns),
                6 => {
                    let parent = (b < 11).then_some(b);
                    let before = std::mem::replace(&mut parents[a as usize], parent);
                    let is_flat = (0..12).all(|node| depth(&parents, node) <= DEPTH_MAX);
                    if !is_flat || !tree.scheduler.change(a, parent, a, tree.now) {
                        parents[a as usize] = before;
                    }
                    tree.due = Some(tree.now);
                }
                _ => {
                    tree.scheduler.set_settings(a, Settings::new(&plan(u64::from(b) * MEGA)));
                    tree.scheduler.reconsider(a, tree.now);
                    tree.due = Some(tree.now);
                }
            }
            tree.check_balance();
        }
        tree.advance(60 * SECOND);
        prop_assert_eq!(tree.scheduler.buffers().0, 0);
        prop_assert!(tree.due.is_none());
        tree.check_balance();
    }
}
