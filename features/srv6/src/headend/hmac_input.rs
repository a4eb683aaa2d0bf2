//! `sr-hmac-input`: packets to a local SID or a binding SID that come in by an interface must be
//! signed, or signed rightly if they are (RFC 8754 §2.1.2.1). A feature of the arc `ip6-unicast`,
//! in front of the look-up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use quiver_control::{Column, Command, ConfigWriter, Output, Refusal, Registry, Table, order};
use quiver_core::control::interfaces::{Interface, InterfaceChange};
use quiver_core::graph::arc::{ArcId, FeatureSpec, Phase};
use quiver_core::graph::counters::INTERFACES_MAX;
use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::{Context, Engine, Frame, InterfaceId, NodeId, Packet};
use quiver_forwarding::ip::{Ip6, IpTables, destination};
use quiver_forwarding::nodes;
use quiver_wire::srh::{HmacTlv, ROUTING_TYPE, Srh};
use quiver_wire::{Header, Ip6Header};

use super::description;
use super::keys::KeyTable;
use crate::commands::GROUP;
use crate::endpoint::LOCAL_NODES;
use crate::endpoint::reasons::parameter_problem;
use crate::endpoint::slow_path::routing_headers;

/// The node, and its arc.
const NODE: &str = "sr-hmac-input";
const ARC: &str = "ip6-unicast";

quiver_core::reasons! {
    /// What becomes of packets to SIDs.
    pub enum HmacDrop {
        /// RFC 8754 §2.1.2.1.
        Missing = "hmac-missing", "packets to a SID that are not signed, where they must be";
        /// RFC 8754 §2.1.2.1.
        Wrong = info "hmac-wrong",
            "packets to a SID whose HMAC is wrong or of an unknown key; senders hear `parameter \
             problem`";
        /// RFC 8754 §2.1.2.1.
        OtherDestination = info "hmac-destination",
            "signed packets to another SID than the active segment; senders hear `parameter \
             problem`";
        /// Good.
        Verified = info "hmac-verified", "packets to a SID whose HMAC is right";
    }
}

/// What is asked of packets to SIDs. Linux calls it `seg6_require_hmac`: -1, 0, 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HmacPolicy {
    /// Nothing.
    Ignore = 0,
    /// An HMAC, if there is one, must be right.
    IfPresent = 1,
    /// There must be one, and it must be right.
    Required = 2,
}

impl HmacPolicy {
    const WORDS: [(&'static str, HmacPolicy); 3] = [
        ("ignore", HmacPolicy::Ignore),
        ("if-present", HmacPolicy::IfPresent),
        ("required", HmacPolicy::Required),
    ];
}

/// By interface.
pub(super) struct Interfaces(Box<[AtomicU8]>);

impl Interfaces {
    fn new() -> Interfaces {
        Interfaces((0..INTERFACES_MAX).map(|_| AtomicU8::new(0)).collect())
    }

    fn get(&self, id: InterfaceId) -> HmacPolicy {
        let number = self.0.get(id.index()).map_or(0, |place| place.load(Ordering::Relaxed));
        HmacPolicy::WORDS.get(usize::from(number)).map_or(HmacPolicy::Ignore, |(_, policy)| *policy)
    }

    fn set(&self, id: InterfaceId, policy: HmacPolicy) {
        if let Some(place) = self.0.get(id.index()) {
            place.store(policy as u8, Ordering::Relaxed);
        }
    }
}

/// The policies of all interfaces, kept in the engine.
struct HmacPolicies(Arc<Interfaces>);

struct HmacInput {
    interfaces: Arc<Interfaces>,
    keys: Arc<KeyTable>,
    tables: Arc<IpTables>,
    arc: ArcId,
    lookup: NodeId,
    error: NodeId,
    /// The nodes of SIDs.
    sids: Vec<NodeId>,
}

impl HmacInput {
    /// Does the destination lead to a SID of this router?
    fn is_for_sid(&self, packet: &Packet) -> bool {
        let table = self.tables.interfaces.table6(packet.rx);
        let group = self.tables.ip6.table(table).lookup(destination::<Ip6>(packet));
        self.sids.contains(&self.tables.groups.resolve(group, 0).next)
    }

    /// Is the destination the active segment, or the first one of a reduced list (RFC 8754
    /// §2.1.2.1)?
    fn is_active(header: &Ip6Header, srh: &Srh<'_>, tlv: &HmacTlv<'_>) -> bool {
        match srh.active() {
            Some(active) => active == header.destination(),
            None => tlv.skips_destination(),
        }
    }

    /// The reason of a packet to a SID; as an error with the offset of the field that is wrong.
    fn classify(&self, cx: &Context<'_>, packet: &Packet) -> Result<HmacDrop, (HmacDrop, usize)> {
        let required = self.interfaces.get(packet.rx) == HmacPolicy::Required;
        let unsigned =
            || if required { Err((HmacDrop::Missing, 0)) } else { Ok(HmacDrop::Missing) };
        let mut headers = routing_headers(packet).flatten();
        let Some((spot, ..)) = headers.find(|(_, kind, _)| *kind == ROUTING_TYPE) else {
            return unsigned();
        };
        let header = Ip6Header::overlay(packet.bytes());
        let own = packet.bytes().get(spot.at..).unwrap_or_default();
        // What is wrong with the header otherwise is told at the SID.
        let (Some(header), Ok((srh, _))) = (header, Srh::parse(own)) else { return unsigned() };
        let Some(tlv) = srh.hmac() else { return unsigned() };
        let at = spot.at + usize::from(tlv.offset);
        if !HmacInput::is_active(header, &srh, &tlv) {
            return Err((HmacDrop::OtherDestination, at));
        }
        let key = self.keys.read(cx.pass).get(&tlv.key_id);
        match key.is_some_and(|key| key.verifies(header.source(), &srh, &tlv)) {
            true => Ok(HmacDrop::Verified),
            false => Err((HmacDrop::Wrong, at)),
        }
    }

    fn decide(&self, cx: &mut Context<'_>, packet: &mut Packet) -> Result<NodeId, HmacDrop> {
        if self.is_for_sid(packet) {
            match self.classify(cx, packet) {
                Ok(HmacDrop::Verified) => cx.count(HmacDrop::Verified, 1),
                Ok(_) => {}
                Err((HmacDrop::Missing, _)) => return Err(HmacDrop::Missing),
                Err((why, at)) => {
                    cx.count(why, 1);
                    packet.hand_over(parameter_problem(0, at));
                    return Ok(self.error);
                }
            }
        }
        Ok(cx.next_in_arc(self.arc, packet.rx, packet, self.lookup))
    }
}

impl Node for HmacInput {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.decide(cx, packet));
    }
}

fn spec(arc: ArcId, interfaces: &Arc<Interfaces>, keys: &Arc<KeyTable>) -> NodeSpec {
    let (interfaces, keys) = (interfaces.clone(), keys.clone());
    NodeSpec::new(NODE, "Verifies the HMAC of packets to SIDs", move |wiring| {
        let sids = LOCAL_NODES.iter().filter(|name| **name != nodes::ip6::LOCAL);
        Box::new(HmacInput {
            interfaces: interfaces.clone(),
            keys: keys.clone(),
            tables: wiring.shared(),
            arc,
            lookup: wiring.node(nodes::ip6::LOOKUP),
            error: wiring.node(nodes::ip6::ICMP_ERROR),
            sids: sids.filter_map(|name| wiring.number(name)).collect(),
        })
    })
    .takes_offloads()
    .reasons::<HmacDrop>()
    .describe(description::describe)
}

/// Register the node and its commands.
pub(super) fn register(registry: &mut Registry, keys: &Arc<KeyTable>) {
    let interfaces = Arc::new(Interfaces::new());
    let arc = registry.graph.arc(ARC);
    registry.graph.node(spec(arc, &interfaces, keys));
    let phase = Phase::Authentication;
    registry.graph.feature(FeatureSpec { arc: ARC, node: NODE, phase, after: &[] });
    registry.command(
        Command::new("set sr hmac-policy <interface> (ignore|if-present|required)")
            .entry(
                order::FEATURES,
                "interfaces.<interface>.sr-hmac-policy: <ignore|if-present|required>",
            )
            .undo("set sr hmac-policy <interface> ignore")
            .replaces(&["interface"])
            .group(GROUP)
            .help("Say whether packets to SIDs that come in by an interface must be signed")
            .details(
                "Other packets are not looked at. `ignore`, the default, verifies nothing. \
                 `required` refuses packets without an SRH, too.",
            )
            .word("if-present", "an HMAC that is there must be right")
            .word("required", "there must be an HMAC, and it must be right")
            .example("set sr hmac-policy memif0/0 required")
            .run(set),
    );
    registry.command(
        Command::new("show sr hmac-policy")
            .group(GROUP)
            .help("Show on which interfaces packets to SIDs are verified")
            .run(|engine: &mut Engine, _| {
                let mut table = Table::new([Column::left("Interface"), Column::left("HMAC")])
                    .when_empty("no interface verifies packets to SIDs");
                for interface in engine.interfaces_by_name() {
                    if let Some(word) = policy_word(engine, interface.id) {
                        table.row().cell(interface.name.clone()).cell(word);
                    }
                }
                Ok(Output::none().table("interfaces", table))
            }),
    );
    registry.on_start(move |engine| {
        engine.insert(HmacPolicies(interfaces));
        engine.on_interface_change(|engine, id, change| {
            if let (InterfaceChange::Deleted, Some(HmacPolicies(interfaces))) =
                (change, engine.get::<HmacPolicies>())
            {
                interfaces.set(id, HmacPolicy::Ignore);
            }
        });
    });
}

fn set(engine: &mut Engine, args: &quiver_control::Args<'_>) -> Result<Output, Refusal> {
    let on = args.interface(engine, "interface")?;
    let policy = HmacPolicy::WORDS
        .iter()
        .find(|(word, _)| args.has(word))
        .map_or(HmacPolicy::Ignore, |(_, policy)| *policy);
    engine.set_feature(on, ARC, NODE, policy != HmacPolicy::Ignore)?;
    if let Some(HmacPolicies(interfaces)) = engine.get::<HmacPolicies>() {
        interfaces.set(on, policy);
    }
    Ok(Output::none())
}

/// The word for what an interface demands of packets to SIDs, unless it demands nothing.
fn policy_word(engine: &Engine, on: InterfaceId) -> Option<&'static str> {
    let HmacPolicies(interfaces) = engine.get()?;
    let policy = Some(interfaces.get(on)).filter(|policy| *policy != HmacPolicy::Ignore)?;
    HmacPolicy::WORDS.iter().find(|(_, known)| *known == policy).map(|(word, _)| *word)
}

/// The part of `show running-config` of one interface.
pub(super) fn write_interface(engine: &Engine, interface: &Interface, config: &mut ConfigWriter) {
    if let Some(word) = policy_word(engine, interface.id) {
        config.command(format_args!("set sr hmac-policy {} {word}", interface.name));
    }
}
