//! One schedule: what happens, in the order that the seed says, and what must hold in the end.

use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use quiver_core::memory::buffer::{Buffer, BufferCache};
use quiver_tables::memory::refusal;
use quiver_testkit::choices::{Choices, Numbers, Random};
use quiver_testkit::configuration::{START, changes_state, loads_again, running};
use quiver_testkit::golden::{Seed, seeds};
use quiver_testkit::{Router, Settings};
use quiverd::features;

use super::peer::Peer;

/// Steps of a schedule.
const STEPS: usize = 60;
/// Forms of commands in a schedule: few, so that they meet.
const FORMS: usize = 10;
/// Buffers of a router.
const BUFFERS: usize = 512;
/// Where frames come in.
const PORTS: [&str; 3] = ["e0", "e1", "e2"];
/// Copies of a frame in a vector.
const COPIES_MAX: usize = 20;
/// Time after which nothing waits for a neighbour, a fragment or a timer any more.
const REST: Duration = Duration::from_secs(200);
/// What makes a frame likely to pass, in two schedules of three.
const ROUTING: &[&str] = &[
    "set interface ip address e0 10.0.2.1/24",
    "set interface ip address e0 2001:db8:2::1/64",
    "set interface ip address e1 10.0.1.1/24",
    "set interface ip address e1 2001:db8:1::1/64",
    "ip neighbor e1 10.0.1.2 02:00:00:00:00:b1 static",
    "ip route add 0.0.0.0/0 via 10.0.1.2 e1",
    "ip route add ::/0 via 2001:db8:1::2 e1",
];

fn golden() -> &'static [Seed] {
    static GOLDEN: OnceLock<Vec<Seed>> = OnceLock::new();
    GOLDEN.get_or_init(|| seeds(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../features")))
}

fn router(folder: &'static Path, workers: usize, block_driver: bool) -> Router {
    let settings = Settings {
        workers,
        buffers: BUFFERS,
        block_driver,
        unasked: true,
        runtime_dir: Some(folder),
        ..Settings::default()
    };
    Router::with(settings, &[features::built_in])
}

/// A schedule under way.
struct Simulation<'a> {
    router: Router,
    random: Random,
    folder: &'static Path,
    /// Forms of commands, by number.
    forms: Vec<usize>,
    peer: Peer,
    /// Buffers that somebody else has, so that the pool runs out.
    taken: Vec<Buffer>,
    cache: Option<BufferCache>,
    /// The running configuration after the last command.
    config: String,
    steps: &'a mut Vec<String>,
}

/// Run the schedule of a seed; `steps` says what happened, in words.
pub fn run(seed: u64, folder: &'static Path, steps: &mut Vec<String>) {
    let mut random = Random::new(seed);
    let router = router(folder, 1 + random.below(2), random.below(4) > 0);
    let forms = forms(&router, &mut random);
    let mut simulation = Simulation {
        router,
        random,
        folder,
        forms,
        peer: Peer::default(),
        taken: Vec::new(),
        cache: None,
        config: String::new(),
        steps,
    };
    simulation.begin();
    for _ in 0..STEPS {
        simulation.step();
    }
    simulation.end();
}

fn forms(router: &Router, random: &mut Random) -> Vec<usize> {
    let commands = router.commands();
    let commands = commands.borrow();
    let all = commands.form_names().enumerate().filter(|(_, name)| changes_state(name));
    let all: Vec<usize> = all.map(|(form, _)| form).collect();
    (0..FORMS).map(|_| all[random.below(all.len())]).collect()
}

impl Simulation<'_> {
    fn begin(&mut self) {
        for port in PORTS {
            self.router.interface(port);
        }
        self.config = running(&mut self.router);
        let lines: &[&str] = if self.random.below(3) > 0 { ROUTING } else { &[] };
        for line in START.iter().chain(lines) {
            if self.random.below(3) > 0 {
                self.line(&line.replace("{folder}", &self.folder.display().to_string()));
            }
        }
    }

    fn line(&mut self, line: &str) {
        let done = self.router.execute(line);
        self.steps.push(format!("{line}{}", if done.is_ok() { "" } else { " (refused)" }));
        let config = running(&mut self.router);
        if let Err(refusal) = done {
            assert_eq!(
                self.config, config,
                "`{line}` is refused ({refusal}) and changes something"
            );
        }
        self.config = config;
    }

    fn note(&mut self, step: impl Into<String>) {
        self.steps.push(step.into());
    }

    fn step(&mut self) {
        let ports = self.router.interfaces(); // a command may have given them other names
        let port = ports[self.random.below(ports.len())].as_str();
        match self.random.below(24) {
            0..8 => self.command(),
            8..14 => self.frames(port),
            14 => {
                let time = Duration::from_millis(1 << self.random.below(15));
                self.note(format!("{time:?} pass"));
                self.router.advance(time);
            }
            15 => {
                let up = self.random.below(2) == 0;
                self.note(format!("the link of {port} is up: {up}"));
                let id = self.router.id(port);
                self.router.engine().set_link_up(id, up).unwrap_or_else(|error| panic!("{error}"));
            }
            16 => {
                let stalled = self.random.below(2) == 0;
                self.note(format!("the transmit ring of {port} is full: {stalled}"));
                self.router.stall(port, stalled);
            }
            17 => {
                let packets = [None, Some(0), Some(1), Some(3)][self.random.below(4)];
                self.note(format!("{port} takes at most {packets:?} packets at once"));
                self.router.take_at_most(port, packets);
            }
            18 => {
                let silent = self.random.below(2) == 0;
                self.note(format!("the receive queue of {port} has stopped: {silent}"));
                self.router.silence(port, silent);
            }
            19 => self.take_buffers(),
            20 => self.give_buffers(),
            21 => {
                let successes = self.random.below(3) as u32;
                self.note(format!("the kernel refuses memory after {successes} reservations"));
                refusal::after(Some(successes));
                self.command();
                refusal::after(None);
            }
            _ => {
                let said = self.peer.act(&self.folder.join("m1.sock"), &mut self.random);
                self.note(said);
                self.router.engine().turn(0);
                self.router.step();
            }
        }
    }

    fn command(&mut self) {
        let interfaces: Vec<String> =
            self.router.engine().all_interfaces().map(|interface| interface.name.clone()).collect();
        let form = self.forms[self.random.below(self.forms.len())];
        let density = [2, 5, 8][self.random.below(3)];
        let (numbers, folder) = (&mut self.random, self.folder);
        let mut choices = Choices { numbers, interfaces: &interfaces, folder, density };
        let line = self.router.commands().borrow().random_line(form, &mut choices);
        self.line(&line);
        self.router.step();
    }

    /// Copies of a frame of a golden case, a byte changed in one of two.
    fn frames(&mut self, port: &str) {
        let cases = golden();
        let case = &cases[self.random.below(cases.len())];
        let Some((_, frame)) = case.frames.get(self.random.below(case.frames.len())) else {
            return;
        };
        let mut frame = frame.clone();
        if self.random.below(2) == 0 {
            let place = self.random.below(frame.len());
            frame[place] = self.random.below(256) as u8;
        }
        if self.random.below(2) == 0 && frame.len() > 6 && frame[0] & 1 == 0 {
            frame[..6].copy_from_slice(&[2, 0xfe, 0, 0, 0, self.random.below(PORTS.len()) as u8]);
        }
        let copies = 1 + self.random.below(COPIES_MAX);
        self.note(format!("{port} receives {copies} of {}, {} bytes", case.name, frame.len()));
        (0..copies).for_each(|_| self.router.inject(port, &frame));
        self.router.run();
        for port in self.router.interfaces() {
            self.router.sent(&port);
        }
    }

    fn take_buffers(&mut self) {
        let pool = self.router.engine().pool().clone();
        let leave = [0, 1, 4, 40][self.random.below(4)];
        let count = pool.free().saturating_sub(leave);
        self.note(format!("{leave} buffers are left in the pool"));
        let cache = self.cache.get_or_insert_with(|| pool.cache());
        self.taken.extend((0..count).map_while(|_| cache.take()));
        self.router.run();
    }

    fn give_buffers(&mut self) {
        self.note("the buffers that somebody had come back");
        if let Some(mut cache) = self.cache.take() {
            cache.give_all(self.taken.drain(..));
        }
    }

    /// The devices work again, everything comes to rest, and then the accounts are right.
    fn end(mut self) {
        self.give_buffers();
        for port in &self.router.interfaces() {
            self.router.stall(port, false);
            self.router.silence(port, false);
            self.router.take_at_most(port, None);
            let id = self.router.id(port);
            self.router.engine().set_link_up(id, true).unwrap_or_else(|error| panic!("{error}"));
        }
        self.router.run();
        let config = running(&mut self.router);
        drop(self.peer);
        if self.router.buffers_in_use() > 0 {
            self.router.advance(REST);
        }
        assert_eq!(
            self.router.buffers_in_use(),
            0,
            "buffers that nothing gives back, with\n{config}"
        );
        let (workers, block_driver) = (self.router.engine().worker_count(), true);
        assert_eq!(config, running(&mut self.router), "time alone changes the configuration");
        drop(self.router);
        if let Some(fault) =
            loads_again(router(self.folder, workers, block_driver), &config, &config)
        {
            panic!("{}: {}", fault.kind, fault.text);
        }
    }
}
