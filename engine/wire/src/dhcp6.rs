//! DHCP for IPv6 (RFC 8415).
//!
//! ```text
//! 0      1                4                      0      1      2               18
//! +------+----------------+----------            +------+------+---------------+--------------+
//! | type | transaction-id | option …             | type | hops | link-address  | peer-address | …
//! +------+----------------+----------            +------+------+---------------+--------------+
//!   of clients and servers                         of relay agents
//!
//! 0        2        4
//! +--------+--------+--------
//! | option | length | data …
//! +--------+--------+--------
//! ```

use core::net::Ipv6Addr;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::header::room;
use crate::{Header, MacAddress, WireError};

/// The port of servers and relay agents (§7.2).
pub const SERVER_PORT: u16 = 547;
/// The port of clients (§7.2).
pub const CLIENT_PORT: u16 = 546;
/// The group that relay agents and servers of a link listen to (§7.1).
pub const ALL_RELAY_AGENTS_AND_SERVERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 1, 2);
/// Relay agents that a message passes at most (§7.6, HOP_COUNT_LIMIT).
pub const HOP_COUNT_LIMIT: u8 = 8;
/// Bytes in front of the options of a client's or server's message.
pub const MESSAGE_HEADER_LEN: usize = 4;
/// A lifetime without end (§7.7).
pub const INFINITY_S: u32 = u32::MAX;

/// Types of messages (§7.3).
pub mod message {
    /// A client looks for servers.
    pub const SOLICIT: u8 = 1;
    /// A server answers that.
    pub const ADVERTISE: u8 = 2;
    /// A client asks for addresses or prefixes.
    pub const REQUEST: u8 = 3;
    /// Are the addresses right for the link?
    pub const CONFIRM: u8 = 4;
    /// A client wants to keep what it has.
    pub const RENEW: u8 = 5;
    /// The same, of any server.
    pub const REBIND: u8 = 6;
    /// A server's answer.
    pub const REPLY: u8 = 7;
    /// A client needs something no more.
    pub const RELEASE: u8 = 8;
    /// Somebody else has an address.
    pub const DECLINE: u8 = 9;
    /// A server asks a client to ask again.
    pub const RECONFIGURE: u8 = 10;
    /// A client asks for settings alone.
    pub const INFORMATION_REQUEST: u8 = 11;
    /// From a relay agent towards the server.
    pub const RELAY_FORWARD: u8 = 12;
    /// From the server towards a relay agent.
    pub const RELAY_REPLY: u8 = 13;
}

/// Numbers of options (§21).
pub mod option {
    /// Which client (§21.2).
    pub const CLIENT_ID: u16 = 1;
    /// Which server (§21.3).
    pub const SERVER_ID: u16 = 2;
    /// Addresses that are not temporary (§21.4).
    pub const IA_NA: u16 = 3;
    /// One of them (§21.6).
    pub const IA_ADDRESS: u16 = 5;
    /// Options that the client asks for (§21.7).
    pub const OPTION_REQUEST: u16 = 6;
    /// How gladly a server serves (§21.8).
    pub const PREFERENCE: u16 = 7;
    /// Time since the client began the exchange, 10 ms (§21.9).
    pub const ELAPSED_TIME: u16 = 8;
    /// The message that is relayed (§21.10).
    pub const RELAY_MESSAGE: u16 = 9;
    /// What went wrong (§21.13).
    pub const STATUS_CODE: u16 = 13;
    /// Two messages are enough (§21.14).
    pub const RAPID_COMMIT: u16 = 14;
    /// By which interface the client came (§21.18).
    pub const INTERFACE_ID: u16 = 18;
    /// Name servers (RFC 3646).
    pub const NAME_SERVERS: u16 = 23;
    /// Delegated prefixes (§21.21).
    pub const IA_PD: u16 = 25;
    /// One of them (§21.22).
    pub const IA_PREFIX: u16 = 26;
    /// Which host is at the remote end of the circuit (RFC 4649).
    pub const REMOTE_ID: u16 = 37;
    /// The client's VPN (RFC 6607 §3.2).
    pub const VSS: u16 = 68;
    /// The client's link-layer address (RFC 6939).
    pub const CLIENT_LINK_LAYER_ADDRESS: u16 = 79;
    /// The longest time between two Solicit messages, seconds (§21.24).
    pub const SOL_MAX_RT: u16 = 82;
}

/// Status codes (§21.13).
pub mod status {
    /// All is well.
    pub const SUCCESS: u16 = 0;
    /// The server has no addresses.
    pub const NO_ADDRESSES: u16 = 2;
    /// The server does not know the client's addresses or prefixes.
    pub const NO_BINDING: u16 = 3;
    /// The addresses are not right for the link.
    pub const NOT_ON_LINK: u16 = 4;
    /// The server has no prefixes.
    pub const NO_PREFIXES: u16 = 6;
}

/// The type of a DUID made of a link-layer address (§11.4).
const DUID_LL: u16 = 3;
/// The hardware type of Ethernet.
pub const ETHERNET: u16 = 1;

/// The DUID of the device with this MAC address, 10 bytes (§11.4).
pub fn duid_ll(mac: MacAddress) -> [u8; 10] {
    let mut out = [0; 10];
    out[..2].copy_from_slice(&DUID_LL.to_be_bytes());
    out[2..4].copy_from_slice(&ETHERNET.to_be_bytes());
    out[4..].copy_from_slice(&mac.0);
    out
}

malformations! {
    /// Why a message is refused.
    pub enum Dhcp6Malformation {
        /// §8, §9.
        Truncated = "truncated", "shorter than the header of its type";
        /// §21.1.
        Options = "options-truncated", "an option that runs beyond the message";
        /// §9: there is nothing to relay.
        NoMessage = "no-relay-message", "a relay agent's message without a relayed one";
    }
}

/// The fixed part of a relay agent's message on packet bytes, 34 bytes (§9).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct RelayHeader {
    /// Relay-forward or Relay-reply.
    pub message_type: u8,
    /// Relay agents passed before.
    pub hop_count: u8,
    link_address: [u8; 16],
    peer_address: [u8; 16],
}

impl Header for RelayHeader {
    const NAME: &'static str = "DHCPv6 relay";
}

impl RelayHeader {
    /// A header.
    pub fn new(message_type: u8, hop_count: u8, link: Ipv6Addr, peer: Ipv6Addr) -> Self {
        let (link_address, peer_address) = (link.octets(), peer.octets());
        Self { message_type, hop_count, link_address, peer_address }
    }

    /// An address of the link that the client is on; unspecified when another relay agent says it.
    pub fn link_address(&self) -> Ipv6Addr {
        self.link_address.into()
    }

    /// Who sent what is relayed, or gets it.
    pub fn peer_address(&self) -> Ipv6Addr {
        self.peer_address.into()
    }
}

/// Walks over options.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a>(&'a [u8]);

impl<'a> Options<'a> {
    /// Over these bytes.
    pub fn new(bytes: &'a [u8]) -> Options<'a> {
        Options(bytes)
    }

    /// The data of the first option of this number.
    pub fn find(self, code: u16) -> Option<&'a [u8]> {
        self.flatten().find(|(found, _)| *found == code).map(|(_, data)| data)
    }

    /// The status code (§21.13); success when none is there, or it has no code.
    pub fn status(self) -> u16 {
        let code = self.find(option::STATUS_CODE).and_then(|data| data.first_chunk::<2>());
        code.map_or(status::SUCCESS, |code| u16::from_be_bytes(*code))
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<(u16, &'a [u8]), Dhcp6Malformation>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let split = self.0.split_first_chunk::<4>().and_then(|([a, b, c, d], rest)| {
            let (code, length) = (u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d]));
            let (data, rest) = rest.split_at_checked(length.into())?;
            Some((code, data, rest))
        });
        let Some((code, data, rest)) = split else {
            self.0 = &[];
            return Some(Err(Dhcp6Malformation::Options));
        };
        self.0 = rest;
        Some(Ok((code, data)))
    }
}

/// A message of a client or server whose lengths have been checked.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Its type.
    pub message_type: u8,
    /// The client's number of the transaction, 24 bits.
    pub transaction: u32,
    /// Its options.
    pub options: Options<'a>,
}

/// Checks the length of every option.
fn checked(bytes: &[u8]) -> Result<Options<'_>, Dhcp6Malformation> {
    for option in Options::new(bytes) {
        option?;
    }
    Ok(Options::new(bytes))
}

impl<'a> Message<'a> {
    /// Reads a message that is no relay agent's.
    ///
    /// # Errors
    /// The message must be discarded, for the reason that is returned.
    pub fn parse(bytes: &'a [u8]) -> Result<Message<'a>, Dhcp6Malformation> {
        let head = bytes.split_first_chunk::<MESSAGE_HEADER_LEN>();
        let ([message_type, a, b, c], rest) = head.ok_or(Dhcp6Malformation::Truncated)?;
        Ok(Message {
            message_type: *message_type,
            transaction: u32::from_be_bytes([0, *a, *b, *c]),
            options: checked(rest)?,
        })
    }

    /// The prefixes in its IA_PD options.
    pub fn prefixes(&self) -> impl Iterator<Item = IaPrefix> + use<'a> {
        self.options.flatten().filter(|(code, _)| *code == option::IA_PD).flat_map(|(_, data)| {
            // IAID, T1, T2 stand in front of the options (§21.21).
            let inside = Options::new(data.get(12..).unwrap_or_default()).flatten();
            let prefixes = inside.filter(|(code, _)| *code == option::IA_PREFIX);
            prefixes.filter_map(|(_, data)| IaPrefix::parse(data))
        })
    }
}

/// A relay agent's message whose lengths have been checked.
#[derive(Clone, Copy, Debug)]
pub struct RelayMessage<'a> {
    /// The fixed part.
    pub header: &'a RelayHeader,
    /// Its options.
    pub options: Options<'a>,
    /// The message that it carries.
    pub message: &'a [u8],
}

impl<'a> RelayMessage<'a> {
    /// Reads a relay agent's message.
    ///
    /// # Errors
    /// The message must be discarded, for the reason that is returned.
    pub fn parse(bytes: &'a [u8]) -> Result<RelayMessage<'a>, Dhcp6Malformation> {
        let (header, rest) = RelayHeader::split(bytes).ok_or(Dhcp6Malformation::Truncated)?;
        let options = checked(rest)?;
        let message = options.find(option::RELAY_MESSAGE).filter(|message| !message.is_empty());
        Ok(RelayMessage { header, options, message: message.ok_or(Dhcp6Malformation::NoMessage)? })
    }
}

/// An identity association: addresses or prefixes of a client under one identifier (§21.4, §21.21).
#[derive(Clone, Copy, Debug)]
pub struct Ia<'a> {
    /// Its identifier.
    pub iaid: u32,
    /// T1: when its server is asked for more time; 0 when the client may choose.
    pub t1_s: u32,
    /// T2: when any server is; 0 when the client may choose.
    pub t2_s: u32,
    /// The addresses or prefixes, and a status code.
    pub options: Options<'a>,
}

impl<'a> Ia<'a> {
    /// Bytes in front of the options.
    pub const LEN: usize = 12;

    /// Reads the data of an IA_NA or IA_PD option; `None` when a length in it is wrong.
    pub fn parse(data: &'a [u8]) -> Option<Ia<'a>> {
        let (head, rest) = data.split_first_chunk::<{ Ia::LEN }>()?;
        let word =
            |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let options = checked(rest).ok()?;
        Some(Ia { iaid: word(0), t1_s: word(4), t2_s: word(8), options })
    }

    /// The data of an option with no addresses or prefixes yet, and times that the server may
    /// choose.
    pub fn head(iaid: u32) -> [u8; Ia::LEN] {
        let mut out = [0; Ia::LEN];
        out[..4].copy_from_slice(&iaid.to_be_bytes());
        out
    }
}

/// A leased address (§21.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IaAddress {
    /// The address.
    pub address: Ipv6Addr,
    /// It is preferred for so long.
    pub preferred_s: u32,
    /// It is leased for so long.
    pub valid_s: u32,
}

impl IaAddress {
    /// Bytes without options.
    pub const LEN: usize = 24;

    /// Reads the data of an IA Address option; `None` when it is too short.
    pub fn parse(data: &[u8]) -> Option<IaAddress> {
        let (address, rest) = data.split_first_chunk::<16>()?;
        let (preferred, rest) = rest.split_first_chunk::<4>()?;
        let valid = rest.first_chunk::<4>()?;
        Some(IaAddress {
            address: Ipv6Addr::from(*address),
            preferred_s: u32::from_be_bytes(*preferred),
            valid_s: u32::from_be_bytes(*valid),
        })
    }

    /// The data of an IA Address option.
    pub fn bytes(&self) -> [u8; IaAddress::LEN] {
        let mut out = [0; IaAddress::LEN];
        out[..16].copy_from_slice(&self.address.octets());
        out[16..20].copy_from_slice(&self.preferred_s.to_be_bytes());
        out[20..].copy_from_slice(&self.valid_s.to_be_bytes());
        out
    }
}

/// A delegated prefix (§21.22).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IaPrefix {
    /// It is preferred for so long.
    pub preferred_s: u32,
    /// It is delegated for so long.
    pub valid_s: u32,
    /// Bits of it that count.
    pub length: u8,
    /// Its first address, as it was sent.
    pub prefix: Ipv6Addr,
}

impl IaPrefix {
    /// Bytes without options.
    pub const LEN: usize = 25;

    /// Reads the data of an IA Prefix option; `None` when it is too short.
    pub fn parse(data: &[u8]) -> Option<IaPrefix> {
        let (preferred, rest) = data.split_first_chunk::<4>()?;
        let (valid, rest) = rest.split_first_chunk::<4>()?;
        let (length, rest) = rest.split_first()?;
        let prefix = rest.first_chunk::<16>()?;
        Some(IaPrefix {
            preferred_s: u32::from_be_bytes(*preferred),
            valid_s: u32::from_be_bytes(*valid),
            length: *length,
            prefix: Ipv6Addr::from(*prefix),
        })
    }

    /// The data of an IA Prefix option.
    pub fn bytes(&self) -> [u8; IaPrefix::LEN] {
        let mut out = [0; IaPrefix::LEN];
        out[..4].copy_from_slice(&self.preferred_s.to_be_bytes());
        out[4..8].copy_from_slice(&self.valid_s.to_be_bytes());
        out[8] = self.length;
        out[9..].copy_from_slice(&self.prefix.octets());
        out
    }
}

/// Why an option is not written.
const TOO_LONG: &str = "an option has 65,535 bytes of data at most";

/// Writes options one after another.
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    /// Begins a relay agent's message.
    ///
    /// # Errors
    /// `out` is too short.
    pub fn relay(out: &'a mut [u8], header: &RelayHeader) -> Result<Writer<'a>, WireError> {
        let at = header.write(out)?;
        Ok(Writer { out, at })
    }

    /// Begins a message of a client or server, whose transaction has 24 bits.
    ///
    /// # Errors
    /// `out` is too short.
    pub fn message(
        out: &'a mut [u8],
        message_type: u8,
        transaction: u32,
    ) -> Result<Writer<'a>, WireError> {
        let head = room(out, MESSAGE_HEADER_LEN)?;
        head[..MESSAGE_HEADER_LEN].copy_from_slice(&transaction.to_be_bytes());
        head[0] = message_type;
        Ok(Writer { out, at: MESSAGE_HEADER_LEN })
    }

    /// Writes an option whose data begins with `head`, and goes on with options that `inside`
    /// writes.
    ///
    /// # Errors
    /// As those of [`put`](Self::put).
    pub fn put_nested(
        &mut self,
        code: u16,
        head: &[u8],
        inside: impl FnOnce(&mut Writer<'a>) -> Result<(), WireError>,
    ) -> Result<(), WireError> {
        let begin = self.at;
        self.put(code, head)?;
        inside(self)?;
        let length = u16::try_from(self.at - begin - 4)
            .map_err(|_| WireError::Invalid { header: RelayHeader::NAME, reason: TOO_LONG })?;
        self.out[begin + 2..begin + 4].copy_from_slice(&length.to_be_bytes());
        Ok(())
    }

    /// Writes an option.
    ///
    /// # Errors
    /// It has more than 65,535 bytes, or there is no room.
    pub fn put(&mut self, code: u16, data: &[u8]) -> Result<(), WireError> {
        let length = u16::try_from(data.len())
            .map_err(|_| WireError::Invalid { header: RelayHeader::NAME, reason: TOO_LONG })?;
        let end = self.at + 4 + data.len();
        let place = &mut room(self.out, end)?[self.at..];
        place[..2].copy_from_slice(&code.to_be_bytes());
        place[2..4].copy_from_slice(&length.to_be_bytes());
        place[4..].copy_from_slice(data);
        self.at = end;
        Ok(())
    }

    /// The number of bytes.
    pub fn finish(self) -> usize {
        self.at
    }
}

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn relayed(header: RelayHeader, options: &[(u16, Vec<u8>)]) -> Vec<u8> {
        let mut out = vec![0; 8192];
        let mut writer = Writer::relay(&mut out, &header).unwrap();
        options.iter().for_each(|(code, data)| writer.put(*code, data).unwrap());
        let length = writer.finish();
        out.truncate(length);
        out
    }

    #[test]
    fn fields_stand_where_the_rfc_has_them() {
        let link: Ipv6Addr = "2001:db8::1".parse().unwrap();
        let peer: Ipv6Addr = "fe80::9".parse().unwrap();
        let header = RelayHeader::new(message::RELAY_FORWARD, 3, link, peer);
        let bytes = relayed(header, &[(option::RELAY_MESSAGE, vec![1, 0, 0, 7])]);
        assert_eq!((&bytes[..2], &bytes[2..18]), (&[12, 3][..], &link.octets()[..]));
        assert_eq!(&bytes[18..34], &peer.octets());
        assert_eq!(&bytes[34..], &[0, 9, 0, 4, 1, 0, 0, 7]);
        let read = RelayMessage::parse(&bytes).unwrap();
        assert_eq!(read.message, [1, 0, 0, 7]);
        let inner = Message::parse(read.message).unwrap();
        assert_eq!((inner.message_type, inner.transaction), (message::SOLICIT, 7));
    }

    #[test]
    fn messages_whose_lengths_are_wrong_are_refused() {
        let header =
            RelayHeader::new(message::RELAY_FORWARD, 0, Ipv6Addr::UNSPECIFIED, Ipv6Addr::LOCALHOST);
        let good = relayed(header, &[(option::RELAY_MESSAGE, vec![1, 0, 0, 7])]);
        let refused = |bytes: &[u8]| RelayMessage::parse(bytes).map(|_| ()).unwrap_err();
        assert_eq!(refused(&good[..33]), Dhcp6Malformation::Truncated);
        assert_eq!(refused(&good[..34]), Dhcp6Malformation::NoMessage);
        for cut in 35..good.len() {
            assert_eq!(refused(&good[..cut]), Dhcp6Malformation::Options);
        }
        let empty = relayed(header, &[(option::RELAY_MESSAGE, vec![])]);
        assert_eq!(refused(&empty), Dhcp6Malformation::NoMessage);
        assert!(Message::parse(&[1, 0, 0]).is_err());
    }

    #[test]
    fn an_identity_association_is_read_as_it_was_written() {
        let mac = MacAddress([2, 0, 0, 0, 0, 9]);
        assert_eq!(duid_ll(mac), [0, 3, 0, 1, 2, 0, 0, 0, 0, 9]);
        let one = IaAddress { address: Ipv6Addr::LOCALHOST, preferred_s: 7, valid_s: 9 };
        let mut out = vec![0; 200];
        let mut writer = Writer::message(&mut out, message::REQUEST, 0x0012_3456).unwrap();
        writer.put(option::CLIENT_ID, &duid_ll(mac)).unwrap();
        let inside = |writer: &mut Writer<'_>| writer.put(option::IA_ADDRESS, &one.bytes());
        writer.put_nested(option::IA_NA, &Ia::head(77), inside).unwrap();
        writer.put(option::STATUS_CODE, &[0, 3, b'x']).unwrap();
        let length = writer.finish();
        out.truncate(length);
        assert_eq!(out[..4], [3, 0x12, 0x34, 0x56]);
        assert_eq!(out[18..22], [0, 3, 0, 12 + 4 + 24]);
        let read = Message::parse(&out).unwrap();
        let data = read.options.find(option::IA_NA).unwrap();
        let ia = Ia::parse(data).unwrap();
        assert_eq!((ia.iaid, ia.t1_s, ia.t2_s, ia.options.status()), (77, 0, 0, status::SUCCESS));
        let found = ia.options.find(option::IA_ADDRESS).and_then(IaAddress::parse);
        assert_eq!((found, read.options.status()), (Some(one), status::NO_BINDING));
        for cut in 0..data.len() {
            let whole = cut == Ia::LEN;
            assert_eq!(Ia::parse(&data[..cut]).is_some(), whole, "{cut}");
        }
        assert_eq!(IaAddress::parse(&one.bytes()[..23]), None);
    }

    proptest! {
        #[test]
        fn options_come_back(
            hops: u8, link: u128, peer: u128,
            options in prop::collection::vec(
                (10u16.., prop::collection::vec(any::<u8>(), 0..300)), 0..8)
        ) {
            let header = RelayHeader::new(message::RELAY_REPLY, hops, link.into(), peer.into());
            let mut all = options.clone();
            all.push((option::RELAY_MESSAGE, vec![7, 1, 2, 3]));
            let bytes = relayed(header, &all);
            let read = RelayMessage::parse(&bytes).unwrap();
            prop_assert_eq!(read.header.hop_count, hops);
            prop_assert_eq!(read.header.link_address().to_bits(), link);
            prop_assert_eq!(read.header.peer_address().to_bits(), peer);
            let found: Vec<_> =
                read.options.flatten().map(|(code, data)| (code, data.to_vec())).collect();
            prop_assert_eq!(found, all);
        }

        #[test]
        fn delegated_prefixes_come_back(
            preferred_s: u32, valid_s: u32, length: u8, prefix: u128, iaid: u32
        ) {
            let one = IaPrefix { preferred_s, valid_s, length, prefix: prefix.into() };
            prop_assert_eq!(IaPrefix::parse(&one.bytes()), Some(one));
            prop_assert_eq!(IaPrefix::parse(&one.bytes()[..24]), None);
            let mut bytes = vec![message::REPLY, 0, 0, 1];
            bytes.extend([0, 25, 0, 12 + 4 + 25]);
            bytes.extend(iaid.to_be_bytes());
            bytes.extend([0; 8]);
            bytes.extend([0, 26, 0, 25]);
            bytes.extend(one.bytes());
            let read: Vec<_> = Message::parse(&bytes).unwrap().prefixes().collect();
            prop_assert_eq!(read, [one]);
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(message) = Message::parse(&bytes) {
                let _ = message.prefixes().count();
                for (_, data) in message.options.flatten() {
                    let _ = (Ia::parse(data).map(|ia| ia.options.status()), IaAddress::parse(data));
                }
            }
            let _ = RelayMessage::parse(&bytes);
        }
    }
}
