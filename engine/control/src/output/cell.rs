//! One value of an answer, as text and as JSON.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::{Value, json};

/// One value, as text and as JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    pub(super) text: String,
    pub(super) json: Value,
    /// Another answer may have null here: the published form says so, whatever was seen.
    pub(super) is_optional: bool,
}

impl Cell {
    /// Text and JSON that differ.
    pub fn new(text: impl Into<String>, json: impl Into<Value>) -> Cell {
        Cell { text: text.into(), json: json.into(), is_optional: false }
    }

    /// A number with so many digits behind the point.
    pub fn real(value: f64, digits: usize) -> Cell {
        Cell::new(format!("{value:.digits$}"), json!(value))
    }

    /// A number as `1.25e3`.
    pub fn scientific(value: f64) -> Cell {
        Cell::new(format!("{value:.2e}"), json!(value))
    }

    /// Whatever prints itself.
    pub fn display(value: impl std::fmt::Display) -> Cell {
        Cell::from(value.to_string())
    }

    /// A value, or `none` as text and null as JSON.
    pub fn optional(value: Option<impl Into<Cell>>, none: &str) -> Cell {
        let cell = value.map_or_else(|| Cell::new(none, Value::Null), Into::into);
        Cell { is_optional: true, ..cell }
    }
}

macro_rules! cells_that_print_as_their_json {
    ($($number:ty),*) => {$(
        impl From<$number> for Cell {
            fn from(value: $number) -> Cell {
                Cell::new(value.to_string(), json!(value))
            }
        }
    )*};
}
cells_that_print_as_their_json!(u8, u16, u32, u64, usize, i32, i64, IpAddr, Ipv4Addr, Ipv6Addr);

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::display(text)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::new(text.clone(), text)
    }
}

impl From<&String> for Cell {
    fn from(text: &String) -> Cell {
        Cell::display(text)
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Cell {
        Cell::real(value, 2)
    }
}

impl From<bool> for Cell {
    fn from(value: bool) -> Cell {
        Cell::new(if value { "yes" } else { "no" }, value)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        Cell::optional(value, "")
    }
}
