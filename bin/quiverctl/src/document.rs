//! `check FILE`, `diff FILE`, `apply FILE`, `export`, `history`, `rollback`, `confirm` and `save`:
//! short forms of the router's commands for a whole configuration, in either language.

use std::path::Path;

use quiver_control::quoted;

/// The router's command that a short form stands for.
pub fn line_of(words: &[String]) -> Option<String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (purpose, rest) = words.split_first()?;
    let (named, options) = options_of(rest)?;
    match (*purpose, named.as_slice(), options.as_str()) {
        ("export", [], "") | ("export", [], " format commands") => {
            Some("show running-config secrets".to_owned())
        }
        ("export", [], " format yaml") => Some("show running-config yaml secrets".to_owned()),
        ("export", [version], "") if is_number(version) => {
            Some(format!("show configuration version {version} secrets"))
        }
        ("history", [], "") => Some("show configuration history".to_owned()),
        ("confirm", [], "") => Some("configuration confirm".to_owned()),
        ("save", [], options) => Some(format!("configuration save{options}")),
        ("rollback", [], options) => Some(format!("configuration rollback{options}")),
        ("rollback", [version], options) if is_number(version) => {
            Some(format!("configuration rollback {version}{options}"))
        }
        (
            purpose @ ("check" | "diff"),
            [file],
            options @ ("" | " format yaml" | " format commands"),
        ) => Some(format!("configuration {purpose} {}{options}", path_of(file))),
        ("apply", [file], options) => {
            Some(format!("configuration apply {}{options}", path_of(file)))
        }
        _ => None,
    }
}

/// The words that are no options, and the options as words of the router's command: `--confirm 60s`
/// and `--confirm=60s` are ` confirm 60s`. Nothing when one is unknown or has no value.
fn options_of<'w>(words: &[&'w str]) -> Option<(Vec<&'w str>, String)> {
    let (mut named, mut options) = (Vec::new(), String::new());
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        let Some(option) = word.strip_prefix("--") else {
            named.push(word);
            continue;
        };
        let (option, value) = match option.split_once('=') {
            Some((option, value)) => (option, value),
            None => (option, words.next()?),
        };
        if !matches!(option, "confirm" | "message" | "generation" | "format") {
            return None;
        }
        options += &format!(" {option} {}", quoted(value));
    }
    Some((named, options))
}

fn is_number(word: &str) -> bool {
    word.parse::<u32>().is_ok()
}

/// The router may run in another folder. A file that is not there is its answer.
fn path_of(file: &str) -> String {
    let path = Path::new(file).canonicalize().unwrap_or_else(|_| file.into());
    quoted(&path.to_string_lossy()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &[&str]) -> Option<String> {
        line_of(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn short_forms_name_the_file_from_the_root() {
        let here = Path::new("Cargo.toml").canonicalize().unwrap();
        let diff = line(&["diff", "Cargo.toml"]).unwrap();
        assert_eq!(diff, format!("configuration diff {}", here.display()));
        assert_eq!(line(&["apply", "/no such"]).unwrap(), "configuration apply \"/no such\"");
        let yaml = line(&["check", "/no/router.yaml"]).unwrap();
        assert_eq!(yaml, "configuration check /no/router.yaml");
        let yaml = line(&["check", "--format", "yaml", "/no/file"]).unwrap();
        assert_eq!(yaml, "configuration check /no/file format yaml");
        assert_eq!(line(&["export"]).unwrap(), "show running-config secrets");
        let yaml = line(&["export", "--format", "yaml"]).unwrap();
        assert_eq!(yaml, "show running-config yaml secrets");
        let others: [&[&str]; 5] = [
            &["show", "interface"],
            &["diff"],
            &["diff", "a", "b"],
            &[],
            &["export", "--format", "x"],
        ];
        for other in others {
            assert_eq!(line(other), None);
        }
    }

    #[test]
    fn options_are_words_of_the_routers_command() {
        let apply = ["apply", "--confirm=60s", "/a", "--message", "two words"];
        let wanted = "configuration apply /a confirm 60s message \"two words\"";
        assert_eq!(line(&apply).as_deref(), Some(wanted));
        assert_eq!(line(&["rollback", "7"]).as_deref(), Some("configuration rollback 7"));
        assert_eq!(line(&["rollback"]).as_deref(), Some("configuration rollback"));
        assert_eq!(line(&["confirm"]).as_deref(), Some("configuration confirm"));
        let export = line(&["export", "3"]);
        assert_eq!(export.as_deref(), Some("show configuration version 3 secrets"));
        for other in
            [&["apply", "/a", "--force", "1"][..], &["confirm", "7"], &["save", "--message"]]
        {
            assert_eq!(line(other), None);
        }
    }
}
