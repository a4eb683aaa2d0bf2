//! A configuration as a YAML document: written, read, with every mistake at its place, compared,
//! applied, and with its comments kept.

use std::fs;
use std::path::PathBuf;

use quiver_control::document::{Comments, Language};
use quiver_testkit::configuration::running;
use quiver_testkit::{Router, Settings};
use quiverd::features;

const ROUTER: &str = "\
# This router: two links.

# Set up by hand.
interfaces:
  loop0:
    addresses: [10.0.0.1/24, 2001:db8::1/64]
    loopback: {}
    mtu: 1400 # tunnels need it
    state: up
  loop1:
    # The customers.
    bridge:
      bvi: true
      domain: 7
    loopback: {mac: 02:fe:00:00:00:01}
    sub-interfaces:
      100:
        dot1q: 100
        exact-match: true
        name: office
        state: up

bridge-domains:
  7: {learn: false}

routes:
  0.0.0.0/0:
    via:
      - 10.0.0.2
      # The second line.
      - {next-hop: 10.0.0.3, weight: 3}
  192.0.2.0/24: {via: drop}

tables:
  10:
    ip4: {name: blue}
    routes:
      198.51.100.0/24: {via: 10.0.0.9}
";

struct Case {
    router: Router,
    file: PathBuf,
}

impl Case {
    fn new(name: &str) -> Case {
        let router = Router::whole(Settings::default(), features::register);
        let file = format!("quiver-document-yaml-{name}-{}.yaml", std::process::id());
        Case { router, file: std::env::temp_dir().join(file) }
    }

    fn line(&self, purpose: &str, document: &str) -> String {
        fs::write(&self.file, document).unwrap();
        format!("configuration {purpose} {}", self.file.display())
    }

    fn answer_of(&mut self, purpose: &str, document: &str) -> String {
        let line = self.line(purpose, document);
        self.router.cli(&line)
    }

    fn refused(&mut self, document: &str) -> String {
        let line = self.line("check", document);
        let name = format!("{}:", self.file.display());
        self.router.refused(&line).replace(&name, "")
    }

    fn yaml(&mut self) -> String {
        self.router.cli("show running-config yaml secrets")
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.file);
    }
}

#[test]
fn a_router_becomes_what_a_document_says_and_says_the_same() {
    let mut case = Case::new("apply");
    case.answer_of("apply", ROUTER);
    let commands = running(&mut case.router);
    for line in [
        "create sub-interfaces loop1 100 dot1q 100 exact-match",
        "set interface name loop1.100 office",
        "set interface state office up",
        "set interface l2 bridge loop1 7 bvi",
        "ip route add 0.0.0.0/0 via 10.0.0.2 via 10.0.0.3 weight 3",
        "ip route add 198.51.100.0/24 table 10 via 10.0.0.9",
    ] {
        assert!(commands.lines().any(|known| known == line), "{line} is not in\n{commands}");
    }
    let yaml = case.yaml();
    let mut other = Case::new("again");
    other.answer_of("apply", &yaml);
    assert_eq!(other.yaml(), yaml);
    assert_eq!(running(&mut other.router), commands);
    assert_eq!(case.answer_of("diff", &yaml), "");
    assert_eq!(case.answer_of("diff", ROUTER), "");
}

#[test]
fn comments_come_back_where_they_stood() {
    let mut case = Case::new("comments");
    case.answer_of("apply", ROUTER);
    let yaml = case.yaml();
    let before = |text: &str| {
        let at = yaml.lines().position(|line| line == text);
        let at = at.unwrap_or_else(|| panic!("{text} is not in\n{yaml}"));
        yaml.lines().nth(at.wrapping_sub(1)).unwrap_or("").to_owned()
    };
    assert!(yaml.starts_with("# This router: two links.\n\n"), "{yaml}");
    assert_eq!(before("interfaces:"), "# Set up by hand.");
    assert_eq!(before("    bridge: {bvi: true, domain: 7}"), "    # The customers.");
    assert_eq!(before("      - {next-hop: 10.0.0.3, weight: 3}"), "      # The second line.");
    assert!(yaml.contains("    mtu: 1400 # tunnels need it\n"), "{yaml}");
    // What is said of them otherwise stays; what is gone takes its comment with it.
    case.router.cli("set interface mtu packet 1300 loop0");
    case.router.cli("ip route del 0.0.0.0/0 via 10.0.0.3 weight 3");
    let yaml = case.yaml();
    assert!(yaml.contains("    mtu: 1300 # tunnels need it\n"), "{yaml}");
    assert!(!yaml.contains("The second line."), "{yaml}");
}

#[test]
fn every_mistake_is_told_at_its_place() {
    let mut case = Case::new("mistakes");
    let document = "\
interfaces:
  loop0:
    loopback: {}
    mtuu: 1400
    mtu: large
    state: sideways
    state: up
    addresses:
      - 10.0.0.1/24
      - 10.0.0.1/33
  loop1: 7
  tap0:
    loopback: {}
  e9:
    state: up
bridge-domain:
  7: {learn: false}
routes:
  10.0.0.0/8: {via: e9}
  11.0.0.0/8: {via: {interface: e10, wait: 3}}
";
    let told = case.refused(document);
    let places: Vec<&str> =
        told.lines().skip(1).filter_map(|line| line.trim().split(": ").next()).collect();
    let expected =
        ["4:5", "5:10", "6:12", "7:5", "10:9", "11:10", "12:3", "14:3", "16:1", "19:21", "20:38"];
    assert_eq!(places, expected, "{told}");
    for part in [
        "there is no 'mtuu' here: did you mean mtu",
        "'large' does not do for mtu: it must be a number from 0 to 65535",
        "'sideways' does not do for state: it must be up or down",
        "'state' stands in line 6 already",
        "'tap0' cannot have this: it stands under loop<instance>",
        "an interface that is not there: 'e9'",
        "there is no 'bridge-domain' here: did you mean bridge-domains",
    ] {
        assert!(told.contains(part), "{part} is not in\n{told}");
    }
    assert_eq!(running(&mut case.router), "");
    let one = case.refused("interfaces: {loop0: {loopback: {}, mtu: -1}}\n");
    assert!(one.starts_with("1:41: "), "{one}");
}

#[test]
fn a_difference_is_shown_by_key_and_by_command() {
    let mut case = Case::new("diff");
    case.answer_of("apply", ROUTER);
    let wanted = ROUTER
        .replace("mtu: 1400", "mtu: 1300")
        .replace("  192.0.2.0/24: {via: drop}\n", "  203.0.113.0/24: {via: 10.0.0.2}\n")
        .replace("10.0.0.1/24, ", "");
    let differs = case.answer_of("diff", &wanted);
    let expected = "  interfaces:
    loop0:
      addresses:
-       - 10.0.0.1/24
-     mtu: 1400
+     mtu: 1300
  routes:
-   192.0.2.0/24: {via: drop}
+   203.0.113.0/24: {via: 10.0.0.2}

as commands:
";
    assert!(differs.starts_with(expected), "{differs}");
    assert!(differs.contains("\n+ set interface mtu packet 1300 loop0\n"), "{differs}");
}

#[test]
fn the_language_is_said_by_the_name_or_by_a_word() {
    let mut case = Case::new("language");
    let line = case.line("check", "interfaces: {loop0: {loopback: {}}}\n");
    case.router.cli(&line);
    let refused = case.router.refused(&format!("{line} format commands"));
    assert!(refused.contains(":1: "), "{refused}");
    let json = case.router.json("show running-config yaml json");
    assert_eq!(json["document"], serde_json::json!({}));
}

#[test]
fn a_secret_is_hidden_unless_it_is_asked_for() {
    let mut case = Case::new("secrets");
    let document = "sr: {hmac-keys: {7: {algorithm: sha256, secret: correct-horse}}}\n";
    case.answer_of("apply", document);
    assert!(case.yaml().contains("correct-horse"));
    let shown = case.router.cli("show running-config yaml");
    assert!(shown.contains("<hidden>") && !shown.contains("correct-horse"), "{shown}");
    let refused = case.answer_of("diff", &document.replace("correct-horse", "battery-staple"));
    assert!(!refused.contains("staple") && !refused.contains("horse"), "{refused}");
}

#[test]
fn the_guide_shows_the_same_router_in_both_languages() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/configure.md");
    let guide = fs::read_to_string(guide).unwrap();
    let block = |lead: &str| {
        let (_, rest) = guide.split_once(lead).unwrap();
        rest.split_once("\n").unwrap().1.split_once("```").unwrap().0.to_owned()
    };
    let (lines, document) =
        (block("A small router as commands:\n\n```"), block("as a document:\n\n```"));
    let mut case = Case::new("guide");
    let commands = case.router.commands();
    let commands = commands.borrow();
    let wanted = commands.read_configuration(case.router.engine(), &document, Language::Yaml);
    let wanted = wanted.unwrap();
    let changes = commands.changes_between(case.router.engine(), &lines, &wanted.text).unwrap();
    assert_eq!((changes.removed, changes.added), (Vec::new(), Vec::new()));
    // What is written of it, but for its comments, says the same again.
    let yaml = commands.document_of(&lines).unwrap().yaml(&Comments::default());
    let again = commands.read_configuration(case.router.engine(), &yaml, Language::Yaml).unwrap();
    let changes = commands.changes_between(case.router.engine(), &again.text, &wanted.text);
    assert!(changes.unwrap().is_empty(), "{yaml}");
}
