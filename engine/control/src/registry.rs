//! What drivers and features register: nodes, commands, parts of the configuration, and what to do
//! once the engine stands.

use std::cell::RefCell;
use std::rc::Rc;

use quiver_core::graph::builder::{BuildError, GraphBuilder};
use quiver_core::{Engine, InterfaceId, NodeId};

use crate::answers::Published;
use crate::files::Places;
use crate::grammar::{Command, Commands};
use crate::names::Names;
use crate::running::{ConfigWriter, Part, Phase};
use crate::server::subscriptions::{Subscriptions, Topic};

/// The commands, shared by what runs on the control thread.
pub type SharedCommands = Rc<RefCell<Commands<Engine>>>;

type Start = Box<dyn FnOnce(&mut Engine)>;

/// Collects what is built in. `bin/quiverd/src/features.rs` is the one list of who registers.
pub struct Registry {
    /// Nodes, arcs, features of arcs.
    pub graph: GraphBuilder,
    /// Commands, and the parts of `show running-config`.
    pub commands: Commands<Engine>,
    starts: Vec<Start>,
    features: Vec<Registered>,
    memory: Vec<Weigh>,
    topics: Vec<&'static Topic>,
    /// Why the router cannot start.
    failed: Option<String>,
}

/// What a feature's tables take: rows of `show memory`, each with what it is and its bytes.
pub type Weigh = fn(&Engine) -> Vec<(&'static str, u64)>;

/// The JSON form of the answers of shows, kept in the engine for `show schema`.
pub struct Answers(pub Published);

/// Who has rows in `show memory`, kept in the engine.
pub struct Weighed(pub Vec<Weigh>);

/// A driver or feature in `show features`.
#[derive(Clone, Debug)]
pub struct Registered {
    /// Its name.
    pub name: &'static str,
    /// A line on what it does.
    pub help: &'static str,
}

/// What is built in, kept in the engine for `show features`.
pub struct BuiltIn(pub Vec<Registered>);

impl Registry {
    /// Nothing but what every router has.
    pub fn new(graph: GraphBuilder) -> Registry {
        Registry {
            graph,
            commands: Commands::new(),
            starts: Vec::new(),
            features: Vec::new(),
            memory: Vec::new(),
            topics: Vec::new(),
            failed: None,
        }
    }

    /// Say who registers; the first thing a driver or feature does.
    pub fn feature(&mut self, name: &'static str, help: &'static str) {
        self.features.push(Registered { name, help });
    }

    /// What a feature cannot do without, or nothing when it could not be made: the feature ends its
    /// registration then, and the router does not start, for this reason.
    pub fn require<T>(&mut self, made: Result<T, impl std::fmt::Display>) -> Option<T> {
        made.map_err(|error| self.failed.get_or_insert_with(|| error.to_string())).ok()
    }

    /// Add a command.
    pub fn command(&mut self, command: Command<Engine>) {
        self.commands.add(command);
    }

    /// Add a part of `show running-config`, called by the feature that registers it.
    pub fn running_config(
        &mut self,
        phase: Phase,
        write: impl Fn(&Engine, &mut ConfigWriter) + Send + Sync + 'static,
    ) -> Part<'_> {
        let name = self.features.last().map_or("engine", |feature| feature.name);
        self.commands.contribute(phase, name, write)
    }

    /// Add a part of `show running-config` that may be long: `begin` makes what writes it, a
    /// bounded number of commands at a call, until it returns that it has written all.
    pub fn running_config_in_slices<W>(
        &mut self,
        phase: Phase,
        begin: impl Fn() -> W + 'static,
    ) -> Part<'_>
    where
        W: FnMut(&Engine, &mut ConfigWriter, usize) -> bool + 'static,
    {
        let name = self.features.last().map_or("engine", |feature| feature.name);
        self.commands.contribute_in_slices(phase, name, begin)
    }

    /// Add rows to `show memory`.
    pub fn memory(&mut self, weigh: Weigh) {
        self.memory.push(weigh);
    }

    /// Declare a kind of event that clients can subscribe to.
    pub fn topic(&mut self, topic: &'static Topic) {
        self.topics.push(topic);
    }

    /// Do something once the graph is built: insert state, observe interfaces, handle events.
    pub fn on_start(&mut self, start: impl FnOnce(&mut Engine) + 'static) {
        self.starts.push(Box::new(start));
    }

    /// Build the engine and run what was asked for at start. Workers do not run yet.
    ///
    /// # Errors
    /// The graph cannot be built, or a setup of a feature fails.
    pub fn build(self) -> Result<(Engine, SharedCommands), BuildError> {
        self.commands.check_parts();
        if let Some(failed) = self.failed {
            return Err(BuildError::Memory(failed));
        }
        let mut engine = Engine::build(self.graph)?;
        let mut commands = self.commands;
        commands.set_places(Places::in_runtime_dir(&engine.config().runtime_dir));
        engine.insert(BuiltIn(self.features));
        engine.insert(Answers(commands.answers.clone()));
        engine.insert(Weighed(self.memory));
        engine.insert(Subscriptions::new(&self.topics));
        for start in self.starts {
            start(&mut engine);
        }
        Ok((engine, Rc::new(RefCell::new(commands))))
    }
}

impl Names for Engine {
    fn find(&self, kind: &str, name: &str) -> Option<u32> {
        match kind {
            "interface" => self.interface_id(name).map(|InterfaceId(id)| id),
            "node" => self.node_id(name).map(|NodeId(id)| u32::from(id)),
            "event" => self.get::<Subscriptions>()?.find(name),
            _ => None,
        }
    }

    fn list(&self, kind: &str) -> Vec<String> {
        match kind {
            "interface" => self.all_interfaces().map(|i| i.name.clone()).collect(),
            "node" => self.all_nodes().map(|(_, n)| n.spec.name.clone()).collect(),
            "event" => self.get::<Subscriptions>().map(Subscriptions::names).unwrap_or_default(),
            _ => Vec::new(),
        }
    }
}
