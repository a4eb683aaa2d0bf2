//! Versions of the configuration: kept, confirmed, taken back, and restored at the start.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use quiver_control::Store;
use quiver_testkit::configuration::running;
use quiver_testkit::{Router, Settings};
use quiverd::features;
use serde_json::Value;

use crate::start::{Folder, Running};

const FIRST: &str = "\
# the first one
create loopback interface instance 0
set interface ip address loop0 10.0.0.1/24
set interface state loop0 up
ip route add 192.0.2.0/24 via 10.0.0.2
sr hmac key 1 algo sha256 secret correct-horse
";

/// A router on this thread that keeps versions, and a folder for files.
struct Case {
    router: Router,
    folder: Folder,
}

impl Case {
    fn new(name: &str) -> Case {
        let folder = Folder::new(&format!("versions-{name}"));
        let mut case = Case { router: router(), folder };
        case.keep();
        case
    }

    fn keep(&mut self) {
        let store = Store::open(&self.folder.path("state"), 5).unwrap();
        let commands = self.router.commands();
        let faults = commands.borrow().keep_versions(store).unwrap();
        assert_eq!(faults, [] as [String; 0]);
    }

    /// Another router takes over what this one has kept.
    fn restart(&mut self) -> Option<u32> {
        self.router = router();
        let store = Store::open(&self.folder.path("state"), 5).unwrap();
        let commands = self.router.commands();
        let commands = commands.borrow();
        commands.keep_versions(store).unwrap();
        let mut sink = quiver_control::Collected::default();
        let restored = commands.restore_version(self.router.engine(), &mut sink);
        restored.map(|restored| restored.version)
    }

    fn apply(&mut self, text: &str, options: &str) -> String {
        let file = self.folder.write("wanted.cli", text);
        self.router.cli(&format!("configuration apply {} {options}", file.display()))
    }

    fn refused(&mut self, text: &str, options: &str) -> String {
        let file = self.folder.write("wanted.cli", text);
        self.router.refused(&format!("configuration apply {} {options}", file.display()))
    }

    fn history(&mut self) -> Vec<(u64, String, String)> {
        let shown = self.router.json("show configuration history");
        let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
        let rows = shown["versions"].as_array().or(shown.as_array()).unwrap().iter();
        rows.map(|row| {
            (row["number"].as_u64().unwrap(), text(&row["state"]), text(&row["message"]))
        })
        .collect()
    }

    fn status(&mut self) -> Value {
        self.router.json("show configuration")
    }
}

fn router() -> Router {
    Router::whole(Settings::default(), features::register)
}

#[test]
fn what_is_applied_is_a_version_and_the_one_before_it_too() {
    let mut case = Case::new("applied");
    case.router.cli("create loopback interface instance 7");
    assert_eq!(case.status()["saved"], Value::Null);
    case.apply(FIRST, "message \"the first one\"");
    let states: Vec<_> = case.history();
    assert_eq!(states[0], (2, "saved".to_owned(), "the first one".to_owned()));
    assert_eq!((states.len(), states[1].0), (2, 1));
    assert!(states[1].2.contains("what ran before"), "{states:?}");
    assert_eq!(case.status()["differs"], false);
    // Comments are kept, and secrets are shown to those who ask for them.
    let shown = case.router.cli("configuration show version 2");
    assert!(shown.starts_with("# the first one\n"), "{shown}");
    assert!(shown.contains("secret <hidden>") && !shown.contains("horse"), "{shown}");
    assert_eq!(case.router.cli("show configuration version 2 secrets"), FIRST);
    let refused = case.router.refused("configuration show version 9");
    assert!(refused.contains("there is no version 9"), "{refused}");
    // The same again is no other version.
    assert!(case.apply(FIRST, "").contains("version 2 says this already"));
    case.apply(&format!("{FIRST}# more\n"), "");
    assert_eq!(case.history()[0].0, 3);
}

#[test]
fn a_rollback_leads_to_any_version_and_is_one_itself() {
    let mut case = Case::new("rollback");
    case.apply(FIRST, "");
    let first = running(&mut case.router);
    case.apply(&FIRST.replace("10.0.0.2", "10.0.0.3"), "");
    let differs = case.router.cli("configuration diff version 2");
    assert!(differs.contains("+ ip route add 192.0.2.0/24 via 10.0.0.2"), "{differs}");
    let between = case.router.json("configuration diff version 2 3");
    let replaced = "ip route replace 192.0.2.0/24 via 10.0.0.3";
    assert_eq!(between["commands"], serde_json::json!([replaced]));
    case.router.cli("configuration rollback");
    assert_eq!(running(&mut case.router), first);
    assert_eq!(case.history()[0], (4, "saved".into(), "rollback to version 2".into()));
    case.router.cli("configuration rollback 1 message \"all of it\"");
    assert_eq!(running(&mut case.router), running(&mut router()));
    assert_eq!(case.history()[0].2, "all of it");
    case.router.cli("configuration rollback 2");
    assert_eq!(running(&mut case.router), first);
    // No more are kept than the bound says, the newest.
    let numbers: Vec<u64> = case.history().iter().map(|row| row.0).collect();
    assert_eq!(numbers, [6, 5, 4, 3, 2]);
}

#[test]
fn what_nobody_saved_is_told_and_lost_and_what_is_saved_is_restored() {
    let mut case = Case::new("saved");
    case.apply(FIRST, "");
    let refused = case.router.refused("configuration rollback 99");
    assert!(refused.contains("there is no version 99"), "{refused}");
    case.router.cli("ip route add 198.51.100.0/24 via 10.0.0.9");
    let status = case.status();
    assert_eq!((&status["differs"], &status["lines_new"]), (&true.into(), &1.into()));
    assert_eq!(case.restart(), Some(2));
    assert!(!running(&mut case.router).contains("198.51.100.0"));
    assert_eq!(case.status()["differs"], false);
    case.router.cli("ip route add 198.51.100.0/24 via 10.0.0.9");
    case.router.cli("configuration save message \"one more\"");
    assert!(case.router.cli("configuration save").contains("version 3 says this already"));
    let saved = running(&mut case.router);
    assert_eq!(case.restart(), Some(3));
    assert_eq!(running(&mut case.router), saved);
}

#[test]
fn a_version_that_cannot_be_used_is_told_and_the_one_before_it_is_restored() {
    let mut case = Case::new("broken");
    case.apply(FIRST, "");
    case.apply(&FIRST.replace("10.0.0.2", "10.0.0.3"), "");
    let file = case.folder.path("state/configurations/3.version");
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    assert_eq!(case.restart(), Some(2));
    assert!(running(&mut case.router).contains("via 10.0.0.2"));
    fs::remove_file(case.folder.path("state/configurations/2.version")).unwrap();
    fs::remove_file(case.folder.path("state/configurations/1.version")).unwrap();
    assert_eq!(case.restart(), None);
}

#[test]
fn an_apply_that_waits_is_confirmed_or_taken_back_and_nobody_comes_between() {
    let mut case = Case::new("confirm");
    case.apply(FIRST, "");
    let first = running(&mut case.router);
    let other = FIRST.replace("10.0.0.2", "10.0.0.3");
    let said = case.apply(&other, "confirm 60s message trial");
    assert!(said.contains("unless `configuration confirm`"), "{said}");
    let status = case.status();
    assert_eq!((&status["pending"]["number"], &status["saved"]["number"]), (&3.into(), &2.into()));
    assert_eq!(case.history()[0].1, "pending");
    for line in ["configuration save", "configuration rollback 1"] {
        let refused = case.router.refused(line);
        assert!(refused.contains("version 3 of"), "{refused}");
        assert!(refused.contains("waits for its confirmation until"), "{refused}");
    }
    assert!(case.refused(FIRST, "").contains("waits for its confirmation"));
    case.router.cli("configuration rollback");
    assert_eq!(running(&mut case.router), first);
    assert_eq!(
        (case.history()[0].1.as_str(), case.status()["differs"].clone()),
        ("returned", false.into())
    );
    let refused = case.router.refused("configuration confirm");
    assert!(refused.contains("no version waits"), "{refused}");
    case.apply(&other, "confirm 60");
    case.router.cli("configuration confirm");
    assert_eq!(case.history()[0], (4, "saved".into(), "".into()));
    assert_eq!(case.restart(), Some(4));
    // A restart takes back what nobody confirmed.
    case.apply(FIRST, "confirm 60");
    assert_eq!(case.restart(), Some(4));
    assert_eq!(case.history()[0].1, "returned");
}

#[test]
fn what_is_refused_leaves_no_version_and_no_change() {
    let mut case = Case::new("refused");
    case.apply(FIRST, "");
    let (before, history) = (running(&mut case.router), case.history());
    let refused = case.refused(&format!("{FIRST}set interface ip table loop0 8\n"), "");
    assert!(refused.contains("what was done before it was taken back"), "{refused}");
    let refused = case.refused(&format!("{FIRST}set interface state tap9 up\n"), "");
    assert!(refused.contains("wanted.cli:7: there is no interface 'tap9'"), "{refused}");
    assert_eq!((running(&mut case.router), case.history()), (before, history));
    assert_eq!(case.restart(), Some(2));
}

#[test]
fn the_second_of_two_operators_is_refused_and_hears_of_the_first() {
    let mut case = Case::new("two");
    case.apply(FIRST, "");
    let generation = case.status()["generation"].as_str().unwrap().to_owned();
    case.router.commands().borrow().on_behalf_of(Some("uid 0 pid 7"));
    case.router.cli("ip route add 198.51.100.0/24 via 10.0.0.9");
    case.router.commands().borrow().on_behalf_of(None);
    let refused = case.refused(FIRST, &format!("generation {generation}"));
    assert!(refused.contains("the configuration was changed by root (uid 0) at 20"), "{refused}");
    let generation = case.status()["generation"].as_str().unwrap().to_owned();
    case.apply(FIRST, &format!("generation {generation}"));
}

/// The folder and the start-up file of a router of its own process.
fn process(name: &str, unix: &str) -> (Folder, PathBuf) {
    let folder = Folder::new(name);
    let state = folder.path("lib");
    let config = folder.config(&format!("state-dir {} {unix}", state.display()), "");
    (folder, config)
}

#[test]
fn without_a_confirmation_the_router_returns_by_itself() {
    let (folder, config) = process("unconfirmed", "");
    let router = Running::start(&folder, &config);
    let first = folder.write("first.cli", "create loopback interface instance 0\n");
    let second = folder.write("second.cli", "create loopback interface instance 1\n");
    let apply = |file: &PathBuf, options: &str| {
        router.says(&format!("configuration apply {} {options}", file.display()))
    };
    assert!(apply(&first, "").contains("version 2 is applied"));
    // The session that says it ends at once.
    assert!(apply(&second, "confirm 5s").contains("version 3 is applied"));
    assert!(router.says("show running-config").contains("instance 1"));
    let began = Instant::now();
    while router.says("show running-config").contains("instance 1") {
        assert!(began.elapsed() < Duration::from_secs(90), "{}", router.says("show configuration"));
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(router.says("show running-config").contains("instance 0"));
    while !router.says("show configuration").contains("what runs is that version") {
        assert!(began.elapsed() < Duration::from_secs(90), "{}", router.says("show configuration"));
    }
    router.end();
}

#[test]
fn a_router_starts_with_the_saved_version_and_not_with_its_exec_file() {
    let setup = "create loopback interface instance 5\n";
    let (folder, _) = process("restored", "");
    let exec = folder.write("setup.cli", setup);
    let state = folder.path("lib");
    let unix = format!("state-dir {} exec {}", state.display(), exec.display());
    let config = folder.config(&unix, "");
    let router = Running::start(&folder, &config);
    assert!(router.says("show running-config").contains("instance 5"));
    let wanted = folder.write("wanted.cli", "create loopback interface instance 6\n");
    router.says(&format!("configuration apply {}", wanted.display()));
    drop(router); // by SIGKILL
    let router = Running::start(&folder, &config);
    let config_now = router.says("show running-config");
    assert!(
        config_now.contains("instance 6") && !config_now.contains("instance 5"),
        "{config_now}"
    );
    assert!(router.says("show log").contains("is not executed: there is a saved version"));
    router.says("configuration rollback 1");
    assert!(router.says("show running-config").contains("instance 5"));
    router.end();
}

#[test]
fn a_state_directory_that_cannot_be_used_leaves_a_router_without_versions() {
    let folder = Folder::new("no-state");
    let file = folder.write("file", "");
    let config = folder.config(&format!("state-dir {}", file.display()), "");
    let router = Running::start(&folder, &config);
    let said = router.says("configuration history");
    assert!(said.contains("keeps no versions") && said.contains("state-dir"), "{said}");
    let wanted = folder.write("wanted.cli", "create loopback interface instance 6\n");
    router.says(&format!("configuration apply {}", wanted.display()));
    assert!(router.says("show running-config").contains("instance 6"));
    let said = router.says(&format!("configuration apply {} confirm 9", wanted.display()));
    assert!(said.contains("keeps no versions"), "{said}");
    router.end();
}
