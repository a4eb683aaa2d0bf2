//! The DHCP client of one interface: states, timers, messages (RFC 2131 §4.4). It knows no
//! interface: messages and times in, actions out.

use std::net::Ipv4Addr;

use quiver_core::jitter::Jitter;
use quiver_wire::MacAddress;
use quiver_wire::dhcp4::{
    BROADCAST_FLAG, Dhcp4Header, ETHERNET, Message, REPLY, Writer, message_type, option,
};
use quiver_wire::ip4::address::is_unicast;

use crate::reasons::ClientReason;

const SECOND_NS: u64 = 1_000_000_000;
/// The first message is sent within this time, so that routers that start together do not ask
/// together.
const START_DELAY_NS: u64 = SECOND_NS;
/// The first wait for an answer, doubled from message to message (§4.1).
const RETRY_FIRST_NS: u64 = 4 * SECOND_NS;
/// The longest wait (§4.1).
const RETRY_LAST_NS: u64 = 64 * SECOND_NS;
/// Waits are up to this much shorter or longer (§4.1).
const RETRY_JITTER_NS: u64 = SECOND_NS;
/// Requests of an offer, or of the address that the client had, before it begins anew.
const REQUESTS_MAX: u32 = 4;
/// The shortest wait of a client that has its address (§4.4.5).
const RENEW_WAIT_NS_MIN: u64 = 60 * SECOND_NS;
/// The wait after an address that somebody else has (§3.1, step 5).
const DECLINE_WAIT_NS: u64 = 10 * SECOND_NS;
/// How long after its lease an address that somebody else claims is declined.
const PROBATION_NS: u64 = 10 * SECOND_NS;
/// Routers and name servers of a lease that are kept.
const ADDRESSES_MAX: usize = 8;
/// Bytes of a message that is taken, told to servers.
const MESSAGE_BYTES_MAX: u16 = 1472;
/// A lease without end (RFC 2131 §3.3).
const INFINITY_S: u32 = u32::MAX;
/// Options that servers are asked for.
const PARAMETERS: [u8; 6] = [
    option::SUBNET_MASK,
    option::ROUTER,
    option::NAME_SERVER,
    option::LEASE_TIME,
    option::RENEWAL_TIME,
    option::REBINDING_TIME,
];

/// States of §4.4, figure 5.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// The interface is down, or has no MAC address.
    #[default]
    Down,
    /// About to look for servers.
    Init,
    /// Servers are looked for.
    Selecting,
    /// An offer is taken.
    Requesting,
    /// The link was away: is the address still ours (INIT-REBOOT)?
    Rebooting,
    /// The address is leased.
    Bound,
    /// Its server is asked for more time.
    Renewing,
    /// Any server is.
    Rebinding,
}

impl State {
    /// As RFC 2131 calls it.
    pub fn word(self) -> &'static str {
        match self {
            State::Down => "down",
            State::Init => "init",
            State::Selecting => "selecting",
            State::Requesting => "requesting",
            State::Rebooting => "rebooting",
            State::Bound => "bound",
            State::Renewing => "renewing",
            State::Rebinding => "rebinding",
        }
    }
}

/// What the operator set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The name that servers are told.
    pub host_name: Option<String>,
    /// The client's identifier, when it is not its MAC address.
    pub client_id: Option<String>,
    /// Servers are asked to broadcast.
    pub broadcast: bool,
}

/// A lease, or the offer of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The address.
    pub address: Ipv4Addr,
    /// Length of its subnet's prefix.
    pub length: u8,
    /// Who gave it.
    pub server: Ipv4Addr,
    /// Default routers.
    pub routers: Vec<Ipv4Addr>,
    /// Name servers.
    pub name_servers: Vec<Ipv4Addr>,
    /// How long it lasts, seconds.
    pub lease_s: u32,
    /// When it was asked for.
    pub since_ns: u64,
    /// T1.
    pub renew_ns: u64,
    /// T2.
    pub rebind_ns: u64,
    /// Its end.
    pub until_ns: u64,
}

/// What the interface is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send a message to all servers of the link.
    Broadcast(Vec<u8>),
    /// Send a message from the leased address to a server.
    Unicast(Vec<u8>, Ipv4Addr, Ipv4Addr),
    /// Use this lease.
    Use(Lease),
    /// Use none.
    Withdraw,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages sent.
    pub sent: u64,
    /// Replies taken.
    pub received: u64,
    /// Leases that a server refused.
    pub refused: u64,
    /// Addresses that somebody else had.
    pub declined: u64,
}

/// The client of one interface.
#[derive(Debug)]
pub struct Client {
    /// What the operator set.
    pub settings: Settings,
    /// Where it is.
    pub state: State,
    /// What it has, or is offered.
    pub lease: Option<Lease>,
    /// What was counted.
    pub counts: Counts,
    mac: MacAddress,
    xid: u32,
    /// When it began to ask.
    began_ns: u64,
    /// When it asked last for what it waits for.
    requested_ns: u64,
    tries: u32,
    due_ns: Option<u64>,
}

/// Length of the prefix of a mask; `None` when it is none.
fn mask_length(mask: Ipv4Addr) -> Option<u8> {
    let bits = mask.to_bits();
    (bits.leading_ones() + bits.trailing_zeros() == 32).then_some(bits.leading_ones() as u8)
}

/// The length of a subnet whose mask nobody says (RFC 1122 §3.2.1.3).
fn class_length(address: Ipv4Addr) -> u8 {
    match address.octets()[0] {
        0..128 => 8,
        128..192 => 16,
        _ => 24,
    }
}

fn addresses(message: &Message<'_>, code: u8) -> Vec<Ipv4Addr> {
    let data = message.option(code).unwrap_or_default();
    let all = data.chunks_exact(4).filter_map(|four| four.first_chunk::<4>());
    let all = all.map(|four| Ipv4Addr::from(*four)).filter(|address| is_unicast(*address));
    all.take(ADDRESSES_MAX).collect()
}

impl Client {
    /// A client that waits for its interface.
    pub fn new(settings: Settings) -> Client {
        Client {
            settings,
            state: State::Down,
            lease: None,
            counts: Counts::default(),
            mac: MacAddress::ZERO,
            xid: 0,
            began_ns: 0,
            requested_ns: 0,
            tries: 0,
            due_ns: None,
        }
    }

    /// When [`pass_time`](Self::pass_time) has something to do.
    pub fn due_ns(&self) -> Option<u64> {
        self.due_ns
    }

    /// The number of the transaction.
    pub fn xid(&self) -> u32 {
        self.xid
    }

    /// Has the client its address?
    pub fn is_bound(&self) -> bool {
        matches!(self.state, State::Bound | State::Renewing | State::Rebinding)
    }

    /// The interface is up, with this MAC address, or down.
    pub fn set_link(
        &mut self,
        mac: Option<MacAddress>,
        now_ns: u64,
        jitter: &mut Jitter,
    ) -> Vec<Action> {
        let Some(mac) = mac else {
            (self.state, self.due_ns) = (State::Down, None);
            return Vec::new();
        };
        if self.state != State::Down && self.mac == mac {
            return Vec::new();
        }
        let lasts = self.lease.as_ref().is_some_and(|lease| lease.until_ns > now_ns);
        let is_same = std::mem::replace(&mut self.mac, mac) == mac;
        let delay_ns = jitter.between(0, START_DELAY_NS);
        if lasts && is_same {
            self.begin(State::Rebooting, now_ns, jitter);
            self.due_ns = Some(now_ns + delay_ns);
            return Vec::new();
        }
        self.begin_anew(delay_ns, now_ns, jitter)
    }

    fn begin(&mut self, state: State, now_ns: u64, jitter: &mut Jitter) {
        self.state = state;
        self.xid = jitter.between(1, u32::MAX.into()) as u32;
        (self.began_ns, self.tries) = (now_ns, 0);
    }

    /// Nothing is left of what was: look for servers after a while.
    fn begin_anew(&mut self, wait_ns: u64, now_ns: u64, jitter: &mut Jitter) -> Vec<Action> {
        let had = self.lease.take();
        self.begin(State::Init, now_ns, jitter);
        self.due_ns = Some(now_ns + wait_ns);
        had.map(|_| Action::Withdraw).into_iter().collect()
    }

    fn retry_ns(&self, jitter: &mut Jitter) -> u64 {
        let doubled = RETRY_FIRST_NS << self.tries.saturating_sub(1).min(8);
        let wait_ns = doubled.min(RETRY_LAST_NS);
        jitter.between(wait_ns - RETRY_JITTER_NS, wait_ns + RETRY_JITTER_NS)
    }

    /// The client's time is come.
    pub fn pass_time(&mut self, now_ns: u64, jitter: &mut Jitter) -> Vec<Action> {
        if self.due_ns.is_none_or(|due_ns| due_ns > now_ns) {
            return Vec::new();
        }
        self.due_ns = None;
        let is_over = self.lease.as_ref().is_some_and(|lease| lease.until_ns <= now_ns);
        if is_over && self.is_bound() {
            return self.begin_anew(0, now_ns, jitter);
        }
        match self.state {
            State::Down => Vec::new(),
            State::Init | State::Selecting => {
                self.state = State::Selecting;
                self.ask(message_type::DISCOVER, now_ns, jitter)
            }
            State::Requesting | State::Rebooting if self.tries >= REQUESTS_MAX => {
                self.begin_anew(0, now_ns, jitter)
            }
            State::Requesting | State::Rebooting => self.ask(message_type::REQUEST, now_ns, jitter),
            State::Bound | State::Renewing | State::Rebinding => self.renew(now_ns, jitter),
        }
    }

    /// Ask by broadcast, and again when nobody answers.
    fn ask(&mut self, kind: u8, now_ns: u64, jitter: &mut Jitter) -> Vec<Action> {
        self.tries = self.tries.saturating_add(1);
        self.requested_ns = now_ns;
        self.due_ns = Some(now_ns + self.retry_ns(jitter));
        self.message(kind, now_ns).map(Action::Broadcast).into_iter().collect()
    }

    /// T1 or T2 is over (§4.4.5).
    fn renew(&mut self, now_ns: u64, jitter: &mut Jitter) -> Vec<Action> {
        let Some(lease) = self.lease.clone() else {
            return self.begin_anew(0, now_ns, jitter);
        };
        if now_ns < lease.renew_ns {
            self.due_ns = Some(lease.renew_ns);
            return Vec::new();
        }
        let is_rebinding = now_ns >= lease.rebind_ns;
        let state = if is_rebinding { State::Rebinding } else { State::Renewing };
        if self.state == State::Bound {
            self.begin(state, now_ns, jitter);
        }
        (self.state, self.requested_ns) = (state, now_ns);
        let end_ns = if is_rebinding { lease.until_ns } else { lease.rebind_ns };
        let half_ns = (end_ns - now_ns) / 2;
        self.due_ns = Some(end_ns.min(now_ns + half_ns.max(RENEW_WAIT_NS_MIN)));
        let Some(message) = self.message(message_type::REQUEST, now_ns) else { return Vec::new() };
        vec![match is_rebinding {
            true => Action::Broadcast(message),
            false => Action::Unicast(message, lease.address, lease.server),
        }]
    }

    /// Writes a message (§4.4.1, table 5).
    fn message(&mut self, kind: u8, now_ns: u64) -> Option<Vec<u8>> {
        let mut header = Dhcp4Header::request(self.mac, self.xid);
        let secs = now_ns.saturating_sub(self.began_ns) / SECOND_NS;
        header.set_secs(secs.min(u16::MAX.into()) as u16);
        if self.settings.broadcast && !self.is_bound() {
            header.set_flags(BROADCAST_FLAG);
        }
        let lease = self.lease.as_ref();
        // The address is in `ciaddr` when it is in use, in an option when it is asked for.
        let is_used = self.is_bound() && kind != message_type::DECLINE;
        if let Some(lease) = lease.filter(|_| is_used) {
            header.set_ciaddr(lease.address);
        }
        let mut out = vec![0; 1024];
        let mut writer = Writer::begin(&mut out, &header).ok()?;
        writer.put(option::MESSAGE_TYPE, &[kind]).ok()?;
        match &self.settings.client_id {
            Some(id) => writer.put(option::CLIENT_ID, &[&[0], id.as_bytes()].concat()).ok()?,
            None => writer.put(option::CLIENT_ID, &[&[ETHERNET], &self.mac.0[..]].concat()).ok()?,
        }
        if let Some(lease) = lease.filter(|_| !is_used && kind != message_type::DISCOVER) {
            writer.put(option::REQUESTED_ADDRESS, &lease.address.octets()).ok()?;
        }
        let names_server = match kind {
            message_type::REQUEST => self.state == State::Requesting,
            kind => matches!(kind, message_type::DECLINE | message_type::RELEASE),
        };
        if let Some(lease) = lease.filter(|_| names_server) {
            writer.put(option::SERVER_ID, &lease.server.octets()).ok()?;
        }
        if matches!(kind, message_type::DISCOVER | message_type::REQUEST) {
            writer.put(option::MESSAGE_BYTES, &MESSAGE_BYTES_MAX.to_be_bytes()).ok()?;
            writer.put(option::PARAMETER_LIST, &PARAMETERS).ok()?;
            if let Some(name) = &self.settings.host_name {
                writer.put(option::HOST_NAME, name.as_bytes()).ok()?;
            }
        }
        let length = writer.finish().ok()?;
        out.truncate(length);
        self.counts.sent += 1;
        Some(out)
    }

    /// What a reply leases; `None` when it lacks something, or makes no sense.
    fn lease_of(&self, message: &Message<'_>) -> Option<Lease> {
        let address = message.header.yiaddr();
        let server = message.address(option::SERVER_ID).filter(|server| is_unicast(*server))?;
        let mask = message.address(option::SUBNET_MASK);
        let length = match mask {
            Some(mask) => mask_length(mask).filter(|length| *length > 0)?,
            None => class_length(address),
        };
        let lease_s = message.number(option::LEASE_TIME).filter(|lease_s| *lease_s > 0)?;
        let is_host = is_unicast(address) && !quiver_wire::ip4::address::is_loopback(address);
        if !is_host || quiver_wire::Ip4InterfaceAddress::new(address, length).is_err() {
            return None;
        }
        let since_ns = self.requested_ns;
        let after = |seconds: u64| since_ns.saturating_add(seconds.saturating_mul(SECOND_NS));
        let whole = u64::from(lease_s);
        // §4.4.5: T1 < T2 < lease, or what is usual.
        let said = |code| message.number(code).map(u64::from);
        let t2 = said(option::REBINDING_TIME).filter(|t2| *t2 < whole).unwrap_or(whole * 7 / 8);
        let t1 = said(option::RENEWAL_TIME).filter(|t1| *t1 < t2).unwrap_or((whole / 2).min(t2));
        let until_ns = if lease_s == INFINITY_S { u64::MAX } else { after(whole) };
        Some(Lease {
            address,
            length,
            server,
            routers: addresses(message, option::ROUTER),
            name_servers: addresses(message, option::NAME_SERVER),
            lease_s,
            since_ns,
            renew_ns: if lease_s == INFINITY_S { u64::MAX } else { after(t1) },
            rebind_ns: if lease_s == INFINITY_S { u64::MAX } else { after(t2) },
            until_ns,
        })
    }

    /// A reply was received.
    ///
    /// # Errors
    /// It is not taken, for the reason that is returned.
    pub fn hear(
        &mut self,
        message: &Message<'_>,
        now_ns: u64,
        jitter: &mut Jitter,
    ) -> Result<Vec<Action>, ClientReason> {
        let header = message.header;
        if header.op != REPLY || header.xid() != self.xid || header.mac() != Some(self.mac) {
            return Err(ClientReason::Other);
        }
        let kind = message.message_type().ok_or(ClientReason::Malformed)?;
        let waits = matches!(
            self.state,
            State::Requesting | State::Rebooting | State::Renewing | State::Rebinding
        );
        match kind {
            message_type::OFFER if self.state == State::Selecting => {
                self.lease = Some(self.lease_of(message).ok_or(ClientReason::Unexpected)?);
                self.counts.received += 1;
                (self.state, self.tries) = (State::Requesting, 0);
                Ok(self.ask(message_type::REQUEST, now_ns, jitter))
            }
            message_type::ACK if waits => {
                let lease = self.lease_of(message).ok_or(ClientReason::Unexpected)?;
                let chosen = self.lease.as_ref().map(|lease| lease.server);
                if self.state == State::Requesting && chosen != Some(lease.server) {
                    return Err(ClientReason::Unexpected);
                }
                self.counts.received += 1;
                self.state = State::Bound;
                self.due_ns = Some(lease.renew_ns.min(lease.until_ns)).filter(|at| *at != u64::MAX);
                self.lease = Some(lease.clone());
                Ok(vec![Action::Use(lease)])
            }
            message_type::NAK if waits => {
                self.counts.received += 1;
                self.counts.refused += 1;
                Ok(self.begin_anew(0, now_ns, jitter))
            }
            _ => Err(ClientReason::Unexpected),
        }
    }

    /// May an address that somebody else claims still be declined?
    pub fn is_on_probation(&self, now_ns: u64) -> bool {
        let lease = self.lease.as_ref().filter(|_| self.is_bound());
        lease.is_some_and(|lease| now_ns < lease.since_ns.saturating_add(PROBATION_NS))
    }

    /// Somebody else has the address (§3.1, step 5).
    pub fn decline(&mut self, now_ns: u64, jitter: &mut Jitter) -> Vec<Action> {
        let told = self.message(message_type::DECLINE, now_ns).map(Action::Broadcast);
        self.counts.declined += 1;
        let withdrawn = self.begin_anew(DECLINE_WAIT_NS, now_ns, jitter);
        told.into_iter().chain(withdrawn).collect()
    }

    /// The client is to be no more (§4.4.6).
    pub fn release(&mut self, now_ns: u64) -> Vec<Action> {
        let ends = self.lease.clone().filter(|_| self.is_bound());
        let told = ends.and_then(|lease| {
            let message = self.message(message_type::RELEASE, now_ns)?;
            Some(Action::Unicast(message, lease.address, lease.server))
        });
        (self.state, self.due_ns, self.lease) = (State::Down, None, None);
        told.into_iter().chain([Action::Withdraw]).collect()
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
