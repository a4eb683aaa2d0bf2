//! A strict reader of sFlow version 5: what is not as the specification has it fails the test.

use std::net::UdpSocket;
use std::time::Duration;

/// What is left of a datagram.
struct Unread<'a>(&'a [u8]);

impl<'a> Unread<'a> {
    fn word(&mut self) -> u32 {
        let (word, rest) = self.0.split_first_chunk().expect("a whole word");
        self.0 = rest;
        u32::from_be_bytes(*word)
    }

    fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(count);
        self.0 = rest;
        bytes
    }

    /// A structure: its kind, what is in it.
    fn structure(&mut self) -> (u32, Unread<'a>) {
        let (kind, length) = (self.word(), self.word() as usize);
        assert_eq!(length % 4, 0, "whole words");
        (kind, Unread(self.bytes(length)))
    }
}

/// A sampled packet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flow {
    pub sequence: u32,
    pub source: u32,
    pub rate: u32,
    pub pool: u32,
    pub drops: u32,
    pub ports: [u32; 2],
    pub frame_bytes: u32,
    pub header: Vec<u8>,
    /// Words of extended_router.
    pub router: Vec<u32>,
}

/// A packet that was not sent on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Discarded {
    pub sequence: u32,
    /// The number of an interface.
    pub source: u32,
    pub drops: u32,
    pub ports: [u32; 2],
    pub reason: u32,
    /// What `header` begins with: 1 is Ethernet, 11 IPv4, 12 IPv6.
    pub protocol: u32,
    pub frame_bytes: u32,
    pub header: Vec<u8>,
    /// What dropped it.
    pub symbol: String,
}

/// What a datagram says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Read {
    pub sequences: Vec<u32>,
    pub flows: Vec<Flow>,
    /// Words of if_counters.
    pub counters: Vec<Vec<u32>>,
    pub discarded: Vec<Discarded>,
}

/// A collector.
pub struct Collector {
    pub socket: UdpSocket,
    pub read: Read,
}

impl Collector {
    pub fn new() -> Collector {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        socket.set_read_timeout(Some(Duration::from_millis(200))).expect("a socket");
        Collector { socket, read: Read::default() }
    }

    pub fn port(&self) -> u16 {
        self.socket.local_addr().expect("bound").port()
    }

    /// Read all that came.
    pub fn read(&mut self) -> &Read {
        let mut bytes = [0; 65_536];
        while let Ok(length) = self.socket.recv(&mut bytes) {
            assert!(length <= quiver_sflow::datagram::DATAGRAM_BYTES_MAX);
            datagram(&bytes[..length], &mut self.read);
        }
        &self.read
    }
}

fn datagram(bytes: &[u8], read: &mut Read) {
    let mut words = Unread(bytes);
    assert_eq!((words.word(), words.word()), (5, 1), "version, family of the agent");
    assert_eq!(words.bytes(4), [127, 0, 0, 1]);
    assert_eq!(words.word(), 0, "sub-agent");
    read.sequences.push(words.word());
    let (_uptime, samples) = (words.word(), words.word());
    for _ in 0..samples {
        match words.structure() {
            (1, sample) => read.flows.push(flow(sample)),
            (2, sample) => read.counters.push(counters(sample)),
            (5, sample) => read.discarded.push(discarded(sample)),
            (kind, _) => panic!("a sample of kind {kind}"),
        }
    }
    assert!(words.0.is_empty(), "bytes behind the samples");
}

fn flow(mut words: Unread<'_>) -> Flow {
    let [sequence, source, rate, pool, drops] = std::array::from_fn(|_| words.word());
    let ports = [words.word(), words.word()];
    let mut flow = Flow { sequence, source, rate, pool, drops, ports, ..Flow::default() };
    for _ in 0..words.word() {
        match words.structure() {
            (1, mut raw) => {
                assert_eq!(raw.word(), 1, "Ethernet");
                flow.frame_bytes = raw.word();
                assert_eq!(raw.word(), 4, "the checksum is stripped");
                let length = raw.word() as usize;
                flow.header = raw.bytes(length).to_vec();
                assert!(raw.0.len() < 4 && raw.0.iter().all(|byte| *byte == 0), "padding");
            }
            (1_002, mut router) => {
                while !router.0.is_empty() {
                    flow.router.push(router.word());
                }
            }
            (kind, _) => panic!("a record of kind {kind}"),
        }
    }
    assert!(words.0.is_empty(), "bytes behind the records");
    flow
}

/// `discarded_packet` (sflow_drops.txt §2): its source has two words, class and number.
fn discarded(mut words: Unread<'_>) -> Discarded {
    let (sequence, class, source) = (words.word(), words.word(), words.word());
    assert_eq!(class, 0, "an interface");
    let (drops, ports) = (words.word(), [words.word(), words.word()]);
    let reason = words.word();
    assert_eq!(words.word(), 2, "the packet and the function");
    let mut discarded =
        Discarded { sequence, source, drops, ports, reason, ..Discarded::default() };
    let (kind, mut raw) = words.structure();
    assert_eq!(kind, 1, "sampled_header");
    discarded.protocol = raw.word();
    let (frame_bytes, stripped, length) = (raw.word(), raw.word(), raw.word() as usize);
    discarded.frame_bytes = frame_bytes - stripped;
    discarded.header = raw.bytes(length).to_vec();
    assert!(raw.0.len() < 4, "padding");
    let (kind, mut function) = words.structure();
    assert_eq!(kind, 1_038, "extended_function");
    let length = function.word() as usize;
    discarded.symbol = String::from_utf8(function.bytes(length).to_vec()).expect("a name");
    assert!(words.0.is_empty(), "bytes behind the records");
    discarded
}

fn counters(mut words: Unread<'_>) -> Vec<u32> {
    let (_sequence, _source) = (words.word(), words.word());
    assert_eq!(words.word(), 2, "generic and Ethernet");
    let (kind, mut generic) = words.structure();
    assert_eq!((kind, generic.0.len()), (1, 88));
    let (kind, ethernet) = words.structure();
    assert_eq!((kind, ethernet.0.len()), (2, 52));
    (0..22).map(|_| generic.word()).collect()
}
