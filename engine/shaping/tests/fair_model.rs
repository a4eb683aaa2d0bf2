//! The fair queues beside a model that is written down from RFC 8289 §5 and RFC 8290 §4: packet by
//! packet they decide alike.

use std::collections::{HashMap, VecDeque};

use proptest::prelude::*;
use quiver_shaping::Death;
use quiver_shaping::fair::{Arrival, FairQueues, Queue};
use quiver_shaping::settings::{Plan, Settings};

use crate::packets::{Collected, Packet};

const TARGET_NS: u64 = 5_000_000;
const INTERVAL_NS: u64 = 100_000_000;
const QUANTUM: i64 = 1514;
const MTU: u64 = 1514;

/// A flow's queue and the variables of RFC 8289 §5.3.
#[derive(Default)]
struct Flow {
    packets: VecDeque<(Packet, u64)>,
    credit: i64,
    first_above_time: Option<u64>,
    drop_next: u64,
    count: u32,
    lastcount: u32,
    dropping: bool,
}

fn law(from: u64, count: u32) -> u64 {
    from + (INTERVAL_NS as f64 / f64::from(count).sqrt()) as u64
}

impl Flow {
    fn bytes(&self) -> u64 {
        self.packets.iter().map(|(packet, _)| u64::from(packet.bytes)).sum()
    }

    /// RFC 8289 §5.6: the next packet, and whether it may be dropped.
    fn dodequeue(&mut self, now: u64) -> Option<(Packet, bool)> {
        let Some((packet, since)) = self.packets.pop_front() else {
            self.first_above_time = None;
            return None;
        };
        if now - since < TARGET_NS || self.bytes() <= MTU {
            self.first_above_time = None;
            return Some((packet, false));
        }
        match self.first_above_time {
            None => {
                self.first_above_time = Some(now + INTERVAL_NS);
                Some((packet, false))
            }
            Some(time) => Some((packet, now >= time)),
        }
    }

    /// RFC 8289 §5.5, with marks in place of drops (RFC 8290 §5.2.6).
    fn dequeue(&mut self, now: u64, dropped: &mut Vec<Packet>) -> Option<Packet> {
        let mut got = self.dodequeue(now);
        if self.dropping {
            if !matches!(got, Some((_, true))) {
                self.dropping = false;
            }
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                let (mut packet, _) = got.expect("a packet is above");
                if packet.knows_ecn {
                    packet.is_marked = true;
                    self.drop_next = law(self.drop_next, self.count);
                    return Some(packet);
                }
                dropped.push(packet);
                got = self.dodequeue(now);
                match got {
                    Some((_, true)) => self.drop_next = law(self.drop_next, self.count),
                    _ => self.dropping = false,
                }
            }
        } else if let Some((mut packet, true)) = got {
            let is_marked = packet.knows_ecn;
            if is_marked {
                packet.is_marked = true;
                got = Some((packet, true));
            } else {
                dropped.push(packet);
                got = self.dodequeue(now);
            }
            self.dropping = true;
            let delta = self.count - self.lastcount;
            let is_recent = (now as i64) - (self.drop_next as i64) < 16 * INTERVAL_NS as i64;
            self.count = if delta > 1 && is_recent { delta } else { 1 };
            self.drop_next = law(now, self.count);
            self.lastcount = self.count;
        }
        got.map(|(packet, _)| packet)
    }
}

/// RFC 8290 §4, whose flows are forgotten when they leave their list.
#[derive(Default)]
struct Model {
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    flows: HashMap<u32, Flow>,
    dropped: Vec<Packet>,
}

impl Model {
    fn enqueue(&mut self, flow: u32, packet: Packet, now: u64) {
        let known = self.flows.entry(flow).or_insert_with(|| {
            self.new.push_back(flow);
            Flow { credit: QUANTUM, ..Flow::default() }
        });
        known.packets.push_back((packet, now));
    }

    fn waiting(&self) -> usize {
        self.flows.values().map(|flow| flow.packets.len()).sum()
    }

    fn dequeue(&mut self, now: u64) -> Option<Packet> {
        let packet = self.dequeue_once(now);
        if self.waiting() == 0 {
            // Who asks once more finds nothing, and every list is empty then.
            assert_eq!(self.dequeue_once(now), None);
        }
        packet
    }

    fn dequeue_once(&mut self, now: u64) -> Option<Packet> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let name = list.pop_front()?;
            let flow = self.flows.get_mut(&name).expect("known");
            if flow.credit <= 0 {
                flow.credit += QUANTUM;
                self.old.push_back(name);
                continue;
            }
            match flow.dequeue(now, &mut self.dropped) {
                Some(packet) => {
                    flow.credit -= i64::from(packet.bytes);
                    list.push_front(name);
                    return Some(packet);
                }
                None if is_new => self.old.push_back(name),
                None => drop(self.flows.remove(&name)),
            }
        }
    }

    /// RFC 8290 §4.1. Of two equally long flows the first in the lists is meant.
    fn drop_longest(&mut self) {
        let mut longest: Option<(u32, u64)> = None;
        for name in self.new.iter().chain(&self.old) {
            let bytes = self.flows[name].bytes();
            if bytes > longest.map_or(0, |(_, most)| most) {
                longest = Some((*name, bytes));
            }
        }
        let Some((name, _)) = longest else { return };
        let packets = &mut self.flows.get_mut(&name).expect("known").packets;
        let count = packets.len().div_ceil(2).min(64);
        self.dropped.extend(packets.drain(..count).map(|(packet, _)| packet));
        if self.waiting() == 0 {
            assert_eq!(self.dequeue_once(u64::MAX / 2), None);
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Arrive { flow: u32, bytes: u32, knows_ecn: bool },
    Leave,
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..6u32, 40..1514u32, prop::bool::weighted(0.3)).prop_map(
            |(flow, bytes, knows_ecn)| Step::Arrive { flow, bytes, knows_ecn }
        ),
        4 => Just(Step::Leave),
        1 => (0..40_000_000u64).prop_map(Step::Wait),
        3 => (0..2_000_000u64).prop_map(Step::Wait),
    ]
}

fn compare(steps: &[Step], packets_max: u32) -> (usize, usize) {
    let plan = Plan { packets_max, ..Plan::of_rate(100_000_000) };
    let settings = Settings::new(&plan);
    let (mut queues, mut queue) = (FairQueues::new(4096), Queue::EMPTY);
    let (mut model, mut out) = (Model::default(), Collected::default());
    let mut now = 1_000_000_000;
    let (mut marks, mut id) = (0, 0);
    for step in steps {
        match *step {
            Step::Wait(ns) => now += ns,
            Step::Arrive { flow, bytes, knows_ecn } => {
                id += 1;
                let packet = Packet { id, bytes, knows_ecn, is_marked: false, of: flow };
                let arrival = Arrival { node: 7, flow, host: 0, tin: 0 };
                queues.enqueue(&mut queue, &settings, &arrival, packet, now).expect("room");
                model.enqueue(flow, packet, now);
                if queue.packets > packets_max {
                    queues.drop_longest(&mut queue, &mut out);
                    model.drop_longest();
                }
            }
            Step::Leave => {
                let popped = queues.pop(&mut queue, &settings, now, &mut out);
                marks += popped.marked as usize;
                assert_eq!(popped.sent.and_then(|_| out.sent.pop()), model.dequeue(now));
            }
        }
        let dropped: Vec<Packet> = out.dropped.iter().map(|(packet, _)| *packet).collect();
        assert_eq!(dropped, model.dropped);
        assert_eq!(queue.packets as usize, model.waiting());
        assert_eq!(queue.flows as usize, model.flows.len());
        assert_eq!(queues.buffers, model.waiting());
    }
    (out.dropped.iter().filter(|(_, why)| *why == Death::Codel).count(), marks)
}

proptest! {
    #[test]
    fn queues_decide_as_the_model(
        steps in prop::collection::vec(step(), 1..600),
        packets_max in prop_oneof![Just(20u32), Just(1000)],
    ) {
        compare(&steps, packets_max);
    }
}

/// 40,000 packets come faster than they leave: every branch of CoDel is taken.
#[test]
fn a_long_overload_is_decided_as_by_the_model() {
    let mut steps = Vec::new();
    let mut random = 12_345_u64;
    for round in 0..40_000_u64 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let flow = (random >> 60) as u32 % 5;
        let bytes = 200 + (random >> 40) as u32 % 1300;
        // Every tenth part of the time nothing more comes, so that flows recover.
        if round / 4000 % 3 != 2 || random >> 33 & 3 == 0 {
            steps.push(Step::Arrive { flow, bytes, knows_ecn: flow == 4 });
        }
        steps.push(Step::Wait(500_000 + (random >> 20) % 500_000));
        if random >> 50 & 7 != 0 {
            steps.push(Step::Leave);
        }
    }
    let (drops, marks) = compare(&steps, 2000);
    assert!(drops > 500 && marks > 100, "{drops} drops, {marks} marks");
}
