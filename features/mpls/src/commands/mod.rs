//! The commands of MPLS, by area.

mod interfaces;
mod labels;
mod paths;
mod show;
mod tables;

use quiver_control::Registry;

pub(crate) use paths::{out_labels, words as path_words};

/// The chapter of the reference page.
pub(crate) const GROUP: &str = "Labels and segments";

pub(crate) fn register(registry: &mut Registry) {
    tables::register(registry);
    interfaces::register(registry);
    labels::register(registry);
    show::register(registry);
}
