//! Whether two profiles have the same ports, so that a generator may keep them.

use quiver_wire::MacAddress;

use super::{Port, Profile};

impl Profile {
    /// Would another profile have the same ports, on the same core? Ports that play addresses
    /// answer with their MAC address, which then must be the same. Captures begin with their ports:
    /// with captures none are the same.
    pub fn has_ports_of(&self, other: &Profile) -> bool {
        let ports = |profile: &Profile| -> Vec<(Port, Option<MacAddress>)> {
            let answers = |port: &Port| {
                !port.ip4.is_empty() || !port.ip6.is_empty() || port.gateway.is_some()
            };
            let all = profile.ports.iter().map(|port| port.value.clone()).enumerate();
            all.map(|(number, port)| {
                let mac = answers(&port).then(|| profile.port_mac(number));
                (port, mac)
            })
            .collect()
        };
        let is_simple =
            |profile: &Profile| profile.captures.is_empty() && profile.stateful.is_none();
        is_simple(self)
            && is_simple(other)
            && self.cores == other.cores
            && ports(self) == ports(other)
    }
}
