//! External ends of new bindings: an address of the pool and a free port of it (RFC 6146
//! §3.5.1.1).

use quiver_core::cpu::Variant;
use quiver_tables::exact::NOT_FOUND;
use quiver_translation::flow::End;
use quiver_wire::IpProtocol;

use crate::bindings::{Key, outside_key};
use crate::owner::Owner;
use crate::reasons::Nat64Drop;
use crate::tables::Rules;

/// Dynamic ports (RFC 6056 §3.2): all but the well-known ones.
const FIRST_PORT: u32 = 1024;
const PORTS: u32 = 65_536 - FIRST_PORT;
/// Ports of one parity: who sends RTP has an even one, its control an odd one (RFC 4787 REQ-4).
const PORTS_OF_PARITY: u32 = PORTS / 2;
/// Ports that are tried in one look-up. It divides [`PORTS_OF_PARITY`].
const PORTS_PER_LOOK_UP: u32 = 64;
/// Addresses whose whole range is searched for one packet; of the others, one look-up's ports are
/// tried. So many take about 2 ms.
const ADDRESSES_SEARCHED: usize = 4;
/// Protocols of which it is remembered that no port is free.
pub(crate) const EXHAUSTED_MAX: usize = 8;

const _: () = assert!(PORTS_OF_PARITY.is_multiple_of(PORTS_PER_LOOK_UP));

/// What no port is left for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Exhausted {
    protocol: u8,
    tenant: Option<u32>,
    /// Second until which it is believed.
    until_s: u32,
}

/// A host's end that needs an external one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub host: u128,
    pub port: u16,
    pub protocol: IpProtocol,
    /// Small number of the host's table.
    pub table: u32,
    pub now_s: u32,
}

impl Owner {
    /// An external end for a host's end.
    pub fn external_end(&mut self, rules: &Rules, wanted: Wanted) -> Result<End, Nat64Drop> {
        let own = rules.pool.iter().any(|pooled| pooled.tenant == Some(wanted.table));
        let tenant = own.then_some(wanted.table);
        let what = Exhausted { protocol: wanted.protocol.0, tenant, until_s: 0 };
        let place =
            (usize::from(what.protocol) ^ tenant.map_or(0, |t| t as usize + 1)) % EXHAUSTED_MAX;
        let known = self.exhausted[place];
        let is_known = Exhausted { until_s: 0, ..known } == what;
        if is_known && known.until_s > wanted.now_s {
            return Err(Nat64Drop::OutOfPorts);
        }
        let pool = rules.pool.iter().filter(move |pooled| pooled.tenant == tenant);
        let count = pool.clone().count();
        // A host keeps its address while that has ports (RFC 4787 REQ-2).
        let hash = (wanted.host ^ wanted.host >> 64) as u64;
        let hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let first = ((hash * count as u64) >> 32) as usize;
        let addresses = pool.cycle().skip(first).map(|pooled| pooled.address);
        let first_address = addresses.clone().next();
        for address in addresses.clone().take(count) {
            if let Some(port) = self.port(rules, wanted, address, PORTS_PER_LOOK_UP) {
                return Ok(End { address, port });
            }
        }
        for address in addresses.take(count.min(ADDRESSES_SEARCHED)) {
            if let Some(port) = self.port(rules, wanted, address, PORTS_OF_PARITY) {
                return Ok(End { address, port });
            }
        }
        self.exhausted[place] = Exhausted { until_s: wanted.now_s + 1, ..what };
        // The only address is named; of several, none is.
        let only = if count == 1 { first_address } else { None };
        self.log.exhausted(only.unwrap_or(0), wanted.protocol.0);
        Err(Nat64Drop::OutOfPorts)
    }

    /// A free port of an address: the host's own, or one of the first `tries` of its parity, then
    /// of the other, from a random one on.
    fn port(&mut self, rules: &Rules, wanted: Wanted, address: u32, tries: u32) -> Option<u16> {
        let Wanted { port: own, protocol, .. } = wanted;
        let key = |port| outside_key(End { address, port }, protocol, rules.outside_table);
        let table = self.bindings.read.table.clone();
        if own != 0 && table.lookup(&key(own)).is_none() {
            return Some(own);
        }
        let start = (((self.random() >> 32) * u64::from(PORTS_OF_PARITY)) >> 32) as u32;
        for parity in [u32::from(own & 1), u32::from(own & 1) ^ 1] {
            let port =
                |at: u32| (FIRST_PORT + parity + 2 * ((start + at) % PORTS_OF_PARITY)) as u16;
            for first in (0..tries).step_by(PORTS_PER_LOOK_UP as usize) {
                let keys: [Key; PORTS_PER_LOOK_UP as usize] =
                    std::array::from_fn(|at| key(port(first + at as u32)));
                let mut found = [NOT_FOUND; PORTS_PER_LOOK_UP as usize];
                table.lookup_slice(Variant::best(), &keys, &mut found);
                if let Some(at) = found.iter().position(|found| *found == NOT_FOUND) {
                    return Some(port(first + at as u32));
                }
            }
        }
        None
    }
}
