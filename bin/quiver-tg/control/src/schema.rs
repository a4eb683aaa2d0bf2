//! JSON Schema (2020-12) of profiles and results, derived from the types that read and write them.

use schemars::generate::SchemaSettings;
use serde_json::Value as Json;

use crate::AnyReport;
use quiver_tg_traffic::profile::Profile;

/// The documents that have a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Of {
    /// The output of `run --json`.
    Result,
    /// A profile.
    Profile,
}

/// Its schema.
pub fn schema(of: Of) -> Json {
    let settings = SchemaSettings::draft2020_12();
    let schema = match of {
        Of::Result => settings.for_serialize().into_generator().into_root_schema_for::<AnyReport>(),
        Of::Profile => {
            settings.for_deserialize().into_generator().into_root_schema_for::<Profile>()
        }
    };
    schema.to_value()
}

#[cfg(test)]
mod tests {
    use super::*;
    use quiver_tg_traffic::profile::header;

    #[test]
    fn every_header_and_field_of_the_declarations_is_in_the_schema_of_profiles() {
        let schema = schema(Of::Profile);
        for header in header::all() {
            let known =
                &schema["$defs"][format!("Header_{}", header.name)]["anyOf"][0]["properties"];
            for field in header.fields {
                assert!(known.get(field.name).is_some(), "{}.{}", header.name, field.name);
            }
        }
    }

    #[test]
    fn what_profiles_may_say_is_closed_and_what_results_say_is_required() {
        let profile = schema(Of::Profile);
        assert_eq!(profile["additionalProperties"], false);
        assert_eq!(profile["required"], serde_json::json!(["ports"]));
        let result = schema(Of::Result);
        let required = result["$defs"]["Report"]["required"].as_array().expect("a list");
        for key in ["offered", "received", "lost", "latency_ns", "per_stream"] {
            assert!(required.iter().any(|name| name == key), "{key}");
        }
    }
}
