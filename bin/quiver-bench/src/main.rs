//! `quiver-bench`: clocks per packet of the graph, beside a bare loop over the same packets.

#![forbid(unsafe_code)]

mod acl_paths;
mod bare;
mod bridge_paths;
mod bridge_segments;
mod device;
mod flow_paths;
mod forms;
mod function_paths;
mod generator;
mod headend_paths;
mod label_paths;
mod layers;
mod learn;
mod measure;
mod nat_paths;
mod paths;
mod policer_paths;
mod population;
mod provider_paths;
mod report;
mod segment_paths;
mod segments;
mod sessions;
mod shaper_paths;
mod softwire_paths;
mod tunnel_paths;
mod workers;

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use quiver_core::cpu::Variant;

use crate::measure::Form;

#[derive(Parser)]
#[command(about = "Clocks per packet of the graph, beside a bare loop over the same packets")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Every path of the router and of the traffic generator, or those whose names begin with one
    /// of these.
    Paths {
        /// Names, or beginnings of names.
        names: Vec<String>,
        /// Rounds in which the graph and the bare loop take turns; the medians are told.
        #[arg(long, default_value_t = 15)]
        rounds: usize,
        /// Where the results go.
        #[arg(long, default_value = "out/bench/results.json")]
        output: PathBuf,
        /// Core to run on.
        #[arg(long, default_value_t = 1)]
        core: usize,
        /// The form of loops and look-ups: scalar, avx2, avx512. The best one when not given.
        #[arg(long, value_parser = variant)]
        variant: Option<Variant>,
        /// Every vector goes node by node.
        #[arg(long)]
        without_block_driver: bool,
        /// Old name of `--without-block-driver`.
        #[arg(long, hide = true)]
        without_superblocks: bool,
    },
    /// Millions of MAC addresses learned from traffic, while known traffic goes on without loss.
    Learn {
        /// Addresses to be learned.
        #[arg(long, default_value_t = 8_000_000)]
        macs: u64,
        /// Part of the rate at which known traffic loses nothing.
        #[arg(long, default_value_t = 0.9)]
        part: f64,
        /// One packet in so many comes from an address to be learned.
        #[arg(long, default_value_t = 16)]
        one_in: u64,
        /// Places of the ring that packets wait in for the worker.
        #[arg(long, default_value_t = 4096)]
        ring: u64,
        /// The worker's core; the control thread takes what is left.
        #[arg(long, default_value_t = 1)]
        core: usize,
        /// The control thread's core.
        #[arg(long, default_value_t = 0)]
        control_core: usize,
    },
    /// New sessions of translators and access lists a second, and how long a vector of them takes.
    Sessions {
        /// Paths of translators and access lists, or beginnings of their names.
        names: Vec<String>,
        /// Core to run on.
        #[arg(long, default_value_t = 1)]
        core: usize,
    },
    /// Two workers beside one, with the same sessions.
    Workers {
        /// Paths, or beginnings of their names.
        #[arg(required = true)]
        names: Vec<String>,
        /// Rounds in which one worker, the other one and both take turns; the medians are told.
        #[arg(long, default_value_t = 9)]
        rounds: usize,
        /// The cores of the workers; the first one owns the sessions.
        #[arg(long, num_args = 2, default_values_t = [0, 1])]
        cores: Vec<usize>,
    },
    /// The same forwarding with inner loops of several forms (docs/decisions/inner-loop.md).
    Forms,
}

fn variant(name: &str) -> Result<Variant, String> {
    let names: Vec<_> = Variant::available().map(Variant::name).collect();
    let known = Variant::available().find(|variant| variant.name() == name);
    known.ok_or_else(|| {
        format!("{name} is not one of those this processor has: {}", names.join(", "))
    })
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().task {
        Task::Forms => {
            forms::run();
            Ok(())
        }
        Task::Learn { macs, part, one_in, ring, core, control_core } => {
            if let Err(error) = quiver_core::cpu::pin_to_core(control_core) {
                eprintln!("not pinned to core {control_core}: {error}");
            }
            learn::run(learn::Wanted { macs, part, one_in: one_in.max(1), ring, core })
        }
        Task::Workers { names, rounds, cores } => {
            let cores = [cores[0], cores[1]];
            workers::run(&names, rounds, cores)
        }
        Task::Sessions { names, core } => {
            if let Err(error) = quiver_core::cpu::pin_to_core(core) {
                eprintln!("not pinned to core {core}: {error}");
            }
            sessions::run(&names)
        }
        Task::Paths {
            names,
            rounds,
            output,
            core,
            variant,
            without_block_driver,
            without_superblocks,
        } => {
            if without_superblocks {
                eprintln!("--without-superblocks is an old name: write --without-block-driver");
            }
            let form = Form {
                variant: variant.unwrap_or(Variant::best()),
                block_driver: !without_block_driver && !without_superblocks,
            };
            if let Err(error) = quiver_core::cpu::pin_to_core(core) {
                eprintln!("not pinned to core {core}: {error}");
            }
            let mut results = Vec::new();
            let wanted =
                |name: &str| names.is_empty() || names.iter().any(|n| name.starts_with(n.as_str()));
            for path in paths::all().into_iter().filter(|p| wanted(&p.name)) {
                let result = measure::path(&path, rounds, form)?;
                report::line(&result, results.is_empty());
                results.push(result);
            }
            for path in generator::ALL.iter().filter(|p| wanted(p.name)) {
                let result = generator::path(path, rounds, form)?;
                report::line(&result, results.is_empty());
                results.push(result);
            }
            report::write(&output, &results)
        }
    }
}
