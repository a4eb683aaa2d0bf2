//! JSON Schema as far as the document's schema uses it: what does not fit.

use serde_json::Value;

/// What of a value does not fit a schema, with its place.
pub fn faults(schema: &Value, value: &Value) -> Vec<String> {
    let mut out = Vec::new();
    check(schema, value, "", &mut out);
    out
}

fn check(schema: &Value, value: &Value, at: &str, out: &mut Vec<String>) {
    let Some(schema) = schema.as_object() else {
        if schema == &Value::Bool(false) {
            out.push(format!("{at}: nothing may stand here"));
        }
        return;
    };
    if let Some(forms) = schema.get("anyOf").and_then(Value::as_array) {
        let all: Vec<Vec<String>> = forms
            .iter()
            .map(|form| {
                let mut own = Vec::new();
                check(form, value, at, &mut own);
                own
            })
            .collect();
        if !all.iter().any(Vec::is_empty) {
            out.extend(all.into_iter().min_by_key(Vec::len).unwrap_or_default());
        }
    }
    if let Some(words) = schema.get("enum").and_then(Value::as_array)
        && !words.contains(value)
    {
        out.push(format!("{at}: {value} is none of {words:?}"));
    }
    if let Some(types) = schema.get("type") {
        let is = |name: &str| match name {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "integer" => value.is_u64() || value.is_i64(),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            "null" => value.is_null(),
            other => panic!("the type {other}"),
        };
        let names: Vec<&str> = match types {
            Value::String(name) => vec![name],
            Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
            other => panic!("the type {other}"),
        };
        if !names.iter().any(|name| is(name)) {
            out.push(format!("{at}: {value} is no {}", names.join(" or ")));
        }
    }
    if let (Some(number), Some(least)) =
        (value.as_u64(), schema.get("minimum").and_then(Value::as_u64))
        && number < least
    {
        out.push(format!("{at}: {number} is below {least}"));
    }
    if let (Some(number), Some(most)) =
        (value.as_u64(), schema.get("maximum").and_then(Value::as_u64))
        && number > most
    {
        out.push(format!("{at}: {number} is above {most}"));
    }
    if let (Some(items), Some(item)) = (value.as_array(), schema.get("items")) {
        items.iter().for_each(|value| check(item, value, &format!("{at}[]"), out));
    }
    let Some(members) = value.as_object() else { return };
    for (key, value) in members {
        let place = format!("{at}.{key}");
        match (
            &schema.get("properties").and_then(|all| all.get(key)),
            schema.get("additionalProperties"),
        ) {
            (Some(property), _) => check(property, value, &place, out),
            (None, Some(others)) => check(others, value, &place, out),
            (None, None) => {}
        }
    }
}
