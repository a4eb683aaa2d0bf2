//! Messages of Linux and of routing daemons: netlink, FPM, the data plane of BFD. The first byte
//! says which, and whether bytes are messages or choices of which messages are made.
//!
//! Made messages speak of few objects, so that they meet: links, addresses, neighbours, next-hop
//! objects and routes come, change and go while portions of them are reported.

use quiver_bfd::dplane::messages as dplane;
use quiver_linux_mirror::lab::{Knowledge, Picture};
use quiver_netlink::message::flag;
use quiver_netlink::{
    Attributes, Messages, address, family, link, mpls, neighbour, next_hop, request, route, seg6,
};

const READERS: [fn(&[u8]); 5] = [raw_netlink, made_netlink, dumped_netlink, fpm_frames, bfd_stream];

/// Read the bytes behind the first as it says.
pub fn run(bytes: &[u8]) {
    if let Some((reader, bytes)) = bytes.split_first() {
        READERS[usize::from(*reader) % READERS.len()](bytes);
    }
}

/// Every reader of a body over all bytes, then all as a datagram.
fn raw_netlink(bytes: &[u8]) {
    let _ = (link::Link::read(bytes), address::LinkAddress::read(bytes));
    let _ = (neighbour::Neighbour::read(bytes), next_hop::NextHop::read(bytes));
    let _ = (seg6::Headend::read(bytes), seg6::LocalSid::read(bytes));
    let _ = (mpls::LabelStack::read(bytes), mpls::LabelRoute::read(bytes));
    if let Some(route) = route::Route::read(bytes) {
        assert!(route.hops().count() <= bytes.len());
    }
    assert!(Attributes::of(bytes).count() <= bytes.len() / 4);
    for message in Messages::of(bytes) {
        let _ = message.error();
    }
    let mut knowledge = Knowledge::default();
    knowledge.take_messages(bytes);
    assert_reported(&mut knowledge, Picture::new());
}

/// A receiver of the rest knows all.
fn assert_reported(knowledge: &mut Knowledge, mut known: Picture) {
    while knowledge.report(&mut known) {}
    assert_eq!(known, knowledge.picture());
}

/// Bytes as choices; zeros when they are used up.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        let first = self.0.first().copied().unwrap_or(0);
        self.0 = self.0.get(1..).unwrap_or_default();
        first
    }

    fn below(&mut self, count: u8) -> u8 {
        self.byte() % count
    }

    fn of<T: Copy, const N: usize>(&mut self, all: [T; N]) -> T {
        all[usize::from(self.byte()) % N]
    }

    fn index(&mut self) -> [u8; 4] {
        u32::from(self.below(4)).to_ne_bytes()
    }

    fn bytes(&mut self, count: u8) -> Vec<u8> {
        (0..count).map(|_| self.byte()).collect()
    }

    /// An address of a family, one of four.
    fn address(&mut self, is_ip6: bool) -> Vec<u8> {
        let last = self.below(4);
        match is_ip6 {
            true => [&[0xfe, 0x80][..], &[0; 13], &[last]].concat(),
            false => vec![10, 0, 0, last],
        }
    }
}

/// A message of this kind with these flags.
fn message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = ((16 + body.len()) as u32).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend(body);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn family_of(is_ip6: bool) -> u8 {
    if is_ip6 { family::IP6 } else { family::IP4 }
}

/// A lightweight tunnel: an SRH, a local SID, or anything.
fn encap(choices: &mut Choices<'_>, kind_of: u16, value_of: u16) -> Vec<u8> {
    let kind = choices.of([seg6::HEADEND, seg6::LOCAL, 0, 9]);
    let value = match kind {
        seg6::HEADEND => {
            let count = choices.below(3);
            let (length, last) = (2 * count, count.wrapping_sub(1));
            let mut value = u32::from(choices.below(6)).to_ne_bytes().to_vec();
            value.extend([0, length, 4, last, last, choices.of([0, 8]), 0, 0]);
            (0..count).for_each(|_| value.extend(choices.address(true)));
            request::attribute_bytes(1, &value)
        }
        seg6::LOCAL => {
            let action = u32::from(choices.below(18)).to_ne_bytes();
            let mut value = request::attribute_bytes(1, &action);
            for _ in 0..choices.below(3) {
                let count = choices.of([4, 16, 8, 24]);
                let number = choices.below(12).into();
                value.extend(request::attribute_bytes(number, &choices.bytes(count)));
            }
            value
        }
        _ => choices.bytes(8),
    };
    let kind = request::attribute_bytes(kind_of, &kind.to_ne_bytes());
    [kind, request::attribute_bytes(value_of, &value)].concat()
}

/// What a link is like, or that it is gone.
fn made_link(choices: &mut Choices<'_>) -> (u16, Vec<u8>) {
    let mut body = vec![choices.of([0, 0, 0, family::BRIDGE]), 0, 0, 0];
    body.extend(choices.index());
    body.extend(u32::from(choices.of([0x41u8, 0, 1])).to_ne_bytes());
    body.extend([0; 4]);
    body.extend(request::attribute_bytes(3, choices.of([b"e0\0", b"e1\0"])));
    body.extend(request::attribute_bytes(4, &u32::from(choices.byte()).to_ne_bytes()));
    if choices.below(2) == 1 {
        let id = u16::from(choices.byte()).to_ne_bytes();
        let data = request::attribute_bytes(2, &request::attribute_bytes(1, &id));
        let kind = request::attribute_bytes(1, choices.of([b"vlan\0\0\0\0", b"macvlan\0"]));
        body.extend(request::attribute_bytes(5, &choices.index()));
        body.extend(request::attribute_bytes(18, &[kind, data].concat()));
    }
    (choices.of([link::NEW, link::NEW, link::DELETED]), body)
}

fn made_address(choices: &mut Choices<'_>) -> (u16, Vec<u8>) {
    let is_ip6 = choices.below(2) == 1;
    let mut body = vec![family_of(is_ip6), choices.of([24, 32, 64, 129]), choices.of([0, 8]), 0];
    body.extend(choices.index());
    body.extend(request::attribute_bytes(choices.of([1, 2]), &choices.address(is_ip6)));
    (choices.of([address::NEW, address::DELETED]), body)
}

fn made_neighbour(choices: &mut Choices<'_>) -> (u16, Vec<u8>) {
    let is_ip6 = choices.below(2) == 1;
    let mut body = vec![choices.of([family_of(is_ip6), family::BRIDGE]), 0, 0, 0];
    body.extend(choices.index());
    body.extend(u16::from(choices.byte()).to_ne_bytes());
    body.extend([0; 2]);
    body.extend(request::attribute_bytes(1, &choices.address(is_ip6)));
    body.extend(request::attribute_bytes(2, &[2, 0, 0, 0, 0, choices.below(3)]));
    (choices.of([neighbour::NEW, neighbour::DELETED]), body)
}

fn made_object(choices: &mut Choices<'_>) -> (u16, Vec<u8>) {
    let mut body = vec![0; 8];
    body.extend(request::attribute_bytes(1, &choices.index()));
    match choices.below(4) {
        0 => body.extend(request::attribute_bytes(4, &[])),
        1 => {
            let mut members = Vec::new();
            for _ in 0..choices.below(4) {
                members.extend(choices.index());
                members.extend([choices.below(3), 0, 0, 0]);
            }
            body.extend(request::attribute_bytes(2, &members));
        }
        _ => {
            body.extend(request::attribute_bytes(5, &choices.index()));
            let is_ip6 = choices.below(2) == 1;
            body.extend(request::attribute_bytes(6, &choices.address(is_ip6)));
            if choices.below(4) == 1 {
                body.extend(encap(choices, 7, 8));
            }
        }
    }
    (choices.of([next_hop::NEW, next_hop::NEW, next_hop::DELETED]), body)
}

fn made_route(choices: &mut Choices<'_>) -> (u16, Vec<u8>) {
    let is_ip6 = choices.below(2) == 1;
    let table = choices.of([254, 253, 255]);
    let protocol = choices.of([11, 2, route::protocol::QUIVER]);
    let kind = choices.of([1, 1, 6, 2]);
    let length = choices.of([24, 32, 0, 128]);
    let mut body = vec![family_of(is_ip6), length, 0, 0, table, protocol, 0, kind, 0, 0, 0, 0];
    body.extend(request::attribute_bytes(1, &choices.address(is_ip6)));
    body.extend(request::attribute_bytes(6, &u32::from(choices.below(3)).to_ne_bytes()));
    match choices.below(4) {
        0 => body.extend(request::attribute_bytes(30, &choices.index())),
        1 => {
            let mut hops = Vec::new();
            for _ in 0..choices.below(4) {
                let own = request::attribute_bytes(5, &choices.address(is_ip6));
                let own = if choices.below(4) == 1 {
                    [own, encap(choices, 21, 22)].concat()
                } else {
                    own
                };
                hops.extend(((8 + own.len()) as u16).to_ne_bytes());
                hops.extend([0, choices.below(3)]);
                hops.extend(choices.index());
                hops.extend(own);
            }
            body.extend(request::attribute_bytes(9, &hops));
        }
        _ => {
            body.extend(request::attribute_bytes(4, &choices.index()));
            body.extend(request::attribute_bytes(5, &choices.address(is_ip6)));
        }
    }
    (choices.of([route::NEW, route::NEW, route::DELETED]), body)
}

type Maker = fn(&mut Choices<'_>) -> (u16, Vec<u8>);
const MAKERS: [Maker; 5] = [made_link, made_address, made_object, made_route, made_neighbour];

fn made(choices: &mut Choices<'_>) -> Vec<u8> {
    let flags = choices.of([0, flag::APPEND]);
    let (kind, body) = choices.of(MAKERS)(choices);
    message(kind, flags, &body)
}

/// Objects come, change and go; a receiver of portions knows all in the end.
fn made_netlink(bytes: &[u8]) {
    let (mut choices, mut knowledge, mut known) =
        (Choices(bytes), Knowledge::default(), Picture::new());
    while !choices.0.is_empty() {
        match choices.below(16) {
            0 => {
                knowledge.report(&mut known);
            }
            1 => {
                let is_link = choices.below(2) == 1;
                knowledge.report_again(is_link, choices.below(4).into());
            }
            2 => knowledge.begin_dump(),
            3 => knowledge.end_dump(),
            _ => knowledge.take_messages(&made(&mut choices)),
        }
    }
    assert_reported(&mut knowledge, known);
}

/// After a dump of all there is, what was known before makes no difference.
fn dumped_netlink(bytes: &[u8]) {
    let (history, dump) = bytes.split_at(bytes.len() / 2);
    let (mut known, mut seen) = (Knowledge::default(), Picture::new());
    let mut choices = Choices(history);
    while !choices.0.is_empty() {
        known.take_messages(&made(&mut choices));
    }
    known.report(&mut seen);
    let mut choices = Choices(dump);
    let mut fresh = Knowledge::default();
    known.begin_dump();
    fresh.begin_dump();
    // A dump has one kind behind the other, and nothing that is gone.
    let each = choices.below(8);
    for make in MAKERS {
        for _ in 0..each {
            let (kind, body) = make(&mut choices);
            if [link::NEW, address::NEW, next_hop::NEW, route::NEW, neighbour::NEW].contains(&kind)
            {
                let message = message(kind, flag::MULTI, &body);
                known.take_messages(&message);
                fresh.take_messages(&message);
            }
        }
    }
    known.end_dump();
    fresh.end_dump();
    assert_eq!(known.picture(), fresh.picture());
    assert_reported(&mut known, seen);
}

/// A stream of frames means the same wherever it is cut.
fn fpm_frames(bytes: &[u8]) {
    let Some((cut, rest)) = bytes.split_first() else { return };
    let mut choices = Choices(rest);
    let mut stream = Vec::new();
    if cut & 1 == 0 {
        while !choices.0.is_empty() {
            let body = [made(&mut choices), made(&mut choices)].concat();
            stream.extend([1, choices.of([1, 1, 1, 2])]);
            stream.extend(((4 + body.len()) as u16).to_be_bytes());
            stream.extend(body);
        }
    } else {
        stream.extend(rest);
    }
    let (mut whole, mut cutting) = (Knowledge::default(), Knowledge::default());
    let used = whole.take_frames(&stream);
    assert!(used.is_none_or(|used| used <= stream.len()));
    let (mut buffer, mut taken) = (Vec::new(), Some(0));
    for piece in stream.chunks(usize::from(*cut) + 1) {
        buffer.extend(piece);
        match cutting.take_frames(&buffer) {
            Some(used) => {
                buffer.drain(..used);
                taken = taken.map(|taken| taken + used);
            }
            None => {
                taken = None;
                break;
            }
        }
    }
    assert_eq!(taken, used);
    assert_eq!(cutting.picture(), whole.picture());
    assert_reported(&mut whole, Picture::new());
}

/// A message of the BFD data plane reads the same when more is behind it, and is not there before
/// all of it is.
fn bfd_stream(bytes: &[u8]) {
    let mut rest = bytes.to_vec();
    // The version, so that more than the first byte is looked at.
    if let Some(version) = rest.first_mut().filter(|version| **version & 1 == 0) {
        *version = 1;
    }
    while let Ok(Some((message, id, length))) = dplane::read(&rest) {
        assert!(length <= dplane::MESSAGE_BYTES_MAX && length <= rest.len());
        let again = dplane::read(&rest[..length]).expect("what was read is read again");
        assert_eq!(again, Some((message, id, length)));
        assert_eq!(dplane::read(&rest[..length - 1]), Ok(None));
        rest.drain(..length);
    }
    if let Err(fault) = dplane::read(&rest) {
        assert_eq!(dplane::read(&rest[..rest.len().min(8)]), Err(fault), "the header says so");
    }
}
