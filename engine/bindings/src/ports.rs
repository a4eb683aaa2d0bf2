//! External ends of new bindings: an address of the pool and a free port of it (RFC 6146
//! §3.5.1.1).

use quiver_core::cpu::Variant;
use quiver_tables::exact::NOT_FOUND;
use quiver_wire::IpProtocol;

use crate::End;
use crate::bindings::{Key, Readers, outside_key};

/// Dynamic ports (RFC 6056 §3.2): all but the well-known ones.
const FIRST_PORT: u32 = 1024;
const PORTS: u32 = 65_536 - FIRST_PORT;
/// Ports of one parity: who sends RTP has an even one, its control an odd one (RFC 4787 REQ-4).
const PORTS_OF_PARITY: u32 = PORTS / 2;
/// Ports that are tried in one look-up. It divides [`PORTS_OF_PARITY`].
const PORTS_PER_LOOK_UP: u32 = 64;
/// Ports that are tried before that: where half of an address's are free, one of them nearly always
/// is.
const PORTS_AT_FIRST: usize = 8;
/// Addresses whose whole range is searched for one packet; of the others, one look-up's ports are
/// tried. So many take about 2 ms.
const ADDRESSES_SEARCHED: usize = 4;
/// Protocols of which it is remembered that no port is free.
const EXHAUSTED_MAX: usize = 8;

const _: () = assert!(PORTS_OF_PARITY.is_multiple_of(PORTS_PER_LOOK_UP));

/// An address that bindings are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolAddress {
    /// The address.
    pub address: u128,
    /// Small number of the table whose hosts alone may use it.
    pub tenant: Option<u32>,
}

/// What no port is left for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Exhausted {
    protocol: u8,
    tenant: Option<u32>,
    /// Second until which it is believed.
    until_s: u32,
}

/// Every port that a host may have is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfPorts {
    /// The address, when the pool has but one for the host.
    pub only: Option<u128>,
    /// This was found out just now, and is not one of many refusals.
    pub is_new: bool,
}

/// A host's end that needs an external one.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The host's address.
    pub host: u128,
    /// Its port, or identifier; 0 of a protocol that has neither.
    pub port: u16,
    /// The protocol.
    pub protocol: IpProtocol,
    /// Small number of the host's table.
    pub table: u32,
    /// Small number of the table outside.
    pub outside_table: u32,
    /// Seconds of the router's clock.
    pub now_s: u32,
}

/// A sequence of numbers (xorshift) that begins with a secret.
#[derive(Clone, Copy, Debug)]
pub struct Random(u64);

impl Random {
    /// `seed` is a secret.
    pub fn new(seed: u64) -> Random {
        Random(seed | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

/// Chooses external ends.
#[derive(Clone, Debug)]
pub struct Ports {
    random: Random,
    exhausted: [Exhausted; EXHAUSTED_MAX],
}

impl Ports {
    /// `seed` is a secret.
    pub fn new(seed: u64) -> Ports {
        Ports { random: Random::new(seed), exhausted: Default::default() }
    }

    /// An external end for a host's end, of `pool`, that none of `bindings` has. `has_ports`: the
    /// protocol has ports; of another one an address serves one host.
    ///
    /// # Errors
    /// No port is left.
    pub fn external_end(
        &mut self,
        bindings: &Readers,
        pool: &[PoolAddress],
        wanted: Wanted,
        has_ports: bool,
    ) -> Result<End, OutOfPorts> {
        let own = pool.iter().any(|pooled| pooled.tenant == Some(wanted.table));
        let tenant = own.then_some(wanted.table);
        let what = Exhausted { protocol: wanted.protocol.0, tenant, until_s: 0 };
        let place =
            (usize::from(what.protocol) ^ tenant.map_or(0, |t| t as usize + 1)) % EXHAUSTED_MAX;
        let known = self.exhausted[place];
        let is_known = Exhausted { until_s: 0, ..known } == what;
        if is_known && known.until_s > wanted.now_s {
            return Err(OutOfPorts { only: None, is_new: false });
        }
        let pool = pool.iter().filter(move |pooled| pooled.tenant == tenant);
        let count = pool.clone().count();
        // A host keeps its address while that has ports (RFC 4787 REQ-2).
        let hash = (wanted.host ^ wanted.host >> 64) as u64;
        let hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let first = ((hash * count as u64) >> 32) as usize;
        let addresses = pool.cycle().skip(first).map(|pooled| pooled.address);
        let first_address = addresses.clone().next();
        let tries = [(PORTS_PER_LOOK_UP, count), (PORTS_OF_PARITY, count.min(ADDRESSES_SEARCHED))];
        for (tries, count) in tries {
            for address in addresses.clone().take(count) {
                let port = match has_ports {
                    true => self.port(bindings, wanted, address, tries),
                    false => unused(bindings, wanted, address),
                };
                if let Some(port) = port {
                    return Ok(End { address, port });
                }
            }
        }
        self.exhausted[place] = Exhausted { until_s: wanted.now_s + 1, ..what };
        let only = if count == 1 { first_address } else { None };
        Err(OutOfPorts { only, is_new: true })
    }

    /// A free port of an address: the host's own, or one of the first `tries` of its parity, then
    /// of the other, from a random one on.
    fn port(
        &mut self,
        bindings: &Readers,
        wanted: Wanted,
        address: u128,
        tries: u32,
    ) -> Option<u16> {
        let Wanted { port: own, protocol, outside_table, .. } = wanted;
        let key = |port| outside_key(End { address, port }, protocol, outside_table);
        if own != 0 && bindings.table.lookup(&key(own)).is_none() {
            return Some(own);
        }
        let start = (((self.random.next() >> 32) * u64::from(PORTS_OF_PARITY)) >> 32) as u32;
        for parity in [u32::from(own & 1), u32::from(own & 1) ^ 1] {
            let port =
                |at: u32| (FIRST_PORT + parity + 2 * ((start + at) % PORTS_OF_PARITY)) as u16;
            let free = first_free::<PORTS_AT_FIRST>(bindings, key, port).or_else(|| {
                let mut firsts = (PORTS_AT_FIRST as u32..tries).step_by(PORTS_PER_LOOK_UP as usize);
                firsts.find_map(|first| {
                    let port = |at| port(first + at);
                    first_free::<{ PORTS_PER_LOOK_UP as usize }>(bindings, key, port)
                })
            });
            if free.is_some() {
                return free;
            }
        }
        None
    }
}

/// The first of `N` ports that no binding has, by one look-up.
fn first_free<const N: usize>(
    bindings: &Readers,
    key: impl Fn(u16) -> Key,
    port: impl Fn(u32) -> u16,
) -> Option<u16> {
    let keys: [Key; N] = std::array::from_fn(|at| key(port(at as u32)));
    let mut found = [NOT_FOUND; N];
    bindings.table.lookup_slice(Variant::best(), &keys, &mut found);
    let free = found.iter().position(|found| *found == NOT_FOUND);
    free.map(|at| port(at as u32))
}

/// Port 0 of an address, if no host has the protocol there.
fn unused(bindings: &Readers, wanted: Wanted, address: u128) -> Option<u16> {
    let key = outside_key(End { address, port: 0 }, wanted.protocol, wanted.outside_table);
    bindings.number(&key).is_none().then_some(0)
}
