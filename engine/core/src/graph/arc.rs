//! Feature arcs: named places where features can stand between two nodes, per interface.
//!
//! An arc begins at a node that asks
//! [`Context::enter_arc`](crate::graph::context::Context::enter_arc) and ends at that node's
//! default. Features run by [`Phase`]; the order is resolved once at start-up, and a cycle is a
//! start-up error.

use crate::ids::NodeId;

/// Arcs that a graph can have.
pub const ARCS_MAX: usize = 16;
/// Features that can be enabled on one interface in one arc.
pub const FEATURES_PER_CHAIN_MAX: usize = 15;

/// An arc, by its place in the list of arcs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ArcId(pub u8);

/// What every frame from a device passes before the node of its link layer: `device-input`.
pub const DEVICE_INPUT: ArcId = ArcId(0);
/// What every packet passes before it is given to a device: `interface-output`.
pub const INTERFACE_OUTPUT: ArcId = ArcId(1);

/// The features enabled on one interface in one arc, in order; 0 ends the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    pub(crate) nodes: [u16; FEATURES_PER_CHAIN_MAX + 1],
}

impl Chain {
    /// The feature at `place`, if there is one. Behind the end there is none, however far behind.
    #[inline(always)]
    pub fn at(&self, place: u8) -> Option<NodeId> {
        match self.nodes.get(usize::from(place)) {
            None | Some(0) => None,
            Some(node) => Some(NodeId(*node)),
        }
    }

    /// The enabled features.
    pub fn iter(&self) -> impl Iterator<Item = NodeId> {
        self.nodes.into_iter().take_while(|&n| n != 0).map(NodeId)
    }
}

/// A phase of an arc. In every arc, features run in the order of these phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Copies of packets as they were received.
    Capture,
    /// Links that belong together become one interface.
    Aggregation,
    /// Ports whose frames go to another port unseen.
    CrossConnect,
    /// VLAN tags: sub-interfaces, and tags that are rewritten.
    Tags,
    /// Options that every router on the path may have to read.
    Options,
    /// Fragments are put together: what follows reads ports.
    Reassembly,
    /// Checks whether a source may be behind the interface.
    SourceCheck,
    /// Classes of service are written, before lists and rates go by them.
    Marking,
    /// Lists of who may pass.
    Filter,
    /// Packets that come back from a service function.
    ServiceChain,
    /// Addresses and ports are translated.
    Translation,
    /// Packets that match go another way.
    Policy,
    /// Signed packets are checked.
    Authentication,
    /// Frames of a routed interface enter their bridge.
    Bridge,
    /// Super-frames are made, or cut, as the device is to take them.
    Offload,
    /// Copies of packets as they are sent.
    CaptureSent,
}

impl Phase {
    /// Its name, for operators.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Capture => "capture",
            Phase::Aggregation => "aggregation",
            Phase::CrossConnect => "cross-connect",
            Phase::Tags => "tags",
            Phase::Options => "options",
            Phase::Reassembly => "reassembly",
            Phase::SourceCheck => "source-check",
            Phase::Marking => "marking",
            Phase::Filter => "filter",
            Phase::ServiceChain => "service-chain",
            Phase::Translation => "translation",
            Phase::Policy => "policy",
            Phase::Authentication => "authentication",
            Phase::Bridge => "bridge",
            Phase::Offload => "offload",
            Phase::CaptureSent => "capture-sent",
        }
    }
}

/// The declaration of a feature: a node that can be switched on in an arc.
#[derive(Clone, Debug)]
pub struct FeatureSpec {
    /// The arc's name.
    pub arc: &'static str,
    /// The node's name.
    pub node: &'static str,
    /// Its phase.
    pub phase: Phase,
    /// Nodes of the same phase and the same owner that run before it.
    pub after: &'static [&'static str],
}

/// Order the features of one arc: by phase, within a phase by `after`, then by name. An error names
/// features that wait for one another, or for a node of another phase.
pub(crate) fn order(features: &[&FeatureSpec]) -> Result<Vec<&'static str>, String> {
    let mut waiting = features.to_vec();
    waiting.sort_by_key(|feature| (feature.phase, feature.node));
    for feature in features {
        let other =
            |name: &&&str| features.iter().any(|o| o.node == **name && o.phase != feature.phase);
        if let Some(name) = feature.after.iter().find(other) {
            let (node, phase) = (feature.node, feature.phase.name());
            return Err(format!(
                "feature {node} of phase {phase} names {name}, which is of another phase"
            ));
        }
    }
    let mut ordered = Vec::new();
    while let Some(first) = waiting.first() {
        let phase = first.phase;
        let is_ready = |feature: &&FeatureSpec| {
            feature.phase == phase
                && !feature.after.iter().any(|n| waiting.iter().any(|o| o.node == *n))
        };
        let Some(ready) = waiting.iter().position(is_ready) else {
            let of_phase = waiting.iter().filter(|feature| feature.phase == phase);
            let names: Vec<_> = of_phase.map(|feature| feature.node).collect();
            return Err(format!(
                "features {} each want to run after one another in arc {}",
                names.join(", "),
                first.arc
            ));
        };
        ordered.push(waiting.remove(ready).node);
    }
    Ok(ordered)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const fn feature(
        node: &'static str,
        phase: Phase,
        after: &'static [&'static str],
    ) -> FeatureSpec {
        FeatureSpec { arc: "ip4-unicast", node, phase, after }
    }

    #[test]
    fn features_run_in_the_order_of_their_phases() {
        let a = feature("a", Phase::Policy, &[]);
        let (b, c) = (feature("b", Phase::Capture, &[]), feature("c", Phase::Filter, &[]));
        assert_eq!(order(&[&a, &b, &c]), Ok(vec!["b", "c", "a"]));
    }

    #[test]
    fn within_a_phase_names_count_where_no_feature_names_another() {
        let a = feature("a", Phase::Filter, &["c"]);
        let (b, c) = (feature("b", Phase::Filter, &[]), feature("c", Phase::Filter, &[]));
        assert_eq!(order(&[&a, &c, &b]), Ok(vec!["b", "c", "a"]));
    }

    #[test]
    fn behind_the_end_of_a_chain_there_is_no_feature() {
        let mut chain = Chain::default();
        chain.nodes[..2].copy_from_slice(&[7, 8]);
        let found: Vec<u8> = (0..=u8::MAX).filter(|place| chain.at(*place).is_some()).collect();
        assert_eq!(found, [0, 1]);
    }

    #[test]
    fn a_cycle_is_named() {
        let (a, b) = (feature("a", Phase::Filter, &["b"]), feature("b", Phase::Filter, &["a"]));
        assert!(order(&[&a, &b]).expect_err("cycle").contains("a, b"));
    }

    #[test]
    fn a_node_of_another_phase_cannot_be_named() {
        let (a, b) = (feature("a", Phase::Policy, &["b"]), feature("b", Phase::Filter, &[]));
        assert!(order(&[&a, &b]).expect_err("phases").contains("names b"));
    }
}
