//! Router solicitations: after a random delay, and then ever more rarely until a default router
//! answers (RFC 4861 §6.3.7, RFC 7559 §2).

use quiver_core::jitter::Jitter;
use quiver_core::worker::Worker;
use quiver_core::{Engine, InterfaceId, WorkerId};
use quiver_forwarding::fib::Fib;
use quiver_wire::icmp6::nd::{self, NdOption, Options};
use quiver_wire::icmp6::{self, Icmp6Header};
use quiver_wire::ip6::address::ALL_ROUTERS;
use quiver_wire::{Header, Ip6Header, IpProtocol};

use super::{Host, calls, is_up};

/// The longest delay of the first one (RFC 4861 §10, MAX_RTR_SOLICITATION_DELAY).
const FIRST_DELAY_NS_MAX: u64 = 1_000_000_000;
/// From the first one to the second (RFC 7559 §2, IRT).
const INITIAL_INTERVAL_NS: u64 = 4_000_000_000;
/// The longest interval (RFC 7559 §2, MRT).
const INTERVAL_NS_MAX: u64 = 3_600_000_000_000;
/// How soon an interface whose link-local address is not its own yet is looked at again.
const AGAIN_NS: u64 = 100_000_000;

/// When the routers of a link are asked.
#[derive(Debug, Default)]
pub(super) struct Solicit {
    due_ns: Option<u64>,
    interval_ns: u64,
    /// Solicitations sent.
    pub sent: u64,
}

impl Solicit {
    /// When the next one is due; `None` when no router is asked.
    pub fn due_ns(&self) -> Option<u64> {
        self.due_ns
    }

    /// Begin to ask.
    pub fn begin(&mut self, now_ns: u64, jitter: &mut Jitter) {
        self.due_ns = Some(now_ns + jitter.between(0, FIRST_DELAY_NS_MAX));
        self.interval_ns = 0;
    }

    /// Ask no more.
    pub fn end(&mut self) {
        self.due_ns = None;
    }

    /// One is sent now; plan the next (RFC 3315 §14: doubled, and a tenth more or less at random).
    fn advance(&mut self, now_ns: u64, jitter: &mut Jitter) {
        self.sent += 1;
        let wanted_ns = match self.interval_ns {
            0 => INITIAL_INTERVAL_NS,
            last_ns => last_ns.saturating_mul(2).min(INTERVAL_NS_MAX),
        };
        let tenth_ns = wanted_ns / 10;
        self.interval_ns = wanted_ns - tenth_ns + jitter.between(0, 2 * tenth_ns);
        self.due_ns = Some(now_ns + self.interval_ns);
    }
}

/// Send the solicitation of an interface when it is due.
pub(super) fn send_due(engine: &mut Engine, id: InterfaceId, host: &mut Host, jitter: &mut Jitter) {
    let now_ns = engine.now_ns();
    if host.solicit.due_ns.is_none_or(|due_ns| due_ns > now_ns) {
        return;
    }
    let link_local = calls(engine).and_then(|calls| (calls.link_local)(engine, id));
    let Some(from) = link_local.filter(|_| is_up(engine, id)) else {
        host.solicit.due_ns = Some(now_ns + AGAIN_NS);
        return;
    };
    host.solicit.advance(now_ns, jitter);
    let Some(info) = engine.get::<Fib>().and_then(|fib| fib.interface(id)) else { return };
    let mut option = [0; 8];
    let written = info.mac.is_some_and(|mac| NdOption::SourceMac(mac).emit(&mut option).is_ok());
    let options: &[u8] = if written { &option } else { &[] };
    let Ok(options) = Options::new(options) else { return };
    let length = Icmp6Header::LEN + options.as_bytes().len();
    let header = Ip6Header::new(from, ALL_ROUTERS, IpProtocol::ICMP6, nd::HOP_LIMIT, length as u16);
    let message = icmp6::Message::Nd(nd::Message::RouterSolicitation { options });
    let mut packet = vec![0; Ip6Header::LEN + length];
    let (head, body) = packet.split_at_mut(Ip6Header::LEN);
    if header.write(head).is_err() || message.emit(from, ALL_ROUTERS, body).is_err() {
        return;
    }
    let mut frame = info.header_to_group(ALL_ROUTERS.into());
    frame.extend(packet);
    let output = info.output;
    engine.post(WorkerId(0), move |worker: &mut Worker| {
        worker.inject(&frame, output, InterfaceId::NONE, id);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_double_up_to_an_hour_and_differ_at_random() {
        let (mut solicit, mut jitter) = (Solicit::default(), Jitter::seeded(7));
        solicit.begin(0, &mut jitter);
        assert!(solicit.due_ns().is_some_and(|due_ns| due_ns <= FIRST_DELAY_NS_MAX));
        let mut expected_ns = INITIAL_INTERVAL_NS;
        for _ in 0..20 {
            solicit.advance(0, &mut jitter);
            let interval_ns = solicit.due_ns().unwrap();
            assert!(
                interval_ns.abs_diff(expected_ns) <= expected_ns / 10,
                "{interval_ns} {expected_ns}"
            );
            expected_ns = (2 * interval_ns).min(INTERVAL_NS_MAX);
        }
        assert_eq!((expected_ns, solicit.sent), (INTERVAL_NS_MAX, 20));
    }
}
