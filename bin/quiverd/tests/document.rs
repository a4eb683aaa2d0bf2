//! A configuration in a file: its mistakes, how it differs from the one that runs, and its
//! application, whole or not at all.

use std::fs;
use std::path::PathBuf;

use quiver_testkit::configuration::running;
use quiver_testkit::{Router, Settings};
use quiverd::features;

const RUNNING: &str = "\
create loopback interface instance 0
create loopback interface instance 1
ip table add 7
set interface mtu packet 1400 loop0
set interface ip address loop0 10.0.0.1/24
set interface state loop0 up
sr hmac key 1 algo sha256 secret correct-horse
ip route add 192.0.2.0/24 via 10.0.0.2
";

struct Case {
    router: Router,
    file: PathBuf,
}

impl Case {
    fn new(name: &str) -> Case {
        let mut router = Router::whole(Settings::default(), features::register);
        RUNNING.lines().for_each(|line| drop(router.cli(line)));
        let file = format!("quiver-document-{name}-{}.cli", std::process::id());
        Case { router, file: std::env::temp_dir().join(file) }
    }

    fn line(&self, purpose: &str, wanted: &str) -> String {
        fs::write(&self.file, wanted).unwrap();
        format!("configuration {purpose} {}", self.file.display())
    }

    fn answer_of(&mut self, purpose: &str, wanted: &str) -> String {
        let line = self.line(purpose, wanted);
        self.router.cli(&line)
    }

    fn refused(&mut self, purpose: &str, wanted: &str) -> String {
        let line = self.line(purpose, wanted);
        self.router.refused(&line)
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.file);
    }
}

#[test]
fn a_router_becomes_what_a_file_says_by_the_fewest_commands() {
    let mut case = Case::new("apply");
    let wanted = running(&mut case.router)
        .replace("1400", "1300")
        .replace("ip route add 192.0.2.0/24", "ip route add 198.51.100.0/24")
        .replace("ip table add 7\n", "# nobody uses table 7\n");
    let differs = case.answer_of("diff", &wanted);
    for line in [
        "- set interface mtu packet 1400 loop0\n",
        "+ set interface mtu packet 1300 loop0\n",
        "- ip table add 7\n",
        "- ip route add 192.0.2.0/24 via 10.0.0.2\n",
        "+ ip route add 198.51.100.0/24 via 10.0.0.2\n",
    ] {
        assert!(differs.contains(line), "{differs}");
    }
    assert_eq!(differs.lines().count(), 5, "{differs}");
    case.answer_of("apply", &wanted);
    let after = running(&mut case.router);
    assert_eq!(after, wanted.replace("# nobody uses table 7\n", ""));
    assert_eq!(case.answer_of("diff", &wanted), "");
}

#[test]
fn what_was_done_before_a_refusal_is_taken_back() {
    let mut case = Case::new("refused");
    let before = running(&mut case.router);
    let wanted = before.replace("instance 0\n", "instance 0 mac 02:00:00:00:00:01\n")
        + "set interface ip table loop1 8\n";
    let refused = case.refused("apply", &wanted);
    assert!(refused.contains("`set interface ip table loop1 8` is refused"), "{refused}");
    assert!(refused.contains("what was done before it was taken back"), "{refused}");
    assert_eq!(running(&mut case.router), before);
}

#[test]
fn all_mistakes_are_told_at_once_and_nothing_is_done() {
    let mut case = Case::new("mistakes");
    let before = running(&mut case.router);
    let wanted = "create loopback interface instance 0\nset interface mtu packet 1 loop0\n\
                  set interface mtu x loop0\n\nshow interface\n\
                  ip route del 192.0.2.0/24\ncreate loopback interface\n\
                  set interface mtu packet 2 loop0\n";
    for purpose in ["check", "diff", "apply"] {
        let refused = case.refused(purpose, wanted);
        assert!(refused.contains("has 5 mistakes"), "{refused}");
        for line in [
            "line 3: ",
            "line 5: 'show interface' is no part of a configuration",
            "line 6: ",
            "line 7: 'create loopback interface' does not say which it is: say its instance",
            "line 8: line 2 says something else of the same",
        ] {
            assert!(refused.contains(line), "{line}: {refused}");
        }
        assert_eq!(running(&mut case.router), before);
    }
    assert!(case.answer_of("check", &before).contains("has no mistakes"));
}

#[test]
fn secrets_stand_in_no_difference() {
    let mut case = Case::new("secrets");
    let wanted = running(&mut case.router).replace("correct-horse", "battery-staple");
    let differs = case.answer_of("diff", &wanted);
    assert!(differs.contains("+ sr hmac key 1 algo sha256 secret <hidden>"), "{differs}");
    let line = case.line("diff", &wanted);
    let json = format!("{:?}", case.router.execute(&line).unwrap().to_json());
    assert!(!json.contains("horse") && !json.contains("battery"), "{json}");
    case.answer_of("apply", &wanted);
    assert!(running(&mut case.router).contains("battery-staple"));
}
