//! The client through all its states, by a clock moved by hand.

use proptest::prelude::*;

use quiver_wire::dhcp6::{INFINITY_S, Ia, IaAddress, IaPrefix, Writer};

use super::messages::is_acceptable;
use super::*;

const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 9]);
const FROM: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 5);
const SERVER: &[u8] = &[0, 3, 0, 1, 2, 0, 0, 0, 0, 5];
const OTHER: &[u8] = &[0, 3, 0, 1, 2, 0, 0, 0, 0, 6];
const IAID: u32 = 0x0102_0304;

/// An IA as a server writes it: T1, T2, a status, members.
#[derive(Clone, Debug)]
struct Said {
    iaid: u32,
    times: (u32, u32),
    status: u16,
    members: Vec<IaPrefix>,
}

fn member(text: &str, length: u8, preferred_s: u32, valid_s: u32) -> IaPrefix {
    IaPrefix { preferred_s, valid_s, length, prefix: text.parse().unwrap() }
}

/// One address for an hour.
fn usual() -> Said {
    let members = vec![member("2001:db8::77", 128, 3000, 3600)];
    Said { iaid: IAID, times: (1000, 2000), status: 0, members }
}

struct Bench {
    client: Client6,
    jitter: Jitter,
    now_ns: u64,
}

impl Bench {
    fn of(ia_type: IaType) -> Bench {
        let mut bench = Bench {
            client: Client6::new(ia_type, MAC, IAID),
            jitter: Jitter::seeded(1),
            now_ns: SECOND_NS,
        };
        bench.client.set_link(true, bench.now_ns, &mut bench.jitter);
        bench
    }

    fn new() -> Bench {
        Bench::of(IaType::Na)
    }

    /// Let time pass until the client sends something; its type and options.
    fn wait(&mut self) -> (u8, Vec<u8>) {
        for _ in 0..20 {
            let due_ns = self.client.due_ns();
            if due_ns == u64::MAX {
                break;
            }
            self.now_ns = self.now_ns.max(due_ns);
            if let Some(bytes) = self.client.pass_time(self.now_ns, &mut self.jitter) {
                return (bytes[0], bytes);
            }
        }
        (0, Vec::new())
    }

    fn now(&mut self) -> u8 {
        let sent = self.client.pass_time(self.now_ns, &mut self.jitter);
        sent.map_or(0, |bytes| bytes[0])
    }

    fn message(&self, kind: u8, server: &[u8], said: &[Said], more: &[(u16, &[u8])]) -> Vec<u8> {
        let mut out = vec![0; 4000];
        let transaction = self.client.transaction();
        let mut writer = Writer::message(&mut out, kind, transaction).unwrap();
        writer.put(option::CLIENT_ID, &self.client.duid).unwrap();
        writer.put(option::SERVER_ID, server).unwrap();
        for Said { iaid, times: (t1_s, t2_s), status, members } in said {
            let head = [iaid.to_be_bytes(), t1_s.to_be_bytes(), t2_s.to_be_bytes()].concat();
            let code = self.client.ia_type.option();
            let inside = |writer: &mut Writer<'_>| {
                for one in members {
                    match self.client.ia_type {
                        IaType::Na => {
                            let IaPrefix { preferred_s, valid_s, prefix: address, .. } = *one;
                            let one = IaAddress { address, preferred_s, valid_s };
                            writer.put(option::IA_ADDRESS, &one.bytes())?;
                        }
                        IaType::Pd => writer.put(option::IA_PREFIX, &one.bytes())?,
                    }
                }
                if *status == 0 {
                    return Ok(());
                }
                writer.put(option::STATUS_CODE, &status.to_be_bytes())
            };
            writer.put_nested(code, &head, inside).unwrap();
        }
        more.iter().for_each(|(code, data)| writer.put(*code, data).unwrap());
        let length = writer.finish();
        out.truncate(length);
        out
    }

    fn hear(&mut self, bytes: &[u8]) -> Result<(), ClientReason> {
        let read = Message::parse(bytes).unwrap();
        self.client.hear(&read, FROM, self.now_ns, &mut self.jitter)
    }

    fn reply(&mut self, said: &Said) -> Result<(), ClientReason> {
        let bytes = self.message(message::REPLY, SERVER, std::slice::from_ref(said), &[]);
        self.hear(&bytes)
    }

    fn advertise(&mut self, server: &[u8], preference: u8) -> Result<(), ClientReason> {
        let more = [(option::PREFERENCE, &[preference][..])];
        let bytes = self.message(message::ADVERTISE, server, &[usual()], &more);
        self.hear(&bytes)
    }

    /// Until the client has a lease.
    fn bind(&mut self, said: &Said) {
        self.wait();
        let mut offered = said.clone();
        offered.members.iter_mut().for_each(|one| one.valid_s = one.valid_s.max(1));
        let bytes =
            self.message(message::ADVERTISE, SERVER, &[offered], &[(option::PREFERENCE, &[255])]);
        self.hear(&bytes).unwrap();
        assert_eq!(self.now(), message::REQUEST);
        self.reply(said).unwrap();
    }

    fn addresses(&self) -> Vec<String> {
        let all = self.client.bindings.iter();
        all.map(|binding| format!("{}/{}", binding.address, binding.length)).collect()
    }
}

/// The options of a message, by number.
fn options(bytes: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let all = Message::parse(bytes).unwrap().options.flatten();
    all.map(|(code, data)| (code, data.to_vec())).collect()
}

fn codes(bytes: &[u8]) -> Vec<u16> {
    options(bytes).into_iter().map(|(code, _)| code).collect()
}

#[test]
fn a_client_gets_an_address_and_renews_it_at_the_times_of_the_server() {
    let mut bench = Bench::new();
    let (kind, solicit) = bench.wait();
    assert_eq!((kind, codes(&solicit)), (message::SOLICIT, vec![1, 8, 14, 6, 3]));
    assert_eq!(options(&solicit)[1].1, [0, 0], "the first message");
    assert_eq!(options(&solicit)[4].1, Ia::head(IAID));
    bench.advertise(SERVER, 0).unwrap();
    let began_ns = bench.now_ns;
    let (kind, request) = bench.wait();
    assert_eq!((kind, codes(&request)), (message::REQUEST, vec![1, 2, 8, 6, 3]));
    assert!(bench.now_ns > began_ns + SECOND_NS, "others may answer until then");
    assert_eq!(options(&request)[1].1, SERVER);
    assert_eq!(options(&request)[4].1.len(), Ia::LEN + 4 + IaAddress::LEN);
    assert_ne!(request[1..4], solicit[1..4], "another exchange");
    bench.reply(&usual()).unwrap();
    assert_eq!(
        (bench.client.state, bench.addresses()),
        (State::Bound, vec!["2001:db8::77/128".into()])
    );
    assert_eq!(bench.client.server_address, Some(FROM));
    let bound_ns = bench.now_ns;
    let (kind, renew) = bench.wait();
    assert_eq!((kind, codes(&renew)), (message::RENEW, vec![1, 2, 8, 6, 3]));
    assert_eq!(bench.now_ns, bound_ns + 1000 * SECOND_NS);
    bench.reply(&usual()).unwrap();
    assert_eq!(bench.client.state, State::Bound);
    assert_eq!(bench.client.renew_ns, bench.now_ns + 1000 * SECOND_NS);
}

#[test]
fn the_server_of_the_greatest_preference_is_chosen_and_255_at_once() {
    let mut bench = Bench::new();
    bench.wait();
    bench.advertise(SERVER, 3).unwrap();
    bench.advertise(OTHER, 9).unwrap();
    bench.advertise(SERVER, 9).unwrap();
    assert_eq!(bench.now(), 0);
    let (_, request) = bench.wait();
    assert_eq!(options(&request)[1].1, OTHER, "the first of two that are the same");
    let mut bench = Bench::new();
    bench.wait();
    bench.advertise(SERVER, 255).unwrap();
    assert_eq!(bench.now(), message::REQUEST);
    // When the first wait is over, the first server that answers is chosen.
    let mut bench = Bench::new();
    bench.wait();
    let (kind, again) = bench.wait();
    assert_eq!(kind, message::SOLICIT);
    assert_ne!(options(&again)[1].1, [0, 0], "time has elapsed");
    bench.advertise(SERVER, 0).unwrap();
    assert_eq!(bench.now(), message::REQUEST);
}

#[test]
fn two_messages_are_enough_with_rapid_commit() {
    let mut bench = Bench::new();
    bench.wait();
    assert_eq!(bench.reply(&usual()), Err(ClientReason::Unexpected), "without the option");
    let more: [(u16, &[u8]); 2] =
        [(option::RAPID_COMMIT, &[]), (option::NAME_SERVERS, &[0x20; 16])];
    let bytes = bench.message(message::REPLY, OTHER, &[usual()], &more);
    bench.hear(&bytes).unwrap();
    assert_eq!((bench.client.state, bench.client.name_servers.len()), (State::Bound, 1));
    assert_eq!(bench.client.server.as_deref(), Some(OTHER));
}

#[test]
fn a_client_that_nobody_answers_rebinds_and_loses_its_address_at_its_end() {
    let mut bench = Bench::new();
    bench.bind(&usual());
    let bound_ns = bench.now_ns;
    let (mut renews, mut rebinds) = (0, 0);
    loop {
        let (kind, bytes) = bench.wait();
        match kind {
            message::RENEW => renews += 1,
            message::REBIND => {
                assert!(!codes(&bytes).contains(&option::SERVER_ID));
                if rebinds == 0 {
                    assert_eq!(bench.now_ns, bound_ns + 2000 * SECOND_NS);
                }
                rebinds += 1;
            }
            kind => {
                assert_eq!(kind, message::SOLICIT);
                break;
            }
        }
        assert!(!bench.client.bindings.is_empty());
    }
    assert!(bench.client.bindings.is_empty());
    assert_eq!(bench.now_ns, bound_ns + 3600 * SECOND_NS);
    assert!((5..12).contains(&renews) && (5..12).contains(&rebinds), "{renews} {rebinds}");
}

#[test]
fn a_request_that_nobody_answers_ends_and_servers_are_solicited_again() {
    let mut bench = Bench::new();
    bench.wait();
    bench.advertise(SERVER, 255).unwrap();
    let mut kinds = vec![bench.now()];
    while kinds.last() == Some(&message::REQUEST) {
        kinds.push(bench.wait().0);
    }
    assert_eq!(kinds.len(), 11);
    assert_eq!(kinds.last(), Some(&message::SOLICIT));
}

#[test]
fn a_link_that_comes_back_confirms_addresses_and_rebinds_prefixes() {
    let mut bench = Bench::new();
    bench.bind(&usual());
    let down = |bench: &mut Bench| {
        bench.client.set_link(false, bench.now_ns, &mut bench.jitter);
        assert_eq!(bench.client.state, State::Down);
        assert!(!bench.client.bindings.is_empty(), "the lease lasts");
        bench.client.set_link(true, bench.now_ns, &mut bench.jitter);
    };
    down(&mut bench);
    let (kind, bytes) = bench.wait();
    assert_eq!((kind, codes(&bytes)), (message::CONFIRM, vec![1, 8, 3]));
    let bytes = bench.message(message::REPLY, OTHER, &[], &[(option::STATUS_CODE, &[0, 0])]);
    bench.hear(&bytes).unwrap();
    assert_eq!(bench.client.state, State::Bound);
    // Nobody answers: the address is used on.
    down(&mut bench);
    let mut confirms = 0;
    while bench.wait().0 == message::CONFIRM {
        confirms += 1;
    }
    assert!((3..6).contains(&confirms), "{confirms}");
    assert_eq!((bench.client.state, bench.client.bindings.len()), (State::Renewing, 1));
    // The link is another one.
    down(&mut bench);
    bench.wait();
    let bytes = bench.message(message::REPLY, OTHER, &[], &[(option::STATUS_CODE, &[0, 4])]);
    bench.hear(&bytes).unwrap();
    assert!(bench.client.bindings.is_empty());
    assert_eq!(bench.now(), message::SOLICIT);

    let mut bench = Bench::of(IaType::Pd);
    let mut said = usual();
    said.members = vec![member("2001:db8:7::1", 56, 3000, 3600)];
    bench.bind(&said);
    assert_eq!(bench.addresses(), ["2001:db8:7::/56"]);
    down(&mut bench);
    let (kind, bytes) = bench.wait();
    assert_eq!((kind, codes(&bytes)), (message::REBIND, vec![1, 8, 6, 25]));
    bench.reply(&said).unwrap();
    assert_eq!(bench.client.state, State::Bound);
}

#[test]
fn a_server_that_has_forgotten_the_lease_is_asked_for_the_same() {
    let mut bench = Bench::new();
    bench.bind(&usual());
    bench.wait();
    let forgotten = Said { status: status::NO_BINDING, members: vec![], ..usual() };
    bench.reply(&forgotten).unwrap();
    assert_eq!(bench.addresses().len(), 1, "it is used on");
    let (kind, bytes) = bench.wait();
    assert_eq!(kind, message::REQUEST);
    assert_eq!(options(&bytes)[4].1.len(), Ia::LEN + 4 + IaAddress::LEN);
    bench.reply(&usual()).unwrap();
    assert_eq!(bench.client.state, State::Bound);
}

#[test]
fn a_refusal_is_not_asked_again_at_once() {
    let mut bench = Bench::new();
    bench.wait();
    let none = Said { status: status::NO_ADDRESSES, members: vec![], ..usual() };
    let bytes = bench.message(message::ADVERTISE, SERVER, std::slice::from_ref(&none), &[]);
    bench.hear(&bytes).unwrap();
    assert_eq!((bench.client.counts.refused, bench.wait().0), (1, message::SOLICIT));
    bench.advertise(SERVER, 255).unwrap();
    bench.now();
    let request_ns = bench.now_ns;
    bench.reply(&none).unwrap();
    assert_eq!(bench.wait().0, message::SOLICIT);
    assert_eq!(bench.now_ns, request_ns + REFUSED_WAIT_NS);
    // With a lease, it lasts.
    bench.advertise(SERVER, 255).unwrap();
    bench.now();
    bench.reply(&usual()).unwrap();
    bench.wait();
    bench.reply(&none).unwrap();
    assert_eq!((bench.client.state, bench.addresses().len()), (State::Renewing, 1));
}

#[test]
fn an_address_that_somebody_has_is_declined() {
    let mut bench = Bench::new();
    let mut said = usual();
    said.members.push(member("2001:db8::78", 128, 3000, 3600));
    bench.bind(&said);
    assert!(bench.client.is_on_probation(bench.now_ns));
    assert!(!bench.client.is_on_probation(bench.now_ns + PROBATION_NS));
    bench.client.decline(&["2001:db8::77".parse().unwrap()], bench.now_ns, &mut bench.jitter);
    assert_eq!(bench.addresses(), ["2001:db8::78/128"]);
    let (kind, bytes) = bench.wait();
    assert_eq!((kind, codes(&bytes)), (message::DECLINE, vec![1, 2, 8, 3]));
    let ia = options(&bytes)[3].1.clone();
    let ia = Ia::parse(&ia).unwrap();
    let declined = ia.options.find(option::IA_ADDRESS).and_then(IaAddress::parse).unwrap();
    assert_eq!(declined.address.to_string(), "2001:db8::77");
    assert_eq!(bench.wait().0, message::DECLINE);
    let bytes = bench.message(message::REPLY, SERVER, &[], &[]);
    bench.hear(&bytes).unwrap();
    assert_eq!(bench.client.state, State::Bound);
    bench.client.decline(&["2001:db8::78".parse().unwrap()], bench.now_ns, &mut bench.jitter);
    let kinds: Vec<u8> = (0..5).map(|_| bench.wait().0).collect();
    assert_eq!(kinds, [9, 9, 9, 9, 1], "nobody answers");
}

#[test]
fn what_is_needed_no_more_is_released() {
    let mut bench = Bench::new();
    bench.bind(&usual());
    bench.client.release(bench.now_ns, &mut bench.jitter);
    assert!(bench.client.bindings.is_empty() && !bench.client.has_ended());
    let (kind, bytes) = bench.wait();
    assert_eq!((kind, codes(&bytes)), (message::RELEASE, vec![1, 2, 8, 3]));
    assert_eq!(options(&bytes)[3].1.len(), Ia::LEN + 4 + IaAddress::LEN);
    let kinds: Vec<u8> = (0..4).map(|_| bench.wait().0).collect();
    assert_eq!(kinds, [8, 8, 8, 0]);
    assert!(bench.client.has_ended());
    bench.client.set_link(true, bench.now_ns, &mut bench.jitter);
    assert!(bench.client.has_ended());
    let mut bench = Bench::new();
    bench.client.release(bench.now_ns, &mut bench.jitter);
    assert!(bench.client.has_ended(), "it had nothing");
}

#[test]
fn what_makes_no_sense_changes_nothing() {
    let mut bench = Bench::new();
    let early = bench.message(message::ADVERTISE, SERVER, &[usual()], &[]);
    assert_eq!(bench.hear(&early), Err(ClientReason::Other), "nothing was sent");
    bench.wait();
    let mut other = bench.message(message::ADVERTISE, SERVER, &[usual()], &[]);
    other[3] ^= 1;
    assert_eq!(bench.hear(&other), Err(ClientReason::Other));
    let mut other = bench.message(message::ADVERTISE, SERVER, &[usual()], &[]);
    other[4 + 4 + 9] ^= 1;
    assert_eq!(bench.hear(&other), Err(ClientReason::Other), "another client's");
    let nameless = bench.message(message::ADVERTISE, &[], &[usual()], &[]);
    assert_eq!(bench.hear(&nameless), Err(ClientReason::Malformed));
    let long = bench.message(message::ADVERTISE, &[7; 131], &[usual()], &[]);
    assert_eq!(bench.hear(&long), Err(ClientReason::Malformed));
    let turned = Said { times: (2000, 1000), ..usual() };
    let stranger = Said { iaid: IAID + 1, ..usual() };
    for said in [turned.clone(), stranger.clone()] {
        let bytes = bench.message(message::ADVERTISE, SERVER, &[said], &[]);
        assert_eq!(bench.hear(&bytes), Err(ClientReason::Unexpected));
    }
    let mut short = usual();
    short.members[0].preferred_s = 4000;
    let mut multicast = usual();
    multicast.members[0].prefix = "ff02::1".parse().unwrap();
    let mut linked = usual();
    linked.members[0].prefix = "fe80::1".parse().unwrap();
    let mut mapped = usual();
    mapped.members[0].prefix = "::ffff:1.2.3.4".parse().unwrap();
    for said in [short, multicast, linked, mapped] {
        let before = bench.client.counts;
        let bytes = bench.message(message::ADVERTISE, SERVER, &[said], &[]);
        bench.hear(&bytes).unwrap();
        assert_eq!(bench.client.counts.refused, before.refused + 1);
        assert_eq!(bench.client.counts.left_out, before.left_out + 1);
    }
    bench.advertise(SERVER, 255).unwrap();
    bench.now();
    let bytes = bench.message(message::REPLY, OTHER, &[usual()], &[]);
    assert_eq!(bench.hear(&bytes), Err(ClientReason::Unexpected), "it was not asked");
    for said in [turned, stranger] {
        assert_eq!(bench.reply(&said), Err(ClientReason::Unexpected));
    }
    for kind in [message::ADVERTISE, message::RECONFIGURE, message::RELAY_REPLY, message::SOLICIT] {
        let bytes = bench.message(kind, SERVER, &[usual()], &[]);
        assert_eq!(bench.hear(&bytes), Err(ClientReason::Unexpected));
    }
    assert_eq!(bench.client.state, State::Requesting);
    bench.reply(&usual()).unwrap();
    assert_eq!(bench.reply(&usual()), Err(ClientReason::Unexpected), "it is bound");
}

#[test]
fn times_that_the_client_may_choose_and_lifetimes_without_end() {
    let mut bench = Bench::new();
    bench.bind(&Said { times: (0, 0), ..usual() });
    let after = |at_ns: u64, bench: &Bench| (at_ns - bench.now_ns) / SECOND_NS;
    assert_eq!(after(bench.client.renew_ns, &bench), 1500);
    assert_eq!(after(bench.client.rebind_ns, &bench), 2400);
    let mut bench = Bench::new();
    let members = vec![member("2001:db8::77", 128, INFINITY_S, INFINITY_S)];
    bench.bind(&Said { times: (0, 0), members: members.clone(), ..usual() });
    assert_eq!((bench.client.state, bench.client.due_ns()), (State::Bound, u64::MAX));
    let mut bench = Bench::new();
    bench.bind(&Said { times: (INFINITY_S, INFINITY_S), ..usual() });
    assert_eq!(bench.client.renew_ns, u64::MAX, "it lasts for an hour and is not renewed");
    let mut bench = Bench::new();
    let members = vec![member("2001:db8::77", 128, 0, 100)];
    bench.bind(&Said { times: (0, 0), members, ..usual() });
    assert_eq!(after(bench.client.renew_ns, &bench), 50);
    assert!(bench.client.bindings[0].preferred_until_ns <= bench.now_ns, "deprecated");
    let mut bench = Bench::new();
    let members = vec![member("2001:db8::77", 128, 100, 200)];
    bench.bind(&Said { times: (500, 600), members, ..usual() });
    assert_eq!(after(bench.client.renew_ns, &bench), 50, "it would end before");
    assert_eq!(after(bench.client.rebind_ns, &bench), 80);
}

#[test]
fn a_lifetime_of_0_ends_an_address_and_others_stay() {
    let mut bench = Bench::new();
    let mut said = usual();
    said.members.push(member("2001:db8::78", 128, 3000, 3600));
    bench.bind(&said);
    bench.wait();
    said.members[0] = member("2001:db8::77", 128, 0, 0);
    bench.reply(&said).unwrap();
    assert_eq!(bench.addresses(), ["2001:db8::78/128"]);
    bench.wait();
    said.members[1] = member("2001:db8::78", 128, 0, 0);
    bench.reply(&said).unwrap();
    assert!(bench.addresses().is_empty());
    assert_eq!(bench.client.state, State::Soliciting);
}

#[test]
fn a_server_with_many_prefixes_gives_as_many_as_a_client_takes() {
    let mut bench = Bench::of(IaType::Pd);
    let all: Vec<IaPrefix> =
        (0..100).map(|n| member(&format!("2001:db8:{n:x}::"), 48, 100, 200)).collect();
    bench.bind(&Said { members: all.clone(), ..usual() });
    assert_eq!(bench.client.bindings.len(), BINDINGS_MAX);
    assert_eq!(bench.client.counts.left_out, 2 * (100 - BINDINGS_MAX as u64));
    bench.wait();
    let others = all[50..].to_vec();
    bench.reply(&Said { members: others, ..usual() }).unwrap();
    assert_eq!(bench.client.bindings.len(), BINDINGS_MAX);
    assert_eq!(bench.addresses()[0], "2001:db8::/48", "those that it had");
    let wide = vec![member("2000::", 3, 100, 200)];
    let mut bench = Bench::of(IaType::Pd);
    bench.wait();
    let bytes =
        bench.message(message::ADVERTISE, SERVER, &[Said { members: wide, ..usual() }], &[]);
    bench.hear(&bytes).unwrap();
    assert_eq!(bench.client.counts.refused, 1, "no site's");
}

#[test]
fn a_server_sets_the_longest_wait_within_bounds() {
    let mut bench = Bench::new();
    bench.wait();
    for (longest_s, expected) in [(59u32, 3600), (60, 60), (86_401, 60), (86_400, 86_400)] {
        let bytes = longest_s.to_be_bytes();
        let none = Said { status: status::NO_ADDRESSES, members: vec![], ..usual() };
        let more = [(option::SOL_MAX_RT, &bytes[..])];
        let bytes = bench.message(message::ADVERTISE, SERVER, &[none], &more);
        bench.hear(&bytes).unwrap();
        assert_eq!(bench.client.sol_max_rt_s, expected);
    }
}

fn some_member() -> impl Strategy<Value = IaPrefix> {
    let lifetime = || prop_oneof![Just(0), Just(INFINITY_S), 0u32..5000];
    let prefix =
        prop_oneof![any::<u128>(), (0u128..8).prop_map(|n| 0x2001_0db8 << 96 | n << 64 | 1)];
    (prefix, any::<u8>(), lifetime(), lifetime()).prop_map(
        |(prefix, length, preferred_s, valid_s)| IaPrefix {
            preferred_s,
            valid_s,
            length,
            prefix: prefix.into(),
        },
    )
}

fn some_said() -> impl Strategy<Value = Said> {
    let time = || prop_oneof![Just(0), Just(INFINITY_S), 0u32..5000];
    let iaid = prop_oneof![9 => Just(IAID), 1 => any::<u32>()];
    let members = prop::collection::vec(some_member(), 0..24);
    let status = prop_oneof![3 => Just(0u16), 1 => 0u16..8];
    (iaid, time(), time(), status, members).prop_map(|(iaid, t1, t2, status, members)| Said {
        iaid,
        times: (t1, t2),
        status,
        members,
    })
}

proptest! {
    #[test]
    fn no_message_panics_and_the_client_neither_stops_nor_floods(
        is_pd: bool,
        steps in prop::collection::vec(
            (prop_oneof![Just(2u8), Just(7u8), any::<u8>()],
             prop::collection::vec(some_said(), 0..3),
             0u16..8, any::<bool>(), prop::option::of((any::<u16>(), any::<u8>())), 0u8..6),
            1..24)
    ) {
        let mut bench = Bench::of(if is_pd { IaType::Pd } else { IaType::Na });
        let began_ns = bench.now_ns;
        for (kind, said, code, rapid, change, other) in steps {
            match other {
                0 => bench.client.set_link(false, bench.now_ns, &mut bench.jitter),
                1 => {
                    let first = bench.client.bindings.first().map(|binding| binding.address);
                    let all: Vec<_> = first.into_iter().collect();
                    bench.client.decline(&all, bench.now_ns, &mut bench.jitter);
                }
                _ => {}
            }
            bench.client.set_link(true, bench.now_ns, &mut bench.jitter);
            bench.wait();
            let code = code.to_be_bytes();
            let mut more: Vec<(u16, &[u8])> = vec![(option::PREFERENCE, &[255])];
            if code != [0, 0] {
                more.push((option::STATUS_CODE, &code));
            }
            if rapid {
                more.push((option::RAPID_COMMIT, &[]));
            }
            let mut bytes = bench.message(kind, SERVER, &said, &more);
            if let Some((place, value)) = change {
                let place = 22 + usize::from(place) % (bytes.len() - 22);
                bytes[place] = value;
            }
            if let Ok(read) = Message::parse(&bytes) {
                let _ = bench.client.hear(&read, FROM, bench.now_ns, &mut bench.jitter);
            }
            let client = &bench.client;
            prop_assert!(client.bindings.len() <= BINDINGS_MAX);
            for binding in &client.bindings {
                prop_assert!(is_acceptable(binding.address));
                prop_assert!(binding.valid_until_ns > bench.now_ns);
            }
            let lasts = client.bindings.iter().any(|binding| binding.valid_until_ns == u64::MAX)
                || client.renew_ns == u64::MAX;
            prop_assert!(client.due_ns() != u64::MAX || lasts, "{:?}", client.state);
        }
        let seconds = (bench.now_ns - began_ns) / SECOND_NS;
        prop_assert!(bench.client.counts.sent <= 2 * seconds + 60);
    }
}
