//! Names for the bytes of a frame, for messages. Written apart from the router's own parsers, which
//! it helps to check; what it does not know it calls payload.

/// A field: from where to where, and its name with the header's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) name: String,
}

/// A header: its name, and its fields with their sizes in bytes.
struct Header {
    name: &'static str,
    fields: &'static [(&'static str, usize)],
}

const ETHERNET: Header =
    Header { name: "ethernet", fields: &[("destination", 6), ("source", 6), ("type", 2)] };
const VLAN: Header = Header { name: "vlan", fields: &[("tag", 2), ("type", 2)] };
const MPLS: Header =
    Header { name: "mpls", fields: &[("label, class, bottom bit", 3), ("time to live", 1)] };
const ARP: Header = Header {
    name: "arp",
    fields: &[
        ("hardware type", 2),
        ("protocol type", 2),
        ("hardware length", 1),
        ("protocol length", 1),
        ("operation", 2),
        ("sender hardware address", 6),
        ("sender protocol address", 4),
        ("target hardware address", 6),
        ("target protocol address", 4),
    ],
};
const IP4: Header = Header {
    name: "ip4",
    fields: &[
        ("version and header length", 1),
        ("DSCP and ECN", 1),
        ("total length", 2),
        ("identification", 2),
        ("flags and fragment offset", 2),
        ("time to live", 1),
        ("protocol", 1),
        ("header checksum", 2),
        ("source", 4),
        ("destination", 4),
    ],
};
const IP6: Header = Header {
    name: "ip6",
    fields: &[
        ("version, class, flow label", 4),
        ("payload length", 2),
        ("next header", 1),
        ("hop limit", 1),
        ("source", 16),
        ("destination", 16),
    ],
};
const UDP: Header = Header {
    name: "udp",
    fields: &[("source port", 2), ("destination port", 2), ("length", 2), ("checksum", 2)],
};
const TCP: Header = Header {
    name: "tcp",
    fields: &[
        ("source port", 2),
        ("destination port", 2),
        ("sequence number", 4),
        ("acknowledgement number", 4),
        ("offset and flags", 2),
        ("window", 2),
        ("checksum", 2),
        ("urgent pointer", 2),
    ],
};
const ICMP: Header = Header {
    name: "icmp",
    fields: &[("type", 1), ("code", 1), ("checksum", 2), ("rest of header", 4)],
};
/// What a neighbour solicitation or advertisement is about (RFC 4861 §4.3).
const NEIGHBOUR: Header = Header { name: "neighbour", fields: &[("target", 16)] };
const VXLAN: Header =
    Header { name: "vxlan", fields: &[("flags", 1), ("reserved", 3), ("vni", 3), ("reserved", 1)] };

/// Headers inside headers, at most.
const DEPTH_MAX: usize = 12;

/// The field that the byte at `at` belongs to; `None` behind the headers.
pub(crate) fn field_at(frame: &[u8], at: usize) -> Option<Field> {
    fields(frame).into_iter().find(|field| (field.start..field.end).contains(&at))
}

/// Fields whose values make frames frames of one flow.
const OF_FLOW: [&str; 12] = [
    "ethernet destination",
    "ethernet source",
    "vlan tag",
    "mpls label, class, bottom bit",
    "ip4 protocol",
    "ip4 source",
    "ip4 destination",
    "ip6 next header",
    "ip6 source",
    "ip6 destination",
    "vxlan vni",
    "neighbour target",
];

/// What tells the flow of a frame from others: addresses, tags, protocols, ports and flow labels of
/// all headers that are known, those of a packet that an ICMP error quotes as well. Frames of one
/// flow keep their order.
pub fn flow(frame: &[u8]) -> Vec<u8> {
    let mut key = Vec::new();
    for Field { start, end, name } in fields(frame) {
        let Some(bytes) = frame.get(start..end) else { break };
        match name.as_str() {
            "ip6 version, class, flow label" => key.extend([bytes[1] & 15, bytes[2], bytes[3]]),
            name if OF_FLOW.contains(&name) || name.ends_with(" port") => key.extend(bytes),
            _ => {}
        }
    }
    key
}

/// All fields, as far as the headers are known.
fn fields(frame: &[u8]) -> Vec<Field> {
    let mut out = Vec::new();
    let mut at = 0;
    let mut header = Some(&ETHERNET);
    for _ in 0..DEPTH_MAX {
        let Some(current) = header else { break };
        let start = at;
        for (name, bytes) in current.fields {
            let name = format!("{} {name}", current.name);
            out.push(Field { start: at, end: at + bytes, name });
            at += bytes;
        }
        let end = start + length(current, &frame[start.min(frame.len())..]).max(at - start);
        if end > at {
            out.push(Field { start: at, end, name: format!("{} options", current.name) });
            at = end;
        }
        header = next(current, frame, start, at);
    }
    out
}

/// Bytes of a header whose length is written in it.
fn length(header: &Header, bytes: &[u8]) -> usize {
    match header.name {
        "ip4" => bytes.first().map_or(0, |b| (b & 15) as usize * 4),
        "tcp" => bytes.get(12).map_or(0, |b| (b >> 4) as usize * 4),
        _ => 0,
    }
}

/// The header behind one that stands from `start` to `end`.
fn next(header: &Header, frame: &[u8], start: usize, end: usize) -> Option<&'static Header> {
    let byte = |at: usize| frame.get(at).copied();
    let word = |at: usize| Some(u16::from_be_bytes([byte(at)?, byte(at + 1)?]));
    match header.name {
        "ethernet" | "vlan" => of_ethertype(word(end - 2)?),
        "mpls" if byte(start + 2)? & 1 == 0 => Some(&MPLS),
        "mpls" => match byte(end)? >> 4 {
            4 => Some(&IP4),
            6 => Some(&IP6),
            _ => None,
        },
        // Only the first fragment has the next header.
        "ip4" if word(start + 6)? & 0x1fff == 0 => of_protocol(byte(start + 9)?),
        "ip6" => of_protocol(byte(start + 6)?),
        // An error quotes the packet that it is about (RFC 792, RFC 4443 §3).
        "icmp" if matches!(byte(start)?, 1..=5 | 11 | 12) => match byte(end)? >> 4 {
            4 => Some(&IP4),
            6 => Some(&IP6),
            _ => None,
        },
        "icmp" if matches!(byte(start)?, 135 | 136) => Some(&NEIGHBOUR),
        "udp" if word(start + 2)? == 4789 => Some(&VXLAN),
        "vxlan" => Some(&ETHERNET),
        _ => None,
    }
}

fn of_ethertype(value: u16) -> Option<&'static Header> {
    match value {
        0x0800 => Some(&IP4),
        0x86dd => Some(&IP6),
        0x0806 => Some(&ARP),
        0x8100 | 0x88a8 => Some(&VLAN),
        0x8847 => Some(&MPLS),
        _ => None,
    }
}

fn of_protocol(value: u8) -> Option<&'static Header> {
    match value {
        1 | 58 => Some(&ICMP),
        4 => Some(&IP4),
        6 => Some(&TCP),
        17 => Some(&UDP),
        41 => Some(&IP6),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(frame: &[u8], at: usize) -> Option<String> {
        field_at(frame, at).map(|f| f.name)
    }

    #[test]
    fn fields_are_found_through_tags_labels_and_tunnels() {
        let mut frame = vec![0; 12];
        frame.extend([0x81, 0, 0, 5, 0x86, 0xdd]);
        frame.extend([0x60, 0, 0, 0, 0, 8, 17, 64]);
        frame.extend([0; 32]);
        frame.extend([0x12, 0xb5, 0x12, 0xb5, 0, 8, 0, 0]);
        assert_eq!(name(&frame, 15).as_deref(), Some("vlan tag"));
        assert_eq!(name(&frame, 25).as_deref(), Some("ip6 hop limit"));
        assert_eq!(name(&frame, 63).as_deref(), Some("udp length"));
        assert_eq!(name(&frame, 70).as_deref(), Some("vxlan vni"));
        assert_eq!(name(&frame, 74).as_deref(), Some("ethernet destination"));
    }

    #[test]
    fn a_flow_is_told_by_addresses_and_ports_and_not_by_what_changes_in_it() {
        let mut frame = vec![2; 12];
        frame.extend([8, 0, 0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0, 7, 0, 9, 0, 8, 0, 0]);
        let changed = |at: usize| {
            let mut other = frame.clone();
            other[at] ^= 1;
            flow(&other) != flow(&frame)
        };
        let telling: Vec<usize> = (0..frame.len()).filter(|at| changed(*at)).collect();
        let expected: Vec<usize> = (0..14).chain([14, 20, 21, 23]).chain(26..38).collect();
        // A type that is not known, a header length and a fragment's offset change what else is
        // read.
        let parsing = [12, 13, 14, 20, 21];
        let told = |at: &&usize| !parsing.contains(*at);
        assert!(telling.iter().filter(told).eq(expected.iter().filter(told)), "{telling:?}");
    }

    #[test]
    fn short_and_odd_frames_end_somewhere() {
        for length in 0..40 {
            let frame: Vec<u8> =
                std::iter::repeat_n([0x88, 0x47, 0x45], 20).flatten().take(length).collect();
            assert!(fields(&frame).len() < 200);
        }
    }
}
