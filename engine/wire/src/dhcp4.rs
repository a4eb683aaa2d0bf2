//! DHCP for IPv4 (RFC 2131, RFC 2132), which is BOOTP (RFC 951) with options behind a cookie.
//!
//! ```text
//! 0    1      2     3     4     8      10      12       16       20       24       28
//! +----+------+-----+-----+-----+------+-------+--------+--------+--------+--------+--------
//! | op | type | len | hops| xid | secs | flags | ciaddr | yiaddr | siaddr | giaddr | chaddr …
//! +----+------+-----+-----+-----+------+-------+--------+--------+--------+--------+--------
//! 44        108        236      240
//! +---------+----------+--------+------+-----+--------
//! | sname … | file …   | cookie | code | len | data …     0: pad, 255: end
//! +---------+----------+--------+------+-----+--------
//! ```

use core::net::Ipv4Addr;

use zerocopy::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::header::room;
use crate::{Header, MacAddress, WireError};

/// The port of servers and relay agents.
pub const SERVER_PORT: u16 = 67;
/// The port of clients.
pub const CLIENT_PORT: u16 = 68;
/// Bytes of the shortest message that is sent (RFC 951 §3: 64 bytes behind `file`).
pub const MESSAGE_BYTES_MIN: usize = 300;
/// Bytes in front of the options.
pub const OPTIONS_AT: usize = Dhcp4Header::LEN + COOKIE.len();
/// The first bytes of the options (RFC 2131 §3).
pub const COOKIE: [u8; 4] = [99, 130, 83, 99];
/// `op` of what a client sends.
pub const REQUEST: u8 = 1;
/// `op` of what a server sends.
pub const REPLY: u8 = 2;
/// Hardware type of Ethernet.
pub const ETHERNET: u8 = 1;
/// The flag of a client that takes no unicast before it has its address (RFC 2131 §2).
pub const BROADCAST_FLAG: u16 = 0x8000;
/// Bytes of an option's data at most.
pub const OPTION_BYTES_MAX: usize = 255;

/// Numbers of options (RFC 2132).
pub mod option {
    /// Fills space; has no length.
    pub const PAD: u8 = 0;
    /// The subnet's mask.
    pub const SUBNET_MASK: u8 = 1;
    /// Default routers.
    pub const ROUTER: u8 = 3;
    /// Name servers.
    pub const NAME_SERVER: u8 = 6;
    /// The client's name.
    pub const HOST_NAME: u8 = 12;
    /// The address that the client asks for.
    pub const REQUESTED_ADDRESS: u8 = 50;
    /// For how long, seconds.
    pub const LEASE_TIME: u8 = 51;
    /// `sname` or `file` carry options.
    pub const OVERLOAD: u8 = 52;
    /// Which kind of message.
    pub const MESSAGE_TYPE: u8 = 53;
    /// Which server.
    pub const SERVER_ID: u8 = 54;
    /// Which options the client asks for.
    pub const PARAMETER_LIST: u8 = 55;
    /// The longest message that the client takes, bytes.
    pub const MESSAGE_BYTES: u8 = 57;
    /// T1, seconds.
    pub const RENEWAL_TIME: u8 = 58;
    /// T2, seconds.
    pub const REBINDING_TIME: u8 = 59;
    /// Which client.
    pub const CLIENT_ID: u8 = 61;
    /// What a relay agent says (RFC 3046).
    pub const RELAY_AGENT: u8 = 82;
    /// The last one; has no length.
    pub const END: u8 = 255;
}

/// Numbers of sub-options of option 82.
pub mod sub_option {
    /// By which circuit the client came (RFC 3046 §3.1).
    pub const CIRCUIT_ID: u8 = 1;
    /// Which host is at its remote end (RFC 3046 §3.2).
    pub const REMOTE_ID: u8 = 2;
    /// The client's subnet, where `giaddr` does not say it (RFC 3527).
    pub const LINK_SELECTION: u8 = 5;
    /// Was the client's message unicast (RFC 5010)?
    pub const FLAGS: u8 = 10;
    /// The address that the server is to call itself (RFC 5107).
    pub const SERVER_OVERRIDE: u8 = 11;
    /// The client's VPN (RFC 6607).
    pub const VSS: u8 = 151;
    /// A server that knows the client's VPN takes this one out of the reply (RFC 6607 §3.3).
    pub const VSS_CONTROL: u8 = 152;
}

/// Kinds of messages (RFC 2132 §9.6).
pub mod message_type {
    /// A client looks for servers.
    pub const DISCOVER: u8 = 1;
    /// A server offers an address.
    pub const OFFER: u8 = 2;
    /// A client asks for an address.
    pub const REQUEST: u8 = 3;
    /// Somebody else has the address.
    pub const DECLINE: u8 = 4;
    /// The address is leased.
    pub const ACK: u8 = 5;
    /// It is not.
    pub const NAK: u8 = 6;
    /// The client needs it no more.
    pub const RELEASE: u8 = 7;
    /// A client with an address asks for settings.
    pub const INFORM: u8 = 8;
}

malformations! {
    /// Why a message is refused.
    pub enum Dhcp4Malformation {
        /// RFC 951 §3.
        Truncated = "truncated", "shorter than a BOOTP header";
        /// RFC 951 §3.
        BadOp = "bad-op", "an op that is neither request nor reply";
        /// RFC 2131 §2.
        HardwareLength = "hardware-length", "a hardware address of more than 16 bytes";
        /// RFC 2132 §2.
        Options = "options-truncated", "an option that runs beyond the message";
    }
}

/// The fixed part of a message on packet bytes, 236 bytes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Dhcp4Header {
    /// Request or reply.
    pub op: u8,
    /// Type of the hardware address.
    pub hardware_type: u8,
    /// Its length, bytes.
    pub hardware_len: u8,
    /// Relay agents passed.
    pub hops: u8,
    xid: U32,
    secs: U16,
    flags: U16,
    ciaddr: [u8; 4],
    yiaddr: [u8; 4],
    siaddr: [u8; 4],
    giaddr: [u8; 4],
    chaddr: [u8; 16],
    sname: [u8; 64],
    file: [u8; 128],
}

impl Header for Dhcp4Header {
    const NAME: &'static str = "DHCP";
}

impl Dhcp4Header {
    /// A client's message.
    pub fn request(mac: MacAddress, xid: u32) -> Self {
        let mut chaddr = [0; 16];
        chaddr[..6].copy_from_slice(&mac.0);
        Self {
            op: REQUEST,
            hardware_type: ETHERNET,
            hardware_len: 6,
            hops: 0,
            xid: U32::new(xid),
            secs: U16::ZERO,
            flags: U16::ZERO,
            ciaddr: [0; 4],
            yiaddr: [0; 4],
            siaddr: [0; 4],
            giaddr: [0; 4],
            chaddr,
            sname: [0; 64],
            file: [0; 128],
        }
    }

    /// The client's number of the transaction.
    pub fn xid(&self) -> u32 {
        self.xid.get()
    }

    /// Seconds since the client began.
    pub fn secs(&self) -> u16 {
        self.secs.get()
    }

    /// Sets the seconds since the client began.
    pub fn set_secs(&mut self, secs: u16) {
        self.secs.set(secs);
    }

    /// Flags; of one bit the meaning is known.
    pub fn flags(&self) -> u16 {
        self.flags.get()
    }

    /// Sets the flags.
    pub fn set_flags(&mut self, flags: u16) {
        self.flags.set(flags);
    }

    /// Must the client's replies be broadcast?
    pub fn wants_broadcast(&self) -> bool {
        self.flags() & BROADCAST_FLAG != 0
    }

    /// The address that the client has.
    pub fn ciaddr(&self) -> Ipv4Addr {
        self.ciaddr.into()
    }

    /// Sets the address that the client has.
    pub fn set_ciaddr(&mut self, address: Ipv4Addr) {
        self.ciaddr = address.octets();
    }

    /// The address that the client gets.
    pub fn yiaddr(&self) -> Ipv4Addr {
        self.yiaddr.into()
    }

    /// Sets the address that the client gets.
    pub fn set_yiaddr(&mut self, address: Ipv4Addr) {
        self.yiaddr = address.octets();
    }

    /// The relay agent's address.
    pub fn giaddr(&self) -> Ipv4Addr {
        self.giaddr.into()
    }

    /// Sets the relay agent's address.
    pub fn set_giaddr(&mut self, address: Ipv4Addr) {
        self.giaddr = address.octets();
    }

    /// The client's MAC address; none when it has another kind of address.
    pub fn mac(&self) -> Option<MacAddress> {
        let [a, b, c, d, e, f, ..] = self.chaddr;
        let is_ethernet = self.hardware_type == ETHERNET && self.hardware_len == 6;
        is_ethernet.then_some(MacAddress([a, b, c, d, e, f]))
    }
}

/// A message whose lengths have been checked.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// The fixed part.
    pub header: &'a Dhcp4Header,
    /// From the first option on; none in a BOOTP message without the cookie.
    pub area: Option<&'a [u8]>,
}

/// One option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DhcpOption<'a> {
    /// Its number.
    pub code: u8,
    /// Its data.
    pub data: &'a [u8],
    /// Where it begins, bytes behind the cookie.
    pub at: usize,
}

/// Walks over options (or sub-options, which have neither pads nor an end).
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    area: &'a [u8],
    at: usize,
    has_marks: bool,
}

impl<'a> Options<'a> {
    /// Over the options behind a cookie.
    pub fn new(area: &'a [u8]) -> Options<'a> {
        Options { area, at: 0, has_marks: true }
    }

    /// Over the sub-options of option 82.
    pub fn sub_options(area: &'a [u8]) -> Options<'a> {
        Options { area, at: 0, has_marks: false }
    }

    /// Where the next option would begin, bytes behind the cookie.
    pub fn at(&self) -> usize {
        self.at
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<DhcpOption<'a>, Dhcp4Malformation>;

    fn next(&mut self) -> Option<Self::Item> {
        let code = loop {
            match *self.area.get(self.at)? {
                option::PAD if self.has_marks => self.at += 1,
                option::END if self.has_marks => return None,
                code => break code,
            }
        };
        let at = self.at;
        let data = self.area.get(at + 1).and_then(|length| {
            let begin = at + 2;
            self.area.get(begin..begin + usize::from(*length))
        });
        let Some(data) = data else {
            self.at = self.area.len();
            return Some(Err(Dhcp4Malformation::Options));
        };
        self.at = at + 2 + data.len();
        Some(Ok(DhcpOption { code, data, at }))
    }
}

impl<'a> Message<'a> {
    /// Reads a message, and checks the length of every option.
    ///
    /// # Errors
    /// The message must be discarded, for the reason that is returned.
    pub fn parse(bytes: &'a [u8]) -> Result<Message<'a>, Dhcp4Malformation> {
        let (header, rest) = Dhcp4Header::split(bytes).ok_or(Dhcp4Malformation::Truncated)?;
        if header.op != REQUEST && header.op != REPLY {
            return Err(Dhcp4Malformation::BadOp);
        }
        if header.hardware_len > 16 {
            return Err(Dhcp4Malformation::HardwareLength);
        }
        let area = rest.strip_prefix(&COOKIE);
        if let Some(area) = area {
            for option in Options::new(area) {
                option?;
            }
        }
        Ok(Message { header, area })
    }

    /// Its options.
    pub fn options(&self) -> impl Iterator<Item = DhcpOption<'a>> + use<'a> {
        Options::new(self.area.unwrap_or_default()).flatten()
    }

    /// The data of the first option of this number.
    pub fn option(&self, code: u8) -> Option<&'a [u8]> {
        self.options().find(|option| option.code == code).map(|option| option.data)
    }

    /// Which kind of message it is; none in a BOOTP message.
    pub fn message_type(&self) -> Option<u8> {
        match self.option(option::MESSAGE_TYPE)? {
            [kind] => Some(*kind),
            _ => None,
        }
    }

    /// The first address of an option of addresses.
    pub fn address(&self, code: u8) -> Option<Ipv4Addr> {
        self.option(code)?.first_chunk::<4>().map(|four| Ipv4Addr::from(*four))
    }

    /// A number of 32 bits.
    pub fn number(&self, code: u8) -> Option<u32> {
        Some(u32::from_be_bytes(self.option(code)?.try_into().ok()?))
    }
}

/// Writes options one after another.
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    /// Begins a message: the fixed part and the cookie.
    ///
    /// # Errors
    /// `out` is too short.
    pub fn begin(out: &'a mut [u8], header: &Dhcp4Header) -> Result<Writer<'a>, WireError> {
        header.write(out)?;
        room(out, OPTIONS_AT)?[Dhcp4Header::LEN..].copy_from_slice(&COOKIE);
        Ok(Writer { out, at: OPTIONS_AT })
    }

    /// Begins at the start of `out`, for options or sub-options alone.
    pub fn bare(out: &'a mut [u8]) -> Writer<'a> {
        Writer { out, at: 0 }
    }

    /// Writes an option.
    ///
    /// # Errors
    /// It has more than 255 bytes, or there is no room.
    pub fn put(&mut self, code: u8, data: &[u8]) -> Result<(), WireError> {
        let invalid = |reason| WireError::Invalid { header: Dhcp4Header::NAME, reason };
        let length = u8::try_from(data.len())
            .map_err(|_| invalid("an option has 255 bytes of data at most"))?;
        let end = self.at + 2 + data.len();
        let place = &mut room(self.out, end)?[self.at..];
        (place[0], place[1]) = (code, length);
        place[2..].copy_from_slice(data);
        self.at = end;
        Ok(())
    }

    /// Ends without a mark: sub-options. Returns the number of bytes.
    pub fn end_bare(self) -> usize {
        self.at
    }

    /// Ends a message, padded to its shortest length. Returns the number of bytes.
    ///
    /// # Errors
    /// There is no room.
    pub fn finish(self) -> Result<usize, WireError> {
        let length = (self.at + 1).max(MESSAGE_BYTES_MIN);
        let rest = &mut room(self.out, length)?[self.at..];
        rest.fill(option::PAD);
        rest[0] = option::END;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 9]);

    fn message(options: &[(u8, Vec<u8>)]) -> Vec<u8> {
        let mut out = vec![0; 4096];
        let mut writer = Writer::begin(&mut out, &Dhcp4Header::request(MAC, 7)).unwrap();
        options.iter().for_each(|(code, data)| writer.put(*code, data).unwrap());
        let length = writer.finish().unwrap();
        out.truncate(length);
        out
    }

    #[test]
    fn fields_stand_where_the_rfc_has_them() {
        let mut bytes = message(&[(option::MESSAGE_TYPE, vec![message_type::DISCOVER])]);
        assert_eq!(bytes.len(), MESSAGE_BYTES_MIN);
        assert_eq!((&bytes[..4], &bytes[4..8]), (&[1, 1, 6, 0][..], &[0, 0, 0, 7][..]));
        assert_eq!((&bytes[28..34], &bytes[236..240]), (&MAC.0[..], &[99, 130, 83, 99][..]));
        assert_eq!(&bytes[240..244], &[53, 1, 1, 255]);
        let header = Dhcp4Header::overlay_mut(&mut bytes).unwrap();
        header.set_giaddr(Ipv4Addr::new(192, 0, 2, 1));
        header.set_flags(BROADCAST_FLAG);
        assert!(header.wants_broadcast());
        assert_eq!(&bytes[24..28], &[192, 0, 2, 1]);
        assert_eq!(Message::parse(&bytes).unwrap().message_type(), Some(1));
    }

    #[test]
    fn messages_whose_lengths_are_wrong_are_refused() {
        let good = message(&[(12, vec![1, 2, 3])]);
        assert_eq!(Message::parse(&good[..235]).unwrap_err(), Dhcp4Malformation::Truncated);
        assert!(Message::parse(&good[..236]).unwrap().area.is_none());
        for cut in [241, 242, 243, 244] {
            assert_eq!(Message::parse(&good[..cut]).unwrap_err(), Dhcp4Malformation::Options);
        }
        assert!(Message::parse(&good[..245]).is_ok(), "an end that is missing is no fault");
        let changed = |at: usize, to: u8| {
            let mut bytes = good.clone();
            bytes[at] = to;
            Message::parse(&bytes).map(|_| ()).unwrap_err()
        };
        assert_eq!(changed(0, 3), Dhcp4Malformation::BadOp);
        assert_eq!(changed(2, 17), Dhcp4Malformation::HardwareLength);
        assert_eq!(changed(241, 255), Dhcp4Malformation::Options);
    }

    #[test]
    fn a_long_option_is_not_written() {
        let mut out = [0; 600];
        let mut writer = Writer::bare(&mut out);
        assert!(writer.put(1, &[0; 256]).is_err());
        assert!(writer.put(1, &[0; 255]).is_ok());
        assert_eq!(writer.end_bare(), 257);
    }

    proptest! {
        #[test]
        fn options_come_back(
            options in prop::collection::vec(
                (1u8..255, prop::collection::vec(any::<u8>(), 0..256)), 0..8)
        ) {
            let bytes = message(&options);
            let read: Vec<_> = Message::parse(&bytes).unwrap().options()
                .map(|option| (option.code, option.data.to_vec())).collect();
            prop_assert_eq!(read, options);
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), cookie: bool) {
            let mut bytes = bytes;
            if cookie && bytes.len() > OPTIONS_AT {
                bytes[236..240].copy_from_slice(&COOKIE);
                bytes[0] = REQUEST;
            }
            if let Ok(message) = Message::parse(&bytes) {
                let _ = (message.message_type(), message.address(3), message.number(51));
                let _ = message.header.mac();
            }
            for option in Options::sub_options(&bytes).flatten() {
                let _ = Options::new(option.data).count();
            }
        }
    }
}
