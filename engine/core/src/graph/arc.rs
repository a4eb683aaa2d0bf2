//! Feature arcs: named places where features can stand between two nodes, per interface.
//!
//! An arc begins at a node that asks [`Context::enter_arc`](crate::graph::context::Context::enter_arc) and
//! ends at that node's default. The order of features is declared by before and after, and resolved
//! once at start-up; a cycle is a start-up error.

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

/// The declaration of a feature: a node that can be switched on in an arc.
#[derive(Clone, Debug)]
pub struct FeatureSpec {
    /// The arc's name.
    pub arc: &'static str,
    /// The node's name.
    pub node: &'static str,
    /// It stands before these.
    pub before: &'static [&'static str],
    /// It stands after these; after all that do not say so themselves with [`ALL`].
    pub after: &'static [&'static str],
}

/// In [`FeatureSpec::after`]: all others, because nothing comes behind.
pub const ALL: &str = "*";

/// Order the features of one arc; an error names those that wait for each other.
pub(crate) fn order(features: &[&FeatureSpec]) -> Result<Vec<&'static str>, String> {
    let mut waiting: Vec<(&'static str, Vec<&'static str>)> = features
        .iter()
        .map(|f| {
            let mut earlier: Vec<_> = f.after.to_vec();
            if f.after.contains(&ALL) {
                earlier.extend(features.iter().filter(|o| !o.after.contains(&ALL)).map(|o| o.node));
            }
            earlier.extend(features.iter().filter(|o| o.before.contains(&f.node)).map(|o| o.node));
            earlier.retain(|name| features.iter().any(|o| o.node == *name));
            (f.node, earlier)
        })
        .collect();
    let mut ordered = Vec::new();
    while !waiting.is_empty() {
        let Some(ready) = waiting.iter().position(|(_, earlier)| earlier.iter().all(|n| ordered.contains(n)))
        else {
            let names: Vec<_> = waiting.iter().map(|(n, _)| *n).collect();
            return Err(format!(
                "features {} each want to stand before one another in arc {}",
                names.join(", "),
                features[0].arc
            ));
        };
        ordered.push(waiting.remove(ready).0);
    }
    Ok(ordered)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const fn feature(
        node: &'static str,
        before: &'static [&'static str],
        after: &'static [&'static str],
    ) -> FeatureSpec {
        FeatureSpec { arc: "ip4-unicast", node, before, after }
    }

    #[test]
    fn features_stand_where_they_asked_to() {
        let (a, b, c) = (feature("a", &[], &["b"]), feature("b", &[], &[]), feature("c", &["b"], &[]));
        assert_eq!(order(&[&a, &b, &c]), Ok(vec!["c", "b", "a"]));
    }

    #[test]
    fn who_comes_after_all_is_last() {
        let (a, b, c) = (feature("a", &[], &[ALL]), feature("b", &[], &[]), feature("c", &[], &["b"]));
        assert_eq!(order(&[&a, &b, &c]), Ok(vec!["b", "c", "a"]));
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
        let (a, b) = (feature("a", &["b"], &[]), feature("b", &["a"], &[]));
        assert!(order(&[&a, &b]).expect_err("cycle").contains("a, b"));
    }
}
