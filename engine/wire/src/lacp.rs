//! Slow protocols: LACP and the marker protocol (IEEE 802.1AX-2014 §6.4.2, §6.5.3; annex A of IEEE
//! 802.3).
//!
//! ```text
//! 0         1         2        4 ─────────── actor ───────────── 22       ── partner ──    42
//! +---------+---------+--------+----------+--------+-----+----------+------+-------+-----+--------
//! | subtype | version | 1 | 20 | priority | system | key | priority | port | state | 0×3 | 2 | 20…
//! +---------+---------+--------+----------+--------+-----+----------+------+-------+-----+--------
//! ```

use zerocopy::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::header::room;
use crate::{Header, MacAddress, WireError};

/// The group that slow protocols are sent to; no bridge passes it on.
pub const SLOW_GROUP: MacAddress = MacAddress([0x01, 0x80, 0xc2, 0, 0, 0x02]);
/// The subtype of LACP.
pub const SUBTYPE_LACP: u8 = 1;
/// The subtype of the marker protocol.
pub const SUBTYPE_MARKER: u8 = 2;
/// Bytes of an LACPDU or marker PDU, from the subtype on.
pub const PDU_BYTES: usize = 110;
/// The version that is sent. What a later version says is read as this one (§6.4.2.3 b).
const VERSION: u8 = 1;

const LACPDU: &str = "LACPDU";

/// A port's state, one bit each (§6.4.2.3 m).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortState(pub u8);

impl PortState {
    /// Speaks without being spoken to.
    pub const ACTIVE: PortState = PortState(1);
    /// Wants its partner to speak every second.
    pub const SHORT_TIMEOUT: PortState = PortState(2);
    /// May be one of several links.
    pub const AGGREGATION: PortState = PortState(4);
    /// Is in the right aggregation.
    pub const SYNCHRONIZATION: PortState = PortState(8);
    /// Takes frames in.
    pub const COLLECTING: PortState = PortState(16);
    /// Sends frames.
    pub const DISTRIBUTING: PortState = PortState(32);
    /// Nobody has answered: its partner is what was configured.
    pub const DEFAULTED: PortState = PortState(64);
    /// The partner has not spoken in time.
    pub const EXPIRED: PortState = PortState(128);

    /// Each bit and its name, lowest first.
    pub const NAMES: [(PortState, &'static str); 8] = [
        (PortState::ACTIVE, "activity"),
        (PortState::SHORT_TIMEOUT, "timeout"),
        (PortState::AGGREGATION, "aggregation"),
        (PortState::SYNCHRONIZATION, "synchronization"),
        (PortState::COLLECTING, "collecting"),
        (PortState::DISTRIBUTING, "distributing"),
        (PortState::DEFAULTED, "defaulted"),
        (PortState::EXPIRED, "expired"),
    ];

    /// Are all of `bits` set?
    #[inline]
    pub const fn has(self, bits: PortState) -> bool {
        self.0 & bits.0 == bits.0
    }

    /// These bits, with `bits` set or cleared.
    #[inline]
    #[must_use]
    pub const fn with(self, bits: PortState, on: bool) -> PortState {
        PortState(if on { self.0 | bits.0 } else { self.0 & !bits.0 })
    }

    /// Those of these bits that are in `bits`, too.
    #[inline]
    #[must_use]
    pub const fn and(self, bits: PortState) -> PortState {
        PortState(self.0 & bits.0)
    }

    /// Both.
    #[inline]
    #[must_use]
    pub const fn or(self, bits: PortState) -> PortState {
        PortState(self.0 | bits.0)
    }
}

/// What a PDU says of one end of a link, on packet bytes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct PortHeader {
    system_priority: U16,
    system: MacAddress,
    key: U16,
    port_priority: U16,
    port: U16,
    state: u8,
    reserved: [u8; 3],
}

/// One end of a link: a port of a system (§6.4.2.3 d to m).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortInfo {
    /// Lower values decide.
    pub system_priority: u16,
    /// The system's address.
    pub system: MacAddress,
    /// Ports of one system with one key can be links of one aggregation.
    pub key: u16,
    /// Lower values are preferred.
    pub port_priority: u16,
    /// The port's number in its system.
    pub port: u16,
    /// What it is doing.
    pub state: PortState,
}

impl PortHeader {
    fn read(&self) -> PortInfo {
        PortInfo {
            system_priority: self.system_priority.get(),
            system: self.system,
            key: self.key.get(),
            port_priority: self.port_priority.get(),
            port: self.port.get(),
            state: PortState(self.state),
        }
    }

    fn of(info: &PortInfo) -> PortHeader {
        PortHeader {
            system_priority: U16::new(info.system_priority),
            system: info.system,
            key: U16::new(info.key),
            port_priority: U16::new(info.port_priority),
            port: U16::new(info.port),
            state: info.state.0,
            reserved: [0; 3],
        }
    }
}

/// An LACPDU on packet bytes, from the subtype on.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct LacpHeader {
    subtype: u8,
    version: u8,
    actor_type: u8,
    actor_length: u8,
    actor: PortHeader,
    partner_type: u8,
    partner_length: u8,
    partner: PortHeader,
    collector_type: u8,
    collector_length: u8,
    max_delay: U16,
    reserved: [u8; 12],
    terminator: [u8; 2],
    padding: [u8; 50],
}

impl Header for LacpHeader {
    const NAME: &'static str = LACPDU;
}

const _: () = assert!(size_of::<LacpHeader>() == PDU_BYTES);

/// An LACPDU in plain values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lacpdu {
    /// The sender's end.
    pub actor: PortInfo,
    /// What the sender believes of the other end.
    pub partner: PortInfo,
    /// The longest time from taking a frame in to handing it on, in tens of microseconds.
    pub max_delay: u16,
}

impl Lacpdu {
    /// Reads a PDU, from the subtype on. Versions and what is reserved are not looked at, nor is
    /// what stands behind the partner (§6.4.2.3 b, i, t).
    ///
    /// # Errors
    /// The PDU is truncated, or its subtype, version or first two TLVs are not those of a LACPDU.
    pub fn parse(bytes: &[u8]) -> Result<Lacpdu, WireError> {
        let invalid = |reason| Err(WireError::Invalid { header: LACPDU, reason });
        let (header, _) = LacpHeader::require(bytes)?;
        if header.subtype != SUBTYPE_LACP {
            return invalid("the subtype is not 1");
        }
        if header.version == 0 {
            return invalid("version 0 does not exist");
        }
        if (header.actor_type, header.actor_length) != (1, 20) {
            return invalid("the first TLV is not an actor of 20 bytes");
        }
        if (header.partner_type, header.partner_length) != (2, 20) {
            return invalid("the second TLV is not a partner of 20 bytes");
        }
        Ok(Lacpdu {
            actor: header.actor.read(),
            partner: header.partner.read(),
            max_delay: header.max_delay.get(),
        })
    }

    /// Writes the PDU and returns its length.
    ///
    /// # Errors
    /// `out` is too short.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, WireError> {
        LacpHeader {
            subtype: SUBTYPE_LACP,
            version: VERSION,
            actor_type: 1,
            actor_length: 20,
            actor: PortHeader::of(&self.actor),
            partner_type: 2,
            partner_length: 20,
            partner: PortHeader::of(&self.partner),
            collector_type: 3,
            collector_length: 16,
            max_delay: U16::new(self.max_delay),
            reserved: [0; 12],
            terminator: [0; 2],
            padding: [0; 50],
        }
        .write(out)
    }
}

/// A marker PDU on packet bytes, from the subtype on: a question whether all frames sent before it
/// have arrived, or the answer (§6.5.3.2).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct MarkerHeader {
    subtype: u8,
    version: u8,
    kind: u8,
    length: u8,
    port: U16,
    system: MacAddress,
    transaction: U32,
}

impl Header for MarkerHeader {
    const NAME: &'static str = "marker";
}

impl MarkerHeader {
    /// Is it a question, well formed?
    #[inline]
    pub fn is_question(&self) -> bool {
        (self.subtype, self.kind, self.length) == (SUBTYPE_MARKER, 1, 16)
    }

    /// Is it an answer, well formed?
    #[inline]
    pub fn is_answer(&self) -> bool {
        (self.subtype, self.kind, self.length) == (SUBTYPE_MARKER, 2, 16)
    }

    /// Makes the answer of a question: all else stays (§6.5.4.2.1).
    #[inline]
    pub fn make_answer(&mut self) {
        self.kind = 2;
    }
}

/// Writes a marker PDU that asks, and returns its length.
///
/// # Errors
/// `out` is too short.
pub fn emit_marker(
    port: u16,
    system: MacAddress,
    transaction: u32,
    out: &mut [u8],
) -> Result<usize, WireError> {
    let out = room(out, PDU_BYTES)?;
    out.fill(0);
    let header = MarkerHeader {
        subtype: SUBTYPE_MARKER,
        version: VERSION,
        kind: 1,
        length: 16,
        port: U16::new(port),
        system,
        transaction: U32::new(transaction),
    };
    header.write(out)?;
    Ok(PDU_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn info() -> impl Strategy<Value = PortInfo> {
        any::<(u16, [u8; 6], u16, u16, u16, u8)>().prop_map(|(a, mac, b, c, d, state)| PortInfo {
            system_priority: a,
            system: MacAddress(mac),
            key: b,
            port_priority: c,
            port: d,
            state: PortState(state),
        })
    }

    #[test]
    fn the_fields_stand_where_the_figure_has_them() {
        let mut bytes = [0; PDU_BYTES];
        let actor = PortInfo {
            system_priority: 0x8000,
            system: MacAddress([1, 2, 3, 4, 5, 6]),
            key: 0x1112,
            port_priority: 0x2122,
            port: 0x3132,
            state: PortState(0x3d),
        };
        Lacpdu { actor, partner: PortInfo::default(), max_delay: 7 }.emit(&mut bytes).unwrap();
        let start = [
            1, 1, 1, 20, 0x80, 0, 1, 2, 3, 4, 5, 6, 0x11, 0x12, 0x21, 0x22, 0x31, 0x32, 0x3d, 0, 0,
            0,
        ];
        assert_eq!(bytes[..22], start);
        assert_eq!((bytes[22], bytes[23], bytes[42], bytes[43], bytes[45]), (2, 20, 3, 16, 7));
    }

    #[test]
    fn a_later_version_is_read_and_none_is_not() {
        let mut bytes = [0; PDU_BYTES];
        Lacpdu::default().emit(&mut bytes).unwrap();
        bytes[1] = 2;
        assert_eq!(Lacpdu::parse(&bytes), Ok(Lacpdu::default()));
        bytes[1] = 0;
        assert!(Lacpdu::parse(&bytes).is_err());
    }

    #[test]
    fn a_tlv_of_another_kind_or_length_is_refused() {
        for (at, value) in [(0, 2), (2, 2), (3, 19), (22, 1), (23, 21)] {
            let mut bytes = [0; PDU_BYTES];
            Lacpdu::default().emit(&mut bytes).unwrap();
            bytes[at] = value;
            assert!(matches!(Lacpdu::parse(&bytes), Err(WireError::Invalid { .. })), "byte {at}");
        }
    }

    #[test]
    fn a_marker_is_answered_in_place() {
        let mut bytes = [0; PDU_BYTES];
        emit_marker(3, MacAddress([2; 6]), 99, &mut bytes).unwrap();
        let before = bytes;
        let marker = MarkerHeader::overlay_mut(&mut bytes).unwrap();
        assert!(marker.is_question() && !marker.is_answer());
        marker.make_answer();
        assert!(marker.is_answer());
        assert_eq!((bytes[2], &bytes[3..]), (2, &before[3..]));
    }

    proptest! {
        #[test]
        fn parse_and_emit_are_inverse(actor in info(), partner in info(), max_delay: u16) {
            let pdu = Lacpdu { actor, partner, max_delay };
            let mut bytes = [0xff; PDU_BYTES + 4];
            prop_assert_eq!(pdu.emit(&mut bytes), Ok(PDU_BYTES));
            prop_assert_eq!(Lacpdu::parse(&bytes), Ok(pdu));
            prop_assert!(pdu.emit(&mut bytes[..PDU_BYTES - 1]).is_err());
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..130)) {
            let _ = Lacpdu::parse(&bytes);
            let _ = MarkerHeader::overlay(&bytes)
                .map(|marker| (marker.is_question(), marker.is_answer()));
        }

        #[test]
        fn cut_anywhere_it_is_truncated(cut in 0usize..PDU_BYTES) {
            let mut bytes = [0; PDU_BYTES];
            Lacpdu::default().emit(&mut bytes).unwrap();
            let is_truncated =
                matches!(Lacpdu::parse(&bytes[..cut]), Err(WireError::Truncated { .. }));
            prop_assert!(is_truncated);
        }
    }
}
