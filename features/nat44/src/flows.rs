//! The two flows of a new session, from inside and from outside.

use quiver_core::Context;
use quiver_nat_log::Event;
use quiver_translation::flow::{End, Flow, Kind, icmp};
use quiver_wire::IpProtocol;

use crate::alg::expected::{Expectation, Target};
use crate::bindings::{Bindings, permission_keys, subscriber_keys};
use crate::node::Nat44Drop;
use crate::owned::{Owner, Refused};
use crate::ports::{ALL_PORTS, PORTS_PER_LOOK_UP, Wanted};
use crate::session::{Direction, Flags, flag};
use crate::standby::Journal;
use crate::tables::{Filtering, Mapping, Rules, TwiceNat};

/// What a new session is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// The flow of packets from inside.
    pub inside: Flow,
    /// The flow of packets from outside.
    pub outside: Flow,
    pub flags: Flags,
}

/// When a session is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub now_s: u32,
    pub now_ns: u64,
}

impl Moment {
    /// This pass.
    pub fn of(cx: &Context<'_>) -> Moment {
        Moment { now_s: (cx.now_ns / 1_000_000_000) as u32, now_ns: cx.now_ns }
    }
}

/// The TCP flags of a packet that opens something.
pub(crate) fn check_opens(flow: &Flow, kind: Kind) -> Result<u8, Nat44Drop> {
    match kind {
        Kind::Data { tcp_flags } if flow.protocol == IpProtocol::TCP => {
            let opens = flag::SYN | flag::ACK | flag::RST | flag::FIN;
            (tcp_flags & opens == flag::SYN).then_some(tcp_flags).ok_or(Nat44Drop::NonSyn)
        }
        Kind::Query { kind: icmp::ECHO | icmp::TIMESTAMP } | Kind::Data { .. } => Ok(0),
        _ => Err(Nat44Drop::BadIcmpType),
    }
}

/// The flags of one more session of a host, which is within its limits.
pub(crate) fn admit(
    (bindings, log): (Option<&mut Bindings>, &mut Journal),
    rules: &Rules,
    host: (u32, u32),
    at: Moment,
) -> Result<Flags, Refused> {
    let provider = &rules.provider;
    let Some(bindings) = bindings.filter(|_| !provider.is_default()) else {
        return Ok(Flags::default());
    };
    let no_place = |_| Refused::Answered(Nat44Drop::BindingsExceeded);
    let mut flags = Flags::COUNTED;
    if let Some((_, most)) = provider.table_limits.iter().find(|(table, _)| *table == host.0) {
        let table = bindings.subscriber(host.0, 0, at.now_s).map_err(no_place)?;
        if table.users() >= *most {
            log.quota(Event::SessionQuota, (host.0, 0), *most);
            return Err(Refused::Answered(Nat44Drop::SessionsExceeded));
        }
        flags = flags.with(Flags::LIMITED);
    }
    let subscriber = bindings.subscriber(host.0, host.1, at.now_s).map_err(no_place)?;
    let (most, rate) = (provider.limits.sessions, provider.limits.rate);
    let reached = if most > 0 && subscriber.users() >= most {
        Some(most)
    } else {
        (!Bindings::is_within_rate(subscriber, rate, at.now_ns)).then_some(rate)
    };
    let Some(limit) = reached else { return Ok(flags) };
    log.quota(Event::SubscriberQuota, host, limit);
    Err(Refused::Answered(Nat44Drop::SubscriberLimit))
}

/// The host that a packet from inside to an outside address is for (RFC 4787 REQ-9): its end and
/// table.
fn hairpin(
    owner: &mut Owner,
    rules: &Rules,
    flow: &Flow,
) -> Result<Option<(End, u32, Option<Mapping>)>, Refused> {
    if let Some(Expectation { target: Target::Both { to, table, .. }, .. }) =
        owner.algs.expected.find(flow)
    {
        return Ok(Some((to, table, None)));
    }
    if !rules.external.contains_key(&flow.destination.address) {
        return Ok(None);
    }
    if let Some(mapping) = rules.mapping_to(flow.destination, flow.protocol) {
        let (local, table) = rules.backend(mapping, flow.source.address, owner.random());
        let port = if mapping.is_whole() { flow.destination.port } else { local.port };
        return Ok(Some((End { port, ..local }, table, Some(*mapping))));
    }
    if let Some(Expectation { target: Target::Local(end, table), .. }) =
        owner.algs.expected.find(flow)
    {
        return Ok(Some((end, table, None)));
    }
    let independent = rules.provider.independent == Some(Filtering::EndpointIndependent);
    let mapping = owner
        .bindings
        .as_ref()
        .filter(|_| independent)
        .and_then(|bindings| bindings.read.live_mapping_to(flow.destination, flow.protocol));
    let local = mapping.map(|mapping| mapping.flow(Direction::InToOut));
    let local = local.ok_or(Nat44Drop::NoTranslation)?;
    Ok(Some((local.source, local.table, None)))
}

/// The external end of a connection from inside that a helper expects: at the address that the
/// remote host knows the server by, or the client where both ends are translated.
fn announced_end(owner: &mut Owner, wanted: &Wanted<'_>) -> Option<End> {
    let rules = wanted.rules;
    let (address, is_twice) = match owner.algs.expected.find(&wanted.flow)?.target {
        Target::Local(..) => return None,
        Target::From(address) => (address, false),
        Target::Both { from, .. } => (from, rules.is_of_twice(from)),
    };
    // It may have been removed meanwhile.
    (is_twice || rules.external.contains_key(&address)).then_some(())?;
    let port = owner.port(wanted, address, ALL_PORTS, PORTS_PER_LOOK_UP)?;
    Some(End { address, port })
}

/// The flows of a session that a packet from inside makes; outside it is routed in `table`.
pub(crate) fn from_inside(
    owner: &mut Owner,
    rules: &Rules,
    flow: Flow,
    table: u32,
    at: Moment,
) -> Result<Plan, Refused> {
    let hairpin = hairpin(owner, rules, &flow)?;
    let (remote, table, to) =
        hairpin.map_or((flow.destination, table, None), |(end, table, to)| (end, table, to));
    let mut flags = if hairpin.is_some() { Flags::HAIRPIN } else { Flags::default() };
    if to.is_none()
        && hairpin.is_some()
        && let Some(expected) = owner.algs.expected.find(&flow)
    {
        let is_both = matches!(expected.target, Target::Both { .. });
        flags = if is_both { expected.flags } else { flags }.with(Flags::EXPECTED);
    }
    let wanted = Wanted { rules, flow, remote, table, now_s: at.now_s };
    let host = (flow.table, flow.source.address);
    let admitted = admit((owner.bindings.as_deref_mut(), &mut owner.log), rules, host, at)?;
    flags = flags.with(admitted);
    // A host that reaches itself (VPP's self-twice-nat) comes from the twice-NAT pool.
    if let Some(to) = to
        && (to.twice == TwiceNat::Always
            || to.twice == TwiceNat::OwnAddress && remote.address == flow.source.address)
    {
        let key_of = |end| wanted.outside(end).key();
        let external = owner.twice_end(rules, to.exact, flow.source, key_of)?;
        let flags = flags.with(Flags::STATIC).with(Flags::TWICE);
        return Ok(Plan { inside: flow, outside: wanted.outside(external), flags });
    }
    if let Some(mapping) = rules.mapping_of(flow.source, flow.protocol, flow.table) {
        let port = if mapping.is_whole() { flow.source.port } else { mapping.external.port };
        let external = End { address: mapping.external.address, port };
        let flags = flags.with(Flags::STATIC);
        return Ok(Plan { inside: flow, outside: wanted.outside(external), flags });
    }
    if let Some(external) = announced_end(owner, &wanted) {
        let flags = flags.with(Flags::EXPECTED);
        return Ok(Plan { inside: flow, outside: wanted.outside(external), flags });
    }
    let (external, more) = owner.external_end(&wanted)?;
    flags = flags.with(more);
    if rules.provider.independent == Some(Filtering::AddressDependent) && flags.has(Flags::MAPPED) {
        flags = flags.with(Flags::PERMITTED);
    }
    Ok(Plan { inside: flow, outside: wanted.outside(external), flags })
}

/// The flows of a session that a packet from outside makes.
pub(crate) fn from_outside(
    owner: &mut Owner,
    rules: &Rules,
    flow: Flow,
    at: Moment,
) -> Result<Plan, Refused> {
    let Some(mapping) = rules.mapping_to(flow.destination, flow.protocol) else {
        return match owner.algs.expected.find(&flow) {
            Some(expected) => to_announced(owner, rules, flow, (expected, at)),
            None => to_mapping(owner, rules, flow, at),
        };
    };
    let (local, table) = rules.backend(mapping, flow.source.address, owner.random());
    let port = if mapping.is_whole() { flow.destination.port } else { local.port };
    let remote_port = if flow.is_icmp() { port } else { flow.source.port };
    let mut inside = Flow {
        source: End { address: local.address, port },
        destination: End { port: remote_port, ..flow.source },
        protocol: flow.protocol,
        table,
    };
    let mut flags = Flags::STATIC;
    if mapping.backends.0 != mapping.backends.1 {
        flags = flags.with(Flags::BALANCED);
    }
    let is_own = inside.source.address == flow.source.address;
    if mapping.twice == TwiceNat::Always || mapping.twice == TwiceNat::OwnAddress && is_own {
        let key_of = |end| Flow { destination: end, ..inside }.key();
        inside.destination = owner.twice_end(rules, mapping.exact, inside.destination, key_of)?;
        flags = flags.with(Flags::TWICE);
    }
    Ok(Plan { inside, outside: flow, flags })
}

/// May a packet from outside use an endpoint-independent mapping (RFC 4787 §5)?
pub(crate) fn is_permitted(
    readers: &crate::bindings::Readers,
    filtering: Filtering,
    flow: &Flow,
) -> bool {
    match filtering {
        Filtering::EndpointIndependent => true,
        Filtering::AddressDependent => {
            let keys = permission_keys(flow.destination, flow.source.address, flow.protocol);
            readers.find(&keys[1]).is_some_and(|permission| permission.users() > 0)
        }
        Filtering::AddressAndPortDependent => false,
    }
}

/// The flows of a session that a packet from outside makes which a helper expects.
fn to_announced(
    owner: &mut Owner,
    rules: &Rules,
    flow: Flow,
    (expected, at): (Expectation, Moment),
) -> Result<Plan, Refused> {
    let (source, table, from) = match expected.target {
        Target::Local(source, table) => (source, table, None),
        Target::Both { to, table, from } => (to, table, Some(from)),
        Target::From(_) => return Err(Nat44Drop::NoTranslation.into()),
    };
    let mut inside = Flow { source, destination: flow.source, protocol: flow.protocol, table };
    if let Some(from) = from {
        let key_of = |end| Flow { destination: end, ..inside }.key();
        let end = owner.twice_end(rules, from, flow.source, key_of);
        inside.destination = end.map_err(Refused::silent)?;
    }
    let to = (owner.bindings.as_deref_mut(), &mut owner.log);
    let admitted = admit(to, rules, (table, source.address), at).map_err(Refused::silent)?;
    let flags = admitted.with(expected.flags).with(Flags::EXPECTED);
    Ok(Plan { inside, outside: flow, flags })
}

/// The flows of a session that a packet from outside to a mapping makes.
fn to_mapping(owner: &mut Owner, rules: &Rules, flow: Flow, at: Moment) -> Result<Plan, Refused> {
    let filtering = rules.provider.independent.filter(|_| !flow.is_icmp());
    let filtering = filtering.ok_or(Nat44Drop::NoTranslation)?;
    let bindings = owner.bindings.as_deref_mut().ok_or(Nat44Drop::NoTranslation)?;
    let mapping = bindings.read.live_mapping_to(flow.destination, flow.protocol);
    let local = mapping.ok_or(Nat44Drop::NoTranslation)?.flow(Direction::InToOut);
    if !is_permitted(&bindings.read, filtering, &flow) {
        return Err(Nat44Drop::Filtered.into());
    }
    let inside = Flow {
        source: local.source,
        destination: flow.source,
        protocol: flow.protocol,
        table: local.table,
    };
    // A stranger who is refused gets no answer.
    let host = (local.table, local.source.address);
    let to = (Some(&mut *bindings), &mut owner.log);
    let admitted = admit(to, rules, host, at).map_err(Refused::silent)?;
    let mut flags = admitted.with(Flags::POOLED).with(Flags::MAPPED);
    if filtering == Filtering::AddressDependent {
        flags = flags.with(Flags::PERMITTED);
    }
    debug_assert!(bindings.read.find(&subscriber_keys(host.0, host.1)[0]).is_some());
    Ok(Plan { inside, outside: flow, flags })
}
