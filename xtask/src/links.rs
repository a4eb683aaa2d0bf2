//! Every relative link of a Markdown page leads to a file, and its anchor to a heading there.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};

use crate::metadata::root;

/// Folders whose pages are not ours.
const FOLDERS_LEFT_OUT: [&str; 7] =
    ["target", ".venv", "out", ".git", ".pytest_cache", "node_modules", "corpus"];

/// A link, and the line that it stands on.
pub type Link = (usize, String);

/// Links that lead nowhere, as sentences.
pub fn faults() -> Result<Vec<String>> {
    let mut texts = HashMap::new();
    for page in pages()? {
        texts.insert(page.clone(), fs::read_to_string(root().join(&page))?);
    }
    let exists = |path: &Path| root().join(path).exists();
    let mut faults: Vec<String> =
        texts.iter().flat_map(|(page, text)| check(page, text, &texts, &exists)).collect();
    faults.sort();
    Ok(faults)
}

/// All Markdown pages of ours, relative to the root.
pub fn pages() -> Result<Vec<PathBuf>> {
    let mut pages = Vec::new();
    collect(Path::new(""), &mut pages)?;
    pages.sort();
    Ok(pages)
}

fn collect(folder: &Path, pages: &mut Vec<PathBuf>) -> Result<()> {
    let path = root().join(folder);
    for entry in fs::read_dir(&path).with_context(|| path.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name();
        let path = folder.join(&name);
        if entry.file_type()?.is_dir() {
            if !FOLDERS_LEFT_OUT.iter().any(|left_out| *left_out == name) {
                collect(&path, pages)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    Ok(())
}

/// The faults of one page.
fn check(
    page: &Path,
    text: &str,
    pages: &HashMap<PathBuf, String>,
    exists: &impl Fn(&Path) -> bool,
) -> Vec<String> {
    let mut faults = Vec::new();
    for (line, link) in links(text) {
        // `crate::item` is a link of rustdoc, which checks it.
        if link.contains("://") || link.contains("::") || link.starts_with("mailto:") {
            continue;
        }
        let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
        let target = match file {
            "" => page.to_owned(),
            file => normal(&page.parent().unwrap_or(Path::new("")).join(file)),
        };
        let place = format!("{}:{line}", page.display());
        if !exists(&target) {
            faults.push(format!("{place}: the link {link} leads to no file"));
        } else if !anchor.is_empty()
            && let Some(text) = pages.get(&target)
            && !anchors(text).contains(anchor)
        {
            faults.push(format!("{place}: the link {link} leads to no heading"));
        }
    }
    faults
}

/// A path without `.` and `..`.
pub fn normal(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut normal, component| {
        match component {
            Component::CurDir => {}
            Component::ParentDir if normal.pop() => {}
            component => normal.push(component),
        }
        normal
    })
}

/// Text without code blocks and code in lines: a space stands for each of their characters.
pub fn without_code(text: &str) -> String {
    let mut out = String::new();
    let (mut is_block, mut is_code) = (false, false);
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with("```") {
            is_block = !is_block;
            is_code = false;
            out.extend(line.chars().map(|c| if c == '\n' { c } else { ' ' }));
            continue;
        }
        if line.trim().is_empty() {
            is_code = false;
        }
        for character in line.chars() {
            match character {
                '\n' => out.push('\n'),
                _ if is_block => out.push(' '),
                '`' => {
                    is_code = !is_code;
                    out.push(' ');
                }
                _ if is_code => out.push(' '),
                character => out.push(character),
            }
        }
    }
    out
}

/// All links of a page; the text of a link may go over several lines.
pub fn links(text: &str) -> Vec<Link> {
    let text = without_code(text);
    let mut links = Vec::new();
    let mut from = 0;
    while let Some(found) = text[from..].find("](") {
        let start = from + found + 2;
        let Some(length) = text[start..].find([')', ' ', '\n']) else { break };
        if length > 0 {
            let line = text[..start].matches('\n').count() + 1;
            links.push((line, text[start..start + length].to_owned()));
        }
        from = start + length;
    }
    links
}

/// Anchors of a page's headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut is_block = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_block = !is_block;
        }
        let title = line.trim_start_matches('#');
        if is_block || title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let base = anchor(title);
        let same = (1..).map(|number| format!("{base}-{number}"));
        let free = std::iter::once(base.clone()).chain(same).find(|name| !anchors.contains(name));
        anchors.extend(free);
    }
    anchors
}

fn anchor(title: &str) -> String {
    let letter = |character: char| match character {
        ' ' => Some('-'),
        '-' | '_' => Some(character),
        character if character.is_alphanumeric() => character.to_lowercase().next(),
        _ => None,
    };
    title.trim().chars().filter_map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Vec<String> {
        let other = PathBuf::from("docs/other.md");
        let page = PathBuf::from("docs/guide/page.md");
        let pages = HashMap::from([
            (other.clone(), "# Other\n\n## Words, and `code`\n\n## Twice\n\n## Twice\n".to_owned()),
            (page.clone(), text.to_owned()),
        ]);
        check(&page, text, &pages, &|path| path == other || path == page)
    }

    #[test]
    fn a_link_to_a_file_and_a_heading_is_followed() {
        let text = "# Page\n[a](../other.md) [b](../other.md#words-and-code) [c](#page) \
                    [d](../other.md#twice-1) [e](https://x.example/y)\n";
        assert_eq!(said(text), [""; 0]);
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found_with_its_line() {
        assert_eq!(
            said("\n[a](gone.md)\n[b](../other.md#gone) [c](#gone)\n"),
            [
                "docs/guide/page.md:2: the link gone.md leads to no file",
                "docs/guide/page.md:3: the link ../other.md#gone leads to no heading",
                "docs/guide/page.md:3: the link #gone leads to no heading",
            ]
        );
    }

    #[test]
    fn code_has_no_links() {
        assert_eq!(said("`[a](gone.md)`\n```\n[b](gone.md)\n```\n"), [""; 0]);
    }
}
