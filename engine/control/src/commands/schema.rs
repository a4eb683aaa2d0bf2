//! `show schema`: the published form of the JSON answers of shows.

use quiver_core::Engine;
use serde_json::Value;

use crate::args::Args;
use crate::error::{Refusal, either, nearest, printable};
use crate::grammar::Command;
use crate::output::Output;
use crate::registry::{Answers, Registry};

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show schema [<command:rest>]")
            .group("Session")
            .help("Show the JSON Schema of a show's JSON answer, or of all of them")
            .details(
                "The method `commands` of the API has the same beside each command. A member that \
                 is not among the required ones may be missing.",
            )
            .word("command", "the show, its first words written out")
            .example("show schema show interface")
            .run(show),
    );
}

fn show(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let wanted: Option<&str> = args.optional("command")?;
    let wanted =
        wanted.map(|words| words.strip_suffix("json").unwrap_or(words).trim()).unwrap_or_default();
    let answers = engine.get::<Answers>().map(|answers| &answers.0);
    let answers = answers.ok_or_else(|| Refusal::new("no answers are published"))?;
    if wanted.is_empty() {
        return Ok(pretty(&Value::Object(answers.clone())));
    }
    let full =
        if wanted.starts_with("show ") { wanted.to_owned() } else { format!("show {wanted}") };
    answers.get(&full).map(pretty).ok_or_else(|| {
        let near = nearest(&full, answers.keys().map(String::as_str));
        let remedy = match near.is_empty() {
            true => "`show schema` lists all".to_owned(),
            false => format!("did you mean {}?", either(&near)),
        };
        Refusal::new(format!("no form of an answer is published for '{}'", printable(&full)))
            .remedy(remedy)
    })
}

fn pretty(schema: &Value) -> Output {
    Output::both(serde_json::to_string_pretty(schema).unwrap_or_default(), schema.clone())
}
