use std::net::Ipv4Addr;

use proptest::prelude::*;
use quiver_wire::igmp::record;

use super::*;
use crate::group::SOURCES_MAX;

const SECOND: u64 = 1_000_000_000;

fn address(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

fn group(last: u8) -> IpAddr {
    IpAddr::from([239, 1, 1, last])
}

fn set(of: &[u8]) -> BTreeSet<IpAddr> {
    of.iter().map(|n| address(*n)).collect()
}

/// One that is past its first general queries.
fn querier() -> Querier {
    let mut querier = Querier::new(Timers::default(), 0);
    for at in [0, 32, 160] {
        querier.due(at * SECOND);
    }
    querier
}

fn only(of: &[u8]) -> Option<Wanted> {
    Some(Wanted::Only(set(of)))
}

fn all_but(of: &[u8]) -> Option<Wanted> {
    Some(Wanted::AllBut(set(of)))
}

#[test]
fn general_queries_come_quickly_at_first_and_then_at_the_interval() {
    let mut querier = Querier::new(Timers::default(), 0);
    let mut times = Vec::new();
    for second in 0..500 {
        let asked = querier.due(second * SECOND);
        assert!(
            asked.iter().all(|question| question.group.is_none() && question.response_ms == 10_000)
        );
        times.extend(asked.iter().map(|_| second));
    }
    assert_eq!(times, [0, 32, 157, 282, 407]);
}

#[test]
fn the_router_with_the_lowest_address_asks_and_the_others_wait_until_it_is_gone() {
    let mut querier = querier();
    let query = Query {
        version: Version::Three,
        group: None,
        sources: Vec::new(),
        response_ms: 10_000,
        robustness: 2,
        interval_s: 100,
    };
    querier.heard_query(address(9), address(5), &query, false, 200 * SECOND);
    assert_eq!(querier.other_querier(), None, "a higher address gives way");
    querier.heard_query(address(2), address(5), &query, false, 200 * SECOND);
    assert_eq!((querier.other_querier(), querier.timers.query_interval_s), (Some(address(2)), 100));
    // Twice its interval and half of its response time.
    assert_eq!(querier.due_ns(), 405 * SECOND);
    assert!(querier.due(404 * SECOND).is_empty());
    assert_eq!(querier.due(405 * SECOND).len(), 1, "it asks at once when the other is gone");
    assert_eq!((querier.other_querier(), querier.timers.query_interval_s), (None, 125));
}

#[test]
fn a_group_ends_when_nobody_reports_it_for_so_long() {
    let mut querier = querier();
    let now = 200 * SECOND;
    querier.record(record::IS_EXCLUDE, group(1), &set(&[]), now);
    assert_eq!(querier.wanted(group(1)), all_but(&[]));
    assert_eq!(querier.take_changed().len(), 1);
    querier.due(now + 259 * SECOND);
    assert_eq!(querier.wanted(group(1)), all_but(&[]));
    querier.due(now + 260 * SECOND);
    assert_eq!((querier.wanted(group(1)), querier.take_changed().len()), (None, 1));
}

#[test]
fn a_leave_is_asked_about_twice_and_believed_after_two_seconds() {
    let mut querier = querier();
    let now = 170 * SECOND;
    querier.record(record::IS_EXCLUDE, group(1), &set(&[]), now);
    querier.record(record::TO_INCLUDE, group(1), &set(&[]), now);
    let asked = querier.due(now);
    assert_eq!((asked.len(), asked[0].group, asked[0].suppress), (1, Some(group(1)), false));
    assert_eq!(asked[0].response_ms, 1000);
    assert_eq!(querier.due(now + SECOND).len(), 1);
    assert_eq!(querier.wanted(group(1)), all_but(&[]));
    assert!(querier.due(now + 2 * SECOND).is_empty());
    assert_eq!(querier.wanted(group(1)), None);
}

#[test]
fn somebody_who_still_listens_keeps_the_group_and_the_repetition_says_so() {
    let mut querier = querier();
    let now = 170 * SECOND;
    querier.record(record::IS_EXCLUDE, group(1), &set(&[]), now);
    querier.leave(group(1), now);
    querier.due(now);
    querier.old_report(Version::Two, group(1), now + SECOND / 2);
    let again = querier.due(now + SECOND);
    assert_eq!((again.len(), again[0].suppress), (1, true), "the S flag (RFC 3376 §6.6.3.1)");
    querier.due(now + 100 * SECOND);
    assert_eq!(querier.wanted(group(1)), all_but(&[]));
}

#[test]
fn what_an_older_host_needs_is_not_taken_from_it() {
    let mut querier = querier();
    let now = 170 * SECOND;
    querier.old_report(Version::One, group(1), now);
    querier.leave(group(1), now);
    querier.record(record::BLOCK, group(1), &set(&[3]), now);
    querier.record(record::TO_EXCLUDE, group(1), &set(&[3]), now);
    assert!(querier.due(now).is_empty());
    assert_eq!(querier.wanted(group(1)), all_but(&[]));
}

/// RFC 3376 §6.4.1 and §6.4.2, line by line: state, record, what is wanted then, and what is asked.
#[test]
fn the_tables_of_rfc_3376_hold() {
    let now = 170 * SECOND;
    let asked_of = |querier: &mut Querier| {
        let asked = querier.due(now);
        let group = asked.iter().any(|question| question.sources.is_empty());
        (group, asked.into_iter().flat_map(|question| question.sources).collect::<BTreeSet<_>>())
    };
    // From INCLUDE (1, 2).
    for (kind, sources, wanted, asked) in [
        (record::IS_INCLUDE, &[2, 3][..], only(&[1, 2, 3]), &[][..]),
        (record::IS_EXCLUDE, &[2, 3], all_but(&[3]), &[]),
        (record::ALLOW, &[3], only(&[1, 2, 3]), &[]),
        (record::BLOCK, &[2, 3], only(&[1, 2]), &[2]),
        (record::TO_EXCLUDE, &[2, 3], all_but(&[3]), &[2]),
        (record::TO_INCLUDE, &[2, 3], only(&[1, 2, 3]), &[1]),
    ] {
        let mut querier = querier();
        querier.record(record::IS_INCLUDE, group(1), &set(&[1, 2]), now);
        querier.record(kind, group(1), &set(sources), now);
        assert_eq!(querier.wanted(group(1)), wanted, "include, {kind}");
        assert_eq!(asked_of(&mut querier), (false, set(asked)), "include, {kind}");
    }
    // From EXCLUDE (1, 2; 7, 8): 1 and 2 are asked for in particular, 7 and 8 unwanted.
    for (kind, sources, wanted, asks_group, asked) in [
        (record::IS_INCLUDE, &[2, 3, 7][..], all_but(&[8]), false, &[][..]),
        (record::IS_EXCLUDE, &[2, 3, 7], all_but(&[7]), false, &[]),
        (record::ALLOW, &[7], all_but(&[8]), false, &[]),
        (record::BLOCK, &[2, 3, 7], all_but(&[7, 8]), false, &[2, 3]),
        (record::TO_EXCLUDE, &[2, 3, 7], all_but(&[7]), false, &[2, 3]),
        (record::TO_INCLUDE, &[2, 3, 7], all_but(&[8]), true, &[1]),
    ] {
        let mut querier = querier();
        querier.record(record::IS_EXCLUDE, group(1), &set(&[7, 8]), now);
        querier.record(record::ALLOW, group(1), &set(&[1, 2]), now);
        assert_eq!(querier.wanted(group(1)), all_but(&[7, 8]));
        querier.record(kind, group(1), &set(sources), now);
        assert_eq!(querier.wanted(group(1)), wanted, "exclude, {kind}");
        assert_eq!(asked_of(&mut querier), (asks_group, set(asked)), "exclude, {kind}");
    }
}

#[test]
fn without_hosts_that_want_all_the_sources_that_are_asked_for_stay() {
    let mut querier = querier();
    let now = 170 * SECOND;
    querier.record(record::IS_EXCLUDE, group(1), &set(&[7]), now);
    querier.record(record::ALLOW, group(1), &set(&[1]), now + 100 * SECOND);
    querier.due(now + 260 * SECOND);
    assert_eq!(querier.wanted(group(1)), only(&[1]));
    querier.due(now + 360 * SECOND);
    assert_eq!(querier.wanted(group(1)), None);
}

#[test]
fn another_queriers_question_lowers_the_timers_unless_it_says_not_to() {
    for (suppress, wanted) in [(false, None), (true, all_but(&[]))] {
        let mut querier = querier();
        let now = 170 * SECOND;
        querier.record(record::IS_EXCLUDE, group(1), &set(&[]), now);
        let query = Query {
            version: Version::Three,
            group: Some(group(1)),
            sources: Vec::new(),
            response_ms: 1000,
            robustness: 2,
            interval_s: 125,
        };
        querier.heard_query(address(1), address(5), &query, suppress, now);
        assert!(querier.due(now + 2 * SECOND).is_empty(), "this router does not ask");
        assert_eq!(querier.wanted(group(1)), wanted);
    }
}

#[test]
fn groups_and_sources_are_bounded() {
    let mut querier = querier();
    let many: BTreeSet<IpAddr> =
        (0..1000).map(|n| Ipv4Addr::from_bits(0x0a01_0000 + n).into()).collect();
    for kind in [record::ALLOW, record::IS_EXCLUDE, record::ALLOW, record::BLOCK] {
        querier.record(kind, group(1), &many, 170 * SECOND);
    }
    let Some(Wanted::AllBut(sources) | Wanted::Only(sources)) = querier.wanted(group(1)) else {
        panic!()
    };
    assert!(sources.len() <= SOURCES_MAX);
    for n in 0..2 * GROUPS_MAX as u32 {
        let group = Ipv4Addr::from_bits(0xe900_0000 + n).into();
        querier.record(record::IS_EXCLUDE, group, &set(&[]), 170 * SECOND);
    }
    assert_eq!(querier.groups().count(), GROUPS_MAX);
    assert!(querier.refused > GROUPS_MAX as u64);
}

proptest! {
    /// Whatever hosts and routers say, timers stand in the index once, nothing that is due stays
    /// due, and in the end every group is forgotten.
    #[test]
    fn whatever_is_said_the_state_is_sound_and_ends(
        said in prop::collection::vec(
            (0u8..10, 1u8..4, prop::collection::btree_set(0u8..6, 0..4), 0u64..40), 1..80
        )
    ) {
        let mut querier = Querier::new(Timers::default(), 0);
        let mut now = 0;
        for (what, which, sources, later) in said {
            now += later * SECOND / 4;
            let (group, sources) =
                (group(which), sources.into_iter().map(address).collect::<BTreeSet<_>>());
            match what {
                1..=6 => querier.record(what, group, &sources, now),
                7 => querier.old_report(Version::Two, group, now),
                8 => querier.leave(group, now),
                _ => {
                    let query = Query {
                        version: Version::Three,
                        group: Some(group),
                        sources: sources.into_iter().collect(),
                        response_ms: 1000,
                        robustness: 2,
                        interval_s: 125,
                    };
                    querier.heard_query(address(which), address(2), &query, which == 3, now);
                }
            }
            querier.due(now);
            prop_assert!(querier.due_ns() > now);
            let indexed: BTreeSet<IpAddr> = querier.due.iter().map(|(_, group)| *group).collect();
            prop_assert_eq!(indexed.len(), querier.due.len());
            prop_assert!(indexed.iter().eq(querier.groups.keys()));
        }
        let mut steps = 0;
        let end = now + 1000 * SECOND;
        while now < end {
            now = querier.due_ns();
            querier.due(now);
            steps += 1;
            prop_assert!(steps < 1000, "it comes to rest");
        }
        prop_assert_eq!(querier.groups().count(), 0);
    }
}
