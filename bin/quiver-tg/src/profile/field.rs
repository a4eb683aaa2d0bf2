//! A header field: one value, a run of values, or a file of values.

use std::fmt;
use std::marker::PhantomData;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::str::FromStr;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use quiver_wire::MacAddress;

/// Values of a run.
pub const RUN_VALUES_MAX: u64 = 1 << 24;
/// Lines of a file.
pub const FILE_VALUES_MAX: usize = 1 << 22;
/// The steepest zipf distribution.
const EXPONENT_MAX: f64 = 10.0;

/// What a field can hold.
pub trait FieldValue: Copy + FromStr + fmt::Display {
    /// As it lies in the header: network order, in a word of the machine.
    type Word: Copy + Send + Sync;
    /// What it is called.
    const WHAT: &'static str;
    /// Its word.
    fn word(self) -> Self::Word;
    /// The value `k` behind it, if there is one.
    fn plus(self, k: u64) -> Option<Self>;
    /// From a number, where numbers are written.
    fn from_number(number: u64) -> Option<Self>;
    /// Its number, where a sequence is counted.
    fn number(self) -> u128;
    /// The word of a number.
    fn word_of(number: u128) -> Self::Word;
}

impl FieldValue for Ipv4Addr {
    type Word = u32;
    const WHAT: &'static str = "an IPv4 address";
    fn word(self) -> u32 {
        u32::from_ne_bytes(self.octets())
    }
    fn plus(self, k: u64) -> Option<Self> {
        u32::try_from(k).ok().and_then(|k| self.to_bits().checked_add(k)).map(Ipv4Addr::from_bits)
    }
    fn from_number(_: u64) -> Option<Self> {
        None
    }
    fn number(self) -> u128 {
        u128::from(self.to_bits())
    }
    fn word_of(number: u128) -> u32 {
        (number as u32).to_be()
    }
}

impl FieldValue for Ipv6Addr {
    type Word = u128;
    const WHAT: &'static str = "an IPv6 address";
    fn word(self) -> u128 {
        u128::from_ne_bytes(self.octets())
    }
    fn plus(self, k: u64) -> Option<Self> {
        self.to_bits().checked_add(u128::from(k)).map(Ipv6Addr::from_bits)
    }
    fn from_number(_: u64) -> Option<Self> {
        None
    }
    fn number(self) -> u128 {
        self.to_bits()
    }
    fn word_of(number: u128) -> u128 {
        number.to_be()
    }
}

impl FieldValue for MacAddress {
    type Word = [u8; 6];
    const WHAT: &'static str = "a MAC address; one looks like \"02:fe:00:00:00:01\"";
    fn word(self) -> [u8; 6] {
        self.0
    }
    fn plus(self, k: u64) -> Option<Self> {
        let sum = self.to_u64().checked_add(k)?;
        (sum >> 48 == 0).then(|| MacAddress::from_u64(sum))
    }
    fn from_number(_: u64) -> Option<Self> {
        None
    }
    fn number(self) -> u128 {
        u128::from(self.to_u64())
    }
    fn word_of(number: u128) -> [u8; 6] {
        MacAddress::from_u64(number as u64).0
    }
}

impl FieldValue for u16 {
    type Word = u16;
    const WHAT: &'static str = "a port from 0 to 65535";
    fn word(self) -> u16 {
        self.to_be()
    }
    fn plus(self, k: u64) -> Option<Self> {
        u16::try_from(k).ok().and_then(|k| self.checked_add(k))
    }
    fn from_number(number: u64) -> Option<Self> {
        u16::try_from(number).ok()
    }
    fn number(self) -> u128 {
        u128::from(self)
    }
    fn word_of(number: u128) -> u16 {
        (number as u16).to_be()
    }
}

/// In which order a run's values come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// One after the other.
    #[default]
    Sequential,
    /// Uniformly at random.
    Random,
    /// Value k with weight 1 / (k + 1)^exponent.
    Zipf,
}

/// A run: value k is `first` + k.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run<T> {
    /// Value 0.
    pub first: T,
    /// How many values.
    pub count: u64,
    /// In which order.
    pub order: Order,
    /// What the random orders are drawn from.
    pub seed: u64,
    /// Of zipf.
    pub exponent: f64,
}

/// What goes into a header field.
#[derive(Clone, Debug, PartialEq)]
pub enum Field<T> {
    /// Always the same.
    One(T),
    /// A run.
    Run(Run<T>),
    /// A file, one value a line, in its order.
    File(PathBuf),
}

impl<T: Copy> Field<T> {
    /// Its first value; `None` when that stands in a file.
    pub fn first(&self) -> Option<T> {
        match self {
            Field::One(value) => Some(*value),
            Field::Run(run) => Some(run.first),
            Field::File(_) => None,
        }
    }
}

impl<'de, T: FieldValue> Deserialize<'de> for Field<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FieldVisitor(PhantomData))
    }
}

struct FieldVisitor<T>(PhantomData<T>);

impl<'de, T: FieldValue> Visitor<'de> for FieldVisitor<T> {
    type Value = Field<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {{first, count, …}} or {{file}}", T::WHAT)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Field<T>, E> {
        Scalar::visit(text).map(|value| Field::One(value.0))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Field<T>, E> {
        Scalar::visit_number(number).map(|value| Field::One(value.0))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Field<T>, E> {
        Scalar::visit_number(u64::try_from(number).unwrap_or(u64::MAX)).map(|value| Field::One(value.0))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Field<T>, A::Error> {
        Form::deserialize(MapAccessDeserializer::new(map))?.field()
    }
}

/// One value by itself.
struct Scalar<T>(T);

impl<T: FieldValue> Scalar<T> {
    fn visit<E: Error>(text: &str) -> Result<Self, E> {
        text.parse().map(Scalar).map_err(|_| E::custom(format!("`{text}` is not {}", T::WHAT)))
    }

    fn visit_number<E: Error>(number: u64) -> Result<Self, E> {
        T::from_number(number).map(Scalar).ok_or_else(|| E::custom(format!("`{number}` is not {}", T::WHAT)))
    }
}

impl<'de, T: FieldValue> Deserialize<'de> for Scalar<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match FieldVisitor::<T>(PhantomData).of_scalar(deserializer)? {
            Field::One(value) => Ok(Scalar(value)),
            _ => Err(D::Error::custom(format!("`first` is {}", T::WHAT))),
        }
    }
}

impl<T: FieldValue> FieldVisitor<T> {
    fn of_scalar<'de, D: Deserializer<'de>>(self, deserializer: D) -> Result<Field<T>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// The keys that a map may have.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound = "T: FieldValue")]
struct Form<T> {
    #[serde(default = "none")]
    first: Option<Scalar<T>>,
    count: Option<u64>,
    order: Option<Order>,
    seed: Option<u64>,
    exponent: Option<f64>,
    file: Option<PathBuf>,
}

fn none<T>() -> Option<T> {
    None
}

impl<T: FieldValue> Form<T> {
    fn field<E: Error>(self) -> Result<Field<T>, E> {
        let is_run = self.count.is_some()
            || self.order.is_some()
            || self.seed.is_some()
            || self.exponent.is_some()
            || self.first.is_some();
        match (self.file, self.first, self.count) {
            (Some(file), None, None) if !is_run => Ok(Field::File(file)),
            (Some(_), ..) => Err(E::custom("a field with `file` has no other keys")),
            (None, Some(Scalar(first)), Some(count)) => {
                if !(1..=RUN_VALUES_MAX).contains(&count) {
                    return Err(E::custom(format!("count {count} is outside 1..={RUN_VALUES_MAX}")));
                }
                if first.plus(count - 1).is_none() {
                    return Err(E::custom(format!("{count} values from {first} do not fit: {}", T::WHAT)));
                }
                let exponent = self.exponent.unwrap_or(1.0);
                if !(0.0..=EXPONENT_MAX).contains(&exponent) {
                    return Err(E::custom(format!("exponent {exponent} is outside 0..={EXPONENT_MAX}")));
                }
                let order = self.order.unwrap_or_default();
                Ok(Field::Run(Run { first, count, order, seed: self.seed.unwrap_or(1), exponent }))
            }
            _ => Err(E::custom("a field that varies has `first` and `count`, or `file`")),
        }
    }
}
