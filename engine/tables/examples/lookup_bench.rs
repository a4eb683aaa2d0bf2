//! Clocks per look-up, memory and load time of the prefix matches, on generated tables.
//! `cargo run --release -p quiver-tables --example lookup_bench [PREFIX-FILE [WHICH]]`
#![allow(unsafe_code)]

use std::time::Instant;

use quiver_core::cpu::Variant;
use quiver_core::epoch::Epochs;
use quiver_core::{InterfaceId, NodeId};
use quiver_tables::GroupId;
use quiver_tables::fib::{FamilyNodes, Fib, FibNodes, InterfaceInfo, Path, Source};
use quiver_tables::lpm::{LpmWriter, Route};
use quiver_tables::prefix::{Address, Ip4Prefix, Ip6Prefix, IpPrefix, Prefix};
use quiver_tables::synthetic::{Random, Zipf, internet_ip4, internet_ip6};
use quiver_wire::MacAddress;

/// Addresses that are looked up in one go, as a vector of packets is.
const VECTOR: usize = 256;
const ADDRESSES: usize = 1 << 18;
const ROUNDS: usize = 7;

fn clocks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has a time stamp counter.
    return unsafe { std::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    return Instant::now().elapsed().as_nanos() as u64;
}

/// The best of some rounds, in clocks per address: others share this machine.
fn measure<A: Address>(addresses: &[A], mut lookup: impl FnMut(&[A], &mut [GroupId])) -> f64 {
    let mut groups = [GroupId(0); VECTOR];
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let start = clocks();
        for chunk in addresses.chunks(VECTOR) {
            lookup(chunk, &mut groups[..chunk.len()]);
            std::hint::black_box(&groups);
        }
        best = best.min((clocks() - start) as f64 / addresses.len() as f64);
    }
    best
}

/// Destinations: each prefix equally likely, popular flows, or anything at all in `space`.
fn destinations<A: Address>(prefixes: &[Prefix<A>], space: Prefix<A>) -> [(&'static str, Vec<A>); 3] {
    let mut random = Random::new(7);
    let pick = |random: &mut Random| random.below(prefixes.len() as u64) as usize;
    let spread = (0..ADDRESSES).map(|_| {
        let prefix = prefixes[pick(&mut random)];
        random.address_in(prefix)
    });
    let spread: Vec<_> = spread.collect();
    let (zipf, flows) = (Zipf::new(100_000, 1.0), &spread[..100_000]);
    let popular = (0..ADDRESSES).map(|_| flows[zipf.sample(&mut random)]).collect();
    let uniform = (0..ADDRESSES).map(|_| random.address_in(space)).collect();
    [("prefix", spread), ("zipf", popular), ("uniform", uniform)]
}

fn load<A: Address>(writer: &mut LpmWriter<A>, table: u32, prefixes: &[Prefix<A>], hops: u64) -> f64 {
    let (mut random, start) = (Random::new(5), Instant::now());
    let mut bulk = writer.bulk(table);
    for prefix in prefixes {
        let route = Route { group: GroupId(1 + random.below(hops) as u32), note: 0 };
        bulk.insert(*prefix, route).expect("room");
    }
    bulk.finish();
    drop(bulk);
    start.elapsed().as_secs_f64()
}

fn scenario<A: Address>(name: &str, prefixes: &[Prefix<A>], space: Prefix<A>, hops: u64, table: u32) {
    if std::env::args().nth(2).is_some_and(|wanted| !name.contains(&wanted)) {
        return;
    }
    let epochs = Epochs::new(1);
    let mut writer = LpmWriter::<A>::new(&epochs, GroupId(1)).expect("memory");
    let seconds = load(&mut writer, table, prefixes, hops);
    let space_ref = writer.space().clone();
    let lpm = space_ref.table(table);
    print!("{name:28} {:9}", prefixes.len());
    for (_, addresses) in destinations(prefixes, space) {
        let batch =
            measure(&addresses, |addresses, groups| lpm.lookup_slice(Variant::best(), addresses, groups));
        let single = measure(&addresses, |addresses, groups| {
            for (address, group) in addresses.iter().zip(groups) {
                *group = lpm.lookup(*address);
            }
        });
        print!(" {batch:6.1} {single:6.1} ");
    }
    let usage = writer.usage();
    let mb = (usage.resident_bytes + lpm.big_root_bytes()) as f64 / 1e6;
    print!(" {mb:7.1} {:7.2}", prefixes.len() as f64 / seconds / 1e6);
    let mut order: Vec<_> = prefixes.to_vec();
    Random::new(11).shuffle(&mut order);
    order.truncate(100_000);
    let start = Instant::now();
    for prefix in &order {
        writer.remove(table, *prefix).expect("room");
    }
    let removed = start.elapsed().as_secs_f64() / order.len() as f64 * 1e9;
    let start = Instant::now();
    for prefix in &order {
        writer.insert(table, *prefix, Route { group: GroupId(3), note: 0 }).expect("room");
    }
    let inserted = start.elapsed().as_secs_f64() / order.len() as f64 * 1e9;
    println!(" {removed:7.0} {inserted:7.0}   {usage:?}");
}

/// DIR-24-8 without its second level: what the plainest table costs here, for comparison.
fn dir_24(prefixes: &[Ip4Prefix]) {
    let table = quiver_tables::memory::Reserved::<std::sync::atomic::AtomicU32>::new(
        "dir-24",
        1 << 24,
        quiver_tables::memory::Pages::Huge,
    )
    .expect("memory");
    let mut random = Random::new(5);
    let mut sorted = prefixes.to_vec();
    sorted.sort_by_key(|prefix| prefix.len());
    for prefix in sorted.iter().filter(|prefix| prefix.len() <= 24) {
        let group = 1 + random.below(64) as u32;
        for slot in prefix.first() >> 8..=prefix.last() >> 8 {
            table.get(slot as usize).store(group, std::sync::atomic::Ordering::Relaxed);
        }
    }
    print!("{:28} {:9}", "(DIR-24, 4 B, no level below)", prefixes.len());
    for (_, addresses) in destinations(prefixes, Ip4Prefix::ALL) {
        let clocks = measure(&addresses, |addresses, groups| {
            for address in addresses {
                quiver_tables::memory::prefetch(table.get((*address >> 8) as usize));
            }
            for (address, group) in addresses.iter().zip(groups) {
                *group =
                    GroupId(table.get((*address >> 8) as usize).load(std::sync::atomic::Ordering::Relaxed));
            }
        });
        print!(" {clocks:6.1}        ");
    }
    println!(" {:7.1}", table.resident_bytes() as f64 / 1e6);
}

/// The whole control side: routes with next hops into the FIB, one by one and by count.
fn fib_load() {
    let family = |n| FamilyNodes {
        rewrite: NodeId(n),
        local: NodeId(n + 1),
        incomplete: NodeId(n + 2),
        glean: NodeId(n + 3),
        drop: NodeId(n + 4),
        punt: NodeId(n + 5),
        lookup: NodeId(n + 6),
    };
    let nodes = FibNodes { ip4: family(10), ip6: family(20), ip6_link_local: NodeId(30) };
    let on = InterfaceId(1);
    let info = InterfaceInfo {
        id: on,
        output: NodeId(100),
        mac: Some(MacAddress([2, 0, 0, 0, 0, 1])),
        vlan_tags: Vec::new(),
        mtu_bytes: 1500,
        up: true,
        ip4_table: 0,
        ip6_table: 0,
    };
    let make = || {
        let mut fib = Fib::new(&Epochs::new(1), nodes).expect("memory");
        fib.set_interface(info.clone()).expect("interface");
        fib.add_address(on, [10, 0, 0, 1].into(), 24).expect("address");
        fib
    };
    let path = |n: usize| [Path::via([10, 0, 0, 2 + (n % 64) as u8], Some(on))];
    let report = |what: &str, routes: usize, seconds: f64, rss: usize| {
        let (rate, mb) = (routes as f64 / seconds / 1e6, (resident_bytes() - rss) as f64 / 1e6);
        println!(
            "FIB: {routes} routes {what}: {seconds:.3} s, {rate:.2} M/s, {mb:.0} MB more in the process"
        );
    };
    let rss = resident_bytes();
    let (mut fib, start) = (make(), Instant::now());
    let first = IpPrefix::new([20, 0, 0, 0].into(), 24);
    fib.add_routes(0, first, 1_000_000, Source::Static, &path(0)).expect("room");
    report("by count", 1_000_000, start.elapsed().as_secs_f64(), rss);
    let start = Instant::now();
    fib.learn_neighbour(on, [10, 0, 0, 2].into(), MacAddress([2, 0, 0, 0, 0, 9]), 0).expect("room");
    println!("FIB: their neighbour is learnt in {:.1} us", start.elapsed().as_secs_f64() * 1e6);
    let start = Instant::now();
    fib.remove_routes(0, first, 1_000_000, Source::Static).expect("there");
    println!("FIB: and removed in {:.3} s", start.elapsed().as_secs_f64());
    drop(fib);
    let mut table = internet_ip4(1_000_000, 1);
    for order in ["one by one, sorted", "one by one, shuffled"] {
        let rss = resident_bytes();
        let (mut fib, start) = (make(), Instant::now());
        for (n, prefix) in table.iter().enumerate() {
            fib.add_route(0, IpPrefix::V4(*prefix), Source::Static, &path(n)).expect("room");
        }
        report(order, table.len(), start.elapsed().as_secs_f64(), rss);
        Random::new(3).shuffle(&mut table);
    }
    let rss = resident_bytes();
    let (mut fib, start) = (make(), Instant::now());
    let table = internet_ip6(200_000, 1);
    for (n, prefix) in table.iter().enumerate() {
        fib.add_route(0, IpPrefix::V6(*prefix), Source::Static, &path(n)).expect("room");
    }
    report("IPv6 one by one, sorted", table.len(), start.elapsed().as_secs_f64(), rss);
}

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}

fn hosts<A: Address>(first: A, count: usize) -> Vec<Prefix<A>> {
    std::iter::successors(Some(Prefix::host(first)), |prefix| prefix.next()).take(count).collect()
}

fn real<A: Address>(file: Option<&str>) -> Vec<Prefix<A>> {
    let lines = file.map(|file| std::fs::read_to_string(file).expect("prefix file")).unwrap_or_default();
    let parse = |line: &str| {
        let (address, len) = line.trim().split_once('/')?;
        Some(Prefix::new(A::from_ip(address.parse().ok()?)?, len.parse().ok()?))
    };
    let mut prefixes: Vec<_> = lines.lines().filter_map(parse).collect();
    prefixes.sort_unstable();
    prefixes.dedup();
    prefixes
}

fn main() {
    if std::env::args().nth(2).is_none() {
        fib_load();
    }
    let file = std::env::args().nth(1);
    println!(
        "{:28} {:>9} {:>6} {:>6}  {:>6} {:>6}  {:>6} {:>6}  {:>7} {:>7} {:>7} {:>7}",
        "table",
        "prefixes",
        "prefix",
        "single",
        "zipf",
        "single",
        "unif.",
        "single",
        "MB",
        "M/s",
        "ns del",
        "ns add"
    );
    let all4 = Ip4Prefix::ALL;
    scenario("IPv4 one /8", &[Ip4Prefix::new(0x0a00_0000, 8)], Ip4Prefix::new(0x0a00_0000, 8), 1, 0);
    scenario("IPv4 one /24", &[Ip4Prefix::new(0x0a00_0000, 24)], Ip4Prefix::new(0x0a00_0000, 24), 1, 0);
    scenario(
        "IPv4 one /24, small root",
        &[Ip4Prefix::new(0x0a00_0000, 24)],
        Ip4Prefix::new(0x0a00_0000, 24),
        1,
        5,
    );
    let table = internet_ip4(1_000_000, 1);
    scenario("IPv4 generated Internet", &table, all4, 64, 0);
    dir_24(&table);
    let table = real::<u32>(file.as_deref());
    if !table.is_empty() {
        scenario("IPv4 real Internet", &table, all4, 64, 0);
        dir_24(&table);
    }
    let table = hosts(0x1400_0000u32, 2_000_000);
    scenario("IPv4 2M /32, 64 hops", &table, Ip4Prefix::new(0x1400_0000, 11), 64, 0);
    scenario("IPv4 2M /32, one hop", &table, Ip4Prefix::new(0x1400_0000, 11), 1, 0);
    let all6 = Ip6Prefix::new(0x2000 << 112, 3);
    let one = Ip6Prefix::new(0x2001_0db8 << 96, 32);
    scenario("IPv6 one /32", &[one], one, 1, 0);
    scenario("IPv6 generated Internet", &internet_ip6(200_000, 1), all6, 64, 0);
    let table = real::<u128>(file.as_deref());
    if !table.is_empty() {
        scenario("IPv6 real Internet", &table, all6, 64, 0);
    }
    let table: Vec<_> = (0..1_000_000u128).map(|n| Ip6Prefix::new(0x2001_0db8 << 96 | n << 64, 64)).collect();
    scenario("IPv6 1M /64, 64 hops", &table, all6, 64, 0);
    scenario("IPv6 2M /128, 64 hops", &hosts(0x2001_0db8u128 << 96, 2_000_000), all6, 64, 0);
}
