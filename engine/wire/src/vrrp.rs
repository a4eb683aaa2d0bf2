//! VRRP version 3 for IPv4 and IPv6 (RFC 9568 §5).
//!
//! ```text
//! 0        1      2          3       4               6          8
//! +--------+------+----------+-------+---------------+----------+-----------
//! |Vers|Typ| VRID | Priority | Count |0|  interval   | checksum | address …
//! +--------+------+----------+-------+---------------+----------+-----------
//! ```

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use zerocopy::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum::Sum;
use crate::header::room;
use crate::{Header, IpProtocol, MacAddress, WireError};

/// Where advertisements go over IPv4 (§5.1.1.2).
pub const GROUP4: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 18);
/// Where advertisements go over IPv6 (§5.1.2.2).
pub const GROUP6: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x12);
/// TTL and hop limit of advertisements (§5.1.1.3, §5.1.2.3).
pub const TTL: u8 = 255;
/// The priority of who owns the addresses (§5.2.4).
pub const PRIORITY_OWNER: u8 = 255;
/// The priority of who ceases to be the active router (§5.2.4).
pub const PRIORITY_CEASES: u8 = 0;
/// The longest interval of advertisements, hundredths of a second (§5.2.7: 12 bits).
pub const INTERVAL_CS_MAX: u16 = 4095;
/// Bytes in front of the addresses.
pub const HEADER_LEN: usize = 8;
/// Addresses of an advertisement at most, so that it fits a packet of 1,280 bytes with room.
pub const ADDRESSES_MAX: usize = 64;

const VERSION_TYPE: u8 = 3 << 4 | 1;

malformations! {
    /// Why an advertisement is discarded before its virtual router is known (§7.1).
    pub enum VrrpMalformation {
        /// Fewer bytes than its header.
        Truncated = "truncated", "fewer bytes than a VRRP advertisement has";
        /// Another version.
        Version = "bad-version", "a version of VRRP other than 3";
        /// Another type.
        Type = "bad-type", "a VRRP message that is no advertisement";
        /// VRID 0.
        VrIdZero = "vr-id-zero", "a virtual router identifier of 0";
        /// No address, or not as many bytes as addresses.
        Addresses = "bad-address-count", "no address, or more than the packet holds";
        /// Damaged.
        Checksum = "bad-checksum", "the checksum is wrong";
    }
}

/// The MAC address of a virtual router (§7.3).
pub const fn virtual_mac(vr_id: u8, is_ip6: bool) -> MacAddress {
    MacAddress([0, 0, 0x5e, 0, if is_ip6 { 2 } else { 1 }, vr_id])
}

/// The fixed part of an advertisement on packet bytes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct VrrpHeader {
    version_type: u8,
    vr_id: u8,
    priority: u8,
    count: u8,
    interval: U16,
    checksum: U16,
}

impl Header for VrrpHeader {
    const NAME: &'static str = "VRRP";
}

/// An advertisement in plain values, without its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advertisement {
    /// Which virtual router, 1 to 255.
    pub vr_id: u8,
    /// How much the sender wants to be the active router.
    pub priority: u8,
    /// The interval at which it advertises, hundredths of a second.
    pub interval_cs: u16,
}

/// Over which of its bytes a checksum goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksumOver {
    /// The message and a pseudo-header: IPv6, and IPv4 as RFC 5798 was read.
    PseudoHeader,
    /// The message: IPv4 in RFC 9568 §5.2.8.
    Message,
}

/// An advertisement that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read<'a> {
    /// Its fields.
    pub advertisement: Advertisement,
    /// What its checksum goes over.
    pub checksum_over: ChecksumOver,
    /// Its addresses, 4 or 16 bytes each.
    addresses: &'a [u8],
    is_ip6: bool,
}

impl<'a> Read<'a> {
    /// The virtual router's addresses.
    pub fn addresses(&self) -> impl ExactSizeIterator<Item = IpAddr> + 'a {
        let (is_ip6, length) = (self.is_ip6, address_len(self.is_ip6));
        self.addresses.chunks_exact(length).map(move |bytes| match is_ip6 {
            true => IpAddr::from(<[u8; 16]>::try_from(bytes).unwrap_or_default()),
            false => IpAddr::from(<[u8; 4]>::try_from(bytes).unwrap_or_default()),
        })
    }
}

const fn address_len(is_ip6: bool) -> usize {
    if is_ip6 { 16 } else { 4 }
}

fn sum(from: IpAddr, to: IpAddr, message: &[u8], over: ChecksumOver) -> Sum {
    let (protocol, length) = (IpProtocol::VRRP, message.len());
    match (from, to, over) {
        (IpAddr::V4(from), IpAddr::V4(to), ChecksumOver::PseudoHeader) => {
            Sum::pseudo4(from, to, protocol, length as u16).bytes(message)
        }
        (IpAddr::V6(from), IpAddr::V6(to), _) => {
            Sum::pseudo6(from, to, protocol, length as u32).bytes(message)
        }
        _ => Sum::new().bytes(message),
    }
}

impl Advertisement {
    /// Reads an advertisement from the payload of an IP packet between these addresses. Over IPv4
    /// either checksum is right.
    ///
    /// # Errors
    /// The packet must be discarded, for the reason that is returned.
    pub fn parse(from: IpAddr, to: IpAddr, payload: &[u8]) -> Result<Read<'_>, VrrpMalformation> {
        let (header, rest) = VrrpHeader::split(payload).ok_or(VrrpMalformation::Truncated)?;
        if header.version_type >> 4 != VERSION_TYPE >> 4 {
            return Err(VrrpMalformation::Version);
        }
        if header.version_type != VERSION_TYPE {
            return Err(VrrpMalformation::Type);
        }
        let is_ip6 = from.is_ipv6();
        let length = usize::from(header.count) * address_len(is_ip6);
        let addresses = rest.get(..length).filter(|_| header.count > 0);
        let addresses = addresses.ok_or(VrrpMalformation::Addresses)?;
        let is_good = |over: &ChecksumOver| sum(from, to, payload, *over).is_good();
        let checksum_over = [ChecksumOver::PseudoHeader, ChecksumOver::Message]
            .into_iter()
            .find(is_good)
            .ok_or(VrrpMalformation::Checksum)?;
        if header.vr_id == 0 {
            return Err(VrrpMalformation::VrIdZero);
        }
        let advertisement = Advertisement {
            vr_id: header.vr_id,
            priority: header.priority,
            interval_cs: header.interval.get() & INTERVAL_CS_MAX,
        };
        Ok(Read { advertisement, checksum_over, addresses, is_ip6 })
    }

    /// Writes an advertisement of these addresses, which are of the family of `from`, and returns
    /// its length.
    ///
    /// # Errors
    /// An address is of another family, there are too many or none, or `out` is too short.
    pub fn emit(
        &self,
        from: IpAddr,
        to: IpAddr,
        addresses: &[IpAddr],
        over: ChecksumOver,
        out: &mut [u8],
    ) -> Result<usize, WireError> {
        let is_ip6 = from.is_ipv6();
        let is_wrong = |address: &IpAddr| address.is_ipv6() != is_ip6;
        if addresses.is_empty() || addresses.len() > ADDRESSES_MAX || addresses.iter().any(is_wrong)
        {
            let reason = "an advertisement has 1 to 64 addresses of its own family";
            return Err(WireError::Invalid { header: VrrpHeader::NAME, reason });
        }
        let length = HEADER_LEN + addresses.len() * address_len(is_ip6);
        let out = room(out, length)?;
        let header = VrrpHeader {
            version_type: VERSION_TYPE,
            vr_id: self.vr_id,
            priority: self.priority,
            count: addresses.len() as u8,
            interval: U16::new(self.interval_cs & INTERVAL_CS_MAX),
            checksum: U16::ZERO,
        };
        header.write(out)?;
        let places = out[HEADER_LEN..].chunks_exact_mut(address_len(is_ip6));
        for (place, address) in places.zip(addresses) {
            match address {
                IpAddr::V4(address) => place.copy_from_slice(&address.octets()),
                IpAddr::V6(address) => place.copy_from_slice(&address.octets()),
            }
        }
        let checksum = sum(from, to, out, over).checksum();
        out[6..HEADER_LEN].copy_from_slice(&checksum.to_be_bytes());
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    const ROUTER4: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    const ROUTER6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1));
    const TO4: IpAddr = IpAddr::V4(GROUP4);
    const TO6: IpAddr = IpAddr::V6(GROUP6);

    fn advertisement() -> Advertisement {
        Advertisement { vr_id: 7, priority: 100, interval_cs: 0x123 }
    }

    fn written(from: IpAddr, to: IpAddr, addresses: &[IpAddr], over: ChecksumOver) -> Vec<u8> {
        let mut bytes = [0xff; 1100];
        let length = advertisement().emit(from, to, addresses, over, &mut bytes).unwrap();
        bytes[..length].to_vec()
    }

    #[test]
    fn the_fields_stand_where_the_figure_has_them() {
        let address = IpAddr::from([192, 0, 2, 254]);
        let bytes = written(ROUTER4, TO4, &[address], ChecksumOver::Message);
        assert_eq!(bytes[..6], [0x31, 7, 100, 1, 0x01, 0x23]);
        assert_eq!(bytes[8..], [192, 0, 2, 254]);
        assert_eq!(virtual_mac(7, false).0, [0, 0, 0x5e, 0, 1, 7]);
        assert_eq!(virtual_mac(7, true).0, [0, 0, 0x5e, 0, 2, 7]);
    }

    #[test]
    fn both_checksums_of_ipv4_are_right_and_told_apart() {
        let address = IpAddr::from([192, 0, 2, 254]);
        for over in [ChecksumOver::PseudoHeader, ChecksumOver::Message] {
            let bytes = written(ROUTER4, TO4, &[address], over);
            let read = Advertisement::parse(ROUTER4, TO4, &bytes).unwrap();
            assert_eq!((read.advertisement, read.checksum_over), (advertisement(), over));
        }
        let six = IpAddr::from([0xfe80, 0, 0, 0, 0, 0, 0, 9]);
        let plain = written(ROUTER6, TO6, &[six], ChecksumOver::Message);
        assert_eq!(plain, written(ROUTER6, TO6, &[six], ChecksumOver::PseudoHeader));
    }

    #[test]
    fn what_the_rfc_has_discarded_is_refused_for_its_reason() {
        let base = written(ROUTER4, TO4, &[[10, 0, 0, 1].into()], ChecksumOver::Message);
        use VrrpMalformation::*;
        for (at, value, reason) in [
            (0, 0x21, Version),
            (0, 0x32, Type),
            (3, 0, Addresses),
            (3, 2, Addresses),
            (2, 99, Checksum),
        ] {
            let mut bytes = base.clone();
            bytes[at] = value;
            assert_eq!(Advertisement::parse(ROUTER4, TO4, &bytes), Err(reason), "byte {at}");
        }
        assert_eq!(Advertisement::parse(ROUTER4, TO4, &base[..7]), Err(Truncated));
        let mut nobody = [0; 12];
        let zero = Advertisement { vr_id: 0, ..advertisement() };
        let over = ChecksumOver::Message;
        zero.emit(ROUTER4, TO4, &[[10, 0, 0, 1].into()], over, &mut nobody).unwrap();
        assert_eq!(Advertisement::parse(ROUTER4, TO4, &nobody), Err(VrIdZero));
    }

    #[test]
    fn addresses_are_of_the_family_of_the_packet() {
        let six = IpAddr::from([0xfe80, 0, 0, 0, 0, 0, 0, 9]);
        let mut out = [0; 64];
        let over = ChecksumOver::Message;
        for addresses in [&[][..], &[six]] {
            assert!(advertisement().emit(ROUTER4, TO4, addresses, over, &mut out).is_err());
        }
    }

    proptest! {
        #[test]
        fn parse_and_emit_are_inverse(
            vr_id in 1u8.., priority: u8, interval_cs in 0..=INTERVAL_CS_MAX,
            hosts in prop::collection::vec(any::<u128>(), 1..20), is_ip6: bool, message: bool
        ) {
            let told = Advertisement { vr_id, priority, interval_cs };
            let address = |host: &u128| match is_ip6 {
                true => IpAddr::from(Ipv6Addr::from_bits(*host)),
                false => IpAddr::from(Ipv4Addr::from_bits(*host as u32)),
            };
            let addresses: Vec<IpAddr> = hosts.iter().map(address).collect();
            let (from, to) = if is_ip6 { (ROUTER6, TO6) } else { (ROUTER4, TO4) };
            let over =
                if message { ChecksumOver::Message } else { ChecksumOver::PseudoHeader };
            let mut bytes = [0; 400];
            let length = told.emit(from, to, &addresses, over, &mut bytes).unwrap();
            let read = Advertisement::parse(from, to, &bytes[..length]).unwrap();
            prop_assert_eq!(read.advertisement, told);
            prop_assert_eq!(read.addresses().collect::<Vec<_>>(), addresses.clone());
            let is_refused = told.emit(from, to, &addresses, over, &mut bytes[..length - 1]);
            prop_assert!(is_refused.is_err());
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), is_ip6: bool) {
            let (from, to) = if is_ip6 { (ROUTER6, TO6) } else { (ROUTER4, TO4) };
            if let Ok(read) = Advertisement::parse(from, to, &bytes) {
                let _ = read.addresses().count();
            }
        }
    }
}
