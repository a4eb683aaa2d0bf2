//! Two sides with a channel between them that loses, delays, repeats, damages and translates, on a
//! clock of its own. Only tests use it.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use quiver_wire::checksum::{update_udp16, update16, update32};
use quiver_wire::{Header, Ip4Header, IpProtocol, MacAddress};

use super::flow::Flow;
use super::frame::Heading;
use super::io::Line;
use super::plan::Plan;
use super::program::{Program, Role};
use super::side::{ListenPorts, Side};
use quiver_tg_traffic::frames::random::Random;
use quiver_tg_traffic::profile::Tags;
use quiver_tg_traffic::profile::stateful::Stateful;

pub const CLIENT: usize = 0;
pub const SERVER: usize = 1;
pub const MACS: [MacAddress; 2] = [MacAddress([2, 0, 0, 0, 0, 1]), MacAddress([2, 0, 0, 0, 0, 2])];

/// Bytes of an Ethernet header.
const ETHERNET_BYTES: usize = 14;

/// How bad the channel is: chances out of 1000, and the longest extra delay.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub loss: u64,
    pub repeat: u64,
    pub damage: u64,
    pub jitter_ns: u64,
}

/// Frames that leave a side in one go.
#[derive(Default)]
pub struct Out(pub Vec<Vec<u8>>);

impl Line for Out {
    fn frame(&mut self, bytes: usize, write: impl FnOnce(&mut [u8])) -> bool {
        let mut frame = vec![0xa5; bytes];
        write(&mut frame);
        self.0.push(frame);
        true
    }
}

/// Both sides and what is between them.
pub struct Simulation<F: Flow> {
    pub sides: [Side<F>; 2],
    pub now_ns: u64,
    pub plan: Plan,
    faults: Faults,
    random: Random,
    /// Frames under way, by when and to whom they come.
    channel: BTreeMap<(u64, usize), Vec<Vec<u8>>>,
    /// Client addresses and ports become this address with ports of its own.
    nat: Option<Nat>,
    pub delay_ns: u64,
}

#[derive(Default)]
struct Nat {
    ports: BTreeMap<(u32, u16), u16>,
    back: BTreeMap<u16, (u32, u16)>,
}

const NAT_ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

impl<F: Flow> Simulation<F> {
    pub fn new(stateful: &Stateful, faults: Faults, seed: u64) -> Simulation<F> {
        let clients = stateful.clients.clone().expect("clients");
        let (near, far) =
            (clients.hosts().expect("hosts"), stateful.servers.hosts().expect("hosts"));
        let start = 1_000_000_000;
        let side = |role, hosts, mac, listen_ports| {
            let program = Program::new(stateful, role);
            Side::new(
                program,
                Heading::new(mac, &Tags::default(), hosts),
                listen_ports,
                stateful.concurrent(),
                seed,
                start,
            )
        };
        Simulation {
            sides: [
                side(Role::Client, near, MACS[CLIENT], ListenPorts::Nowhere),
                side(Role::Server, far, MACS[SERVER], ListenPorts::at(stateful.servers.port)),
            ],
            now_ns: start,
            plan: Plan::new(stateful, &clients, far),
            faults,
            random: Random::new(seed),
            channel: BTreeMap::new(),
            nat: None,
            delay_ns: 50_000,
        }
    }

    /// Translate client addresses on the way.
    pub fn with_nat(mut self) -> Self {
        self.nat = Some(Nat::default());
        self
    }

    /// Begin the next transaction.
    pub fn begin(&mut self) {
        let key = self.plan.next_key();
        let mut out = Out::default();
        self.sides[CLIENT].begin(self.now_ns, key, MACS[SERVER], &mut out);
        self.transmit(CLIENT, out);
    }

    fn chance(&mut self, of_thousand: u64) -> bool {
        of_thousand > 0 && self.random.below(1000) < of_thousand
    }

    /// Frames leave a side.
    pub fn transmit(&mut self, from: usize, out: Out) {
        for mut frame in out.0 {
            if self.chance(self.faults.loss) {
                continue;
            }
            if self.chance(self.faults.damage) {
                let place = self.random.below(frame.len() as u64) as usize;
                frame[place] ^= 1 << self.random.below(8);
            }
            if let Some(nat) = &mut self.nat {
                nat.translate(&mut frame, from);
            }
            let copies = 1 + u64::from(self.chance(self.faults.repeat));
            for _ in 0..copies {
                let jitter = self.random.below(self.faults.jitter_ns + 1);
                let at = self.now_ns + self.delay_ns + jitter;
                self.channel.entry((at, 1 - from)).or_default().push(frame.clone());
            }
        }
    }

    /// Go on to the next thing that happens, at most so far.
    pub fn step(&mut self, at_most_ns: u64) {
        let next = self.channel.keys().next().copied();
        let until = self.now_ns + at_most_ns;
        match next {
            Some((at, side)) if at <= until => {
                self.now_ns = self.now_ns.max(at);
                let frames = self.channel.remove(&(at, side)).unwrap_or_default();
                let mut out = Out::default();
                for frame in frames {
                    self.sides[side].receive(self.now_ns, &frame, &mut out);
                }
                self.sides[side].flush(self.now_ns, &mut out);
                self.transmit(side, out);
            }
            _ => self.now_ns = until,
        }
        for side in [CLIENT, SERVER] {
            let mut out = Out::default();
            self.sides[side].expire(self.now_ns, usize::MAX, &mut out);
            self.transmit(side, out);
        }
    }

    /// Go on for so many milliseconds.
    pub fn run_for_ms(&mut self, milliseconds: u64) {
        let until = self.now_ns + milliseconds * 1_000_000;
        while self.now_ns < until {
            self.step(1_000_000);
        }
    }

    /// Go on until both tables are empty, at most so many seconds.
    pub fn run_until_empty(&mut self, seconds: u64) {
        let until = self.now_ns + seconds * 1_000_000_000;
        let is_busy =
            |s: &Self| s.sides.iter().any(|side| !side.table().is_empty()) || !s.channel.is_empty();
        while is_busy(self) && self.now_ns < until {
            self.step(10_000_000);
        }
    }

    /// Everything that began ended and was counted, on both sides.
    pub fn check_balance(&self) {
        for side in &self.sides {
            let transactions = &side.counters().transactions;
            assert_eq!((side.open(), transactions.open()), (0, 0), "open");
            assert!(side.table().is_empty(), "{} entries are left", side.table().len());
        }
    }

    /// Packets that each side sent.
    pub fn packets(&self) -> [u64; 2] {
        [CLIENT, SERVER].map(|side| self.sides[side].counters().packets.tx_packets.get())
    }

    /// Successful and failed transactions of the clients.
    pub fn outcome(&self) -> (u64, u64) {
        let transactions = &self.sides[CLIENT].counters().transactions;
        (transactions.successful.get(), transactions.failed_total())
    }
}

impl Nat {
    fn translate(&mut self, frame: &mut [u8], from: usize) {
        let packet = &mut frame[ETHERNET_BYTES..];
        let Some(header) = Ip4Header::overlay_mut(packet) else { return };
        let protocol = header.protocol();
        let Some(ports) = packet.get(20..24) else { return };
        let (source_port, destination_port) =
            (u16::from_be_bytes([ports[0], ports[1]]), u16::from_be_bytes([ports[2], ports[3]]));
        let header = Ip4Header::overlay_mut(packet).expect("header");
        let (old, new, old_port, new_port, place) = if from == CLIENT {
            let count = self.ports.len() as u16;
            let inside = (header.source_bits(), source_port);
            let port = *self.ports.entry(inside).or_insert(20_000 + count);
            self.back.insert(port, inside);
            header.set_source(NAT_ADDRESS);
            (inside.0, NAT_ADDRESS.to_bits(), source_port, port, 20)
        } else {
            let Some(&(address, port)) = self.back.get(&destination_port) else { return };
            header.set_destination(Ipv4Addr::from_bits(address));
            (NAT_ADDRESS.to_bits(), address, destination_port, port, 22)
        };
        header.set_checksum(update32(header.checksum(), old, new));
        packet[place..place + 2].copy_from_slice(&new_port.to_be_bytes());
        let at = if protocol == IpProtocol::TCP { 36 } else { 26 };
        let Some(sum) = packet.get_mut(at..at + 2) else { return };
        let checksum = u16::from_be_bytes([sum[0], sum[1]]);
        let checksum = if protocol == IpProtocol::TCP {
            update16(update32(checksum, old, new), old_port, new_port)
        } else {
            let checksum = update_udp16(checksum, (old >> 16) as u16, (new >> 16) as u16);
            update_udp16(update_udp16(checksum, old as u16, new as u16), old_port, new_port)
        };
        sum.copy_from_slice(&checksum.to_be_bytes());
    }
}
