//! The natural order of names: numbers in them count as numbers.

use super::Interfaces;
use crate::InterfaceId;

/// A text that sorts as the name does by nature: `e2` before `e10`, `e0.9` before `e0.10`. Two
/// names never have the same one.
pub fn natural_key(name: &str) -> String {
    let mut key = String::with_capacity(2 * name.len() + 4);
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            key.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let number = rest[..digits].trim_start_matches('0');
        // A longer number is a greater one. The length is written as a digit or, from ten on, as a
        // character behind it.
        key.push(char::from_u32('0' as u32 + number.len() as u32).unwrap_or(char::MAX));
        key.push_str(number);
        rest = &rest[digits..];
    }
    key.push('\0');
    key + name
}

impl Interfaces {
    /// A name is given.
    pub(super) fn enter_name(&mut self, name: &str, id: InterfaceId) {
        self.by_name.insert(name.to_owned(), id);
        self.in_order.insert(natural_key(name), id);
    }

    /// A name is nobody's any more.
    pub(super) fn forget_name(&mut self, name: &str) {
        self.by_name.remove(name);
        self.in_order.remove(&natural_key(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_count_as_numbers() {
        let mut names = ["e10", "e2", "e0.10", "e0.9", "e", "e02", "memif1/10", "memif1/9", "ä1"];
        names.sort_by_key(|name| natural_key(name));
        let order = ["e", "e0.9", "e0.10", "e02", "e2", "e10", "memif1/9", "memif1/10", "ä1"];
        assert_eq!(names, order);
    }

    #[test]
    fn names_that_differ_in_leading_zeros_have_two_keys() {
        assert_ne!(natural_key("e01"), natural_key("e1"));
        assert!(natural_key("e1") < natural_key("e02"));
    }
}
