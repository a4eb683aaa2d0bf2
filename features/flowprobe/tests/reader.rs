//! A strict reader of IPFIX: what is not as RFC 7011 has it fails the test.

use std::collections::HashMap;
use std::net::UdpSocket;
use std::time::Duration;

/// A record: its template, its fields by number, as numbers.
#[derive(Clone, Debug)]
pub struct Record {
    pub template: u16,
    pub fields: HashMap<u16, u128>,
}

impl Record {
    /// A field that must be there.
    pub fn get(&self, field: u16) -> u128 {
        *self.fields.get(&field).unwrap_or_else(|| panic!("no field {field} in {self:?}"))
    }
}

/// A collector.
pub struct Collector {
    socket: UdpSocket,
    templates: HashMap<u16, Vec<(u16, usize)>>,
    sequence: u32,
    records: Vec<Record>,
}

impl Collector {
    pub fn new() -> Collector {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        socket.set_read_timeout(Some(Duration::from_millis(200))).expect("a socket");
        Collector { socket, templates: HashMap::new(), sequence: 0, records: Vec::new() }
    }

    pub fn port(&self) -> u16 {
        self.socket.local_addr().expect("bound").port()
    }

    /// All records of flows until now.
    pub fn records(&mut self) -> &[Record] {
        let mut bytes = [0; 65_536];
        while let Ok(length) = self.socket.recv(&mut bytes) {
            self.message(&bytes[..length]);
        }
        &self.records
    }

    fn message(&mut self, bytes: &[u8]) {
        assert_eq!((word(bytes, 0), word(bytes, 2) as usize), (10, bytes.len()));
        let sequence = u32::from(word(bytes, 8)) << 16 | u32::from(word(bytes, 10));
        assert_eq!(sequence, self.sequence, "records before this message (RFC 7011 §3.1)");
        let mut at = 16;
        while at < bytes.len() {
            let (set, length) = (word(bytes, at), word(bytes, at + 2) as usize);
            let body = &bytes[at + 4..at + length];
            match set {
                2 => self.read_templates(body, 4),
                3 => self.read_templates(body, 6),
                256.. => self.read_records(set, body),
                _ => panic!("a set {set}"),
            }
            at += length;
        }
    }

    fn read_templates(&mut self, mut body: &[u8], header: usize) {
        while !body.is_empty() {
            let fields = word(body, 2) as usize;
            let own = (0..fields).map(|field| header + 4 * field);
            let own = own.map(|at| (word(body, at), word(body, at + 2) as usize)).collect();
            self.templates.insert(word(body, 0), own);
            body = &body[header + 4 * fields..];
        }
    }

    fn read_records(&mut self, template: u16, mut body: &[u8]) {
        let fields = self.templates[&template].clone();
        while !body.is_empty() {
            let mut record = Record { template, fields: HashMap::new() };
            for (field, length) in &fields {
                let value =
                    body[..*length].iter().fold(0, |sum, byte| sum << 8 | u128::from(*byte));
                record.fields.insert(*field, value);
                body = &body[*length..];
            }
            self.sequence += 1;
            self.records.push(record);
        }
    }
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}
