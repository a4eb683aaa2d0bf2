//! `show running-config`: every feature writes the commands that make it what it is.
//!
//! Each part says in which [`Phase`] it is written, and which other parts of that phase it needs.
//! The writer puts the parts in that order, and a part that names nobody or waits for itself is a
//! fault of ours that [`Commands::check_parts`] finds when the router is built.

use std::cell::Cell;
use std::fmt::{self, Write as _};
use std::rc::Rc;

use quiver_core::control::interfaces::{Interface, natural_key};
use quiver_core::{Engine, InterfaceId};

use crate::grammar::Commands;
use crate::json_form::quoted;
use crate::names::Names;

/// Writes at most about so many commands, and goes on where it was at the next call. Returns
/// whether it has written all.
pub type Slices<S> = Box<dyn FnMut(&S, &mut ConfigWriter, usize) -> bool>;

/// Begins to write a part.
pub(crate) type BeginPart<S> = Box<dyn Fn() -> Slices<S>>;

/// When a part of the configuration is written. A command may name what an earlier phase made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Sockets and the like, which interfaces need.
    Resources,
    /// Creation of interfaces.
    Interfaces,
    /// Other names for them, before anything speaks of them.
    InterfaceNames,
    /// Creation of interfaces on other interfaces.
    SubInterfaces,
    /// Other names for sub-interfaces.
    SubInterfaceNames,
    /// What interfaces are by themselves that become another's, as members of bonds.
    Held,
    /// Members join when all interfaces are there, before anything is said of their holder.
    Members,
    /// Tables and bridge domains.
    Tables,
    /// Which table or bridge an interface is in, its MTU, addresses and state.
    InterfaceSettings,
    /// Neighbours.
    Neighbors,
    /// Routes, labels, segments.
    Routes,
    /// Features switched on along the path.
    Features,
    /// Traffic generators and the like.
    Streams,
    /// Limits that stop what is more than there is, and leave what is there.
    Limits,
}

/// The phases by the names that registrations use.
pub mod order {
    use super::Phase;

    /// [`Phase::Resources`].
    pub const RESOURCES: Phase = Phase::Resources;
    /// [`Phase::Interfaces`].
    pub const INTERFACES: Phase = Phase::Interfaces;
    /// [`Phase::InterfaceNames`].
    pub const INTERFACE_NAMES: Phase = Phase::InterfaceNames;
    /// [`Phase::SubInterfaceNames`].
    pub const SUB_INTERFACE_NAMES: Phase = Phase::SubInterfaceNames;
    /// [`Phase::SubInterfaces`].
    pub const SUB_INTERFACES: Phase = Phase::SubInterfaces;
    /// [`Phase::Held`].
    pub const HELD: Phase = Phase::Held;
    /// [`Phase::Members`].
    pub const MEMBERS: Phase = Phase::Members;
    /// [`Phase::Tables`].
    pub const TABLES: Phase = Phase::Tables;
    /// [`Phase::InterfaceSettings`].
    pub const INTERFACE_SETTINGS: Phase = Phase::InterfaceSettings;
    /// [`Phase::Neighbors`].
    pub const NEIGHBORS: Phase = Phase::Neighbors;
    /// [`Phase::Routes`].
    pub const ROUTES: Phase = Phase::Routes;
    /// [`Phase::Features`].
    pub const FEATURES: Phase = Phase::Features;
    /// [`Phase::Streams`].
    pub const STREAMS: Phase = Phase::Streams;
    /// [`Phase::Limits`].
    pub const LIMITS: Phase = Phase::Limits;
}

/// A part of the configuration.
pub(crate) struct Contributor<S> {
    phase: Phase,
    /// What other parts call it; parts of one name are written in the order of their registration.
    name: &'static str,
    /// Parts of the same phase that come before it.
    after: Vec<&'static str>,
    begin: BeginPart<S>,
}

impl<S> Contributor<S> {
    /// Begin to write the part.
    pub(crate) fn begin(&self) -> Slices<S> {
        (self.begin)()
    }
}

/// A part that was just registered.
pub struct Part<'a> {
    name: &'a mut &'static str,
    after: &'a mut Vec<&'static str>,
}

impl Part<'_> {
    /// Give it another name than its feature's.
    pub fn named(self, name: &'static str) -> Self {
        *self.name = name;
        self
    }

    /// It needs what the part of this name made, of the same phase.
    pub fn after(self, name: &'static str) -> Self {
        self.after.push(name);
        self
    }
}

/// Collects commands.
#[derive(Debug, Default)]
pub struct ConfigWriter {
    text: String,
    commands: usize,
    hides_secrets: bool,
    has_hidden: Cell<bool>,
}

/// Stands for a secret where a configuration, a log or a list of commands is for people. No command
/// takes it for a secret.
pub const HIDDEN: &str = "<hidden>";

impl ConfigWriter {
    /// Write one command: `config.command(format_args!("ip table add {id}"))`.
    pub fn command(&mut self, command: fmt::Arguments<'_>) {
        let _ = writeln!(self.text, "{command}");
        self.commands += 1;
    }

    /// A secret as a word of a command: itself where the configuration is made to be loaded again,
    /// [`HIDDEN`] where it is printed for people.
    pub fn secret(&self, secret: &str) -> String {
        if self.hides_secrets {
            self.has_hidden.set(true);
            return HIDDEN.to_owned();
        }
        quoted(secret)
    }

    /// Commands that were written.
    pub fn written(&self) -> usize {
        self.commands
    }

    /// Take the lines that were written.
    pub(crate) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.text).lines().map(str::to_owned).collect()
    }

    pub(crate) fn hiding_secrets(hides_secrets: bool) -> ConfigWriter {
        ConfigWriter { hides_secrets, ..ConfigWriter::default() }
    }

    /// Say that secrets were hidden, if any were.
    pub(crate) fn end(&mut self) {
        if self.has_hidden.get() {
            self.comment("secrets are hidden: `show running-config secrets` has them");
        }
    }

    /// Write a comment.
    pub fn comment(&mut self, comment: &str) {
        for line in comment.lines() {
            let _ = writeln!(self.text, "# {line}");
        }
    }
}

impl<S: Names + 'static> Commands<S> {
    /// Add a part of `show running-config`, in this phase, called by this name.
    pub fn contribute(
        &mut self,
        phase: Phase,
        name: &'static str,
        write: impl Fn(&S, &mut ConfigWriter) + 'static,
    ) -> Part<'_> {
        let write = Rc::new(write);
        self.contribute_in_slices(phase, name, move || {
            let write = write.clone();
            move |state: &S, config: &mut ConfigWriter, _| {
                write(state, config);
                true
            }
        })
    }

    /// Add a part that may be long: `begin` makes what writes it, [slice by slice](Slices).
    pub fn contribute_in_slices<W>(
        &mut self,
        phase: Phase,
        name: &'static str,
        begin: impl Fn() -> W + 'static,
    ) -> Part<'_>
    where
        W: FnMut(&S, &mut ConfigWriter, usize) -> bool + 'static,
    {
        let at = self.contributors.len();
        let begin: BeginPart<S> = Box::new(move || Box::new(begin()));
        self.contributors.push(Contributor { phase, name, after: Vec::new(), begin });
        let Contributor { name, after, .. } = &mut self.contributors[at];
        Part { name, after }
    }

    /// The commands that make this router what it is.
    pub fn running_config(&self, state: &S) -> String {
        self.written(state, false, &mut |_| 0)
    }

    /// The same for people: secrets are hidden, and a comment says so.
    pub fn running_config_without_secrets(&self, state: &S) -> String {
        self.written(state, true, &mut |_| 0)
    }

    /// The same, in another order that the declarations allow: of several parts that could be next,
    /// `choose` picks one. For tests: every such order makes the same router.
    pub fn running_config_in(&self, state: &S, choose: &mut dyn FnMut(usize) -> usize) -> String {
        self.written(state, false, choose)
    }

    fn written(
        &self,
        state: &S,
        hides_secrets: bool,
        choose: &mut dyn FnMut(usize) -> usize,
    ) -> String {
        let mut config = ConfigWriter::hiding_secrets(hides_secrets);
        for part in self.parts_in_order(choose) {
            let mut slices = self.contributors[part].begin();
            while !slices(state, &mut config, usize::MAX) {}
        }
        config.end();
        config.text
    }

    /// The parts as they are written, by their places.
    pub(crate) fn parts_in_order(&self, choose: &mut dyn FnMut(usize) -> usize) -> Vec<usize> {
        let mut left: Vec<(usize, &Contributor<S>)> =
            self.contributors.iter().enumerate().collect();
        left.sort_by_key(|(_, part)| part.phase);
        let mut order = Vec::with_capacity(left.len());
        while let Some((_, first)) = left.first() {
            let parts: Vec<&Contributor<S>> = left
                .iter()
                .map(|(_, part)| *part)
                .take_while(|part| part.phase == first.phase)
                .collect();
            let ready: Vec<usize> = (0..parts.len()).filter(|at| is_ready(&parts, *at)).collect();
            // `check_parts` found no circle, so one is ready; without it the first would be taken.
            let next = ready.get(choose(ready.len().max(1))).copied().unwrap_or(0);
            order.push(left.remove(next).0);
        }
        order
    }

    /// Panics when a part names one that is not there, or parts wait for each other.
    pub fn check_parts(&self) {
        let mut left: Vec<&Contributor<S>> = self.contributors.iter().collect();
        for part in &left {
            for name in &part.after {
                let found =
                    left.iter().any(|other| other.name == *name && other.phase == part.phase);
                assert!(
                    found,
                    "the part {} of {:?} waits for {name}, which is not there",
                    part.name, part.phase
                );
            }
        }
        while !left.is_empty() {
            let ready = (0..left.len()).find(|at| is_ready(&left, *at));
            match ready {
                Some(at) => drop(left.remove(at)),
                None => panic!("the parts {:?} wait for each other", names_of(&left)),
            }
        }
    }
}

/// Is nothing left that this part waits for?
fn is_ready<S>(left: &[&Contributor<S>], at: usize) -> bool {
    let part = left[at];
    let waits =
        |other: &Contributor<S>| other.phase == part.phase && part.after.contains(&other.name);
    let is_second =
        left[..at].iter().any(|other| other.name == part.name && other.phase == part.phase);
    !is_second && !left.iter().any(|other| waits(other))
}

fn names_of<S>(parts: &[&Contributor<S>]) -> Vec<&'static str> {
    parts.iter().map(|part| part.name).collect()
}

/// A part along the keys of a table: `write` writes at most so many entries behind a key, and
/// returns the last key that it came to, or nothing when there are no more.
pub fn along<S, K: Copy + 'static>(
    write: impl Fn(&S, &mut ConfigWriter, Option<K>, usize) -> Option<K> + Copy + 'static,
) -> impl Fn() -> Slices<S> {
    move || {
        let mut after = None;
        Box::new(move |state, config, most| {
            after = write(state, config, after, most);
            after.is_none()
        })
    }
}

/// A part of many things: `keys` lists them when the part begins, `write` writes the few commands
/// of one, and none of one that is gone meanwhile.
pub fn of_each<S, K: 'static>(
    keys: impl Fn(&S) -> Vec<K> + Copy + 'static,
    write: impl Fn(&S, &mut ConfigWriter, K) + Copy + 'static,
) -> impl Fn() -> Slices<S> {
    move || {
        let mut left: Option<std::vec::IntoIter<K>> = None;
        Box::new(move |state, config, most| {
            let left = left.get_or_insert_with(|| keys(state).into_iter());
            left.by_ref().take(most).for_each(|key| write(state, config, key));
            left.len() == 0
        })
    }
}

/// A part of the interfaces that `ids` lists, in the natural order of the names that they were made
/// with: the same configuration reads the same however it came about.
pub fn of_each_interface(
    ids: impl Fn(&Engine) -> Vec<InterfaceId> + Copy + 'static,
    write: impl Fn(&Engine, &mut ConfigWriter, InterfaceId) + Copy + 'static,
) -> impl Fn() -> Slices<Engine> {
    let in_order = move |engine: &Engine| {
        let mut ids = ids(engine);
        ids.sort_by_cached_key(|id| engine.interface(*id).map(|i| natural_key(i.made_name())));
        ids
    };
    of_each(in_order, write)
}

/// A part of each interface, in the order of their names.
pub fn by_interface(
    write: impl Fn(&Engine, &Interface, &mut ConfigWriter) + Copy + 'static,
) -> impl Fn() -> Slices<Engine> {
    let keys =
        |engine: &Engine| engine.interfaces_by_name().map(|interface| interface.id).collect();
    of_each(keys, move |engine: &Engine, config: &mut ConfigWriter, id: InterfaceId| {
        if let Some(interface) = engine.interface(id) {
            write(engine, interface, config);
        }
    })
}

/// What belongs to interfaces, in the order of their names.
pub fn by_interface_name<T>(
    engine: &Engine,
    items: impl IntoIterator<Item = (InterfaceId, T)>,
) -> Vec<(InterfaceId, T)> {
    let mut items: Vec<(InterfaceId, T)> = items.into_iter().collect();
    items.sort_by_cached_key(|(id, _)| natural_key(&engine.interface_name(*id)));
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;
    impl Names for Nothing {}

    fn commands(parts: &[(Phase, &'static str, &'static [&'static str])]) -> Commands<Nothing> {
        let mut commands = Commands::new();
        for &(phase, name, after) in parts {
            let part = commands
                .contribute(phase, name, move |_, config| config.command(format_args!("{name}")));
            after.iter().fold(part, |part, other| part.after(other));
        }
        commands
    }

    #[test]
    fn parts_are_written_by_phase_and_behind_what_they_need() {
        let parts: &[(Phase, &'static str, &'static [&'static str])] = &[
            (Phase::Routes, "steering", &["policies"]),
            (Phase::Routes, "policies", &[]),
            (Phase::Tables, "tables", &[]),
        ];
        let commands = commands(parts);
        commands.check_parts();
        assert_eq!(commands.running_config(&Nothing), "tables\npolicies\nsteering\n");
        let last = commands.running_config_in(&Nothing, &mut |ready| ready - 1);
        assert_eq!(last, "tables\npolicies\nsteering\n");
    }

    #[test]
    #[should_panic(expected = "wait for each other")]
    fn parts_that_wait_for_each_other_are_found_when_the_router_is_built() {
        commands(&[(Phase::Routes, "a", &["b"]), (Phase::Routes, "b", &["a"])]).check_parts();
    }

    #[test]
    #[should_panic(expected = "waits for c, which is not there")]
    fn a_part_that_waits_for_nobody_is_found_when_the_router_is_built() {
        commands(&[(Phase::Routes, "a", &["c"]), (Phase::Tables, "c", &[])]).check_parts();
    }
}
