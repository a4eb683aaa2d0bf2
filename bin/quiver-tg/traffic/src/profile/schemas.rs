//! JSON Schema of the types with a parser of their own: rates, addresses, tags, sizes, headers.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value as Json, json};

use super::addresses::{ADDRESS_RANGES_MAX, Address, Addresses};
use super::field::{LIST_VALUES_MAX, Order};
use super::header::{self, FieldSpec, HeaderSpec, SEGMENTS};
use super::layers::{LAYERS_MAX, Layers, SEGMENTS_MAX};
use super::quantity::StreamRate;
use super::sizes::{Form, FrameShare, FrameSizes, NAMED};
use super::stream::Hex;
use super::tags::{TAGS_MAX, Tag, Tags};
use crate::profile::capture::filter::Filter;
use crate::profile::stateful::ServerPort;

/// Implements `JsonSchema` for a type: its name, and the schema, which may refer to others.
macro_rules! schema {
    ($type:ty, $name:literal, |$generator:ident| $schema:expr) => {
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }
            fn json_schema($generator: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    };
}

schema!(StreamRate, "Rate", |_generator| json_schema!({
    "description": "Frames a second, or a text like 1.5Mpps, 10Gbps (layer 1), 10GbpsL2, 40% or \
     max",
    "type": ["number", "string"],
}));
schema!(Hex, "Packet", |_generator| json_schema!({
    "description": "An Ethernet frame as hexadecimal digits",
    "type": "string",
}));
schema!(Filter, "Filter", |_generator| json_schema!({
    "description": "Which frames: words like udp, and, not, stream 0",
    "type": "string",
}));
schema!(ServerPort, "ServerPort", |_generator| json_schema!({
    "description": "A port, or `same` for the client's",
    "type": ["integer", "string"],
}));
schema!(Order, "Order", |_generator| json_schema!({
    "description": "In which order values come; `increment` is `sequential`",
    "enum": ["sequential", "increment", "decrement", "random", "zipf"],
}));
schema!(Tag, "Tag", |_generator| {
    let id = json!({"type": "integer", "minimum": 1, "maximum": 4094});
    let of = |kind: &str| {
        json!({
            "type": "object", "properties": {kind: id}, "required": [kind],
            "additionalProperties": false
        })
    };
    json_schema!({"description": "A VLAN tag", "anyOf": [id, of("dot1q"), of("dot1ad")]})
});
schema!(Tags, "Tags", |generator| {
    let tag = generator.subschema_for::<Tag>();
    json_schema!({
        "description": "A VLAN, or tags from the outside in",
        "anyOf": [{"type": "integer", "minimum": 1, "maximum": 4094},
            {"type": "array", "items": tag, "maxItems": TAGS_MAX}],
    })
});
schema!(FrameSizes, "FrameSizes", |generator| {
    let (share, form) =
        (generator.subschema_for::<FrameShare>(), generator.subschema_for::<Form>());
    let names: Vec<&str> = NAMED.iter().map(|(name, _)| *name).collect();
    json_schema!({
        "description": "Bytes without FCS, the name of a mix, a genome (RFC 6985), a mix, or \
         sizes that vary",
        "anyOf": [
            {"type": "integer", "minimum": 1},
            {"enum": names},
            {"type": "string", "pattern": "^IMIX"},
            {"type": "array", "items": share, "minItems": 1, "maxItems": 255},
            form,
        ],
    })
});
schema!(Layers, "Layers", |generator| {
    let map = headers(generator);
    let names: Vec<&str> = header::all().map(|header| header.name).collect();
    json_schema!({
        "description": "Headers from the outside in: a map in their order, or a list",
        "anyOf": [map, {"type": "array", "items": {"anyOf": [{"enum": names}, map]},
                "maxItems": LAYERS_MAX}],
    })
});

impl<A: Address> JsonSchema for Addresses<A> {
    fn schema_name() -> Cow<'static, str> {
        format!("Ip{}Addresses", if A::BITS == 32 { 4 } else { 6 }).into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let one = json!({"type": "string"});
        json_schema!({
            "description": format!("Addresses, prefixes and ranges like {}", A::EXAMPLE),
            "anyOf": [one, {"type": "array", "items": one, "maxItems": ADDRESS_RANGES_MAX}],
        })
    }
}

/// Put a schema among the definitions, and refer to it.
fn defined(generator: &mut SchemaGenerator, name: &str, schema: Json) -> Json {
    generator.definitions_mut().insert(name.to_owned(), schema);
    json!({"$ref": format!("#/$defs/{name}")})
}

/// A map of headers, as their declarations have them.
fn headers(generator: &mut SchemaGenerator) -> Json {
    let order = generator.subschema_for::<Order>();
    let value = json!({"type": ["integer", "string"]});
    let values =
        json!({"type": "array", "items": value, "minItems": 1, "maxItems": LIST_VALUES_MAX});
    let number = json!({"type": "integer", "minimum": 0});
    let many = json!({
        "type": "object",
        "properties": {
            "first": value, "last": value, "count": number, "step": value, "list": values,
            "file": {"type": "string"}, "order": order, "seed": number,
            "exponent": {"type": "number"}, "mask": value,
        },
        "additionalProperties": false,
    });
    let field =
        json!({"description": "A value, a list of them, or many", "anyOf": [value, values, many]});
    let field = defined(generator, "Field", field);
    let mut properties = Map::new();
    for header in header::all() {
        let name = format!("Header_{}", header.name);
        let itself = json!({"$ref": format!("#/$defs/{name}")});
        let schema = one_header(header, &field, &itself);
        properties.insert(header.name.to_owned(), defined(generator, &name, schema));
    }
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}

fn one_header(header: &HeaderSpec, field: &Json, itself: &Json) -> Json {
    let described = |spec: &FieldSpec| {
        let mut schema = field.clone();
        schema["description"] = json!(spec.kind.what(spec.bits));
        (spec.name.to_owned(), schema)
    };
    let mut properties: Map<String, Json> = header.fields.iter().map(described).collect();
    if let Some((name, _)) = header.tail {
        let segments = json!({
            "type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": SEGMENTS_MAX
        });
        let tail = if name == SEGMENTS { segments } else { json!({"type": "string"}) };
        properties.insert(name.to_owned(), tail);
    }
    let mut forms = vec![
        json!({"type": "object", "properties": properties, "additionalProperties": false}),
        json!({"type": "null"}),
        json!({"type": "array", "items": itself}),
    ];
    if header.principal.is_some() {
        forms.push(json!({"type": ["integer", "string"]}));
    } else if header.tail.is_some_and(|(_, unit)| unit == 1) {
        forms.push(json!({"type": "string"}));
    }
    json!({"description": format!("{} bytes", header.bytes), "anyOf": forms})
}
