//! The messages of a DHCPv6 client: how they are written, and what an identity association of a
//! server's message gives.

use std::net::Ipv6Addr;

use quiver_wire::Ip6Prefix;
use quiver_wire::dhcp6::{INFINITY_S, Ia, IaAddress, IaPrefix, Message, Writer, message, option};
use quiver_wire::ip6::address::{is_link_local, is_unicast};

use super::{BINDINGS_MAX, Binding, Client6, IaType, State};
use crate::retransmission::SECOND_NS;

/// The shortest prefix that is taken: a shorter one covers what is no single site's.
pub const PREFIX_LENGTH_MIN: u8 = 16;
/// Bytes of the longest message: it needs no fragments (RFC 8200 §5).
const MESSAGE_BYTES_MAX: usize = 1232;
/// Options that servers are asked for.
const OPTION_REQUEST: [u16; 2] = [option::NAME_SERVERS, option::SOL_MAX_RT];

/// A lifetime from now on.
fn after(now_ns: u64, seconds: u32) -> u64 {
    match seconds {
        INFINITY_S => u64::MAX,
        seconds => now_ns.saturating_add(u64::from(seconds) * SECOND_NS),
    }
}

/// May a client have this address, or a prefix that begins with it?
pub(super) fn is_acceptable(address: Ipv6Addr) -> bool {
    is_unicast(address)
        && !is_link_local(address)
        && !address.is_loopback()
        && address.to_ipv4_mapped().is_none()
}

/// What an IA gives: bindings, and the shortest lifetimes of them.
pub(super) struct Given {
    /// Bindings, those whose valid lifetime is 0, too.
    pub bindings: Vec<Binding>,
    /// Addresses or prefixes that are not taken.
    pub left_out: u64,
    /// T1.
    pub renew_ns: u64,
    /// T2.
    pub rebind_ns: u64,
}

/// T1 and T2: the server's, or 0.5 and 0.8 of the shortest preferred lifetime where the client may
/// choose (§14.2). It chooses, too, where the lease would end before.
fn times(ia: &Ia<'_>, preferred_s: u32, valid_s: u32) -> [u32; 2] {
    let share = |tenths: u64| match preferred_s {
        INFINITY_S => INFINITY_S,
        preferred_s => (u64::from(preferred_s) * tenths / 10) as u32,
    };
    let [t1_s, t2_s] = [ia.t1_s, ia.t2_s].map(|said_s| match said_s {
        INFINITY_S => INFINITY_S,
        said_s if said_s < valid_s => said_s,
        _ => 0,
    });
    let t2_s = if t2_s == 0 { share(8).max(t1_s) } else { t2_s };
    let t1_s = if t1_s == 0 { share(5).min(t2_s) } else { t1_s };
    [t1_s, t2_s]
}

impl Client6 {
    /// Writes the message of the state (§18.2, and §16 about its options).
    pub(super) fn message(&self, now_ns: u64) -> Option<Vec<u8>> {
        let kind = match (self.state, self.ia_type) {
            (State::Soliciting, _) => message::SOLICIT,
            (State::Requesting, _) => message::REQUEST,
            (State::Confirming, IaType::Na) => message::CONFIRM,
            (State::Renewing, _) => message::RENEW,
            // §18.2.12: prefixes are not confirmed.
            (State::Rebinding, _) | (State::Confirming, IaType::Pd) => message::REBIND,
            (State::Releasing, _) => message::RELEASE,
            (State::Declining, _) => message::DECLINE,
            (State::Down | State::Bound, _) => return None,
        };
        let mut out = vec![0; MESSAGE_BYTES_MAX];
        let mut writer = Writer::message(&mut out, kind, self.exchange.transaction).ok()?;
        writer.put(option::CLIENT_ID, &self.duid).ok()?;
        if matches!(kind, message::REQUEST | message::RENEW | message::RELEASE | message::DECLINE) {
            writer.put(option::SERVER_ID, self.server.as_ref()?).ok()?;
        }
        let elapsed = self.exchange.elapsed(now_ns);
        writer.put(option::ELAPSED_TIME, &elapsed.to_be_bytes()).ok()?;
        if kind == message::SOLICIT {
            writer.put(option::RAPID_COMMIT, &[]).ok()?;
        }
        if !matches!(kind, message::CONFIRM | message::RELEASE | message::DECLINE) {
            let requested: Vec<u8> =
                OPTION_REQUEST.iter().flat_map(|code| code.to_be_bytes()).collect();
            writer.put(option::OPTION_REQUEST, &requested).ok()?;
        }
        let bindings = match self.state {
            State::Requesting | State::Releasing | State::Declining => &self.leaving,
            _ => &self.bindings,
        };
        let inside = |writer: &mut Writer<'_>| {
            bindings.iter().try_for_each(|binding| match self.ia_type {
                IaType::Na => {
                    let member = IaAddress { address: binding.address, preferred_s: 0, valid_s: 0 };
                    writer.put(option::IA_ADDRESS, &member.bytes())
                }
                IaType::Pd => {
                    let Binding { address: prefix, length, .. } = *binding;
                    let member = IaPrefix { preferred_s: 0, valid_s: 0, length, prefix };
                    writer.put(option::IA_PREFIX, &member.bytes())
                }
            })
        };
        writer.put_nested(self.ia_type.option(), &Ia::head(self.iaid), inside).ok()?;
        let length = writer.finish();
        out.truncate(length);
        Some(out)
    }

    /// Our IA in a message of a server.
    pub(super) fn ia<'m>(&self, read: &Message<'m>) -> Option<Ia<'m>> {
        let own = self.ia_type.option();
        let all = read.options.flatten().filter(|(code, _)| *code == own);
        all.filter_map(|(_, data)| Ia::parse(data)).find(|ia| ia.iaid == self.iaid)
    }

    /// What an IA gives; `None` when its times make no sense (§21.4, §21.21). Bindings whose valid
    /// lifetime is 0 are among those given.
    pub(super) fn given(&self, ia: &Ia<'_>, now_ns: u64) -> Option<Given> {
        if ia.t1_s > ia.t2_s && ia.t2_s != 0 {
            return None;
        }
        let (mut bindings, mut left_out) = (Vec::new(), 0);
        let (mut shortest_s, mut valid_s) = (INFINITY_S, INFINITY_S);
        for (code, data) in ia.options.flatten() {
            let member = match (self.ia_type, code) {
                (IaType::Na, option::IA_ADDRESS) => IaAddress::parse(data).map(|read| {
                    let IaAddress { address, preferred_s, valid_s } = read;
                    IaPrefix {
                        preferred_s,
                        valid_s,
                        length: Ip6Prefix::LENGTH_MAX,
                        prefix: address,
                    }
                }),
                (IaType::Pd, option::IA_PREFIX) => {
                    IaPrefix::parse(data).filter(|read| read.length >= PREFIX_LENGTH_MIN)
                }
                _ => continue,
            };
            let member = member.filter(|read| read.preferred_s <= read.valid_s);
            let prefix = member.and_then(|read| Ip6Prefix::covering(read.prefix, read.length).ok());
            let good = member.zip(prefix.filter(|prefix| is_acceptable(prefix.address())));
            let Some((member, prefix)) = good.filter(|_| bindings.len() < BINDINGS_MAX) else {
                left_out += 1;
                continue;
            };
            if member.valid_s > 0 {
                let lifetime_s =
                    if member.preferred_s > 0 { member.preferred_s } else { member.valid_s };
                shortest_s = shortest_s.min(lifetime_s);
                valid_s = valid_s.min(member.valid_s);
            }
            bindings.push(Binding {
                address: prefix.address(),
                length: prefix.length(),
                preferred_until_ns: after(now_ns, member.preferred_s),
                valid_until_ns: after(now_ns, member.valid_s),
            });
        }
        let [renew_ns, rebind_ns] =
            times(ia, shortest_s, valid_s).map(|seconds| after(now_ns, seconds.max(1)));
        Some(Given { bindings, left_out, renew_ns, rebind_ns })
    }
}
