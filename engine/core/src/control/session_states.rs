//! States of sessions that live on workers: each worker publishes those of its sessions, and the
//! control thread hears that some have changed.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::Engine;
use crate::control::reactor::Interest;
use crate::worker::poll::Bell;

/// A state of 32 bits, whose meaning is the protocol's, and which change it is: a session that has
/// left a state and come back to it is not taken for one that stayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionState {
    /// The state.
    pub bits: u32,
    /// How many changes went before, modulo 2^32.
    pub change: u32,
}

impl SessionState {
    fn to_word(self) -> u64 {
        u64::from(self.change) << 32 | u64::from(self.bits)
    }

    fn of_word(word: u64) -> SessionState {
        SessionState { bits: word as u32, change: (word >> 32) as u32 }
    }
}

/// One state for each slot. A slot has one writer, the worker of its session.
pub struct SessionStates {
    words: Box<[AtomicU64]>,
    /// A state has changed since the control thread looked last.
    is_changed: AtomicBool,
    /// Wakes the control thread then.
    bell: Bell,
}

impl SessionStates {
    /// So many slots, all 0.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub fn new(slots: usize) -> io::Result<SessionStates> {
        let words = (0..slots).map(|_| AtomicU64::new(0)).collect();
        Ok(SessionStates { words, is_changed: AtomicBool::new(false), bell: Bell::new()? })
    }

    /// The state that was published last; 0 for a slot that there is not.
    pub fn get(&self, slot: u16) -> SessionState {
        let word = self.words.get(usize::from(slot));
        SessionState::of_word(word.map_or(0, |word| word.load(Ordering::Acquire)))
    }

    /// The slot's worker publishes a state.
    pub fn publish(&self, slot: u16, bits: u32) {
        let Some(word) = self.words.get(usize::from(slot)) else { return };
        let change = SessionState::of_word(word.load(Ordering::Relaxed)).change.wrapping_add(1);
        word.store(SessionState { bits, change }.to_word(), Ordering::Release);
        if !self.is_changed.swap(true, Ordering::AcqRel) {
            self.bell.ring();
        }
    }

    /// A new session has the slot, in this state.
    pub fn reset(&self, slot: u16, bits: u32) {
        if let Some(word) = self.words.get(usize::from(slot)) {
            word.store(SessionState { bits, change: 0 }.to_word(), Ordering::Release);
        }
    }

    /// Has a state changed since this was last called?
    pub fn take_changed(&self) -> bool {
        self.is_changed.load(Ordering::Relaxed) && self.is_changed.swap(false, Ordering::AcqRel)
    }

    /// Call `look` on the turns of the control loop before which a state has changed; a change
    /// ends the loop's wait.
    pub fn follow<T>(
        engine: &mut Engine,
        shared: &Arc<T>,
        states: fn(&T) -> &SessionStates,
        mut look: impl FnMut(&mut Engine) + 'static,
    ) where
        T: Send + Sync + 'static,
    {
        let (rung, changed) = (shared.clone(), shared.clone());
        let fd = states(shared).bell.fd();
        engine.watch(fd, Interest::READ, move |_| states(&rung).bell.clear());
        engine.on_turn(move |engine| {
            if states(&changed).take_changed() {
                look(engine);
            }
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_state_that_comes_back_is_a_change_and_slots_that_there_are_not_are_silent() {
        let states = SessionStates::new(2).unwrap();
        assert!(!states.take_changed());
        states.publish(1, 7);
        let first = states.get(1);
        states.publish(1, 8);
        states.publish(1, 7);
        assert_eq!((first.bits, states.get(1).bits), (7, 7));
        assert_ne!(first, states.get(1));
        assert!(states.take_changed() && !states.take_changed());
        states.publish(2, 9);
        assert!(!states.take_changed());
        assert_eq!(states.get(2), SessionState::default());
        states.reset(1, 3);
        assert_eq!(states.get(1), SessionState { bits: 3, change: 0 });
    }
}
