//! Flows, hosts and classes of traffic share what a node sends.

use quiver_shaping::fair::{Arrival, FairQueues, Queue};
use quiver_shaping::settings::{Diffserv, Plan, Settings};

use crate::packets::{Collected, Packet};

/// What comes out first of queues that are full, by flow.
fn first_out(plan: Plan, arrivals: &[(Arrival, u32)], packets: usize) -> Vec<Packet> {
    let settings = Settings::new(&plan);
    let (mut queues, mut queue, mut out) =
        (FairQueues::new(100_000), Queue::EMPTY, Collected::default());
    for (of, (arrival, bytes)) in arrivals.iter().enumerate() {
        for id in 0..200 {
            let packet = Packet { id, ..Packet::new(of as u32, *bytes) };
            queues.enqueue(&mut queue, &settings, arrival, packet, 0).expect("room");
        }
    }
    for _ in 0..packets {
        queues.pop(&mut queue, &settings, 0, &mut out);
    }
    out.sent
}

fn bytes_of(packets: &[Packet], of: impl Fn(u32) -> bool) -> u32 {
    packets.iter().filter(|packet| of(packet.of)).map(|packet| packet.bytes).sum()
}

fn flow(flow: u32) -> Arrival {
    Arrival { node: 0, flow, host: flow / 100, tin: 0 }
}

/// RFC 8290 §4.2: bytes are shared, not packets.
#[test]
fn flows_with_packets_of_any_length_get_the_same_bytes() {
    let arrivals = [(flow(1), 1500), (flow(2), 300), (flow(3), 750)];
    let out = first_out(Plan::of_rate(1_000_000), &arrivals, 250);
    let each: Vec<u32> = (0..3).map(|of| bytes_of(&out, |at| at == of)).collect();
    assert!(each.iter().all(|bytes| bytes.abs_diff(each[0]) <= 3028), "{each:?}");
}

/// RFC 8290 §4.2: a flow that comes goes first, and in order.
#[test]
fn a_flow_stays_in_order() {
    let out = first_out(Plan::of_rate(1_000_000), &[(flow(1), 700), (flow(2), 900)], 400);
    for of in 0..2 {
        let ids: Vec<u32> = out.iter().filter(|p| p.of == of).map(|packet| packet.id).collect();
        assert_eq!(ids, (0..200).collect::<Vec<_>>());
    }
}

#[test]
fn hosts_share_before_their_flows_do() {
    let mut arrivals: Vec<_> = (0..8).map(|number| (flow(number), 1000)).collect();
    arrivals.push((flow(500), 1000));
    let shares = |isolates_hosts| {
        let plan = Plan { isolates_hosts, ..Plan::of_rate(1_000_000) };
        let out = first_out(plan, &arrivals, 300);
        bytes_of(&out, |of| of == 8) * 100 / bytes_of(&out, |_| true)
    };
    assert!((9..=13).contains(&shares(false)), "{}", shares(false));
    assert!((45..=55).contains(&shares(true)), "{}", shares(true));
}

#[test]
fn classes_of_traffic_come_in_order_and_none_starves() {
    let diffserv = Diffserv::Four;
    let of = |code_point| Arrival { tin: diffserv.tin(code_point), ..flow(1) };
    let arrivals = [46, 34, 0, 8].map(|code_point| (of(code_point), 500));
    let plan = Plan { diffserv, ..Plan::of_rate(1_000_000) };
    let out = first_out(plan, &arrivals, 350);
    assert!(out[..20].iter().all(|packet| packet.of == 0), "voice goes first");
    let each: Vec<u32> = (0..4).map(|class| bytes_of(&out, |at| at == class)).collect();
    assert!(each[2] > each[1] && each[1] > each[0] && each[0] > each[3], "{each:?}");
    assert!(each[3] > 0, "bulk is not forgotten");
}
