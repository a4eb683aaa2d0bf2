//! How should the inner loop look? The same IPv4 forwarding in several forms, measured side by
//! side; `docs/decisions/inner-loop.md` holds the table.

use quiver_core::cpu::{Variant, clocks};
use quiver_core::graph::frame::Frame;
use quiver_core::graph::node::{DROP, Never};
use quiver_core::memory::buffer::{BufferCache, BufferPool, DATA_BYTES_DEFAULT};
use quiver_core::memory::epoch::Epochs;
use quiver_core::memory::mapping::PageSize;
use quiver_core::{NodeId, Packet};
use quiver_tables::GroupId;
use quiver_wire::ethernet::EthernetHeader;
use quiver_wire::ip4::{self, Ip4Header};
use quiver_wire::{EtherType, Header, checksum};

use crate::bare::{self, Counted};
use crate::population::{Draw, Ip4Population, OUR_MAC, ip4_frame};

/// Vectors run for one figure.
const ROUNDS: usize = 4000;

/// What every form works with.
struct Bench<'a> {
    tables: &'a Ip4Population,
    cache: BufferCache,
    at: usize,
    counted: Counted,
}

impl Bench<'_> {
    /// The next packets, as a driver would leave them.
    fn packet(&mut self) -> Packet {
        let mut packet = self.cache.packet().expect("a buffer");
        let destination = self.tables.destinations[self.at % self.tables.destinations.len()];
        self.at += 1;
        assert!(packet.append(&ip4_frame(destination), &mut self.cache));
        packet
    }

    fn frame(&mut self, count: usize) -> Box<Frame> {
        let mut frame = Frame::new();
        for _ in 0..count {
            let packet = self.packet();
            let _ = frame.push(packet);
        }
        frame
    }
}

#[inline(always)]
fn ethernet(packet: &mut Packet) -> Result<NodeId, Never> {
    let Some(header) = EthernetHeader::overlay(packet.bytes()) else { return Ok(DROP) };
    let good = (header.ether_type() == EtherType::IPV4) & (header.destination.0 == OUR_MAC);
    if !good || !packet.pull(14) {
        return Ok(DROP);
    }
    packet.l2_bytes = 14;
    Ok(NodeId(1))
}

#[inline(always)]
fn input(packet: &mut Packet) -> Result<NodeId, Never> {
    let available = packet.length();
    let good = Ip4Header::overlay(packet.bytes()).is_some_and(|h| {
        ip4::is_plain(h, available) & (usize::from(h.total_length()) == available)
    });
    Ok(if good { NodeId(2) } else { DROP })
}

fn lookup(
    bench: &Bench<'_>,
    frame: &mut Frame,
    destinations: &mut [u32; 256],
    found: &mut [GroupId; 256],
) {
    let (packets, next) = frame.split_mut();
    for (packet, place) in packets.iter().zip(destinations.iter_mut()) {
        *place = Ip4Header::overlay(packet.bytes()).map_or(0, Ip4Header::destination_bits);
    }
    let count = packets.len();
    let lpm = bench.tables.writer.space().table(0);
    lpm.lookup_slice(Variant::best(), &destinations[..count], &mut found[..count]);
    let groups = bench.tables.groups.table();
    for ((packet, next), group) in packets.iter_mut().zip(next).zip(found.iter()) {
        *next = groups.word(*group).hop().route(packet);
    }
}

#[inline(always)]
fn lookup_one(bench: &Bench<'_>, packet: &mut Packet) -> Result<NodeId, Never> {
    let destination = Ip4Header::overlay(packet.bytes()).map_or(0, Ip4Header::destination_bits);
    let group = bench.tables.writer.space().table(0).lookup(destination);
    Ok(bench.tables.groups.table().word(group).hop().route(packet))
}

#[inline(always)]
fn rewrite(bench: &Bench<'_>, packet: &mut Packet) -> Result<NodeId, Never> {
    let adjacency = bench.tables.adjacencies.table().of(packet);
    let length = packet.length();
    let Some(header) = Ip4Header::overlay_mut(packet.bytes_mut()) else { return Ok(DROP) };
    if header.ttl() <= 1 || length > usize::from(adjacency.mtu_bytes) {
        return Ok(DROP);
    }
    checksum::decrement_ttl(header);
    let done = match adjacency.rewrite_field().last_chunk::<16>() {
        Some(block) if adjacency.rewrite_len() <= 16 => {
            packet.push_block16(block, adjacency.rewrite_len())
        }
        _ => packet.push_block32(adjacency.rewrite_field(), adjacency.rewrite_len()),
    };
    packet.tx = adjacency.tx;
    Ok(if done { adjacency.output } else { DROP })
}

fn output(frame: &mut Frame, counted: &mut Counted) {
    counted.bytes += frame.packets().iter().map(|p| p.length() as u64).sum::<u64>();
    counted.packets += frame.len() as u64;
    frame.set_all_next(NodeId(6));
}

/// The next node of all, as the engine finds it between two nodes.
fn common(frame: &Frame) -> bool {
    frame.common_next().is_some()
}

fn nodes(bench: &mut Bench<'_>, frame: &mut Frame, lookup_alone: bool, scratch: &mut Scratch) {
    frame.route_ahead(ethernet);
    assert!(common(frame));
    frame.route(input);
    assert!(common(frame));
    if lookup_alone {
        frame.route(|packet| lookup_one(bench, packet));
    } else {
        lookup(bench, frame, &mut scratch.destinations, &mut scratch.found);
    }
    assert!(common(frame));
    frame.route(|packet| rewrite(bench, packet));
    assert!(common(frame));
    output(frame, &mut bench.counted);
    for packet in frame.drain() {
        bench.cache.free(packet);
    }
}

fn nodes_in_groups<const N: usize>(
    bench: &mut Bench<'_>,
    frame: &mut Frame,
    scratch: &mut Scratch,
) {
    frame.packets().iter().take(N).for_each(Packet::prefetch);
    let (packets, next) = frame.split_mut();
    for at in (0..packets.len()).step_by(N) {
        let end = (at + N).min(packets.len());
        packets[end..(end + N).min(packets.len())].iter().for_each(Packet::prefetch);
        for i in at..end {
            next[i] = ethernet(&mut packets[i]).unwrap_or(DROP);
        }
    }
    assert!(common(frame));
    frame.route_groups::<N>(|packets, next| {
        for (packet, next) in packets.iter_mut().zip(next) {
            *next = input(packet).unwrap_or(DROP);
        }
    });
    assert!(common(frame));
    lookup(bench, frame, &mut scratch.destinations, &mut scratch.found);
    assert!(common(frame));
    frame.route_groups::<N>(|packets, next| {
        for (packet, next) in packets.iter_mut().zip(next) {
            *next = rewrite(bench, packet).unwrap_or(DROP);
        }
    });
    assert!(common(frame));
    output(frame, &mut bench.counted);
    for packet in frame.drain() {
        bench.cache.free(packet);
    }
}

/// The stage functions of the nodes in one pass over the vector: the look-up lags behind the
/// header check by a block.
fn fused<const BLOCK: usize>(bench: &mut Bench<'_>, frame: &mut Frame, scratch: &mut Scratch) {
    let (packets, next) = frame.split_mut();
    packets.iter().take(8).for_each(Packet::prefetch);
    let count = packets.len();
    let lpm = bench.tables.writer.space().table(0);
    let groups = bench.tables.groups.table();
    let mut bytes = 0;
    for at in (0..count).step_by(BLOCK) {
        let end = (at + BLOCK).min(count);
        for i in at..end {
            if let Some(ahead) = packets.get(i + 8) {
                ahead.prefetch();
            }
            let packet = &mut packets[i];
            let good =
                ethernet(packet).unwrap_or(DROP) != DROP && input(packet).unwrap_or(DROP) != DROP;
            assert!(good);
            scratch.destinations[i - at] =
                Ip4Header::overlay(packet.bytes()).map_or(0, Ip4Header::destination_bits);
        }
        let block = end - at;
        lpm.lookup_slice(
            Variant::best(),
            &scratch.destinations[..block],
            &mut scratch.found[..block],
        );
        for i in at..end {
            groups.word(scratch.found[i - at]).hop().route(&mut packets[i]);
            next[i] = rewrite(bench, &mut packets[i]).unwrap_or(DROP);
            bytes += packets[i].length() as u64;
        }
    }
    assert!(common(frame));
    bench.counted.bytes += bytes;
    bench.counted.packets += count as u64;
    for packet in frame.drain() {
        bench.cache.free(packet);
    }
}

struct Scratch {
    destinations: [u32; 256],
    found: [GroupId; 256],
}

/// Median clocks per packet.
fn measure(
    bench: &mut Bench<'_>,
    size: usize,
    mut run: impl FnMut(&mut Bench<'_>, &mut Frame),
) -> f64 {
    let mut taken = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let mut frame = bench.frame(size);
        let start = clocks();
        run(bench, &mut frame);
        taken.push(clocks() - start);
    }
    taken.sort_unstable();
    taken[ROUNDS / 2] as f64 / size as f64
}

/// Print the table.
pub fn run() {
    let _ = quiver_core::cpu::pin_to_core(1);
    let epochs = Epochs::new(1);
    println!("{:34} {:>8} {:>8} {:>8}", "clocks per packet, median", "1 route", "zipf", "random");
    let populations =
        [Draw::OneRoute, Draw::FullZipf, Draw::FullRandom].map(|d| Ip4Population::new(&epochs, d));
    for buffers in [4096, 32_768] {
        let pool = BufferPool::new(buffers, DATA_BYTES_DEFAULT, PageSize::Best).expect("pool");
        println!("{buffers} buffers in the pool, {} KiB pages", pool.memory().page_bytes() / 1024);
        let mut scratch = Scratch { destinations: [0; 256], found: [GroupId(0); 256] };
        let mut rows: Vec<(String, Vec<f64>)> = Vec::new();
        let mut note = |name: String, value: f64| match rows.iter_mut().find(|(n, _)| *n == name) {
            Some((_, values)) => values.push(value),
            None => rows.push((name, vec![value])),
        };
        for tables in &populations {
            let mut bench =
                Bench { tables, cache: pool.cache(), at: 0, counted: Counted::default() };
            let b = &mut bench;
            note("bare loop".into(), {
                measure(b, 256, |b, frame| {
                    let (lpm, t) = (b.tables.writer.space().table(0), b.tables);
                    bare::ip4::<0>(
                        Variant::best(),
                        frame,
                        lpm,
                        t.groups.table(),
                        t.adjacencies.table(),
                        &mut b.counted,
                    );
                    frame.drain().for_each(|packet| b.cache.free(packet));
                })
            });
            for size in [64, 128, 256] {
                let name = |form: &str| format!("{form}, vectors of {size}");
                note(
                    name("nodes, closure per packet"),
                    measure(b, size, |b, f| nodes(b, f, true, &mut scratch)),
                );
                note(
                    name("nodes, staged look-up"),
                    measure(b, size, |b, f| nodes(b, f, false, &mut scratch)),
                );
                note(
                    name("nodes, groups of 8"),
                    measure(b, size, |b, f| nodes_in_groups::<8>(b, f, &mut scratch)),
                );
                note(
                    name("nodes, groups of 16"),
                    measure(b, size, |b, f| nodes_in_groups::<16>(b, f, &mut scratch)),
                );
                note(
                    name("fused, lag 16"),
                    measure(b, size, |b, f| fused::<16>(b, f, &mut scratch)),
                );
                note(
                    name("fused, lag 64"),
                    measure(b, size, |b, f| fused::<64>(b, f, &mut scratch)),
                );
            }
            assert_eq!(b.counted.odd, 0);
        }
        for (name, values) in rows {
            println!(
                "{name:34} {}",
                values.iter().map(|v| format!("{v:8.1}")).collect::<Vec<_>>().join(" ")
            );
        }
    }
}
