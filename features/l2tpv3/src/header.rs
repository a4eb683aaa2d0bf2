//! The header behind the outer IP header (RFC 3931 §4.1.1), as tunnels write and read it.

use quiver_control::{Args, Cell, Column, Command, Refusal};
use quiver_core::{Engine, Packet};
use quiver_encap::inner::Truncated;
use quiver_encap::tunnel::{
    ETHERNET, EndWords, Nodes, Parsed, Payload, TunnelCommands, TunnelConfig, TunnelDrop,
    TunnelProtocol, TunnelTexts,
};
use quiver_wire::l2tpv3::{COOKIE_BYTES_MAX, L2tpv3Header, SUBLAYER_BYTES};
use quiver_wire::{Header, IpProtocol};

use crate::session::{self, Behind, Cookie, Session};
use crate::texts::TEXTS;

/// L2TPv3 over IP.
pub struct L2tpv3;

impl TunnelCommands for L2tpv3 {
    const TEXTS: TunnelTexts = TEXTS;

    fn described(args: &Args<'_>) -> Result<TunnelConfig<Session>, Refusal> {
        let size_bytes = match args.optional::<&str>("cookie-bytes")? {
            Some("0") => 0,
            Some("4") => 4,
            _ => 8,
        };
        let cookie = |name: &str| match args.has(name) {
            true => Cookie::read(args, name, size_bytes),
            false => Ok(Cookie { value: 0, size_bytes }),
        };
        let session = Session {
            local: args.or("local-session-id", 1)?,
            remote: args.or("remote-session-id", 1)?,
            local_cookie: cookie("local-cookie")?,
            previous: None,
            remote_cookie: cookie("remote-cookie")?,
            has_sublayer: args.has("l2-sublayer-present"),
        };
        Ok(TunnelConfig {
            instance: args.optional("instance")?,
            source: args.get("our_address")?,
            destination: Some(args.get("client_address")?),
            table: args.or("encap-vrf-id", 0)?,
            key: None,
            carries_frames: true,
            hop_limit: None,
            dscp: None,
            udp: None,
            extra: session,
        })
    }

    fn explained(command: Command<Engine>) -> Command<Engine> {
        command
            .word("client_address", "the outer destination, the address of the other end")
            .word("our_address", "the outer source, an address of this router")
            .word("local-cookie", "of what is received, hexadecimal; 0 unless given")
            .word("remote-cookie", "of what is sent, hexadecimal; 0 unless given")
            .word("cookie-bytes", "bytes of both cookies; 8 unless given")
            .word("local-session-id", "the session in what is received; 1 unless given")
            .word("remote-session-id", "the session in what is sent; 1 unless given")
            .word("l2-sublayer-present", "the L2-specific sublayer (RFC 3931 §4.6) is there")
            .word("encap-vrf-id", "the table that has the outer destination; 0 unless given")
            .word("instance", "the number in its name; the first that is free unless given")
    }

    fn words(config: &TunnelConfig<Session>) -> Vec<String> {
        let session = &config.extra;
        let mut words: Vec<String> = Vec::new();
        words.extend(config.destination.map(|address| format!("client_address {address}")));
        words.push(format!("our_address {}", config.source));
        if session.local_cookie.size_bytes != 0 {
            words.push(format!("local-cookie {}", session.local_cookie));
            words.push(format!("remote-cookie {}", session.remote_cookie));
        }
        if session.local_cookie.size_bytes != 8 {
            words.push(format!("cookie-bytes {}", session.local_cookie.size_bytes));
        }
        words.push(format!("local-session-id {}", session.local));
        words.push(format!("remote-session-id {}", session.remote));
        words.extend(session.has_sublayer.then(|| "l2-sublayer-present".to_owned()));
        words.extend((config.table != 0).then(|| format!("encap-vrf-id {}", config.table)));
        words.extend(config.instance.map(|instance| format!("instance {instance}")));
        words
    }

    fn type_word(_: &TunnelConfig<Session>) -> &'static str {
        "ethernet"
    }

    fn columns() -> Vec<Column> {
        vec![
            Column::right("Local session"),
            Column::right("Remote session"),
            Column::left("Local cookie"),
            Column::left("Previous cookie"),
            Column::left("Remote cookie"),
            Column::left("Sublayer"),
        ]
    }

    fn cells(config: &TunnelConfig<Session>) -> Vec<Cell> {
        let session = &config.extra;
        let cookie = |cookie: Cookie| (cookie.size_bytes != 0).then(|| cookie.to_string());
        vec![
            session.local.into(),
            session.remote.into(),
            cookie(session.local_cookie).into(),
            session.previous.and_then(cookie).into(),
            cookie(session.remote_cookie).into(),
            session.has_sublayer.into(),
        ]
    }
}

impl TunnelProtocol for L2tpv3 {
    const NAME: &'static str = "l2tpv3";
    const INTERFACE: &'static str = "l2tpv3_tunnel";
    const WORDS: &'static str = "L2TPv3 tunnel";
    const NODES: Nodes = Nodes {
        encap: [["", ""], ["", ""]],
        encap_frames: ["l2tpv3-4-encap", "l2tpv3-6-encap"],
        output: "",
        input: ["l2tpv3-4-input", "l2tpv3-6-input"],
        errors: ["l2tpv3-4-icmp-error", "l2tpv3-6-icmp-error"],
    };
    const IP_PROTOCOLS: &'static [IpProtocol] = &[IpProtocol::L2TP];
    const CARRIES_FRAMES: bool = true;
    const CARRIES_PACKETS: bool = false;
    const HAS_KEY: bool = false;
    const ASKS_END: bool = true;
    const HAS_SENT_KEY: bool = true;
    type Extra = Session;
    type Shared = ();

    fn key(config: &TunnelConfig<Session>) -> Option<u32> {
        Some(config.extra.local)
    }

    fn sent_key(config: &TunnelConfig<Session>) -> Option<u32> {
        Some(config.extra.remote)
    }

    fn end_words(config: &TunnelConfig<Session>) -> EndWords {
        config.extra.end()
    }

    #[inline(always)]
    fn behind(end: EndWords, bytes: &[u8]) -> Result<usize, TunnelDrop> {
        match session::behind(end, bytes) {
            Behind::Header(length) => Ok(length),
            Behind::Truncated => Err(TunnelDrop::Truncated),
            Behind::WrongCookie => Err(TunnelDrop::Cookie),
        }
    }

    #[inline(always)]
    fn ip_protocol(_: IpProtocol) -> IpProtocol {
        IpProtocol::L2TP
    }

    fn header_of(config: &TunnelConfig<Session>) -> Vec<u8> {
        config.extra.header()
    }

    fn header_bytes_max() -> usize {
        L2tpv3Header::LEN + COOKIE_BYTES_MAX + SUBLAYER_BYTES
    }

    fn header(_: Option<u32>) -> Vec<u8> {
        vec![0; L2tpv3Header::LEN]
    }

    #[inline(always)]
    fn fill(_: &mut [u8], inside: IpProtocol) -> Result<(), Truncated> {
        if inside == ETHERNET { Ok(()) } else { Err(Truncated) }
    }

    /// Session 0 is the control channel, of which nothing is known here.
    #[inline(always)]
    fn parse(_: IpProtocol, bytes: &[u8]) -> Result<Parsed, TunnelDrop> {
        let header = L2tpv3Header::overlay(bytes).ok_or(TunnelDrop::Truncated)?;
        if header.session() == 0 {
            return Err(TunnelDrop::Payload);
        }
        Ok(Parsed {
            header_len: L2tpv3Header::LEN,
            payload: Payload::Frame,
            key: Some(header.session()),
            has_checksum: false,
        })
    }

    fn checksum_is_good(_: &Packet, _: usize) -> bool {
        true
    }
}
