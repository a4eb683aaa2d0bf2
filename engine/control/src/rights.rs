//! What a client may do: the files that it may name, and the commands that it may give.

use crate::error::{Kind, Refusal};
use crate::files::Trust;

/// Which commands a client may give.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// All.
    #[default]
    Operator,
    /// Those that only look at the router, and show no secret.
    ReadOnly,
}

impl Role {
    /// As logs and messages name it.
    pub fn name(self) -> &'static str {
        match self {
            Role::Operator => "operator",
            Role::ReadOnly => "read-only",
        }
    }
}

/// What a client may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// Whose files it may name.
    pub trust: Trust,
    /// Which commands it may give.
    pub role: Role,
}

impl From<Trust> for Rights {
    /// An operator's.
    fn from(trust: Trust) -> Rights {
        Rights { trust, role: Role::Operator }
    }
}

/// What a client with the role "read-only" hears of a command that it may not give.
pub(crate) fn forbidden() -> Refusal {
    Refusal::new("this client has the role read-only: it may look at the router, not change it")
        .remedy("an operator may give this command")
        .of_kind(Kind::Forbidden)
}
