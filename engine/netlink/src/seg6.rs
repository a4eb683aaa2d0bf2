//! SRv6 in lightweight tunnels of routes (linux/lwtunnel.h, linux/seg6_iptunnel.h,
//! linux/seg6_local.h).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::message::{Attributes, number};

/// Segments are put on packets (`LWTUNNEL_ENCAP_SEG6`).
pub const HEADEND: u16 = 5;
/// The prefix is a local SID (`LWTUNNEL_ENCAP_SEG6_LOCAL`).
pub const LOCAL: u16 = 7;

/// Bytes in front of the segments of an SRH.
const SRH_BYTES: usize = 8;
/// The SRH is signed (`SR6_FLAG1_HMAC`).
const HMAC: u8 = 1 << 3;

/// How segments are put on packets (RFC 8986 §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// An SRH in the IPv6 packet itself.
    Inline,
    /// An outer header with an SRH.
    Encap,
    /// The same around the Ethernet frame.
    L2Encap,
    /// Reduced [`Mode::Encap`].
    EncapRed,
    /// Reduced [`Mode::L2Encap`].
    L2EncapRed,
}

/// A segment list, and how it is put on packets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Headend {
    /// How.
    pub mode: Mode,
    /// The segments, in the order of the path.
    pub segments: Vec<Ipv6Addr>,
}

/// The segments of an SRH in the order of the path; none when it is cut off, signed, or of another
/// type (RFC 8754 §2).
fn segments_of(srh: &[u8]) -> Option<Vec<Ipv6Addr>> {
    /// The routing type of SRv6.
    const SEGMENTS: u8 = 4;
    let &[_, length, kind, _, last, flags, _, _] = srh.first_chunk::<SRH_BYTES>()?;
    let bytes = srh.get(SRH_BYTES..SRH_BYTES + usize::from(length) * 8)?;
    let list = bytes.get(..(usize::from(last) + 1) * 16)?;
    if kind != SEGMENTS || flags & HMAC != 0 {
        return None;
    }
    let segments = list.chunks_exact(16).filter_map(|segment| segment.first_chunk::<16>());
    Some(segments.rev().map(|segment| Ipv6Addr::from(*segment)).collect())
}

impl Headend {
    /// What the attributes of a tunnel of the kind [`HEADEND`] say.
    pub fn read(value: &[u8]) -> Option<Headend> {
        /// A mode of four bytes, and an SRH.
        const SRH: u16 = 1;
        let (_, value) = Attributes::of(value).find(|(number_of, _)| *number_of == SRH)?;
        let mode = match number(value)? {
            0 => Mode::Inline,
            1 => Mode::Encap,
            2 => Mode::L2Encap,
            3 => Mode::EncapRed,
            4 => Mode::L2EncapRed,
            _ => return None,
        };
        let mut segments = segments_of(value.get(4..)?)?;
        if mode == Mode::Inline {
            // The place of the destination, which Linux fills in for each packet.
            segments.pop();
        }
        (!segments.is_empty()).then_some(Headend { mode, segments })
    }
}

/// What a local SID does (`SEG6_LOCAL_ACTION_…`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// End.
    End,
    /// End.X, to this neighbour.
    EndX(Ipv6Addr),
    /// End.T, by this table.
    EndT(u32),
    /// End.DX2, out of the link of this number.
    Dx2(u32),
    /// End.DX4, to this neighbour.
    Dx4(Ipv4Addr),
    /// End.DX6, to this neighbour.
    Dx6(Ipv6Addr),
    /// End.DT4, by this table.
    Dt4(u32),
    /// End.DT6, by this table.
    Dt6(u32),
    /// End.DT46, by the tables of this number.
    Dt46(u32),
    /// End.B6.Encaps, along these segments.
    B6Encaps(Vec<Ipv6Addr>),
}

/// A local SID.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LocalSid {
    /// What it does.
    pub action: Action,
    /// Penultimate segment pop, ultimate segment pop, ultimate segment decapsulation.
    pub flavors: [bool; 3],
    /// NEXT-C-SID: bits of the locator block, and of the C-SID.
    pub next_csid: Option<(u8, u8)>,
}

/// Penultimate segment pop, ultimate segment pop, ultimate segment decapsulation, and lengths of
/// NEXT-C-SID.
type Flavors = ([bool; 3], Option<(u8, u8)>);

/// What the attribute of flavors says; none for a flavor that is not known here.
fn flavors_of(value: &[u8]) -> Option<Flavors> {
    const OPERATIONS: u16 = 1;
    const BLOCK_BITS: u16 = 2;
    const CSID_BITS: u16 = 3;
    const PSP: u32 = 1 << 1;
    const USP: u32 = 1 << 2;
    const USD: u32 = 1 << 3;
    const NEXT: u32 = 1 << 4;
    // Linux's own lengths, when a route gives none.
    let (mut operations, mut block_bits, mut csid_bits) = (0, 32, 16);
    for (number_of, value) in Attributes::of(value) {
        match number_of {
            OPERATIONS => operations = number(value)?,
            BLOCK_BITS => block_bits = *value.first()?,
            CSID_BITS => csid_bits = *value.first()?,
            _ => {}
        }
    }
    if operations & !(PSP | USP | USD | NEXT) != 0 {
        return None;
    }
    let flavors = [PSP, USP, USD].map(|flavor| operations & flavor != 0);
    Some((flavors, (operations & NEXT != 0).then_some((block_bits, csid_bits))))
}

impl LocalSid {
    /// What the attributes of a tunnel of the kind [`LOCAL`] say; none for what this router has
    /// not.
    pub fn read(value: &[u8]) -> Option<LocalSid> {
        let (mut action, mut segments, mut flavors) = (None, None, Default::default());
        let (mut table, mut next4, mut next6, mut out) = (None, None, None, None);
        for (number_of, value) in Attributes::of(value) {
            match number_of {
                1 => action = number(value),
                2 => segments = segments_of(value),
                // A table, or the table of a VRF.
                3 | 9 => table = number(value),
                4 => next4 = <[u8; 4]>::try_from(value).ok().map(Ipv4Addr::from),
                5 => next6 = <[u8; 16]>::try_from(value).ok().map(Ipv6Addr::from),
                7 => out = number(value),
                11 => flavors = flavors_of(value)?,
                // The link of arrival, and a program: what they ask for is not known here.
                6 | 8 => return None,
                _ => {}
            }
        }
        let action = match action? {
            1 => Action::End,
            2 => Action::EndX(next6?),
            3 => Action::EndT(table?),
            4 => Action::Dx2(out?),
            5 => Action::Dx6(next6?),
            6 => Action::Dx4(next4?),
            7 => Action::Dt6(table?),
            8 => Action::Dt4(table?),
            10 => Action::B6Encaps(segments.filter(|segments| !segments.is_empty())?),
            16 => Action::Dt46(table?),
            _ => return None,
        };
        let (flavors, next_csid) = flavors;
        Some(LocalSid { action, flavors, next_csid })
    }

    /// The neighbour that it sends to.
    pub fn next_hop(&self) -> Option<IpAddr> {
        match self.action {
            Action::EndX(address) | Action::Dx6(address) => Some(address.into()),
            Action::Dx4(address) => Some(address.into()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::request::attribute_bytes;

    fn srh(segments: &[&str], flags: u8) -> Vec<u8> {
        let count = segments.len() as u8;
        let mut bytes = vec![0, 2 * count, 4, count - 1, count - 1, flags, 0, 0];
        for segment in segments.iter().rev() {
            bytes.extend(segment.parse::<Ipv6Addr>().expect("a segment").octets());
        }
        bytes
    }

    fn headend(mode: u32, srh: &[u8]) -> Option<Headend> {
        Headend::read(&attribute_bytes(1, &[&mode.to_ne_bytes()[..], srh].concat()))
    }

    #[test]
    fn segments_are_in_the_order_of_the_path() {
        let path: Vec<Ipv6Addr> =
            ["fc00::1", "fc00::2"].map(|sid| sid.parse().expect("a segment")).to_vec();
        let two = srh(&["fc00::1", "fc00::2"], 0);
        let encap = Headend { mode: Mode::Encap, segments: path.clone() };
        assert_eq!(headend(1, &two), Some(encap));
        let inline = srh(&["fc00::1", "fc00::2", "::"], 0);
        assert_eq!(headend(0, &inline).expect("inline").segments, path);
        assert_eq!(headend(1, &srh(&["fc00::1"], HMAC)), None, "a key that is not known here");
        assert_eq!(headend(9, &two), None);
        assert_eq!(headend(1, &two[..two.len() - 1]), None, "cut off");
    }

    #[test]
    fn local_sids_have_what_their_action_needs() {
        let action = |number: u32| attribute_bytes(1, &number.to_ne_bytes());
        let read = |parts: &[Vec<u8>]| LocalSid::read(&parts.concat());
        let end = read(&[action(1)]).expect("End");
        assert_eq!((end.action, end.flavors, end.next_csid), (Action::End, [false; 3], None));
        assert_eq!(read(&[action(2)]), None, "End.X without a neighbour");
        let table = attribute_bytes(3, &77u32.to_ne_bytes());
        assert_eq!(read(&[action(3), table]).expect("End.T").action, Action::EndT(77));
        let flavors = |bits: u32| attribute_bytes(11, &attribute_bytes(1, &bits.to_ne_bytes()));
        let psp = read(&[action(1), flavors(2)]).expect("End with PSP");
        assert_eq!(psp.flavors, [true, false, false]);
        let next = read(&[action(1), flavors(16)]).expect("End with NEXT-C-SID");
        assert_eq!(next.next_csid, Some((32, 16)));
        assert_eq!(read(&[action(1), flavors(64)]), None, "a flavor of later times");
    }

    proptest! {
        #[test]
        fn no_value_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (Headend::read(&bytes), LocalSid::read(&bytes));
            let _ = headend(1, &bytes);
        }
    }
}
