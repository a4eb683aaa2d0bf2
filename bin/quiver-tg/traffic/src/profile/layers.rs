//! The headers of a stream's frames, from the outside in: as a map, or as a list where one kind
//! comes twice.

use std::fmt;
use std::net::Ipv6Addr;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::field::{Field, FieldSeed};
use super::header::{self, FieldSpec, GRE_KEY, HeaderSpec, SEGMENTS};
use super::scalar::Scalar;

/// Headers of one frame.
pub const LAYERS_MAX: usize = 32;
/// Bytes that a header may have behind its fixed part.
pub const TAIL_BYTES_MAX: usize = 9000;
/// Segments of a segment routing header.
pub const SEGMENTS_MAX: usize = 100;

/// One header: what is said of it.
#[derive(Clone, Debug)]
pub struct Layer {
    /// Which.
    pub spec: &'static HeaderSpec,
    /// Places in the specification's fields, and what goes into them.
    pub fields: Vec<(usize, Field)>,
    /// Bytes behind the fixed part: options, segments as they lie in the header, raw bytes.
    pub tail: Vec<u8>,
}

/// All headers.
#[derive(Clone, Debug, Default)]
pub struct Layers(pub Vec<Layer>);

impl Layer {
    /// With nothing said.
    pub fn new(spec: &'static HeaderSpec) -> Layer {
        Layer { spec, fields: Vec::new(), tail: Vec::new() }
    }

    /// What is said of a field.
    pub fn field(&self, name: &str) -> Option<&Field> {
        let place = self.spec.place(name)?;
        self.fields.iter().find(|(at, _)| *at == place).map(|(_, field)| field)
    }

    /// Say what a field always holds, unless something is said already.
    pub fn set_default(&mut self, name: &str, value: u128) {
        if let (None, Some(place)) = (self.field(name), self.spec.place(name)) {
            self.fields.push((place, Field::one(value)));
        }
    }

    /// Bytes of it.
    pub fn bytes(&self) -> usize {
        let key = if self.spec.is(&header::GRE) && self.field(GRE_KEY).is_some() { 4 } else { 0 };
        self.spec.bytes + key + self.tail.len()
    }

    /// The segments of a segment routing header, in the order of travel.
    pub fn segments(&self) -> Vec<Ipv6Addr> {
        let (chunks, _) = self.tail.as_chunks::<16>();
        chunks.iter().rev().map(|octets| Ipv6Addr::from(*octets)).collect()
    }
}

impl Layers {
    /// Bytes of all headers.
    pub fn header_bytes(&self) -> usize {
        self.0.iter().map(Layer::bytes).sum()
    }

    /// The first header of a kind.
    pub fn first(&self, spec: &HeaderSpec) -> Option<&Layer> {
        self.0.iter().find(|layer| layer.spec.is(spec))
    }
}

impl<'de> Deserialize<'de> for Layers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LayersVisitor)
    }
}

struct LayersVisitor;

impl<'de> Visitor<'de> for LayersVisitor {
    type Value = Layers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("headers as a map ({ip4: {…}, udp: {…}}) or as a list ([ip4: {…}, udp])")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Layers, A::Error> {
        let mut layers = Vec::new();
        read_headers(&mut map, &mut layers)?;
        Ok(Layers(layers))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Layers, A::Error> {
        let mut layers = Vec::new();
        while let Some(some) = list.next_element_seed(ItemSeed)? {
            layers.extend(some);
            check_count(&layers)?;
        }
        Ok(Layers(layers))
    }
}

fn check_count<E: Error>(layers: &[Layer]) -> Result<(), E> {
    if layers.len() > LAYERS_MAX {
        return Err(E::custom(format!("more than {LAYERS_MAX} headers")));
    }
    Ok(())
}

fn known<E: Error>(name: &str) -> Result<&'static HeaderSpec, E> {
    header::by_name(name).ok_or_else(|| {
        let names: Vec<&str> = header::all().map(|header| header.name).collect();
        E::custom(format!("`{name}` is no header; there are {}", names.join(", ")))
    })
}

/// Entries `name: fields`, each one header or, with a list of fields, several.
fn read_headers<'de, A: MapAccess<'de>>(
    map: &mut A,
    layers: &mut Vec<Layer>,
) -> Result<(), A::Error> {
    while let Some(name) = map.next_key::<String>()? {
        layers.extend(map.next_value_seed(HeaderSeed(known(&name)?))?);
        check_count(layers)?;
    }
    Ok(())
}

/// One item of a list: `udp`, or `ip4: {…}`.
struct ItemSeed;

impl<'de> DeserializeSeed<'de> for ItemSeed {
    type Value = Vec<Layer>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<Layer>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ItemSeed {
    type Value = Vec<Layer>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a header like `udp` or `ip4: {…}`")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Vec<Layer>, E> {
        Ok(vec![Layer::new(known(name)?)])
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<Layer>, A::Error> {
        let mut layers = Vec::new();
        read_headers(&mut map, &mut layers)?;
        Ok(layers)
    }
}

/// Reads what is said of a header.
struct HeaderSeed(&'static HeaderSpec);

impl<'de> DeserializeSeed<'de> for HeaderSeed {
    type Value = Vec<Layer>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<Layer>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl HeaderSeed {
    /// The field that a bare value sets.
    fn principal<E: Error>(&self) -> Result<(usize, &'static FieldSpec), E> {
        let place = self.0.principal.and_then(|name| self.0.place(name));
        let place = place.ok_or_else(|| {
            E::custom(format!(
                "{} is a map of {} (`{}: {{}}`)",
                self.0.name,
                self.0.keys(),
                self.0.name
            ))
        })?;
        Ok((place, &self.0.fields[place]))
    }

    fn of_scalar<E: Error>(
        self,
        read: impl FnOnce(Scalar) -> Result<u128, E>,
    ) -> Result<Vec<Layer>, E> {
        let (place, field) = self.principal()?;
        let value = read(Scalar { kind: field.kind, bits: field.bits })?;
        Ok(vec![Layer { fields: vec![(place, Field::one(value))], ..Layer::new(self.0) }])
    }
}

impl<'de> Visitor<'de> for HeaderSeed {
    type Value = Vec<Layer>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the fields of {}: a map of {}", self.0.name, self.0.keys())
    }

    fn visit_unit<E: Error>(self) -> Result<Vec<Layer>, E> {
        Ok(vec![Layer::new(self.0)])
    }

    fn visit_none<E: Error>(self) -> Result<Vec<Layer>, E> {
        self.visit_unit()
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Vec<Layer>, E> {
        match self.0.tail {
            Some((_, 1)) => Ok(vec![Layer { tail: hex(text)?, ..Layer::new(self.0) }]),
            _ if text.is_empty() => self.visit_unit(),
            _ => self.of_scalar(|scalar| scalar.of_text(text)),
        }
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Vec<Layer>, E> {
        self.of_scalar(|scalar| scalar.of_number(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Vec<Layer>, E> {
        self.of_scalar(|scalar| scalar.of_signed(number))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<Layer>, A::Error> {
        let mut layers = Vec::new();
        while let Some(some) = list.next_element_seed(HeaderSeed(self.0))? {
            layers.extend(some);
            check_count(&layers)?;
        }
        Ok(layers)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<Layer>, A::Error> {
        let mut layer = Layer::new(self.0);
        while let Some(key) = map.next_key::<String>()? {
            if let Some(place) = self.0.place(&key) {
                let FieldSpec { kind, bits, .. } = self.0.fields[place];
                let field = map.next_value_seed(FieldSeed(Scalar { kind, bits }))?;
                layer.fields.push((place, field));
            } else if let Some((_, unit)) = self.0.tail.filter(|(name, _)| *name == key) {
                layer.tail = if key == SEGMENTS {
                    segments(&mut map)?
                } else {
                    hex(&map.next_value::<String>()?)?
                };
                if !(self.0.bytes + layer.tail.len()).is_multiple_of(unit.min(8)) {
                    let message = format!(
                        "{} bytes of {key} do not fill up {}",
                        layer.tail.len(),
                        self.0.name
                    );
                    return Err(A::Error::custom(format!(
                        "{message}: with its {} a multiple of {unit}",
                        self.0.bytes
                    )));
                }
            } else {
                let message =
                    format!("{} has no field `{key}`; there are {}", self.0.name, self.0.keys());
                return Err(A::Error::custom(message));
            }
        }
        Ok(vec![layer])
    }
}

/// Segments in the order of travel; they lie in the header in the opposite one (RFC 8754 §2).
fn segments<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Vec<u8>, A::Error> {
    let list = map.next_value::<Vec<Ipv6Addr>>()?;
    if list.is_empty() || list.len() > SEGMENTS_MAX {
        return Err(A::Error::custom(format!("a segment list has 1 to {SEGMENTS_MAX} segments")));
    }
    Ok(list.iter().rev().flat_map(Ipv6Addr::octets).collect())
}

/// Bytes from pairs of hexadecimal digits; blanks, line ends and colons may separate them.
///
/// # Errors
/// When the text has another character, or an odd number of digits.
pub fn hex<E: Error>(text: &str) -> Result<Vec<u8>, E> {
    let digits: Vec<char> = text.chars().filter(|c| !c.is_whitespace() && *c != ':').collect();
    let wrong = || E::custom("bytes are pairs of hexadecimal digits, like \"0a00 ff\"");
    if !digits.len().is_multiple_of(2) {
        return Err(wrong());
    }
    if digits.len() / 2 > TAIL_BYTES_MAX {
        return Err(E::custom(format!(
            "{} bytes; there may be {TAIL_BYTES_MAX}",
            digits.len() / 2
        )));
    }
    let nibble = |digit: char| digit.to_digit(16).map(|value| value as u8).ok_or_else(wrong);
    digits.chunks_exact(2).map(|pair| Ok(nibble(pair[0])? << 4 | nibble(pair[1])?)).collect()
}
