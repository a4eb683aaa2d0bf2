//! Fuzz targets: each is a plain function of bytes that panics when something does not hold. `make
//! fuzz` lets libFuzzer look for such bytes, guided by the coverage of the code; ordinary tests
//! replay the kept corpus.
#![forbid(unsafe_code)]

pub mod commands;
pub mod files;
pub mod graph;
pub mod headers;
pub mod messages;

use std::path::Path;
use std::sync::OnceLock;

/// A target: panics on bytes that show a fault.
pub type Target = fn(&[u8]);

/// All targets by name; the corpus of each is in `corpus/NAME`.
pub const TARGETS: [(&str, Target); 5] = [
    ("headers", headers::run),
    ("messages", messages::run),
    ("files", files::run),
    ("commands", commands::run),
    ("graph", graph::run),
];

/// A folder of this process's own.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<&Path> = OnceLock::new();
    FOLDER.get_or_init(|| quiver_testkit::configuration::folder("fuzz"))
}

/// The element whose name comes first in an order that `selector` draws. Unlike an index, it mostly
/// stays the same when elements are added, so that the kept corpus goes on meaning what it meant.
fn chosen<T>(selector: u16, all: &[T], name: impl Fn(&T) -> &str) -> &T {
    let rank = |element: &&T| {
        // FNV-1a over the selector and the name. Its last bytes change few bits, so these are
        // spread.
        let bytes = selector.to_le_bytes().into_iter().chain(name(element).bytes());
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let product = u128::from(hash ^ (hash >> 32)) * 0x9e37_79b9_7f4a_7c15;
        (product >> 64) as u64 ^ product as u64
    };
    all.iter().min_by_key(rank).expect("there is an element to choose")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_choices_stay_when_an_element_is_added() {
        let names: Vec<String> = (0..50).map(|n| format!("case {n}")).collect();
        let pick = |selector, count| chosen(selector, &names[..count], String::as_str).clone();
        let kept = (0..1000).filter(|selector| pick(*selector, 49) == pick(*selector, 50)).count();
        assert!(kept > 900, "{kept}");
        let all: std::collections::BTreeSet<String> =
            (0..1000).map(|selector| pick(selector, 50)).collect();
        assert!(all.len() > 40, "every element is chosen: {}", all.len());
    }
}
