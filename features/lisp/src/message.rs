//! Control messages as bytes (RFC 9301 §5): Map-Request, Map-Reply, and the encapsulated control
//! message. EIDs with an instance ID are in canonical form (LCAF type 2, RFC 8060 §3.1).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use quiver_control::IpPrefix;

use crate::database::{Action, Eid, LOCATORS_MAX, Locator};

/// Records of one message that are read at most.
pub const RECORDS_MAX: usize = 32;

const MAP_REQUEST: u8 = 1;
const MAP_REPLY: u8 = 2;
const ENCAPSULATED: u8 = 8;
/// Address families (IANA address family numbers).
const AFI_NONE: u16 = 0;
const AFI_IP4: u16 = 1;
const AFI_IP6: u16 = 2;
const AFI_LCAF: u16 = 16_387;
/// LCAF type of an instance ID.
const LCAF_INSTANCE: u8 = 2;
/// Bytes of an LCAF address behind its length field, before the address: the instance ID.
const INSTANCE_BYTES: u16 = 4;
/// In the first word of a Map-Request: this is a solicitation, it probes, a reply is for the
/// sender.
const PROBE: u32 = 1 << 25;
const SMR: u32 = 1 << 24;
/// Locator flags: local, and reachable (RFC 9301 §5.4).
const LOCAL: u16 = 4;
const REACHABLE: u16 = 1;

/// Why a message cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// Fewer bytes than it says.
    #[error("truncated")]
    Truncated,
    /// A type that is not known here.
    #[error("type {0}")]
    Type(u8),
    /// An address of a family that is not known here.
    #[error("address family {0}")]
    Family(u16),
    /// A prefix that is longer than its address.
    #[error("mask of {0} bits")]
    Mask(u8),
    /// More of something than is read.
    #[error("too many records or locators")]
    TooMany,
}

/// A request for mappings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapRequest {
    /// A number that the reply has, too.
    pub nonce: u64,
    /// Does it ask whether a locator is reachable (RLOC-probe)?
    pub is_probe: bool,
    /// Does it say that a mapping has changed (SMR)?
    pub solicits: bool,
    /// Where the reply may be sent.
    pub itr_locators: Vec<IpAddr>,
    /// The EIDs.
    pub eids: Vec<Eid>,
}

/// A mapping in a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// How long it is valid, minutes.
    pub ttl_minutes: u32,
    /// Where there are no locators.
    pub action: Action,
    /// Does it come from the site itself?
    pub is_authoritative: bool,
    /// The EID.
    pub eid: Eid,
    /// Its locators.
    pub locators: Vec<Locator>,
}

/// Mappings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapReply {
    /// That of the request.
    pub nonce: u64,
    /// Does it answer a probe?
    pub is_probe: bool,
    /// The mappings.
    pub records: Vec<Record>,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Map-Request.
    Request(MapRequest),
    /// Map-Reply.
    Reply(MapReply),
    /// An encapsulated control message: the IP packet with the message.
    Encapsulated(Vec<u8>),
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], MessageError> {
        let (field, rest) = self.0.split_first_chunk::<N>().ok_or(MessageError::Truncated)?;
        self.0 = rest;
        Ok(*field)
    }

    fn half(&mut self) -> Result<u16, MessageError> {
        self.take().map(u16::from_be_bytes)
    }

    fn word(&mut self) -> Result<u32, MessageError> {
        self.take().map(u32::from_be_bytes)
    }

    fn long(&mut self) -> Result<u64, MessageError> {
        self.take().map(u64::from_be_bytes)
    }

    /// An address of a family; `None` for no address.
    fn address(&mut self, family: u16) -> Result<Option<IpAddr>, MessageError> {
        match family {
            AFI_NONE => Ok(None),
            AFI_IP4 => self.take::<4>().map(|bytes| Some(Ipv4Addr::from(bytes).into())),
            AFI_IP6 => self.take::<16>().map(|bytes| Some(Ipv6Addr::from(bytes).into())),
            other => Err(MessageError::Family(other)),
        }
    }

    /// An EID: its instance and its address.
    fn eid(&mut self) -> Result<(u32, Option<IpAddr>), MessageError> {
        let family = self.half()?;
        if family != AFI_LCAF {
            return Ok((0, self.address(family)?));
        }
        let [_, _, kind, _] = self.take::<4>()?;
        let _length = self.half()?;
        if kind != LCAF_INSTANCE {
            return Err(MessageError::Family(AFI_LCAF));
        }
        let instance = self.word()?;
        let family = self.half()?;
        Ok((instance, self.address(family)?))
    }

    fn prefix(&mut self, length: u8) -> Result<Eid, MessageError> {
        let (vni, address) = self.eid()?;
        let address = address.ok_or(MessageError::Family(AFI_NONE))?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        match length <= most {
            true => Ok(Eid::new(vni, IpPrefix { address, length })),
            false => Err(MessageError::Mask(length)),
        }
    }
}

fn put_address(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => {
            out.extend(AFI_IP4.to_be_bytes());
            out.extend(address.octets());
        }
        IpAddr::V6(address) => {
            out.extend(AFI_IP6.to_be_bytes());
            out.extend(address.octets());
        }
    }
}

fn put_eid(out: &mut Vec<u8>, eid: &Eid) {
    if eid.vni == 0 {
        return put_address(out, eid.prefix.address);
    }
    let address_bytes = if eid.prefix.address.is_ipv4() { 4 } else { 16 };
    out.extend(AFI_LCAF.to_be_bytes());
    out.extend([0, 0, LCAF_INSTANCE, 0]);
    out.extend((INSTANCE_BYTES + 2 + address_bytes).to_be_bytes());
    out.extend(eid.vni.to_be_bytes());
    put_address(out, eid.prefix.address);
}

fn read_request(first: u32, reader: &mut Reader<'_>) -> Result<MapRequest, MessageError> {
    let records = first as u8;
    let itr_locators_count = (first >> 8 & 0x1f) + 1;
    if usize::from(records) > RECORDS_MAX {
        return Err(MessageError::TooMany);
    }
    let nonce = reader.long()?;
    let _source = reader.eid()?;
    let mut itr_locators = Vec::new();
    for _ in 0..itr_locators_count {
        let family = reader.half()?;
        itr_locators.extend(reader.address(family)?);
    }
    let mut eids = Vec::new();
    for _ in 0..records {
        let [_, length] = reader.take::<2>()?;
        eids.push(reader.prefix(length)?);
    }
    let (is_probe, solicits) = (first & PROBE != 0, first & SMR != 0);
    Ok(MapRequest { nonce, is_probe, solicits, itr_locators, eids })
}

fn read_record(reader: &mut Reader<'_>) -> Result<Record, MessageError> {
    let ttl_minutes = reader.word()?;
    let [count, length, flags, _] = reader.take::<4>()?;
    let _map_version = reader.half()?;
    if usize::from(count) > LOCATORS_MAX {
        return Err(MessageError::TooMany);
    }
    let eid = reader.prefix(length)?;
    let mut locators = Vec::new();
    for _ in 0..count {
        let [priority, weight, _, _] = reader.take::<4>()?;
        let _flags = reader.half()?;
        let family = reader.half()?;
        let address = reader.address(family)?;
        locators.extend(address.map(|address| Locator { address, priority, weight }));
    }
    locators.sort();
    let action = Action::ALL.get(usize::from(flags >> 5)).copied().unwrap_or(Action::Drop);
    let is_authoritative = flags & 0x10 != 0;
    Ok(Record { ttl_minutes, action, is_authoritative, eid, locators })
}

impl Message {
    /// Reads a message.
    ///
    /// # Errors
    /// It is truncated, or something in it is not known here.
    pub fn read(bytes: &[u8]) -> Result<Message, MessageError> {
        let mut reader = Reader(bytes);
        let first = reader.word()?;
        match (first >> 28) as u8 {
            MAP_REQUEST => read_request(first, &mut reader).map(Message::Request),
            MAP_REPLY => {
                let count = usize::from(first as u8);
                if count > RECORDS_MAX {
                    return Err(MessageError::TooMany);
                }
                let nonce = reader.long()?;
                let records =
                    (0..count).map(|_| read_record(&mut reader)).collect::<Result<_, _>>()?;
                let is_probe = first >> 27 & 1 != 0;
                Ok(Message::Reply(MapReply { nonce, is_probe, records }))
            }
            ENCAPSULATED => Ok(Message::Encapsulated(reader.0.to_vec())),
            other => Err(MessageError::Type(other)),
        }
    }
}

impl MapRequest {
    /// The message.
    pub fn write(&self) -> Vec<u8> {
        let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
        let locators = self.itr_locators.len().clamp(1, 32);
        let first = u32::from(MAP_REQUEST) << 28
            | flag(self.is_probe, PROBE)
            | flag(self.solicits, SMR)
            | ((locators - 1) as u32) << 8
            | self.eids.len() as u32 & 0xff;
        let mut out = first.to_be_bytes().to_vec();
        out.extend(self.nonce.to_be_bytes());
        // No EID of the sender: whose packet asks is not said.
        out.extend(AFI_NONE.to_be_bytes());
        self.itr_locators.iter().take(locators).for_each(|to| put_address(&mut out, *to));
        for eid in &self.eids {
            out.extend([0, eid.prefix.length]);
            put_eid(&mut out, eid);
        }
        out
    }
}

impl MapReply {
    /// The message.
    pub fn write(&self) -> Vec<u8> {
        let first = u32::from(MAP_REPLY) << 28
            | u32::from(self.is_probe) << 27
            | self.records.len() as u32 & 0xff;
        let mut out = first.to_be_bytes().to_vec();
        out.extend(self.nonce.to_be_bytes());
        for record in &self.records {
            out.extend(record.ttl_minutes.to_be_bytes());
            let action = Action::ALL.iter().position(|action| *action == record.action);
            let flags =
                (action.unwrap_or(0) as u8) << 5 | if record.is_authoritative { 0x10 } else { 0 };
            out.extend([record.locators.len() as u8, record.eid.prefix.length, flags, 0, 0, 0]);
            put_eid(&mut out, &record.eid);
            for locator in &record.locators {
                // Of multicast nothing is said: priority 255.
                out.extend([locator.priority, locator.weight, 255, 0]);
                out.extend((LOCAL | REACHABLE).to_be_bytes());
                put_address(&mut out, locator.address);
            }
        }
        out
    }
}

/// A message in an IP packet, encapsulated for a map resolver.
pub fn encapsulated(packet: &[u8]) -> Vec<u8> {
    let mut out = (u32::from(ENCAPSULATED) << 28).to_be_bytes().to_vec();
    out.extend(packet);
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn eid(vni: u32, address: &str, length: u8) -> Eid {
        Eid::new(vni, IpPrefix { address: address.parse().expect("an address"), length })
    }

    #[test]
    fn a_request_is_read_as_it_is_written() {
        let request = MapRequest {
            nonce: 0x0102_0304_0506_0708,
            is_probe: false,
            solicits: true,
            itr_locators: vec![[192, 0, 2, 1].into(), Ipv6Addr::LOCALHOST.into()],
            eids: vec![eid(0, "10.0.0.0", 8), eid(7, "2001:db8::", 32)],
        };
        let bytes = request.write();
        assert_eq!(bytes[..4], [0x11, 0, 1, 2]);
        assert_eq!(Message::read(&bytes), Ok(Message::Request(request)));
    }

    #[test]
    fn a_reply_is_read_as_it_is_written() {
        let locator = |address: &str, priority, weight| Locator {
            address: address.parse().expect("an address"),
            priority,
            weight,
        };
        let reply = MapReply {
            nonce: 9,
            is_probe: true,
            records: vec![
                Record {
                    ttl_minutes: 1440,
                    action: Action::None,
                    is_authoritative: true,
                    eid: eid(7, "10.1.0.0", 16),
                    locators: vec![locator("192.0.2.1", 1, 50), locator("2001:db8::1", 2, 0)],
                },
                Record {
                    ttl_minutes: 15,
                    action: Action::NativelyForward,
                    is_authoritative: false,
                    eid: eid(0, "2001:db8:1::", 48),
                    locators: Vec::new(),
                },
            ],
        };
        assert_eq!(Message::read(&reply.write()), Ok(Message::Reply(reply)));
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        let read = |bytes: &[u8]| Message::read(bytes).unwrap_err();
        assert_eq!(read(&[0x20, 0, 0]), MessageError::Truncated);
        assert_eq!(read(&[0x30, 0, 0, 0]), MessageError::Type(3));
        assert_eq!(read(&[0x20, 0, 0, 33, 0, 0]), MessageError::TooMany);
        let reply =
            [&[0x20, 0, 0, 1][..], &[0; 12], &[0, 33, 0, 0, 0, 0, 0, 1, 10, 0, 0, 0]].concat();
        assert_eq!(read(&reply), MessageError::Mask(33));
        let reply =
            [&[0x20, 0, 0, 1][..], &[0; 12], &[99, 24, 0, 0, 0, 0, 0, 1, 10, 0, 0, 0]].concat();
        assert_eq!(read(&reply), MessageError::TooMany);
    }

    proptest! {
        #[test]
        fn no_bytes_panic_and_what_is_read_reads_again(
            kind in prop::sample::select(vec![1u8, 2, 8]),
            bytes in prop::collection::vec(any::<u8>(), 0..120),
        ) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = kind << 4 | *first & 0xf;
            }
            if let Ok(Message::Reply(reply)) = Message::read(&bytes) {
                prop_assert_eq!(Message::read(&reply.write()), Ok(Message::Reply(reply)));
            }
        }
    }
}
