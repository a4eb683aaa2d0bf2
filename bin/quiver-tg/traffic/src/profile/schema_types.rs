//! Types that stand for a text in the JSON Schema of a profile, where the field itself has another
//! type.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// A number, or a text with a number and its unit.
pub struct Quantity;
/// A MAC address.
pub struct MacText;

impl JsonSchema for Quantity {
    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number, or a text with its unit: 10ms, 10G",
            "type": ["number", "string"],
        })
    }
}

impl JsonSchema for MacText {
    fn schema_name() -> Cow<'static, str> {
        "MacAddress".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A MAC address",
            "type": "string",
            "pattern": "^([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}$",
        })
    }
}
