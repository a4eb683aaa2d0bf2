//! States, ages and limits of neighbours.

use super::*;

#[test]
fn changes_are_kept_while_somebody_wants_them_and_the_oldest_make_room() {
    let (on, mac, other) =
        (InterfaceId(0), MacAddress([2, 0, 0, 0, 0, 1]), MacAddress([2, 0, 0, 0, 0, 2]));
    let address = |n: u32| IpAddr::V4(std::net::Ipv4Addr::from_bits(0x0a00_0000 + n));
    let mut neighbours = Neighbours::default();
    neighbours.learn(on, address(1), mac, NeighbourState::Reachable, 0);
    assert!(neighbours.take_changes().0.is_empty(), "nobody wants them");
    neighbours.watch_changes(true);
    neighbours.learn(on, address(1), mac, NeighbourState::Reachable, 1); // the same
    neighbours.learn(on, address(1), other, NeighbourState::Reachable, 2);
    neighbours.fix(NeighbourState::Static, on, address(2), mac, 3);
    let _ = neighbours.remove(on, address(1));
    let (changes, lost) = neighbours.take_changes();
    let said: Vec<_> = changes.iter().map(|c| (c.address, c.before, c.now, c.is_static)).collect();
    let expected = [
        (address(1), Some(mac), Some(other), false),
        (address(2), None, Some(mac), true),
        (address(1), Some(other), None, false),
    ];
    assert_eq!((said.as_slice(), lost), (&expected[..], 0));
    for n in 0..CHANGES_MAX as u32 + 7 {
        neighbours.fix(NeighbourState::Static, on, address(100 + n), mac, 4);
    }
    let (changes, lost) = neighbours.take_changes();
    assert_eq!((changes.len(), lost, changes[0].address), (CHANGES_MAX, 7, address(107)));
}

const ON: InterfaceId = InterfaceId(1);
const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const OTHER: MacAddress = MacAddress([2, 0, 0, 0, 0, 9]);

fn host(number: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, number])
}

fn learn(neighbours: &mut Neighbours, number: u8, now_ms: u64) -> Learned {
    neighbours.learn(ON, host(number), MAC, NeighbourState::Reachable, now_ms)
}

/// All that is due until `until_ms`, looked for every 100 ms.
fn watch(neighbours: &mut Neighbours, from_ms: u64, until_ms: u64) -> Vec<(u64, Due)> {
    let mut seen = Vec::new();
    for now_ms in (from_ms..=until_ms).step_by(100) {
        while let Some((_, _, due)) = neighbours.next_due(now_ms) {
            seen.push((now_ms, due));
        }
    }
    seen
}

#[test]
fn a_static_neighbour_is_not_overwritten_and_does_not_age() {
    let mut neighbours = Neighbours::default();
    neighbours.fix(NeighbourState::Static, ON, host(1), MAC, 0);
    let learned = neighbours.learn(ON, host(1), OTHER, NeighbourState::Reachable, 5);
    assert_eq!(learned, Learned::StaticStands);
    assert_eq!(watch(&mut neighbours, 0, 10_000_000), []);
    assert_eq!(neighbours.get(ON, host(1)).map(|neighbour| neighbour.mac), Some(MAC));
    assert_eq!(neighbours.dynamic(false), 0);
}

#[test]
fn one_that_nobody_uses_becomes_stale_and_is_forgotten_without_a_question() {
    let mut neighbours = Neighbours::default();
    learn(&mut neighbours, 1, 0);
    let seen = watch(&mut neighbours, 0, 2_000_000);
    let [(stale_ms, Due::Stale), (1_200_000, Due::Forget)] = seen[..] else { panic!("{seen:?}") };
    assert!((20_000..=60_100).contains(&stale_ms), "{stale_ms}");
}

#[test]
fn one_that_is_used_is_asked_itself_then_all_and_then_forgotten() {
    let mut neighbours = Neighbours::default();
    neighbours.learn(ON, host(1), MAC, NeighbourState::Stale, 0);
    assert!(neighbours.used(ON, host(1), 1_000));
    assert!(!neighbours.used(ON, host(1), 1_100), "once");
    let expected: Vec<(u64, Due)> = [Due::AskIt(MAC); 3]
        .into_iter()
        .chain([Due::AskAll; 3])
        .chain([Due::Forget])
        .enumerate()
        .map(|(number, due)| (6_000 + 1_000 * number as u64, due))
        .collect();
    assert_eq!(watch(&mut neighbours, 1_000, 100_000), expected);
}

#[test]
fn an_answer_ends_the_questions() {
    let mut neighbours = Neighbours::default();
    neighbours.learn(ON, host(1), MAC, NeighbourState::Stale, 0);
    neighbours.used(ON, host(1), 0);
    assert_eq!(watch(&mut neighbours, 0, 5_500), [(5_000, Due::AskIt(MAC))]);
    assert_eq!(learn(&mut neighbours, 1, 5_600), Learned::Refreshed);
    assert_eq!(watch(&mut neighbours, 5_600, 20_000), []);
    assert!(neighbours.doubt(ON, host(1), 20_000), "somebody else claims the address");
    assert_eq!(neighbours.get(ON, host(1)).map(|n| n.state), Some(NeighbourState::Stale));
}

#[test]
fn a_full_table_refuses_new_ones_and_refreshes_old_ones() {
    let mut neighbours = Neighbours::default();
    neighbours.configure(false, NeighbourConfig { limit: 1, ..NeighbourConfig::default() });
    assert_eq!(learn(&mut neighbours, 1, 0), Learned::Changed);
    assert_eq!(learn(&mut neighbours, 2, 0), Learned::Full);
    assert_eq!(learn(&mut neighbours, 1, 7), Learned::Refreshed);
    let six = IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1]);
    let learned = neighbours.learn(ON, six, MAC, NeighbourState::Reachable, 7);
    assert_eq!(learned, Learned::Changed, "the other family has a limit of its own");
}

#[test]
fn a_full_table_that_recycles_names_the_one_heard_longest_ago() {
    let mut neighbours = Neighbours::default();
    let config = NeighbourConfig { limit: 2, recycles: true, ..NeighbourConfig::default() };
    neighbours.configure(false, config);
    learn(&mut neighbours, 1, 0);
    learn(&mut neighbours, 2, 1);
    learn(&mut neighbours, 1, 2);
    assert_eq!(neighbours.unlucky_for(ON, host(1)), None, "it is there");
    assert_eq!(neighbours.unlucky_for(ON, host(3)), Some((ON, host(2))));
    neighbours.recycle(ON, host(2));
    assert_eq!(learn(&mut neighbours, 3, 3), Learned::Changed);
    assert_eq!((neighbours.dynamic(false), neighbours.recycled(false)), (2, 1));
}

#[test]
fn other_timers_hold_for_those_that_are_there() {
    let mut neighbours = Neighbours::default();
    learn(&mut neighbours, 1, 0);
    let config =
        NeighbourConfig { reachable_ms: 1_000, age_ms: 9_000, ..NeighbourConfig::default() };
    neighbours.configure(false, config);
    let seen = watch(&mut neighbours, 0, 2_000_000);
    let [(stale_ms, Due::Stale), (9_000, Due::Forget)] = seen[..] else { panic!("{seen:?}") };
    assert!((500..=1_600).contains(&stale_ms), "{stale_ms}");
}

#[test]
fn what_is_forgotten_is_due_no_more() {
    let mut neighbours = Neighbours::default();
    (0..100).for_each(|number| assert_eq!(learn(&mut neighbours, number, 0), Learned::Changed));
    (0..100).for_each(|number| assert!(neighbours.remove(ON, host(number)).is_some()));
    assert_eq!(watch(&mut neighbours, 0, 2_000_000), []);
    assert!(neighbours.is_empty() && neighbours.due.is_empty() && neighbours.dynamic(false) == 0);
}
