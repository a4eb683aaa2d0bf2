//! `check FILE`, `diff FILE`, `apply FILE` and `export`: short forms of the router's commands for a
//! whole configuration.

use std::path::Path;

use quiver_control::quoted;

/// The router's command that a short form stands for.
pub fn line_of(words: &[String]) -> Option<String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["export"] => Some("show running-config secrets".to_owned()),
        [purpose @ ("check" | "diff" | "apply"), file] => {
            // The router may run in another folder. A file that is not there is its answer.
            let path = Path::new(file).canonicalize().unwrap_or_else(|_| file.into());
            Some(format!("configuration {purpose} {}", quoted(&path.to_string_lossy())))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_forms_name_the_file_from_the_root() {
        let line = |words: &[&str]| {
            line_of(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
        };
        let here = Path::new("Cargo.toml").canonicalize().unwrap();
        let diff = line(&["diff", "Cargo.toml"]).unwrap();
        assert_eq!(diff, format!("configuration diff {}", here.display()));
        assert_eq!(line(&["apply", "/no such"]).unwrap(), "configuration apply \"/no such\"");
        assert_eq!(line(&["export"]).unwrap(), "show running-config secrets");
        for other in [&["show", "interface"][..], &["diff"], &["diff", "a", "b"], &[]] {
            assert_eq!(line(other), None);
        }
    }
}
