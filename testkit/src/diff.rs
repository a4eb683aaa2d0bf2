//! How two frames differ, for people.

use std::fmt::Write as _;

use crate::fields::field_at;

/// Differing bytes that are named one by one.
const NAMED_MAX: usize = 16;
/// Bytes in a line of a hex dump.
const LINE_BYTES: usize = 16;

/// Bytes in hexadecimal, sixteen in a line with their offset.
pub fn hex(bytes: &[u8]) -> String {
    marked(bytes, |_| false)
}

/// As [`hex`], with the bytes that `differs` says in brackets.
fn marked(bytes: &[u8], differs: impl Fn(usize) -> bool) -> String {
    let mut out = String::new();
    for (line, chunk) in bytes.chunks(LINE_BYTES).enumerate() {
        let _ = write!(out, "    {:04x} ", line * LINE_BYTES);
        for (column, byte) in chunk.iter().enumerate() {
            let (open, close) =
                if differs(line * LINE_BYTES + column) { ('[', ']') } else { (' ', ' ') };
            let _ = write!(out, "{open}{byte:02x}{close}");
        }
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
    }
    out
}

/// What is wrong with a frame: which fields differ and how, then both in hexadecimal. `None` when
/// nothing is.
pub fn difference(expected: &[u8], actual: &[u8]) -> Option<String> {
    if expected == actual {
        return None;
    }
    let mut out = String::new();
    if expected.len() != actual.len() {
        let _ = writeln!(out, "  {} bytes expected, {} bytes sent", expected.len(), actual.len());
    }
    let differs = |at: usize| expected.get(at) != actual.get(at);
    let both = expected.len().min(actual.len());
    let mut named = 0;
    let mut at = 0;
    while at < both {
        if !differs(at) {
            at += 1;
            continue;
        }
        let field = field_at(expected, at);
        let end = field.as_ref().map_or(at + 1, |f| f.end.min(both));
        let start = field.as_ref().map_or(at, |f| f.start);
        let name = field.map_or_else(|| "payload".to_owned(), |f| f.name);
        if named < NAMED_MAX {
            let _ = writeln!(
                out,
                "  {name} (byte {start}): expected {}, sent {}",
                run(&expected[start..end]),
                run(&actual[start..end])
            );
        }
        named += 1;
        at = end;
    }
    if named > NAMED_MAX {
        let _ = writeln!(out, "  … and {} more differences", named - NAMED_MAX);
    }
    let _ = write!(
        out,
        "  expected:\n{}  sent:\n{}",
        marked(expected, differs),
        marked(actual, differs)
    );
    Some(out)
}

/// A few bytes in hexadecimal without spaces.
fn run(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_frames_have_no_difference() {
        assert_eq!(difference(b"same", b"same"), None);
    }

    #[test]
    fn a_difference_names_the_field_and_marks_the_bytes() {
        let mut frame = vec![0x02; 12];
        frame.extend([
            0x08, 0x00, 0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ]);
        let mut other = frame.clone();
        other[22] = 63;
        let text = difference(&frame, &other).expect("differs");
        assert!(text.contains("ip4 time to live (byte 22): expected 40, sent 3f"), "{text}");
        assert!(text.contains("[3f]"), "{text}");
        other.pop();
        let text = difference(&frame, &other).expect("differs");
        assert!(text.contains("34 bytes expected, 33 bytes sent"), "{text}");
    }
}
