//! The slow path of a feature with sessions: one worker, the owner, makes them, a few in each pass.
//! What comes beyond that waits in its order, with the owner; other workers hand what needs a
//! session over to it, and keep it while the ring is full.
//!
//! Packets that find their sessions take the feature's short path meanwhile. So that none of them
//! overtakes an older one of its flow, those that wait with the same key go as soon as the session
//! is made.

use std::collections::VecDeque;

use quiver_core::graph::drop_reason::DropReason;
use quiver_core::graph::hand_over::HandOver;
use quiver_core::graph::node::{DROP, Reason};
use quiver_core::{Context, Frame, NodeId, Packet, WorkerId};

use crate::TURN_NS;

/// The worker that makes sessions.
pub const OWNER: WorkerId = WorkerId(0);
/// Packets for which the owner makes sessions in one pass, or finds that none may be made: 1,500 to
/// 3,000 clocks each, so that a pass is longer by less than 20 us. Those that find a session behind
/// one that has just made it come on top.
const PACKETS_PER_PASS: usize = 12;
/// While so many wait, the owner takes no packets of its receive queues, nor of other workers.
const HELD_FROM: usize = 1_024;
/// Packets that wait at most: what one pass of a worker that takes no more may have brought.
const WAITING_MAX: usize = 8_192;
/// Words of a key that are looked at.
pub const KEY_WORDS: usize = 5;
/// Classes of tags: enough that one without a packet that waits is the rule.
const CLASSES: usize = 16_384;
/// Tags that are compared at once.
const TAGS_AT_ONCE: usize = 16;

/// A feature's slow path on one worker: what is special about it.
pub trait SessionMaker {
    /// The node's reasons.
    type Reason: Reason;
    /// On a worker that is not the owner, no more packets can wait.
    const CONGESTION: Self::Reason;
    /// Counts passes in which a worker took no packets.
    const BACK_PRESSURE: Self::Reason;

    /// Where its packets wait.
    fn queue(&mut self) -> &mut SlowQueue;

    /// The key of a packet's session: packets of other sessions have another one. Where they have
    /// not, the order of a flow is kept as far as the packets of a pass go.
    fn key(&self, packet: &Packet) -> [u64; KEY_WORDS];

    /// On the owner: make a packet's session, or find it and say so ([`SlowQueue::note_found`]),
    /// and decide where the packet goes.
    ///
    /// # Errors
    /// It dies for this reason.
    fn decide(&mut self, cx: &mut Context<'_>, packet: &mut Packet)
    -> Result<NodeId, Self::Reason>;

    /// On the owner: turn the clock hand. Is there something left that ends by time?
    fn turn(&mut self, cx: &mut Context<'_>) -> bool;
}

/// The packets of a slow path that wait on one worker, and when its clock hand turns.
pub struct SlowQueue {
    /// On workers that are not the owner, what waits for it. All else is the owner's.
    hand_over: HandOver,
    waiting: VecDeque<Packet>,
    /// The tags of their flows, in the same order: looked through without the packets.
    tags: VecDeque<u32>,
    /// How many wait of each class of tags.
    of_class: Box<[u16]>,
    /// The pass that `left` is for.
    pass: u64,
    /// How many packets are decided in this pass yet.
    left: usize,
    /// The last packet had a session already.
    found: bool,
    turn_ns: u64,
}

impl SlowQueue {
    /// An empty one of a worker.
    pub fn new(worker: WorkerId) -> SlowQueue {
        let of_owner = |count| if worker == OWNER { count } else { 0 };
        SlowQueue {
            hand_over: HandOver::new(worker, OWNER),
            waiting: VecDeque::with_capacity(of_owner(WAITING_MAX)),
            tags: VecDeque::with_capacity(of_owner(WAITING_MAX)),
            of_class: vec![0; of_owner(CLASSES)].into_boxed_slice(),
            pass: u64::MAX,
            left: 0,
            found: false,
            turn_ns: u64::MAX,
        }
    }

    /// The clock hand is to turn from now on, unless it does already.
    pub fn wind(&mut self, cx: &mut Context<'_>) {
        self.turn_ns = self.turn_ns.min(cx.now_ns + TURN_NS);
        cx.tick_at(self.turn_ns);
    }

    /// The packet has a session already.
    pub fn note_found(&mut self) {
        self.found = true;
    }

    /// Packets that wait with the owner.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Does none wait?
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn begin_pass(&mut self, cx: &Context<'_>) {
        let pass = cx.counters.passes.get();
        if self.pass != pass {
            (self.pass, self.left) = (pass, PACKETS_PER_PASS);
        }
    }

    /// One packet less may be decided about in this pass; how many are left.
    fn spend(&mut self) -> usize {
        self.left = self.left.saturating_sub(1);
        self.left
    }

    fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING_MAX
    }

    fn put(&mut self, cx: &Context<'_>, mut packet: Packet, tag: u32) {
        cx.keep_age(&mut packet);
        self.of_class[class(tag)] += 1;
        self.waiting.push_back(packet);
        self.tags.push_back(tag);
    }

    /// The packet that has waited longest, and the tag of its flow.
    fn take(&mut self) -> Option<(Packet, u32)> {
        let first = self.waiting.pop_front().zip(self.tags.pop_front())?;
        self.of_class[class(first.1)] -= 1;
        Some(first)
    }

    /// The first one that waits of a flow.
    fn take_of(&mut self, tag: u32) -> Option<Packet> {
        if self.of_class[class(tag)] == 0 {
            return None;
        }
        let (front, back) = self.tags.as_slices();
        let in_back = || place_of(back, tag).map(|place| front.len() + place);
        let place = place_of(front, tag).or_else(in_back)?;
        self.of_class[class(tag)] -= 1;
        self.tags.remove(place);
        self.waiting.remove(place)
    }
}

/// Where the tag stands first.
fn place_of(tags: &[u32], tag: u32) -> Option<usize> {
    let (parts, rest) = tags.as_chunks::<TAGS_AT_ONCE>();
    let has = |part: &[u32; TAGS_AT_ONCE]| part.iter().fold(false, |has, t| has | (*t == tag));
    let (from, part) = match parts.iter().position(has) {
        Some(part) => (part * TAGS_AT_ONCE, parts[part].as_slice()),
        None => (tags.len() - rest.len(), rest),
    };
    part.iter().position(|t| *t == tag).map(|place| from + place)
}

/// A few bits by which packets with one key are known again.
fn tag_of(key: [u64; KEY_WORDS]) -> u32 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = key.iter().fold(0u64, |mixed, word| {
        let both = (mixed ^ word).wrapping_mul(FACTOR);
        both ^ both >> 32
    });
    (mixed.wrapping_mul(FACTOR) >> 32) as u32
}

fn class(tag: u32) -> usize {
    tag as usize % CLASSES
}

/// Take a vector: the body of a slow path's [`run`](quiver_core::graph::node::Node::run).
pub fn run_slow_path<S: SessionMaker>(path: &mut S, cx: &mut Context<'_>, frame: &mut Frame) {
    let again_ns = if cx.worker == OWNER {
        decide_vector(path, cx, frame);
        hold(path, cx)
    } else {
        let hand_over = &mut path.queue().hand_over;
        hand_over.take(cx, frame, S::CONGESTION);
        hand_over.hold(cx, S::BACK_PRESSURE)
    };
    if let Some(due_ns) = again_ns {
        cx.tick_at(due_ns);
    }
}

/// Do what is due: the body of a slow path's [`tick`](quiver_core::graph::node::Node::tick).
pub fn tick_slow_path<S: SessionMaker>(path: &mut S, cx: &mut Context<'_>) -> Option<u64> {
    if cx.worker != OWNER {
        let hand_over = &mut path.queue().hand_over;
        hand_over.retry(cx);
        return hand_over.hold(cx, S::BACK_PRESSURE);
    }
    path.queue().begin_pass(cx);
    decide_some(path, cx);
    let again_ns = hold(path, cx);
    if path.queue().turn_ns <= cx.now_ns {
        let turns_on = path.turn(cx);
        path.queue().turn_ns = if turns_on { cx.now_ns + TURN_NS } else { u64::MAX };
    }
    let turn_ns = Some(path.queue().turn_ns).filter(|turn_ns| *turn_ns != u64::MAX);
    again_ns.or(turn_ns)
}

/// Decide about a vector, behind what waits.
fn decide_vector<S: SessionMaker>(path: &mut S, cx: &mut Context<'_>, frame: &mut Frame) {
    let queue = path.queue();
    // While packets wait, the pass begins with the tick that decides about them.
    if queue.is_empty() {
        queue.begin_pass(cx);
        if frame.len() <= queue.left {
            queue.left -= frame.len();
            return frame.route(|packet| path.decide(cx, packet));
        }
    }
    for packet in frame.drain() {
        // So many wait where many devices have brought a vector each: the oldest does not any more.
        if path.queue().is_full() {
            decide_oldest(path, cx);
        }
        let tag = tag_of(path.key(&packet));
        path.queue().put(cx, packet, tag);
    }
    decide_some(path, cx);
}

/// Decide about the packets that have waited longest, as many as this pass may.
fn decide_some<S: SessionMaker>(path: &mut S, cx: &mut Context<'_>) {
    while path.queue().left > 0 && decide_oldest(path, cx) {}
}

/// Decide about the packet that has waited longest, and about those with its key that find its
/// session; false when none waits.
fn decide_oldest<S: SessionMaker>(path: &mut S, cx: &mut Context<'_>) -> bool {
    let Some((packet, tag)) = path.queue().take() else { return false };
    path.queue().spend();
    finish(path, cx, packet);
    while let Some(follower) = path.queue().take_of(tag) {
        let found = finish(path, cx, follower);
        // Else it is of another session, or of a flow that gets none.
        if !found && path.queue().spend() == 0 {
            break;
        }
    }
    true
}

/// Decide about a packet. Had it a session already?
fn finish<S: SessionMaker>(path: &mut S, cx: &mut Context<'_>, mut packet: Packet) -> bool {
    path.queue().found = false;
    match path.decide(cx, &mut packet) {
        Ok(next) => {
            cx.trace(&packet, next);
            cx.emit(packet, next);
        }
        Err(reason) => {
            packet.hand_over(DropReason::new(reason));
            cx.trace(&packet, DROP);
            cx.kill(packet, reason);
        }
    }
    path.queue().found
}

/// While many packets wait, the owner takes no more; when to decide about some again.
fn hold<S: SessionMaker>(path: &mut S, cx: &mut Context<'_>) -> Option<u64> {
    let waiting = path.queue().len();
    if waiting >= HELD_FROM {
        cx.count(S::BACK_PRESSURE, 1);
        cx.hold_handed_over();
        cx.hold_receive();
    }
    (waiting > 0).then_some(cx.now_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A scan of hosts, of ports, and hosts that each have the same ports: of 16,384 classes, 1,024
    /// keys use 993 by chance.
    #[test]
    fn tags_of_neighbouring_keys_lie_apart() {
        let sets: [Vec<[u64; KEY_WORDS]>; 4] = [
            (0..1_024).map(|host| [0x0a00_0001_1400_0000 + host, 80, 0, 0, 0]).collect(),
            (0..1_024).map(|host| [(0x0a00_0000 + host) << 32, 80, 0, 0, 0]).collect(),
            (0..1_024).map(|port| [7, port << 48, 0, 0, 0]).collect(),
            (0..1_024).map(|at| [0, at / 32, 0, 0, (at % 32) << 32]).collect(),
        ];
        for set in sets {
            let mut classes: Vec<usize> = set.into_iter().map(|key| class(tag_of(key))).collect();
            classes.sort_unstable();
            classes.dedup();
            assert!(classes.len() > 900, "{}", classes.len());
        }
    }

    #[test]
    fn the_first_place_of_a_tag_is_found_in_any_part() {
        for length in [0, 1, 15, 16, 17, 40] {
            let tags: Vec<u32> = (0..length).collect();
            for tag in 0..length {
                assert_eq!(place_of(&tags, tag), Some(tag as usize));
            }
            assert_eq!(place_of(&tags, length), None);
        }
        assert_eq!(place_of(&[3, 5, 5, 3], 5), Some(1));
    }
}
