//! Who was heard on an interface: each neighbour with what it says, until its time is over (IEEE
//! 802.1AB §9.2.7.7).

use quiver_wire::lldp::{Lldpdu, Tlv};

use crate::text;

/// Neighbours on one interface. More are not kept while so many are there (§9.2.7.7.5, too many
/// neighbours).
pub const NEIGHBOURS_PER_INTERFACE_MAX: usize = 32;
/// Management addresses kept of one neighbour.
pub const ADDRESSES_PER_NEIGHBOUR_MAX: usize = 8;
const SECOND_NS: u64 = 1_000_000_000;

/// What was counted on an interface (§9.2.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// LLDPDUs sent.
    pub frames_out: u64,
    /// LLDPDUs received.
    pub frames_in: u64,
    /// Those that were refused whole.
    pub frames_discarded: u64,
    /// TLVs that were wrong and passed over.
    pub tlvs_discarded: u64,
    /// TLVs that nobody here understands.
    pub tlvs_unrecognized: u64,
    /// Neighbours whose time was over.
    pub ageouts: u64,
    /// Neighbours that were not kept because there were too many.
    pub too_many_neighbours: u64,
}

/// Where a neighbour is managed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedAt {
    /// The address.
    pub address: String,
    /// The number of its interface.
    pub interface: u32,
    /// What is managed there, dotted.
    pub oid: Option<String>,
}

/// What a neighbour says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// How long it holds, seconds.
    pub ttl_s: u16,
    /// The port in words.
    pub port_description: Option<String>,
    /// The system's name.
    pub system_name: Option<String>,
    /// The system in words.
    pub system_description: Option<String>,
    /// What it can do, and does.
    pub capabilities: Option<(u16, u16)>,
    /// Where it is managed.
    pub addresses: Vec<ManagedAt>,
    /// The VLAN of untagged frames (IEEE 802.1Q annex D).
    pub port_vlan: Option<u16>,
}

/// A neighbour.
#[derive(Clone, Debug)]
pub struct Neighbour {
    chassis: (u8, Vec<u8>),
    port: (u8, Vec<u8>),
    /// What it says.
    pub said: Said,
    /// When it was heard last.
    pub heard_ns: u64,
    /// When it was heard first.
    pub since_ns: u64,
}

impl Neighbour {
    /// Its system's identifier, in words.
    pub fn chassis_id(&self) -> String {
        text::chassis_id(self.chassis.0, &self.chassis.1)
    }

    /// The kind of [`chassis_id`](Self::chassis_id), as the standard numbers it.
    pub fn chassis_subtype(&self) -> u8 {
        self.chassis.0
    }

    /// Its port's identifier, in words.
    pub fn port_id(&self) -> String {
        text::port_id(self.port.0, &self.port.1)
    }

    /// The kind of [`port_id`](Self::port_id), as the standard numbers it.
    pub fn port_subtype(&self) -> u8 {
        self.port.0
    }

    fn expires_ns(&self) -> u64 {
        self.heard_ns + u64::from(self.said.ttl_s) * SECOND_NS
    }

    /// Seconds until it is forgotten.
    pub fn left_s(&self, now_ns: u64) -> u64 {
        self.expires_ns().saturating_sub(now_ns).div_ceil(SECOND_NS)
    }
}

/// The neighbours of one interface.
#[derive(Debug, Default)]
pub struct Neighbours(Vec<Neighbour>);

impl Neighbours {
    /// All, in the order in which they came.
    pub fn iter(&self) -> impl Iterator<Item = &Neighbour> {
        self.0.iter()
    }

    /// Take in an LLDPDU; true when its sender was not known.
    pub fn hear(&mut self, bytes: &[u8], now_ns: u64, statistics: &mut Statistics) -> bool {
        statistics.frames_in += 1;
        let Ok(pdu) = Lldpdu::parse(bytes) else {
            statistics.frames_discarded += 1;
            return false;
        };
        let is_it = |known: &Neighbour| {
            (known.chassis.0, &known.chassis.1[..]) == (pdu.chassis.subtype, pdu.chassis.bytes)
                && (known.port.0, &known.port.1[..]) == (pdu.port.subtype, pdu.port.bytes)
        };
        let place = self.0.iter().position(is_it);
        if pdu.ttl_s == 0 {
            // It takes back what it said (§9.2.7.7.2, rxInfoTTL = 0).
            place.map(|place| self.0.remove(place));
            return false;
        }
        let said = read(&pdu, statistics);
        if let Some(known) = place.and_then(|place| self.0.get_mut(place)) {
            known.said = said;
            known.heard_ns = now_ns;
            return false;
        }
        if self.0.len() >= NEIGHBOURS_PER_INTERFACE_MAX {
            statistics.too_many_neighbours += 1;
            return false;
        }
        let owned = |id: quiver_wire::lldp::Id<'_>| (id.subtype, id.bytes.to_vec());
        let (chassis, port) = (owned(pdu.chassis), owned(pdu.port));
        self.0.push(Neighbour { chassis, port, said, heard_ns: now_ns, since_ns: now_ns });
        true
    }

    /// Forget whose time is over.
    pub fn age(&mut self, now_ns: u64, statistics: &mut Statistics) {
        let before = self.0.len();
        self.0.retain(|neighbour| now_ns < neighbour.expires_ns());
        statistics.ageouts += (before - self.0.len()) as u64;
    }

    /// The link is down: the next neighbour is a new one.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// Keep the first; a second TLV that may be there once is wrong.
fn once<T>(place: &mut Option<T>, value: T, statistics: &mut Statistics) {
    if place.is_some() {
        statistics.tlvs_discarded += 1;
    } else {
        *place = Some(value);
    }
}

fn read(pdu: &Lldpdu<'_>, statistics: &mut Statistics) -> Said {
    let mut said = Said { ttl_s: pdu.ttl_s, ..Said::default() };
    for tlv in pdu.tlvs() {
        match tlv {
            Err(_) => statistics.tlvs_discarded += 1,
            Ok(Tlv::PortDescription(text)) => {
                once(&mut said.port_description, text::text(text), statistics)
            }
            Ok(Tlv::SystemName(text)) => once(&mut said.system_name, text::text(text), statistics),
            Ok(Tlv::SystemDescription(text)) => {
                once(&mut said.system_description, text::text(text), statistics);
            }
            Ok(Tlv::Capabilities { system, enabled }) => {
                once(&mut said.capabilities, (system, enabled), statistics);
            }
            Ok(Tlv::ManagementAddress(at))
                if said.addresses.len() < ADDRESSES_PER_NEIGHBOUR_MAX =>
            {
                said.addresses.push(ManagedAt {
                    address: text::address(at.family, at.address),
                    interface: at.interface,
                    oid: (!at.oid.is_empty()).then(|| text::decode_oid(at.oid)),
                });
            }
            Ok(Tlv::ManagementAddress(_)) => statistics.tlvs_discarded += 1,
            Ok(Tlv::Organization { oui: [0, 0x80, 0xc2], subtype: 1, value: [high, low] }) => {
                once(&mut said.port_vlan, u16::from_be_bytes([*high, *low]), statistics);
            }
            Ok(Tlv::Organization { .. } | Tlv::Unknown(_)) => statistics.tlvs_unrecognized += 1,
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use quiver_wire::lldp::{Id, Writer, kind};

    use super::*;

    fn pdu(chassis: u8, ttl_s: u16, fill: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        let mut out = [0; 1500];
        let (chassis, port) =
            (Id { subtype: 7, bytes: &[b'c', chassis] }, Id { subtype: 5, bytes: b"e0" });
        let mut writer = Writer::begin(&mut out, chassis, port, ttl_s).unwrap();
        fill(&mut writer);
        let length = writer.finish().unwrap();
        out[..length].to_vec()
    }

    #[test]
    fn a_neighbour_is_kept_until_its_time_is_over() {
        let (mut neighbours, mut statistics) = (Neighbours::default(), Statistics::default());
        assert!(neighbours.hear(&pdu(1, 10, |_| {}), 0, &mut statistics));
        assert!(!neighbours.hear(&pdu(1, 10, |_| {}), 5 * SECOND_NS, &mut statistics));
        neighbours.age(14 * SECOND_NS, &mut statistics);
        assert_eq!((neighbours.0.len(), neighbours.0[0].left_s(14 * SECOND_NS)), (1, 1));
        neighbours.age(15 * SECOND_NS, &mut statistics);
        assert_eq!((neighbours.0.len(), statistics.ageouts), (0, 1));
    }

    #[test]
    fn a_neighbour_takes_back_what_it_said() {
        let (mut neighbours, mut statistics) = (Neighbours::default(), Statistics::default());
        neighbours.hear(&pdu(1, 10, |_| {}), 0, &mut statistics);
        neighbours.hear(&pdu(2, 10, |_| {}), 0, &mut statistics);
        neighbours.hear(&pdu(1, 0, |_| {}), 1, &mut statistics);
        assert_eq!((neighbours.0.len(), statistics.ageouts), (1, 0));
    }

    #[test]
    fn there_is_an_end_to_neighbours() {
        let (mut neighbours, mut statistics) = (Neighbours::default(), Statistics::default());
        for chassis in 0..40 {
            neighbours.hear(&pdu(chassis, 10, |_| {}), 0, &mut statistics);
        }
        assert_eq!(neighbours.0.len(), NEIGHBOURS_PER_INTERFACE_MAX);
        assert_eq!(statistics.too_many_neighbours, 8);
        assert!(!neighbours.hear(&pdu(3, 10, |_| {}), 1, &mut statistics), "who is known is heard");
        assert_eq!(statistics.too_many_neighbours, 8);
    }

    #[test]
    fn wrong_and_unknown_tlvs_are_counted_and_passed_over() {
        let (mut neighbours, mut statistics) = (Neighbours::default(), Statistics::default());
        let bytes = pdu(1, 10, |writer| {
            writer.put(kind::SYSTEM_NAME, &[b"first"]).unwrap();
            writer.put(kind::SYSTEM_NAME, &[b"second"]).unwrap();
            writer.put(kind::CAPABILITIES, &[&[1]]).unwrap();
            writer.put(kind::ORGANIZATION, &[&[0, 0x80, 0xc2, 1, 0, 5]]).unwrap();
            writer.put(kind::ORGANIZATION, &[&[1, 2, 3, 4]]).unwrap();
            writer.put(77, &[]).unwrap();
        });
        neighbours.hear(&bytes, 0, &mut statistics);
        assert_eq!((statistics.tlvs_discarded, statistics.tlvs_unrecognized), (2, 2));
        let said = &neighbours.0[0].said;
        assert_eq!((said.system_name.as_deref(), said.port_vlan), (Some("first"), Some(5)));
        neighbours.hear(&bytes[..bytes.len() - 3], 0, &mut statistics);
        assert_eq!((statistics.frames_in, statistics.frames_discarded), (2, 1));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..100), start in 0usize..3) {
            let (mut neighbours, mut statistics) = (Neighbours::default(), Statistics::default());
            let whole = [&pdu(1, 10, |_| {})[..start * 7], &bytes].concat();
            neighbours.hear(&whole, 0, &mut statistics);
            prop_assert_eq!(statistics.frames_in, 1);
        }
    }
}
