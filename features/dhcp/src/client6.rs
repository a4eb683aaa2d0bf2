//! A DHCPv6 client of one interface, for addresses or for prefixes (RFC 8415 §18.2): states,
//! timers, messages. It knows no interface: messages and times in, messages out.

mod messages;

use std::net::Ipv6Addr;

use quiver_core::jitter::Jitter;
use quiver_wire::MacAddress;
use quiver_wire::dhcp6::{Message, duid_ll, message, option, status};
use quiver_wire::ip6::address::is_unicast;

use crate::reasons::ClientReason;
use crate::retransmission::{Exchange, Parameters, SECOND_NS};

/// The first message is sent within this time (§18.2.1, SOL_MAX_DELAY, CNF_MAX_DELAY).
const START_DELAY_NS: u64 = SECOND_NS;
/// The wait before servers are solicited again after one refused, or an address was declined.
const REFUSED_WAIT_NS: u64 = 10 * SECOND_NS;
/// The longest wait between two Solicit messages, unless a server sets it (§7.6, SOL_MAX_RT).
const SOL_MAX_RT_S: u32 = 3600;
/// What a server may set it to (§21.24).
const SOL_MAX_RT_RANGE_S: std::ops::RangeInclusive<u32> = 60..=86_400;
/// Addresses or prefixes of one client at most.
pub const BINDINGS_MAX: usize = 16;
/// Name servers that are kept.
const NAME_SERVERS_MAX: usize = 8;
/// The longest DUID, bytes (§11.1).
const DUID_BYTES_MAX: usize = 130;
/// The preference of a server that is chosen at once (§18.2.1).
const PREFERENCE_MAX: u8 = 255;
/// How long after its lease an address that somebody else has is declined.
const PROBATION_NS: u64 = 10 * SECOND_NS;

/// The type of a client's identity association.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IaType {
    /// Addresses that are not temporary.
    Na,
    /// Delegated prefixes.
    Pd,
}

impl IaType {
    fn option(self) -> u16 {
        match self {
            IaType::Na => option::IA_NA,
            IaType::Pd => option::IA_PD,
        }
    }
}

/// What a client does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// The interface is down, or has no link-local address yet.
    #[default]
    Down,
    /// It looks for servers.
    Soliciting,
    /// It asks the chosen server.
    Requesting,
    /// The link was away: does the lease still hold?
    Confirming,
    /// It has its lease.
    Bound,
    /// It asks its server for more time.
    Renewing,
    /// It asks any server for more time.
    Rebinding,
    /// It gives its lease back.
    Releasing,
    /// It reports addresses that another host has.
    Declining,
}

impl State {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            State::Down => "down",
            State::Soliciting => "soliciting",
            State::Requesting => "requesting",
            State::Confirming => "confirming",
            State::Bound => "bound",
            State::Renewing => "renewing",
            State::Rebinding => "rebinding",
            State::Releasing => "releasing",
            State::Declining => "declining",
        }
    }
}

/// A leased address, whose length is 128, or a delegated prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The address, or the first one of the prefix.
    pub address: Ipv6Addr,
    /// Bits of it that count.
    pub length: u8,
    /// New connections use it until then; `u64::MAX`: for ever.
    pub preferred_until_ns: u64,
    /// Its end; `u64::MAX`: never.
    pub valid_until_ns: u64,
}

impl Binding {
    fn is_same(&self, other: &Binding) -> bool {
        (self.address, self.length) == (other.address, other.length)
    }
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages sent.
    pub sent: u64,
    /// Messages of servers taken.
    pub received: u64,
    /// Those of them with nothing for the client.
    pub refused: u64,
    /// Addresses that another host had.
    pub declined: u64,
    /// Addresses or prefixes above the limit, or that no client may have.
    pub left_out: u64,
}

/// A server and what it offers.
#[derive(Clone, Debug)]
struct Offer {
    server: Vec<u8>,
    address: Ipv6Addr,
    preference: u8,
    bindings: Vec<Binding>,
}

/// A client.
#[derive(Debug)]
pub struct Client6 {
    /// What it asks for.
    pub ia_type: IaType,
    /// What it does.
    pub state: State,
    /// Its DUID.
    pub duid: [u8; 10],
    /// Its identity association.
    pub iaid: u32,
    /// What it has.
    pub bindings: Vec<Binding>,
    /// The DUID of the server that it has it from.
    pub server: Option<Vec<u8>>,
    /// The address of that server, or of the relay agent.
    pub server_address: Option<Ipv6Addr>,
    /// The preference of that server (§21.8).
    pub preference: u8,
    /// Name servers of its lease.
    pub name_servers: Vec<Ipv6Addr>,
    /// T1; `u64::MAX`: never.
    pub renew_ns: u64,
    /// T2; `u64::MAX`: never.
    pub rebind_ns: u64,
    /// What was counted.
    pub counts: Counts,
    offer: Option<Offer>,
    /// What is released or declined.
    leaving: Vec<Binding>,
    exchange: Exchange,
    sol_max_rt_s: u32,
    /// When a message is due, or the state changes.
    due_ns: u64,
    probation_until_ns: u64,
    is_ending: bool,
}

impl Client6 {
    /// A client that waits for its interface, which has this MAC address.
    pub fn new(ia_type: IaType, mac: MacAddress, iaid: u32) -> Client6 {
        Client6 {
            ia_type,
            state: State::Down,
            duid: duid_ll(mac),
            iaid,
            bindings: Vec::new(),
            server: None,
            server_address: None,
            preference: 0,
            name_servers: Vec::new(),
            renew_ns: u64::MAX,
            rebind_ns: u64::MAX,
            counts: Counts::default(),
            offer: None,
            leaving: Vec::new(),
            exchange: Exchange::default(),
            sol_max_rt_s: SOL_MAX_RT_S,
            due_ns: u64::MAX,
            probation_until_ns: 0,
            is_ending: false,
        }
    }

    /// When [`pass_time`](Self::pass_time) has something to do.
    pub fn due_ns(&self) -> u64 {
        let ends = self.bindings.iter().map(|binding| binding.valid_until_ns);
        ends.chain([self.due_ns]).min().unwrap_or(u64::MAX)
    }

    /// The number of the transaction.
    pub fn transaction(&self) -> u32 {
        self.exchange.transaction
    }

    /// The operator has removed it; it releases what it had.
    pub fn is_ending(&self) -> bool {
        self.is_ending
    }

    /// It has released what it had.
    pub fn has_ended(&self) -> bool {
        self.is_ending && self.state != State::Releasing
    }

    /// The interface can send and receive, or not.
    pub fn set_link(&mut self, is_up: bool, now_ns: u64, jitter: &mut Jitter) {
        if !is_up {
            (self.state, self.due_ns) = (State::Down, u64::MAX);
            return;
        }
        if self.state != State::Down || self.is_ending {
            return;
        }
        self.expire(now_ns, jitter);
        let delay_ns = jitter.between(0, START_DELAY_NS);
        let state = match self.bindings.is_empty() {
            true => State::Soliciting,
            false => State::Confirming,
        };
        self.probation_until_ns = now_ns + START_DELAY_NS + PROBATION_NS;
        self.begin(state, delay_ns, now_ns, jitter);
    }

    fn begin(&mut self, state: State, wait_ns: u64, now_ns: u64, jitter: &mut Jitter) {
        self.state = state;
        self.exchange = Exchange::new(jitter);
        self.due_ns = now_ns + wait_ns;
        if state == State::Soliciting {
            (self.offer, self.server) = (None, None);
            (self.renew_ns, self.rebind_ns) = (u64::MAX, u64::MAX);
        }
    }

    /// Nothing is left of the lease: look for servers after a while.
    fn begin_anew(&mut self, wait_ns: u64, now_ns: u64, jitter: &mut Jitter) {
        self.bindings.clear();
        self.begin(State::Soliciting, wait_ns, now_ns, jitter);
    }

    fn be_bound(&mut self) {
        self.state = State::Bound;
        self.due_ns = self.renew_ns.min(self.rebind_ns);
    }

    /// Bindings whose valid lifetime is over go.
    fn expire(&mut self, now_ns: u64, jitter: &mut Jitter) {
        let before = self.bindings.len();
        self.bindings.retain(|binding| binding.valid_until_ns > now_ns);
        let is_gone = before > 0 && self.bindings.is_empty();
        let is_leased = matches!(
            self.state,
            State::Confirming | State::Bound | State::Renewing | State::Rebinding
        );
        if is_gone && is_leased {
            self.begin_anew(0, now_ns, jitter);
        }
    }

    fn parameters(&self) -> Parameters {
        match self.state {
            State::Requesting => Parameters::REQUEST,
            State::Confirming => Parameters::CONFIRM,
            State::Releasing | State::Declining => Parameters::RELEASE,
            State::Down | State::Soliciting => Parameters::solicit(self.sol_max_rt_s),
            State::Bound | State::Renewing | State::Rebinding => Parameters::RENEW,
        }
    }

    /// Time passes. Returns a message for all servers of the link.
    pub fn pass_time(&mut self, now_ns: u64, jitter: &mut Jitter) -> Option<Vec<u8>> {
        self.expire(now_ns, jitter);
        while self.due_ns <= now_ns {
            if !self.change_state(now_ns, jitter) {
                return self.send(now_ns, jitter);
            }
        }
        None
    }

    /// The next state, when the time of this one is over. False when it lasts: a message is due.
    /// No state leads back to itself without a message.
    fn change_state(&mut self, now_ns: u64, jitter: &mut Jitter) -> bool {
        let is_over = self.exchange.is_over(&self.parameters(), now_ns);
        match self.state {
            State::Down => self.due_ns = u64::MAX,
            State::Soliciting => {
                let Some(offer) = self.offer.take() else { return false };
                self.choose(offer, now_ns, jitter);
            }
            State::Bound if now_ns >= self.rebind_ns => {
                self.begin(State::Rebinding, 0, now_ns, jitter);
            }
            State::Bound => self.begin(State::Renewing, 0, now_ns, jitter),
            State::Renewing if now_ns >= self.rebind_ns => {
                self.begin(State::Rebinding, 0, now_ns, jitter);
            }
            State::Requesting if is_over => self.begin_anew(REFUSED_WAIT_NS, now_ns, jitter),
            // §18.2.3: nobody says that the lease does not hold.
            State::Confirming if is_over => self.be_bound(),
            State::Releasing if is_over => (self.state, self.due_ns) = (State::Down, u64::MAX),
            State::Declining if is_over => self.end_decline(now_ns, jitter),
            _ => return false,
        }
        true
    }

    fn choose(&mut self, offer: Offer, now_ns: u64, jitter: &mut Jitter) {
        let Offer { server, address, preference, bindings } = offer;
        self.begin(State::Requesting, 0, now_ns, jitter);
        (self.server, self.server_address) = (Some(server), Some(address));
        (self.preference, self.leaving) = (preference, bindings);
    }

    fn end_decline(&mut self, now_ns: u64, jitter: &mut Jitter) {
        self.leaving.clear();
        match self.bindings.is_empty() {
            true => self.begin_anew(REFUSED_WAIT_NS, now_ns, jitter),
            false => self.be_bound(),
        }
    }

    fn send(&mut self, now_ns: u64, jitter: &mut Jitter) -> Option<Vec<u8>> {
        let message = self.message(now_ns);
        let parameters = self.parameters();
        let is_solicit = self.state == State::Soliciting;
        self.due_ns = self.exchange.send(&parameters, is_solicit, now_ns, jitter);
        if self.state == State::Renewing {
            self.due_ns = self.due_ns.min(self.rebind_ns);
        }
        self.counts.sent += u64::from(message.is_some());
        message
    }

    /// A message of a server was received. [`pass_time`](Self::pass_time) may have something to do
    /// at once.
    ///
    /// # Errors
    /// It is not taken, for the reason that is returned.
    pub fn hear(
        &mut self,
        read: &Message<'_>,
        from: Ipv6Addr,
        now_ns: u64,
        jitter: &mut Jitter,
    ) -> Result<(), ClientReason> {
        let is_ours = read.options.find(option::CLIENT_ID) == Some(&self.duid[..]);
        if !is_ours || read.transaction != self.exchange.transaction || self.exchange.sent == 0 {
            return Err(ClientReason::Other);
        }
        let server = read.options.find(option::SERVER_ID);
        let server = server.filter(|id| (1..=DUID_BYTES_MAX).contains(&id.len()));
        let server = server.ok_or(ClientReason::Malformed)?;
        let longest =
            read.options.find(option::SOL_MAX_RT).and_then(|data| data.first_chunk::<4>());
        let longest_s = longest.map(|bytes| u32::from_be_bytes(*bytes));
        if let Some(longest_s) = longest_s.filter(|longest| SOL_MAX_RT_RANGE_S.contains(longest)) {
            self.sol_max_rt_s = longest_s;
        }
        match (read.message_type, self.state) {
            (message::ADVERTISE, State::Soliciting) => {
                self.hear_advertise(read, server, from, now_ns)
            }
            (message::REPLY, State::Releasing) => {
                self.counts.received += 1;
                (self.state, self.due_ns) = (State::Down, u64::MAX);
                Ok(())
            }
            (message::REPLY, State::Declining) => {
                self.counts.received += 1;
                self.end_decline(now_ns, jitter);
                Ok(())
            }
            (message::REPLY, State::Confirming) if self.ia_type == IaType::Na => {
                self.hear_confirmation(read, now_ns, jitter)
            }
            (message::REPLY, State::Soliciting) => {
                // §18.2.10: only with rapid commit a Reply answers a Solicit.
                read.options.find(option::RAPID_COMMIT).ok_or(ClientReason::Unexpected)?;
                self.hear_reply(read, server, from, now_ns, jitter)
            }
            (message::REPLY, State::Requesting | State::Renewing)
                if self.server.as_deref() != Some(server) =>
            {
                Err(ClientReason::Unexpected)
            }
            (
                message::REPLY,
                State::Requesting | State::Renewing | State::Rebinding | State::Confirming,
            ) => self.hear_reply(read, server, from, now_ns, jitter),
            _ => Err(ClientReason::Unexpected),
        }
    }

    /// A server offers something (§18.2.9): the one of the greatest preference is chosen when the
    /// first wait is over, the first one after that.
    fn hear_advertise(
        &mut self,
        read: &Message<'_>,
        server: &[u8],
        from: Ipv6Addr,
        now_ns: u64,
    ) -> Result<(), ClientReason> {
        let ia = self.ia(read).ok_or(ClientReason::Unexpected)?;
        let mut given = self.given(&ia, now_ns).ok_or(ClientReason::Unexpected)?;
        self.counts.received += 1;
        self.counts.left_out += given.left_out;
        given.bindings.retain(|binding| binding.valid_until_ns > now_ns);
        let is_refusal = [read.options.status(), ia.options.status()] != [status::SUCCESS; 2];
        if is_refusal || given.bindings.is_empty() {
            self.counts.refused += 1;
            return Ok(());
        }
        let preference = read.options.find(option::PREFERENCE);
        let preference = preference.and_then(|data| data.first()).copied().unwrap_or(0);
        if self.offer.as_ref().is_none_or(|known| known.preference < preference) {
            let (server, bindings) = (server.to_vec(), given.bindings);
            self.offer = Some(Offer { server, address: from, preference, bindings });
        }
        if preference == PREFERENCE_MAX || self.exchange.sent > 1 {
            self.due_ns = now_ns;
        }
        Ok(())
    }

    /// Are the addresses right for the link (§18.2.10.2)?
    fn hear_confirmation(
        &mut self,
        read: &Message<'_>,
        now_ns: u64,
        jitter: &mut Jitter,
    ) -> Result<(), ClientReason> {
        match read.options.status() {
            status::SUCCESS => self.be_bound(),
            status::NOT_ON_LINK => {
                self.counts.refused += 1;
                self.begin_anew(0, now_ns, jitter);
            }
            _ => return Err(ClientReason::Unexpected),
        }
        self.counts.received += 1;
        Ok(())
    }

    /// A server gives a lease, or refuses it (§18.2.10.1).
    fn hear_reply(
        &mut self,
        read: &Message<'_>,
        server: &[u8],
        from: Ipv6Addr,
        now_ns: u64,
        jitter: &mut Jitter,
    ) -> Result<(), ClientReason> {
        let has_lease =
            matches!(self.state, State::Renewing | State::Rebinding | State::Confirming);
        let ia = self.ia(read);
        let inner = ia.map_or(status::SUCCESS, |ia| ia.options.status());
        let refusal =
            [read.options.status(), inner].into_iter().find(|code| *code != status::SUCCESS);
        if let Some(code) = refusal {
            self.counts.received += 1;
            self.counts.refused += 1;
            match (code, has_lease) {
                // The server has forgotten the lease: ask it for the same.
                (status::NO_BINDING, true) => {
                    let bindings = self.bindings.clone();
                    let (server, preference) = (server.to_vec(), self.preference);
                    let offer = Offer { server, address: from, preference, bindings };
                    self.choose(offer, now_ns, jitter);
                    self.due_ns = now_ns + jitter.between(0, START_DELAY_NS);
                }
                // Another server may offer something.
                (_, false) if self.state == State::Soliciting => {}
                (status::NOT_ON_LINK, _) | (_, false) => {
                    self.begin_anew(REFUSED_WAIT_NS, now_ns, jitter);
                }
                // The lease lasts as long as it would have; the message is sent again.
                (_, true) => {}
            }
            return Ok(());
        }
        let ia = ia.ok_or(ClientReason::Unexpected)?;
        let given = self.given(&ia, now_ns).ok_or(ClientReason::Unexpected)?;
        self.counts.left_out += given.left_out;
        if given.bindings.is_empty() {
            return Err(ClientReason::Unexpected);
        }
        self.counts.received += 1;
        if self.state == State::Requesting {
            // It may be that some of what was asked for is not given.
            self.bindings.clear();
        }
        self.take_bindings(given.bindings, now_ns);
        if self.bindings.is_empty() {
            self.counts.refused += 1;
            let wait_ns = if has_lease { 0 } else { REFUSED_WAIT_NS };
            self.begin_anew(wait_ns, now_ns, jitter);
            return Ok(());
        }
        (self.server, self.server_address) = (Some(server.to_vec()), Some(from));
        (self.renew_ns, self.rebind_ns) = (given.renew_ns, given.rebind_ns);
        let servers = read.options.find(option::NAME_SERVERS).unwrap_or_default();
        let servers = servers.chunks_exact(16).filter_map(|bytes| bytes.first_chunk::<16>());
        let servers = servers.map(|bytes| Ipv6Addr::from(*bytes)).filter(|at| is_unicast(*at));
        self.name_servers = servers.take(NAME_SERVERS_MAX).collect();
        self.leaving.clear();
        self.be_bound();
        Ok(())
    }

    fn take_bindings(&mut self, given: Vec<Binding>, now_ns: u64) {
        for binding in given {
            let place = self.bindings.iter().position(|known| known.is_same(&binding));
            match place {
                Some(place) => self.bindings[place] = binding,
                None if self.bindings.len() < BINDINGS_MAX => {
                    self.probation_until_ns = now_ns + PROBATION_NS;
                    self.bindings.push(binding);
                }
                None => self.counts.left_out += 1,
            }
        }
        self.bindings.retain(|binding| binding.valid_until_ns > now_ns);
    }

    /// May an address that somebody else has be declined?
    pub fn is_on_probation(&self, now_ns: u64) -> bool {
        let may = matches!(self.state, State::Bound | State::Confirming | State::Renewing);
        may && self.ia_type == IaType::Na && now_ns < self.probation_until_ns
    }

    /// Another host has these addresses (§18.2.8).
    pub fn decline(&mut self, addresses: &[Ipv6Addr], now_ns: u64, jitter: &mut Jitter) {
        let is_declined = |binding: &Binding| addresses.contains(&binding.address);
        self.leaving =
            self.bindings.iter().filter(|binding| is_declined(binding)).copied().collect();
        if self.leaving.is_empty() {
            return;
        }
        self.counts.declined += self.leaving.len() as u64;
        self.bindings.retain(|binding| !is_declined(binding));
        self.begin(State::Declining, 0, now_ns, jitter);
    }

    /// The client is to be no more (§18.2.7): what it has is released.
    pub fn release(&mut self, now_ns: u64, jitter: &mut Jitter) {
        let is_up = self.state != State::Down;
        self.is_ending = true;
        self.leaving = std::mem::take(&mut self.bindings);
        if !is_up || self.leaving.is_empty() || self.server.is_none() {
            (self.state, self.due_ns) = (State::Down, u64::MAX);
            return;
        }
        self.begin(State::Releasing, 0, now_ns, jitter);
    }
}

#[cfg(test)]
#[path = "client6_tests.rs"]
mod tests;
