//! Scalars of a profile that are written as text.

/// MAC addresses.
pub mod mac {
    use quiver_wire::MacAddress;
    use serde::de::{Deserialize, Deserializer, Error};

    fn parse<E: Error>(text: &str) -> Result<MacAddress, E> {
        text.parse().map_err(|_| {
            E::custom(format!("`{text}` is not a MAC address; one looks like \"02:fe:00:00:00:01\""))
        })
    }

    /// One that may be left out.
    pub fn optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<MacAddress>, D::Error> {
        Option::<String>::deserialize(deserializer)?.map(|text| parse(&text)).transpose()
    }
}
