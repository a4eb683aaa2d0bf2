//! What is never repeated: words of files that are no commands, and secrets.

use crate::toy;

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use quiver_control::*;
use toy::{Toy, commands};

/// The word that nobody may see.
const WORD: &str = "correct-horse";

/// Lines that are no commands, as any file may have them.
const LINES: [&str; 12] = [
    "root:correct-horse:20000:0:99999:7:::",
    "set interface state e0 correct-horse",
    "set correct-horse",
    "set interface state e0 up correct-horse",
    "\"correct-horse",
    "set \"correct-horse",
    "correct-horse {",
    "correct-horse }",
    "correct-horse ?",
    "set interface correct-horse ?",
    "show interface | correct-horse",
    "correct-horse ? | include r",
];

/// A toy, its commands, what its journal has kept, and a folder that goes with it.
struct Fixture {
    commands: Commands<Toy>,
    toy: Toy,
    kept: Rc<RefCell<Vec<String>>>,
    folder: PathBuf,
}

impl Fixture {
    fn new(name: &str) -> Fixture {
        let folder =
            std::env::temp_dir().join(format!("quiver-quoting-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut commands = commands();
        let kept = Rc::new(RefCell::new(Vec::new()));
        let entries = Rc::clone(&kept);
        commands.keep_journal(move |entry| {
            let why = entry.refusal.map(|refusal| refusal.what().to_owned());
            entries.borrow_mut().push(format!("{} {why:?}", entry.line));
        });
        commands.on_behalf_of(Some("a client"));
        Fixture { commands, toy: Toy::new(), kept, folder }
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        std::fs::write(self.folder.join(name), text).unwrap();
        self.folder.join(name)
    }

    fn exec(&mut self, file: &std::path::Path) -> Refusal {
        self.commands.execute(&mut self.toy, &format!("exec {}", file.display())).unwrap_err()
    }

    fn taken(&self) -> Vec<String> {
        std::mem::take(&mut *self.kept.borrow_mut())
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn all_of(refusal: &Refusal) -> String {
    format!("{refusal} {}", refusal.to_json())
}

#[test]
fn of_a_line_of_a_file_that_is_no_command_nothing_is_repeated() {
    let mut fixture = Fixture::new("lines");
    for line in LINES {
        let file = fixture.file("any", &format!("set interface state e1 up\n{line}\n"));
        let outer = fixture.file("outer", &format!("exec {}\n", file.display()));
        let mut sink = Collected::default();
        let started = fixture.commands.execute_file_with(
            &mut fixture.toy,
            &file,
            OnRefusal::Continue,
            &mut sink,
        );
        let mut refusals = sink.refusals;
        refusals.extend(started.err());
        refusals.push(fixture.exec(&file));
        refusals.push(fixture.exec(&outer));
        refusals.extend(fixture.commands.check_file(&outer));
        assert!(refusals.len() > 2, "{line}");
        for refusal in refusals {
            let text = all_of(&refusal);
            assert!(!text.contains("horse") && text.contains("any:2: "), "{line}: {text}");
        }
        let kept = fixture.taken();
        assert!(kept.iter().any(|entry| entry.starts_with("line 2 of ")), "{line}: {kept:?}");
        assert!(!kept.concat().contains("horse"), "{line}: {kept:?}");
    }
}

#[test]
fn a_refusal_in_a_file_says_what_was_expected() {
    let mut fixture = Fixture::new("expected");
    let file = fixture.file("any", "set interface state e0 upp\n");
    let text = fixture.exec(&file).to_string();
    assert!(text.contains("any:1: a word does not fit (word 5): expected up or down"), "{text}");
    let text =
        fixture.commands.execute(&mut fixture.toy, "set interface state e0 upp").unwrap_err();
    assert!(text.to_string().contains("'upp'"), "a refusal names the words of the line: {text}");
}

#[test]
fn a_file_that_executes_itself_is_refused_once() {
    let mut fixture = Fixture::new("itself");
    let file = fixture.folder.join("any");
    let other = fixture.file("other", &format!("exec {}\n", file.display()));
    std::os::unix::fs::symlink(&file, fixture.folder.join("link")).unwrap();
    for inner in [&file, &other, &fixture.folder.join("link")] {
        fixture.file(
            "any",
            &format!("ip route add 10.0.0.0/8 via 192.0.2.1\nexec {}\n", inner.display()),
        );
        fixture.toy.routes.clear();
        let refusal = fixture.exec(&file).to_string();
        assert!(
            refusal.contains("executes itself")
                && refusal.ends_with("1 command before it was applied")
        );
        assert_eq!(fixture.toy.routes.len(), 1, "what stands before it is done once");
        let kept = fixture.taken();
        let refused: Vec<_> =
            kept.iter().filter(|entry| entry.contains("executes itself")).collect();
        assert_eq!(refused.len(), 1, "{kept:?}");
        let faults = fixture.commands.check_file(&file);
        assert_eq!(faults.len(), 1, "{faults:?}");
    }
}

#[test]
fn the_journal_knows_secrets_by_the_grammar() {
    let mut fixture = Fixture::new("secrets");
    for line in [
        "create interface memif id 1 master secret correct-horse",
        "cre int me sec \"correct-horse battery\" id 2 master",
        "create interface memif id 1 master secret correct-horse",
        "create interface memif id 3 master secret correct-horse battery",
        "create interface memif id 3 mastre secret correct-horse",
        "create interface memfi id 3 master secret correct-horse",
        "correct-horse",
    ] {
        let _ = fixture.commands.execute(&mut fixture.toy, line);
        let kept = fixture.taken();
        assert_eq!(kept.len(), 1, "{line}: {kept:?}");
        assert!(!kept[0].contains(WORD) && !kept[0].contains("battery"), "{line}: {kept:?}");
        assert!(kept[0].contains(HIDDEN), "{line}: {kept:?}");
    }
}
