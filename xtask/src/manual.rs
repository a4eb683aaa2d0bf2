//! Manual pages in roff, from pages of the reference that are made from declarations.
//!
//! The pages have headings, paragraphs, tables of two columns, code blocks and code in lines: that
//! much of Markdown is read.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::metadata::root;

/// A page of the reference, and the manual page that it becomes.
struct Page {
    source: &'static str,
    name: &'static str,
    section: u8,
    what: &'static str,
    see_also: &'static str,
}

const PAGES: [Page; 3] = [
    Page {
        source: "docs/reference/cli.md",
        name: "quiver-cli",
        section: 7,
        what: "commands of the Quiver router",
        see_also: "quiverctl(1), quiver.conf(5), quiver-counters(7), quiverd(8)",
    },
    Page {
        source: "docs/reference/startup.md",
        name: "quiver.conf",
        section: 5,
        what: "start-up file of the Quiver router, /etc/quiver/startup.conf",
        see_also: "quiverctl(1), quiver-cli(7), quiverd(8)",
    },
    Page {
        source: "docs/reference/counters.md",
        name: "quiver-counters",
        section: 7,
        what: "counters and reasons for drops of the Quiver router",
        see_also: "quiverctl(1), quiver-cli(7), quiverd(8)",
    },
];

/// Write all pages into a folder, as `NAME.SECTION`.
pub fn write(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    for page in &PAGES {
        let text = fs::read_to_string(root().join(page.source)).context(page.source)?;
        let file = folder.join(format!("{}.{}", page.name, page.section));
        fs::write(&file, render(page, &text)).with_context(|| file.display().to_string())?;
    }
    Ok(())
}

/// The page in roff: the macros of man(7).
fn render(page: &Page, markdown: &str) -> String {
    let name = escape(page.name);
    let mut out = format!(
        ".TH \"{}\" {} \"\" \"Quiver {}\" \"Quiver\"\n.nh\n.ad l\n.SH NAME\n{name} \\- {}\n\
         .SH DESCRIPTION\n",
        name.to_uppercase(),
        page.section,
        env!("CARGO_PKG_VERSION"),
        escape(page.what),
    );
    let (mut is_code, mut is_table, mut is_paragraph) = (false, false, false);
    for line in markdown.lines() {
        if line.starts_with("```") {
            out.push_str(if is_code { ".fi\n.RE\n" } else { ".PP\n.RS 4\n.nf\n" });
            (is_code, is_paragraph) = (!is_code, false);
        } else if is_code {
            let _ = writeln!(out, "{}", text_line(&escape(line)));
        } else if let Some(cells) = line.strip_prefix("| ") {
            // The first row names the columns, the second one is the rule below it.
            if is_table && !cells.starts_with("---") {
                row(&mut out, cells);
            }
            (is_table, is_paragraph) = (true, false);
        } else if line.starts_with("# ") {
            is_paragraph = false;
        } else if let Some(title) = line.strip_prefix("## ") {
            let _ = writeln!(out, ".SH \"{}\"", inline(title).to_uppercase());
            (is_table, is_paragraph) = (false, false);
        } else if let Some(title) = line.strip_prefix("### ") {
            let _ = writeln!(out, ".SS \"{}\"", inline(title));
            (is_table, is_paragraph) = (false, false);
        } else if let Some(item) = line.strip_prefix("- ") {
            let _ = writeln!(out, ".IP \\(bu 2\n{}", text_line(&inline(item)));
            (is_table, is_paragraph) = (false, true);
        } else if line.is_empty() {
            (is_table, is_paragraph) = (false, false);
        } else {
            if !is_paragraph {
                out.push_str(".PP\n");
            }
            let _ = writeln!(out, "{}", text_line(&inline(line)));
            (is_table, is_paragraph) = (false, true);
        }
    }
    let _ = writeln!(out, ".SH \"SEE ALSO\"\n{}", escape(page.see_also));
    out
}

/// A row of a table is a tagged paragraph: the first cell is the tag.
fn row(out: &mut String, cells: &str) {
    let cells = cells.replace("\\|", "\u{0}");
    let mut cells = cells.split('|').map(|cell| inline(&cell.trim().replace('\u{0}', "|")));
    let tag = cells.next().unwrap_or_default();
    let text: Vec<String> = cells.filter(|cell| !cell.is_empty()).collect();
    let _ = writeln!(out, ".TP\n{}\n{}", text_line(&tag), text_line(&text.join(": ")));
}

/// Code in a line becomes bold.
fn inline(text: &str) -> String {
    let mut out = String::new();
    for (index, part) in text.split('`').enumerate() {
        let part = escape(part);
        match index % 2 {
            1 => {
                let _ = write!(out, "\\fB{part}\\fR");
            }
            _ => out.push_str(&part),
        }
    }
    out
}

/// Characters that roff reads otherwise.
fn escape(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-").replace('"', "\\(dq").replace('`', "\\(ga")
}

/// A line that begins with a point or an apostrophe is text still.
fn text_line(line: &str) -> String {
    let is_request = line.starts_with(['.', '\'']);
    if is_request { format!("\\&{line}") } else { line.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(markdown: &str) -> String {
        let page = &PAGES[0];
        let text = render(page, markdown);
        let (_, body) = text.split_once(".SH DESCRIPTION\n").unwrap();
        body.split_once(".SH \"SEE ALSO\"").unwrap().0.to_owned()
    }

    #[test]
    fn headings_paragraphs_and_code_become_macros() {
        assert_eq!(
            rendered(
                "# Commands\n\nA `word` is cut.\n\n## Bonds\n\n### bond add\n\n```\na -b\n.c\n```\n"
            ),
            ".PP\nA \\fBword\\fR is cut.\n.SH \"BONDS\"\n.SS \"bond add\"\n.PP\n.RS 4\n.nf\n\
             a \\-b\n\\&.c\n.fi\n.RE\n"
        );
    }

    #[test]
    fn an_item_of_a_list_begins_with_a_bullet() {
        assert_eq!(rendered("- rx\n- tx\n"), ".IP \\(bu 2\nrx\n.IP \\(bu 2\ntx\n");
    }

    #[test]
    fn a_row_is_a_tagged_paragraph_and_a_bar_in_a_cell_stays() {
        assert_eq!(
            rendered("| word | is |\n| --- | --- |\n| `on\\|off` | a switch |\n| `x` | y |\n"),
            ".TP\n\\fBon|off\\fR\na switch\n.TP\n\\fBx\\fR\ny\n"
        );
    }
}
