//! The traffic generator's command line.

fn main() {}
