//! GTP-U messages other than users' packets, as SRv6 carries them: the message in the SRH's tag,
//! its number in place of the session, its information elements in a TLV
//! (draft-murakami-dmm-user-plane-message-encoding, to which RFC 9433 §6.1 leaves it; the numbers
//! are those that VPP has).

use quiver_wire::gtpu::message;
use quiver_wire::srh::{self, Srh};

use super::args::Session;

/// The type of the TLV.
const CONTAINER: u8 = 0x0a;
/// Inside it: information elements, as they stand in the message.
const ELEMENTS: u8 = 1;
/// Bytes of information elements at most.
pub(super) const ELEMENTS_BYTES_MAX: usize = u8::MAX as usize - 2;
/// Bytes of a TLV with them and what pads it.
pub(super) const TLV_BYTES_MAX: usize = ELEMENTS_BYTES_MAX + 4 + 7;

/// The bit of a message in the tag.
const TAGS: [(u16, u8); 4] = [
    (8, message::ECHO_RESPONSE),
    (4, message::ECHO_REQUEST),
    (2, message::ERROR_INDICATION),
    (1, message::END_MARKER),
];

/// The tag of a message, if it has one.
pub(super) fn tag_of(kind: u8) -> Option<u16> {
    TAGS.iter().find(|(_, known)| *known == kind).map(|(tag, _)| *tag)
}

/// The message of a tag.
pub(super) fn kind_of(tag: u16) -> Option<u8> {
    TAGS.iter().find(|(known, _)| *known == tag).map(|(_, kind)| *kind)
}

/// Is a message about a tunnel? The others have a number.
fn has_tunnel(kind: u8) -> bool {
    kind == message::END_MARKER
}

/// What stands in the SID for a message: the session, or in its place the number.
pub(super) fn arguments(kind: u8, session: Session, sequence: Option<u16>) -> Session {
    if has_tunnel(kind) {
        return session;
    }
    Session { teid: u32::from(sequence.unwrap_or(0)) << 16, ..Session::default() }
}

/// The tunnel and the number that the arguments of a SID say.
pub(super) fn tunnel_and_number(kind: u8, session: Session) -> (u32, Option<u16>) {
    if has_tunnel(kind) { (session.teid, None) } else { (0, Some((session.teid >> 16) as u16)) }
}

/// Write the TLV with these elements, padded to 8 bytes; returns its length. None is written for
/// none. Nothing when there are too many.
pub(super) fn write(elements: &[u8], out: &mut [u8]) -> Option<usize> {
    if elements.is_empty() {
        return Some(0);
    }
    let length = u8::try_from(elements.len() + 2).ok()?;
    let end = 4 + elements.len();
    let padded = end.next_multiple_of(8);
    let room = out.get_mut(..padded)?;
    let (tlv, padding) = room.split_at_mut_checked(end)?;
    tlv.get_mut(..4)?.copy_from_slice(&[CONTAINER, length, ELEMENTS, length - 2]);
    tlv.get_mut(4..)?.copy_from_slice(elements);
    padding.fill(0);
    if let [kind, length, rest @ ..] = padding {
        (*kind, *length) = (srh::kind::PADN, rest.len() as u8);
    }
    Some(padded)
}

/// The elements of the first such TLV of an SRH; none when there is none, nothing when it is wrong.
pub(super) fn elements<'a>(srh: &Srh<'a>) -> Option<&'a [u8]> {
    for tlv in srh.tlvs() {
        let tlv = tlv.ok()?;
        if tlv.kind == CONTAINER {
            let [ELEMENTS, length, content @ ..] = tlv.data else { return None };
            return content.get(..usize::from(*length));
        }
    }
    Some(&[])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use quiver_wire::IpProtocol;
    use quiver_wire::srh::{Form, Repr};
    use std::net::Ipv6Addr;

    proptest! {
        #[test]
        fn elements_that_were_written_are_read(
            elements in prop::collection::vec(any::<u8>(), 0..=253)
        ) {
            let path = [Ipv6Addr::LOCALHOST];
            let repr = Repr::new(&path, Form::Full, IpProtocol::NO_NEXT_HEADER);
            let mut bytes = vec![0xaa; repr.len() + TLV_BYTES_MAX];
            let at = repr.emit(&mut bytes).unwrap();
            let length = super::write(&elements, &mut bytes[at..]).unwrap();
            prop_assert_eq!(length % 8, 0);
            bytes.truncate(at + length);
            bytes[1] = (bytes.len() / 8 - 1) as u8;
            let (srh, rest) = Srh::parse(&bytes).unwrap();
            prop_assert!(rest.is_empty());
            prop_assert_eq!(super::elements(&srh), Some(&elements[..]));
        }

        #[test]
        fn what_stands_for_a_message_is_read_again(sequence: u16, teid: u32, qfi in 0u8..64) {
            let session = Session { qfi, reflective: false, teid };
            for (tag, kind) in TAGS {
                prop_assert_eq!((tag_of(kind), kind_of(tag)), (Some(tag), Some(kind)));
                let read = tunnel_and_number(kind, arguments(kind, session, Some(sequence)));
                let expected =
                    if kind == message::END_MARKER { (teid, None) } else { (0, Some(sequence)) };
                prop_assert_eq!(read, expected);
            }
        }
    }

    #[test]
    fn too_many_elements_are_refused() {
        assert_eq!(super::write(&[0; 254], &mut [0; 300]), None);
        assert_eq!(
            (tag_of(message::SUPPORTED_EXTENSIONS), kind_of(3), kind_of(0)),
            (None, None, None)
        );
    }
}
