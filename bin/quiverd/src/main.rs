//! `quiverd`: the router. Start-up in order: arguments, start-up file, graph, workers, commands of
//! the `exec` file, sockets; then the control loop until a signal.

#![forbid(unsafe_code)]

mod background;
mod router;
mod settings;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use crate::settings::Settings;

#[derive(Parser)]
#[command(name = "quiverd", version, about = "The Quiver software router")]
struct Arguments {
    /// The start-up file; without one the router starts with its defaults.
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Stay in the foreground, whatever the start-up file says.
    #[arg(long)]
    foreground: bool,
    /// Check the start-up file, and end.
    #[arg(long)]
    check: bool,
    /// Write a page of the reference to standard output, and end: cli, startup or counters.
    #[arg(long, value_name = "PAGE")]
    reference: Option<String>,
}

/// Where the start-up file is when nobody says.
const CONFIG_DEFAULT: &str = "/etc/quiver/startup.conf";

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quiverd: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> anyhow::Result<()> {
    if let Some(page) = &arguments.reference {
        print!("{}", router::reference(page)?);
        return Ok(());
    }
    let fallback = PathBuf::from(CONFIG_DEFAULT);
    let config = arguments.config.clone().or_else(|| fallback.exists().then_some(fallback));
    let settings = Settings::read(config.as_deref())?;
    if arguments.check {
        println!("the start-up file is in order");
        return Ok(());
    }
    if arguments.foreground || settings.unix.nodaemon || settings.unix.interactive {
        router::run(settings)
    } else {
        background::start(config.as_deref(), &settings)
    }
}
