//! `quiverd`: the router. Start-up in order: arguments, start-up file, graph, workers, commands of
//! the `exec` file, sockets; then the control loop until a signal.

#![forbid(unsafe_code)]

mod background;
mod check;
mod host;
mod instance;
mod memory;
mod notification;
mod router;
mod settings;
mod user;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use clap_complete::Shell;

use crate::settings::Settings;

#[derive(Parser)]
#[command(
    name = "quiverd",
    version,
    about = "The Quiver software router",
    after_help = "Exit codes: 0 it ended as asked, 1 it could not start, 3 another router has its \
        folder."
)]
struct Arguments {
    /// The start-up file; without one the router starts with its defaults.
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Stay in the foreground, whatever the start-up file says.
    #[arg(long)]
    foreground: bool,
    /// Where the log goes when the start-up file says nothing; for the start in the background.
    #[arg(long, value_name = "FILE", hide = true)]
    log: Option<PathBuf>,
    /// Check the start-up file and the files of commands that it names, say what this host lacks
    /// and how to get it, and end.
    #[arg(long)]
    check: bool,
    /// Write a page of the reference to standard output, and end: cli, startup, counters,
    /// openrpc or schema.
    #[arg(long, value_name = "PAGE")]
    reference: Option<String>,
    /// Write the manual page and the completion of shells into a folder, and end; for packages.
    #[arg(long, value_name = "FOLDER", hide = true)]
    documents: Option<PathBuf>,
}

/// The exit code when another router has the folder.
const FOLDER_TAKEN: u8 = 3;

/// Where the start-up file is when nobody says.
const CONFIG_DEFAULT: &str = "/etc/quiver/startup.conf";

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{} quiverd: {error:#}", quiverd::logging::now());
            tracing::error!("{error:#}");
            match error.downcast_ref::<instance::Taken>() {
                Some(_) => ExitCode::from(FOLDER_TAKEN),
                None => ExitCode::FAILURE,
            }
        }
    }
}

fn run(arguments: &Arguments) -> anyhow::Result<()> {
    if let Some(page) = &arguments.reference {
        print!("{}", router::reference(page)?);
        return Ok(());
    }
    if let Some(folder) = &arguments.documents {
        return Ok(write_documents(folder)?);
    }
    memory::take_reserve()?;
    let fallback = PathBuf::from(CONFIG_DEFAULT);
    let config = arguments.config.clone().or_else(|| fallback.exists().then_some(fallback));
    let mut settings = Settings::read(config.as_deref())?;
    settings.unix.log = settings.unix.log.take().or_else(|| arguments.log.clone());
    if arguments.check {
        check::check(&settings)?;
        settings.idle.iter().for_each(|said| println!("{said}"));
        let lacks = host::Host::read().lacks(&settings.engine);
        lacks.iter().for_each(|lack| println!("{lack}"));
        println!("the start-up file is in order");
        return Ok(());
    }
    if arguments.foreground || settings.unix.nodaemon || settings.unix.interactive {
        router::run(settings)
    } else {
        background::start(config.as_deref(), &settings)
    }
}

/// The manual page `quiverd(8)`, and the completion of shells.
fn write_documents(folder: &Path) -> io::Result<()> {
    clap_mangen::Man::new(Arguments::command()).section("8").generate_to(folder)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut Arguments::command(), "quiverd", folder)?;
    }
    Ok(())
}
