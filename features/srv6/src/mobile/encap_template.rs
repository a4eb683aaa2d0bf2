//! What a gateway puts in front of users' packets: an IPv6 header, with an SRH where there is more
//! than one segment, made when the gateway is, and where the arguments of each packet go. It stands
//! in a row for workers.

use std::net::Ipv6Addr;

use quiver_control::{Args, Refusal};
use quiver_encap::entries::EncapEntry;
use quiver_tables::prefix::Ip6Prefix;
use quiver_wire::srh::{self, Form, SEGMENT_BYTES, segment_offset};
use quiver_wire::{Header, Ip6Header, IpProtocol};

use super::args;

/// Segments in front of the gateway's own at most: what a row has room for.
pub(super) const SEGMENTS_MAX: usize = 9;
/// Where the SRH names what follows, and where it says its length and tag.
pub(super) const SRH_AT: usize = Ip6Header::LEN;
/// The destination of an IPv6 header.
const DESTINATION_AT: usize = 24;
/// The source of an IPv6 header.
const SOURCE_AT: usize = 8;
/// In place of a length: the source stands in the header, or is the packet's own.
const SOURCE_FIXED: u8 = 0xff;
const SOURCE_AS_CAME: u8 = 0xfe;

/// Flags of a row.
const SID_IS_FIRST: u8 = 1;
const DROP_IN: u8 = 2;
const ONLY_IP4: u8 = 4;
const ONLY_IP6: u8 = 8;
const NOT_IP: u8 = 16;
const HAS_SRH: u8 = 32;

/// Where the source address comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// This one.
    Fixed(Ipv6Addr),
    /// The packet's own.
    AsCame,
    /// This prefix, the IPv4 source of the packet, and its UDP source port where there is room
    /// (figure 10).
    Embeds(Ip6Prefix),
}

/// What the users' packets are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Payload {
    /// IPv4 or IPv6, as the first bits of each say.
    #[default]
    EitherIp,
    /// PDU session type IPv4.
    Ip4,
    /// PDU session type IPv6.
    Ip6,
    /// PDU session type Ethernet.
    NotIp,
}

impl Payload {
    const WORDS: [(&'static str, Payload); 3] =
        [("ipv4", Payload::Ip4), ("ipv6", Payload::Ip6), ("non-ip", Payload::NotIp)];

    /// Of the word behind `nhtype`.
    pub fn of(args: &Args<'_>) -> Result<Payload, Refusal> {
        let word: Option<&str> = args.optional("nhtype")?;
        let known = Payload::WORDS.iter().find(|(known, _)| word == Some(known));
        Ok(known.map_or(Payload::EitherIp, |(_, payload)| *payload))
    }

    /// ` nhtype ipv4`, or nothing.
    pub fn words(self) -> String {
        let known = Payload::WORDS.iter().find(|(_, payload)| *payload == self);
        known.map_or_else(String::new, |(word, _)| format!(" nhtype {word}"))
    }

    fn flags(self) -> u8 {
        match self {
            Payload::EitherIp => 0,
            Payload::Ip4 => ONLY_IP4,
            Payload::Ip6 => ONLY_IP6,
            Payload::NotIp => NOT_IP,
        }
    }
}

/// The words of the commands that a recipe is made of, besides the prefix.
pub(super) const SYNTAX: &str = "[nhtype <nhtype:ipv4|ipv6|non-ip>]";

/// What to put in front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EncapTemplate {
    /// The prefix of the SID that gets the arguments.
    pub sid: Ip6Prefix,
    /// Segments in front of that one.
    pub path: Vec<Ipv6Addr>,
    pub source: Source,
    pub payload: Payload,
    /// What leaves SRv6 again is GTP-U as it came: the destination stands behind the SID (IPv6),
    /// and echo requests are the other end's to answer.
    pub drop_in: bool,
    /// Does the SID hold the IPv4 destination?
    pub has_ip4: bool,
}

impl EncapTemplate {
    /// Is the packet's own destination a segment behind the SID (RFC 9433 §6.4, S07)?
    fn keeps_destination(&self) -> bool {
        self.drop_in && !self.has_ip4
    }

    /// The header of users' packets, or that of messages, which has an SRH always.
    pub fn header(&self, is_message: bool) -> Vec<u8> {
        let sid = Ipv6Addr::from_bits(self.sid.first());
        let mut path = self.path.clone();
        path.push(sid);
        if self.keeps_destination() {
            path.push(Ipv6Addr::UNSPECIFIED);
        }
        let has_srh = is_message || path.len() > 1;
        let source = match self.source {
            Source::Fixed(source) => source,
            Source::AsCame => Ipv6Addr::UNSPECIFIED,
            Source::Embeds(prefix) => Ipv6Addr::from_bits(prefix.first()),
        };
        let first = path.first().copied().unwrap_or(sid);
        let srh = srh::Repr::new(&path, Form::Full, IpProtocol::NO_NEXT_HEADER);
        let behind = if has_srh { srh.len() } else { 0 };
        let next = if has_srh { IpProtocol::ROUTING } else { IpProtocol::NO_NEXT_HEADER };
        let mut bytes = vec![0; Ip6Header::LEN + behind];
        let fixed = Ip6Header::new(source, first, next, 0, 0);
        let written = fixed.write(&mut bytes).and_then(|at| match has_srh {
            true => srh.emit(bytes.get_mut(at..).unwrap_or_default()),
            false => Ok(0),
        });
        assert!(written.is_ok(), "a header of {} segments", path.len());
        bytes
    }

    /// What the row of that header says.
    pub fn words(&self, is_message: bool, table: u32, message: u32) -> [u32; 3] {
        let has_srh = is_message || !self.path.is_empty() || self.keeps_destination();
        let in_list = SRH_AT + segment_offset(usize::from(self.keeps_destination()));
        let sid_at = if has_srh { in_list } else { DESTINATION_AT } as u8;
        let mut flags = self.payload.flags();
        for (flag, is_so) in
            [(SID_IS_FIRST, self.path.is_empty()), (DROP_IN, self.drop_in), (HAS_SRH, has_srh)]
        {
            flags |= if is_so { flag } else { 0 };
        }
        let source = match self.source {
            Source::Fixed(_) => SOURCE_FIXED,
            Source::AsCame => SOURCE_AS_CAME,
            Source::Embeds(prefix) => prefix.len(),
        };
        [u32::from_le_bytes([self.sid.len(), sid_at, source, flags]), table, message]
    }
}

/// What is written into a header for one packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filling {
    pub sid: u128,
    pub source: u128,
    pub destination: u128,
    pub class: u8,
    pub flow_label: u32,
    pub hops: u8,
    pub protocol: IpProtocol,
    /// Bytes behind the IPv6 header.
    pub payload_length: u16,
}

/// A row, as a recipe has written it.
#[derive(Clone, Copy)]
pub(super) struct Row<'a>(pub &'a EncapEntry);

impl Row<'_> {
    #[inline(always)]
    fn parts(self) -> [u8; 4] {
        self.0.word(0).to_le_bytes()
    }

    #[inline(always)]
    fn has(self, flag: u8) -> bool {
        self.parts()[3] & flag != 0
    }

    /// The table in which first segments are looked up.
    #[inline(always)]
    pub fn table(self) -> u32 {
        self.0.word(1)
    }

    /// The row for messages.
    #[inline(always)]
    pub fn message(self) -> u32 {
        self.0.word(2)
    }

    /// Does GTP-U go on as it came at the other end?
    #[inline(always)]
    pub fn is_drop_in(self) -> bool {
        self.has(DROP_IN)
    }

    /// The address at a place of the header.
    #[inline(always)]
    fn address(self, at: usize) -> u128 {
        let octets = self.0.header().get(at..).and_then(|rest| rest.first_chunk::<16>());
        octets.map_or(0, |octets| u128::from_be_bytes(*octets))
    }

    /// The SID with arguments of so many bits.
    #[inline(always)]
    pub fn sid(self, value: u128, width: u32) -> u128 {
        let [length, at, ..] = self.parts();
        args::place(self.address(at.into()), length, value, width)
    }

    /// Is there an SRH?
    #[inline(always)]
    pub fn has_srh(self) -> bool {
        self.has(HAS_SRH)
    }

    /// Do packets go to the SID first?
    #[inline(always)]
    pub fn leads_to_sid(self) -> bool {
        self.has(SID_IS_FIRST)
    }

    /// Where a packet with that SID goes first.
    #[inline(always)]
    pub fn first(self, sid: u128) -> u128 {
        if self.has(SID_IS_FIRST) { sid } else { self.address(DESTINATION_AT) }
    }

    /// The source of packets that came from `came`, with a UDP port.
    #[inline(always)]
    pub fn source(self, came: u128, port: u16) -> u128 {
        let [.., length, _] = self.parts();
        match length {
            SOURCE_FIXED => self.address(SOURCE_AT),
            SOURCE_AS_CAME => came,
            _ => {
                let (prefix, came) = (self.address(SOURCE_AT), came & 0xffff_ffff);
                match u32::from(length) + args::IP4_BITS + args::PORT_BITS <= 128 {
                    true => {
                        let both = came << args::PORT_BITS | u128::from(port);
                        args::place(prefix, length, both, args::IP4_BITS + args::PORT_BITS)
                    }
                    false => args::place(prefix, length, came, args::IP4_BITS),
                }
            }
        }
    }

    /// What the user's packet is; nothing when it is not what the gateway is for.
    #[inline(always)]
    pub fn protocol(self, payload: &[u8]) -> Option<IpProtocol> {
        let first = payload.first()?;
        if self.has(NOT_IP) {
            return Some(crate::endpoint::inner_packet::ETHERNET);
        }
        match first >> 4 {
            4 if !self.has(ONLY_IP6) => Some(IpProtocol::IPV4),
            6 if !self.has(ONLY_IP4) => Some(IpProtocol::IPV6),
            _ => None,
        }
    }

    /// Fill in a header that lies in front of a packet: all of it, where there is no SRH.
    #[inline(always)]
    pub fn fill(self, bytes: &mut [u8], filling: &Filling) {
        let [_, sid_at, ..] = self.parts();
        let next = if self.has(HAS_SRH) { IpProtocol::ROUTING } else { filling.protocol };
        if let Some(header) = bytes.first_chunk_mut::<{ Ip6Header::LEN }>() {
            let fields = 6 << 60
                | u64::from(filling.class) << 52
                | u64::from(filling.flow_label & 0xf_ffff) << 32
                | u64::from(filling.payload_length) << 16
                | u64::from(next.0) << 8
                | u64::from(filling.hops);
            header[..SOURCE_AT].copy_from_slice(&fields.to_be_bytes());
            header[SOURCE_AT..DESTINATION_AT].copy_from_slice(&filling.source.to_be_bytes());
            if self.has(SID_IS_FIRST) {
                header[DESTINATION_AT..].copy_from_slice(&filling.sid.to_be_bytes());
            }
        }
        if !self.has(HAS_SRH) {
            return;
        }
        if let Some(named) = bytes.get_mut(SRH_AT) {
            *named = filling.protocol.0;
        }
        let mut put = |at: usize, address: u128| {
            if let Some(place) =
                bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<SEGMENT_BYTES>())
            {
                *place = address.to_be_bytes();
            }
        };
        put(sid_at.into(), filling.sid);
        if usize::from(sid_at) == SRH_AT + segment_offset(1) {
            put(SRH_AT + segment_offset(0), filling.destination);
        }
    }
}
