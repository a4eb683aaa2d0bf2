//! The engine's own commands, typed into a router with a feature of two nodes.

mod alarm;
mod balance;
mod capture;
mod folder;
mod golden;
mod interfaces;
mod loopback;
mod machine;
mod runtime;
mod toy;
mod trace;
