//! Routes that every table has before anybody adds one.

use quiver_core::NodeId;
use quiver_tables::prefix::IpPrefix;

use super::path::{Family, Path, Source, Target};
use super::{Fib, FibError};
use crate::next_hop_group::Hop;

impl Fib {
    /// What the router's own tables must say before anybody adds a route.
    pub(super) fn add_special_routes(
        &mut self,
        family: Family,
        table: u32,
    ) -> Result<(), FibError> {
        let prefix = |text: &str, len| IpPrefix::new(text.parse().expect("a literal address"), len);
        let link_local = Target::Feature(Hop { next: self.nodes.ip6_link_local, index: 0 });
        let lead = |next| Target::Feature(Hop { next, index: table });
        let [groups4, groups6] =
            self.groups_lead.map_or([Target::Drop; 2], |nodes| nodes.map(lead));
        let routes = match family {
            // RFC 5771 §3, RFC 1112 §4: routed by other means or not at all. RFC 919 §7: the
            // limited broadcast is for every host that hears it, and is never forwarded.
            Family::Ip4 => vec![
                (prefix("224.0.0.0", 4), groups4),
                (prefix("240.0.0.0", 4), Target::Drop),
                (prefix("255.255.255.255", 32), Target::Local),
            ],
            // RFC 4291 §2.5.6 and §2.7: link-local destinations mean nothing without an interface;
            // link-local groups are the router's to hear.
            Family::Ip6 => vec![
                (prefix("fe80::", 10), link_local),
                (prefix("ff00::", 8), groups6),
                (prefix("ff02::", 16), Target::Local),
            ],
        };
        // RFC 5771 §4: link-local groups are the router's to hear, if anybody in it listens to
        // groups.
        let hears = family == Family::Ip4 && self.groups_lead.is_some();
        let local4 = hears.then(|| (prefix("224.0.0.0", 24), Target::Local));
        for (prefix, target) in routes.into_iter().chain(local4) {
            self.replace_route(table, prefix, Source::Special, &[Path::new(target)])?;
        }
        Ok(())
    }

    /// From now on packets to groups go to these nodes, with the small number of their table, and
    /// those to IPv4 groups of the link to the router itself.
    ///
    /// # Errors
    /// A table is full.
    pub fn lead_groups(&mut self, ip4: NodeId, ip6: NodeId) -> Result<(), FibError> {
        self.groups_lead = Some([ip4, ip6]);
        for family in [Family::Ip4, Family::Ip6] {
            for (_, table) in self.tables(family) {
                self.add_special_routes(family, table)?;
            }
        }
        Ok(())
    }
}
