//! ERSPAN (draft-foschiano-erspan-03): copies of frames that a mirror sends to the interface of a
//! tunnel, each with the number of the session, a sequence number (RFC 2890 §2.2) and its VLAN.

use std::sync::atomic::{AtomicU32, Ordering};

use quiver_control::{Args, Refusal};
use quiver_core::graph::counters::INTERFACES_MAX;
use quiver_encap::tunnel::{Sent, TunnelDrop};
use quiver_wire::erspan::{self, ErspanHeader, Kind, Repr, TAG_IN_FRAME};
use quiver_wire::gre::{self, GreHeader};
use quiver_wire::{EtherType, Header};

/// Bytes of GRE with a sequence number, in front of the header of ERSPAN.
const GRE_BYTES: usize = 8;
const SEQUENCE_OFFSET: usize = 4;
/// In the header of type III.
const TIMESTAMP_OFFSET: usize = 4;
/// The unit of the time stamp: granularity 0 (draft §4.3).
const TIMESTAMP_UNIT_NS: u64 = 100_000;
const II_BYTES: usize = 8;
const III_BYTES: usize = 12;
const ETHERTYPE_OFFSET: usize = 12;

/// The version that a header has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Type II, version 1.
    II,
    /// Type III, version 2.
    III,
}

/// The mirror session of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// Its number, 10 bits.
    pub id: u16,
    /// What is sent; both are received.
    pub version: Version,
}

/// The next sequence number of each interface. Frames of one session leave side by side on several
/// workers, and their numbers must differ.
pub struct Sequences(Box<[AtomicU32]>);

impl Default for Sequences {
    fn default() -> Sequences {
        Sequences((0..INTERFACES_MAX).map(|_| AtomicU32::new(0)).collect())
    }
}

impl Session {
    /// That of a command.
    ///
    /// # Errors
    /// There is a type without a session.
    pub(crate) fn described(args: &Args<'_>) -> Result<Option<Session>, Refusal> {
        let version = if args.has("type-iii") { Version::III } else { Version::II };
        match args.optional("erspan")? {
            Some(id) => Ok(Some(Session { id, version })),
            None if version == Version::III => {
                Err(Refusal::new("type-iii is a type of ERSPAN").remedy("give erspan N type-iii"))
            }
            None => Ok(None),
        }
    }

    /// Its words in that command.
    pub(crate) fn words(self) -> Vec<String> {
        let mut words = vec![format!("erspan {}", self.id)];
        words.extend((self.version == Version::III).then(|| "type-iii".to_owned()));
        words
    }

    /// Its type, in `show`.
    pub(crate) fn type_word(self) -> &'static str {
        match self.version {
            Version::II => "erspan-ii",
            Version::III => "erspan-iii",
        }
    }

    /// The header of its frames, GRE's and its own, as [`finish`] completes it.
    pub(crate) fn header(self) -> Vec<u8> {
        let (protocol, kind) = match self.version {
            Version::II => (erspan::ETHERTYPE_II, Kind::II { encapsulation: 0, index: 0 }),
            Version::III => {
                let kind = Kind::III {
                    integrity: 0,
                    timestamp: 0,
                    security_group: 0,
                    is_frame: true,
                    frame_type: 0,
                    hardware: 0,
                    is_egress: false,
                    granularity: 0,
                    subheader: None,
                };
                (erspan::ETHERTYPE_III, kind)
            }
        };
        let gre = gre::Repr { protocol, has_checksum: false, key: None, sequence: Some(0) };
        let own = Repr { vlan: 0, class: 0, is_truncated: false, session: self.id, kind };
        let mut bytes = vec![0; GRE_BYTES + own.header_len()];
        let (front, rest) = bytes.split_at_mut(GRE_BYTES);
        let written = gre.emit(front).and(own.emit(rest));
        debug_assert!(written.is_ok(), "room for both headers");
        bytes
    }
}

/// Does a GRE header announce ERSPAN?
#[inline(always)]
pub(crate) fn is_header(header: &[u8]) -> bool {
    GreHeader::overlay(header).is_some_and(|header| version(header.protocol()).is_some())
}

/// The version that an EtherType announces.
#[inline(always)]
pub(crate) fn version(protocol: EtherType) -> Option<Version> {
    match protocol {
        erspan::ETHERTYPE_II => Some(Version::II),
        erspan::ETHERTYPE_III => Some(Version::III),
        _ => None,
    }
}

/// The session of a header, and its length.
///
/// # Errors
/// It is truncated, or of another version than GRE announces.
pub(crate) fn parse(version: Version, bytes: &[u8]) -> Result<(u32, usize), TunnelDrop> {
    let (repr, _) = Repr::parse(bytes).map_err(|error| match error {
        quiver_wire::WireError::Truncated { .. } => TunnelDrop::Truncated,
        _ => TunnelDrop::Version,
    })?;
    let length = match (version, repr.kind) {
        (Version::II, Kind::II { .. }) => II_BYTES,
        (Version::III, Kind::III { is_frame, frame_type, .. }) => {
            // Without the P bit it is what the port received, and no Ethernet frame (draft §4.3).
            if !is_frame && frame_type != 0 {
                return Err(TunnelDrop::Payload);
            }
            repr.header_len()
        }
        _ => return Err(TunnelDrop::Version),
    };
    Ok((repr.session.into(), length))
}

/// The tag control information of a frame, where it has a tag.
#[inline(always)]
fn tag(frame: &[u8]) -> Option<u16> {
    let field = frame.get(ETHERTYPE_OFFSET..)?.first_chunk::<4>()?;
    let kind = EtherType(u16::from_be_bytes([field[0], field[1]]));
    let is_tag = (kind == EtherType::VLAN) | (kind == EtherType::SERVICE_VLAN);
    is_tag.then(|| u16::from_be_bytes([field[2], field[3]]))
}

/// Complete the headers of [`Session::header`] in front of a frame.
#[inline(always)]
pub(crate) fn finish(sequences: &Sequences, sent: Sent, bytes: &mut [u8]) {
    let sequence = sequences
        .0
        .get(sent.interface.index())
        .map_or(0, |next| next.fetch_add(1, Ordering::Relaxed));
    let Some((gre, rest)) = bytes.split_first_chunk_mut::<GRE_BYTES>() else { return };
    if let Some(place) = gre.get_mut(SEQUENCE_OFFSET..) {
        place.copy_from_slice(&sequence.to_be_bytes());
    }
    let is_iii = GreHeader::overlay(gre).is_some_and(|gre| gre.protocol() == erspan::ETHERTYPE_III);
    let length = if is_iii { III_BYTES } else { II_BYTES };
    let Some((own, frame)) = rest.split_at_mut_checked(length) else { return };
    if is_iii && let Some(place) = own.get_mut(TIMESTAMP_OFFSET..TIMESTAMP_OFFSET + 4) {
        place.copy_from_slice(&((sent.now_ns / TIMESTAMP_UNIT_NS) as u32).to_be_bytes());
    }
    if let (Some(tag), Some(header)) = (tag(frame), ErspanHeader::overlay_mut(own)) {
        let encapsulation = if is_iii { 0 } else { TAG_IN_FRAME };
        header.set_vlan(tag & 0xfff, (tag >> 13) as u8, encapsulation);
    }
}

#[cfg(test)]
mod tests {
    use quiver_core::InterfaceId;

    use super::*;

    fn finished(version: Version, frame: &[u8], sequences: &Sequences) -> Vec<u8> {
        let mut bytes = Session { id: 77, version }.header();
        bytes.extend(frame);
        finish(sequences, Sent { interface: InterfaceId(3), now_ns: 1_000_000_000 }, &mut bytes);
        bytes
    }

    #[test]
    fn a_session_numbers_its_frames_and_names_their_vlan() {
        let sequences = Sequences::default();
        let mut frame = vec![2; 12];
        frame.extend([0x81, 0, 0xa0, 100, 8, 0]);
        for number in 0..2 {
            let bytes = finished(Version::II, &frame, &sequences);
            let (gre, behind) = gre::Repr::parse(&bytes).expect("GRE");
            assert_eq!((gre.protocol, gre.sequence), (erspan::ETHERTYPE_II, Some(number)));
            let (own, inside) = Repr::parse(behind).expect("type II");
            assert_eq!((own.session, own.vlan, own.class, inside), (77, 100, 5, &frame[..]));
            assert_eq!(own.kind, Kind::II { encapsulation: TAG_IN_FRAME, index: 0 });
            assert_eq!(parse(Version::II, behind), Ok((77, 8)));
            assert_eq!(parse(Version::III, behind), Err(TunnelDrop::Version));
        }
    }

    #[test]
    fn type_iii_has_a_time_stamp() {
        let bytes = finished(Version::III, &[2; 60], &Sequences::default());
        let (own, inside) = Repr::parse(&bytes[GRE_BYTES..]).expect("type III");
        assert_eq!((own.vlan, inside.len()), (0, 60));
        let Kind::III { timestamp, is_frame, .. } = own.kind else { panic!("type III") };
        assert_eq!((timestamp, is_frame), (10_000, true));
        assert_eq!(parse(Version::III, &bytes[GRE_BYTES..]), Ok((77, 12)));
    }
}
