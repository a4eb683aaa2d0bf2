//! The book: the pages that `docs/SUMMARY.md` names, laid out for mdBook.
//!
//! Pages stay where they are in the repository, beside the code that they are about. mdBook wants
//! one folder, so they are copied into one. A link to a file that is not in the book becomes text.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::links::{self, normal, pages};
use crate::metadata::root;

const SUMMARY: &str = "docs/SUMMARY.md";
const SETTINGS: &str = "docs/book.toml";
/// Pages below these folders are in the book.
const FOLDERS: [&str; 7] = ["docs", "features", "drivers", "bin", "clients", "lab", "packaging"];
/// The line of the summary in whose place stand all pages below a folder.
const ALL_OF: &str = "<!-- all of ";

/// The summary, with a line for each page of the folders that it names whole.
fn summary() -> Result<String> {
    let text = fs::read_to_string(root().join(SUMMARY)).context(SUMMARY)?;
    let explicit = named(&text);
    let mut out = String::new();
    for line in text.lines() {
        let Some((indent, folder)) = line.split_once(ALL_OF) else {
            let _ = writeln!(out, "{line}");
            continue;
        };
        let folder = folder.trim_end_matches(" -->");
        let direct = |page: &PathBuf| {
            page.strip_prefix(folder).is_ok_and(|rest| rest.components().count() <= 2)
        };
        let others = pages()?.into_iter().filter(direct).filter(|page| !explicit.contains(page));
        for page in others {
            let title = title(&fs::read_to_string(root().join(&page))?);
            let _ = writeln!(out, "{indent}- [{title}](../{})", page.display());
        }
    }
    Ok(out)
}

/// The first heading, without marks.
fn title(text: &str) -> String {
    let heading = text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or("?");
    heading.replace(['`', '[', ']'], "")
}

/// The pages that a summary names, relative to the root.
fn named(summary: &str) -> BTreeSet<PathBuf> {
    links::links(summary).into_iter().map(|(_, link)| from_docs(&link)).collect()
}

/// A link of the summary, which stands in `docs`.
fn from_docs(link: &str) -> PathBuf {
    normal(&Path::new("docs").join(link))
}

/// Pages that should be in the book and are not.
pub fn faults() -> Result<Vec<String>> {
    let named = named(&summary()?);
    let is_wanted = |page: &PathBuf| {
        page != Path::new(SUMMARY) && FOLDERS.iter().any(|folder| page.starts_with(folder))
    };
    let missing = pages()?.into_iter().filter(|page| is_wanted(page) && !named.contains(page));
    Ok(missing.map(|page| format!("{SUMMARY} does not name {}", page.display())).collect())
}

/// Lay out the book in a folder, for `mdbook build`.
pub fn write(folder: &Path) -> Result<()> {
    let source = folder.join("src");
    if source.exists() {
        fs::remove_dir_all(&source)?;
    }
    fs::create_dir_all(&source).with_context(|| source.display().to_string())?;
    fs::copy(root().join(SETTINGS), folder.join("book.toml")).context(SETTINGS)?;
    let summary = summary()?;
    let named = named(&summary);
    for page in &named {
        let text =
            fs::read_to_string(root().join(page)).with_context(|| page.display().to_string())?;
        let here = page.parent().unwrap_or(Path::new(""));
        let (text, pictures) = relinked(&text, here, &named);
        for picture in pictures {
            copy(&picture, &source)?;
        }
        let file = source.join(page);
        fs::create_dir_all(file.parent().unwrap_or(&source))?;
        fs::write(&file, text).with_context(|| file.display().to_string())?;
    }
    fs::write(source.join("SUMMARY.md"), from_root(&summary))?;
    Ok(())
}

fn copy(file: &Path, source: &Path) -> Result<()> {
    let to = source.join(file);
    fs::create_dir_all(to.parent().unwrap_or(source))?;
    fs::copy(root().join(file), to).with_context(|| file.display().to_string())?;
    Ok(())
}

/// The summary with links from the root.
fn from_root(summary: &str) -> String {
    replaced(summary, |_, link| Some(from_docs(link).display().to_string()))
}

/// A page's text with only links that lead somewhere in the book, and the pictures that it shows.
fn relinked(text: &str, here: &Path, named: &BTreeSet<PathBuf>) -> (String, Vec<PathBuf>) {
    let mut pictures = Vec::new();
    let text = replaced(text, |is_picture, link| {
        let file = link.split('#').next().unwrap_or_default();
        let target = normal(&here.join(file));
        if is_picture && !link.contains("://") {
            pictures.push(target);
            return Some(link.to_owned());
        }
        let stays = file.is_empty() || link.contains("://") || named.contains(&target);
        stays.then(|| link.to_owned())
    });
    (text, pictures)
}

/// A text with other links: `other` is given whether the link is a picture's, and the link. Without
/// a link, its text stays.
fn replaced(text: &str, mut other: impl FnMut(bool, &str) -> Option<String>) -> String {
    // Code has no links; each of its characters is a space there.
    let bare: Vec<char> = links::without_code(text).chars().collect();
    let full: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut opened = Vec::new();
    let mut at = 0;
    while at < full.len() {
        if bare[at] == '[' {
            opened.push(out.len());
        }
        let link = link_at(&bare, at).map(|end| full[at + 2..end].iter().collect::<String>());
        match (link, opened.last().copied()) {
            (Some(link), Some(open)) => {
                opened.pop();
                let is_picture = out[..open].ends_with('!');
                match other(is_picture, &link) {
                    Some(other) => {
                        let _ = write!(out, "]({other})");
                    }
                    None => {
                        out.remove(open);
                    }
                }
                at += link.chars().count() + 3;
            }
            _ => {
                out.push(full[at]);
                at += 1;
            }
        }
    }
    out
}

/// Where the link ends that begins with `](` here.
fn link_at(text: &[char], at: usize) -> Option<usize> {
    let is_link = text[at] == ']' && text.get(at + 1) == Some(&'(');
    let end = is_link.then(|| text[at..].iter().position(|c| matches!(c, ')' | '\n')))??;
    (text[at + end] == ')').then_some(at + end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_pages_of_the_book_stay_and_others_become_text() {
        let named = BTreeSet::from([PathBuf::from("docs/guide/switch.md")]);
        let text = "[a](switch.md#ports) [b](../../bin/main.rs) `[c](x.md)`\n\
                    ![d](picture.svg) [e](https://x.example/) [f](#here)\n";
        let (text, pictures) = relinked(text, Path::new("docs/guide"), &named);
        assert_eq!(
            text,
            "[a](switch.md#ports) b `[c](x.md)`\n\
             ![d](picture.svg) [e](https://x.example/) [f](#here)\n"
        );
        assert_eq!(pictures, [PathBuf::from("docs/guide/picture.svg")]);
    }

    #[test]
    fn the_summary_has_links_from_the_root() {
        assert_eq!(
            from_root("- [A](guide/a.md)\n- [B](../README.md)\n"),
            "- [A](docs/guide/a.md)\n- [B](README.md)\n"
        );
    }
}
