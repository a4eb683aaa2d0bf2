//! How long sessions last without packets (RFC 6146 §4).

use std::sync::atomic::{AtomicU32, Ordering};

use quiver_translation::tcp::Tcp;
use quiver_wire::IpProtocol;

/// Timeouts at first, in seconds, by [`Class`] (RFC 6146 §4).
pub const TIMEOUTS_S: [u32; 4] = [300, 7_440, 240, 60];

/// Which timeout holds for a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// UDP, and protocols without connections that the router knows.
    Udp = 0,
    /// TCP that both ends have opened and not closed.
    TcpEstablished = 1,
    /// TCP that opens, closes or was reset.
    TcpTransitory = 2,
    /// ICMP queries.
    Icmp = 3,
}

/// The words of timeouts in commands.
pub const TIMEOUT_WORDS: [(Class, &str); 4] = [
    (Class::Udp, "udp"),
    (Class::TcpEstablished, "tcp-established"),
    (Class::TcpTransitory, "tcp-transitory"),
    (Class::Icmp, "icmp"),
];

impl Class {
    /// Of a session of this protocol; `tcp` is its state.
    pub fn of(protocol: IpProtocol, tcp: Tcp) -> Class {
        match protocol {
            IpProtocol::TCP if tcp.is_established() => Class::TcpEstablished,
            IpProtocol::TCP => Class::TcpTransitory,
            IpProtocol::ICMP | IpProtocol::ICMP6 => Class::Icmp,
            _ => Class::Udp,
        }
    }
}

/// Timeouts as the owner reads them while the control thread sets them.
#[derive(Debug)]
pub struct Timeouts([AtomicU32; 4]);

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts(TIMEOUTS_S.map(AtomicU32::new))
    }
}

impl Timeouts {
    /// Seconds of a class.
    pub fn get(&self, class: Class) -> u32 {
        self.0[class as usize].load(Ordering::Relaxed)
    }

    /// Let a class have so many seconds.
    pub fn set(&self, class: Class, seconds: u32) {
        self.0[class as usize].store(seconds, Ordering::Relaxed);
    }

    /// Words and seconds of those that are not as at first.
    pub fn changed(&self) -> impl Iterator<Item = (&'static str, u32)> + '_ {
        let all = TIMEOUT_WORDS.into_iter().map(|(class, word)| (class, word, self.get(class)));
        all.filter(|(class, _, seconds)| *seconds != TIMEOUTS_S[*class as usize])
            .map(|(_, word, seconds)| (word, seconds))
    }
}
