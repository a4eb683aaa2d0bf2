//! Tables: columns, values, order. The screen and the plain text show the same ones.

use crate::View;

/// A table of its own.
pub struct Pane {
    /// Its heading.
    pub title: &'static str,
    /// Its columns; the first is the name that a filter looks at.
    pub columns: &'static [Column],
    /// The column that it is sorted by until the user says otherwise.
    pub sorted_by: usize,
}

/// A column.
pub struct Column {
    /// Its heading; a column without one cannot be sorted by.
    pub title: &'static str,
    /// Characters that it takes; the rest of the line is the widest column's.
    pub width: u16,
    /// Aligned to the right.
    pub is_number: bool,
}

/// A column of words.
pub const fn words(title: &'static str, width: u16) -> Column {
    Column { title, width, is_number: false }
}

/// A column of numbers.
pub const fn number(title: &'static str, width: u16) -> Column {
    Column { title, width, is_number: true }
}

/// One cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Words.
    Text(String),
    /// A rate or a count, shown with k, M, G.
    Rate(f64),
    /// A plain number with one digit behind the point; nothing when there is none.
    Plain(Option<f64>),
    /// A number that names something.
    Number(Option<u64>),
    /// 0 to 1, shown as per cent.
    Share(f64),
}

impl Value {
    /// As it is shown.
    pub fn show(&self) -> String {
        match self {
            Value::Text(text) => text.clone(),
            Value::Rate(value) => scaled(*value),
            Value::Plain(Some(value)) => format!("{value:.1}"),
            Value::Number(Some(number)) => number.to_string(),
            Value::Plain(None) | Value::Number(None) => "-".to_owned(),
            Value::Share(share) => format!("{:.1} %", 100.0 * share),
        }
    }

    /// Numbers first the largest, names by the alphabet.
    fn before(&self, other: &Value) -> std::cmp::Ordering {
        let weight = |value: &Value| match value {
            Value::Text(_) => 0.0,
            Value::Rate(value) | Value::Share(value) => *value,
            Value::Plain(value) => value.unwrap_or(-1.0),
            Value::Number(number) => number.map_or(-1.0, |number| number as f64),
        };
        match (self, other) {
            (Value::Text(one), Value::Text(two)) => one.cmp(two),
            _ => weight(other).total_cmp(&weight(self)),
        }
    }
}

/// `0`, `7.3`, `950`, `12.3k`, `41.8M`, `1.2G`.
pub fn scaled(value: f64) -> String {
    const UNITS: [&str; 5] = ["", "k", "M", "G", "T"];
    let mut value = value.max(0.0);
    let mut unit = 0;
    // 999.95 would round to 1000.0.
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    match value {
        0.0 => "0".to_owned(),
        value if unit == 0 && value >= 99.95 => format!("{value:.0}"),
        value => format!("{value:.1}{}", UNITS[unit]),
    }
}

/// What of a picture is wanted.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Names contain this, in any case.
    pub filter: String,
    /// Of this part (worker); of all together without one.
    pub part: Option<usize>,
    /// Rows too in which nothing happened.
    pub idle: bool,
    /// What was counted without a packet's death, too.
    pub events: bool,
    /// Column to sort by, and whether backwards.
    pub order: Option<(usize, bool)>,
}

/// The rows of a pane that fit the filter, in order.
pub(crate) fn rows<V: View>(pane: usize, view: &V, choice: &Choice) -> Vec<Vec<Value>> {
    let filter = choice.filter.to_lowercase();
    let mut rows = view.rows(pane, choice);
    let has =
        |value: &Value| matches!(value, Value::Text(text) if text.to_lowercase().contains(&filter));
    let fits = |row: &[Value]| match V::filters_all_columns(pane) {
        true => row.iter().any(has),
        false => row.first().is_some_and(has),
    };
    rows.retain(|row| filter.is_empty() || fits(row));
    let (column, backwards) = choice.order.unwrap_or((V::PANES[pane].sorted_by, false));
    rows.sort_by(|one, two| {
        let order = match (one.get(column), two.get(column)) {
            (Some(one), Some(two)) => one.before(two),
            _ => std::cmp::Ordering::Equal,
        };
        if backwards { order.reverse() } else { order }
    });
    rows
}

/// Text from elsewhere, safe for a terminal: no control characters, and only ASCII where the
/// terminal does not speak UTF-8.
pub fn clean(text: &str, utf8: bool) -> String {
    let safe = |c: char| if c.is_control() || !(utf8 || c.is_ascii()) { '?' } else { c };
    text.chars().map(safe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fit_into_their_columns() {
        for (value, shown) in [
            (0.0, "0"),
            (0.5, "0.5"),
            (99.94, "99.9"),
            (950.4, "950"),
            (999.96, "1.0k"),
            (12_345.0, "12.3k"),
            (41.8e6, "41.8M"),
            (999.96e9, "1.0T"),
            (1.2e15, "1200.0T"),
            (-3.0, "0"),
        ] {
            assert_eq!(scaled(value), shown);
        }
    }

    #[test]
    fn what_others_say_cannot_steer_the_terminal() {
        assert_eq!(clean("e0\x1b[2J\n", true), "e0?[2J?");
        assert_eq!(clean("größe", true), "größe");
        assert_eq!(clean("größe", false), "gr??e");
    }
}
