//! `show running-config`: every feature writes the commands that make it what it is.

use std::fmt::{self, Write as _};

use crate::grammar::Commands;
use crate::names::Names;

type Write<S> = Box<dyn Fn(&S, &mut ConfigWriter)>;

/// Who writes a part of the configuration, and when: lower numbers first.
pub(crate) struct Contributor<S> {
    order: u32,
    write: Write<S>,
}

/// Orders of contributors. What a command names must have been created by one with a lower order.
pub mod order {
    /// Sockets and the like, which interfaces need.
    pub const RESOURCES: u32 = 100;
    /// Creation of interfaces.
    pub const INTERFACES: u32 = 200;
    /// What interfaces are by themselves that become another's, as members of bonds.
    pub const HELD: u32 = 225;
    /// Members join when all interfaces are there, before anything is said of their holder.
    pub const MEMBERS: u32 = 250;
    /// Tables and bridge domains.
    pub const TABLES: u32 = 300;
    /// Which table or bridge an interface is in, its MTU, addresses and state.
    pub const INTERFACE_SETTINGS: u32 = 400;
    /// Neighbours.
    pub const NEIGHBORS: u32 = 500;
    /// Routes, labels, segments.
    pub const ROUTES: u32 = 600;
    /// Features switched on along the path.
    pub const FEATURES: u32 = 700;
    /// Traffic generators and the like.
    pub const STREAMS: u32 = 900;
}

/// Collects commands.
#[derive(Debug, Default)]
pub struct ConfigWriter {
    text: String,
    commands: usize,
}

impl ConfigWriter {
    /// Write one command: `config.command(format_args!("ip table add {id}"))`.
    pub fn command(&mut self, command: fmt::Arguments<'_>) {
        let _ = writeln!(self.text, "{command}");
        self.commands += 1;
    }

    /// Write a comment.
    pub fn comment(&mut self, comment: &str) {
        for line in comment.lines() {
            let _ = writeln!(self.text, "# {line}");
        }
    }
}

impl<S: Names + 'static> Commands<S> {
    /// Add a part of `show running-config`. `order` is one of [`order`], or between two of them.
    pub fn contribute(&mut self, order: u32, write: impl Fn(&S, &mut ConfigWriter) + 'static) {
        let at = self.contributors.partition_point(|other| other.order <= order);
        self.contributors.insert(at, Contributor { order, write: Box::new(write) });
    }

    /// The commands that make this router what it is.
    pub fn running_config(&self, state: &S) -> String {
        let mut config = ConfigWriter::default();
        for contributor in &self.contributors {
            (contributor.write)(state, &mut config);
        }
        config.text
    }
}
