//! The published JSON form of every `show`: a JSON Schema for each, recorded from real answers and
//! checked against all later ones.
//!
//! Programs read these answers, so their form follows four rules ([`faults`] finds what breaks
//! them):
//! - a member's name is lower case words joined by `_`, and never data such as an interface's name;
//! - a quantity's name ends with its unit: `mtu_bytes`, `age_s`, `rate_pps`;
//! - a value is a number, a truth value, a name, an address or one word, never a sentence, except
//!   under [`SENTENCES`]; under [`WORDS`] it has the words of the command that sets it;
//! - a member's type does not change but to null.
//!
//! Answers that were seen do not say all that can come: a value that is optional in the code may be
//! null in the published form ([`Output::schema`](crate::Output::schema)), and [`gaps`] lists what
//! no answer has shown yet.

use serde_json::{Map, Value, json};

/// Members whose value is a sentence for people, or a text of somebody else's.
pub const SENTENCES: [&str; 11] = [
    "help",
    "text",
    "description",
    "message",
    "who",
    "reason",
    "last_disconnect",
    "model",
    "tag",
    "system_description",
    "command",
];

/// Members whose value stands in a command as it is, and can have several words there.
pub const WORDS: [&str; 16] = [
    "commands",
    "circuit_id",
    "remote_id",
    "vpn_name",
    "vss",
    "behavior",
    "match",
    "paths",
    "prefixes",
    "flow_hash",
    "with",
    "steered",
    "takes",
    "tag_rewrite",
    "routes",
    "rule",
];

/// The member that is a configuration: its names are those of the configuration's own schema.
const DOCUMENT: &str = "document";

/// Words that name a quantity; a number under such a name says its unit behind it.
const QUANTITIES: [&str; 15] = [
    "age",
    "bandwidth",
    "clock",
    "delay",
    "duration",
    "interval",
    "length",
    "lifetime",
    "mtu",
    "rate",
    "size",
    "speed",
    "time",
    "timeout",
    "uptime",
];

/// Form of published answers by command: `{"show interface": {…}}`.
pub type Published = Map<String, Value>;

/// Read the published forms. A fault in the text is a fault of ours and panics.
pub fn read(text: &str) -> Published {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("the published answers: {error}"))
}

/// The schema of one value.
pub fn infer(value: &Value) -> Value {
    match value {
        Value::Null => json!({ "type": "null" }),
        Value::Bool(_) => json!({ "type": "boolean" }),
        Value::Number(number) if number.is_f64() => json!({ "type": "number" }),
        Value::Number(_) => json!({ "type": "integer" }),
        Value::String(_) => json!({ "type": "string" }),
        Value::Array(items) => {
            match items.iter().map(infer).reduce(|one, other| merge(&one, &other)) {
                Some(items) => json!({ "type": "array", "items": items }),
                None => json!({ "type": "array" }),
            }
        }
        Value::Object(members) => {
            let mut properties: Map<String, Value> =
                members.iter().map(|(name, value)| (name.clone(), infer(value))).collect();
            properties.sort_keys();
            let required: Vec<&String> = properties.keys().collect();
            json!({
                "type": "object", "properties": properties, "required": required,
                "additionalProperties": false,
            })
        }
    }
}

/// The schema of what fits either schema.
pub fn merge(one: &Value, other: &Value) -> Value {
    let mut types: Vec<String> =
        types(one).into_iter().chain(types(other)).map(str::to_owned).collect();
    types.sort();
    types.dedup();
    if types.iter().any(|t| t == "number") {
        types.retain(|t| t != "integer");
    }
    let mut out =
        json!({ "type": if let [only] = types.as_slice() { json!(only) } else { json!(types) } });
    match (one.get("items"), other.get("items")) {
        (Some(one), Some(other)) => out["items"] = merge(one, other),
        (Some(items), None) | (None, Some(items)) => out["items"] = items.clone(),
        (None, None) => {}
    }
    match (
        one.get("properties").and_then(Value::as_object),
        other.get("properties").and_then(Value::as_object),
    ) {
        (Some(first), Some(second)) => {
            let mut properties = first.clone();
            for (name, schema) in second {
                let merged =
                    first.get(name).map_or_else(|| schema.clone(), |known| merge(known, schema));
                properties.insert(name.clone(), merged);
            }
            let both = |name: &&str| required(one).contains(name) && required(other).contains(name);
            properties.sort_keys();
            let required: Vec<&str> = properties.keys().map(String::as_str).filter(both).collect();
            out["required"] = json!(required);
            out["properties"] = Value::Object(properties);
            out["additionalProperties"] = json!(false);
        }
        (Some(_), None) => copy_members(one, &mut out),
        (None, Some(_)) => copy_members(other, &mut out),
        (None, None) => {}
    }
    out
}

fn copy_members(from: &Value, to: &mut Value) {
    for key in ["properties", "required", "additionalProperties"] {
        to[key] = from[key].clone();
    }
}

fn types(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn required(schema: &Value) -> Vec<&str> {
    schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Whether `value` has the form that `schema` publishes. Lists what differs, each with its place.
pub fn differences(schema: &Value, value: &Value) -> Vec<String> {
    let mut out = Vec::new();
    compare("", schema, value, &mut out);
    out
}

fn compare(place: &str, schema: &Value, value: &Value, out: &mut Vec<String>) {
    let allowed = types(schema);
    let is_type = |t: &&str| match (*t, value) {
        ("integer", Value::Number(number)) => !number.is_f64(),
        ("null", Value::Null)
        | ("boolean", Value::Bool(_))
        | ("number", Value::Number(_))
        | ("string", Value::String(_))
        | ("array", Value::Array(_))
        | ("object", Value::Object(_)) => true,
        _ => false,
    };
    if !allowed.iter().any(is_type) {
        out.push(format!("{place}: {value} is not of type {}", allowed.join(" or ")));
        return;
    }
    match value {
        Value::Array(items) => {
            for item in items {
                match schema.get("items") {
                    Some(form) => compare(&format!("{place}[]"), form, item, out),
                    None => out.push(format!("{place}[]: no item is published")),
                }
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                // A form without members is of somebody else, as a document is.
                let Some(properties) = schema.get("properties") else { continue };
                match properties.get(name) {
                    Some(form) => compare(&format!("{place}.{name}"), form, value, out),
                    None => out.push(format!("{place}.{name}: is not published")),
                }
            }
            for name in required(schema).into_iter().filter(|name| !members.contains_key(*name)) {
                out.push(format!("{place}.{name}: is missing"));
            }
        }
        _ => {}
    }
}

/// What a published form leaves open, each with its place: arrays without a form of their items,
/// and members known as null only.
pub fn gaps(schema: &Value) -> Vec<String> {
    let mut out = Vec::new();
    look_for_gaps("", schema, &mut out);
    out
}

fn look_for_gaps(place: &str, schema: &Value, out: &mut Vec<String>) {
    let types = types(schema);
    match (types.contains(&"array"), schema.get("items")) {
        (true, None) => out.push(format!("{place}[]: no item was seen")),
        (_, Some(items)) => look_for_gaps(&format!("{place}[]"), items, out),
        (false, None) => {}
    }
    if types == ["null"] {
        out.push(format!("{place}: was never seen but as null"));
    }
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        look_for_gaps(&format!("{place}.{name}"), member, out);
    }
}

/// What a published form does not allow although `schema`, of an answer in it, does. Lists each
/// place.
pub fn narrower(published: &Value, schema: &Value) -> Vec<String> {
    let mut out = Vec::new();
    look_for_narrower("", published, schema, &mut out);
    out
}

fn look_for_narrower(place: &str, published: &Value, schema: &Value, out: &mut Vec<String>) {
    let allowed = types(published);
    let is_allowed =
        |name: &&str| allowed.contains(name) || (*name == "integer" && allowed.contains(&"number"));
    for name in types(schema).iter().filter(|name| !is_allowed(name)) {
        out.push(format!("{place}: may be {name}, which is not published"));
    }
    if let (Some(published), Some(schema)) = (published.get("items"), schema.get("items")) {
        look_for_narrower(&format!("{place}[]"), published, schema, out);
    }
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(published) = published["properties"].get(name) {
            look_for_narrower(&format!("{place}.{name}"), published, schema, out);
        }
    }
}

/// What breaks the rules of this module in an answer, each with its place.
pub fn faults(value: &Value) -> Vec<String> {
    let mut out = Vec::new();
    inspect("", "", value, &mut out);
    out.sort();
    out.dedup();
    out
}

fn inspect(place: &str, name: &str, value: &Value, out: &mut Vec<String>) {
    match value {
        _ if name == DOCUMENT => {}
        Value::Object(members) => {
            for (name, value) in members {
                let place = format!("{place}.{name}");
                if !is_well_spelled(name) {
                    out.push(format!("{place}: a name is lower case words joined by `_`"));
                }
                inspect(&place, name, value, out);
            }
        }
        Value::Array(items) => {
            items.iter().for_each(|item| inspect(&format!("{place}[]"), name, item, out))
        }
        Value::Number(_) => {
            let last = name.rsplit('_').next().unwrap_or_default();
            if QUANTITIES.contains(&last) {
                out.push(format!("{place}: a quantity's name ends with its unit"));
            }
        }
        Value::String(text)
            if is_sentence(text) && !SENTENCES.contains(&name) && !WORDS.contains(&name) =>
        {
            out.push(format!("{place}: `{text}` is a sentence, or a list, for people"));
        }
        Value::String(text) if matches!(text.as_str(), "yes" | "no") => {
            out.push(format!("{place}: `{text}` is a truth value"));
        }
        _ => {}
    }
}

fn is_well_spelled(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

fn is_sentence(text: &str) -> bool {
    text.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_fits_the_schema_that_was_inferred_from_it_and_another() {
        let one = json!([{ "name": "e0", "mtu_bytes": 1500, "peer": null }]);
        let other = json!([{ "name": "e1", "mtu_bytes": 9000, "peer": "x", "rate_pps": 1.5 }, ]);
        let both = merge(&infer(&one), &infer(&other));
        assert_eq!(differences(&both, &one), Vec::<String>::new());
        assert_eq!(differences(&both, &other), Vec::<String>::new());
        assert_eq!(differences(&both, &json!([])), Vec::<String>::new());
        let wrong = json!([{ "name": 7, "mtu_bytes": 1.5, "more": 1 }]);
        assert_eq!(
            differences(&both, &wrong),
            [
                "[].name: 7 is not of type string",
                "[].mtu_bytes: 1.5 is not of type integer",
                "[].more: is not published",
                "[].peer: is missing",
            ]
        );
    }

    #[test]
    fn gaps_and_narrower_types_are_found() {
        let published = merge(&infer(&json!([{ "mac": "x", "peers": [] }])), &infer(&json!([])));
        assert_eq!(gaps(&published), ["[].peers[]: no item was seen"]);
        let wider = infer(&json!([{ "mac": null, "peers": [] }]));
        assert_eq!(
            gaps(&wider),
            ["[].mac: was never seen but as null", "[].peers[]: no item was seen"]
        );
        assert_eq!(narrower(&published, &wider), ["[].mac: may be null, which is not published"]);
        assert!(narrower(&merge(&published, &wider), &wider).is_empty());
        assert!(narrower(&infer(&json!(1.5)), &infer(&json!(1))).is_empty());
    }

    #[test]
    fn merging_does_not_depend_on_the_order() {
        let values = [
            json!({"a": 1}),
            json!({"a": 1.5, "b": []}),
            json!({"a": null, "b": [{"c": "x"}]}),
            json!(null),
        ];
        for first in &values {
            for second in &values {
                assert_eq!(
                    merge(&infer(first), &infer(second)),
                    merge(&infer(second), &infer(first))
                );
            }
        }
    }

    #[test]
    fn names_units_and_sentences_are_looked_at() {
        assert!(
            faults(&json!({ "mtu_bytes": 1500, "help": "Two words", "time_s": 1.0 })).is_empty()
        );
        assert_eq!(
            faults(&json!({ "rx-packets": 1, "mtu": 1500, "state": "not yet up", "bvi": "yes" })),
            [
                ".bvi: `yes` is a truth value",
                ".mtu: a quantity's name ends with its unit",
                ".rx-packets: a name is lower case words joined by `_`",
                ".state: `not yet up` is a sentence, or a list, for people",
            ]
        );
    }
}
