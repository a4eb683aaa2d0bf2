//! Splits Rust and Python source into code, comments and texts, line by line.

/// One line of a source file, in its three parts.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// What the compiler reads, texts left out.
    pub code: String,
    /// Comments.
    pub comment: String,
    /// The contents of string literals.
    pub text: String,
}

/// Where the next character of a Rust file stands.
#[derive(Clone, Copy)]
enum State {
    Code,
    LineComment,
    /// This many `/*` are open.
    BlockComment(usize),
    /// A string literal; raw ones end with a quote and this many `#`.
    Text {
        raw_hashes: Option<usize>,
    },
}

/// The lines of a Rust file.
pub fn rust(source: &str) -> Vec<Line> {
    let characters: Vec<char> = source.chars().collect();
    let mut lines = vec![Line::default()];
    let mut state = State::Code;
    let mut at = 0;
    while at < characters.len() {
        let rest = &characters[at..];
        if rest[0] == '\n' {
            if matches!(state, State::LineComment) {
                state = State::Code;
            }
            lines.push(Line::default());
            at += 1;
            continue;
        }
        let Some(line) = lines.last_mut() else { break };
        let (next, width) = match state {
            State::Code => begins(rest, characters[..at].last().copied()),
            State::LineComment => (state, 1),
            State::BlockComment(open) => match rest {
                ['/', '*', ..] => (State::BlockComment(open + 1), 2),
                ['*', '/', ..] if open == 1 => (State::Code, 2),
                ['*', '/', ..] => (State::BlockComment(open - 1), 2),
                _ => (state, 1),
            },
            State::Text { raw_hashes: None } => match rest {
                ['\\', _, ..] => (state, 2),
                ['"', ..] => (State::Code, 1),
                _ => (state, 1),
            },
            State::Text { raw_hashes: Some(hashes) } => {
                let closes = rest[0] == '"'
                    && rest[1..].iter().take_while(|c| **c == '#').take(hashes).count() == hashes;
                if closes { (State::Code, 1 + hashes) } else { (state, 1) }
            }
        };
        let part = match state {
            State::Code => &mut line.code,
            State::LineComment | State::BlockComment(_) => &mut line.comment,
            State::Text { .. } => &mut line.text,
        };
        // An escape such as `\n` parts two words.
        let is_escape = matches!(state, State::Text { raw_hashes: None }) && rest[0] == '\\';
        let taken = &rest[..width.min(rest.len())];
        if is_escape {
            part.push(' ');
        } else {
            part.extend(taken.iter().filter(|c| **c != '\n'));
        }
        if is_escape && taken.get(1) == Some(&'\n') {
            lines.push(Line::default());
        }
        state = next;
        at += width;
    }
    lines
}

/// What begins at `rest`, in code, and how many characters begin it.
fn begins(rest: &[char], before: Option<char>) -> (State, usize) {
    match rest {
        ['/', '/', ..] => (State::LineComment, 2),
        ['/', '*', ..] => (State::BlockComment(1), 2),
        ['"', ..] => (State::Text { raw_hashes: None }, 1),
        ['r', after @ ..] if !before.is_some_and(|c| c.is_alphanumeric() && c != 'b') => {
            let hashes = after.iter().take_while(|c| **c == '#').count();
            if after.get(hashes) == Some(&'"') {
                (State::Text { raw_hashes: Some(hashes) }, 2 + hashes)
            } else {
                (State::Code, 1)
            }
        }
        // A character, as against a lifetime.
        ['\'', '\\', _, ..] => {
            let end = rest[3..].iter().position(|c| *c == '\'').unwrap_or(0);
            (State::Code, 4 + end)
        }
        ['\'', _, '\'', ..] => (State::Code, 3),
        _ => (State::Code, 1),
    }
}

/// The lines of a Python file: comments and code; texts stay in the code.
pub fn python(source: &str) -> Vec<Line> {
    source
        .lines()
        .map(|line| {
            let (code, comment) = line.split_once('#').unwrap_or((line, ""));
            Line { code: code.to_owned(), comment: comment.to_owned(), text: String::new() }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_texts_and_code_are_told_apart() {
        let lines =
            rust("let a = \"// no // comment\"; // \"no text\"\n/* one\ntwo */ b('\"', 'x');");
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[0].text.trim_end_matches('"'), "// no // comment");
        assert_eq!(lines[0].comment, " \"no text\"");
        assert_eq!(lines[1].comment, " one");
        assert_eq!(lines[2].code, " b('\"', 'x');");
    }

    #[test]
    fn raw_texts_end_with_their_hashes() {
        let lines = rust("f(r#\"a \"quoted\" word\"#, 'a'); // c");
        assert_eq!(lines[0].text.trim_end_matches(['"', '#']), "a \"quoted\" word");
        assert_eq!(lines[0].comment, " c");
    }

    #[test]
    fn lines_are_counted_through_texts_of_several_lines() {
        let source = "const A: &str = \"one \\\n    two\n three\"; // four\nfn five() {}\n";
        let lines = rust(source);
        assert_eq!(lines.len(), source.lines().count() + 1);
        assert_eq!(lines[2].comment, " four");
        assert_eq!(lines[3].code, "fn five() {}");
    }
}
