//! Who uses which list, on the control thread.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use quiver_control::{Output, Refusal, Work};
use quiver_core::Engine;

use crate::table::{CompiledList, LISTS_MAX, ListSlot, ListTable};

/// What is done when a list is compiled.
pub type Then = Box<dyn FnOnce(&mut Engine) -> Result<Output, Refusal>>;

/// Who compiles lists.
#[derive(Clone, Copy)]
pub struct Provider {
    /// Compile a list, give it to [`ListUsers::publish`], then do the rest.
    pub hold: fn(&mut Engine, u32, Then) -> Result<Work<Engine>, Refusal>,
    /// Nobody uses the list any more.
    pub release: fn(&mut Engine, u32),
}

struct Held {
    slot: ListSlot,
    users: BTreeSet<String>,
}

/// The lists that are used, by number; kept in the engine.
pub struct ListUsers {
    table: Arc<ListTable>,
    provider: Option<Provider>,
    held: BTreeMap<u32, Held>,
    /// The slot that is tried first: one that was given back is not taken at once.
    next: u16,
}

impl ListUsers {
    pub(crate) fn new(table: Arc<ListTable>) -> ListUsers {
        ListUsers { table, provider: None, held: BTreeMap::new(), next: 0 }
    }

    /// Say who compiles lists.
    pub fn provide(&mut self, provider: Provider) {
        self.provider = Some(provider);
    }

    /// What workers read.
    pub fn table(&self) -> &Arc<ListTable> {
        &self.table
    }

    /// One of those who use a list, in the words of a refusal.
    pub fn user_of(&self, list: u32) -> Option<&str> {
        self.held.get(&list)?.users.first().map(String::as_str)
    }

    /// How many use a list.
    pub fn count(&self, list: u32) -> usize {
        self.held.get(&list).map_or(0, |held| held.users.len())
    }

    /// Is there a slot for a list?
    ///
    /// # Errors
    /// All are in use.
    pub fn check_room(&self, list: u32) -> Result<(), Refusal> {
        if self.held.contains_key(&list) || self.held.len() < LISTS_MAX {
            return Ok(());
        }
        let what = format!("policies and policers use {LISTS_MAX} access lists already");
        Err(Refusal::new(what).remedy("let them share lists"))
    }

    /// Let workers ask this version of a list from now on.
    ///
    /// # Errors
    /// All slots are in use.
    pub fn publish(&mut self, list: u32, compiled: Arc<dyn CompiledList>) -> Result<(), Refusal> {
        self.check_room(list)?;
        let slot = match self.held.get(&list) {
            Some(held) => held.slot,
            None => {
                let slot = self.free_slot();
                self.held.insert(list, Held { slot, users: BTreeSet::new() });
                slot
            }
        };
        self.table.publish(slot, Some(compiled));
        Ok(())
    }

    /// The next slot that no list has; there is one.
    fn free_slot(&mut self) -> ListSlot {
        let used: BTreeSet<u16> = self.held.values().map(|held| held.slot.0).collect();
        let most = LISTS_MAX as u16;
        let from = self.next;
        let free = (0..most).map(|at| (from + at) % most).find(|slot| !used.contains(slot));
        let slot = free.unwrap_or(from);
        self.next = (slot + 1) % most;
        ListSlot(slot)
    }

    /// A list has another user: its slot, and whether the user is new.
    fn add(&mut self, list: u32, user: &str) -> Option<(ListSlot, bool)> {
        let held = self.held.get_mut(&list)?;
        let is_new = held.users.insert(user.to_owned());
        Some((held.slot, is_new))
    }

    /// Is a list without users now?
    fn remove(&mut self, list: u32, user: &str) -> bool {
        let Some(held) = self.held.get_mut(&list) else { return false };
        held.users.remove(user);
        if !held.users.is_empty() {
            return false;
        }
        self.table.publish(held.slot, None);
        self.held.remove(&list);
        true
    }
}

/// Use a list from now on, in the name of `user`, which a refusal to delete the list says: "policy
/// 3". When the list is compiled, `then` does the rest with its slot; where that fails, the list is
/// not used.
///
/// # Errors
/// There is no such list, or no room for it, or `then` fails.
pub fn hold(
    engine: &mut Engine,
    list: u32,
    user: String,
    then: impl FnOnce(&mut Engine, ListSlot) -> Result<Output, Refusal> + 'static,
) -> Result<Work<Engine>, Refusal> {
    let users = engine.get::<ListUsers>().ok_or_else(|| Refusal::new("access lists are busy"))?;
    let (is_held, provider) = (users.held.contains_key(&list), users.provider);
    let then = move |engine: &mut Engine| {
        let users = engine.get_mut::<ListUsers>();
        let added = users.and_then(|users| users.add(list, &user));
        let (slot, is_new) = added.ok_or_else(|| {
            Refusal::new(format!("access list {list} was deleted meanwhile")).remedy("try again")
        })?;
        let done = then(engine, slot);
        if done.is_err() && is_new {
            release(engine, list, &user);
        }
        done
    };
    if is_held {
        return then(engine).map(Work::Done);
    }
    let provider = provider.ok_or_else(|| {
        Refusal::new("this router has no access lists").remedy("build it with the feature acl")
    })?;
    (provider.hold)(engine, list, Box::new(then))
}

/// A user needs a list no more. Workers must not find its slot any longer.
pub fn release(engine: &mut Engine, list: u32, user: &str) {
    let Some(users) = engine.get_mut::<ListUsers>() else { return };
    let provider = users.provider;
    if users.remove(list, user)
        && let Some(provider) = provider
    {
        (provider.release)(engine, list);
    }
}
