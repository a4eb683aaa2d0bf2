//! What differs between two documents, as people read it: the keys on the way, what goes behind
//! `-`, and what comes behind `+`.

use super::comments::{Comments, identity_of};
use super::emit::emit;
use super::tree::{Map, Name, Tree};

/// What differs; empty when nothing does.
pub(super) fn difference(before: &Map, after: &Map) -> String {
    let mut out = String::new();
    members(before, after, 0, &mut out);
    out
}

fn members(before: &Map, after: &Map, level: usize, out: &mut String) {
    let mut keys: Vec<&Name> = before.members.keys().chain(after.members.keys()).collect();
    keys.sort();
    keys.dedup();
    for key in keys {
        match (before.members.get(key), after.members.get(key)) {
            (Some(one), Some(other)) if one == other => {}
            (Some(Tree::Map(one)), Some(Tree::Map(other)))
                if one.is_section || other.is_section =>
            {
                line(' ', key, None, level, out);
                members(one, other, level + 1, out);
            }
            (Some(Tree::List(one)), Some(Tree::List(other))) => {
                line(' ', key, None, level, out);
                items(one, other, level + 1, out);
            }
            (one, other) => {
                one.iter().for_each(|tree| line('-', key, Some(tree), level, out));
                other.iter().for_each(|tree| line('+', key, Some(tree), level, out));
            }
        }
    }
}

fn items(before: &[Tree], after: &[Tree], level: usize, out: &mut String) {
    for (mark, these, others) in [('-', before, after), ('+', after, before)] {
        for item in these.iter().filter(|item| !others.contains(item)) {
            marked(mark, &format!("- {}", identity_of(item)), level, out);
        }
    }
    let kept = |these: &[Tree], others: &[Tree]| -> Vec<Tree> {
        these.iter().filter(|item| others.contains(item)).cloned().collect()
    };
    if kept(before, after) != kept(after, before) {
        marked(' ', "# in another order", level, out);
    }
}

/// A key, with its value when it is said.
fn line(mark: char, key: &Name, value: Option<&Tree>, level: usize, out: &mut String) {
    let mut map = Map { is_section: true, ..Map::default() };
    map.members.insert(key.clone(), value.cloned().unwrap_or_else(|| Tree::Map(Map::default())));
    let text = emit(&map, &Comments::default());
    match value {
        None => marked(mark, text.trim_end().trim_end_matches(" {}"), level, out),
        Some(_) => text.lines().for_each(|line| marked(mark, line, level, out)),
    }
}

fn marked(mark: char, text: &str, level: usize, out: &mut String) {
    out.push(mark);
    out.push(' ');
    out.extend(std::iter::repeat_n("  ", level));
    out.push_str(text);
    out.push('\n');
}
