//! `COMMAND | include TEXT`: what is left of an answer's lines.

use crate::error::{Refusal, either, printable};
use crate::job::{Progress, Sink};
use crate::output::Output;
use crate::words::Word;

/// Filters of one command at most.
const FILTERS_MAX: usize = 8;

/// One filter of lines.
#[derive(Clone, Debug, PartialEq)]
enum Filter {
    /// Lines with this text.
    Include(String),
    /// Lines without this text.
    Exclude(String),
    /// All lines from the first with this text on.
    Begin { text: String, begun: bool },
    /// How many lines there are.
    Count(u64),
}

/// Several filters, one behind the other, of an answer that comes in pieces.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Filters {
    filters: Vec<Filter>,
    /// The beginning of a line whose end has not come.
    cut: String,
}

const NAMES: [&str; 4] = ["include", "exclude", "begin", "count"];

/// Where the first filter of a command begins: a `|` for itself, outside of braces.
pub(crate) fn pipe_of(line: &str, words: &[Word]) -> Option<usize> {
    let mut open = 0usize;
    words.iter().position(|word| {
        if word.quoted || word.end - word.start != 1 {
            return false;
        }
        match line.as_bytes()[word.start as usize] {
            b'{' => open += 1,
            b'}' => open = open.saturating_sub(1),
            b'|' => return open == 0,
            _ => {}
        }
        false
    })
}

impl Filters {
    /// Read what stands from the first `|` of `words` on.
    pub(crate) fn read(line: &str, words: &[Word], pipe: usize) -> Result<Filters, Refusal> {
        let mut filters = Filters::default();
        let is_pipe = |word: &Word| !word.quoted && word.text(line) == "|";
        let mut at = pipe;
        while at < words.len() {
            let end = (at + 1..words.len()).find(|at| is_pipe(&words[*at])).unwrap_or(words.len());
            if filters.filters.len() == FILTERS_MAX {
                return Err(Refusal::new(format!("a command has at most {FILTERS_MAX} filters")));
            }
            filters.filters.push(read_one(line, words, at + 1, end)?);
            at = end;
        }
        Ok(filters)
    }

    /// What is left of a piece of text.
    pub(crate) fn pass(&mut self, text: &str) -> String {
        let mut left = String::new();
        let mut rest = text;
        while let Some(end) = rest.find('\n') {
            let (line, behind) = rest.split_at(end + 1);
            rest = behind;
            if self.cut.is_empty() {
                self.line(line, &mut left);
            } else {
                let whole = std::mem::take(&mut self.cut) + line;
                self.line(&whole, &mut left);
            }
        }
        self.cut.push_str(rest);
        left
    }

    /// What is left when the answer has ended.
    pub(crate) fn end(&mut self, text: &str) -> String {
        let mut left = self.pass(text);
        let cut = std::mem::take(&mut self.cut);
        if !cut.is_empty() {
            self.line(&cut, &mut left);
        }
        for at in 0..self.filters.len() {
            if let Filter::Count(lines) = self.filters[at] {
                self.line_from(
                    at + 1,
                    &format!("{lines} line{}\n", if lines == 1 { "" } else { "s" }),
                    &mut left,
                );
            }
        }
        left
    }

    fn line(&mut self, line: &str, left: &mut String) {
        self.line_from(0, line, left);
    }

    fn line_from(&mut self, first: usize, line: &str, left: &mut String) {
        for filter in &mut self.filters[first..] {
            match filter {
                Filter::Include(text) if !line.contains(text.as_str()) => return,
                Filter::Exclude(text) if line.contains(text.as_str()) => return,
                Filter::Include(_) | Filter::Exclude(_) => {}
                Filter::Begin { text, begun } => {
                    *begun |= line.contains(text.as_str());
                    if !*begun {
                        return;
                    }
                }
                Filter::Count(lines) => {
                    *lines += 1;
                    return;
                }
            }
        }
        left.push_str(line);
    }
}

/// The filter between two pipes: its name, and a text.
fn read_one(line: &str, words: &[Word], from: usize, end: usize) -> Result<Filter, Refusal> {
    let at = |index: usize| index as u32 + 1;
    let Some(name) = (from < end).then(|| words[from].text(line)) else {
        return Err(Refusal::new("nothing stands behind |").at_word(at(from), "").remedy(
            "one of include, exclude, begin and count, as in `show errors | include ttl`",
        ));
    };
    let known: Vec<&str> = NAMES.into_iter().filter(|known| known.starts_with(name)).collect();
    let [known] = known.as_slice() else {
        let refusal = Refusal::new(format!("there is no filter '{}'", printable(name)))
            .at_word(at(from), name);
        return Err(refusal.remedy(format!("{} stands behind |", either(&NAMES))));
    };
    if *known == "count" {
        return match from + 1 < end {
            true => Err(Refusal::new("count takes no text")
                .at_word(at(from + 1), words[from + 1].text(line))),
            false => Ok(Filter::Count(0)),
        };
    }
    let text = match end - from {
        1 => String::new(),
        // As it stands there, blanks included.
        _ => line[words[from + 1].start as usize..words[end - 1].end as usize].to_owned(),
    };
    if text.is_empty() {
        let refusal = Refusal::new(format!("{known} which lines?")).at_word(at(from + 1), "");
        return Err(refusal.remedy(format!("give a text that they contain: `| {known} TEXT`")));
    }
    Ok(match *known {
        "include" => Filter::Include(text),
        "exclude" => Filter::Exclude(text),
        _ => Filter::Begin { text, begun: false },
    })
}

/// Hands on what filters leave of the text.
pub(crate) struct Filtered<'s> {
    pub(crate) filters: &'s mut Filters,
    pub(crate) sink: &'s mut dyn Sink,
}

impl Sink for Filtered<'_> {
    fn output(&mut self, output: Output) {
        let left = self.filters.pass(&output.as_printed());
        if !left.is_empty() {
            self.sink.output(Output::text(left));
        }
    }

    fn progress(&mut self, progress: Progress) {
        self.sink.progress(progress);
    }

    fn refused(&mut self, refusal: Refusal) {
        self.sink.refused(refusal);
    }

    fn spend(&mut self, units: u64) {
        self.sink.spend(units);
    }

    fn must_pause(&self) -> bool {
        self.sink.must_pause()
    }

    fn units_left(&self) -> u64 {
        self.sink.units_left()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words;

    fn filters(line: &str) -> Result<Filters, Refusal> {
        let mut split = Vec::new();
        words::split(line, &mut split).unwrap();
        Filters::read(line, &split, pipe_of(line, &split).expect("a pipe"))
    }

    fn left(line: &str, text: &str) -> String {
        filters(line).unwrap().end(text)
    }

    const TEXT: &str = "one\ntwo words\nthree\nfour";

    #[test]
    fn lines_are_included_excluded_begun_with_and_counted() {
        assert_eq!(left("x | include o", TEXT), "one\ntwo words\nfour");
        assert_eq!(left("x | i two words | exclude four", TEXT), "two words\n");
        assert_eq!(left("x | begin thr", TEXT), "three\nfour");
        assert_eq!(left("x | exclude e | count", TEXT), "2 lines\n");
        assert_eq!(left("x | include \"o w\"", TEXT), "two words\n");
        assert_eq!(left("x | count | include 4", TEXT), "4 lines\n");
    }

    #[test]
    fn a_pipe_in_braces_or_quotation_marks_is_no_filter() {
        let mut split = Vec::new();
        let line = "new { a | b } \"|\" | count";
        words::split(line, &mut split).unwrap();
        assert_eq!(pipe_of(line, &split), Some(7));
    }

    #[test]
    fn what_is_no_filter_is_refused_with_its_place() {
        let refused = |line| filters(line).unwrap_err().to_string();
        assert!(refused("show x | grep y").contains("'grep'"));
        assert!(refused("show x |").contains("nothing stands behind |"));
        assert!(refused("show x | include").contains("include TEXT"));
        assert!(refused("show x | count 7").contains("count takes no text"));
    }

    #[test]
    fn text_in_pieces_is_filtered_like_the_whole() {
        bolero::check!().with_type::<(Vec<u8>, u8)>().for_each(|(bytes, cuts)| {
            let text: String =
                bytes.iter().map(|b| char::from(b"ab\n"[usize::from(*b) % 3])).collect();
            for line in ["x | include a", "x | exclude b", "x | begin ab", "x | include a | count"]
            {
                let mut filters = filters(line).unwrap();
                let mut pieces = String::new();
                let size = usize::from(*cuts % 5) + 1;
                for piece in text.as_bytes().chunks(size) {
                    pieces += &filters.pass(std::str::from_utf8(piece).unwrap());
                }
                pieces += &filters.end("");
                assert_eq!(pieces, left(line, &text));
            }
        });
    }
}
