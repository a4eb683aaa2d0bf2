//! Names of things that exist: how commands find an interface, and completion offers it.

use std::fmt;

use quiver_core::{Engine, InterfaceId};

/// How errors of tables name an interface, which know only its number.
const INTERFACE_NUMBER: &str = "interface number ";

/// What the router knows by name. Kinds are `interface`, `node`, and those that features declare
/// with [`ValueType::name_of`](crate::types::ValueType::name_of).
pub trait Names {
    /// The number of the thing of this kind and name.
    fn find(&self, kind: &str, name: &str) -> Option<u32> {
        let _ = (kind, name);
        None
    }

    /// All names of this kind.
    fn list(&self, kind: &str) -> Vec<String> {
        let _ = kind;
        Vec::new()
    }
}

/// Nothing has a name.
impl Names for () {}

/// The text of an error of tables, with interfaces called by their names.
pub fn with_interface_names(engine: &Engine, error: impl fmt::Display) -> String {
    named(error.to_string(), |number| {
        engine
            .interface(InterfaceId(number))
            .map(|interface| format!("interface {}", interface.name))
    })
}

/// Replace each number of an interface by what `name` makes of it; one without a name stays.
fn named(mut text: String, name: impl Fn(u32) -> Option<String>) -> String {
    let mut from = 0;
    while let Some(at) = text[from..].find(INTERFACE_NUMBER).map(|at| at + from) {
        let digits = at + INTERFACE_NUMBER.len();
        let end =
            text[digits..].find(|c: char| !c.is_ascii_digit()).map_or(text.len(), |n| digits + n);
        match text[digits..end].parse().ok().and_then(&name) {
            Some(known) => {
                text.replace_range(at..end, &known);
                from = at + known.len();
            }
            None => from = end,
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_interfaces_become_their_names() {
        let name = |number: u32| (number < 10).then(|| format!("interface e{number}"));
        let named = |text: &str| named(text.to_owned(), name);
        let text = "10.0.0.1/24 is already configured on interface number 3";
        assert_eq!(named(text), "10.0.0.1/24 is already configured on interface e3");
        let text = "the tunnel of interface number 4 would go through itself";
        assert_eq!(named(text), "the tunnel of interface e4 would go through itself");
        assert_eq!(named("there is no interface number 77"), "there is no interface number 77");
        assert_eq!(named("nothing"), "nothing");
    }
}
