//! Features along the paths of an interface.

use super::InterfaceError;
use crate::control::engine::Engine;
use crate::graph::arc::{ARCS_MAX, ArcId, Chain, FEATURES_PER_CHAIN_MAX};
use crate::ids::{InterfaceId, NodeId};

impl Engine {
    /// Switch a feature on or off on an interface. Its place among the others is fixed by the arc.
    ///
    /// # Errors
    /// The interface, or the feature in this arc, does not exist, or a worker does not answer.
    pub fn set_feature(
        &mut self,
        id: InterfaceId,
        arc: &str,
        feature: &str,
        on: bool,
    ) -> Result<(), InterfaceError> {
        let unknown =
            || InterfaceError::NoFeature { feature: feature.to_owned(), arc: arc.to_owned() };
        let arc_id = self.arc_id(arc).ok_or_else(unknown)?;
        let node = self.node_id(feature).ok_or_else(unknown)?;
        let order: Vec<NodeId> =
            self.arcs[arc_id.0 as usize].features.iter().filter_map(|f| self.node_id(f)).collect();
        if !order.contains(&node) {
            return Err(unknown());
        }
        self.change_row(id, |interface| {
            let chain = &mut interface.row.chains[arc_id.0 as usize];
            let mut enabled: Vec<NodeId> = chain.iter().filter(|n| *n != node).collect();
            if on {
                enabled.push(node);
            }
            if enabled.len() > FEATURES_PER_CHAIN_MAX {
                return Err(InterfaceError::TooManyFeatures);
            }
            enabled.sort_by_key(|n| order.iter().position(|o| o == n));
            *chain = Chain::default();
            chain.nodes.iter_mut().zip(enabled).for_each(|(place, n)| *place = n.0);
            Ok(())
        })?;
        Ok(())
    }

    /// Say that `who` needs a feature in an arc on an interface, or needs it no more. It is enabled
    /// while anybody does: for features that others build upon. Nothing else should switch such a
    /// feature.
    ///
    /// # Errors
    /// The interface, or the feature in this arc, does not exist, or a worker does not answer.
    pub fn need_feature(
        &mut self,
        id: InterfaceId,
        arc: &str,
        feature: &str,
        who: &'static str,
        needed: bool,
    ) -> Result<(), InterfaceError> {
        let unknown =
            || InterfaceError::NoFeature { feature: feature.to_owned(), arc: arc.to_owned() };
        let key =
            (self.arc_id(arc).ok_or_else(unknown)?, self.node_id(feature).ok_or_else(unknown)?);
        let interface = self.interface(id).ok_or(InterfaceError::Unknown)?;
        let others = interface.who_needs(key.0, key.1).any(|other| other != who);
        self.set_feature(id, arc, feature, needed || others)?;
        let interface = self.interfaces.list.get_mut(id.index()).and_then(Option::as_mut);
        let all = &mut interface.ok_or(InterfaceError::Unknown)?.needed;
        if needed {
            all.entry(key).or_default().insert(who);
        } else if let Some(of_feature) = all.get_mut(&key) {
            of_feature.remove(who);
        }
        Ok(())
    }

    /// The features enabled on an interface in an arc, in order.
    pub fn features_of(&self, id: InterfaceId, arc: ArcId) -> Vec<String> {
        let chain = self.interface(id).map(|i| i.row.chains[arc.0 as usize % ARCS_MAX]);
        chain.iter().flat_map(Chain::iter).map(|n| self.node_name(n)).collect()
    }
}
