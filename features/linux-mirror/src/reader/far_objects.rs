//! Next-hop objects of VXLAN devices (`ip nexthop … fdb`): far ends, and groups of them that many
//! stations name. One change of a group redirects all of these (RFC 7432 §8.2).

use std::net::IpAddr;

use quiver_netlink::next_hop::{Kind, NextHop};

use super::kept::{Before, Kept};

/// What such an object says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FarObject {
    /// A far end.
    Vtep(IpAddr),
    /// Other objects.
    Group(Vec<u32>),
}

/// All of them, by number.
pub(crate) struct FarObjects(Kept<u32, FarObject>);

impl FarObjects {
    /// None.
    pub fn new() -> FarObjects {
        FarObjects(Kept::new())
    }

    /// An object is this now.
    pub fn put(&mut self, read: NextHop<'_>) {
        let object = match read.kind {
            Kind::Hop { gateway: Some(vtep), .. } => FarObject::Vtep(vtep),
            Kind::Group(members) => {
                FarObject::Group(members.into_iter().map(|(id, _)| id).collect())
            }
            Kind::Hop { .. } | Kind::Blackhole => return,
        };
        if self.0.replace(read.id, object) != Before::Same {
            self.report_groups_of(read.id);
        }
    }

    /// An object is gone. Groups lose the member, and Linux does not say so.
    pub fn went(&mut self, id: u32) {
        self.0.remove(id);
        self.report_groups_of(id);
    }

    fn report_groups_of(&mut self, id: u32) {
        let has_it =
            |object: &FarObject| matches!(object, FarObject::Group(all) if all.contains(&id));
        self.0.report_again(|_, object| has_it(object));
    }

    /// A dump begins.
    pub fn begin_dump(&mut self) {
        self.0.begin_dump();
    }

    /// The dump is whole: groups may have lost members that are not in it.
    pub fn sweep(&mut self) {
        let count = self.0.len();
        self.0.sweep();
        if self.0.len() != count {
            self.0.report_again(|_, object| matches!(object, FarObject::Group(_)));
        }
    }

    /// Report all of them again.
    pub fn report_all_again(&mut self) {
        self.0.report_again(|_, _| true);
    }

    /// How many changes are to be reported.
    pub fn unreported(&self) -> usize {
        self.0.unreported()
    }

    /// Changes that went into others before they were reported.
    pub fn coalesced(&self) -> u64 {
        self.0.coalesced
    }

    /// Up to `most` objects that have changed, and the far end to which frames go that name them.
    pub fn take_unreported(&mut self, most: usize) -> Vec<(u32, Option<IpAddr>)> {
        let changed = self.0.take_unreported(most);
        changed.into_iter().map(|(id, _)| (id, self.far_end(id))).collect()
    }

    /// The far end to which frames go that name an object: the first that is there.
    fn far_end(&self, id: u32) -> Option<IpAddr> {
        match self.0.get(id)? {
            FarObject::Vtep(vtep) => Some(*vtep),
            FarObject::Group(members) => members.iter().find_map(|id| match self.0.get(*id)? {
                FarObject::Vtep(vtep) => Some(*vtep),
                FarObject::Group(_) => None, // Linux has no groups of groups
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn vtep(last: u8) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(192, 0, 2, last))
    }

    fn put_vtep(objects: &mut FarObjects, id: u32) {
        let kind = Kind::Hop { gateway: Some(vtep(id as u8)), link: 0, encap: None };
        objects.put(NextHop { id, kind, is_far_end: true });
    }

    fn put_group(objects: &mut FarObjects, id: u32, members: &[u32]) {
        let kind = Kind::Group(members.iter().map(|member| (*member, 1)).collect());
        objects.put(NextHop { id, kind, is_far_end: true });
    }

    #[test]
    fn a_group_leads_to_its_first_member_that_is_there() {
        let mut objects = FarObjects::new();
        put_group(&mut objects, 10, &[1, 2]);
        assert_eq!(objects.take_unreported(9), [(10, None)], "its members are not known yet");
        put_vtep(&mut objects, 2);
        assert_eq!(objects.take_unreported(9), [(2, Some(vtep(2))), (10, Some(vtep(2)))]);
        put_vtep(&mut objects, 1);
        assert_eq!(objects.take_unreported(9), [(1, Some(vtep(1))), (10, Some(vtep(1)))]);
        put_vtep(&mut objects, 1);
        assert_eq!(objects.unreported(), 0, "the same again is no change");
        objects.went(1);
        assert_eq!(objects.take_unreported(9), [(1, None), (10, Some(vtep(2)))]);
        put_group(&mut objects, 11, &[10]);
        assert_eq!(objects.take_unreported(9), [(11, None)], "a group of groups leads nowhere");
    }

    #[test]
    fn a_member_that_is_missing_in_a_dump_is_taken_out_of_its_groups() {
        let mut objects = FarObjects::new();
        put_vtep(&mut objects, 1);
        put_vtep(&mut objects, 2);
        put_group(&mut objects, 10, &[1, 2]);
        objects.take_unreported(9);
        objects.begin_dump();
        put_vtep(&mut objects, 2);
        put_group(&mut objects, 10, &[1, 2]);
        objects.sweep();
        let mut reported = objects.take_unreported(9);
        reported.sort();
        assert_eq!(reported, [(1, None), (10, Some(vtep(2)))]);
    }
}
