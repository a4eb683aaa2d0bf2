//! Checks of a profile's key `stateful`.

use serde_saphyr::Spanned;

use super::hosts::{HOSTS_MAX, Hosts};
use super::{
    BYTES_MAX, Clients, ENTRIES_MAX, Kind, LABEL_BYTES, ON_LINK_MAX, PACKETS_MAX, SECONDS_MAX,
    SEGMENT_BYTES_MAX, Stateful,
};
use crate::profile::port::Port;

impl Stateful {
    /// Check hosts, ports and values.
    ///
    /// # Errors
    /// When hosts, ports or values do not fit together; the message says what would be right.
    pub fn check(&self, ports: &[Spanned<Port>]) -> Result<(), String> {
        self.check_hosts(ports)?;
        self.check_transaction()?;
        let seconds = [
            ("ramp_up_s", self.ramp_up_s),
            ("hold_s", self.hold_s),
            ("time_wait_s", self.time_wait_s),
            ("ready_s", self.ready_s),
        ];
        for (key, value) in seconds {
            if !(0.0..=SECONDS_MAX).contains(&value) {
                return Err(format!("{key} {value} is outside 0..={SECONDS_MAX}"));
            }
        }
        if !(self.timeout_s > 0.0 && self.timeout_s <= SECONDS_MAX) {
            return Err(format!(
                "timeout_s {} is not above 0 and at most {SECONDS_MAX}",
                self.timeout_s
            ));
        }
        if self.rate_cps.is_some_and(|rate| !(rate > 0.0 && rate <= 1e9)) {
            return Err("rate_cps is not above 0 and at most 1e9; leave it out to go as fast as \
                --rate says"
                .to_owned());
        }
        if self.limit == Some(0) {
            return Err(
                "limit 0 begins no transaction; leave it out to go on until the time is over"
                    .to_owned(),
            );
        }
        if self.concurrent.is_some_and(|n| !(1..=ENTRIES_MAX).contains(&n)) {
            return Err(format!("concurrent is outside 1..={ENTRIES_MAX}"));
        }
        Ok(())
    }

    fn check_hosts(&self, ports: &[Spanned<Port>]) -> Result<(), String> {
        let last = ports.len().saturating_sub(1);
        let on = [("clients", self.clients.as_ref().map(|c| c.on)), ("servers", self.servers.on)];
        for (key, port) in on {
            if port.is_some_and(|port| port >= ports.len()) {
                return Err(format!(
                    "{key}: on names a port that is not there; there are ports 0 to {last}"
                ));
            }
        }
        let servers = self.servers.hosts().ok_or_else(|| wrong_range("servers"))?;
        if let Some(on) = self.servers.on {
            check_gateway("servers", &ports[on].value, &servers)?;
        }
        match &self.clients {
            Some(clients) => self.check_clients(clients, &ports[clients.on].value, &servers),
            None if self.servers.on.is_some() => Ok(()),
            None => Err("neither clients nor servers are on a port: nobody to play".into()),
        }
    }

    fn check_clients(&self, clients: &Clients, port: &Port, servers: &Hosts) -> Result<(), String> {
        let hosts = clients.hosts().ok_or_else(|| wrong_range("clients"))?;
        if hosts.is_ip6() != servers.is_ip6() {
            return Err(
                "clients and servers are of different families; give both IPv4 or both IPv6 \
                 addresses"
                    .into(),
            );
        }
        if hosts.overlaps(servers) {
            return Err("clients and servers share addresses; give each its own".into());
        }
        if self.servers.on == Some(clients.on) {
            return Err("clients and servers are on the same port; give each its own".into());
        }
        let end = u32::from(clients.first_port) + u32::from(clients.ports_per_host);
        if clients.ports_per_host == 0 || clients.first_port == 0 || end > 65_536 {
            return Err("ports_per_host: the ports from first_port on are outside 1..=65535".into());
        }
        if u64::from(clients.count) * u64::from(clients.ports_per_host) > u64::from(u32::MAX) {
            return Err(format!("clients: hosts times ports are more than {} sessions", u32::MAX));
        }
        check_gateway("clients", port, &hosts)?;
        let has_gateway = port.gateway.is_some() || port.gateway_mac.is_some();
        if !has_gateway && servers.count() > ON_LINK_MAX {
            return Err(format!(
                "more than {ON_LINK_MAX} servers are not resolved one by one; give the clients' \
                 port a gateway"
            ));
        }
        Ok(())
    }

    fn check_transaction(&self) -> Result<(), String> {
        let misfit =
            |key: &str, kind: &str| Err(format!("{key} is for kind: {kind}; leave it out"));
        match self.kind {
            Kind::Udp => {
                let tcp = [
                    ("request_bytes", self.request_bytes.is_some()),
                    ("response_bytes", self.response_bytes.is_some()),
                    ("segment", self.segment.is_some()),
                    ("close", self.close.is_some()),
                ];
                if let Some((key, _)) = tcp.iter().find(|(_, given)| *given) {
                    return misfit(key, "tcp");
                }
                for (key, packets) in
                    [("requests", self.requests()), ("responses", self.responses())]
                {
                    if !(1..=PACKETS_MAX).contains(&packets) {
                        return Err(format!("{key} {packets} is outside 1..={PACKETS_MAX}"));
                    }
                }
                let (least, most) =
                    (self.header_bytes() + LABEL_BYTES, self.header_bytes() + SEGMENT_BYTES_MAX);
                if !(least..=most).contains(&self.frame_bytes()) {
                    return Err(format!(
                        "frame {} is outside {least}..={most}",
                        self.frame_bytes()
                    ));
                }
            }
            Kind::Tcp => {
                let udp = [
                    ("requests", self.requests.is_some()),
                    ("responses", self.responses.is_some()),
                    ("frame", self.frame.is_some()),
                ];
                if let Some((key, _)) = udp.iter().find(|(_, given)| *given) {
                    return misfit(key, "udp");
                }
                for (key, bytes) in
                    [("request_bytes", self.request_bytes), ("response_bytes", self.response_bytes)]
                {
                    if bytes.is_some_and(|bytes| bytes > BYTES_MAX) {
                        return Err(format!("{key} is above {BYTES_MAX}"));
                    }
                }
                if !(64..=SEGMENT_BYTES_MAX).contains(&self.segment_bytes()) {
                    return Err(format!(
                        "segment {} is outside 64..={SEGMENT_BYTES_MAX}",
                        self.segment_bytes()
                    ));
                }
            }
        }
        Ok(())
    }
}

fn wrong_range(key: &str) -> String {
    format!("{key}: count is outside 1..={HOSTS_MAX}, or leaves the addresses' family")
}

fn check_gateway(key: &str, port: &Port, hosts: &Hosts) -> Result<(), String> {
    match port.gateway {
        Some(gateway) if gateway.is_ipv6() != hosts.is_ip6() => {
            Err(format!("{key}: the gateway of their port is of another family"))
        }
        Some(gateway) if hosts.contains(gateway) => {
            Err(format!("{key}: {gateway} is the gateway of their port, and one of them"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::stateful::tests::two_ports;

    fn refused(change: &str) -> String {
        let text = format!(
            "{{clients: {{on: 0, first: 10.0.0.0}}, servers: {{on: 1, first: 20.0.0.0}}, {change}}}"
        );
        let parsed: Result<Stateful, _> = serde_saphyr::from_str(&text);
        parsed
            .map_err(|error| error.to_string())
            .and_then(|s| s.check(&two_ports()))
            .expect_err("must be refused")
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_would_be_right() {
        assert!(refused("kind: tcp, requests: 3").contains("kind: udp"));
        assert!(refused("kind: udp, request_bytes: 3").contains("kind: tcp"));
        assert!(refused("kind: udp, responses: 0").contains("outside 1..=4096"));
        assert!(refused("kind: udp, frame: 40").contains("outside 50..="));
        assert!(refused("kind: tcp, segment: 9000").contains("outside 64..="));
        assert!(refused("kind: tcp, hold_s: -1").contains("hold_s"));
        assert!(refused("kind: tcp, rate_cps: 0").contains("above 0"));
        assert!(refused("kind: tcp, limit: 0").contains("limit 0"));
        assert!(refused("kind: tcp, concurrent: 0").contains("concurrent"));
        assert!(refused("kind: sctp").contains("sctp"));
        assert!(refused("kind: tcp, speed: 1").contains("speed"));
    }

    #[test]
    fn hosts_that_cannot_be_are_refused() {
        let refused = |text: &str| {
            let parsed: Result<Stateful, _> = serde_saphyr::from_str(text);
            parsed
                .map_err(|error| error.to_string())
                .and_then(|s| s.check(&two_ports()))
                .expect_err("must be refused")
        };
        let servers = "servers: {on: 1, first: 20.0.0.0";
        assert!(
            refused(&format!("{{kind: tcp, clients: {{on: 7, first: 10.0.0.0}}, {servers}}}}}"))
                .contains("0 to 1")
        );
        assert!(
            refused(&format!("{{kind: tcp, clients: {{on: 1, first: 10.0.0.0}}, {servers}}}}}"))
                .contains("same port")
        );
        assert!(
            refused(&format!("{{kind: tcp, clients: {{on: 0, first: 20.0.0.0}}, {servers}}}}}"))
                .contains("share")
        );
        assert!(
            refused(&format!("{{kind: tcp, clients: {{on: 0, first: \"::1\"}}, {servers}}}}}"))
                .contains("families")
        );
        assert!(refused("{kind: tcp, servers: {first: 20.0.0.0}}").contains("nobody"));
        assert!(refused(&format!("{{kind: tcp, {servers}, port: 0}}}}")).contains("1 to 65535"));
        assert!(refused(&format!("{{kind: tcp, {servers}, port: any}}}}")).contains("same"));
        let many = "{kind: tcp, clients: {on: 0, first: 10.0.0.0}, servers: {first: 20.0.0.0, \
            count: 5000}}";
        assert!(refused(many).contains("gateway"));
    }
}
