//! The client through all its states, by a clock moved by hand.

use proptest::prelude::*;
use quiver_wire::Header;

use super::*;

const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 9]);
const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const GIVEN: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 77);

struct Bench {
    client: Client,
    jitter: Jitter,
    now_ns: u64,
}

impl Bench {
    fn new() -> Bench {
        let mut bench = Bench {
            client: Client::new(Settings::default()),
            jitter: Jitter::seeded(1),
            now_ns: SECOND_NS,
        };
        bench.client.set_link(Some(MAC), bench.now_ns, &mut bench.jitter);
        bench
    }

    /// Let time pass until the client does something.
    fn wait(&mut self) -> Vec<Action> {
        for _ in 0..10 {
            let Some(due_ns) = self.client.due_ns() else { return Vec::new() };
            self.now_ns = self.now_ns.max(due_ns);
            let actions = self.client.pass_time(self.now_ns, &mut self.jitter);
            if !actions.is_empty() {
                return actions;
            }
        }
        Vec::new()
    }

    fn reply(&mut self, kind: u8, options: &[(u8, &[u8])]) -> Result<Vec<Action>, ClientReason> {
        let bytes = reply(self.client.xid(), kind, options);
        let message = Message::parse(&bytes).unwrap();
        self.client.hear(&message, self.now_ns, &mut self.jitter)
    }

    fn bind(&mut self) -> Lease {
        self.wait();
        self.reply(message_type::OFFER, &usual()).unwrap();
        let actions = self.reply(message_type::ACK, &usual()).unwrap();
        let [Action::Use(lease)] = &actions[..] else { panic!("{actions:?}") };
        lease.clone()
    }
}

fn usual() -> [(u8, &'static [u8]); 4] {
    [
        (option::SERVER_ID, &[192, 0, 2, 1]),
        (option::SUBNET_MASK, &[255, 255, 255, 0]),
        (option::LEASE_TIME, &[0, 0, 0x0e, 0x10]),
        (option::ROUTER, &[192, 0, 2, 254]),
    ]
}

fn reply(xid: u32, kind: u8, options: &[(u8, &[u8])]) -> Vec<u8> {
    let mut header = Dhcp4Header::request(MAC, xid);
    header.op = REPLY;
    header.set_yiaddr(GIVEN);
    let mut out = vec![0; 1024];
    let mut writer = Writer::begin(&mut out, &header).unwrap();
    writer.put(option::MESSAGE_TYPE, &[kind]).unwrap();
    options.iter().for_each(|(code, data)| writer.put(*code, data).unwrap());
    let length = writer.finish().unwrap();
    out.truncate(length);
    out
}

fn sent(actions: &[Action]) -> (u8, Dhcp4Header, Vec<u8>) {
    let (Action::Broadcast(bytes) | Action::Unicast(bytes, ..)) = &actions[0] else {
        panic!("{actions:?}")
    };
    let read = Message::parse(bytes).unwrap();
    let kind = read.message_type().unwrap();
    (kind, *Dhcp4Header::overlay(bytes).unwrap(), bytes.clone())
}

#[test]
fn a_client_gets_a_lease_and_renews_it_at_the_times_of_the_rfc() {
    let mut bench = Bench::new();
    let discover = bench.wait();
    assert!(matches!(discover[0], Action::Broadcast(_)));
    assert_eq!(sent(&discover).0, message_type::DISCOVER);
    let request = bench.reply(message_type::OFFER, &usual()).unwrap();
    let (kind, header, bytes) = sent(&request);
    assert_eq!((kind, header.ciaddr()), (message_type::REQUEST, Ipv4Addr::UNSPECIFIED));
    let read = Message::parse(&bytes).unwrap();
    assert_eq!(read.address(option::REQUESTED_ADDRESS), Some(GIVEN));
    assert_eq!(read.address(option::SERVER_ID), Some(SERVER));
    let requested_ns = bench.now_ns;
    bench.now_ns += SECOND_NS;
    let actions = bench.reply(message_type::ACK, &usual()).unwrap();
    let [Action::Use(lease)] = &actions[..] else { panic!("{actions:?}") };
    assert_eq!((lease.address, lease.length, lease.server), (GIVEN, 24, SERVER));
    assert_eq!(lease.routers, [Ipv4Addr::new(192, 0, 2, 254)]);
    assert_eq!(lease.renew_ns, requested_ns + 1800 * SECOND_NS);
    assert_eq!(lease.rebind_ns, requested_ns + 3150 * SECOND_NS);

    let renew = bench.wait();
    assert_eq!((bench.client.state, bench.now_ns), (State::Renewing, lease.renew_ns));
    assert!(matches!(renew[0], Action::Unicast(_, GIVEN, SERVER)));
    let (kind, header, bytes) = sent(&renew);
    assert_eq!((kind, header.ciaddr()), (message_type::REQUEST, GIVEN));
    let read = Message::parse(&bytes).unwrap();
    assert_eq!(
        (read.option(option::REQUESTED_ADDRESS), read.option(option::SERVER_ID)),
        (None, None)
    );
    let before = bench.now_ns;
    bench.reply(message_type::ACK, &usual()).unwrap();
    assert_eq!(bench.client.state, State::Bound);
    assert_eq!(bench.client.lease.as_ref().unwrap().renew_ns, before + 1800 * SECOND_NS);
}

#[test]
fn a_client_that_nobody_answers_rebinds_and_loses_its_lease() {
    let mut bench = Bench::new();
    let lease = bench.bind();
    let mut states = Vec::new();
    loop {
        let actions = bench.wait();
        if actions == [Action::Withdraw] {
            break;
        }
        let is_broadcast = matches!(actions[0], Action::Broadcast(_));
        assert_eq!(is_broadcast, bench.client.state == State::Rebinding);
        assert!(bench.now_ns < lease.until_ns);
        states.push(bench.client.state);
    }
    assert_eq!(bench.now_ns, lease.until_ns);
    assert!(states.contains(&State::Renewing) && states.contains(&State::Rebinding));
    assert!(states.len() < 20, "{} messages", states.len());
    assert_eq!(sent(&bench.wait()).0, message_type::DISCOVER);
}

#[test]
fn waits_become_longer_up_to_a_minute() {
    let mut bench = Bench::new();
    let mut last = None;
    let mut waits = Vec::new();
    for _ in 0..8 {
        bench.wait();
        waits.extend(last.map(|last| (bench.now_ns - last) / SECOND_NS));
        last = Some(bench.now_ns);
    }
    for (wait, usual) in waits.iter().zip([4, 8, 16, 32, 64, 64, 64]) {
        assert!(wait.abs_diff(usual) <= 1, "{waits:?}");
    }
}

#[test]
fn a_refusal_and_a_silent_server_begin_anew() {
    let mut bench = Bench::new();
    bench.wait();
    bench.reply(message_type::OFFER, &usual()).unwrap();
    for _ in 0..3 {
        assert_eq!(sent(&bench.wait()).0, message_type::REQUEST);
    }
    assert_eq!(bench.wait(), [Action::Withdraw]);
    assert_eq!(sent(&bench.wait()).0, message_type::DISCOVER);
    bench.reply(message_type::OFFER, &usual()).unwrap();
    assert_eq!(bench.reply(message_type::NAK, &[]).unwrap(), [Action::Withdraw]);
    assert_eq!(bench.client.counts.refused, 1);
    assert_eq!(sent(&bench.wait()).0, message_type::DISCOVER);
}

#[test]
fn a_link_that_comes_back_asks_for_the_same_address() {
    let mut bench = Bench::new();
    bench.bind();
    bench.client.set_link(None, bench.now_ns, &mut bench.jitter);
    assert_eq!((bench.client.state, bench.client.due_ns()), (State::Down, None));
    bench.client.set_link(Some(MAC), bench.now_ns, &mut bench.jitter);
    let (kind, header, bytes) = sent(&bench.wait());
    assert_eq!((kind, header.ciaddr()), (message_type::REQUEST, Ipv4Addr::UNSPECIFIED));
    let read = Message::parse(&bytes).unwrap();
    assert_eq!(read.address(option::REQUESTED_ADDRESS), Some(GIVEN));
    assert_eq!(read.option(option::SERVER_ID), None);
    assert!(matches!(bench.reply(message_type::ACK, &usual()).unwrap()[..], [Action::Use(_)]));
}

#[test]
fn an_address_that_somebody_has_is_declined_and_one_that_is_needed_no_more_released() {
    let mut bench = Bench::new();
    bench.bind();
    assert!(bench.client.is_on_probation(bench.now_ns));
    assert!(!bench.client.is_on_probation(bench.now_ns + PROBATION_NS));
    let actions = bench.client.decline(bench.now_ns, &mut bench.jitter);
    let (kind, header, bytes) = sent(&actions);
    assert_eq!((kind, header.ciaddr()), (message_type::DECLINE, Ipv4Addr::UNSPECIFIED));
    let read = Message::parse(&bytes).unwrap();
    assert_eq!(read.address(option::REQUESTED_ADDRESS), Some(GIVEN));
    assert_eq!(read.address(option::SERVER_ID), Some(SERVER));
    assert_eq!(actions[1], Action::Withdraw);
    let before = bench.now_ns;
    bench.bind();
    assert!(bench.now_ns >= before + DECLINE_WAIT_NS);
    let actions = bench.client.release(bench.now_ns);
    assert!(matches!(actions[0], Action::Unicast(_, GIVEN, SERVER)));
    let (kind, header, _) = sent(&actions);
    assert_eq!((kind, header.ciaddr()), (message_type::RELEASE, GIVEN));
    assert_eq!(actions[1], Action::Withdraw);
}

#[test]
fn replies_to_others_and_those_that_make_no_sense_change_nothing() {
    let mut bench = Bench::new();
    bench.wait();
    let xid = bench.client.xid();
    let other = reply(xid ^ 1, message_type::OFFER, &usual());
    let message = Message::parse(&other).unwrap();
    let mut jitter = Jitter::seeded(2);
    assert_eq!(bench.client.hear(&message, 0, &mut jitter), Err(ClientReason::Other));
    let [server, mask, time, _] = usual();
    let wrong: [&[(u8, &[u8])]; 6] = [
        &[mask, time],
        &[server, mask],
        &[server, mask, (option::LEASE_TIME, &[0, 0, 0, 0])],
        &[server, (option::SUBNET_MASK, &[255, 0, 255, 0]), time],
        &[server, (option::SUBNET_MASK, &[0, 0, 0, 0]), time],
        &[(option::SERVER_ID, &[224, 0, 0, 1]), mask, time],
    ];
    for options in wrong {
        assert_eq!(bench.reply(message_type::OFFER, options), Err(ClientReason::Unexpected));
    }
    assert_eq!(bench.reply(message_type::ACK, &usual()), Err(ClientReason::Unexpected));
    assert_eq!(bench.client.state, State::Selecting);
    bench.reply(message_type::OFFER, &usual()).unwrap();
    let other = [(option::SERVER_ID, &[192, 0, 2, 2][..]), mask, time];
    assert_eq!(bench.reply(message_type::ACK, &other), Err(ClientReason::Unexpected));
    assert_eq!(bench.client.state, State::Requesting);
}

#[test]
fn a_lease_without_end_is_never_renewed() {
    let mut bench = Bench::new();
    bench.wait();
    let [server, mask, _, router] = usual();
    let options = [server, mask, (option::LEASE_TIME, &[255; 4][..]), router];
    bench.reply(message_type::OFFER, &options).unwrap();
    bench.reply(message_type::ACK, &options).unwrap();
    assert_eq!((bench.client.state, bench.client.due_ns()), (State::Bound, None));
}

proptest! {
    #[test]
    fn no_reply_panics_and_the_client_always_has_something_to_wait_for(
        replies in prop::collection::vec(
            (1u8..9, 0u32..4000, prop::collection::vec((1u8..90, any::<[u8; 4]>()), 0..5)), 1..12)
    ) {
        let mut bench = Bench::new();
        for (kind, lease_s, options) in replies {
            bench.wait();
            let time = lease_s.to_be_bytes();
            let [server, mask, ..] = usual();
            let mut all: Vec<(u8, &[u8])> = vec![server, mask, (option::LEASE_TIME, &time)];
            all.extend(options.iter().map(|(code, data)| (*code, &data[..])));
            let _ = bench.reply(kind, &all);
            prop_assert!(bench.client.due_ns().is_some());
            if let Some(lease) = &bench.client.lease {
                prop_assert!(lease.renew_ns <= lease.rebind_ns);
                prop_assert!(lease.rebind_ns <= lease.until_ns);
            }
        }
    }
}
