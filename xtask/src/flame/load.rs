//! A router and a generator of our own, so that there is something to see: IPv4 between two memif
//! interfaces in both directions, flat out.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::metadata::root;

/// How long the router may take to start.
const START_MAX: Duration = Duration::from_secs(20);
/// From the generator's start until packets surely flow.
const WARM_UP: Duration = Duration::from_secs(2);
/// The generator goes on so long after the last sample, seconds.
const AFTER_S: u64 = 2;

const SETUP: &str = "\
create memif socket id 1 filename DIR/load.sock
create interface memif id 0 socket-id 1 master ring-size 8192 hw-addr 02:fe:00:00:00:01
create interface memif id 1 socket-id 1 master ring-size 8192 hw-addr 02:fe:00:00:00:02
set interface state memif1/0 up
set interface state memif1/1 up
set interface ip address memif1/0 198.18.0.1/24
set interface ip address memif1/1 198.18.1.1/24
ip neighbor memif1/0 198.18.0.2 02:00:00:00:00:01
ip neighbor memif1/1 198.18.1.2 02:00:00:00:00:02
ip route add 20.0.0.0/24 via 198.18.0.2
ip route add 20.0.1.0/24 via 198.18.1.2
";

/// Both programs, while they run.
pub struct Load {
    folder: PathBuf,
    router: Child,
    generator: Option<Child>,
}

impl Load {
    /// Start both; packets flow when this returns.
    pub fn start(seconds: u64) -> Result<Load> {
        let folder = std::env::temp_dir().join(format!("quiver-flame-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let worker = usize::from(cores > 1);
        let place = folder.display().to_string();
        fs::write(folder.join("setup.cli"), SETUP.replace("DIR", &place))?;
        fs::write(
            folder.join("startup.conf"),
            format!(
                "unix {{ nodaemon cli-listen {place}/cli.sock runtime-dir {place} log \
                 {place}/quiverd.log exec {place}/setup.cli }}\ncpu \
                 {{ main-core 0 corelist-workers {worker} }}\n"
            ),
        )?;
        let router = Command::new(program("quiverd")?)
            .arg("--config")
            .arg(folder.join("startup.conf"))
            .stdout(Stdio::null())
            .stderr(File::create(folder.join("quiverd.err"))?)
            .spawn()?;
        let mut load = Load { folder, router, generator: None };
        load.wait_for_router()?;
        fs::write(load.folder.join("profile.yaml"), profile(&load.folder).to_string())?;
        let generator = Command::new(program("quiver-tg")?)
            .arg("run")
            .arg(load.folder.join("profile.yaml"))
            .args(["--rate", "max", "--json", "--duration"])
            .arg(format!("{}s", seconds + WARM_UP.as_secs() + AFTER_S))
            .stdout(Stdio::piped())
            .stderr(File::create(load.folder.join("quiver-tg.err"))?)
            .spawn()?;
        load.generator = Some(generator);
        std::thread::sleep(WARM_UP);
        Ok(load)
    }

    /// The router's process.
    pub fn pid(&self) -> u32 {
        self.router.id()
    }

    fn wait_for_router(&mut self) -> Result<()> {
        let deadline = Instant::now() + START_MAX;
        while !self.folder.join("api.sock").exists() {
            if self.router.try_wait()?.is_some() || Instant::now() > deadline {
                bail!(
                    "the router did not start: {}{}",
                    self.said("quiverd.log"),
                    self.said("quiverd.err")
                );
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// What a program has written.
    fn said(&self, file: &str) -> String {
        fs::read_to_string(self.folder.join(file)).unwrap_or_default()
    }

    /// Wait for the generator; what it moved, in words.
    pub fn finish(mut self) -> Result<String> {
        let generator = self.generator.take().context("a generator")?;
        let done = generator.wait_with_output()?;
        if !done.status.success() {
            bail!("the generator failed: {}", self.said("quiver-tg.err"));
        }
        let told: Value = serde_json::from_slice(&done.stdout).context("the generator's JSON")?;
        let frames = told["received"].as_f64().unwrap_or(0.0);
        let seconds = told["duration_s"].as_f64().unwrap_or(0.0);
        Ok(format!("the generator received {:.1} million frames in {seconds:.1} s", frames / 1e6))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in self.generator.iter_mut().chain([&mut self.router]) {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A program of ours, as `make build` leaves it.
fn program(name: &str) -> Result<PathBuf> {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let path = target.join("release").join(name);
    if !path.exists() {
        bail!("{} is not built: `make build`", path.display());
    }
    Ok(path)
}

/// The generator's profile: one stream in each direction. JSON is YAML too.
fn profile(folder: &Path) -> Value {
    let socket = folder.join("load.sock");
    let port = |number: u32| {
        json!({
            "memif": {"socket": socket, "id": number, "role": "slave", "ring_size": 8192},
            "ip4": [format!("198.18.{number}.2")],
            "mac": format!("02:00:00:00:00:0{}", number + 1),
        })
    };
    let stream = |from: u32, to: u32| {
        let destinations =
            json!({"first": format!("20.0.{to}.0"), "count": 254, "order": "random", "seed": 1});
        json!({"from": from, "to": to, "frame": 64, "layers": {
            "ethernet": {
                "src": format!("02:00:00:00:00:0{}", from + 1),
                "dst": format!("02:fe:00:00:00:0{}", from + 1),
            },
            "ip4": {"src": format!("198.18.{from}.2"), "dst": destinations, "ttl": 64},
            "udp": {"src_port": 1024, "dst_port": 1024},
        }})
    };
    json!({
        "version": 1,
        "cores": [0],
        "ports": [port(0), port(1)],
        "streams": [stream(0, 1), stream(1, 0)],
    })
}
