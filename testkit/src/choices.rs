//! Values for lines of the grammar that often fit each other: few interfaces, few addresses, few
//! numbers. A seed chooses them, or the bytes that a fuzzer changes.

use std::path::Path;

use quiver_control::random::{Chooser, Wanted};

/// Where choices come from.
pub trait Numbers {
    /// A number below `bound`; 0 where `bound` is 0.
    fn below(&mut self, bound: usize) -> usize;
}

/// Choices by bytes, in their order: one byte for a choice of up to 256, two for more. 0 when none
/// are left.
pub struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    /// Are there none left?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte, 0 when none are left.
    pub fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    /// The next bytes, fewer when not so many are left.
    pub fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

impl Numbers for Bytes<'_> {
    fn below(&mut self, bound: usize) -> usize {
        let low = usize::from(self.byte());
        let number = if bound > 256 { (usize::from(self.byte()) << 8) | low } else { low };
        number % bound.max(1)
    }
}

/// Xorshift: the same seed makes the same choices.
pub struct Random(u64);

impl Random {
    /// The choices of this seed.
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
}

impl Numbers for Random {
    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

const IP4: &[&str] =
    &["10.0.0.1", "10.0.0.2", "10.0.1.1", "192.0.2.1", "10.0.0.0", "224.0.1.9", "232.1.1.1"];
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
    /// Where choices come from.
    pub numbers: &'a mut dyn Numbers,
    /// The interfaces that there are.
    pub interfaces: &'a [String],
    /// Where files are named.
    pub folder: &'a Path,
    /// Of ten elements that may be left out, so many are written.
    pub density: usize,
}

impl Choices<'_> {
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.numbers.below(from.len())]
    }

    fn number(&mut self, name: &str, min: u64, max: u64) -> String {
        let few = matches!(
            name,
            "count" | "table" | "domain" | "instance" | "id" | "policy" | "socket-id"
        );
        let most = if few { 3 } else { 100_000 };
        let any = [min, min + 1, min + 2, 1, 2, 3, 7, 64, 100, 1500, 2048, 65_536, max];
        let number = if few || self.numbers.below(2) == 0 {
            [0, 1, 2, 3][self.numbers.below(4)]
        } else {
            any[self.numbers.below(any.len())].min(min.max(most))
        };
        number.clamp(min, max).to_string()
    }

    fn address(&mut self, family: usize) -> String {
        self.pick([IP4, IP6][family]).to_owned()
    }

    fn prefix(&mut self, family: usize) -> String {
        let length = self.pick([IP4_LENGTHS, IP6_LENGTHS][family]);
        format!("{}/{length}", self.address(family))
    }

    fn path(&mut self, command: &str) -> String {
        let names: &[&str] =
            if command.contains("memif") { &["m1.sock", "m2.sock"] } else { &["a.pcap", "b.pcap"] };
        self.folder.join(self.pick(names)).display().to_string()
    }
}

impl Chooser for Choices<'_> {
    fn below(&mut self, bound: usize) -> usize {
        self.numbers.below(bound)
    }

    fn includes(&mut self) -> bool {
        self.numbers.below(10) < self.density
    }

    fn value(&mut self, wanted: &Wanted<'_>) -> String {
        if let Some((min, max)) = wanted.numbers() {
            return self.number(wanted.name, min, max);
        }
        let either = self.numbers.below(2);
        match wanted.value_type.name.as_str() {
            "interface" if !self.interfaces.is_empty() => {
                self.interfaces[self.numbers.below(self.interfaces.len())].clone()
            }
            "interface" => "loop0".into(),
            "node" => self.pick(NODES).into(),
            "ip4" => self.address(0),
            "ip6" => self.address(1),
            "ip" => self.address(either),
            "prefix4" => self.prefix(0),
            "prefix6" => self.prefix(1),
            "prefix" => self.prefix(either),
            "mac" => self.pick(MACS).into(),
            "path" => self.path(wanted.command),
            "word" if wanted.command.starts_with("create packet-generator") => {
                self.pick(&["pg0", "pg1"]).into()
            }
            "word" | "text" | "secret" => self.pick(WORDS).into(),
            "rate" => self.pick(&["1000", "1.5M", "0", "0.3", "10G"]).into(),
            "seconds" => self.pick(&["1", "0.5", "20ms", "0", "1.0001", "3us"]).into(),
            "range" => self.pick(&["64-1518", "64", "1-4094", "7-9"]).into(),
            "block" => self.pick(BLOCKS).into(),
            _ => wanted.value_type.example.clone(),
        }
    }
}
