//! Values of a header field: one value, a run of values, a list, or a file of values.

use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::scalar::{Kind, Scalar, greatest};

/// Values of a run.
pub const RUN_VALUES_MAX: u64 = 1 << 24;
/// Values of a list, and lines of a file.
pub const LIST_VALUES_MAX: usize = 1 << 22;
/// The steepest zipf distribution.
const EXPONENT_MAX: f64 = 10.0;
/// The keys of a field that varies, for messages.
const KEYS: &str = "first, last, count, step, list, file, order, seed, exponent and mask";

/// In which order values come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// One after the other.
    #[default]
    #[serde(alias = "increment")]
    Sequential,
    /// One after the other, the last one first.
    Decrement,
    /// Uniformly at random.
    Random,
    /// Value k with weight 1 / (k + 1)^exponent.
    Zipf,
}

impl Order {
    /// As a profile says it.
    pub fn word(self) -> &'static str {
        match self {
            Order::Sequential => "sequential",
            Order::Decrement => "decrement",
            Order::Random => "random",
            Order::Zipf => "zipf",
        }
    }
}

/// The order of the values, and the seed of random orders.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ValueOrder {
    /// In which order; `None` when nothing is said.
    pub order: Option<Order>,
    /// Seed of the random orders; `None` when none is given.
    pub seed: Option<u64>,
    /// Of zipf.
    pub exponent: Option<f64>,
}

/// Which values.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Always the same.
    One(u128),
    /// Value k is `first` + k × `step`.
    Run {
        /// Value 0.
        first: u128,
        /// How many.
        count: u64,
        /// From one to the next.
        step: u128,
    },
    /// These.
    List(Vec<u128>),
    /// A file, one value a line.
    File(PathBuf),
}

/// Values of a header field.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Which values.
    pub values: Values,
    /// In which order.
    pub value_order: ValueOrder,
    /// Only these bits of the values are written; the others are those of the first.
    pub mask: Option<u128>,
}

impl Field {
    /// Always the same.
    pub fn one(value: u128) -> Field {
        Field { values: Values::One(value), value_order: ValueOrder::default(), mask: None }
    }

    /// Its first value; `None` when that stands in a file.
    pub fn first(&self) -> Option<u128> {
        match &self.values {
            Values::One(value) | Values::Run { first: value, .. } => Some(*value),
            Values::List(values) => values.first().copied(),
            Values::File(_) => None,
        }
    }

    /// The value, if it is always the same.
    pub fn constant(&self) -> Option<u128> {
        match &self.values {
            Values::One(value) | Values::Run { first: value, count: 1, .. } => Some(*value),
            _ => None,
        }
    }
}

impl ValueOrder {
    /// The exponent of zipf.
    pub fn exponent(&self) -> f64 {
        self.exponent.unwrap_or(1.0)
    }

    /// An order, seed or exponent is given.
    pub fn is_given(&self) -> bool {
        *self != ValueOrder::default()
    }

    /// Check the ranges.
    ///
    /// # Errors
    /// When the exponent is outside its range.
    pub fn check<E: Error>(&self) -> Result<(), E> {
        if !(0.0..=EXPONENT_MAX).contains(&self.exponent()) {
            return Err(E::custom(format!(
                "exponent {} is outside 0..={EXPONENT_MAX}",
                self.exponent()
            )));
        }
        Ok(())
    }
}

/// Reads a field's values.
#[derive(Clone, Copy)]
pub struct FieldSeed(pub Scalar);

impl<'de> DeserializeSeed<'de> for FieldSeed {
    type Value = Field;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Field, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for FieldSeed {
    type Value = Field;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Scalar { kind, bits } = self.0;
        write!(f, "{}, a list of them, {{first, count, …}} or {{file}}", kind.what(bits))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Field, E> {
        self.0.of_text(text).map(Field::one)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Field, E> {
        self.0.of_number(number).map(Field::one)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Field, E> {
        self.0.of_signed(number).map(Field::one)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Field, A::Error> {
        Ok(Field {
            values: ListSeed(self.0).visit_seq(list)?,
            value_order: ValueOrder::default(),
            mask: None,
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Field, A::Error> {
        let mut form = Form::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "first" => form.first = Some(map.next_value_seed(self.0)?),
                "last" => form.last = Some(map.next_value_seed(self.0)?),
                "count" => form.count = Some(map.next_value()?),
                "step" => form.step = Some(map.next_value()?),
                "list" => form.list = Some(map.next_value_seed(ListSeed(self.0))?),
                "file" => form.file = Some(map.next_value()?),
                "order" => form.value_order.order = Some(map.next_value()?),
                "seed" => form.value_order.seed = Some(map.next_value()?),
                "exponent" => form.value_order.exponent = Some(map.next_value()?),
                "mask" => {
                    form.mask =
                        Some(map.next_value_seed(Scalar { kind: self.0.kind, bits: self.0.bits })?)
                }
                _ => {
                    return Err(A::Error::custom(format!(
                        "a field has no key `{key}`; there are {KEYS}"
                    )));
                }
            }
        }
        form.field(self.0)
    }
}

/// Reads a list of values.
struct ListSeed(Scalar);

impl<'de> DeserializeSeed<'de> for ListSeed {
    type Value = Values;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Values, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for ListSeed {
    type Value = Values;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list, each {}", self.0.kind.what(self.0.bits))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Values, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(self.0)? {
            if values.len() == LIST_VALUES_MAX {
                return Err(A::Error::custom(format!(
                    "a list has at most {LIST_VALUES_MAX} values"
                )));
            }
            values.push(value);
        }
        if values.is_empty() {
            return Err(A::Error::custom("a list has at least one value"));
        }
        Ok(Values::List(values))
    }
}

/// The keys that a field may have.
#[derive(Default)]
struct Form {
    first: Option<u128>,
    last: Option<u128>,
    count: Option<u64>,
    step: Option<u64>,
    list: Option<Values>,
    file: Option<PathBuf>,
    value_order: ValueOrder,
    mask: Option<u128>,
}

impl Form {
    fn field<E: Error>(self, scalar: Scalar) -> Result<Field, E> {
        self.value_order.check()?;
        let is_run = self.first.is_some()
            || self.last.is_some()
            || self.count.is_some()
            || self.step.is_some();
        let (value_order, mask) = (self.value_order, self.mask);
        let values = match (self.list, self.file) {
            (Some(list), None) if !is_run => list,
            (None, Some(file)) if !is_run => Values::File(file),
            (None, None) => run(scalar, self.first, self.last, self.count, self.step)?,
            _ => {
                return Err(E::custom(
                    "a field has `first` with `count` or `last`, or `list`, or `file`",
                ));
            }
        };
        Ok(Field { values, value_order, mask })
    }
}

fn run<E: Error>(
    scalar: Scalar,
    first: Option<u128>,
    last: Option<u128>,
    count: Option<u64>,
    step: Option<u64>,
) -> Result<Values, E> {
    let Scalar { kind, bits } = scalar;
    let step = u128::from(step.unwrap_or(1));
    let first = first.ok_or_else(|| {
        E::custom("a field that varies has `first` and `count` or `last`, or `list`, or `file`")
    })?;
    let count = match (count, last) {
        (Some(count), None) => count,
        (None, Some(last)) if last >= first && step > 0 => {
            u64::try_from((last - first) / step).unwrap_or(u64::MAX).saturating_add(1)
        }
        (None, Some(last)) => {
            let (first, last) = (kind.show(first), kind.show(last));
            return Err(E::custom(format!("no steps lead from first {first} to last {last}")));
        }
        _ => {
            return Err(E::custom("a field that varies has `first`, and either `count` or `last`"));
        }
    };
    if !(1..=RUN_VALUES_MAX).contains(&count) {
        return Err(E::custom(format!("count {count} is outside 1..={RUN_VALUES_MAX}")));
    }
    let end = step.checked_mul(u128::from(count - 1)).and_then(|way| first.checked_add(way));
    if end.is_none_or(|end| end > greatest(bits)) {
        let message =
            format!("{count} values from {} do not fit: {}", kind.show(first), kind.what(bits));
        return Err(E::custom(message));
    }
    Ok(Values::Run { first, count, step })
}

/// The values of a field of this kind, for readers of files.
pub fn of_line(kind: Kind, bits: usize, line: &str) -> Option<u128> {
    kind.read(line.trim_end(), bits)
}
