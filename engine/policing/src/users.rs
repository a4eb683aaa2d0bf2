//! Policers by name, and who uses which, on the control thread.

use std::collections::BTreeMap;

use quiver_control::Refusal;
use quiver_core::Engine;

#[derive(Default)]
struct Named {
    number: u16,
    /// How many things use it, by what they are.
    users: BTreeMap<String, usize>,
}

/// The policers that there are; kept in the engine.
#[derive(Default)]
pub struct PolicerNames {
    by_name: BTreeMap<String, Named>,
}

impl PolicerNames {
    /// There is a policer of this name.
    pub fn add(&mut self, name: &str, number: u16) {
        self.by_name.entry(name.to_owned()).or_default().number = number;
    }

    /// There is none any more.
    pub fn remove(&mut self, name: &str) {
        self.by_name.remove(name);
    }

    /// The number of a policer.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn number(&self, name: &str) -> Result<u16, Refusal> {
        self.by_name.get(name).map(|named| named.number).ok_or_else(|| unknown(name))
    }

    /// One of those that use a policer, in the words of a refusal.
    pub fn user_of(&self, name: &str) -> Option<&str> {
        self.by_name.get(name)?.users.keys().next().map(String::as_str)
    }
}

/// The refusal of a name that no policer has.
pub fn unknown(name: &str) -> Refusal {
    Refusal::new(format!("there is no policer {name}"))
        .remedy("`show policer` lists them; `policer add name …` makes one")
}

/// Use a policer once more from now on, in the name of `user`, which a refusal to delete it says:
/// "sessions of classifier table 3". Its number.
///
/// # Errors
/// There is no such policer.
pub fn hold(engine: &mut Engine, name: &str, user: &str) -> Result<u16, Refusal> {
    let names = engine.get_mut::<PolicerNames>();
    let named = names.and_then(|names| names.by_name.get_mut(name)).ok_or_else(|| unknown(name))?;
    *named.users.entry(user.to_owned()).or_default() += 1;
    Ok(named.number)
}

/// Use a policer once less; once for each [`hold`].
pub fn release(engine: &mut Engine, name: &str, user: &str) {
    let names = engine.get_mut::<PolicerNames>();
    let Some(named) = names.and_then(|names| names.by_name.get_mut(name)) else { return };
    if let Some(count) = named.users.get_mut(user) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            named.users.remove(user);
        }
    }
}
