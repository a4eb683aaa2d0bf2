//! What becomes of packets that meet a session.

use quiver_forwarding::fib::Family;
use quiver_policing::meter::Colour;

/// What an access list says of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Action {
    #[default]
    Permit,
    Deny,
}

impl Action {
    /// The word of commands.
    pub const fn word(self) -> &'static str {
        match self {
            Action::Permit => "permit",
            Action::Deny => "deny",
        }
    }

    pub fn of_word(word: &str) -> Action {
        if word == "deny" { Action::Deny } else { Action::Permit }
    }
}

/// What becomes of packets that meet a session. At a place for which it says nothing they pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionAction {
    /// An access list says so.
    Access(Action),
    /// The policer of this number meters them; they had this colour before.
    Police { policer: u16, before: Colour },
    /// Packets of the family are looked up in the table of this small number.
    LookUp { family: Family, table: u32 },
}

// A word is the kind of action, and behind it a colour and a policer, or a table.
const PERMIT: u64 = 0;
const DENY: u64 = 1;
const POLICE: u64 = 2;
const LOOK_UP: [u64; 2] = [3, 4];
const KIND_BITS: u32 = 8;
const POLICER_AT: u32 = 16;
const TABLE_AT: u32 = 32;

impl SessionAction {
    /// Packets pass.
    pub const PASS: SessionAction = SessionAction::Access(Action::Permit);

    pub const fn bits(self) -> u64 {
        match self {
            SessionAction::Access(Action::Permit) => PERMIT,
            SessionAction::Access(Action::Deny) => DENY,
            SessionAction::Police { policer, before } => {
                POLICE | (before as u64) << KIND_BITS | (policer as u64) << POLICER_AT
            }
            SessionAction::LookUp { family, table } => {
                let kind = match family {
                    Family::Ip4 => LOOK_UP[0],
                    Family::Ip6 => LOOK_UP[1],
                };
                kind | (table as u64) << TABLE_AT
            }
        }
    }

    #[inline(always)]
    pub fn from_bits(bits: u64) -> SessionAction {
        let look_up = |family| SessionAction::LookUp { family, table: (bits >> TABLE_AT) as u32 };
        match bits & ((1 << KIND_BITS) - 1) {
            DENY => SessionAction::Access(Action::Deny),
            POLICE => {
                let place = (bits >> KIND_BITS) as usize & 0xff;
                let before = Colour::ALL.get(place).copied().unwrap_or(Colour::Green);
                SessionAction::Police { policer: (bits >> POLICER_AT) as u16, before }
            }
            kind if kind == LOOK_UP[0] => look_up(Family::Ip4),
            kind if kind == LOOK_UP[1] => look_up(Family::Ip6),
            _ => SessionAction::Access(Action::Permit),
        }
    }

    /// What an access list makes of it.
    #[inline(always)]
    pub fn access(self) -> Action {
        match self {
            SessionAction::Access(action) => action,
            _ => Action::Permit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_is_one_word() {
        let mut all = vec![
            SessionAction::Access(Action::Permit),
            SessionAction::Access(Action::Deny),
            SessionAction::LookUp { family: Family::Ip4, table: 0 },
            SessionAction::LookUp { family: Family::Ip6, table: u32::MAX },
        ];
        for before in Colour::ALL {
            all.extend([0, 7, u16::MAX].map(|policer| SessionAction::Police { policer, before }));
        }
        for action in all {
            assert_eq!(SessionAction::from_bits(action.bits()), action);
        }
    }
}
