//! One value of an answer, as text and as JSON.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::{Value, json};

/// One value, as text and as JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    pub(super) text: String,
    pub(super) json: Value,
}

impl Cell {
    /// Text and JSON that differ.
    pub fn new(text: impl Into<String>, json: impl Into<Value>) -> Cell {
        Cell { text: text.into(), json: json.into() }
    }

    /// A number with so many digits behind the point.
    pub fn real(value: f64, digits: usize) -> Cell {
        Cell { text: format!("{value:.digits$}"), json: json!(value) }
    }

    /// A number as `1.25e3`.
    pub fn scientific(value: f64) -> Cell {
        Cell { text: format!("{value:.2e}"), json: json!(value) }
    }

    /// Whatever prints itself.
    pub fn display(value: impl std::fmt::Display) -> Cell {
        let text = value.to_string();
        Cell { json: Value::String(text.clone()), text }
    }
}

macro_rules! cells_that_print_as_their_json {
    ($($number:ty),*) => {$(
        impl From<$number> for Cell {
            fn from(value: $number) -> Cell {
                Cell { text: value.to_string(), json: json!(value) }
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
        Cell { json: Value::String(text.clone()), text }
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
        value.map_or_else(|| Cell::new("", Value::Null), Into::into)
    }
}
