//! Checks of the house itself: `cargo run -p xtask -- check`, and chores around it.

mod book;
mod checks;
mod flame;
mod fuzz;
mod guided;
mod links;
mod manual;
mod metadata;
mod reference;
mod sanitize;
mod tests_page;
mod words;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Checks of the house itself, and chores around it")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Layers, registration, unsafe code, dependencies, links, retired words, generated pages.
    Check,
    /// Write docs/reference from the declarations.
    Reference,
    /// Lay out the pages of docs/SUMMARY.md in a folder, for mdBook.
    Book {
        /// Where.
        folder: std::path::PathBuf,
    },
    /// Write manual pages of commands, start-up file and counters into a folder, for packages.
    Manual {
        /// Where.
        folder: std::path::PathBuf,
    },
    /// Lower the counts of words-allowed.txt to the retired words that files still have.
    Words {
        /// Print each retired word with its place instead.
        #[arg(long)]
        list: bool,
    },
    /// Print the list of test cases by area.
    Tests,
    /// Run each property test with as many cases as fit into so many seconds.
    Fuzz {
        /// Seconds for each crate.
        seconds: u64,
    },
    /// Run the targets of `fuzz/` under libFuzzer, and keep the inputs that reach most of the code.
    Guided {
        /// Seconds for each target.
        seconds: u64,
        /// The targets; all unless some are named.
        targets: Vec<String>,
    },
    /// Run the tests of crates with unsafe code under AddressSanitizer (nightly toolchain).
    Sanitize {
        /// The crates; all with unsafe code unless some are named.
        crates: Vec<String>,
    },
    /// Draw where a router's workers spend their time, from samples of perf.
    Flame(flame::Arguments),
}

fn main() -> anyhow::Result<ExitCode> {
    match Arguments::parse().task {
        Task::Check => {
            let faults = checks::all()?;
            faults.iter().for_each(|fault| eprintln!("{fault}"));
            Ok(if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Task::Tests => {
            print!("{}", tests_page::render()?);
            Ok(ExitCode::SUCCESS)
        }
        Task::Words { list } => {
            if list {
                words::print()?
            } else {
                words::lower()?
            }
            Ok(ExitCode::SUCCESS)
        }
        Task::Reference => reference::write().map(|()| ExitCode::SUCCESS),
        Task::Book { folder } => book::write(&folder).map(|()| ExitCode::SUCCESS),
        Task::Manual { folder } => manual::write(&folder).map(|()| ExitCode::SUCCESS),
        Task::Fuzz { seconds } => fuzz::run(seconds),
        Task::Guided { seconds, targets } => guided::run(&targets, seconds),
        Task::Sanitize { crates } => sanitize::run(&crates),
        Task::Flame(arguments) => flame::run(&arguments).map(|()| ExitCode::SUCCESS),
    }
}
