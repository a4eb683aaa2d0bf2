//! A frame taken apart by the headers that profiles know, whatever made it.

use crate::profile::header::{self, FieldSpec, GRE_KEY, HeaderSpec, SEGMENTS};
use crate::profile::layers::LAYERS_MAX;
use crate::profile::scalar::Kind;

/// The port of VXLAN (RFC 7348 §5).
const VXLAN_PORT: u128 = 4789;
/// Values from here on are EtherTypes, those below are lengths (IEEE 802.3 §3.2.6).
const ETHER_TYPE_MIN: u128 = 0x600;

/// A header that was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// Which.
    pub spec: &'static HeaderSpec,
    /// Its first byte.
    pub at: usize,
    /// Its length with options and segments, bytes.
    pub bytes: usize,
    /// Its fields.
    pub fields: Vec<(&'static FieldSpec, u128)>,
}

impl Found {
    fn value(&self, name: &str) -> u128 {
        self.fields.iter().find(|(field, _)| field.name == name).map_or(0, |(_, value)| *value)
    }

    /// Bytes after its fixed part: options, segments.
    pub fn tail<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        let fixed = self.fields.iter().map(|(field, _)| (field.bit + field.bits).div_ceil(8)).max();
        let start = self.at + fixed.unwrap_or(0).max(self.spec.bytes);
        frame.get(start..self.at + self.bytes).unwrap_or(&[])
    }
}

/// The headers of an Ethernet frame, from the outside in, as far as they are known and whole.
pub fn decode(frame: &[u8]) -> Vec<Found> {
    let mut all: Vec<Found> = Vec::new();
    let mut next = Some(&header::ETHERNET);
    let mut at = 0;
    while let Some(spec) = next.filter(|_| all.len() < LAYERS_MAX) {
        let Some(found) = read(spec, frame, at) else { break };
        at += found.bytes;
        next = following(&found, frame.get(at..).unwrap_or(&[]));
        all.push(found);
    }
    all
}

fn read(spec: &'static HeaderSpec, frame: &[u8], at: usize) -> Option<Found> {
    let whole = frame.get(at..)?;
    whole.get(..spec.bytes)?;
    let get =
        |name: &str| spec.place(name).map_or(0, |place| bits(whole, &spec.fields[place])) as usize;
    let bytes = match spec.name {
        "ip4" => get("ihl") * 4,
        "tcp" => get("data_offset") * 4,
        "hop_by_hop" | "destination_options" | "srh" => (get("length") + 1) * 8,
        // Its checksum and sequence number (RFC 2784, RFC 2890) are no fields here.
        "gre" if whole.first().is_some_and(|flags| flags & 0b1001_0000 != 0) => return None,
        "gre" => spec.bytes + 4 * get("key_present"),
        _ => spec.bytes,
    };
    whole.get(..bytes).filter(|_| bytes >= spec.bytes)?;
    let is_there = |field: &&FieldSpec| (field.bit + field.bits).div_ceil(8) <= bytes;
    let fields =
        spec.fields.iter().filter(is_there).map(|field| (field, bits(whole, field))).collect();
    Some(Found { spec, at, bytes, fields })
}

/// A field's value; the first bit is the highest of the first byte.
fn bits(header: &[u8], field: &FieldSpec) -> u128 {
    (field.bit..field.bit + field.bits).fold(0, |value, bit| {
        let byte = header.get(bit / 8).copied().unwrap_or(0);
        value << 1 | u128::from(byte >> (7 - bit % 8) & 1)
    })
}

/// Which header follows this one; `rest` is what lies behind it.
fn following(found: &Found, rest: &[u8]) -> Option<&'static HeaderSpec> {
    let of_type = |value: u128| {
        let is_it = |spec: &&HeaderSpec| spec.ether_type.map(u128::from) == Some(value);
        header::all().find(is_it).filter(|_| value >= ETHER_TYPE_MIN)
    };
    let of_protocol = |value: u128| {
        header::all().find(|spec: &&HeaderSpec| spec.protocol.map(u128::from) == Some(value))
    };
    let is_later_fragment = found.value("fragment_offset") > 0 || found.value("offset") > 0;
    match found.spec.name {
        "ethernet" | "vlan" | "dot1ad" => of_type(found.value("type")),
        "gre" => of_type(found.value("protocol")),
        "ip4" | "ip6" | "hop_by_hop" | "destination_options" | "srh" | "fragment"
            if !is_later_fragment =>
        {
            let name = if found.spec.name == "ip4" { "protocol" } else { "next_header" };
            of_protocol(found.value(name))
        }
        "mpls" if found.value("bottom") == 0 => Some(found.spec),
        "mpls" => match rest.first().map(|byte| byte >> 4) {
            Some(4) => Some(&header::IP4),
            Some(6) => Some(&header::IP6),
            _ => None,
        },
        "udp" if found.value("dst_port") == VXLAN_PORT => Some(&header::VXLAN),
        "vxlan" => Some(&header::ETHERNET),
        _ => None,
    }
}

/// A field's value as people read it.
pub fn show(spec: &HeaderSpec, field: &FieldSpec, value: u128) -> String {
    let named = |found: Option<&'static HeaderSpec>| found.map_or("", |spec| spec.name);
    match (spec.name, field.name) {
        (_, "checksum") => format!("{value:#06x}"),
        ("ethernet" | "vlan" | "dot1ad", "type") | ("gre", "protocol") => {
            let found = header::all().find(|spec| spec.ether_type.map(u128::from) == Some(value));
            format!("{value:#06x} {}", named(found)).trim_end().to_owned()
        }
        ("ip4", "protocol") | (_, "next_header") => {
            let found = header::all().find(|spec| spec.protocol.map(u128::from) == Some(value));
            format!("{value} {}", named(found)).trim_end().to_owned()
        }
        _ => field.kind.show(value),
    }
}

/// Is a field worth a place where nothing is left to say of it but its value?
pub fn is_telling(field: &FieldSpec, value: u128) -> bool {
    match field.name {
        "version" | "ihl" | "data_offset" | "last_entry" | "key_present" => false,
        "hardware_type" | "protocol_type" | "hardware_length" | "protocol_length" => false,
        "checksum" | "id" | "label" | "vni" | "segments_left" | GRE_KEY | SEGMENTS => true,
        _ => value != 0 || !matches!(field.kind, Kind::Number),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn headers_are_found_through_tags_labels_and_tunnels() {
        // An 802.1ad tag, IPv4, UDP to VXLAN's port, VXLAN, Ethernet, IPv6 and nothing known.
        let mut frame = vec![0; 12];
        frame.extend([0x88, 0xa8, 0x60, 10, 8, 0]);
        frame.extend([0x45, 0, 0, 98, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([4, 0, 0x12, 0xb5, 0, 78, 0, 0]);
        frame.extend([8, 0, 0, 0, 0, 0, 42, 0]);
        frame.extend([0; 12]);
        frame.extend([0x86, 0xdd]);
        frame.extend([0x60, 0, 0, 0, 0, 8, 253, 64]);
        frame.extend([0; 40]);
        let found = decode(&frame);
        let names: Vec<&str> = found.iter().map(|found| found.spec.name).collect();
        assert_eq!(names, ["ethernet", "dot1ad", "ip4", "udp", "vxlan", "ethernet", "ip6"]);
        assert_eq!((found[1].value("id"), found[1].value("priority")), (10, 3));
        assert_eq!(found[4].value("vni"), 42);
        assert_eq!(found[6].at, 14 + 4 + 20 + 8 + 8 + 14);
    }

    #[test]
    fn values_are_shown_as_people_read_them() {
        let of = |spec: &'static HeaderSpec, name: &str, value| {
            show(spec, &spec.fields[spec.place(name).expect("a field")], value)
        };
        assert_eq!(of(&header::ETHERNET, "type", 0x800), "0x0800 ip4");
        assert_eq!(of(&header::ETHERNET, "type", 0x88b5), "0x88b5");
        assert_eq!(of(&header::IP4, "protocol", 17), "17 udp");
        assert_eq!(of(&header::IP4, "checksum", 0xab), "0x00ab");
        assert_eq!(of(&header::IP6, "src", 1), "::1");
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(
            mut frame in proptest::collection::vec(any::<u8>(), 0..200), kind in 0..6_usize
        ) {
            if frame.len() > 14 {
                let types = [0x0800_u16, 0x86dd, 0x8847, 0x8100, 0x0806, 0x6558];
                frame[12..14].copy_from_slice(&types[kind].to_be_bytes());
            }
            let found = decode(&frame);
            for one in &found {
                prop_assert!(one.at + one.bytes <= frame.len());
                let _ = one.tail(&frame);
            }
        }
    }
}
