//! One side against a peer that a test plays segment by segment.

use quiver_wire::MacAddress;
use quiver_wire::tcp::Flags;

use super::Connection;
use crate::frame::{Content, Heading, Outgoing, Segment, read};
use crate::key::Key;
use crate::pattern;
use quiver_tg_traffic::profile::Tags;
use quiver_tg_traffic::profile::stateful::Kind;
use quiver_tg_traffic::profile::stateful::hosts::Hosts;

use crate::program::{Failure, Program, Role};
use crate::side::{ListenPorts, Side};
use crate::simulation::Out;
use crate::test_profiles::stateful;

const SYN: Flags = Flags::SYN;
const ACK: Flags = Flags::ACK;
const FIN: Flags = Flags::FIN.with(Flags::ACK);
const RST: Flags = Flags::RST;
const SECOND: u64 = 1_000_000_000;

/// What a side sent, as values.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sent {
    sequence: u32,
    acknowledgement: u32,
    flags: Flags,
    count: usize,
}

/// A side, the far end's place, and time.
struct Bench {
    side: Side<Connection>,
    peer: Heading,
    near: Hosts,
    key: Key,
    now_ns: u64,
    out: Out,
    /// The side's first sequence number, and the peer's.
    iss: u32,
    irs: u32,
    options: Option<u16>,
    window: u16,
}

impl Bench {
    fn new(keys: &str, role: Role) -> Bench {
        let text = format!(
            "{{kind: tcp, clients: {{on: 0, first: 10.0.0.1}}, servers: {{on: 1, first: \
             20.0.0.1}}, {keys}}}"
        );
        let stateful = stateful(&text);
        let hosts = |text: &str| Hosts::new(text.parse().expect("address"), 1).expect("hosts");
        let (near, far) = match role {
            Role::Client => (hosts("10.0.0.1"), hosts("20.0.0.1")),
            Role::Server => (hosts("20.0.0.1"), hosts("10.0.0.1")),
        };
        let (near_port, far_port) = if role == Role::Client { (1024, 80) } else { (80, 1024) };
        let listen_ports =
            if role == Role::Client { ListenPorts::Nowhere } else { ListenPorts::One(80) };
        let heading = Heading::new(MacAddress([2, 0, 0, 0, 0, 1]), &Tags::default(), near);
        let program = Program::new(&stateful, role);
        Bench {
            side: Side::new(program, heading, listen_ports, 8, 1, SECOND),
            peer: Heading::new(MacAddress([2, 0, 0, 0, 0, 2]), &Tags::default(), far),
            near,
            key: Key::new(0, near_port, far.bits_at(0), far_port),
            now_ns: SECOND,
            out: Out::default(),
            iss: 0,
            irs: 5_000,
            options: None,
            window: 65_535,
        }
    }

    /// What the side has sent since the last look, its numbers counted from the first ones.
    fn sent(&mut self) -> Vec<Sent> {
        self.side.flush(self.now_ns, &mut self.out);
        let frames = std::mem::take(&mut self.out.0);
        let mut all = Vec::new();
        for frame in frames {
            let arrival = read(&frame, &self.peer, Kind::Tcp).expect("a frame for the peer");
            let Content::Tcp(segment) = arrival.content else { panic!("a segment") };
            if segment.flags.contains(SYN) {
                self.iss = segment.sequence;
                self.options = segment.segment_bytes_max;
            }
            check_data(&segment, self.iss);
            all.push(Sent {
                sequence: segment.sequence.wrapping_sub(self.iss),
                acknowledgement: segment.acknowledgement.wrapping_sub(self.irs),
                flags: segment.flags,
                count: segment.data.len(),
            });
        }
        all
    }

    /// The peer sends a segment with `count` bytes of the pattern; what the side answers. Numbers
    /// count from the first ones.
    fn peer(
        &mut self,
        sequence: u32,
        acknowledgement: u32,
        flags: Flags,
        count: usize,
    ) -> Vec<Sent> {
        let mss = flags.contains(SYN).then_some(1000);
        let segment = Outgoing {
            sequence: self.irs.wrapping_add(sequence),
            acknowledgement: self.iss.wrapping_add(acknowledgement),
            flags,
            window: self.window,
            segment_bytes_max: mss,
        };
        let mut frame = vec![0; self.peer.tcp_bytes(&segment, count)];
        let key = Key::new(0, self.key.far_port(), self.near.bits_at(0), self.key.near_port());
        let data = pattern::piece(sequence.wrapping_sub(1), count);
        self.peer.write_tcp(&mut frame, MacAddress::BROADCAST, &key, &segment, data).expect("room");
        assert!(self.side.receive(self.now_ns, &frame, &mut self.out));
        self.sent()
    }

    /// Time passes; what the side sends.
    fn pass(&mut self, nanoseconds: u64) -> Vec<Sent> {
        self.now_ns += nanoseconds;
        for _ in 0..200 {
            self.side.expire(self.now_ns, 100, &mut self.out);
        }
        self.sent()
    }

    /// A client whose handshake is done.
    fn connected(keys: &str) -> (Bench, Vec<Sent>) {
        let mut bench = Bench::new(keys, Role::Client);
        let (now_ns, key) = (bench.now_ns, bench.key);
        bench.side.begin(now_ns, key, MacAddress::BROADCAST, &mut bench.out);
        let syn = bench.sent();
        assert_eq!((syn.len(), syn[0].flags, bench.options), (1, SYN, Some(1460)));
        let sent = bench.peer(0, 1, SYN.with(ACK), 0);
        (bench, sent)
    }

    fn failed(&self, failure: Failure) -> u64 {
        self.side.counters().transactions.failed[failure as usize].get()
    }
}

fn check_data(segment: &Segment<'_>, iss: u32) {
    let position = segment.sequence.wrapping_sub(iss).wrapping_sub(1);
    assert!(pattern::is_right(position, segment.data), "data at {position}");
}

fn sequences(sent: &[Sent]) -> Vec<(u32, usize)> {
    sent.iter().map(|s| (s.sequence, s.count)).collect()
}

#[test]
fn segments_are_no_longer_than_the_peer_wants() {
    let (_, sent) = Bench::connected("request_bytes: 2500");
    assert_eq!(sequences(&sent), [(1, 0), (1, 1000), (1001, 1000), (2001, 500)]);
}

#[test]
fn ten_segments_go_at_first_and_two_more_for_each_that_is_acknowledged() {
    let (mut bench, sent) = Bench::connected("request_bytes: 30000");
    assert_eq!(sent.len(), 1 + 10);
    assert_eq!(sequences(&bench.peer(1, 1001, ACK, 0)), [(10_001, 1000), (11_001, 1000)]);
}

#[test]
fn a_closed_window_stops_data_and_is_asked_with_one_byte() {
    let mut bench = Bench::new("request_bytes: 3000", Role::Client);
    let (now_ns, key) = (bench.now_ns, bench.key);
    bench.side.begin(now_ns, key, MacAddress::BROADCAST, &mut bench.out);
    bench.sent();
    bench.window = 0;
    assert_eq!(sequences(&bench.peer(0, 1, SYN.with(ACK), 0)), [(1, 0)]);
    assert_eq!(sequences(&bench.pass(SECOND)), [(1, 1)]);
    // Still closed: the byte was not taken.
    assert_eq!(sequences(&bench.peer(1, 1, ACK, 0)), []);
    assert_eq!(sequences(&bench.pass(2 * SECOND)), [(1, 1)]);
    bench.window = 65_535;
    let sent = bench.peer(1, 2, ACK, 0);
    assert_eq!(sequences(&sent), [(2, 1000), (1002, 1000), (2002, 999)]);
}

#[test]
fn three_duplicates_send_the_lost_segment_again_and_a_partial_one_the_next() {
    let (mut bench, _) = Bench::connected("request_bytes: 10000");
    assert_eq!(bench.peer(1, 1, ACK, 0), []);
    assert_eq!(bench.peer(1, 1, ACK, 0), []);
    assert_eq!(sequences(&bench.peer(1, 1, ACK, 0)), [(1, 1000)]);
    assert_eq!(sequences(&bench.peer(1, 4001, ACK, 0)), [(4001, 1000)]);
    assert_eq!(bench.peer(1, 10_001, ACK, 0), []);
    assert_eq!(bench.side.counters().packets.fast_retransmitted.get(), 2);
}

#[test]
fn what_is_not_acknowledged_is_sent_again_later_and_later() {
    let (mut bench, _) = Bench::connected("request_bytes: 500, timeout_s: 100");
    assert_eq!(bench.pass(SECOND / 10), []);
    for wait_ms in [150, 450, 850, 1650] {
        let sent = bench.pass(wait_ms * 1_000_000);
        assert_eq!(sequences(&sent), [(1, 500)], "after {wait_ms} ms");
    }
}

#[test]
fn only_a_reset_with_the_exact_number_ends_a_connection() {
    let (mut bench, _) = Bench::connected("request_bytes: 500");
    // Inside of the window: asked whether it is meant (RFC 5961 §3). Outside: nothing.
    let sent = bench.peer(100, 0, RST, 0);
    assert_eq!((sent.len(), sent[0].flags, sent[0].acknowledgement), (1, ACK, 1));
    assert_eq!(bench.peer(100_000, 0, RST, 0), []);
    assert_eq!(bench.failed(Failure::Reset), 0);
    assert_eq!(bench.peer(1, 0, RST, 0), []);
    assert_eq!((bench.failed(Failure::Reset), bench.side.table().len()), (1, 0));
}

#[test]
fn a_reset_in_answer_to_the_syn_is_a_refusal_if_it_acknowledges_it() {
    let mut bench = Bench::new("request_bytes: 1", Role::Client);
    let (now_ns, key) = (bench.now_ns, bench.key);
    bench.side.begin(now_ns, key, MacAddress::BROADCAST, &mut bench.out);
    bench.sent();
    assert_eq!(bench.peer(0, 7, RST.with(ACK), 0), []);
    assert_eq!(bench.failed(Failure::Refused), 0);
    assert_eq!(bench.peer(0, 1, RST.with(ACK), 0), []);
    assert_eq!(bench.failed(Failure::Refused), 1);
}

#[test]
fn an_old_handshake_is_answered_with_a_reset_and_the_right_one_goes_on() {
    let mut bench = Bench::new("", Role::Client);
    let (now_ns, key) = (bench.now_ns, bench.key);
    bench.side.begin(now_ns, key, MacAddress::BROADCAST, &mut bench.out);
    bench.sent();
    let sent = bench.peer(0, 900, SYN.with(ACK), 0);
    assert_eq!((sent[0].flags, sent[0].sequence), (RST, 900));
    assert_eq!(bench.peer(0, 1, SYN.with(ACK), 0).len(), 2);
}

#[test]
fn data_behind_a_hole_waits_and_each_piece_says_what_is_missing() {
    let mut bench = Bench::new("request_bytes: 4000, response_bytes: 10", Role::Server);
    bench.peer(0, 0, SYN, 0);
    assert_eq!(bench.peer(1, 1, ACK, 0), []);
    for (sequence, count) in [(1001, 1000), (3001, 1000), (2001, 1000)] {
        let sent = bench.peer(sequence, 1, ACK, count);
        assert_eq!((sent.len(), sent[0].acknowledgement), (1, 1));
    }
    let sent = bench.peer(1, 1, ACK, 1000);
    assert_eq!(sent[0].acknowledgement, 4001);
    // The answer, and the server's close.
    assert_eq!(sequences(&sent[1..]), [(1, 10), (11, 0)]);
}

#[test]
fn bytes_that_were_not_sent_are_found() {
    let mut bench = Bench::new("request_bytes: 4000", Role::Server);
    bench.peer(0, 0, SYN, 0);
    bench.peer(1, 1, ACK, 100);
    // Data of another place: the pattern begins anew.
    bench.irs = bench.irs.wrapping_add(100);
    let sent = bench.peer(1, 1, ACK, 100);
    assert!(sent[0].flags.contains(RST));
    assert_eq!((bench.failed(Failure::Corrupted), bench.side.table().len()), (1, 0));
}

#[test]
fn both_may_close_at_once() {
    let (mut bench, sent) = Bench::connected("time_wait_s: 1");
    assert_eq!(sent.iter().map(|s| s.flags).collect::<Vec<_>>(), [ACK, FIN]);
    // The peer's FIN does not acknowledge ours.
    let sent = bench.peer(1, 1, FIN, 0);
    assert_eq!((sent.len(), sent[0].flags, sent[0].acknowledgement), (1, ACK, 2));
    assert_eq!(bench.peer(2, 2, ACK, 0), []);
    assert_eq!(bench.side.counters().transactions.successful.get(), 1);
    // A FIN that comes again is answered again, until the connection is forgotten.
    assert_eq!(bench.peer(1, 2, FIN, 0).len(), 1);
    bench.pass(3 * SECOND);
    assert_eq!(bench.side.table().len(), 0);
    assert!(bench.peer(1, 2, FIN, 0)[0].flags.contains(RST));
}

#[test]
fn a_fin_before_the_data_is_whole_is_an_early_close() {
    let (mut bench, _) = Bench::connected("response_bytes: 100");
    let sent = bench.peer(1, 1, FIN, 50);
    assert!(sent.iter().any(|s| s.flags.contains(RST)));
    assert_eq!(bench.failed(Failure::ClosedEarly), 1);
}

#[test]
fn strangers_are_reset_and_resets_are_not_answered() {
    let mut bench = Bench::new("", Role::Server);
    let sent = bench.peer(7, 3, ACK, 0);
    assert_eq!((sent[0].flags, sent[0].sequence), (RST, 3));
    assert_eq!(bench.peer(7, 3, RST, 0), []);
    assert_eq!(bench.side.table().len(), 0);
}

#[test]
fn a_syn_that_comes_again_is_answered_again_with_the_same_number() {
    let mut bench = Bench::new("", Role::Server);
    let first = bench.peer(0, 0, SYN, 0);
    let iss = bench.iss;
    assert_eq!(bench.peer(0, 0, SYN, 0), first);
    assert_eq!((bench.iss, bench.side.table().len()), (iss, 1));
}
