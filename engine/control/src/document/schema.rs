//! JSON Schema 2020-12 of the document, from the same declarations: for editors, and for programs
//! that write documents.

use serde_json::{Map, Value as Json, json};

use super::SUB_INTERFACES;
use super::notation::{Argument, Kind, Value};
use super::shape::{EntryId, Shape};
use crate::error::either;
use crate::grammar::Commands;
use crate::names::Names;
use crate::syntax::Choice;
use crate::types::{Reads, ValueType};

impl<S: Names + 'static> Commands<S> {
    /// The JSON Schema of documents.
    pub fn document_schema(&self) -> Json {
        let shape = self.shape();
        let writer = Writer { commands: self };
        let mut schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": "https://quiver.invalid/configuration.schema.json",
            "title": "Configuration of a Quiver router",
        });
        let mut root = writer.section(shape);
        let (Some(out), Some(members)) = (schema.as_object_mut(), root.as_object_mut()) else {
            return schema;
        };
        out.append(members);
        schema
    }
}

struct Writer<'c, S> {
    commands: &'c Commands<S>,
}

impl<S: Names + 'static> Writer<'_, S> {
    /// What can stand at a place.
    fn place(&self, shape: &Shape) -> Json {
        let mut forms = Vec::new();
        let has_map = shape.values.iter().any(|id| self.value_of(*id).is_map());
        if has_map || !shape.words.is_empty() || shape.any.is_some() {
            forms.push(self.section(shape));
        }
        for id in &shape.values {
            forms.extend(self.scalars(*id));
        }
        let mut items: Vec<Json> = Vec::new();
        for id in &shape.items {
            items.push(self.described(*id, self.value(*id, self.value_of(*id))));
        }
        if !items.is_empty() {
            let item = any_of(items);
            forms.push(item.clone());
            forms.push(json!({ "type": "array", "items": item }));
            forms.push(json!({ "type": "null" }));
        }
        any_of(forms)
    }

    fn value_of(&self, id: EntryId) -> &Value {
        &self.commands.commands[id.command].entries[id.entry].entry.value
    }

    /// Keys.
    fn section(&self, shape: &Shape) -> Json {
        let mut properties = Map::new();
        let mut descriptions: Vec<&str> = Vec::new();
        for id in &shape.values {
            let value = self.value_of(*id);
            if !value.is_map() {
                continue;
            }
            descriptions.push(self.commands.commands[id.command].help);
            for member in value.members() {
                let own = self.value(*id, &member.value);
                let own = match member.is_first {
                    true => json!({ "type": "array", "items": own }),
                    false => own,
                };
                add(&mut properties, member.key, own);
            }
        }
        for (word, below) in &shape.words {
            let own = match (*word, self.commands.shape().interface()) {
                (SUB_INTERFACES, Some(interface)) => self.sub_interfaces(below, interface),
                _ => self.place(below),
            };
            add(&mut properties, word, own);
        }
        properties.sort_keys();
        let mut out = json!({ "type": ["object", "null"], "properties": properties });
        if let [only] = descriptions.as_slice() {
            out["description"] = json!(only);
        }
        match &shape.any {
            Some(any) => {
                out["additionalProperties"] = self.place(any);
                if let Some(names) = keys(&shape.key_types) {
                    out["propertyNames"] = names;
                }
            }
            None => out["additionalProperties"] = json!(false),
        }
        out
    }

    /// Sub-interfaces take what every interface takes, but sub-interfaces.
    fn sub_interfaces(&self, shape: &Shape, interface: &Shape) -> Json {
        let Some(own) = shape.any.as_deref() else { return self.place(shape) };
        let mut section = self.section(own);
        let mut all = Map::new();
        for (word, below) in interface.words.iter().filter(|(word, _)| **word != SUB_INTERFACES) {
            add(&mut all, word, self.place(below));
        }
        if let Some(properties) = section["properties"].as_object_mut() {
            for (key, value) in all {
                add(properties, &key, value);
            }
            properties.sort_keys();
        }
        json!({ "type": ["object", "null"], "additionalProperties": section })
    }

    /// The forms of a value that have no keys.
    fn scalars(&self, id: EntryId) -> Option<Json> {
        let forms: Vec<Json> = match self.value_of(id) {
            Value::OneOf(values) => values
                .iter()
                .filter(|value| !value.is_map())
                .map(|value| self.value(id, value))
                .collect(),
            value if value.is_map() => Vec::new(),
            value => vec![self.value(id, value)],
        };
        (!forms.is_empty()).then(|| self.described(id, any_of(forms)))
    }

    fn described(&self, id: EntryId, mut schema: Json) -> Json {
        let help = self.commands.commands[id.command].help;
        if schema.get("description").is_none() && !help.is_empty() {
            schema["description"] = json!(help);
        }
        schema
    }

    fn value(&self, id: EntryId, value: &Value) -> Json {
        let command = &self.commands.commands[id.command];
        of_value(value, &command.arguments, &command.words)
    }
}

fn of_value(value: &Value, arguments: &[Argument], words: &[(&'static str, &'static str)]) -> Json {
    let help = |name: &str, mut schema: Json| {
        if let Some((_, help)) = words.iter().find(|(word, _)| *word == name) {
            schema["description"] = json!(help);
        }
        schema
    };
    match value {
        Value::Argument(name) => help(name, of_argument(name, arguments)),
        Value::Arguments(name) => help(name, one_or_more(of_argument(name, arguments))),
        Value::Truth { argument, yes, .. } => {
            help(argument.unwrap_or(yes), json!({ "type": "boolean" }))
        }
        Value::Flag(flags) => json!({ "enum": flags }),
        Value::Flags(flags) => one_or_more(json!({ "enum": flags })),
        Value::True => json!({ "type": "boolean" }),
        Value::Map { members, .. } => {
            let mut properties = Map::new();
            for member in members {
                add(&mut properties, member.key, of_value(&member.value, arguments, words));
            }
            json!({
                "type": ["object", "null"], "properties": properties,
                "additionalProperties": false,
            })
        }
        Value::Groups(groups) => one_or_more(of_value(&groups.value, &groups.arguments, words)),
        Value::OneOf(values) => {
            any_of(values.iter().map(|value| of_value(value, arguments, words)).collect())
        }
    }
}

/// A list, or what stands alone.
fn one_or_more(item: Json) -> Json {
    json!({ "anyOf": [item, { "type": "array", "minItems": 1, "items": item }] })
}

fn any_of(mut forms: Vec<Json>) -> Json {
    let mut different: Vec<Json> = Vec::new();
    for form in forms.drain(..) {
        if !different.contains(&form) {
            different.push(form);
        }
    }
    match different.len() {
        0 => json!(true),
        1 => different.remove(0),
        _ => json!({ "anyOf": different }),
    }
}

/// Add what can stand at a key; it may have been there in another form.
fn add(properties: &mut Map<String, Json>, key: &str, schema: Json) {
    let schema = match properties.remove(key) {
        Some(known) if known != schema => any_of(vec![known, schema]),
        _ => schema,
    };
    properties.insert(key.to_owned(), schema);
}

fn of_argument(name: &str, arguments: &[Argument]) -> Json {
    let (mut words, mut forms): (Vec<&str>, Vec<Json>) = (Vec::new(), Vec::new());
    for argument in arguments.iter().filter(|argument| argument.name == name) {
        let (Kind::Value(choices) | Kind::Values(choices)) = &argument.kind else { continue };
        for choice in choices {
            match choice {
                Choice::Word(word) if !words.contains(word) => words.push(word),
                Choice::Word(_) => {}
                Choice::Type(kind) => forms.push(of_type(kind)),
            }
        }
    }
    if !words.is_empty() {
        // A number may be one of the words, as 0 and 1 of switches are.
        forms.push(json!({ "enum": words }));
    }
    any_of(forms)
}

fn of_type(kind: &ValueType) -> Json {
    let described = |mut schema: Json| {
        schema["description"] = json!(kind.description);
        schema
    };
    match kind.reads {
        Reads::Number { min, max: u64::MAX } => json!({ "type": "integer", "minimum": min }),
        Reads::Number { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Reads::Strict(_) => match pattern(&kind.name) {
            Some(pattern) => described(json!({ "type": "string", "pattern": pattern })),
            None => described(json!({ "type": ["string", "number"] })),
        },
        Reads::Text | Reads::Name(_) | Reads::Block | Reads::Rest => {
            described(json!({ "type": "string" }))
        }
    }
}

/// Texts of a type have this form.
fn pattern(name: &str) -> Option<&'static str> {
    match name {
        "ip4" => Some(r"^\d{1,3}(\.\d{1,3}){3}$"),
        "ip6" => Some(r"^[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*$"),
        "ip" => Some(r"^[0-9A-Fa-f:.]+$"),
        "prefix4" => Some(r"^\d{1,3}(\.\d{1,3}){3}/\d{1,2}$"),
        "prefix6" => Some(r"^[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*/\d{1,3}$"),
        "prefix" => Some(r"^[0-9A-Fa-f:.]+/\d{1,3}$"),
        "mac" => {
            Some(r"^([0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}|[0-9A-Fa-f]{4}(\.[0-9A-Fa-f]{4}){2})$")
        }
        _ => None,
    }
}

/// The names of keys, where all are of types that have a form.
fn keys(types: &[Option<ValueType>]) -> Option<Json> {
    let mut patterns: Vec<&str> = Vec::new();
    for kind in types {
        let kind = kind.as_ref()?;
        patterns.push(match kind.reads {
            Reads::Number { .. } => r"^(\d+|0x[0-9A-Fa-f]+)$",
            _ => pattern(&kind.name)?,
        });
    }
    patterns.sort_unstable();
    patterns.dedup();
    let text = match patterns.as_slice() {
        [] => return None,
        [only] => (*only).to_owned(),
        several => format!("({})", several.join("|")),
    };
    let expected: Vec<&str> =
        types.iter().flatten().map(|kind| kind.description.as_str()).collect();
    Some(json!({ "pattern": text, "description": either(&expected) }))
}
