//! How long packets of the router's own may be on their way to a destination, as routers on the way
//! have told (RFC 1191, RFC 8201). A destination of one table is another than that of another.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// Destinations that are remembered; the one whose time is over first makes room.
pub const PATH_MTUS_MAX: usize = 1024;
/// What was told is believed for so long (RFC 1191 §6.3, RFC 8201 §5.3: 10 minutes), and then tried
/// anew.
pub const PATH_MTU_AGE_NS: u64 = 600 * 1_000_000_000;
/// A path of less is no path of IPv4 (RFC 791 §3.2).
pub const IP4_MTU_MIN: u16 = 68;
/// A path of less is no path of IPv6 (RFC 8200 §5).
pub const IP6_MTU_MIN: u16 = 1280;
/// What links have, in bytes: the next lower one is tried when a router does not tell its own
/// (RFC 1191 §7.1).
const PLATEAUS: [u16; 10] = [32000, 17914, 8166, 4352, 2002, 1492, 1006, 508, 296, 68];

/// What is known of one destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathMtu {
    /// The longest packet, bytes.
    pub mtu_bytes: u16,
    /// When it is forgotten; `None`: the operator said so.
    pub until_ns: Option<u64>,
}

/// A path: the small number of the table in which its packets are looked up, and their destination.
pub(crate) type PathTo = (u32, IpAddr);

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct PathMtus(BTreeMap<PathTo, PathMtu>);

/// The least that a family's paths have.
pub(crate) fn least(address: IpAddr) -> u16 {
    if address.is_ipv4() { IP4_MTU_MIN } else { IP6_MTU_MIN }
}

impl PathMtus {
    /// The longest packet that goes there, if it is known.
    pub fn get(&self, to: PathTo) -> Option<u16> {
        self.0.get(&to).map(|path| path.mtu_bytes)
    }

    /// All, by table and destination.
    pub fn iter(&self) -> impl Iterator<Item = (PathTo, PathMtu)> {
        self.0.iter().map(|(to, path)| (*to, *path))
    }

    /// A router says that a packet of `sent_bytes` is longer than its next link takes; `told_bytes`
    /// is what that takes, or 0. What is not less than what was sent, or than is possible, is not
    /// believed (RFC 8201 §4): the new value, if it was.
    pub fn learn(
        &mut self,
        to: PathTo,
        told_bytes: u16,
        sent_bytes: usize,
        now_ns: u64,
    ) -> Option<u16> {
        let mtu_bytes = match told_bytes {
            0 if to.1.is_ipv4() => {
                PLATEAUS.into_iter().find(|plateau| usize::from(*plateau) < sent_bytes)?
            }
            told => told,
        };
        let known = self.0.get(&to);
        let is_less = usize::from(mtu_bytes) < sent_bytes
            && known.is_none_or(|old| mtu_bytes < old.mtu_bytes);
        if mtu_bytes < least(to.1) || !is_less || known.is_some_and(|old| old.until_ns.is_none()) {
            return None;
        }
        self.make_room(to);
        self.0.insert(to, PathMtu { mtu_bytes, until_ns: Some(now_ns + PATH_MTU_AGE_NS) });
        Some(mtu_bytes)
    }

    /// The operator says what a path takes.
    pub fn say(&mut self, to: PathTo, mtu_bytes: u16) {
        self.make_room(to);
        self.0.insert(to, PathMtu { mtu_bytes, until_ns: None });
    }

    /// Forget a path; false when there was nothing to forget.
    pub fn remove(&mut self, to: PathTo) -> bool {
        self.0.remove(&to).is_some()
    }

    /// A table of a family is gone.
    pub fn forget_table(&mut self, table: u32, six: bool) {
        self.0.retain(|(of, address), _| *of != table || address.is_ipv6() != six);
    }

    /// Forget what was learned.
    pub fn clear(&mut self) {
        self.0.retain(|_, path| path.until_ns.is_none());
    }

    /// Forget what is old.
    pub fn forget_old(&mut self, now_ns: u64) {
        self.0.retain(|_, path| path.until_ns.is_none_or(|until_ns| now_ns < until_ns));
    }

    fn make_room(&mut self, to: PathTo) {
        if self.0.len() < PATH_MTUS_MAX || self.0.contains_key(&to) {
            return;
        }
        let first_over = self.0.iter().min_by_key(|(_, path)| path.until_ns.unwrap_or(u64::MAX));
        if let Some(unlucky) = first_over.map(|(to, _)| *to) {
            self.0.remove(&unlucky);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAR: PathTo = (0, IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)));

    #[test]
    fn a_path_only_gets_shorter_until_its_time_is_over() {
        let mut paths = PathMtus::default();
        assert_eq!(paths.learn(FAR, 1400, 1500, 0), Some(1400));
        assert_eq!(paths.learn(FAR, 1450, 1500, 0), None);
        assert_eq!(paths.learn(FAR, 1300, 1400, 5), Some(1300));
        paths.forget_old(PATH_MTU_AGE_NS);
        assert_eq!(paths.get(FAR), Some(1300));
        paths.forget_old(PATH_MTU_AGE_NS + 5);
        assert_eq!(paths.get(FAR), None);
    }

    #[test]
    fn each_table_has_paths_of_its_own() {
        let mut paths = PathMtus::default();
        assert_eq!(paths.learn(FAR, 1400, 1500, 0), Some(1400));
        assert_eq!(paths.get((1, FAR.1)), None);
        assert_eq!(paths.learn((1, FAR.1), 1450, 1500, 0), Some(1450));
        paths.forget_table(1, true);
        assert_eq!((paths.get(FAR), paths.get((1, FAR.1))), (Some(1400), Some(1450)));
        paths.forget_table(1, false);
        assert_eq!((paths.get(FAR), paths.get((1, FAR.1))), (Some(1400), None));
    }

    #[test]
    fn what_cannot_be_is_not_believed() {
        let mut paths = PathMtus::default();
        let six = (0, "2001:db8::1".parse().unwrap());
        assert_eq!(paths.learn(FAR, 67, 1500, 0), None);
        assert_eq!(paths.learn(FAR, 1500, 1500, 0), None, "it would have fitted");
        assert_eq!(paths.learn(six, 1279, 1500, 0), None);
        assert_eq!(paths.learn(six, 0, 1500, 0), None);
        assert_eq!(paths.learn(six, 1280, 1500, 0), Some(1280));
    }

    #[test]
    fn a_router_that_does_not_tell_makes_the_next_plateau_be_tried() {
        let mut paths = PathMtus::default();
        assert_eq!(paths.learn(FAR, 0, 1500, 0), Some(1492));
        assert_eq!(paths.learn(FAR, 0, 1492, 0), Some(1006));
        assert_eq!(paths.learn(FAR, 0, 68, 0), None);
    }

    #[test]
    fn what_the_operator_says_stands_and_the_table_has_an_end() {
        let mut paths = PathMtus::default();
        paths.say(FAR, 1000);
        assert_eq!(paths.learn(FAR, 500, 1000, 0), None);
        for number in 0..5000_u32 {
            paths.learn((0, IpAddr::V4(number.into())), 600, 1500, number.into());
        }
        assert_eq!((paths.0.len(), paths.get(FAR)), (PATH_MTUS_MAX, Some(1000)));
        paths.clear();
        assert_eq!(paths.0.len(), 1);
        assert!(paths.remove(FAR) && !paths.remove(FAR));
    }
}
