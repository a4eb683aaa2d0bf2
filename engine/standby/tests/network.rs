//! Two links and what is between them: datagrams that are lost, come twice, late or in another
//! order.

use quiver_standby::Item;
use quiver_standby::link::{Link, State};
use quiver_standby::wire::{Greeting, Key};

pub const GREETING: Greeting = [7; 32];
pub const SECRET: &[u8] = b"correct-horse";
/// Between two polls, nanoseconds.
pub const TURN_NS: u64 = 10_000_000;

/// A router's end.
pub struct End {
    pub link: Link,
    /// What its link has sent and nobody has got yet.
    pub sent: Vec<Vec<u8>>,
    /// The records that it got, and how many times it met a peer.
    pub got: Vec<Vec<u8>>,
    pub peers: usize,
}

impl End {
    pub fn new(incarnation: u64) -> End {
        End::with(incarnation, SECRET, GREETING)
    }

    pub fn with(incarnation: u64, secret: &[u8], greeting: Greeting) -> End {
        let link = Link::new(Key::new(secret), incarnation, greeting, 512);
        End { link, sent: Vec::new(), got: Vec::new(), peers: 0 }
    }

    pub fn poll(&mut self, now_ns: u64) {
        let End { link, sent, .. } = self;
        link.poll(now_ns, |datagram| sent.push(datagram.to_vec()));
    }

    /// Take all that came.
    pub fn take(&mut self) {
        let End { link, got, peers, .. } = self;
        while link
            .take(|item| match item {
                Item::NewPeer => *peers += 1,
                Item::Record { channel, content } => {
                    assert_eq!(channel, 3);
                    got.push(content.to_vec());
                }
            })
            .is_some()
        {}
    }

    pub fn is_up(&self) -> bool {
        self.link.state() == State::Up
    }
}

/// What becomes of the next datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Arrives,
    Lost,
    Twice,
    /// It comes behind the next ones.
    Late,
    /// A byte is another one.
    Changed(u8),
}

/// Give the datagrams of one to the other.
pub fn carry(from: &mut End, to: &mut End, now_ns: u64, mut fate: impl FnMut() -> Fate) {
    let mut late = Vec::new();
    for mut datagram in std::mem::take(&mut from.sent) {
        match fate() {
            Fate::Arrives => to.link.receive(now_ns, &datagram),
            Fate::Lost => {}
            Fate::Twice => {
                to.link.receive(now_ns, &datagram);
                to.link.receive(now_ns, &datagram);
            }
            Fate::Late => late.push(datagram),
            Fate::Changed(at) => {
                let place = usize::from(at) % datagram.len();
                datagram[place] ^= 1 << (at % 8);
                to.link.receive(now_ns, &datagram);
            }
        }
    }
    late.iter().rev().for_each(|datagram| to.link.receive(now_ns, datagram));
}

/// Turn both until `ends` holds, at most so many times.
pub fn turn_until(
    (a, b): (&mut End, &mut End),
    now_ns: &mut u64,
    turns: usize,
    mut fate: impl FnMut() -> Fate,
    mut ends: impl FnMut(&mut End, &mut End) -> bool,
) -> bool {
    for _ in 0..turns {
        *now_ns += TURN_NS;
        a.poll(*now_ns);
        b.poll(*now_ns);
        carry(a, b, *now_ns, &mut fate);
        carry(b, a, *now_ns, &mut fate);
        a.take();
        b.take();
        if ends(a, b) {
            return true;
        }
    }
    false
}

/// Two that have met.
pub fn met() -> (End, End, u64) {
    let (mut a, mut b, mut now_ns) = (End::new(100), End::new(200), 0);
    let met = turn_until(
        (&mut a, &mut b),
        &mut now_ns,
        200,
        || Fate::Arrives,
        |a, b| a.is_up() && b.is_up(),
    );
    assert!(met);
    (a, b, now_ns)
}
