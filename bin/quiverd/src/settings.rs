//! What the start-up file says, checked and completed.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use quiver_control::paths;
use quiver_control::startup::{Buffers, Cpu, PageSize, Unix, Workers};
use quiver_control::startup_api::Api;
use quiver_control::{StartupFile, StartupPart, StartupSchema};
use quiver_core::graph::builder::EngineConfig;
use quiver_core::memory::mapping;

/// Everything that must be known before the router is made.
pub struct Settings {
    /// The process.
    pub unix: Unix,
    /// Doors of the API.
    pub api: Api,
    /// The engine.
    pub engine: EngineConfig,
    /// Folder for the sockets.
    pub runtime_dir: PathBuf,
    /// Commands that the sections of features mean, done before any other.
    pub commands: Vec<String>,
    /// What the start-up file says that does nothing here, and why.
    pub idle: Vec<String>,
}

impl Settings {
    /// Read a start-up file; the defaults without one.
    pub fn read(file: Option<&Path>) -> Result<Settings> {
        let (schema, parts) = schema();
        let Some(path) = file else {
            let (unix, cpu) = (Unix::default(), Cpu::default());
            return Settings::complete(unix, Api::default(), &cpu, &Buffers::default());
        };
        let refusal = |r: quiver_control::Refusal| anyhow!("{r}");
        let file = StartupFile::read(path).map_err(refusal)?;
        let startup = schema.parse(&file).map_err(refusal)?;
        let unix = startup.unix().map_err(refusal)?;
        let api = startup.api().map_err(refusal)?;
        let (cpu, buffers) = (startup.cpu().map_err(refusal)?, startup.buffers().map_err(refusal)?);
        let commands = startup.commands(&parts).map_err(refusal)?;
        let settings = Settings::complete(unix, api, &cpu, &buffers)
            .with_context(|| path.display().to_string())?;
        Ok(Settings { commands, idle: startup.idle(), ..settings })
    }

    fn complete(unix: Unix, api: Api, cpu: &Cpu, buffers: &Buffers) -> Result<Settings> {
        let runtime_dir = unix.runtime_dir.clone().unwrap_or_else(paths::runtime_dir);
        let defaults = EngineConfig::default();
        let engine = EngineConfig {
            worker_cores: worker_cores(cpu)?,
            main_core: cpu.main_core.map(usize::from),
            buffers: buffers.per_numa.map_or(defaults.buffers, |n| n as usize),
            buffer_data_bytes: buffers
                .data_size_bytes
                .map_or(defaults.buffer_data_bytes, |n| n as usize),
            pages: match buffers.page_size {
                PageSize::Default => mapping::PageSize::Best,
                PageSize::Kilobytes4 => mapping::PageSize::Small,
                PageSize::Megabytes2 => mapping::PageSize::Huge,
                PageSize::Gigabyte1 => {
                    bail!("buffers: page-size 1G is not supported; take 2M or default")
                }
            },
            runtime_dir: runtime_dir.clone(),
            variant: cpu.variant.unwrap_or(defaults.variant),
            block_driver: !cpu.no_block_driver,
        };
        Ok(Settings { unix, api, engine, runtime_dir, commands: Vec::new(), idle: Vec::new() })
    }

    /// Socket for plain command lines.
    pub fn cli_socket(&self) -> PathBuf {
        self.unix.cli_listen.clone().unwrap_or_else(|| self.runtime_dir.join("cli.sock"))
    }

    /// Folder for what outlives a restart.
    pub fn state_dir(&self) -> PathBuf {
        // systemd.exec(5): several are separated by colons.
        let given = std::env::var("STATE_DIRECTORY").unwrap_or_default();
        let given = given.split(':').next().filter(|path| !path.is_empty()).map(PathBuf::from);
        let chosen = self.unix.state_dir.clone().or(given);
        chosen.unwrap_or_else(|| self.runtime_dir.join("state"))
    }

    /// File for the process number.
    pub fn pidfile(&self) -> PathBuf {
        self.unix.pidfile.clone().unwrap_or_else(|| self.runtime_dir.join("quiverd.pid"))
    }

    /// Socket for JSON-RPC.
    pub fn api_socket(&self) -> PathBuf {
        self.runtime_dir.join("api.sock")
    }
}

/// The sections of a start-up file, and what those of features mean.
pub fn schema() -> (StartupSchema, Vec<StartupPart>) {
    let (mut schema, parts) = (StartupSchema::default(), quiverd::features::startup());
    parts.iter().for_each(|part| schema.add(part.section.clone()));
    (schema, parts)
}

/// One worker per core asked for; by default one, on the second core when there is one.
fn worker_cores(cpu: &Cpu) -> Result<Vec<usize>> {
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    let first = usize::from(cpu.skip_cores)
        + usize::from(cpu.main_core.is_none_or(|core| core == cpu.skip_cores));
    match &cpu.workers {
        Workers::Cores(cores) if cores.is_empty() => bail!("cpu: corelist-workers names no core"),
        Workers::Cores(cores) => Ok(cores.iter().map(|core| usize::from(*core)).collect()),
        Workers::Count(0) => bail!("cpu: a router has at least one worker"),
        Workers::Count(count) if first + usize::from(*count) > available.max(first + 1) => {
            bail!("cpu: {count} workers from core {first} on, but there are {available} cores")
        }
        Workers::Count(count) => Ok((first..first + usize::from(*count)).collect()),
        Workers::Default => Ok(vec![if first < available { first } else { 0 }]),
    }
}
