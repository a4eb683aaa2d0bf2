//! Control: commands that are declared once, the doors through which they come, and the start-up
//! file.
//!
//! A command is declared in the notation of [`syntax`]; that declaration is its parser, its help
//! and completion, its JSON form and its page of the reference. [`Commands`] holds all of them and
//! executes lines, files and the JSON form on the control thread.

#![warn(clippy::missing_errors_doc)]

pub mod aggregates;
pub mod answers;
mod args;
mod automaton;
mod background;
mod batch;
mod changes;
pub mod client;
pub mod commands;
mod complete;
mod configuration;
pub mod document;
pub mod error;
mod example;
pub mod files;
mod filter;
mod generation;
mod grammar;
mod inverse;
mod job;
mod journal;
mod json_form;
pub mod layer_two;
mod listing;
mod matcher;
pub mod modes;
mod names;
mod openrpc;
mod output;
pub mod paths;
mod pem;
pub mod random;
mod reference;
mod registry;
mod rights;
mod running;
mod script;
pub mod server;
mod session_commands;
pub mod startup;
pub mod startup_api;
mod startup_vpp;
pub mod syntax;
pub mod types;
mod value;
mod versions;
pub mod words;

pub use args::Args;
pub use background::{Elsewhere, in_background};
pub use batch::{BATCH_COMMANDS_MAX, Batch, BatchRefusal};
pub use changes::{Change, Changes, Mistake};
pub use complete::{Completion, Completions};
pub use error::Refusal;
pub use files::{Access, Places, Trust};
pub use grammar::{Command, Commands, Work};
pub use job::{Collected, Job, Progress, Sink, Step};
pub use journal::Entry;
pub use json_form::quoted;
pub use listing::{Listing, PAGE_ROWS_MAX, in_pages, in_slices};
pub use names::{Names, with_interface_names};
pub use output::{Cell, Column, Output, Table};
pub use registry::{BuiltIn, Registered, Registry, SharedCommands, Weigh, Weighed};
pub use rights::{Rights, Role};
pub use running::{
    ConfigWriter, HIDDEN, Part, Phase, Slices, along, by_interface, by_interface_name, of_each,
    of_each_interface, order,
};
pub use script::{Execution, OnRefusal, Started};
pub use server::subscriptions::{EventValue, Field, Topic, publish, publish_lost, wants};
pub use server::{
    ControlLoad, Dispatcher, Limits, MoreDoors, Server, ServerConfig, TlsDoor, Token,
    UNITS_PER_TURN_MAX,
};
pub use startup::{Section, Startup, StartupFile, StartupPart, StartupSchema};
pub use types::ValueType;
pub use value::{FromValue, IpPrefix, Value};
pub use versions::{Restored, Store, VERSIONS_KEPT, Version};

/// The node that sorts Ethernet frames: the first one of interfaces that receive frames.
pub const ETHERNET_INPUT: &str = "ethernet-input";
