//! The headend: policies, what is steered into them, and the nodes that put segments around and
//! into packets (RFC 8986 §5, §4.13, §4.14; draft-filsfils-spring-srv6-net-pgm-insertion).

pub(crate) mod binding;
mod binding_routes;
mod commands;
mod description;
mod encaps;
mod encaps_l2;
mod errors;
mod hmac_input;
mod insert;
mod keys;
mod outer_commands;
mod path_mtu_of_policy;
mod path_mtus;
mod policies;
mod policy;
mod policy_references;
mod quote;
mod reasons;
mod route_lists;
mod spray;
mod stack;
mod steering;
mod steering_commands;

use std::sync::Arc;

pub use binding::{BindingEncaps, BindingInsert};
pub(crate) use binding_routes::{lend, withdraw};
pub use encaps::Encaps;
use encaps::Encapsulated;
pub(crate) use encaps_l2::FRAME_BYTES_MIN;
pub use encaps_l2::{EncapsL2, SteerL2};
pub use insert::Insert;
use policies::Policies;
pub(crate) use policy_references::{PolicyReference, hold, release};
use quiver_control::{Registry, along, by_interface, order};
use quiver_core::Engine;
use quiver_encap::WorkerEncapEntries;
use quiver_forwarding::ip::{Ip4, Ip6};
use quiver_tables::CountedLines;
pub(crate) use reasons::HeadendDrop;
pub(crate) use route_lists::{add_bound, delete_bound, hold_list, release_list};
use steering::Steerings;

/// The nodes that frames go to which are sent by a policy: those of its lists, and the one that
/// makes copies.
pub(crate) const FRAME_NODES: [&str; 2] = [encaps_l2::NODE, spray::L2];

/// The encapsulation entries of segment lists, by worker.
type Entries = Arc<[Arc<WorkerEncapEntries>]>;

/// What comes to a policy. The numbers of the first three are those of our own tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// IPv6 packets that are steered.
    Ip6 = 0,
    /// IPv4 packets that are steered.
    Ip4 = 1,
    /// Frames that are steered.
    L2 = 2,
    /// Packets to the binding SID.
    Binding = 3,
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::Ip6, Kind::Ip4, Kind::L2, Kind::Binding];

    /// The node of a policy that encapsulates, or inserts.
    fn node(self, encapsulates: bool) -> &'static str {
        match (self, encapsulates) {
            (Kind::Ip6, true) => Ip6::NODE,
            (Kind::Ip4, _) => Ip4::NODE,
            (Kind::L2, _) => encaps_l2::NODE,
            (Kind::Binding, true) => binding::ENCAPS,
            (Kind::Ip6, false) => insert::NODE,
            (Kind::Binding, false) => binding::INSERT,
        }
    }

    /// The node that makes copies for it.
    fn spray_node(self, encapsulates: bool) -> &'static str {
        match (self, encapsulates) {
            (Kind::Ip6, true) => "sr-pl-spray",
            (Kind::Ip4, _) => "sr-pl-spray-v4",
            (Kind::L2, _) => spray::L2,
            (Kind::Binding, true) => "sr-pl-spray-b-encaps",
            (Kind::Ip6, false) => "sr-pl-spray-insert",
            (Kind::Binding, false) => "sr-pl-spray-b-insert",
        }
    }

    /// In a refusal.
    fn words(self) -> &'static str {
        match self {
            Kind::Ip6 => "IPv6 packets",
            Kind::Ip4 => "IPv4 packets",
            Kind::L2 => "frames",
            Kind::Binding => "packets to its binding SID",
        }
    }
}

/// Register nodes and commands.
pub(crate) fn register(registry: &mut Registry, lines: &Arc<CountedLines>) {
    let steerings = Steerings::new(registry.graph.epochs());
    let (steered, steered_from) = (steerings.steered().clone(), steerings.steered_from().clone());
    let policies = Policies::new(&registry.graph, steerings);
    let Some(policies) = registry.require(policies) else { return };
    let (entries, sprayed) = (policies.worker_entries(), policies.sprayed().clone());
    let keys = policies.keys.published().clone();
    let graph = &mut registry.graph;
    graph.node(encaps::spec::<Ip6>(&entries, lines));
    graph.node(encaps::spec::<Ip4>(&entries, lines));
    graph.node(encaps_l2::spec(&entries, lines));
    graph.node(insert::spec(&entries, lines, &keys));
    graph.node(binding::encaps_spec(&entries, lines));
    graph.node(binding::insert_spec(&entries, lines, &keys));
    for kind in Kind::ALL {
        graph.node(spray::spec(kind.spray_node(true), kind.node(true), &sprayed));
    }
    for kind in [Kind::Ip6, Kind::Binding] {
        graph.node(spray::spec(kind.spray_node(false), kind.node(false), &sprayed));
    }
    graph.node(encaps_l2::steer_spec(&steered));
    graph.node(errors::spec(&entries, &sprayed, &steered_from));
    for protocol in errors::PROTOCOLS {
        graph.claim("icmp6-error-about", protocol.0.into(), errors::NODE);
    }
    outer_commands::register(registry);
    keys::register(registry);
    hmac_input::register(registry, &keys);
    commands::register(registry);
    steering_commands::register(registry);
    registry.running_config(order::ROUTES, outer_commands::write_config);
    registry.running_config(order::ROUTES, keys::write_config);
    registry.running_config_in_slices(order::ROUTES, along(commands::write_config));
    registry.running_config_in_slices(order::FEATURES, along(steering_commands::write_config));
    let hmac_policies = by_interface(hmac_input::write_interface);
    registry.running_config_in_slices(order::FEATURES, hmac_policies);
    registry.memory(weigh);
    registry.on_start(move |engine| {
        engine.insert(policies);
        path_mtus::start(engine);
    });
}

fn weigh(engine: &Engine) -> Vec<(&'static str, u64)> {
    let bytes = engine.get::<Policies>().map_or(0, |policies| policies.resident_bytes() as u64);
    vec![("SR segment lists", bytes)]
}
