//! Random choices that often fit each other: few interfaces, few addresses, few numbers.

use std::path::Path;

use quiver_control::random::{Chooser, Wanted};

/// Xorshift: the same seed makes the same commands.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        (0..8).for_each(|_| _ = random.next());
        random
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 11
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    pub fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }
}

const IP4: &[&str] = &["10.0.0.1", "10.0.0.2", "10.0.1.1", "192.0.2.1", "10.0.0.0", "224.0.1.9", "232.1.1.1"];
const IP4_LENGTHS: &[&str] = &["32", "24", "24", "16", "31", "8", "0", "30"];
const IP6: &[&str] = &[
    "2001:db8::1",
    "2001:db8::2",
    "2001:db8:1::1",
    "fc00:0:1::",
    "fc00:0:1:1::",
    "fc00:0:2::1",
    "fe80::1",
    "ff05::9",
    "ff3e::1",
    "::",
];
const IP6_LENGTHS: &[&str] = &["128", "64", "64", "48", "127", "32", "96", "0"];
const MACS: &[&str] = &[
    "02:fe:00:00:00:01",
    "02:fe:00:00:00:02",
    "de:ad:00:00:00:00",
    "01:00:5e:00:00:01",
    "00:00:00:00:00:00",
];
const WORDS: &[&str] = &["a", "b", "name1", "\"two words\"", "80", "1.3.6.1", "example.com"];
const NODES: &[&str] = &["ip4-lookup", "ip6-lookup", "ethernet-input", "ip4-input"];
const BLOCKS: &[&str] =
    &["{ hex 0xdeadbeef }", "{ UDP: 10.0.0.1 -> 10.0.0.2 UDP: 1000 -> 2000 incrementing 8 }"];

/// Chooses for one line.
pub struct Choices<'a> {
    pub random: &'a mut Random,
    /// The interfaces that there are.
    pub interfaces: &'a [String],
    pub folder: &'a Path,
    /// Of ten elements that may be left out, so many are written.
    pub density: usize,
}

impl Choices<'_> {
    fn number(&mut self, name: &str, min: u64, max: u64) -> String {
        let few = matches!(name, "count" | "table" | "domain" | "instance" | "id" | "policy" | "socket-id");
        let most = if few { 3 } else { 100_000 };
        let any = [min, min + 1, min + 2, 1, 2, 3, 7, 64, 100, 1500, 2048, 65_536, max];
        let number = if few || self.random.below(2) == 0 {
            [0, 1, 2, 3][self.random.below(4)]
        } else {
            any[self.random.below(any.len())].min(min.max(most))
        };
        number.clamp(min, max).to_string()
    }

    fn address(&mut self, family: usize) -> String {
        self.random.pick([IP4, IP6][family]).to_owned()
    }

    fn prefix(&mut self, family: usize) -> String {
        let length = self.random.pick([IP4_LENGTHS, IP6_LENGTHS][family]);
        format!("{}/{length}", self.address(family))
    }

    fn path(&mut self, command: &str) -> String {
        let names: &[&str] =
            if command.contains("memif") { &["m1.sock", "m2.sock"] } else { &["a.pcap", "b.pcap"] };
        self.folder.join(self.random.pick(names)).display().to_string()
    }
}

impl Chooser for Choices<'_> {
    fn below(&mut self, bound: usize) -> usize {
        self.random.below(bound)
    }

    fn includes(&mut self) -> bool {
        self.random.below(10) < self.density
    }

    fn value(&mut self, wanted: &Wanted<'_>) -> String {
        if let Some((min, max)) = wanted.numbers() {
            return self.number(wanted.name, min, max);
        }
        let either = self.random.below(2);
        match wanted.value_type.name.as_str() {
            "interface" if !self.interfaces.is_empty() => {
                self.interfaces[self.random.below(self.interfaces.len())].clone()
            }
            "interface" => "loop0".into(),
            "node" => self.random.pick(NODES).into(),
            "ip4" => self.address(0),
            "ip6" => self.address(1),
            "ip" => self.address(either),
            "prefix4" => self.prefix(0),
            "prefix6" => self.prefix(1),
            "prefix" => self.prefix(either),
            "mac" => self.random.pick(MACS).into(),
            "path" => self.path(wanted.command),
            "word" if wanted.command.starts_with("create packet-generator") => {
                self.random.pick(&["pg0", "pg1"]).into()
            }
            "word" | "text" => self.random.pick(WORDS).into(),
            "rate" => self.random.pick(&["1000", "1.5M", "0", "0.3", "10G"]).into(),
            "seconds" => self.random.pick(&["1", "0.5", "20ms", "0", "1.0001", "3us"]).into(),
            "range" => self.random.pick(&["64-1518", "64", "1-4094", "7-9"]).into(),
            "block" => self.random.pick(BLOCKS).into(),
            _ => wanted.value_type.example.clone(),
        }
    }
}
