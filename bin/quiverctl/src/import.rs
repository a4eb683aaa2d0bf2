//! `import vppcfg FILE`: a document of this router from a file of another program. No router is
//! needed.

use std::path::Path;
use std::process::ExitCode;

use quiver_control::document::from_vppcfg;

/// Print the document on standard output, and what it does not say on standard error. Nothing when
/// the words are another command's.
pub fn run(words: &[String]) -> Option<ExitCode> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["import", "vppcfg", file] => Some(import(Path::new(file))),
        ["import", ..] => {
            eprintln!("quiverctl: say `quiverctl import vppcfg FILE`");
            Some(ExitCode::from(1))
        }
        _ => None,
    }
}

fn import(file: &Path) -> ExitCode {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("quiverctl: {}: {error}", file.display());
            return ExitCode::from(1);
        }
    };
    match from_vppcfg(&text) {
        Ok(imported) => {
            print!("{}", imported.yaml);
            for (at, note) in imported.notes {
                eprintln!("{}:{}:{}: {note}", file.display(), at.line, at.column);
            }
            ExitCode::SUCCESS
        }
        Err(mistake) => {
            let (line, column) = (mistake.line, mistake.column);
            eprintln!("{}:{line}:{column}: {}", file.display(), mistake.refusal);
            ExitCode::from(1)
        }
    }
}
