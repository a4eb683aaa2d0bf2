//! Prefixes that servers delegate to clients behind this relay agent, as routes through the client
//! (RFC 8987 §4.2): each for its lifetime.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Fib, Path, Source};
use quiver_tables::prefix::IpPrefix;
use quiver_wire::Ip6Prefix;
use quiver_wire::dhcp6::{INFINITY_S, IaPrefix, Message, message};
use quiver_wire::ip6::address::{is_link_local, is_unicast};

use crate::config::is_up;
use crate::reasons::RelayReason;

/// Delegated prefixes of the router at most.
pub const PREFIXES_MAX: usize = 16_384;
/// Delegated prefixes of one client at most.
pub const PREFIXES_OF_CLIENT_MAX: usize = 32;
const SECOND_NS: u64 = 1_000_000_000;

/// A client behind this relay agent: its interface and its address there.
pub type Client = (InterfaceId, Ipv6Addr);

/// A delegated prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delegated {
    /// Who has it.
    pub client: Client,
    /// Until when; `u64::MAX`: for ever.
    pub until_ns: u64,
    /// The client gives it back in this transaction; it is gone when the server agrees.
    releasing: Option<u32>,
}

/// All of them, and their routes.
#[derive(Debug, Default)]
pub struct Prefixes {
    all: BTreeMap<Ip6Prefix, Delegated>,
    by_client: BTreeMap<Client, BTreeSet<Ip6Prefix>>,
    /// The routes that are in the tables (small numbers).
    installed: BTreeMap<Ip6Prefix, (u32, Path)>,
    /// Prefixes whose routes may have to change.
    touched: BTreeSet<Ip6Prefix>,
}

/// May a client have a prefix? Not one that is of one link, or no host's.
fn is_acceptable(prefix: &Ip6Prefix) -> bool {
    let first = prefix.address();
    prefix.length() > 0
        && is_unicast(first)
        && !is_link_local(first)
        && !first.is_loopback()
        && first.to_ipv4_mapped().is_none()
}

impl Prefixes {
    /// All, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Ip6Prefix, &Delegated)> {
        self.all.iter()
    }

    /// Is the route of a prefix in its table?
    pub fn is_installed(&self, prefix: &Ip6Prefix) -> bool {
        self.installed.contains_key(prefix)
    }

    fn remove(&mut self, prefix: &Ip6Prefix) {
        let Some(gone) = self.all.remove(prefix) else { return };
        self.touched.insert(*prefix);
        if let Some(own) = self.by_client.get_mut(&gone.client) {
            own.remove(prefix);
            if own.is_empty() {
                self.by_client.remove(&gone.client);
            }
        }
    }

    fn put(&mut self, client: Client, said: IaPrefix, now_ns: u64) -> Result<(), RelayReason> {
        let prefix = Ip6Prefix::covering(said.prefix, said.length).ok();
        let prefix = prefix.filter(is_acceptable).ok_or(RelayReason::BadPrefix)?;
        // §21.22: clients discard such a prefix.
        if said.preferred_s > said.valid_s {
            return Err(RelayReason::BadPrefix);
        }
        if said.valid_s == 0 {
            if self.all.get(&prefix).is_some_and(|known| known.client == client) {
                self.remove(&prefix);
            }
            return Ok(());
        }
        let until_ns = match said.valid_s {
            INFINITY_S => u64::MAX,
            valid_s => now_ns + u64::from(valid_s) * SECOND_NS,
        };
        // The server says who has it: a client with a new address keeps its prefix.
        self.remove(&prefix);
        let count = self.by_client.get(&client).map_or(0, BTreeSet::len);
        if self.all.len() >= PREFIXES_MAX || count >= PREFIXES_OF_CLIENT_MAX {
            return Err(RelayReason::PrefixesFull);
        }
        self.by_client.entry(client).or_default().insert(prefix);
        self.touched.insert(prefix);
        self.all.insert(prefix, Delegated { client, until_ns, releasing: None });
        Ok(())
    }

    /// A client's message passes: does it give prefixes back?
    pub fn hear_client(&mut self, client: Client, bytes: &[u8]) {
        let Ok(read) = Message::parse(bytes) else { return };
        if read.message_type != message::RELEASE {
            return;
        }
        for said in read.prefixes().take(PREFIXES_OF_CLIENT_MAX) {
            let prefix = Ip6Prefix::covering(said.prefix, said.length).ok();
            let known = prefix.and_then(|prefix| self.all.get_mut(&prefix));
            if let Some(known) = known.filter(|known| known.client == client) {
                known.releasing = Some(read.transaction);
            }
        }
    }

    /// A server's message to a client passes. Returns why prefixes in it get no route.
    pub fn hear_server(&mut self, client: Client, bytes: &[u8], now_ns: u64) -> Vec<RelayReason> {
        let read = Message::parse(bytes).ok().filter(|read| read.message_type == message::REPLY);
        let Some(read) = read else { return Vec::new() };
        let own: Vec<Ip6Prefix> =
            self.by_client.get(&client).into_iter().flatten().copied().collect();
        for prefix in own {
            let known = self.all.get(&prefix);
            if known.is_some_and(|known| known.releasing == Some(read.transaction)) {
                self.remove(&prefix);
            }
        }
        let said = read.prefixes().take(2 * PREFIXES_OF_CLIENT_MAX);
        said.filter_map(|said| self.put(client, said, now_ns).err()).collect()
    }

    /// An interface is gone, and its clients with it.
    pub fn forget_interface(&mut self, id: InterfaceId) {
        self.retain(|known| known.client.0 != id);
    }

    /// Prefixes whose lifetime is over go.
    pub fn age(&mut self, now_ns: u64) {
        self.retain(|known| known.until_ns > now_ns);
    }

    /// Take those away that are not to stay; true when the operator names one that is there.
    pub fn clear(&mut self, which: Option<Ip6Prefix>) -> bool {
        let before = self.all.len();
        match which {
            Some(prefix) => self.remove(&prefix),
            None => self.retain(|_| false),
        }
        self.all.len() < before
    }

    fn retain(&mut self, stays: impl Fn(&Delegated) -> bool) {
        let gone = self.all.iter().filter(|(_, known)| !stays(known));
        let gone: Vec<Ip6Prefix> = gone.map(|(prefix, _)| *prefix).collect();
        gone.iter().for_each(|prefix| self.remove(prefix));
    }

    /// Make the tables follow all interfaces: a prefix has its route while its client's interface
    /// is up. A route that found no room is tried again.
    pub fn follow_all(&mut self, engine: &mut Engine) {
        self.touched.extend(self.all.keys().chain(self.installed.keys()));
        self.follow(engine);
    }

    /// Make the tables follow what has changed.
    pub fn follow(&mut self, engine: &mut Engine) {
        if self.touched.is_empty() {
            return;
        }
        engine.with(|engine, fib: &mut Fib| self.follow_in(engine, fib));
    }

    fn follow_in(&mut self, engine: &Engine, fib: &mut Fib) {
        for prefix in std::mem::take(&mut self.touched) {
            let wanted = self.all.get(&prefix).and_then(|known| {
                let (id, client) = known.client;
                let info = fib.interface(id).filter(|_| is_up(engine, id))?;
                Some((info.ip6_table, Path::via(client, Some(id))))
            });
            let old = self.installed.get(&prefix).copied();
            if wanted == old {
                continue;
            }
            let place = IpPrefix::new(prefix.address().into(), prefix.length());
            if let Some((table, _)) = old.filter(|old| wanted.is_none_or(|new| new.0 != old.0)) {
                // It may be gone already with its table.
                let _ = fib.remove_route(table, place, Source::Leased);
                self.installed.remove(&prefix);
            }
            if let Some((table, path)) = wanted
                && fib.replace_route(table, place, Source::Leased, &[path]).is_ok()
            {
                self.installed.insert(prefix, (table, path));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: Client = (InterfaceId(1), Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 9));

    fn said(text: &str, length: u8, valid_s: u32) -> IaPrefix {
        IaPrefix { preferred_s: valid_s, valid_s, length, prefix: text.parse().unwrap() }
    }

    fn bytes(kind: u8, transaction: u8, prefixes: &[IaPrefix]) -> Vec<u8> {
        let mut out = vec![kind, 0, 0, transaction, 0, 25];
        out.extend((12 + 29 * prefixes.len() as u16).to_be_bytes());
        out.extend([0; 12]);
        for prefix in prefixes {
            out.extend([0, 26, 0, 25]);
            out.extend(prefix.bytes());
        }
        out
    }

    fn known(prefixes: &Prefixes) -> Vec<String> {
        prefixes.iter().map(|(prefix, _)| prefix.to_string()).collect()
    }

    #[test]
    fn a_reply_delegates_and_time_takes_away() {
        let mut prefixes = Prefixes::default();
        let reply =
            bytes(7, 1, &[said("2001:db8:1::", 56, 10), said("2001:db8:2::", 56, INFINITY_S)]);
        assert!(prefixes.hear_server(CLIENT, &reply, 0).is_empty());
        assert_eq!(known(&prefixes), ["2001:db8:1::/56", "2001:db8:2::/56"]);
        prefixes.age(10 * SECOND_NS);
        assert_eq!(known(&prefixes), ["2001:db8:2::/56"]);
        prefixes.hear_server(CLIENT, &bytes(7, 2, &[said("2001:db8:2::", 56, 0)]), 0);
        assert!(known(&prefixes).is_empty() && prefixes.by_client.is_empty());
        prefixes.hear_server(CLIENT, &bytes(2, 1, &[said("2001:db8:1::", 56, 10)]), 0);
        assert!(known(&prefixes).is_empty(), "an offer delegates nothing");
    }

    #[test]
    fn a_release_counts_when_it_is_the_owners_and_the_server_agrees() {
        let mut prefixes = Prefixes::default();
        let one = [said("2001:db8:1::", 56, 10)];
        prefixes.hear_server(CLIENT, &bytes(7, 1, &one), 0);
        let stranger = (InterfaceId(1), Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0x66));
        prefixes.hear_client(stranger, &bytes(8, 9, &one));
        prefixes.hear_server(stranger, &bytes(7, 9, &[]), 0);
        prefixes.hear_server(CLIENT, &bytes(7, 9, &[]), 0);
        assert_eq!(known(&prefixes).len(), 1, "not the owner's");
        prefixes.hear_client(CLIENT, &bytes(8, 5, &one));
        prefixes.hear_server(CLIENT, &bytes(7, 6, &[]), 0);
        assert_eq!(known(&prefixes).len(), 1, "another transaction");
        prefixes.hear_server(CLIENT, &bytes(7, 5, &[]), 0);
        assert!(known(&prefixes).is_empty());
    }

    #[test]
    fn there_is_a_limit_and_some_prefixes_no_client_may_have() {
        let mut prefixes = Prefixes::default();
        let many: Vec<_> = (0..40).map(|n| said(&format!("2001:db8:{n}::"), 48, 10)).collect();
        let refused = prefixes.hear_server(CLIENT, &bytes(7, 1, &many), 0);
        assert_eq!(refused, [RelayReason::PrefixesFull; 8]);
        assert_eq!(known(&prefixes).len(), PREFIXES_OF_CLIENT_MAX);
        let bad = [
            said("fe80::", 10, 10),
            said("ff00::", 8, 10),
            said("::", 0, 10),
            said("2001::", 129, 9),
        ];
        let refused = Prefixes::default().hear_server(CLIENT, &bytes(7, 1, &bad), 0);
        assert_eq!(refused, [RelayReason::BadPrefix; 4]);
        let moved = (InterfaceId(2), CLIENT.1);
        prefixes.hear_server(moved, &bytes(7, 1, &many[..1]), 0);
        assert_eq!(known(&prefixes).len(), PREFIXES_OF_CLIENT_MAX, "it has moved");
        prefixes.forget_interface(InterfaceId(1));
        assert_eq!(known(&prefixes), ["2001:db8::/48"]);
    }
}
