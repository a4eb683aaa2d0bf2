//! `igmp-input`, `icmp6-mld-input`: what routers and other hosts say of groups. Queries are told to
//! the control thread, which answers (RFC 3376 §4.1, §9; RFC 3810 §5.1, §6.2).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::throttle::TokenBucket;
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_forwarding::ip::IpTables;
use quiver_wire::igmp::{RecordView, Records, record};
use quiver_wire::ip4::address::ALL_HOSTS;
use quiver_wire::ip4::options::{Ip4Option, Options};
use quiver_wire::ip6::address;
use quiver_wire::ip6::extension::{Ip6Option, Walk};
use quiver_wire::{Header, Ip4Header, Ip6Header, icmp6, igmp, mld};

use crate::notifications::{
    OLD_LEAVE, OLD_REPORT_V1, OLD_REPORT_V2, ReceivedQuery, send_query, send_record, send_report,
};
use crate::port::Version;

/// Messages that a worker tells of in a second.
pub const MESSAGES_PER_SECOND: u64 = 500;
/// Messages that a worker may tell of at once.
pub const MESSAGES_BURST: u64 = 200;
/// The longest time for an answer in IGMP version 1, milliseconds (RFC 3376 §7.2.1).
const V1_RESPONSE_MS: u32 = 10_000;

quiver_core::reasons! {
    /// What becomes of messages about groups.
    pub enum GroupMessageDrop {
        /// Not a whole message.
        BadMessage = "bad-message", "a message about groups that is cut short, of an unknown \
            type, or a query of a length that no version has";
        /// RFC 3376 §4.
        BadChecksum = "bad-checksum", "IGMP checksum wrong";
        /// RFC 3376 §4, RFC 3810 §6.2.
        BadTtl = "bad-ttl", "a message about groups whose TTL or hop limit is not 1: it may come \
            from afar";
        /// RFC 3376 §9.1, RFC 3810 §6.2.
        NoRouterAlert = "no-router-alert", "a query without the router alert option";
        /// RFC 3810 §6.2.
        SourceNotLinkLocal = "source-not-link-local", "MLD from an address that is not link-local";
        /// RFC 3376 §9.1.
        BadDestination = "bad-destination", "a query for all groups that is not sent to all \
            hosts, or for what is no group";
        /// A storm.
        TooMany = "too-many", "more messages about groups than a worker may tell the control \
            thread of in a second";
        /// Told.
        Query = info "query", "queries told to the control thread";
        /// Told, or of no use to who is no querier.
        Report = info "report", "reports and leaves of other hosts";
    }
}

/// The node's name.
pub(crate) fn name(six: bool) -> &'static str {
    if six { "icmp6-mld-input" } else { "igmp-input" }
}

struct Input {
    six: bool,
    ip: Arc<IpTables>,
    done: NodeId,
    bucket: TokenBucket,
}

impl Input {
    fn decide(
        &mut self,
        cx: &mut Context<'_>,
        packet: &Packet,
    ) -> Result<NodeId, GroupMessageDrop> {
        if self.six {
            self.decide6(cx, packet)?
        } else {
            self.decide4(cx, packet)?
        }
        Ok(self.done)
    }

    fn take(&mut self, cx: &Context<'_>) -> Result<(), GroupMessageDrop> {
        if self.bucket.take(cx.now_ns) { Ok(()) } else { Err(GroupMessageDrop::TooMany) }
    }

    fn query(
        &mut self,
        cx: &mut Context<'_>,
        packet: &Packet,
        asked: &ReceivedQuery<'_>,
    ) -> Result<(), GroupMessageDrop> {
        self.take(cx)?;
        cx.count(GroupMessageDrop::Query, 1);
        send_query(cx, packet.rx, asked);
        Ok(())
    }

    /// Does this router ask on the link of a packet, so that it has to know who listens?
    fn asks(&self, cx: &Context<'_>, packet: &Packet) -> bool {
        let reports = if self.six { mld::ALL_REPORTS.into() } else { igmp::ALL_REPORTS.into() };
        self.ip.interfaces.joined(packet.rx, reports, cx.pass)
    }

    /// A message of an older version says that a host listens to a group, or does no more.
    fn member(
        &mut self,
        cx: &mut Context<'_>,
        packet: &Packet,
        from: IpAddr,
        kind: u8,
        group: IpAddr,
    ) -> Result<(), GroupMessageDrop> {
        if self.asks(cx, packet) && group.is_multicast() {
            self.take(cx)?;
            send_record(cx, packet.rx, from, kind, group, &[]);
        }
        Ok(())
    }

    /// A report of the newest version.
    fn records(
        &mut self,
        cx: &mut Context<'_>,
        packet: &Packet,
        from: IpAddr,
        records: Records<'_>,
    ) -> Result<(), GroupMessageDrop> {
        cx.count(GroupMessageDrop::Report, 1);
        if !self.asks(cx, packet) {
            return Ok(());
        }
        for record in records {
            let RecordView { kind, group, sources } =
                record.map_err(|_| GroupMessageDrop::BadMessage)?;
            let group = match (<[u8; 4]>::try_from(group), <[u8; 16]>::try_from(group)) {
                (Ok(four), _) => IpAddr::from(four),
                (_, Ok(six)) => IpAddr::from(six),
                _ => return Err(GroupMessageDrop::BadMessage),
            };
            // RFC 3376 §4.2.12: records of unknown kinds are passed over.
            if group.is_multicast() && (record::IS_INCLUDE..=record::BLOCK).contains(&kind) {
                self.take(cx)?;
                send_record(cx, packet.rx, from, kind, group, sources);
            }
        }
        Ok(())
    }

    /// A report of another host matters where an older version is spoken, and only for groups of
    /// ours.
    fn report(
        &mut self,
        cx: &mut Context<'_>,
        packet: &Packet,
        group: IpAddr,
    ) -> Result<(), GroupMessageDrop> {
        cx.count(GroupMessageDrop::Report, 1);
        let listens = match group {
            IpAddr::V6(group) => self
                .ip
                .interfaces
                .addresses(packet.rx, cx.pass)
                .is_some_and(|own| own.listens_to(group)),
            IpAddr::V4(_) => false,
        };
        if listens || self.ip.interfaces.joined(packet.rx, group, cx.pass) {
            self.take(cx)?;
            send_report(cx, packet.rx, group);
        }
        Ok(())
    }

    fn decide4(&mut self, cx: &mut Context<'_>, packet: &Packet) -> Result<(), GroupMessageDrop> {
        let bytes = packet.bytes();
        let header = Ip4Header::overlay(bytes).ok_or(GroupMessageDrop::BadMessage)?;
        let inside = bytes.get(header.header_len()..usize::from(header.total_length()));
        let inside = inside.ok_or(GroupMessageDrop::BadMessage)?;
        if header.ttl() != 1 {
            return Err(GroupMessageDrop::BadTtl);
        }
        let message = match igmp::Message::parse(inside) {
            Ok(message) => message,
            Err(_) if !quiver_wire::checksum::Sum::new().bytes(inside).is_good() => {
                return Err(GroupMessageDrop::BadChecksum);
            }
            Err(_) => return Err(GroupMessageDrop::BadMessage),
        };
        let (from, to) = (header.source(), header.destination());
        match message {
            igmp::Message::Query { response_code, group, more } => {
                let (version, response_ms) = match (more, response_code) {
                    (Some(_), code) => (Version::Three, igmp::from_code8(code) * 100),
                    (None, 0) => (Version::One, V1_RESPONSE_MS),
                    (None, code) => (Version::Two, u32::from(code) * 100),
                };
                if version != Version::One && !has_router_alert4(bytes, header) {
                    return Err(GroupMessageDrop::NoRouterAlert);
                }
                check_destination4(group, to)?;
                let asked = ReceivedQuery {
                    from: from.into(),
                    version,
                    group: group.into(),
                    response_ms,
                    robustness: more.map_or(0, |more| more.robustness),
                    interval_s: more.map_or(0, |more| igmp::from_code8(more.interval_code)),
                    sources: more.map_or(&[], |more| more.sources),
                    suppress: more.is_some_and(|more| more.suppress),
                };
                self.query(cx, packet, &asked)
            }
            igmp::Message::Report { version, group } => {
                let kind = if version == 1 { OLD_REPORT_V1 } else { OLD_REPORT_V2 };
                self.member(cx, packet, from.into(), kind, group.into())?;
                self.report(cx, packet, group.into())
            }
            igmp::Message::Leave { group } => {
                cx.count(GroupMessageDrop::Report, 1);
                self.member(cx, packet, from.into(), OLD_LEAVE, group.into())
            }
            igmp::Message::Records { count, bytes } => {
                self.records(cx, packet, from.into(), Records::new(count, bytes, 4))
            }
        }
    }

    fn decide6(&mut self, cx: &mut Context<'_>, packet: &Packet) -> Result<(), GroupMessageDrop> {
        let (header, inside) = icmp6::within(packet.bytes()).ok_or(GroupMessageDrop::BadMessage)?;
        if header.hop_limit() != 1 {
            return Err(GroupMessageDrop::BadTtl);
        }
        let message = mld::Message::parse(inside).map_err(|_| GroupMessageDrop::BadMessage)?;
        let (from, to) = (header.source(), header.destination());
        if let mld::Message::Query { response_code, group, more } = message {
            if !address::is_link_local(from) {
                return Err(GroupMessageDrop::SourceNotLinkLocal);
            }
            if !has_router_alert6(packet.bytes(), header) {
                return Err(GroupMessageDrop::NoRouterAlert);
            }
            check_destination6(group, to)?;
            let response_ms = match more {
                Some(_) => mld::from_code16(response_code),
                None => response_code.into(),
            };
            let asked = ReceivedQuery {
                from: from.into(),
                version: if more.is_some() { Version::Three } else { Version::Two },
                group: group.into(),
                response_ms,
                robustness: more.map_or(0, |more| more.robustness),
                interval_s: more.map_or(0, |more| igmp::from_code8(more.interval_code)),
                sources: more.map_or(&[], |more| more.sources),
                suppress: more.is_some_and(|more| more.suppress),
            };
            return self.query(cx, packet, &asked);
        }
        // RFC 3590: a host may report before it has an address.
        if !address::is_link_local(from) && !address::is_unspecified(from) {
            return Err(GroupMessageDrop::SourceNotLinkLocal);
        }
        match message {
            mld::Message::Report { group } => {
                self.member(cx, packet, from.into(), OLD_REPORT_V2, group.into())?;
                self.report(cx, packet, group.into())
            }
            mld::Message::Done { group } => {
                cx.count(GroupMessageDrop::Report, 1);
                self.member(cx, packet, from.into(), OLD_LEAVE, group.into())
            }
            mld::Message::Records { count, bytes } => {
                self.records(cx, packet, from.into(), Records::new(count, bytes, 16))
            }
            mld::Message::Query { .. } => Ok(()),
        }
    }
}

/// A query for all goes to all hosts; one for a group names a group (RFC 3376 §9.1).
fn check_destination4(group: Ipv4Addr, to: Ipv4Addr) -> Result<(), GroupMessageDrop> {
    let is_right = if group.is_unspecified() { to == ALL_HOSTS } else { group.is_multicast() };
    if is_right { Ok(()) } else { Err(GroupMessageDrop::BadDestination) }
}

fn check_destination6(group: Ipv6Addr, to: Ipv6Addr) -> Result<(), GroupMessageDrop> {
    let is_right =
        if group.is_unspecified() { to == address::ALL_NODES } else { group.is_multicast() };
    if is_right { Ok(()) } else { Err(GroupMessageDrop::BadDestination) }
}

fn has_router_alert4(bytes: &[u8], header: &Ip4Header) -> bool {
    let options = bytes.get(Ip4Header::LEN..header.header_len()).unwrap_or_default();
    Options::new(options).flatten().any(|option| option.kind == Ip4Option::ROUTER_ALERT)
}

fn has_router_alert6(bytes: &[u8], header: &Ip6Header) -> bool {
    let behind = bytes.get(Ip6Header::LEN..).unwrap_or_default();
    let first = Walk::new(header.next_header(), behind).next().and_then(Result::ok);
    let options = first.map(|extension| extension.options());
    options.into_iter().flatten().flatten().any(|option| option.kind == Ip6Option::ROUTER_ALERT)
}

impl Node for Input {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.decide(cx, packet));
    }
}

/// The declaration.
pub(crate) fn spec(six: bool) -> NodeSpec {
    NodeSpec::new(name(six), "Hears who asks for groups, and who reports them", move |wiring| {
        Box::new(Input {
            six,
            ip: wiring.shared(),
            done: wiring.node("ip-done"),
            bucket: TokenBucket::new(MESSAGES_PER_SECOND, MESSAGES_BURST),
        })
    })
    .reasons::<GroupMessageDrop>()
    .describe(move |record, names| {
        let (rx, next) = (names.interface(record.rx), names.node(record.next));
        format!("{} on {rx}, to {next}", words(six, record.bytes()))
    })
}

/// A message in words: `query for all groups by 10.0.0.1`.
fn words(six: bool, bytes: &[u8]) -> String {
    let (from, query, group): (IpAddr, bool, IpAddr) = if six {
        let Some((header, inside)) = icmp6::within(bytes) else { return "no MLD".to_owned() };
        let group = match mld::Message::parse(inside) {
            Ok(
                mld::Message::Query { group, .. }
                | mld::Message::Report { group }
                | mld::Message::Done { group },
            ) => group,
            _ => Ipv6Addr::UNSPECIFIED,
        };
        (header.source().into(), inside.first() == Some(&mld::kind::QUERY), group.into())
    } else {
        let Some(header) = Ip4Header::overlay(bytes) else { return "no IGMP".to_owned() };
        let inside = bytes.get(header.header_len()..).unwrap_or_default();
        let group = inside
            .get(4..8)
            .and_then(|group| <[u8; 4]>::try_from(group).ok())
            .map_or(Ipv4Addr::UNSPECIFIED, Ipv4Addr::from);
        (header.source().into(), inside.first() == Some(&igmp::kind::QUERY), group.into())
    };
    let what = if query { "query" } else { "report" };
    let group =
        if query && group.is_unspecified() { "all groups".to_owned() } else { group.to_string() };
    format!("{what} for {group} by {from}")
}
