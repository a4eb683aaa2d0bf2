//! What befalls next hops that many routes share, and how long the control thread is at it.

use std::time::Instant;

use quiver_testkit::Router;

use super::{IP4_ROUTES, median, run_until_idle};

/// One command before, then the one that is timed.
struct Event {
    name: &'static str,
    /// How the next hop is set up for it, untimed.
    before: &'static [&'static str],
    timed: &'static str,
}

/// Routes as in the tables before, all of them by one list of next hops.
struct Shared {
    name: &'static str,
    set_up: &'static [&'static str],
    via: &'static str,
    events: &'static [Event],
}

const NEIGHBOUR: &str = "ip neighbor e1 10.1.0.2 02:00:00:00:01:02";

const SHARED: [Shared; 3] = [
    Shared {
        name: "two neighbours, each on an interface",
        set_up: &["ip neighbor e0 10.0.0.2 02:00:00:00:00:02", NEIGHBOUR],
        via: "via 10.0.0.2 via 10.1.0.2",
        events: &[
            Event {
                name: "a neighbour gets another MAC address",
                before: &[NEIGHBOUR],
                timed: "ip neighbor e1 10.1.0.2 02:00:00:00:01:03",
            },
            Event {
                name: "a neighbour is lost",
                before: &[NEIGHBOUR],
                timed: "ip neighbor del e1 10.1.0.2",
            },
            Event { name: "and comes back", before: &[], timed: NEIGHBOUR },
            Event {
                name: "an interface goes down: the group loses a member",
                before: &[],
                timed: "set interface state e1 down",
            },
            Event { name: "and up again", before: &[], timed: "set interface state e1 up" },
            Event {
                name: "its address is taken: the group loses a member",
                before: &[],
                timed: "set interface ip address del e1 10.1.0.1/24",
            },
            Event {
                name: "and given back",
                before: &[],
                timed: "set interface ip address e1 10.1.0.1/24",
            },
        ],
    },
    Shared {
        name: "one next hop behind a route (as from BGP)",
        set_up: &["ip route add 10.9.0.0/24 via 10.0.0.2"],
        via: "via 10.9.0.1",
        events: &[
            Event {
                name: "the route gets a second path",
                before: &[],
                timed: "ip route add 10.9.0.0/24 via 10.1.0.2",
            },
            Event {
                name: "and loses the first: the next hop is replaced",
                before: &[],
                timed: "ip route del 10.9.0.0/24 via 10.0.0.2",
            },
            Event {
                name: "a longer route takes the next hop over",
                before: &[
                    "ip route add 10.9.0.0/24 via 10.0.0.2",
                    "ip route del 10.9.0.0/24 via 10.1.0.2",
                ],
                timed: "ip route add 10.9.0.1/32 via 10.1.0.2",
            },
            Event { name: "and goes", before: &[], timed: "ip route del 10.9.0.1/32" },
        ],
    },
    Shared {
        name: "one next hop that names its interface",
        set_up: &[],
        via: "via 10.1.0.2 e1",
        events: &[
            Event {
                name: "its interface goes down",
                before: &[],
                timed: "set interface state e1 down",
            },
            Event { name: "and up", before: &[], timed: "set interface state e1 up" },
        ],
    },
];

/// Print what each event takes, with `IP4_ROUTES` behind the next hop.
pub fn print(router: &mut Router, rounds: usize) {
    router.interface("e1");
    router.cli("set interface ip address e1 10.1.0.1/24");
    println!("\n| {IP4_ROUTES} routes by | what happens | µs, median | longest |");
    println!("| --- | --- | --- | --- |");
    for shared in &SHARED {
        shared.set_up.iter().for_each(|line| drop(router.cli(line)));
        router.cli(&format!("ip route add 20.0.0.0/32 count {IP4_ROUTES} {}", shared.via));
        let mut taken_us = vec![Vec::new(); shared.events.len()];
        for _ in 0..rounds {
            for (event, taken_us) in shared.events.iter().zip(&mut taken_us) {
                event.before.iter().for_each(|line| drop(router.cli(line)));
                run_until_idle(router);
                let start = Instant::now();
                router.cli(event.timed);
                taken_us.push(start.elapsed().as_secs_f64() * 1e6);
                run_until_idle(router);
            }
        }
        for (event, taken_us) in shared.events.iter().zip(&taken_us) {
            let longest = taken_us.iter().copied().fold(0.0, f64::max);
            println!(
                "| {} | {} | {:.0} | {longest:.0} |",
                shared.name,
                event.name,
                median(taken_us)
            );
        }
        router.cli(&format!("ip route del 20.0.0.0/32 count {IP4_ROUTES}"));
    }
}
