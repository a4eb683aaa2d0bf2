//! How a bond spreads what it sends over its members.

use std::fmt;

/// Which members send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Members that the partner agrees on by LACP; spread by hash.
    Lacp,
    /// All members; spread by hash.
    Xor,
    /// One member at a time.
    ActiveBackup,
    /// All members in turn.
    RoundRobin,
    /// All members, each a copy.
    Broadcast,
}

impl Mode {
    /// All, for the words of the commands.
    pub const ALL: [Mode; 5] =
        [Mode::Lacp, Mode::Xor, Mode::ActiveBackup, Mode::RoundRobin, Mode::Broadcast];

    /// Its word in commands.
    pub const fn word(self) -> &'static str {
        match self {
            Mode::Lacp => "lacp",
            Mode::Xor => "xor",
            Mode::ActiveBackup => "active-backup",
            Mode::RoundRobin => "round-robin",
            Mode::Broadcast => "broadcast",
        }
    }

    /// The mode of a word.
    pub fn of(word: &str) -> Option<Mode> {
        Mode::ALL.into_iter().find(|mode| mode.word() == word)
    }

    /// Does a hash of the frame choose the member?
    pub const fn hashes(self) -> bool {
        matches!(self, Mode::Lacp | Mode::Xor)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// What of a frame chooses the member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balance {
    /// Both MAC addresses.
    #[default]
    L2,
    /// MAC and IP addresses.
    L23,
    /// IP addresses, protocol and ports.
    L34,
}

impl Balance {
    /// Its word in commands.
    pub const fn word(self) -> &'static str {
        match self {
            Balance::L2 => "l2",
            Balance::L23 => "l23",
            Balance::L34 => "l34",
        }
    }

    /// The balance of a word.
    pub fn of(word: &str) -> Option<Balance> {
        [Balance::L2, Balance::L23, Balance::L34].into_iter().find(|balance| balance.word() == word)
    }
}

impl fmt::Display for Balance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
