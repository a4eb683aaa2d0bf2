//! LLDP, the link layer discovery protocol (IEEE 802.1AB-2009 clause 8).
//!
//! ```text
//! 0      7 bits      2
//! +------+---------+--------------------+     TLV 1 chassis, 2 port, 3 time to live, in this
//! order,
//! | type | length  | length bytes …     |  …  then others, then 0: end
//! +------+---------+--------------------+
//! ```

use crate::header::room;
use crate::{MacAddress, WireError};

/// The group that is sent to: the nearest bridge; no bridge passes it on (§7.1).
pub const NEAREST_BRIDGE: MacAddress = MacAddress([0x01, 0x80, 0xc2, 0, 0, 0x0e]);
/// Bytes of an LLDPDU at most: it must fit in an untagged frame.
pub const LLDPDU_BYTES_MAX: usize = 1500;
/// Bytes of a chassis or port identifier at most (§8.5.2.3, §8.5.3.3).
pub const ID_BYTES_MAX: usize = 255;
/// Bytes of a name or description at most (§8.5.5 to §8.5.7).
pub const TEXT_BYTES_MAX: usize = 255;

const LLDPDU: &str = "LLDPDU";

/// Types of TLVs (table 8-1).
pub mod kind {
    /// The end of the LLDPDU.
    pub const END: u8 = 0;
    /// Who: a system.
    pub const CHASSIS_ID: u8 = 1;
    /// Who: its port.
    pub const PORT_ID: u8 = 2;
    /// How long it holds, seconds.
    pub const TTL: u8 = 3;
    /// The port in words.
    pub const PORT_DESCRIPTION: u8 = 4;
    /// The system's name.
    pub const SYSTEM_NAME: u8 = 5;
    /// The system in words.
    pub const SYSTEM_DESCRIPTION: u8 = 6;
    /// What it can do.
    pub const CAPABILITIES: u8 = 7;
    /// Where it is managed.
    pub const MANAGEMENT_ADDRESS: u8 = 8;
    /// Something of an organization's own.
    pub const ORGANIZATION: u8 = 127;
}

/// Subtypes of chassis identifiers (table 8-2).
pub mod chassis {
    /// A MAC address.
    pub const MAC: u8 = 4;
    /// A network address, its family first.
    pub const NETWORK_ADDRESS: u8 = 5;
}

/// Subtypes of port identifiers (table 8-3).
pub mod port {
    /// A MAC address.
    pub const MAC: u8 = 3;
    /// A network address, its family first.
    pub const NETWORK_ADDRESS: u8 = 4;
    /// An interface's name.
    pub const INTERFACE_NAME: u8 = 5;
}

/// Bits of what a system can do (table 8-4).
pub mod capability {
    /// Bridges.
    pub const BRIDGE: u16 = 1 << 2;
    /// Routes.
    pub const ROUTER: u16 = 1 << 4;
    /// Each bit's name, lowest first.
    pub const NAMES: [&str; 11] = [
        "other",
        "repeater",
        "bridge",
        "wlan-access-point",
        "router",
        "telephone",
        "docsis-cable-device",
        "station",
        "c-vlan",
        "s-vlan",
        "two-port-mac-relay",
    ];
}

/// A chassis or port identifier: what kind it is, and its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Id<'a> {
    /// See [`chassis`] and [`port`].
    pub subtype: u8,
    /// 1 to [`ID_BYTES_MAX`] bytes.
    pub bytes: &'a [u8],
}

/// A TLV that may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tlv<'a> {
    /// The port in words.
    PortDescription(&'a [u8]),
    /// The system's name.
    SystemName(&'a [u8]),
    /// The system in words.
    SystemDescription(&'a [u8]),
    /// What it can do, and what of it is switched on.
    Capabilities {
        /// Can.
        system: u16,
        /// Does.
        enabled: u16,
    },
    /// Where it is managed.
    ManagementAddress(ManagementAddress<'a>),
    /// Something of an organization's own.
    Organization {
        /// Whose.
        oui: [u8; 3],
        /// Which.
        subtype: u8,
        /// The rest.
        value: &'a [u8],
    },
    /// A type that the standard reserves.
    Unknown(u8),
}

/// Where a system is managed (§8.5.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManagementAddress<'a> {
    /// The family: 1 IPv4, 2 IPv6, 6 MAC (RFC 3232's list).
    pub family: u8,
    /// 1 to 31 bytes.
    pub address: &'a [u8],
    /// How the interface is numbered: 1 unknown, 2 ifIndex, 3 system port.
    pub interface_subtype: u8,
    /// The interface's number.
    pub interface: u32,
    /// An object identifier, up to 128 bytes.
    pub oid: &'a [u8],
}

/// An LLDPDU whose frame holds all of it and which begins with the three that must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lldpdu<'a> {
    /// Which system.
    pub chassis: Id<'a>,
    /// Which of its ports.
    pub port: Id<'a>,
    /// How long this holds, seconds; 0 takes back what was said.
    pub ttl_s: u16,
    rest: &'a [u8],
}

const fn invalid<T>(reason: &'static str) -> Result<T, WireError> {
    Err(WireError::Invalid { header: LLDPDU, reason })
}

/// A TLV's type, its value, and what follows it.
type Split<'a> = (u8, &'a [u8], &'a [u8]);

/// The first TLV and what follows it; nothing at the end.
fn split(bytes: &[u8]) -> Result<Option<Split<'_>>, WireError> {
    let truncated = |need| WireError::Truncated { header: LLDPDU, need, have: bytes.len() };
    let Some(&[high, low]) = bytes.first_chunk() else {
        return if bytes.is_empty() { Ok(None) } else { Err(truncated(2)) };
    };
    let length = usize::from(high & 1) << 8 | usize::from(low);
    let value = bytes.get(2..2 + length).ok_or(truncated(2 + length))?;
    if high >> 1 == kind::END {
        return if length == 0 { Ok(None) } else { invalid("the end has a length") };
    }
    Ok(Some((high >> 1, value, bytes.get(2 + length..).unwrap_or_default())))
}

/// The first TLV, which must be of this type, and what follows it.
fn expect<'a>(
    bytes: &'a [u8],
    wanted: u8,
    reason: &'static str,
) -> Result<(&'a [u8], &'a [u8]), WireError> {
    match split(bytes)? {
        Some((kind, value, rest)) if kind == wanted => Ok((value, rest)),
        _ => invalid(reason),
    }
}

fn id(value: &[u8]) -> Result<Id<'_>, WireError> {
    match value {
        [subtype, bytes @ ..] if (1..=ID_BYTES_MAX).contains(&bytes.len()) => {
            Ok(Id { subtype: *subtype, bytes })
        }
        _ => invalid("an identifier has not 1 to 255 bytes"),
    }
}

impl<'a> Lldpdu<'a> {
    /// Reads an LLDPDU (§9.2.7.7.1): its first three TLVs must be right, and every TLV must lie
    /// inside.
    ///
    /// # Errors
    /// One of the first three TLVs is missing or malformed, or a TLV ends beyond the PDU.
    pub fn parse(bytes: &'a [u8]) -> Result<Lldpdu<'a>, WireError> {
        let (chassis, rest) =
            expect(bytes, kind::CHASSIS_ID, "the first TLV is no chassis identifier")?;
        let (port, rest) = expect(rest, kind::PORT_ID, "the second TLV is no port identifier")?;
        let (ttl, rest) = expect(rest, kind::TTL, "the third TLV is no time to live")?;
        let Some(ttl) = ttl.first_chunk() else {
            return invalid("the time to live has no two bytes");
        };
        let mut behind = rest;
        while let Some((kind, _, next)) = split(behind)? {
            if matches!(kind, kind::CHASSIS_ID..=kind::TTL) {
                return invalid("one of the first three TLVs is there twice");
            }
            behind = next;
        }
        let (chassis, port) = (id(chassis)?, id(port)?);
        Ok(Lldpdu { chassis, port, ttl_s: u16::from_be_bytes(*ttl), rest })
    }

    /// The other TLVs, in order; an error is one that must be passed over.
    pub fn tlvs(&self) -> impl Iterator<Item = Result<Tlv<'a>, WireError>> + use<'a> {
        let mut rest = self.rest;
        core::iter::from_fn(move || {
            let (kind, value, next) = split(rest).ok()??;
            rest = next;
            Some(tlv(kind, value))
        })
    }
}

fn tlv(kind: u8, value: &[u8]) -> Result<Tlv<'_>, WireError> {
    let text = || {
        if value.len() <= TEXT_BYTES_MAX {
            Ok(value)
        } else {
            invalid("a text of more than 255 bytes")
        }
    };
    Ok(match kind {
        kind::PORT_DESCRIPTION => Tlv::PortDescription(text()?),
        kind::SYSTEM_NAME => Tlv::SystemName(text()?),
        kind::SYSTEM_DESCRIPTION => Tlv::SystemDescription(text()?),
        kind::CAPABILITIES => match value {
            [a, b, c, d, ..] => Tlv::Capabilities {
                system: u16::from_be_bytes([*a, *b]),
                enabled: u16::from_be_bytes([*c, *d]),
            },
            _ => return invalid("capabilities of fewer than four bytes"),
        },
        kind::MANAGEMENT_ADDRESS => match management(value) {
            Some(address) => Tlv::ManagementAddress(address),
            None => return invalid("a management address whose lengths contradict each other"),
        },
        kind::ORGANIZATION => match value {
            [a, b, c, subtype, value @ ..] => {
                Tlv::Organization { oui: [*a, *b, *c], subtype: *subtype, value }
            }
            _ => return invalid("an organization's TLV of fewer than four bytes"),
        },
        other => Tlv::Unknown(other),
    })
}

fn management(value: &[u8]) -> Option<ManagementAddress<'_>> {
    let (&length, rest) = value.split_first()?;
    let length = usize::from(length);
    let (&family, address) =
        rest.get(..length).filter(|_| (2..=32).contains(&length))?.split_first()?;
    let [interface_subtype, a, b, c, d, oid_length, oid @ ..] = rest.get(length..)? else {
        return None;
    };
    let oid = oid.get(..usize::from(*oid_length)).filter(|oid| oid.len() <= 128)?;
    let (interface_subtype, interface) = (*interface_subtype, u32::from_be_bytes([*a, *b, *c, *d]));
    Some(ManagementAddress { family, address, interface_subtype, interface, oid })
}

/// Writes an LLDPDU, TLV by TLV.
pub struct Writer<'a> {
    out: &'a mut [u8],
    length: usize,
}

impl<'a> Writer<'a> {
    /// Begins with the three that must be there.
    ///
    /// # Errors
    /// `out` is too short, or an identifier is longer than a TLV can be.
    pub fn begin(
        out: &'a mut [u8],
        chassis: Id<'_>,
        port: Id<'_>,
        ttl_s: u16,
    ) -> Result<Writer<'a>, WireError> {
        let mut writer = Writer { out, length: 0 };
        writer.put(kind::CHASSIS_ID, &[&[chassis.subtype], chassis.bytes])?;
        writer.put(kind::PORT_ID, &[&[port.subtype], port.bytes])?;
        writer.put(kind::TTL, &[&ttl_s.to_be_bytes()])?;
        Ok(writer)
    }

    /// Writes a TLV of these pieces.
    ///
    /// # Errors
    /// The buffer is full, or the value is longer than a TLV can be.
    pub fn put(&mut self, kind: u8, pieces: &[&[u8]]) -> Result<(), WireError> {
        let length: usize = pieces.iter().map(|piece| piece.len()).sum();
        if length > 511 {
            return invalid("a TLV of more than 511 bytes");
        }
        let out = room(self.out.get_mut(self.length..).unwrap_or_default(), 2 + length)?;
        let (header, mut value) = out.split_at_mut(2);
        header.copy_from_slice(&(u16::from(kind) << 9 | length as u16).to_be_bytes());
        for piece in pieces {
            let (place, rest) = value.split_at_mut(piece.len());
            place.copy_from_slice(piece);
            value = rest;
        }
        self.length += 2 + length;
        Ok(())
    }

    /// Writes what the system can do and does.
    ///
    /// # Errors
    /// The buffer is full.
    pub fn capabilities(&mut self, system: u16, enabled: u16) -> Result<(), WireError> {
        self.put(kind::CAPABILITIES, &[&system.to_be_bytes(), &enabled.to_be_bytes()])
    }

    /// Writes where the system is managed.
    ///
    /// # Errors
    /// The buffer is full.
    pub fn management(&mut self, at: ManagementAddress<'_>) -> Result<(), WireError> {
        if !(1..=31).contains(&at.address.len()) || at.oid.len() > 128 {
            return invalid(
                "a management address of more than 31 bytes, or an OID of more than 128",
            );
        }
        let (length, oid_length) = (at.address.len() as u8 + 1, at.oid.len() as u8);
        let number = at.interface.to_be_bytes();
        let (family, subtype) = (at.family, at.interface_subtype);
        let pieces: [&[u8]; 6] =
            [&[length, family], at.address, &[subtype], &number, &[oid_length], at.oid];
        self.put(kind::MANAGEMENT_ADDRESS, &pieces)
    }

    /// Writes the end, and returns the length of all.
    ///
    /// # Errors
    /// The buffer is full.
    pub fn finish(mut self) -> Result<usize, WireError> {
        self.put(kind::END, &[])?;
        Ok(self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    const CHASSIS: Id<'static> = Id { subtype: chassis::MAC, bytes: &[2, 0, 0, 0, 0, 1] };
    const PORT: Id<'static> = Id { subtype: port::INTERFACE_NAME, bytes: b"e0" };

    fn written(fill: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        let mut out = [0; LLDPDU_BYTES_MAX];
        let mut writer = Writer::begin(&mut out, CHASSIS, PORT, 121).unwrap();
        fill(&mut writer);
        let length = writer.finish().unwrap();
        out[..length].to_vec()
    }

    #[test]
    fn the_three_that_must_be_there_come_first() {
        let bytes = written(|_| {});
        let expected = [2, 7, 4, 2, 0, 0, 0, 0, 1, 4, 3, 5, b'e', b'0', 6, 2, 0, 121, 0, 0];
        assert_eq!(bytes, expected);
        let pdu = Lldpdu::parse(&bytes).unwrap();
        assert_eq!((pdu.chassis, pdu.port, pdu.ttl_s, pdu.tlvs().count()), (CHASSIS, PORT, 121, 0));
    }

    #[test]
    fn what_is_written_is_read() {
        let address = ManagementAddress {
            family: 1,
            address: &[192, 0, 2, 1],
            interface_subtype: 2,
            interface: 7,
            oid: &[0x2b, 6, 1],
        };
        let bytes = written(|writer| {
            writer.put(kind::PORT_DESCRIPTION, &[b"to the ", b"roof"]).unwrap();
            writer.put(kind::SYSTEM_NAME, &[b"one"]).unwrap();
            writer.put(kind::SYSTEM_DESCRIPTION, &[b"a router"]).unwrap();
            writer.capabilities(0x14, 0x10).unwrap();
            writer.management(address).unwrap();
            writer.put(kind::ORGANIZATION, &[&[0, 0x80, 0xc2], &[1], &[0, 5]]).unwrap();
            writer.put(99, &[b"?"]).unwrap();
        });
        let tlvs: Vec<_> = Lldpdu::parse(&bytes).unwrap().tlvs().map(Result::unwrap).collect();
        let expected = [
            Tlv::PortDescription(b"to the roof"),
            Tlv::SystemName(b"one"),
            Tlv::SystemDescription(b"a router"),
            Tlv::Capabilities { system: 0x14, enabled: 0x10 },
            Tlv::ManagementAddress(address),
            Tlv::Organization { oui: [0, 0x80, 0xc2], subtype: 1, value: &[0, 5] },
            Tlv::Unknown(99),
        ];
        assert_eq!(tlvs, expected);
    }

    #[test]
    fn an_lldpdu_without_an_end_ends_with_its_frame() {
        let bytes = written(|writer| writer.put(kind::SYSTEM_NAME, &[b"x"]).unwrap());
        let pdu = Lldpdu::parse(&bytes[..bytes.len() - 2]).unwrap();
        assert_eq!(pdu.tlvs().count(), 1);
    }

    #[test]
    fn what_contradicts_the_standard_is_refused() {
        let good = written(|_| {});
        let patched = |at: usize, value: u8| {
            let mut bytes = good.clone();
            bytes[at] = value;
            bytes
        };
        // The order, an empty identifier, a short time to live, an end with a length.
        for bytes in [
            patched(0, 4),
            patched(9, 6),
            patched(1, 1),
            patched(14, 8),
            patched(15, 1),
            patched(19, 1),
        ] {
            assert!(Lldpdu::parse(&bytes).is_err(), "{bytes:?}");
        }
        let twice = written(|writer| writer.put(kind::TTL, &[&[0, 1]]).unwrap());
        assert!(Lldpdu::parse(&twice).is_err());
        let long = written(|writer| writer.put(kind::SYSTEM_NAME, &[&[b'x'; 256]]).unwrap());
        assert!(Lldpdu::parse(&long).unwrap().tlvs().all(|tlv| tlv.is_err()));
    }

    #[test]
    fn a_management_address_with_contradicting_lengths_is_passed_over() {
        for value in [
            &[][..],
            &[5],
            &[1, 1, 2, 0, 0, 0, 1, 0],
            &[5, 1, 9, 9, 9, 9, 2, 0, 0, 0, 1, 4, 1],
            &[33; 60],
        ] {
            let bytes = written(|writer| {
                writer.put(kind::MANAGEMENT_ADDRESS, &[value]).unwrap();
                writer.put(kind::SYSTEM_NAME, &[b"behind"]).unwrap();
            });
            let tlvs: Vec<_> = Lldpdu::parse(&bytes).unwrap().tlvs().collect();
            assert!(tlvs[0].is_err() && tlvs[1] == Ok(Tlv::SystemName(b"behind")), "{value:?}");
        }
    }

    #[test]
    fn there_is_an_end_to_what_can_be_written() {
        let mut out = [0; 30];
        let mut writer = Writer::begin(&mut out, CHASSIS, PORT, 1).unwrap();
        assert!(writer.put(kind::SYSTEM_NAME, &[&[0; 512]]).is_err());
        assert!(matches!(
            writer.put(kind::SYSTEM_NAME, &[&[0; 20]]),
            Err(WireError::NoRoom { .. })
        ));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(pdu) = Lldpdu::parse(&bytes) {
                prop_assert!(pdu.tlvs().count() <= bytes.len() / 2);
            }
        }

        #[test]
        fn no_change_of_a_good_one_panics(at in 0usize..120, value: u8, cut in 0usize..140) {
            let mut bytes = written(|writer| {
                writer.put(kind::SYSTEM_DESCRIPTION, &[&[b'd'; 60]]).unwrap();
                writer.capabilities(0xffff, 0).unwrap();
                writer
                    .put(kind::MANAGEMENT_ADDRESS, &[&[5, 1, 1, 2, 3, 4, 2, 0, 0, 0, 1, 0]])
                    .unwrap();
            });
            let length = bytes.len();
            bytes[at % length] = value;
            bytes.truncate(cut);
            if let Ok(pdu) = Lldpdu::parse(&bytes) {
                let _ = pdu.tlvs().count();
            }
        }

        #[test]
        fn any_tlvs_written_are_read(
            values in prop::collection::vec(
                (9u8..127, prop::collection::vec(any::<u8>(), 0..40)), 0..20
            )
        ) {
            let bytes = written(|writer| for (kind, value) in &values {
                writer.put(*kind, &[value]).unwrap();
            });
            let tlvs: Vec<_> = Lldpdu::parse(&bytes).unwrap().tlvs().map(Result::unwrap).collect();
            let kinds: Vec<_> = values.iter().map(|(kind, _)| Tlv::Unknown(*kind)).collect();
            prop_assert_eq!(tlvs, kinds);
        }
    }
}
