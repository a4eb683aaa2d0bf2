//! Clocks per look-up of the prefix matches, by table, by traffic, by how many addresses a call
//! gets and by kernel; then what changes cost. `cargo run --release -p quiver-tables --example
//! match_bench [-- [NAME-PART | all] [PREFIX-FILE]]`

use std::time::Instant;

use quiver_core::cpu::{Variant, clocks};
use quiver_core::memory::epoch::Epochs;
use quiver_tables::GroupId;
use quiver_tables::lpm::{Lpm, LpmWriter, Route};
use quiver_tables::prefix::{Address, Ip4Prefix, Ip6Prefix, Prefix};
use quiver_tables::synthetic::{Random, Zipf, internet_ip4, internet_ip6};

const ADDRESSES: usize = 1 << 19;
const ROUNDS: usize = 5;
/// Changes that are timed one by one.
const CHANGES: usize = 200_000;

/// How the addresses are handed over: so many a call, with the next call's asked for before or not.
const CALLS: [(usize, bool); 4] = [(256, false), (64, false), (32, false), (32, true)];

/// The median of some rounds, in clocks per address.
fn measure<A: Address>(
    lpm: &Lpm<A>,
    variant: Variant,
    addresses: &[A],
    block: usize,
    ask: bool,
) -> f64 {
    let mut groups = [GroupId(0); 256];
    let mut rounds = [0.0; ROUNDS];
    for round in &mut rounds {
        let start = clocks();
        let mut chunks = addresses.chunks_exact(block).peekable();
        while let Some(chunk) = chunks.next() {
            if ask && let Some(next) = chunks.peek() {
                next.iter().for_each(|address| lpm.prefetch(*address));
            }
            lpm.lookup_slice(variant, chunk, &mut groups[..block]);
            std::hint::black_box(&groups);
        }
        *round = (clocks() - start) as f64 / addresses.len() as f64;
    }
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

/// Which destinations packets have.
#[derive(Clone, Copy)]
enum Traffic<A: Address> {
    /// Each prefix equally likely, a random address in it.
    Prefixes,
    /// 100,000 flows, exponent 1.
    Zipf,
    /// Any address in here.
    Uniform(Prefix<A>),
}

fn destinations<A: Address>(prefixes: &[Prefix<A>], traffic: Traffic<A>) -> Vec<A> {
    let mut random = Random::new(7);
    let any = |random: &mut Random| {
        let prefix = prefixes[random.below(prefixes.len() as u64) as usize];
        random.address_in(prefix)
    };
    match traffic {
        Traffic::Prefixes => (0..ADDRESSES).map(|_| any(&mut random)).collect(),
        Traffic::Zipf => {
            let flows: Vec<A> = (0..100_000).map(|_| any(&mut random)).collect();
            let zipf = Zipf::new(flows.len(), 1.0);
            (0..ADDRESSES).map(|_| flows[zipf.sample(&mut random)]).collect()
        }
        Traffic::Uniform(space) => (0..ADDRESSES).map(|_| random.address_in(space)).collect(),
    }
}

fn wanted(name: &str) -> bool {
    std::env::args().nth(1).is_none_or(|part| part == "all" || name.contains(&part))
}

struct Scenario<'n, A: Address> {
    name: &'n str,
    prefixes: &'n [Prefix<A>],
    table: u32,
    hops: u64,
    traffic: &'n [(&'n str, Traffic<A>)],
}

impl<A: Address> Scenario<'_, A> {
    fn run(&self) {
        if !wanted(self.name) {
            return;
        }
        let epochs = Epochs::new(1);
        let mut writer = LpmWriter::<A>::new(&epochs, GroupId(1)).expect("memory");
        let (mut random, start) = (Random::new(5), Instant::now());
        let mut route = || Route { group: GroupId(1 + random.below(self.hops) as u32), note: 0 };
        let mut bulk = writer.bulk(self.table);
        for prefix in self.prefixes {
            bulk.insert(*prefix, route()).expect("room");
        }
        bulk.finish();
        drop(bulk);
        let rate =
            |count: usize, start: Instant| count as f64 / start.elapsed().as_secs_f64() / 1e6;
        let loaded = rate(self.prefixes.len(), start);
        let space = writer.space().clone();
        let lpm = space.table(self.table);
        let usage = writer.usage();
        let mb = (usage.resident_bytes + lpm.big_root_bytes()) as f64 / 1e6;
        for (traffic_name, traffic) in self.traffic {
            let addresses = destinations(self.prefixes, *traffic);
            print!("{:24} {:8}", self.name, traffic_name);
            for variant in Variant::available() {
                for (block, ask) in CALLS {
                    print!(" {:5.1}", measure(lpm, variant, &addresses, block, ask));
                }
                print!(" |");
            }
            println!(" {mb:6.1} MB");
        }
        let mut order = self.prefixes.to_vec();
        Random::new(11).shuffle(&mut order);
        let some = &order[..order.len().min(CHANGES)];
        let start = Instant::now();
        some.iter().for_each(|prefix| {
            writer.remove(self.table, *prefix).expect("there");
        });
        let removed = rate(some.len(), start);
        let start = Instant::now();
        some.iter().for_each(|prefix| {
            writer.insert(self.table, *prefix, route()).expect("room");
        });
        let added = rate(some.len(), start);
        let start = Instant::now();
        let mut bulk = writer.bulk(self.table);
        self.prefixes.iter().for_each(|prefix| {
            bulk.remove(*prefix).expect("there");
        });
        bulk.finish();
        drop(bulk);
        let cleared = rate(self.prefixes.len(), start);
        println!(
            "    M/s: bulk add {loaded:.2}, shuffled delete {removed:.2}, shuffled add {added:.2}, \
             bulk delete {cleared:.2}; {} entries {} nodes {} skips",
            usage.entries, usage.nodes, usage.skips
        );
    }
}

fn hosts<A: Address>(first: A, count: usize) -> Vec<Prefix<A>> {
    std::iter::successors(Some(Prefix::host(first)), |prefix| prefix.next()).take(count).collect()
}

fn real<A: Address>(file: Option<&str>) -> Vec<Prefix<A>> {
    let lines =
        file.map(|file| std::fs::read_to_string(file).expect("prefix file")).unwrap_or_default();
    let parse = |line: &str| {
        let (address, len) = line.trim().split_once('/')?;
        Some(Prefix::new(A::from_ip(address.parse().ok()?)?, len.parse().ok()?))
    };
    sorted(lines.lines().filter_map(parse).collect())
}

fn sorted<A: Address>(mut prefixes: Vec<Prefix<A>>) -> Vec<Prefix<A>> {
    prefixes.sort_unstable();
    prefixes.dedup();
    prefixes
}

fn ip4(file: Option<&str>) {
    let first = 0x1400_0000u32;
    let random = [("random", Traffic::Prefixes)];
    let full = [
        ("zipf", Traffic::Zipf),
        ("uniform", Traffic::Uniform(Ip4Prefix::ALL)),
        ("prefix", Traffic::Prefixes),
    ];
    let run =
        |name: &str, prefixes: &[Ip4Prefix], table, hops, traffic: &[(&str, Traffic<u32>)]| {
            Scenario { name, prefixes, table, hops, traffic }.run();
        };
    run("ip4 1 /8", &[Ip4Prefix::new(first, 8)], 0, 1, &random);
    run("ip4 1 /32", &hosts(first, 1), 0, 1, &random);
    run("ip4 1 /32 vrf", &hosts(first, 1), 5, 1, &random);
    run("ip4 254 /32", &hosts(first + 1, 254), 0, 64, &random);
    run("ip4 254 /32 vrf", &hosts(first + 1, 254), 5, 64, &random);
    run("ip4 20k /32", &hosts(first, 20_000), 0, 64, &random);
    run("ip4 200k /32", &hosts(first, 200_000), 0, 64, &random);
    run("ip4 2M /32 1 hop", &hosts(first, 2_000_000), 0, 1, &random);
    run("ip4 2M /32", &hosts(first, 2_000_000), 0, 64, &random);
    if wanted("ip4 2M scattered") {
        let mut random_bits = Random::new(9);
        let prefixes = (0..2_000_000).map(|_| Ip4Prefix::host(random_bits.bits() as u32)).collect();
        run("ip4 2M scattered", &sorted(prefixes), 0, 64, &random);
    }
    if wanted("ip4 16M /32") {
        run("ip4 16M /32", &hosts(first, 16_000_000), 0, 64, &random);
    }
    run("ip4 generated 1M", &internet_ip4(1_000_000, 1), 0, 64, &full);
    let table = real::<u32>(file);
    if !table.is_empty() {
        run("ip4 real 900k", &table, 0, 64, &full);
    }
}

fn ip6(file: Option<&str>) {
    let first = 0x2001_0db8u128 << 96;
    let space = Ip6Prefix::new(0x2000 << 112, 3);
    let random = [("random", Traffic::Prefixes)];
    let full = [
        ("zipf", Traffic::Zipf),
        ("uniform", Traffic::Uniform(space)),
        ("prefix", Traffic::Prefixes),
    ];
    let run =
        |name: &str, prefixes: &[Ip6Prefix], table, hops, traffic: &[(&str, Traffic<u128>)]| {
            Scenario { name, prefixes, table, hops, traffic }.run();
        };
    run("ip6 1 /32", &[Ip6Prefix::new(first, 32)], 0, 1, &random);
    run("ip6 1 /128", &hosts(first + 1, 1), 0, 1, &random);
    run("ip6 1 /128 vrf", &hosts(first + 1, 1), 5, 1, &random);
    run("ip6 254 /128", &hosts(first + 1, 254), 0, 64, &random);
    run("ip6 20k /128", &hosts(first, 20_000), 0, 64, &random);
    run("ip6 200k /128", &hosts(first, 200_000), 0, 64, &random);
    run("ip6 2M /128 1 hop", &hosts(first, 2_000_000), 0, 1, &random);
    run("ip6 2M /128", &hosts(first, 2_000_000), 0, 64, &random);
    let table: Vec<_> = (0..1_000_000u128).map(|n| Ip6Prefix::new(first | n << 64, 64)).collect();
    run("ip6 1M /64", &table, 0, 64, &random);
    if wanted("ip6 1M scattered") {
        let mut bits = Random::new(9);
        let one = |_| {
            Ip6Prefix::new(0x2000 << 112 | u128::from_halves(bits.bits() >> 3, bits.bits()), 64)
        };
        run("ip6 1M scattered /64", &sorted((0..1_000_000).map(one).collect()), 0, 64, &random);
    }
    run("ip6 generated 200k", &internet_ip6(200_000, 1), 0, 64, &full);
    let mut table = real::<u128>(file);
    if !table.is_empty() {
        run("ip6 real 160k", &table, 0, 64, &full);
        table.extend(hosts(0x2001_0db8u128 << 96, 2_000_000));
        run("ip6 real + 2M /128", &sorted(table), 0, 64, &[("prefix", Traffic::Prefixes)]);
    }
}

fn main() {
    let file = std::env::args().nth(2);
    println!(
        "clocks a look-up, medians of {ROUNDS}; a call gets {}; kernels {:?}",
        CALLS.map(|(block, ask)| format!("{block}{}", if ask { " asked" } else { "" })).join(", "),
        Variant::available().collect::<Vec<_>>()
    );
    ip4(file.as_deref());
    ip6(file.as_deref());
}
