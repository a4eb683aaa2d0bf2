//! A map from VLAN identifiers, direct by index and in pages, that one thread changes in place
//! while others read. What has been made stays until the map is dropped.

use std::sync::OnceLock;

use quiver_wire::vlan::VlanId;

/// Identifiers in a page.
const PAGE: usize = 64;
/// Pages of a map: 4,096 identifiers.
const PAGES: usize = 4096 / PAGE;

/// See the head of this file.
pub struct VidMap<T> {
    pages: [OnceLock<Box<[T; PAGE]>>; PAGES],
}

impl<T> Default for VidMap<T> {
    fn default() -> VidMap<T> {
        VidMap { pages: std::array::from_fn(|_| OnceLock::new()) }
    }
}

impl<T: Default> VidMap<T> {
    /// What stands for `vlan`, if its page was made.
    #[inline(always)]
    pub fn get(&self, vlan: VlanId) -> Option<&T> {
        let vlan = usize::from(vlan.get());
        let page = self.pages[vlan / PAGE % PAGES].get()?;
        Some(&page[vlan % PAGE])
    }

    /// What stands for `vlan`; its page is made when it is not there.
    pub fn get_or_make(&self, vlan: VlanId) -> &T {
        let vlan = usize::from(vlan.get());
        let make = || Box::new(std::array::from_fn(|_| T::default()));
        &self.pages[vlan / PAGE % PAGES].get_or_init(make)[vlan % PAGE]
    }
}
