//! Retired words: the repository uses the terms of RFCs, of VPP and of Linux.
//!
//! `retired-words.txt` lists words with the standard ones. `words-allowed.txt` says how many stand
//! in files that had them when the list was made; its counts may only shrink.

mod lexer;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::metadata::root;

const RETIRED: &str = include_str!("retired-words.txt");
/// Lines of `file:count`.
const ALLOWED: &str = "xtask/src/words-allowed.txt";
/// A name of more parts than this is a sentence, as names of tests are.
const NAME_PARTS_MAX: usize = 4;
/// Generated pages, which follow the declarations, and the files of this check.
const EXEMPT: [&str; 2] = ["docs/reference", "xtask/src/words.rs"];
const FOLDERS: [&str; 11] = [
    "bin", "docs", "drivers", "engine", "features", "fuzz", "lab", "fused", "testkit", "tests",
    "xtask",
];

/// Where a word is retired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Names,
    Types,
    Comments,
    Docs,
}

/// A word, the standard word, and the places where it is retired.
struct Retired {
    word: String,
    standard: &'static str,
    places: Vec<Place>,
}

/// A retired word that stands in a file.
struct Hit {
    line: usize,
    word: String,
    standard: &'static str,
}

impl Hit {
    fn sentence(&self, file: &str) -> String {
        format!("{file}:{}: `{}` is retired; say {}", self.line, self.word, self.standard)
    }
}

/// Files with more retired words than the list allows, and files with fewer.
pub fn faults() -> Result<Vec<String>> {
    let allowed = allowed(&fs::read_to_string(root().join(ALLOWED)).context(ALLOWED)?)?;
    Ok(compare(&found()?, &allowed))
}

/// Lower the counts of the list to what the files hold; a count never rises.
pub fn lower() -> Result<()> {
    let text = fs::read_to_string(root().join(ALLOWED)).context(ALLOWED)?;
    let found = found()?;
    let mut lowered: String =
        text.lines().filter(|line| line.starts_with('#')).map(|line| format!("{line}\n")).collect();
    for (file, count) in allowed(&text)? {
        let count = count.min(found.get(&file).map_or(0, Vec::len));
        if count > 0 {
            writeln!(lowered, "{file}:{count}")?;
        }
    }
    Ok(fs::write(root().join(ALLOWED), lowered)?)
}

/// Print each retired word with its place.
pub fn print() -> Result<()> {
    for (file, hits) in found()? {
        hits.iter().for_each(|hit| println!("{}", hit.sentence(&file)));
    }
    Ok(())
}

fn compare(found: &BTreeMap<String, Vec<Hit>>, allowed: &BTreeMap<String, usize>) -> Vec<String> {
    let mut faults = Vec::new();
    for (file, hits) in found {
        if hits.len() > allowed.get(file).copied().unwrap_or(0) {
            faults.extend(hits.iter().map(|hit| hit.sentence(file)));
        }
    }
    for (file, count) in allowed {
        let hits = found.get(file).map_or(0, Vec::len);
        if hits < *count {
            faults.push(format!(
                "{ALLOWED} allows {count} retired words in {file}, which has {hits}: lower it \
                 (`cargo run -p xtask -- words`)"
            ));
        }
    }
    faults
}

fn allowed(text: &str) -> Result<BTreeMap<String, usize>> {
    text.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| {
            let (file, count) = line.rsplit_once(':').context(line.to_owned())?;
            Ok((file.to_owned(), count.parse().with_context(|| line.to_owned())?))
        })
        .collect()
}

fn retired() -> Result<Vec<Retired>> {
    RETIRED
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| {
            let (word, rest) = line.split_once(" -> ").with_context(|| line.to_owned())?;
            let (standard, places) = rest.rsplit_once(" : ").with_context(|| line.to_owned())?;
            let places = places.split(' ').map(|place| {
                Ok(match place {
                    "names" => Place::Names,
                    "types" => Place::Types,
                    "comments" => Place::Comments,
                    "docs" => Place::Docs,
                    _ => bail!("retired-words.txt: `{place}` is no place"),
                })
            });
            Ok(Retired { word: word.to_owned(), standard, places: places.collect::<Result<_>>()? })
        })
        .collect()
}

/// The retired words of each file that has some.
fn found() -> Result<BTreeMap<String, Vec<Hit>>> {
    let retired = retired()?;
    let mut files = Vec::new();
    for folder in FOLDERS {
        collect(Path::new(folder), &mut files)?;
    }
    for entry in fs::read_dir(root())? {
        let name = PathBuf::from(entry?.file_name());
        if name.extension().is_some_and(|e| e == "md") {
            files.push(name);
        }
    }
    let mut found = BTreeMap::new();
    for file in files {
        let source = fs::read_to_string(root().join(&file))?;
        let hits = hits(&retired, &file, &source);
        if !hits.is_empty() {
            found.insert(file.to_string_lossy().into_owned(), hits);
        }
    }
    Ok(found)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(root().join(folder))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        if is_hidden || path.ends_with("target") || EXEMPT.iter().any(|e| path.starts_with(e)) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "rs" || e == "py" || e == "md") {
            files.push(path);
        }
    }
    Ok(())
}

fn hits(retired: &[Retired], file: &Path, source: &str) -> Vec<Hit> {
    let mut hits = Vec::new();
    let mut line = 0;
    let mut find = |line: usize, word: &str, place: Place| {
        let is_it = |r: &&Retired| {
            r.places.contains(&place)
                && if place == Place::Types {
                    r.word == word
                } else {
                    r.word.eq_ignore_ascii_case(word)
                }
        };
        if let Some(r) = retired.iter().find(is_it) {
            hits.push(Hit { line, word: r.word.clone(), standard: r.standard });
        }
    };
    let lines = match file.extension().and_then(|e| e.to_str()) {
        Some("rs") => lexer::rust(source),
        Some("py") => lexer::python(source),
        _ => {
            let text = |text: &str| lexer::Line { text: text.to_owned(), ..Default::default() };
            source.lines().map(text).collect()
        }
    };
    for parts in lines {
        line += 1;
        for (keyword, name) in declared(&parts.code) {
            let words = name_parts(name);
            let place = if words.len() > NAME_PARTS_MAX { Place::Comments } else { Place::Names };
            words.iter().for_each(|word| find(line, word, place));
            if ["struct", "enum", "trait", "type", "class"].contains(&keyword) {
                find(line, name, Place::Types);
            }
        }
        for (text, place) in [(&parts.comment, Place::Comments), (&parts.text, Place::Docs)] {
            text.split(|c: char| !c.is_ascii_alphanumeric())
                .for_each(|word| find(line, word, place));
        }
    }
    hits
}

/// Each item that a line of code declares, with its keyword.
fn declared(code: &str) -> Vec<(&str, &str)> {
    const KEYWORDS: [&str; 11] = [
        "fn",
        "struct",
        "enum",
        "trait",
        "type",
        "mod",
        "const",
        "static",
        "macro_rules",
        "def",
        "class",
    ];
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words: Vec<&str> = code.split(|c| !is_name(c)).filter(|word| !word.is_empty()).collect();
    words
        .windows(2)
        .filter(|pair| KEYWORDS.contains(&pair[0]) && !KEYWORDS.contains(&pair[1]))
        .map(|pair| (pair[0], pair[1]))
        .collect()
}

/// The words of `snake_case`, `CamelCase` and `UPPER_CASE`.
fn name_parts(name: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for part in name.split('_').filter(|part| !part.is_empty()) {
        let bytes = part.as_bytes();
        let mut begin = 0;
        for at in 1..bytes.len() {
            let is_hump = bytes[at].is_ascii_uppercase()
                && (!bytes[at - 1].is_ascii_uppercase()
                    || bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase));
            if is_hump {
                parts.push(&part[begin..at]);
                begin = at;
            }
        }
        parts.push(&part[begin..]);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(file: &str, source: &str) -> usize {
        hits(&retired().expect("the list reads"), Path::new(file), source).len()
    }

    #[test]
    fn names_are_split_into_words() {
        assert_eq!(name_parts("Ip4LookUp"), ["Ip4", "Look", "Up"]);
        assert_eq!(name_parts("TCPFlow"), ["TCP", "Flow"]);
        assert_eq!(name_parts("ERRANDS_MAX"), ["ERRANDS", "MAX"]);
        assert_eq!(name_parts("ask_closer"), ["ask", "closer"]);
    }

    #[test]
    fn a_retired_word_is_found_where_it_is_retired_and_nowhere_else() {
        assert_eq!(count("a.rs", "const ERRANDS_MAX: u32 = 1; // errands\n"), 2);
        assert_eq!(count("a.rs", "f(errands, \"closer\"); // told\n"), 0);
        assert_eq!(count("a.rs", "fn it_is_told() {}\nfn it_is_told_of_each_change() {}\n"), 1);
        assert_eq!(count("a.rs", "struct Room; struct RoomLeft; enum Front {}\n"), 2);
        assert_eq!(count("a.py", "def errand(): # its desk\n    desk = 1\n"), 2);
        assert_eq!(count("a.md", "Errands (see `show errands`) are worker calls.\n"), 2);
    }

    #[test]
    fn a_count_may_only_shrink() {
        let hit = || Hit { line: 7, word: "desk".to_owned(), standard: "dispatcher" };
        let found = |hits: Vec<Hit>| BTreeMap::from([("a.rs".to_owned(), hits)]);
        let allowed = allowed("# head\na.rs:1\n").expect("a list");
        assert!(compare(&found(vec![hit()]), &allowed).is_empty());
        assert_eq!(
            compare(&found(vec![hit()]), &BTreeMap::new()),
            ["a.rs:7: `desk` is retired; say dispatcher"]
        );
        assert_eq!(compare(&found(vec![hit(), hit()]), &allowed).len(), 2);
        let fewer = compare(&BTreeMap::new(), &allowed);
        assert_eq!(fewer.len(), 1);
        assert!(fewer[0].contains("lower it"), "{}", fewer[0]);
    }
}
