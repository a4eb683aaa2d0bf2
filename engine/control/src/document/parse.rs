//! YAML 1.2 as nodes with their places. What can be hostile has a limit: nodes that aliases copy
//! count like those that are written, and depth is bounded.

use std::collections::HashMap;

use granit_parser::{Event, Options, Parser, ScalarStyle, ScanError, Span, StrInput};

use super::Position;
use super::comments::Comment;
use crate::changes::Mistake;
use crate::error::{Refusal, printable};

/// Nodes of a document, with those that aliases stand for. A route has about four.
const NODES_MAX: usize = 8_000_000;

/// Maps and lists in each other.
const DEPTH_MAX: usize = 32;

/// Bytes of a document.
const BYTES_MAX: usize = 512 << 20;

/// Comment lines without anything between them.
const COMMENT_LINES_MAX: usize = 10_000;

/// A part of a document.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) at: Position,
    pub(crate) value: NodeValue,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NodeValue {
    /// Text, and whether it stands without quotation marks.
    Scalar(String, bool),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

/// A key of a map.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Key {
    pub(crate) text: String,
    pub(crate) at: Position,
}

impl Node {
    /// Is it left out: `key:`, `null`, `~`?
    pub(crate) fn is_null(&self) -> bool {
        match &self.value {
            NodeValue::Scalar(text, true) => {
                matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL")
            }
            _ => false,
        }
    }

    /// What it is, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.value {
            _ if self.is_null() => "nothing",
            NodeValue::Scalar(..) => "a value",
            NodeValue::List(_) => "a list",
            NodeValue::Map(_) => "keys",
        }
    }
}

/// A document and its comments.
#[derive(Debug)]
pub(crate) struct Parsed {
    /// Nothing when the document is empty.
    pub(crate) root: Option<Node>,
    pub(crate) comments: Vec<Comment>,
}

/// Read a document.
///
/// # Errors
/// It is no YAML, has more than one document, or more than the limits allow.
pub(crate) fn parse(text: &str) -> Result<Parsed, Mistake> {
    if text.len() > BYTES_MAX {
        let what = format!("a document has at most {} MiB", BYTES_MAX >> 20);
        return Err(mistake(Position { line: 1, column: 1 }, Refusal::new(what)));
    }
    let mut options = Options::default();
    options.block_nesting_limit = DEPTH_MAX;
    options.flow_nesting_limit = DEPTH_MAX;
    options.max_buffered_comment_events = COMMENT_LINES_MAX;
    let events = Parser::new_from_str_with_options(text, options);
    let mut reader =
        Reader { events, comments: Vec::new(), anchors: HashMap::new(), nodes: 0, depth: 0 };
    reader.document()
}

pub(crate) fn mistake(at: Position, refusal: Refusal) -> Mistake {
    Mistake { line: at.line, column: at.column, refusal }
}

struct Reader<'t> {
    events: Parser<'t, StrInput<'t>>,
    comments: Vec<Comment>,
    /// What aliases stand for, and how many nodes it has.
    anchors: HashMap<usize, (Node, usize)>,
    nodes: usize,
    depth: usize,
}

impl<'t> Reader<'t> {
    /// The next event that is not a comment.
    fn next(&mut self) -> Result<(Event<'t>, Position), Mistake> {
        loop {
            let Some(event) = self.events.next_event() else {
                return Ok((Event::StreamEnd, Position { line: 1, column: 1 }));
            };
            let (event, span) = event.map_err(syntax)?;
            let at = position(&span);
            match event {
                Event::Comment(text, placement) => {
                    let is_behind = placement == granit_parser::Placement::Right;
                    self.comments.push(Comment { at, text: text.into_owned(), is_behind });
                }
                event => return Ok((event, at)),
            }
        }
    }

    fn document(&mut self) -> Result<Parsed, Mistake> {
        let mut root = None;
        loop {
            let (event, at) = self.next()?;
            match event {
                Event::StreamEnd => break,
                Event::DocumentStart(..) if root.is_some() => {
                    let refusal = Refusal::new("a second document begins here");
                    return Err(mistake(at, refusal.remedy("a file has one document")));
                }
                Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd => {}
                event => root = Some(self.node(event, at)?),
            }
        }
        let root = root.filter(|node| !node.is_null());
        Ok(Parsed { root, comments: std::mem::take(&mut self.comments) })
    }

    fn count(&mut self, nodes: usize, at: Position) -> Result<(), Mistake> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes <= NODES_MAX {
            return Ok(());
        }
        let what = format!("a document has at most {NODES_MAX} values, with those of aliases");
        Err(mistake(at, Refusal::new(what)))
    }

    fn node(&mut self, event: Event<'t>, at: Position) -> Result<Node, Mistake> {
        self.count(1, at)?;
        let before = self.nodes;
        let (value, anchor) = match event {
            Event::Scalar(text, style, anchor, _) => {
                (NodeValue::Scalar(text.into_owned(), style == ScalarStyle::Plain), anchor)
            }
            Event::SequenceStart(_, anchor, _) => (self.list(at)?, anchor),
            Event::MappingStart(_, anchor, _) => (self.map(at)?, anchor),
            Event::Alias(anchor) => {
                let Some((node, nodes)) = self.anchors.get(&anchor) else {
                    return Err(mistake(at, Refusal::new("an alias stands in its own anchor")));
                };
                let (node, nodes) = (Node { at, value: node.value.clone() }, *nodes);
                self.count(nodes, at)?;
                return Ok(node);
            }
            _ => return Err(mistake(at, Refusal::new("this cannot stand here"))),
        };
        let node = Node { at, value };
        if anchor != 0 {
            self.anchors.insert(anchor, (node.clone(), self.nodes - before + 1));
            self.count(self.nodes - before, at)?;
        }
        Ok(node)
    }

    fn deeper(&mut self, at: Position) -> Result<(), Mistake> {
        self.depth += 1;
        if self.depth <= DEPTH_MAX {
            return Ok(());
        }
        Err(mistake(at, Refusal::new(format!("more than {DEPTH_MAX} levels"))))
    }

    fn list(&mut self, at: Position) -> Result<NodeValue, Mistake> {
        self.deeper(at)?;
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => break,
                (event, at) => items.push(self.node(event, at)?),
            }
        }
        self.depth -= 1;
        Ok(NodeValue::List(items))
    }

    fn map(&mut self, at: Position) -> Result<NodeValue, Mistake> {
        self.deeper(at)?;
        let mut members: Vec<(Key, Node)> = Vec::new();
        loop {
            let (event, at) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                break;
            }
            let text = match self.node(event, at)?.value {
                NodeValue::Scalar(text, _) => text,
                _ => {
                    let refusal = Refusal::new("a list or a map cannot be a key");
                    return Err(mistake(at, refusal));
                }
            };
            let (event, value_at) = self.next()?;
            let value = self.node(event, value_at)?;
            members.push((Key { text, at }, value));
        }
        self.depth -= 1;
        Ok(NodeValue::Map(members))
    }
}

fn position(span: &Span) -> Position {
    let at = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Position { line: at(span.start.line()), column: at(span.start.col() + 1) }
}

fn syntax(error: ScanError) -> Mistake {
    let marker = error.marker();
    let at = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let place = Position { line: at(marker.line()), column: at(marker.col() + 1) };
    let what = format!("this is no YAML: {}", printable(&error.info()));
    mistake(place, Refusal::new(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        let mistake = parse(text).unwrap_err();
        format!("{}:{}: {}", mistake.line, mistake.column, mistake.refusal)
    }

    #[test]
    fn nodes_have_their_places() {
        let root = parse("a: 1\nb:\n  - x\n  - {c: 'd'}\n").unwrap().root.unwrap();
        let NodeValue::Map(members) = root.value else { panic!("no map") };
        assert_eq!(members[0].1.at, Position { line: 1, column: 4 });
        assert_eq!(members[1].0.at, Position { line: 2, column: 1 });
        let NodeValue::List(items) = &members[1].1.value else { panic!("no list") };
        assert_eq!(items[1].at, Position { line: 4, column: 5 });
        assert_eq!(parse("# nothing\n").unwrap().root, None);
    }

    #[test]
    fn aliases_are_copied_as_long_as_there_is_room() {
        let root = parse("a: &x {b: 1}\nc: *x\n").unwrap().root.unwrap();
        let NodeValue::Map(members) = root.value else { panic!("no map") };
        assert_eq!(members[0].1.value, members[1].1.value);
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let items = vec![format!("*a{}", level - 1); 10].join(", ");
            bomb.push_str(&format!("a{level}: &a{level} [{items}]\n"));
        }
        let text = refused(&bomb);
        assert!(text.contains("at most 8000000 values"), "{text}");
    }

    #[test]
    fn what_is_no_document_is_refused_with_its_place() {
        assert!(refused("a: [1, 2\nb: 3\n").contains("no YAML"), "{}", refused("a: [1\nb: 3"));
        let deep = "[".repeat(2000);
        assert!(!refused(&deep).is_empty());
        let deep = (0..100).map(|level| format!("{}a:\n", " ".repeat(level))).collect::<String>();
        assert!(!refused(&deep).is_empty());
        assert!(refused("a: 1\n---\nb: 2\n").contains("a file has one document"));
        assert!(refused("a: *b\n").starts_with("1:4"), "{}", refused("a: *b\n"));
    }

    #[test]
    fn no_text_panics() {
        bolero::check!().with_type::<String>().for_each(|text| {
            let _ = parse(text);
        });
    }
}
