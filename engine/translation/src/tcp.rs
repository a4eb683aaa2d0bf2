//! The state of a TCP connection, as both of its ends' packets show it.

/// From inside, or from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From a host inside.
    InToOut = 0,
    /// From outside.
    OutToIn = 1,
}

impl Direction {
    /// Of an index that the session table has found.
    #[inline(always)]
    pub fn of_index(index: u32) -> Direction {
        if index & 1 == 0 { Direction::InToOut } else { Direction::OutToIn }
    }

    /// The other one.
    #[inline(always)]
    pub fn other(self) -> Direction {
        match self {
            Direction::InToOut => Direction::OutToIn,
            Direction::OutToIn => Direction::InToOut,
        }
    }
}

/// How a connection stands (RFC 7857 §2): a bit for each event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Tcp(pub u8);

/// Flags of a TCP header.
pub mod flag {
    /// FIN.
    pub const FIN: u8 = 1;
    /// SYN.
    pub const SYN: u8 = 2;
    /// RST.
    pub const RST: u8 = 4;
    /// ACK.
    pub const ACK: u8 = 16;
}

impl Tcp {
    const SYN: u8 = 1; // from inside; shifted by one: from outside
    const FIN: u8 = 4;
    const RESET: u8 = 16;
    const ESTABLISHED: u8 = 32;

    /// Both ends have sent SYN, and an ACK came behind.
    #[inline(always)]
    pub fn is_established(self) -> bool {
        self.0 & (Self::ESTABLISHED | Self::RESET) == Self::ESTABLISHED && !self.is_closed()
    }

    /// Both ends have sent FIN.
    #[inline(always)]
    pub fn is_closed(self) -> bool {
        self.0 & (3 * Self::FIN) == 3 * Self::FIN
    }

    /// One of them has sent RST, and nothing came since.
    pub fn is_reset(self) -> bool {
        self.0 & Self::RESET != 0
    }

    /// May a packet with these flags leave the state as it is?
    #[inline(always)]
    pub fn stays(self, flags: u8) -> bool {
        flags & (flag::SYN | flag::FIN | flag::RST) == 0 && self.is_established()
    }

    /// After a packet with `flags`. A SYN on a connection that is over begins a new one. A packet
    /// behind a RST says that the RST was not the end (RFC 6146 §3.5.2.2).
    pub fn after(self, direction: Direction, flags: u8) -> Tcp {
        let shift = direction as u8;
        if flags & flag::RST != 0 {
            return Tcp(self.0 | Self::RESET);
        }
        if flags & flag::SYN != 0 {
            let over = self.is_closed() || (self.is_reset() && flags & flag::ACK == 0);
            let before = if over { 0 } else { self.0 & !Self::RESET };
            return Tcp(before | Self::SYN << shift);
        }
        let mut state = self.0 & !Self::RESET;
        if flags & flag::FIN != 0 {
            state |= Self::FIN << shift;
        }
        if state & (3 * Self::SYN) == 3 * Self::SYN && flags & flag::ACK != 0 {
            state |= Self::ESTABLISHED;
        }
        Tcp(state)
    }

    /// For operators.
    pub fn word(self) -> &'static str {
        if self.is_reset() {
            "reset"
        } else if self.is_closed() {
            "closed"
        } else if self.0 & (3 * Self::FIN) != 0 {
            "closing"
        } else if self.is_established() {
            "established"
        } else {
            "opening"
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const IN: Direction = Direction::InToOut;
    const OUT: Direction = Direction::OutToIn;

    fn run(packets: &[(Direction, u8)]) -> Tcp {
        packets.iter().fold(Tcp::default(), |state, (from, flags)| state.after(*from, *flags))
    }

    #[test]
    fn a_handshake_establishes_and_two_fins_close() {
        let open = [(IN, flag::SYN), (OUT, flag::SYN | flag::ACK), (IN, flag::ACK)];
        assert_eq!(run(&open[..2]).word(), "opening");
        assert!(run(&open).is_established());
        let closed = run(&[
            &open[..],
            &[(IN, flag::FIN | flag::ACK), (OUT, flag::FIN | flag::ACK)],
        ]
        .concat());
        assert!(closed.is_closed() && !closed.is_established());
        assert_eq!(closed.after(IN, flag::ACK).word(), "closed");
        assert_eq!(closed.after(IN, flag::SYN).word(), "opening");
    }

    #[test]
    fn a_simultaneous_open_establishes() {
        let open = run(&[(IN, flag::SYN), (OUT, flag::SYN), (IN, flag::SYN | flag::ACK)]);
        assert!(open.after(OUT, flag::ACK).is_established());
    }

    #[test]
    fn a_reset_ends_a_connection_unless_it_goes_on() {
        let open = run(&[(IN, flag::SYN), (OUT, flag::SYN | flag::ACK), (IN, flag::ACK)]);
        let reset = open.after(OUT, flag::RST);
        assert!(reset.is_reset() && !reset.is_established());
        assert!(reset.after(OUT, flag::ACK).is_established());
        assert_eq!(reset.after(IN, flag::SYN).word(), "opening");
    }

    proptest! {
        /// No sequence of packets makes an established connection of one that an end has not
        /// opened.
        #[test]
        fn both_ends_open_a_connection(packets: Vec<(bool, u8)>) {
            let mut state = Tcp::default();
            let mut opened = [false; 2];
            for (outward, flags) in packets {
                let from = if outward { IN } else { OUT };
                if flags & (flag::SYN | flag::RST) == flag::SYN {
                    opened[from as usize] = true;
                }
                state = state.after(from, flags);
                prop_assert!(!state.is_established() || opened == [true; 2]);
            }
        }
    }
}
