//! A tree as YAML: keys in their order, two spaces a level, comments where they stood. A value that
//! fits into a line stands in one.

use std::fmt::Write as _;

use super::comments::{Comments, Remarks, identity_of, normal};
use super::tree::{Map, Scalar, Tree};

/// A map or list that fits into so many columns stands in one line.
const LINE_COLUMNS_MAX: usize = 80;

/// The text of a document.
pub(crate) fn emit(map: &Map, comments: &Comments) -> String {
    let mut out = String::new();
    comment_lines(&comments.head, 0, &mut out);
    if !comments.head.is_empty() {
        out.push('\n');
    }
    for (at, (key, value)) in map.members.iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        member(&key.0, value, &comments.root, 0, &mut out);
    }
    comment_lines(&comments.foot, 0, &mut out);
    out
}

fn comment_lines(lines: &[String], level: usize, out: &mut String) {
    for line in lines {
        indent(level, out);
        let _ = writeln!(out, "#{}", line.trim_end());
    }
}

fn indent(level: usize, out: &mut String) {
    out.extend(std::iter::repeat_n("  ", level));
}

/// A key with its value, `remarks` being those of the map that it is in.
fn member(key: &str, value: &Tree, remarks: &Remarks, level: usize, out: &mut String) {
    let own = remarks.inside.get(&normal(key));
    if let Some(own) = own {
        comment_lines(&own.above, level, out);
    }
    indent(level, out);
    key_text(key, out);
    out.push(':');
    put(value, own, level, out);
}

/// A value behind its key or dash.
fn put(value: &Tree, own: Option<&Remarks>, level: usize, out: &mut String) {
    let none = Remarks::default();
    let own = own.unwrap_or(&none);
    let used = out.len() - out.rfind('\n').map_or(0, |at| at + 1);
    if let Some(line) = in_a_line(value, own, LINE_COLUMNS_MAX.saturating_sub(used + 1)) {
        out.push(' ');
        out.push_str(&line);
        return end_line(own, out);
    }
    end_line(own, out);
    match value {
        Tree::Scalar(_) => {}
        Tree::Map(map) => {
            map.members.iter().for_each(|(key, value)| member(&key.0, value, own, level + 1, out));
        }
        Tree::List(items) => items.iter().for_each(|value| item(value, own, level + 1, out)),
    }
}

fn item(value: &Tree, remarks: &Remarks, level: usize, out: &mut String) {
    let own = remarks.inside.get(&identity_of(value));
    if let Some(own) = own {
        comment_lines(&own.above, level, out);
    }
    let start = out.len() + 2 * level;
    let none = Remarks::default();
    let inside = own.unwrap_or(&none);
    let room = LINE_COLUMNS_MAX.saturating_sub(2 * level + 2);
    match (value, in_a_line(value, inside, room)) {
        (Tree::Map(map), None) if inside.behind.is_none() => {
            // The first key stands behind the dash.
            map.members
                .iter()
                .for_each(|(key, value)| member(&key.0, value, inside, level + 1, out));
            out.replace_range(start..start + 2, "- ");
        }
        _ => {
            indent(level, out);
            out.push('-');
            put(value, own, level, out);
        }
    }
}

/// The comment behind a line, and its end.
fn end_line(own: &Remarks, out: &mut String) {
    if let Some(comment) = &own.behind {
        let _ = write!(out, " #{}", comment.trim_end());
    }
    out.push('\n');
}

/// A value in one line, if it may and fits.
fn in_a_line(value: &Tree, own: &Remarks, columns: usize) -> Option<String> {
    let may = match value {
        Tree::Scalar(_) => true,
        Tree::Map(map) => map.members.is_empty() || !map.is_section && own.inside.is_empty(),
        Tree::List(_) => own.inside.is_empty(),
    };
    if !may {
        return None;
    }
    let mut line = String::new();
    flow(value, &mut line)?;
    (matches!(value, Tree::Scalar(_)) || line.len() <= columns).then_some(line)
}

fn flow(value: &Tree, out: &mut String) -> Option<()> {
    match value {
        Tree::Scalar(Scalar::Text(text)) => scalar_text(text, out),
        Tree::Scalar(Scalar::Number(text)) => out.push_str(text),
        Tree::Scalar(Scalar::Truth(truth)) => {
            let _ = write!(out, "{truth}");
        }
        // What has keys is easier to read below each other.
        Tree::List(items) if items.iter().any(|item| matches!(item, Tree::Map(_))) => return None,
        Tree::List(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                flow(item, out)?;
            }
            out.push(']');
        }
        Tree::Map(map) if map.is_section && !map.members.is_empty() => return None,
        Tree::Map(map) => {
            out.push('{');
            for (at, (key, value)) in map.members.iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                key_text(&key.0, out);
                out.push_str(": ");
                flow(value, out)?;
            }
            out.push('}');
        }
    }
    Some(())
}

/// A key: a number is one without quotation marks.
fn key_text(key: &str, out: &mut String) {
    let is_number = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_digit());
    match is_number && (key.len() == 1 || !key.starts_with('0')) {
        true => out.push_str(key),
        false => scalar_text(key, out),
    }
}

/// A text, in quotation marks when it would be read as something else.
pub(crate) fn scalar_text(text: &str, out: &mut String) {
    if is_plain(text) {
        return out.push_str(text);
    }
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if is_hidden(c) => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Is it a character that YAML does not print (YAML 1.2 §5.1), or takes for the end of a line?
fn is_hidden(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// Words that some reader of YAML takes for something else than text.
const WORDS: [&str; 13] =
    ["null", "~", "true", "false", "yes", "no", "on", "off", "y", "n", "<<", "=", "..."];

fn is_plain(text: &str) -> bool {
    let Some(first) = text.chars().next() else { return false };
    let is_ascii_text = text.chars().all(|c| !is_hidden(c) && !",[]{}\"\\".contains(c));
    let is_open = !"-?:#&*!|>'%@` ".contains(first) && !text.ends_with([' ', ':']);
    let lower = text.to_ascii_lowercase();
    is_ascii_text
        && is_open
        && !text.contains(": ")
        && !text.contains(" #")
        && !WORDS.contains(&lower.as_str())
        && !is_number(&lower)
}

/// Is it a number, a time or a date, for readers of YAML 1.1 or 1.2?
fn is_number(text: &str) -> bool {
    let bytes = text.as_bytes();
    if !matches!(bytes[0], b'0'..=b'9' | b'+' | b'.') {
        return false;
    }
    let is_time = text.contains(':')
        && !text.contains("::")
        && text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.' | b'_'));
    let is_date = bytes.len() >= 8
        && bytes.get(4) == Some(&b'-')
        && bytes[..4].iter().all(u8::is_ascii_digit);
    is_time
        || is_date
        || text.starts_with("0x")
        || text.starts_with("0o")
        || text.starts_with("0b")
        || text.replace('_', "").parse::<f64>().is_ok()
        || matches!(text, ".inf" | ".nan" | "+.inf")
}

#[cfg(test)]
mod tests {
    use super::super::parse::{NodeValue, parse};
    use super::*;

    #[test]
    fn texts_that_would_be_something_else_stand_in_quotation_marks() {
        for text in [
            "",
            "1",
            "0x10",
            "1e3",
            "on",
            "No",
            "null",
            "a: b",
            "a #b",
            ":",
            "::",
            "2001:db8::",
            "12:30:45:50:50:50",
            "2001-01-01",
            "- a",
            "[a]",
            "a,b",
            "'a'",
            "\"a\"",
            "back\\",
            " a",
        ] {
            let mut out = String::new();
            scalar_text(text, &mut out);
            assert!(out.starts_with('"'), "{text}");
        }
        for text in ["e0", "10.0.0.1", "10.0.0.0/8", "2001:db8::1", "02:fe:00:00:00:01", "1.5M"] {
            let mut out = String::new();
            scalar_text(text, &mut out);
            assert_eq!(out, text);
        }
    }

    #[test]
    fn every_text_is_read_as_it_was_written() {
        bolero::check!().with_type::<String>().for_each(|text| {
            for form in ["value: ", "value: [", "value: {a: "] {
                let mut out = form.to_owned();
                scalar_text(text, &mut out);
                out.push_str(if form.ends_with('[') { "]" } else { "" });
                out.push_str(if form.contains('{') { "}" } else { "" });
                let root = parse(&out).unwrap_or_else(|e| panic!("{out:?}: {e:?}")).root.unwrap();
                let mut value = root.value;
                loop {
                    value = match value {
                        NodeValue::Map(mut members) => members.remove(0).1.value,
                        NodeValue::List(mut items) => items.remove(0).value,
                        NodeValue::Scalar(read, _) => {
                            assert_eq!(&read, text, "{out:?}");
                            break;
                        }
                    };
                }
            }
        });
    }
}
