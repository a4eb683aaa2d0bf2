//! A collector on this machine that believes nothing: what is not as RFC 7011 has it panics.

use std::collections::{BTreeMap, HashMap};
use std::net::{SocketAddr, UdpSocket};

/// A data record: its template's number, and its fields by information element; of an IPv6 address
/// the last eight bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub domain: u32,
    pub template: u16,
    pub fields: BTreeMap<u16, u64>,
}

/// What is known of exporters.
#[derive(Default)]
pub struct Decoder {
    templates: HashMap<(u32, u16), Vec<(u16, u16)>>,
    /// The next sequence number of a domain.
    sequences: HashMap<u32, u32>,
    /// Template records.
    pub templates_seen: usize,
}

fn number(bytes: &[u8]) -> u64 {
    assert!(matches!(bytes.len(), 1..=8 | 16), "a field of {} bytes", bytes.len());
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn take<'b>(bytes: &mut &'b [u8], count: usize) -> &'b [u8] {
    let (head, rest) = bytes.split_at_checked(count).expect("the message is whole");
    *bytes = rest;
    head
}

fn half(bytes: &mut &[u8]) -> u16 {
    number(take(bytes, 2)) as u16
}

impl Decoder {
    /// The data records of a message.
    pub fn message(&mut self, message: &[u8]) -> Vec<Record> {
        let mut rest = message;
        // RFC 7011 §3.1: version 10, and the length of the whole message.
        assert_eq!(half(&mut rest), 10);
        assert_eq!(usize::from(half(&mut rest)), message.len());
        take(&mut rest, 4);
        let (sequence, domain) = (number(take(&mut rest, 4)) as u32, number(take(&mut rest, 4)));
        let domain = domain as u32;
        let mut records = Vec::new();
        while !rest.is_empty() {
            let (set, length) = (half(&mut rest), usize::from(half(&mut rest)));
            assert!(length > 4, "RFC 7011 §3.3.2: a set has at least one record");
            let mut set_bytes = take(&mut rest, length - 4);
            match set {
                2 => self.read_templates(domain, &mut set_bytes, false),
                3 => self.read_templates(domain, &mut set_bytes, true),
                256.. => self.read_records(domain, set, &mut set_bytes, &mut records),
                other => panic!("set {other}"),
            }
        }
        // The sequence number is that of the data records before this message.
        let expected = self.sequences.entry(domain).or_insert(sequence);
        assert_eq!(sequence, *expected, "records are missing");
        *expected = expected.wrapping_add(records.len() as u32);
        records
    }

    fn read_templates(&mut self, domain: u32, bytes: &mut &[u8], are_options: bool) {
        while !bytes.is_empty() {
            let (id, count) = (half(bytes), half(bytes));
            assert!(id >= 256 && count > 0);
            if are_options {
                assert!((1..=count).contains(&half(bytes)), "RFC 7011 §3.4.2.2: scope fields");
            }
            let fields: Vec<_> = (0..count).map(|_| (half(bytes), half(bytes))).collect();
            assert!(fields.iter().all(|(element, _)| *element < 0x8000), "of the IANA registry");
            let known = self.templates.insert((domain, id), fields.clone());
            // RFC 7011 §8: the same number stays the same template.
            assert!(known.is_none_or(|known| known == fields));
            self.templates_seen += 1;
        }
    }

    fn read_records(&self, domain: u32, id: u16, bytes: &mut &[u8], records: &mut Vec<Record>) {
        let template = self.templates.get(&(domain, id)).expect("a template came before");
        while !bytes.is_empty() {
            let fields = template
                .iter()
                .map(|(element, length)| (*element, number(take(bytes, usize::from(*length)))))
                .collect();
            records.push(Record { domain, template: id, fields });
        }
    }
}

/// A socket that receives, on the loopback device.
pub struct Collector {
    pub socket: UdpSocket,
    pub decoder: Decoder,
    /// The longest datagram, bytes behind the UDP header.
    pub longest: usize,
    pub datagrams: usize,
}

impl Collector {
    pub fn new() -> Collector {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.set_nonblocking(true).expect("an option");
        Collector { socket, decoder: Decoder::default(), longest: 0, datagrams: 0 }
    }

    pub fn address(&self) -> SocketAddr {
        self.socket.local_addr().expect("bound")
    }

    /// All datagrams that have come: the loopback device delivers while the sender sends.
    pub fn datagrams(&mut self) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        let mut buffer = vec![0; 65_536];
        while let Ok(length) = self.socket.recv(&mut buffer) {
            self.longest = self.longest.max(length);
            self.datagrams += 1;
            all.push(buffer[..length].to_vec());
        }
        all
    }

    /// The data records of all messages that have come.
    pub fn records(&mut self) -> Vec<Record> {
        let datagrams = self.datagrams();
        datagrams.iter().flat_map(|datagram| self.decoder.message(datagram)).collect()
    }
}
