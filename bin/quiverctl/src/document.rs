//! `check FILE`, `diff FILE`, `apply FILE` and `export`: short forms of the router's commands for a
//! whole configuration, in either language.

use std::path::Path;

use quiver_control::document::Language;
use quiver_control::quoted;

/// In front of the language of a file whose name does not say it.
const FORMAT: &str = "--format";

/// The router's command that a short form stands for.
pub fn line_of(words: &[String]) -> Option<String> {
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    let format = words.iter().position(|word| *word == FORMAT).filter(|at| at + 1 < words.len());
    let format = match format {
        Some(at) => match words.drain(at..at + 2).nth(1) {
            Some(format @ ("yaml" | "commands")) => Some(format.to_owned()),
            _ => return None,
        },
        None => None,
    };
    match words.as_slice() {
        ["export"] => Some(match format.as_deref() {
            Some("yaml") => "show running-config yaml secrets".to_owned(),
            _ => "show running-config secrets".to_owned(),
        }),
        [purpose @ ("check" | "diff" | "apply"), file] => {
            // The router may run in another folder. A file that is not there is its answer.
            let path = Path::new(file).canonicalize().unwrap_or_else(|_| file.into());
            let format = format.as_deref().or(match Language::of_file(Path::new(file)) {
                Language::Yaml => Some("yaml"),
                Language::Commands => None,
            });
            let format = format.map_or_else(String::new, |format| format!(" format {format}"));
            Some(format!("configuration {purpose} {}{format}", quoted(&path.to_string_lossy())))
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
        let yaml = line(&["check", "/no/router.yaml"]).unwrap();
        assert_eq!(yaml, "configuration check /no/router.yaml format yaml");
        let yaml = line(&["check", FORMAT, "yaml", "/no/file"]).unwrap();
        assert_eq!(yaml, "configuration check /no/file format yaml");
        assert_eq!(line(&["export"]).unwrap(), "show running-config secrets");
        let yaml = line(&["export", FORMAT, "yaml"]).unwrap();
        assert_eq!(yaml, "show running-config yaml secrets");
        let others: [&[&str]; 5] =
            [&["show", "interface"], &["diff"], &["diff", "a", "b"], &[], &["export", FORMAT, "x"]];
        for other in others {
            assert_eq!(line(other), None);
        }
    }
}
