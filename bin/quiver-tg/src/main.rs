//! The command line of the traffic generator.

#![warn(clippy::missing_errors_doc)]

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{CommandFactory, Parser, Subcommand};
use quiver_tg_control::{Endpoints, default_socket, run, schema, serve, top};
use quiver_tg_measuring::self_test;
use quiver_tg_traffic::profile::{StreamRate, read_seconds};
use quiver_tg_traffic::{check, ready};
use tracing_subscriber::filter::LevelFilter;

const EXAMPLES: &str = "Examples:
  quiver-tg run profile.yaml --rate 1Mpps --duration 10s     measure once; a table
  quiver-tg top                                              watch it, in another terminal
  quiver-tg ctl rate 2Mpps                                   change it while it runs
  quiver-tg profile show u2 > u2.yaml                        64 B, many flows, one direction
  quiver-tg check u2.yaml                                    what that would send
  quiver-tg serve --tcp 127.0.0.1:7000                       do what programs ask for";

/// Sends packets through a router and says what became of them.
#[derive(Parser)]
#[command(name = "quiver-tg", version, max_term_width = 100, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure once and print a table, or JSON
    Run {
        /// The profile: ports and streams
        profile: PathBuf,
        /// How fast, all streams together: 20000, 500kpps, 1.5Mpps, 10Gbps (on a wire), 10GbpsL2
        /// (with FCS), 40% (of the ports' line_rate), or max
        #[arg(long, default_value = "max", value_parser = StreamRate::read)]
        rate: StreamRate,
        /// How long: 500ms, 10s, 2m, or seconds
        #[arg(long, default_value = "10s", value_parser = read_seconds)]
        duration: f64,
        /// How long to send before that without counting
        #[arg(long, default_value = "50ms", value_parser = read_seconds)]
        warmup: f64,
        /// How long to wait for late frames
        #[arg(long, default_value = "20ms", value_parser = read_seconds)]
        drain: f64,
        /// Core to run on, instead of the profile's
        #[arg(long)]
        core: Option<usize>,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Put the histograms of times into the JSON
        #[arg(long, requires = "json")]
        histograms: bool,
        /// Where `top` and programs reach it [default: tg.sock in $QUIVER_RUNTIME_DIR, or in
        /// /run/quiver]
        #[arg(long, value_name = "PATH")]
        socket: Option<PathBuf>,
    },
    /// Do what programs ask for: JSON-RPC, one message a line
    Serve {
        /// The profile to begin with: ports and streams
        profile: Option<PathBuf>,
        /// Core to run on, instead of the profile's
        #[arg(long)]
        core: Option<usize>,
        /// Listen at this Unix socket [default without --tcp and --stdio: tg.sock in
        /// $QUIVER_RUNTIME_DIR, or in /run/quiver]
        #[arg(long, value_name = "PATH")]
        socket: Option<PathBuf>,
        /// Listen at this address of the loopback; port 0 is any. Who connects must say the token
        /// of the token file
        #[arg(long, value_name = "ADDRESS:PORT")]
        tcp: Option<SocketAddr>,
        /// With --tcp: the file of the token, made with mode 0600 if it is not there [default:
        /// $QUIVER_TOKEN_FILE, or tg.token in $QUIVER_RUNTIME_DIR, or in /run/quiver]
        #[arg(long, value_name = "PATH")]
        token_file: Option<PathBuf>,
        /// Speak on standard input and output, and end with them
        #[arg(long)]
        stdio: bool,
    },
    /// Show what a running generator does, live: rates, loss, latency by stream and port
    ///
    /// On a terminal, a screen; keys are explained by `?`. Elsewhere, or with --once, one picture
    /// as text.
    Top {
        /// The generator's socket, or ADDRESS:PORT [default: tg.sock in $QUIVER_RUNTIME_DIR, or in
        /// /run/quiver]
        #[arg(short, long, value_name = "PATH")]
        socket: Option<PathBuf>,
        /// Print one picture and end
        #[arg(short = '1', long)]
        once: bool,
        /// Print one picture as JSON and end
        #[arg(short, long)]
        json: bool,
        /// Time between two looks, like 500ms or 2s
        #[arg(short, long, default_value = "1s", value_parser = read_seconds)]
        interval: f64,
        /// Show only names that contain this
        #[arg(short, long, value_name = "NAME", default_value = "")]
        filter: String,
    },
    /// Give one command to a running generator: `quiver-tg ctl help` lists them
    Ctl {
        /// The generator's socket, or ADDRESS:PORT [default: tg.sock in $QUIVER_RUNTIME_DIR, or in
        /// /run/quiver]
        #[arg(short, long, value_name = "PATH")]
        socket: Option<PathBuf>,
        /// Print JSON
        #[arg(short, long)]
        json: bool,
        /// The command; words may be cut to a unique prefix
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
    /// Say what a profile would send, without making its ports: streams, and their first frames
    /// header by header; what varies is marked
    Check {
        /// The profile: ports and streams
        profile: PathBuf,
        /// Frames of each stream to show
        #[arg(short = 'n', long, default_value_t = check::FRAMES_DEFAULT)]
        frames: usize,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Ready profiles: the eight load tests, and the traffic of every forwarding mode
    Profile {
        #[command(subcommand)]
        command: ProfileCommand,
    },
    /// Print what results or profiles look like, as JSON Schema: `quiver-tg schema profile >
    /// profile.schema.json`
    Schema {
        /// Of which
        of: schema::Of,
    },
    /// Print the completion of a shell: `quiver-tg completion bash >
    /// /etc/bash_completion.d/quiver-tg`
    Completion {
        /// Which
        shell: clap_complete::Shell,
    },
    /// Write the manual pages into a folder; for packages
    #[command(hide = true)]
    Documents {
        /// Where
        folder: PathBuf,
    },
    /// Measure the generator itself on this machine
    SelfTest {
        /// Core to run on; the first that may be used when not given
        #[arg(long)]
        core: Option<usize>,
        /// Core of a bare forwarder over memif; without it only one core is used
        #[arg(long)]
        peer_core: Option<usize>,
        /// Bytes of a frame without FCS
        #[arg(long, default_value_t = 64)]
        frame: usize,
        /// How long each part takes, like 500ms or 2s
        #[arg(long, default_value = "1s", value_parser = read_seconds)]
        duration: f64,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Subcommand)]
enum ProfileCommand {
    /// List them and their parameters
    List {
        /// Ask a router which it can serve: its API's socket, api.sock in its runtime folder
        #[arg(long, value_name = "PATH")]
        router: Option<PathBuf>,
    },
    /// Print the router's commands for one: `quiver-tg profile router u2 | quiverctl`
    Router {
        /// Its name
        name: String,
        /// A parameter, as key=value; may be repeated
        #[arg(long, value_name = "KEY=VALUE")]
        param: Vec<String>,
    },
    /// Print one, to be run or changed: `quiver-tg profile show u2 > u2.yaml`
    Show {
        /// Its name
        name: String,
        /// memif:SOCKET, af_packet:ONE,OTHER or tap:ONE,OTHER [default: memif.sock of the router's
        /// runtime folder]
        #[arg(long)]
        ports: Option<String>,
        /// A parameter, as key=value; may be repeated
        #[arg(long, value_name = "KEY=VALUE")]
        param: Vec<String>,
    },
}

/// Does what `profile` asks for.
fn profile(command: ProfileCommand) -> anyhow::Result<()> {
    match command {
        ProfileCommand::List { router } => {
            print!("{}", ready::list(router.as_deref()).map_err(anyhow::Error::msg)?);
        }
        ProfileCommand::Router { name, param } => {
            let ready = ready::by_name(&name).map_err(anyhow::Error::msg)?;
            let commands = ready.router(ready::INTERFACES, &param).map_err(anyhow::Error::msg)?;
            ready::interfaces().chain(commands).for_each(|command| println!("{command}"));
        }
        ProfileCommand::Show { name, ports, param } => {
            let folder = quiver_control::paths::runtime_dir();
            let ports =
                ports.unwrap_or_else(|| format!("memif:{}", folder.join("memif.sock").display()));
            let ready = ready::by_name(&name).map_err(anyhow::Error::msg)?;
            print!("{}", ready.profile(&ports, &param).map_err(anyhow::Error::msg)?);
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let is_terminal = std::io::stderr().is_terminal();
    tracing_subscriber::fmt()
        .with_ansi(is_terminal)
        .with_writer(std::io::stderr)
        .with_max_level(LevelFilter::WARN)
        .init();
    let done = match arguments.command {
        Command::Run { profile, rate, duration, warmup, drain, core, json, histograms, socket } => {
            let (duration_s, warmup_s, drain_s) = (duration, warmup, drain);
            let options =
                run::Options { rate, duration_s, warmup_s, drain_s, core, json, histograms };
            let endpoints = Endpoints {
                socket: socket.or_else(|| Some(default_socket())),
                ..Endpoints::default()
            };
            run::run(&profile, &options, &endpoints)
        }
        Command::Serve { profile, core, socket, tcp, token_file, stdio } => {
            let is_alone = tcp.is_none() && !stdio;
            let socket = socket.or_else(|| is_alone.then(default_socket));
            serve::serve(profile.as_deref(), core, &Endpoints { socket, tcp, token_file, stdio })
        }
        Command::Top { socket, once, json, interval, filter } => top::top(top::Options {
            socket: socket.unwrap_or_else(default_socket),
            once,
            json,
            interval: Duration::from_secs_f64(interval.clamp(0.1, 3600.0)),
            filter,
        }),
        Command::Ctl { socket, json, command } => {
            top::control(&socket.unwrap_or_else(default_socket), &command.join(" "), json)
        }
        Command::Check { profile, frames, json } => check::print(&profile, frames, json),
        Command::Profile { command } => profile(command),
        Command::Schema { of } => {
            println!("{:#}", schema::schema(of));
            Ok(())
        }
        Command::Completion { shell } => {
            clap_complete::generate(
                shell,
                &mut Arguments::command(),
                "quiver-tg",
                &mut std::io::stdout(),
            );
            Ok(())
        }
        Command::Documents { folder } => clap_mangen::generate_to(Arguments::command(), &folder)
            .with_context(|| folder.display().to_string()),
        Command::SelfTest { core, peer_core, frame, duration, json } => {
            self_test::self_test(&self_test::Options {
                core,
                peer_core,
                frame,
                duration_s: duration,
                json,
            })
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quiver-tg: {error:#}");
            ExitCode::FAILURE
        }
    }
}
