//! `icmp6-router-solicitation`: a host asks for routers (RFC 4861 §6.1.1, §6.2.6). The control
//! thread answers.

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::throttle::TokenBucket;
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_forwarding::nodes;
use quiver_wire::Ip6Header;
use quiver_wire::icmp6::nd::{self, NdBad};
use quiver_wire::icmp6::{self, Message};

use crate::notifications::Notification;

/// The node's name.
pub const NAME: &str = "icmp6-router-solicitation";
/// Solicitations that a worker tells of in a second. One advertisement answers all that come at a
/// time.
pub const SOLICITATIONS_PER_SECOND: u64 = 200;
/// Solicitations that a worker may tell of at once.
pub const SOLICITATIONS_BURST: u64 = 100;

quiver_core::reasons! {
    /// What becomes of messages between hosts and routers.
    pub enum RouterDiscoveryDrop {
        /// Not a whole message, or an option that lies.
        BadMessage = "bad-message", "router discovery that is cut short, has a code other than 0 \
            or an option of wrong length";
        /// See [`NdBad`].
        HopLimit = "bad-hop-limit", "router discovery with a hop limit below 255: it may come \
            from afar";
        /// See [`NdBad`].
        MacOfNobody = "mac-of-nobody", "a router solicitation with a MAC address for the source ::";
        /// See [`NdBad`].
        SourceNotLinkLocal = "source-not-link-local", "a router advertisement from an address \
            that is not link-local";
        /// A storm.
        TooMany = "too-many", "more router discovery than a worker may tell the control thread of \
            in a second";
        /// Told.
        Told = info "told", "messages told to the control thread";
        /// More than a router needs.
        /// RFC 4191 §2.3.
        BadRoute = info "bad-route", "routes of advertisements that were not looked at: longer \
            than their option";
        /// More than a router needs.
        RoutesLeftOut = info "routes-left-out", "routes of advertisements that were not looked \
            at: too many in one message";
        /// More than a router needs.
        PrefixesLeftOut = info "prefixes-left-out", "prefixes of advertisements that were not \
            looked at: too many in one message";
    }
}

impl From<NdBad> for RouterDiscoveryDrop {
    fn from(bad: NdBad) -> RouterDiscoveryDrop {
        match bad {
            NdBad::HopLimit => RouterDiscoveryDrop::HopLimit,
            NdBad::MacOfNobody => RouterDiscoveryDrop::MacOfNobody,
            NdBad::SourceNotLinkLocal => RouterDiscoveryDrop::SourceNotLinkLocal,
            NdBad::TargetIsMulticast | NdBad::ProbeNotToSolicitedNode | NdBad::SolicitedToGroup => {
                RouterDiscoveryDrop::BadMessage
            }
        }
    }
}

/// Read a packet that `ip6-icmp-input` has let pass, and classify it.
pub(crate) fn read(bytes: &[u8]) -> Result<(&Ip6Header, nd::Message<'_>), RouterDiscoveryDrop> {
    let (header, message) = icmp6::within(bytes).ok_or(RouterDiscoveryDrop::BadMessage)?;
    let (source, destination) = (header.source(), header.destination());
    let message = Message::parse(source, destination, message);
    let Ok(Message::Nd(message)) = message else { return Err(RouterDiscoveryDrop::BadMessage) };
    message.check(source, destination, header.hop_limit())?;
    Ok((header, message))
}

struct Solicitation {
    done: NodeId,
    bucket: TokenBucket,
}

impl Solicitation {
    fn decide(
        &mut self,
        cx: &mut Context<'_>,
        packet: &Packet,
    ) -> Result<NodeId, RouterDiscoveryDrop> {
        let (header, message) = read(packet.bytes())?;
        if !matches!(message, nd::Message::RouterSolicitation { .. }) {
            return Err(RouterDiscoveryDrop::BadMessage);
        }
        if !self.bucket.take(cx.now_ns) {
            return Err(RouterDiscoveryDrop::TooMany);
        }
        Notification::Solicitation { from: header.source() }.send(cx, packet.rx);
        cx.count(RouterDiscoveryDrop::Told, 1);
        Ok(self.done)
    }
}

impl Node for Solicitation {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.decide(cx, packet));
    }
}

/// The declaration.
pub(crate) fn spec() -> NodeSpec {
    NodeSpec::new(NAME, "Hears hosts that ask for routers", |wiring| {
        Box::new(Solicitation {
            done: wiring.node(nodes::IP_DONE),
            bucket: TokenBucket::new(SOLICITATIONS_PER_SECOND, SOLICITATIONS_BURST),
        })
    })
    .reasons::<RouterDiscoveryDrop>()
    .describe(|record, names| {
        let from = icmp6::within(record.bytes()).map(|(header, _)| header.source().to_string());
        let from = from.unwrap_or_else(|| "somebody".to_owned());
        format!(
            "{from} on {} asks for routers, to {}",
            names.interface(record.rx),
            names.node(record.next)
        )
    })
}
