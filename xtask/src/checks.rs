//! The rules that ARCHITECTURE.md tells, each checked.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::metadata::{Member, members, root};

/// Files that may contain unsafe code; each block says why it holds.
const UNSAFE_ALLOWED: &str = include_str!("unsafe-allowed.txt");
/// Lines of a file of ours at most.
const FILE_LINES_MAX: usize = 700;
/// Columns of a line of Rust at most. A longer one is allowed only where its last word alone,
/// a URL, does not fit.
const LINE_COLUMNS_MAX: usize = 100;
/// Files with longer lines that are left to break.
const LONG_LINES_LEFT: [&str; 9] = [
    "engine/core/src/graph/builtin.rs",
    "engine/core/src/graph/node.rs",
    "engine/core/src/graph/outbox.rs",
    "features/gre/tests/tunnels.rs",
    "features/ipip/src/texts.rs",
    "fused/tests/fixture/seen.rs",
    "fused/tests/forms.rs",
    "fused/tests/functions.rs",
    "fused/tests/order.rs",
];
/// The layer of programs, which may import any crate.
const LAYER_MAX: u32 = 14;

/// All faults found, as sentences.
pub fn all() -> Result<Vec<String>> {
    let members = members()?;
    let mut faults = layers(&members);
    faults.extend(registration(&members)?);
    faults.extend(unsafe_code()?);
    faults.extend(file_lengths()?);
    faults.extend(line_lengths()?);
    faults.extend(examples()?);
    faults.extend(unlisted_tests()?);
    faults.extend(dependencies_explained()?);
    faults.extend(crate::links::faults()?);
    faults.extend(crate::book::faults()?);
    faults.extend(crate::words::faults()?);
    faults.extend(crate::reference::stale()?);
    Ok(faults)
}

/// How high a folder stands; arrows point from higher to lower.
fn layer(folder: &Path) -> u32 {
    let starts = |prefix: &str| folder.starts_with(prefix);
    match () {
        () if starts("engine/wire") || starts("engine/core") => 0,
        () if starts("engine/tables") || starts("engine/offload") || starts("engine/screen") => 1,
        () if starts("engine/standby") || starts("engine/shaping") => 1,
        () if starts("engine/forwarding") || starts("engine/netlink") => 2,
        () if starts("engine/classifier") || starts("engine/sessions") => 2,
        () if starts("engine/linux") || starts("engine/translation") => 3,
        () if starts("engine/control") => 4,
        () if starts("engine/encap") || starts("engine/metrics") => 5,
        () if starts("engine/bindings") || starts("engine/access-lists") => 5,
        () if starts("engine/policing") => 5,
        () if starts("engine/export") => 6,
        () if starts("engine/nat-log") || starts("engine/standby-sessions") => 7,
        () if starts("features") || starts("drivers") => 8,
        () if starts("fused") => 9,
        () if starts("testkit") => 10,
        () if starts("bin/quiver-tg/traffic") => 11,
        () if starts("bin/quiver-tg/measuring") => 12,
        () if starts("bin/quiver-tg/stateful") => 13,
        () if starts("bin/quiver-tg/control") => 14,
        () => LAYER_MAX,
    }
}

/// `bin → fused → features, drivers → engine`, and nothing sideways; within `bin/quiver-tg`
/// `control → stateful → measuring → traffic`.
pub fn layers(members: &[Member]) -> Vec<String> {
    let by_name: HashMap<&str, &Member> = members.iter().map(|m| (m.name.as_str(), m)).collect();
    let mut faults = Vec::new();
    for member in members {
        for dependency in member.dependencies.iter().filter_map(|d| by_name.get(d.as_str())) {
            if layer(&dependency.folder) >= layer(&member.folder)
                && layer(&member.folder) < LAYER_MAX
            {
                faults.push(format!(
                    "{} imports {}: arrows point down only (bin, then fused, then features \
                     and drivers, then engine; in bin/quiver-tg: control, then stateful, then \
                     measuring, then traffic)",
                    member.folder.display(),
                    dependency.folder.display()
                ));
            }
        }
    }
    faults
}

/// Every feature and driver is in the one list of what is built in.
fn registration(members: &[Member]) -> Result<Vec<String>> {
    let list = "bin/quiverd/src/features.rs";
    let text = fs::read_to_string(root().join(list)).context(list)?;
    let missing = members.iter().filter(|m| (8..=9).contains(&layer(&m.folder))).filter(|m| {
        let call = format!("{}::register", m.name.replace('-', "_"));
        !text.contains(&call)
    });
    Ok(missing.map(|m| format!("{} is not registered in {list}", m.folder.display())).collect())
}

/// A crate's tests are one program, which names every file: one that it does not name would never
/// run.
fn unlisted_tests() -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for file in sources()? {
        let Some(folder) = file.parent().filter(|folder| folder.ends_with("tests")) else {
            continue;
        };
        let main = root().join(folder).join("main.rs");
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let listed = format!("mod {name};");
        if name != "main"
            && main.exists()
            && !fs::read_to_string(&main)?.lines().any(|line| line == listed)
        {
            faults.push(format!(
                "{} never runs: write `{listed}` in {}/main.rs",
                file.display(),
                folder.display()
            ));
        }
    }
    Ok(faults)
}

/// The files that may contain unsafe code, relative to the root.
pub fn unsafe_files() -> impl Iterator<Item = &'static str> {
    UNSAFE_ALLOWED.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Unsafe code stands only in the files of the list, and the list names no others.
fn unsafe_code() -> Result<Vec<String>> {
    let allowed: Vec<&str> = unsafe_files().collect();
    let mut faults = Vec::new();
    let mut found = Vec::new();
    for file in sources()? {
        let text = fs::read_to_string(root().join(&file))?;
        let name = file.to_string_lossy().into_owned();
        if text.contains("allow(unsafe_code)") && !name.starts_with("xtask") {
            if !allowed.contains(&name.as_str()) {
                faults.push(format!(
                    "{name} contains unsafe code and is not in xtask/src/unsafe-allowed.txt"
                ));
            }
            found.push(name);
        }
    }
    for name in allowed.iter().filter(|name| !found.iter().any(|f| f == *name)) {
        faults
            .push(format!("{name} is in xtask/src/unsafe-allowed.txt and contains no unsafe code"));
    }
    Ok(faults)
}

fn file_lengths() -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for file in sources()? {
        let lines = fs::read_to_string(root().join(&file))?.lines().count();
        if lines > FILE_LINES_MAX {
            faults.push(format!(
                "{} has {lines} lines: would two names tell more than one?",
                file.display()
            ));
        }
    }
    Ok(faults)
}

/// Lines of Rust that are too long.
fn line_lengths() -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for file in sources()? {
        let name = file.to_string_lossy();
        if LONG_LINES_LEFT.contains(&&*name) {
            continue;
        }
        let source = fs::read_to_string(root().join(&file))?;
        faults.extend(long_lines(&source).map(|(line, columns)| {
            format!(
                "{name}:{line} has {columns} columns, and {LINE_COLUMNS_MAX} are allowed: break \
                 the line, or the text with `\\` at its end"
            )
        }));
    }
    Ok(faults)
}

/// The lines that could be broken and are too long, with the columns that they have.
fn long_lines(source: &str) -> impl Iterator<Item = (usize, usize)> {
    source.lines().enumerate().filter_map(|(number, line)| {
        let columns = line.chars().count();
        let indent = columns - line.trim_start().chars().count();
        let is_one_word = line.split_whitespace().any(|word| {
            word.contains("://") && indent + word.chars().count() + 4 > LINE_COLUMNS_MAX
        });
        (columns > LINE_COLUMNS_MAX && !is_one_word).then_some((number + 1, columns))
    })
}

/// Code in doc comments is not run: `make test` leaves doc-tests out, which would link a program
/// for each of 70 crates.
fn examples() -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for file in sources()? {
        let source = fs::read_to_string(root().join(&file))?;
        let name = file.to_string_lossy();
        faults.extend(run_examples(&source).map(|line| {
            format!(
                "{name}:{line} begins an example that no test runs: say ```text, or make it a test"
            )
        }));
    }
    Ok(faults)
}

/// Where code begins in doc comments that rustdoc would run.
fn run_examples(source: &str) -> impl Iterator<Item = usize> {
    let mut is_inside = false;
    source.lines().enumerate().filter_map(move |(number, line)| {
        let line = line.trim_start();
        let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
        let kind = text.trim_start().strip_prefix("```")?;
        is_inside = !is_inside;
        (is_inside && kind.trim() != "text").then_some(number + 1)
    })
}

/// docs/decisions/dependencies.md says why each dependency is there.
fn dependencies_explained() -> Result<Vec<String>> {
    let manifest = fs::read_to_string(root().join("Cargo.toml"))?;
    let page = "docs/decisions/dependencies.md";
    let told = fs::read_to_string(root().join(page)).context(page)?;
    let dependencies = manifest
        .lines()
        .skip_while(|l| *l != "[workspace.dependencies]")
        .skip(1)
        .take_while(|l| !l.starts_with('['))
        .filter_map(|l| l.split_once(" = "))
        .map(|(name, _)| name.trim())
        .filter(|name| !name.starts_with("quiver-"));
    Ok(dependencies
        .filter(|name| !told.contains(&format!("`{name}`")))
        .map(|name| format!("{page} does not say why `{name}` is there"))
        .collect())
}

/// All Rust files of ours, relative to the root.
pub fn sources() -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for folder in ["bin", "engine", "features", "drivers", "fused", "testkit", "xtask", "fuzz"] {
        collect(Path::new(folder), &mut files)?;
    }
    files.sort();
    Ok(files)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let Ok(entries) = fs::read_dir(root().join(folder)) else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            if entry.file_name() != "target" {
                collect(&path, files)?;
            }
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, folder: &str, dependencies: &[&str]) -> Member {
        Member {
            name: name.to_owned(),
            folder: folder.into(),
            dependencies: dependencies.iter().map(|d| (*d).to_owned()).collect(),
        }
    }

    #[test]
    fn an_example_that_rustdoc_would_run_is_found() {
        let source = "//! ```text\n//! a\n//! ```\n/// ```\n/// let b;\n/// ```\nfn c() {}\n";
        assert_eq!(run_examples(source).collect::<Vec<_>>(), [4]);
    }

    #[test]
    fn a_feature_that_imports_a_feature_is_found() {
        let members = [
            member("quiver-core", "engine/core", &[]),
            member("quiver-ip", "features/ip", &["quiver-core"]),
            member("quiver-mpls", "features/mpls", &["quiver-core", "quiver-ip"]),
        ];
        assert_eq!(layers(&members).len(), 1);
    }

    #[test]
    fn a_crate_of_the_generator_that_imports_a_higher_one_is_found() {
        let members = [
            member("quiver-tg-traffic", "bin/quiver-tg/traffic", &["quiver-tg-measuring"]),
            member("quiver-tg-measuring", "bin/quiver-tg/measuring", &[]),
            member("quiver-tg-control", "bin/quiver-tg/control", &["quiver-tg-traffic"]),
            member("quiver-tg", "bin/quiver-tg", &["quiver-tg-control"]),
        ];
        assert_eq!(layers(&members).len(), 1);
    }

    #[test]
    fn a_long_line_is_found_unless_it_is_a_url() {
        let long = format!("fn f() {{}}\n    let a = {};\n", "b".repeat(LINE_COLUMNS_MAX));
        assert_eq!(long_lines(&long).collect::<Vec<_>>(), [(2, LINE_COLUMNS_MAX + 13)]);
        let fits = format!("{}\n", "é".repeat(LINE_COLUMNS_MAX));
        assert_eq!(long_lines(&fits).count(), 0);
        let url = format!("/// <https://{}>\n", "a".repeat(LINE_COLUMNS_MAX));
        assert_eq!(long_lines(&url).count(), 0);
    }

    #[test]
    fn the_house_is_in_order() {
        let faults = all().expect("the checks run");
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
}
