//! Next-hop objects of Linux: what each comes to.

use std::collections::HashMap;

use crate::reader::{Object, ObjectHops};

/// By number: hops with their shares.
#[derive(Default)]
pub(crate) struct Objects(HashMap<u32, ObjectHops>);

impl Objects {
    /// An object is this now, or is gone.
    pub fn put(&mut self, id: u32, hops: Option<ObjectHops>) {
        match hops {
            Some(hops) => self.0.insert(id, hops),
            None => self.0.remove(&id),
        };
    }

    /// The hops of an object.
    pub fn hops(&self, id: u32) -> &[(Object, u32)] {
        self.0.get(&id).map_or(&[], Vec::as_slice)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}
