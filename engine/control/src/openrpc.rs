//! The API as a document: OpenRPC 1.3 (spec.open-rpc.org), made from the declarations of commands
//! and the published forms of answers. Each command is a method under its first words, joined by
//! `_`; its parameters are the command's arguments, its result is the JSON of its answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

use crate::grammar::{Commands, Form};
use crate::names::Names;
use crate::output::key_of;
use crate::server::rpc;

/// Parameters that every method of a command has, and what they are.
pub(crate) const COMMON: [(&str, &str); 2] = [
    ("pages", "a long answer comes in notifications: text or json"),
    ("if_generation", "refused unless this is still what `generation` answers"),
];

impl<S: Names + 'static> Commands<S> {
    /// The command that a method stands for.
    pub(crate) fn command_of_method(&self, method: &str) -> Option<&str> {
        let of_form = |form: &Form| (key_of(&form.name), form.name.clone());
        let methods = self.methods.get_or_init(|| self.forms.iter().map(of_form).collect());
        methods.get(method).map(String::as_str)
    }

    /// The document: every command and the methods of the API itself.
    pub fn openrpc(&self) -> Arc<Json> {
        self.openrpc.get_or_init(|| Arc::new(self.make_openrpc())).clone()
    }

    fn make_openrpc(&self) -> Json {
        let mut forms: BTreeMap<String, Vec<&Form>> = BTreeMap::new();
        for form in &self.forms {
            forms.entry(key_of(&form.name)).or_default().push(form);
        }
        let commands = forms.iter().map(|(method, forms)| self.method(method, forms));
        let methods: Vec<Json> = rpc::methods().into_iter().chain(commands).collect();
        json!({
            "openrpc": "1.3.2",
            "info": {
                "title": "Quiver",
                "description": "JSON-RPC 2.0, one message a line, over a Unix socket or TCP.",
                "version": env!("CARGO_PKG_VERSION"),
            },
            "methods": methods,
        })
    }

    fn method(&self, method: &str, forms: &[&Form]) -> Json {
        let command = &self.commands[forms[0].command];
        let usages: Vec<String> = forms.iter().map(|form| form.tree.usage()).collect();
        let mut params: Vec<Json> = Vec::new();
        for form in forms {
            for param in self.arguments_of(form).iter().map(parameter) {
                if !params.iter().any(|known| name_of(known) == name_of(&param)) {
                    params.push(param);
                }
            }
        }
        // What one of several forms has not may be missing.
        for param in &mut params {
            let is_in = |form: &&Form| {
                let mut arguments = self.arguments_of(form).into_iter();
                arguments.any(|argument| name_of(&argument) == name_of(param))
            };
            if !forms.iter().all(is_in) {
                param["required"] = json!(false);
            }
        }
        let answer = self.answers.get(&forms[0].name).cloned();
        let description = match command.details.is_empty() {
            true => usages.join("\n"),
            false => format!("{}\n\n{}", usages.join("\n"), command.details),
        };
        json!({
            "name": method,
            "summary": command.help,
            "description": description,
            "tags": [{ "name": command.group }],
            "paramStructure": "by-name",
            "params": params,
            "result": { "name": "answer", "schema": answer.unwrap_or_else(|| json!(true)) },
        })
    }
}

fn name_of(param: &Json) -> String {
    param["name"].as_str().unwrap_or_default().to_owned()
}

/// An argument as a parameter: its name, help and JSON Schema.
fn parameter(argument: &Json) -> Json {
    json!({
        "name": argument["name"],
        "description": argument["help"],
        "required": argument["required"],
        "schema": schema(argument),
    })
}

fn schema(argument: &Json) -> Json {
    let one = match argument["type"].as_str() {
        Some("flag") => json!({ "type": "boolean" }),
        Some("number") => {
            let number = json!({
                "type": "integer", "minimum": argument["min"], "maximum": argument["max"]
            });
            or_words(number, argument)
        }
        Some("word") => match argument.get("words") {
            Some(words) => json!({ "type": "string", "enum": words }),
            None => json!({ "type": "string" }),
        },
        Some("group") => group(argument),
        Some(kind) => or_words(json!({ "type": "string", "title": kind }), argument),
        None => json!(true),
    };
    match argument["repeated"] == json!(true) {
        true => json!({ "type": "array", "minItems": 1, "items": one }),
        false => one,
    }
}

/// One of the words, or what the schema says.
fn or_words(schema: Json, argument: &Json) -> Json {
    match argument.get("words") {
        Some(words) => json!({ "anyOf": [schema, { "type": "string", "enum": words }] }),
        None => schema,
    }
}

fn group(argument: &Json) -> Json {
    let arguments = argument["args"].as_array().map(Vec::as_slice).unwrap_or_default();
    let properties: Map<String, Json> =
        arguments.iter().map(|argument| (name_of(argument), schema(argument))).collect();
    let required = arguments.iter().filter(|argument| argument["required"] == json!(true));
    let required: Vec<String> = required.map(name_of).collect();
    json!({
        "type": "object", "properties": properties, "required": required,
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::Command;
    use crate::output::Output;

    struct Nothing;
    impl Names for Nothing {}

    #[test]
    fn a_command_is_a_method_with_its_arguments() {
        let mut commands: Commands<Nothing> = Commands::new();
        commands.add(
            Command::new("set lamp <number:1-9> (on | off) [slowly]")
                .help("Switch a lamp")
                .run(|_, _| Ok(Output::none())),
        );
        let document = commands.openrpc();
        let methods = document["methods"].as_array().unwrap();
        let method = methods.iter().find(|method| method["name"] == "set_lamp").unwrap();
        let params = method["params"].as_array().unwrap();
        assert_eq!(params[0]["schema"]["maximum"], 9);
        assert_eq!(params[0]["required"], true);
        let slowly = params.iter().find(|param| param["name"] == "slowly").unwrap();
        assert_eq!(
            (&slowly["required"], &slowly["schema"]["type"]),
            (&json!(false), &json!("boolean"))
        );
        assert_eq!(commands.command_of_method("set_lamp"), Some("set lamp"));
        assert_eq!(commands.command_of_method("set lamp"), None);
        assert!(methods.iter().any(|method| method["name"] == "rpc.discover"));
    }
}
