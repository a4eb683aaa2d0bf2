//! The host side of the protocols, with time moved by hand.

use super::*;
use std::net::Ipv4Addr;

const GROUP: IpAddr = IpAddr::V4(Ipv4Addr::new(239, 1, 1, 1));
const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(239, 2, 2, 2));

fn source(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

fn only(sources: &[u8]) -> Filter {
    Filter::Only(sources.iter().map(|last| source(*last)).collect())
}

fn listening(groups: &[(IpAddr, Filter)]) -> BTreeMap<IpAddr, Filter> {
    groups.iter().cloned().collect()
}

fn record_of(kind: u8, group: IpAddr, sources: &[u8]) -> Record {
    Record { kind, group, sources: sources.iter().map(|last| source(*last)).collect() }
}

fn query(version: Version, group: Option<IpAddr>, sources: &[u8]) -> Query {
    let sources = sources.iter().map(|last| source(*last)).collect();
    Query { version, group, sources, response_ms: 1000, robustness: 2, interval_s: 125 }
}

/// All that a port says until nothing is due any more, with when.
fn drain(port: &mut Port, jitter: &mut Jitter) -> Vec<(u64, Say)> {
    let mut out = Vec::new();
    while let Some(at) = port.due_ns() {
        out.extend(port.due(at, jitter).into_iter().map(|say| (at, say)));
    }
    out
}

fn says(port: &mut Port, jitter: &mut Jitter) -> Vec<Say> {
    drain(port, jitter).into_iter().map(|(_, say)| say).collect()
}

#[test]
fn a_join_is_told_at_once_and_again_within_a_second() {
    let (mut port, mut jitter) = (Port::default(), Jitter::seeded(1));
    port.set(listening(&[(GROUP, Filter::Any)]), 5);
    let told = drain(&mut port, &mut jitter);
    let join = Say::Records(vec![record_of(record::TO_EXCLUDE, GROUP, &[])]);
    assert_eq!(told.iter().map(|(_, say)| say).collect::<Vec<_>>(), [&join, &join]);
    assert!(told[0].0 == 5 && told[1].0 > 5 && told[1].0 <= 5 + SECOND_NS);
}

#[test]
fn a_leave_in_the_middle_of_a_join_is_what_is_told_from_then_on() {
    let (mut port, mut jitter) = (Port::default(), Jitter::seeded(1));
    port.set(listening(&[(GROUP, Filter::Any)]), 0);
    port.due(0, &mut jitter);
    port.set(BTreeMap::new(), 1);
    let leave = Say::Records(vec![record_of(record::TO_INCLUDE, GROUP, &[])]);
    assert_eq!(says(&mut port, &mut jitter), [leave.clone(), leave]);
}

#[test]
fn sources_that_come_and_go_are_told_as_differences() {
    let (mut port, mut jitter) = (Port::default(), Jitter::seeded(1));
    port.set(listening(&[(GROUP, only(&[1, 2]))]), 0);
    let allow = Say::Records(vec![record_of(record::ALLOW, GROUP, &[1, 2])]);
    assert_eq!(says(&mut port, &mut jitter), [allow.clone(), allow]);
    port.set(listening(&[(GROUP, only(&[2, 3]))]), 9);
    let both = vec![record_of(record::ALLOW, GROUP, &[3]), record_of(record::BLOCK, GROUP, &[1])];
    assert_eq!(says(&mut port, &mut jitter)[0], Say::Records(both));
    port.set(listening(&[(GROUP, Filter::Any)]), 20);
    let all = Say::Records(vec![record_of(record::TO_EXCLUDE, GROUP, &[])]);
    assert_eq!(says(&mut port, &mut jitter)[0], all);
    port.set(listening(&[(GROUP, only(&[7]))]), 30);
    let one = Say::Records(vec![record_of(record::TO_INCLUDE, GROUP, &[7])]);
    assert_eq!(says(&mut port, &mut jitter)[0], one);
}

#[test]
fn a_general_query_is_answered_by_one_report_of_all_groups_within_its_time() {
    let (mut port, mut jitter) = (Port::default(), Jitter::seeded(3));
    port.set(listening(&[(GROUP, Filter::Any), (OTHER, only(&[4]))]), 0);
    says(&mut port, &mut jitter);
    let now = 100 * SECOND_NS;
    port.query_received(&query(Version::Three, None, &[]), now, &mut jitter);
    let told = drain(&mut port, &mut jitter);
    let records =
        vec![record_of(record::IS_EXCLUDE, GROUP, &[]), record_of(record::IS_INCLUDE, OTHER, &[4])];
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].1, Say::Records(records));
    assert!(told[0].0 >= now && told[0].0 <= now + SECOND_NS);
}

#[test]
fn a_query_for_a_group_is_answered_for_that_group_only_if_it_is_listened_to() {
    let (mut port, mut jitter) = (Port::default(), Jitter::seeded(3));
    port.set(listening(&[(GROUP, Filter::Any)]), 0);
    says(&mut port, &mut jitter);
    port.query_received(&query(Version::Three, Some(OTHER), &[]), 0, &mut jitter);
    assert_eq!(port.due_ns(), None);
    port.query_received(&query(Version::Three, Some(GROUP), &[]), 0, &mut jitter);
    port.query_received(&query(Version::Three, Some(GROUP), &[]), 0, &mut jitter);
    assert_eq!(
        says(&mut port, &mut jitter),
        [Say::Records(vec![record_of(record::IS_EXCLUDE, GROUP, &[])])]
    );
}

#[test]
fn a_query_for_sources_is_answered_with_those_that_are_listened_to() {
    let (mut port, mut jitter) = (Port::default(), Jitter::seeded(3));
    port.set(listening(&[(GROUP, only(&[1, 2])), (OTHER, Filter::Any)]), 0);
    says(&mut port, &mut jitter);
    port.query_received(&query(Version::Three, Some(GROUP), &[2, 9]), 0, &mut jitter);
    assert_eq!(
        says(&mut port, &mut jitter),
        [Say::Records(vec![record_of(record::IS_INCLUDE, GROUP, &[2])])]
    );
    port.query_received(&query(Version::Three, Some(GROUP), &[9]), 0, &mut jitter);
    assert_eq!(says(&mut port, &mut jitter), [], "none of them");
    port.query_received(&query(Version::Three, Some(OTHER), &[9]), 0, &mut jitter);
    port.query_received(&query(Version::Three, Some(OTHER), &[8]), 0, &mut jitter);
    assert_eq!(
        says(&mut port, &mut jitter),
        [Say::Records(vec![record_of(record::IS_INCLUDE, OTHER, &[8, 9])])]
    );
}

#[test]
fn an_older_router_is_spoken_to_in_its_version_until_it_is_gone() {
    let (mut port, mut jitter) = (Port::default(), Jitter::seeded(3));
    port.set(listening(&[(GROUP, Filter::Any), (OTHER, Filter::Any)]), 0);
    says(&mut port, &mut jitter);
    port.query_received(&query(Version::Two, None, &[]), 0, &mut jitter);
    assert_eq!(port.version(1), Version::Two);
    port.heard_report(OTHER, 1);
    assert_eq!(
        says(&mut port, &mut jitter),
        [Say::Report(Version::Two, GROUP)],
        "somebody else told of the other"
    );
    port.set(listening(&[(OTHER, Filter::Any)]), 2);
    assert_eq!(says(&mut port, &mut jitter), [Say::Leave(GROUP)]);
    port.query_received(&query(Version::One, None, &[]), 3, &mut jitter);
    port.set(BTreeMap::new(), 4);
    assert_eq!(says(&mut port, &mut jitter), [], "nobody leaves in version 1");
    assert_eq!(port.version(252 * SECOND_NS), Version::Three);
}

#[test]
fn a_join_is_repeated_in_the_older_versions_too() {
    let (mut port, mut jitter) = (Port::default(), Jitter::seeded(3));
    port.query_received(&query(Version::Two, None, &[]), 0, &mut jitter);
    port.set(listening(&[(GROUP, Filter::Any)]), 0);
    let told = drain(&mut port, &mut jitter);
    assert_eq!(told.len(), 2);
    assert!(told.iter().all(|(_, say)| *say == Say::Report(Version::Two, GROUP)));
    assert!(told[1].0 <= OLD_REPEAT_NS_MAX);
}

#[test]
fn the_router_says_how_often_changes_are_told() {
    let (mut port, mut jitter) = (Port::default(), Jitter::seeded(3));
    let asked = Query { robustness: 5, interval_s: 60, ..query(Version::Three, None, &[]) };
    port.query_received(&asked, 0, &mut jitter);
    says(&mut port, &mut jitter);
    port.set(listening(&[(GROUP, Filter::Any)]), 0);
    assert_eq!(says(&mut port, &mut jitter).len(), 5);
    port.query_received(&Query { robustness: 0, interval_s: 0, ..asked }, 0, &mut jitter);
    assert_eq!((port.robustness, port.interval_s), (ROBUSTNESS, QUERY_INTERVAL_S));
}

#[test]
fn a_link_that_comes_back_hears_of_every_group_again() {
    let (mut port, mut jitter) = (Port::default(), Jitter::seeded(3));
    port.set(listening(&[(GROUP, Filter::Any), (OTHER, only(&[1]))]), 0);
    says(&mut port, &mut jitter);
    port.report_all(50);
    let records =
        vec![record_of(record::TO_EXCLUDE, GROUP, &[]), record_of(record::ALLOW, OTHER, &[1])];
    assert_eq!(says(&mut port, &mut jitter)[0], Say::Records(records));
}
