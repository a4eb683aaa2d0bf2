//! Next-hop objects: paths that routes name by a number, so that replacing an object is one store
//! for all routes that name it (Linux's `ip nexthop`; PIC of draft-ietf-rtgwg-bgp-pic).

use std::collections::BTreeMap;

use quiver_core::InterfaceId;

use super::path::{Path, Target};
use super::routes::is_unicast;
use super::{Fib, FibError};
use crate::next_hop_group::PATHS_MAX;

/// Next-hop objects at most.
const OBJECTS_MAX: usize = 1 << 20;

/// The number of an object: who made it, and the number that it has there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NextHopObjectId {
    /// Who made it.
    pub owner: u32,
    /// Its number there.
    pub number: u32,
}

/// All of them.
#[derive(Default)]
pub(super) struct NextHopObjects(BTreeMap<NextHopObjectId, Vec<Path>>);

impl NextHopObjects {
    /// The paths of an object, in order of preference; none when it is not there.
    pub fn paths(&self, id: NextHopObjectId) -> &[Path] {
        self.0.get(&id).map_or(&[], Vec::as_slice)
    }

    /// The interface is gone: no object leads there.
    pub fn forget_interface(&mut self, id: InterfaceId) {
        self.0.values_mut().for_each(|paths| paths.retain(|path| !path.names(id)));
    }
}

impl Fib {
    /// Make these the paths of a next-hop object, of which routes say
    /// [`Target::NextHopObject`]; they follow at once. An object may be named before it is there,
    /// and its paths lead to next hops on interfaces or drop.
    ///
    /// # Errors
    /// There are too many objects or too many paths, or a path has weight 0 or is one that an
    /// object cannot have; nothing changes then.
    pub fn set_next_hop_object(
        &mut self,
        id: NextHopObjectId,
        mut paths: Vec<Path>,
    ) -> Result<(), FibError> {
        let is_new = !self.objects.0.contains_key(&id);
        if is_new && self.objects.0.len() >= OBJECTS_MAX {
            return Err(FibError::NextHopObjectsFull(OBJECTS_MAX));
        }
        let fits = |path: &Path| {
            let leads = match path.target {
                Target::Via { next_hop, interface } => interface.is_some() && is_unicast(next_hop),
                Target::Attached(_) | Target::Drop | Target::Unreachable | Target::Prohibit => true,
                _ => false,
            };
            leads && path.weight > 0
        };
        if paths.len() > PATHS_MAX || !paths.iter().all(fits) {
            return Err(FibError::BadNextHopObject(id.number));
        }
        paths.sort_unstable();
        if self.objects.0.get(&id) != Some(&paths) {
            self.objects.0.insert(id, paths);
            self.resolve_again(self.lists.of_object(id));
        }
        Ok(())
    }

    /// Take an object away. Routes that name it have no path until it is there again.
    pub fn remove_next_hop_object(&mut self, id: NextHopObjectId) {
        if self.objects.0.remove(&id).is_some() {
            self.resolve_again(self.lists.of_object(id));
        }
    }

    /// The paths of an object.
    pub fn next_hop_object(&self, id: NextHopObjectId) -> &[Path] {
        self.objects.paths(id)
    }
}
