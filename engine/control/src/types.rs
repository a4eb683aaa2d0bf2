//! The types a placeholder can have, as in `<mtu:64-9216>`, `<interface>` or `<rate:rate>`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::value::{IpPrefix, Value};

/// The type of values that logs and lists of commands leave out.
const SECRET: &str = "secret";

/// A type of value that a command can ask for.
#[derive(Clone, Debug)]
pub struct ValueType {
    /// Its name in the notation.
    pub name: String,
    /// How a message describes it: "an IPv4 address such as 192.0.2.1".
    pub description: String,
    /// A text that parses.
    pub example: String,
    /// How its text is read.
    pub reads: Reads,
}

/// How a type reads its text.
#[derive(Clone, Copy, Debug)]
pub enum Reads {
    /// One word that only few texts satisfy.
    Strict(fn(&str) -> Option<Value<'_>>),
    /// A whole number between two bounds, in decimal or with `0x`.
    Number {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
    },
    /// Any word, or text in quotation marks.
    Text,
    /// The name of something that exists, of this kind.
    Name(&'static str),
    /// `{ … }`, braces and all.
    Block,
    /// Everything to the end of the line.
    Rest,
}

impl ValueType {
    /// A type whose `parse` decides.
    pub fn strict(
        name: &str,
        description: &str,
        example: &str,
        parse: fn(&str) -> Option<Value<'_>>,
    ) -> ValueType {
        ValueType::reading(name, description, example, Reads::Strict(parse))
    }

    /// The name of something of `kind` that exists, as [`Names`](crate::names::Names) knows it.
    pub fn name_of(kind: &'static str, description: &str, example: &str) -> ValueType {
        ValueType::reading(kind, description, example, Reads::Name(kind))
    }

    fn reading(name: &str, description: &str, example: &str, reads: Reads) -> ValueType {
        ValueType {
            name: name.into(),
            description: description.into(),
            example: example.into(),
            reads,
        }
    }

    /// Numbers from `min` to `max`.
    pub fn number(min: u64, max: u64) -> ValueType {
        let description = if max == u64::MAX {
            format!("a number from {min} on")
        } else {
            format!("a number from {min} to {max}")
        };
        let example = 2.clamp(min, max).to_string();
        ValueType {
            name: format!("{min}-{max}"),
            description,
            example,
            reads: Reads::Number { min, max },
        }
    }

    /// Is what it reads never shown to anybody?
    pub(crate) fn is_secret(&self) -> bool {
        self.name == SECRET
    }

    /// Does any word do?
    pub(crate) fn is_loose(&self) -> bool {
        matches!(self.reads, Reads::Text | Reads::Name(_) | Reads::Rest)
    }

    /// Read one word.
    #[inline]
    pub(crate) fn read<'a>(&self, text: &'a str, quoted: bool) -> Option<Value<'a>> {
        match self.reads {
            Reads::Number { min, max } if !quoted => {
                let number = whole_number(text)?;
                (min..=max).contains(&number).then_some(Value::Number(number))
            }
            Reads::Strict(parse) if !quoted => parse(text),
            Reads::Text | Reads::Name(_) if quoted || !matches!(text, "{" | "}" | ",") => {
                Some(Value::Text(text))
            }
            _ => None,
        }
    }
}

/// The types known to the notation, by name.
#[derive(Clone, Debug)]
pub struct Types(Vec<ValueType>);

/// An MPLS label (RFC 3032 §2.1) in digits, or the name of a special one.
fn label(text: &str) -> Option<Value<'_>> {
    const LABEL_MAX: u64 = 0xf_ffff;
    let number = match text {
        "ip4-explicit-null" => 0,
        "router-alert" => 1,
        "ip6-explicit-null" => 2,
        "implicit-null" => 3,
        _ => whole_number(text)?,
    };
    (number <= LABEL_MAX).then_some(Value::Number(number))
}

impl Default for Types {
    fn default() -> Types {
        use ValueType as T;
        let named = |name: &str, min, max| ValueType { name: name.into(), ..T::number(min, max) };
        Types(vec![
            named("u8", 0, u8::MAX.into()),
            named("u16", 0, u16::MAX.into()),
            named("u32", 0, u32::MAX.into()),
            ValueType { description: "a whole number".into(), ..named("u64", 0, u64::MAX) },
            T::reading("word", "a word", "name1", Reads::Text),
            T::reading(
                "text",
                "a text, in quotation marks if it has spaces",
                "\"some text\"",
                Reads::Text,
            ),
            T::reading(
                SECRET,
                "a secret, in quotation marks if it has spaces",
                "correct-horse",
                Reads::Text,
            ),
            T::reading("path", "a path", "/run/some.file", Reads::Text),
            T::name_of("interface", "an interface", "e0"),
            T::strict(
                "label",
                "an MPLS label: 0 to 1048575, or implicit-null, ip4-explicit-null, \
                 ip6-explicit-null, router-alert",
                "100",
                label,
            ),
            T::name_of("node", "a node of the graph", "ip4-lookup"),
            T::name_of("event", "a kind of event", "interface"),
            T::reading("block", "{ … }", "{ some words }", Reads::Block),
            T::reading("rest", "the rest of the line", "some words", Reads::Rest),
            T::strict("ip4", "an IPv4 address such as 192.0.2.1", "192.0.2.1", |t| {
                ip4(t).map(Value::Ip4)
            }),
            T::strict("ip6", "an IPv6 address such as 2001:db8::1", "2001:db8::1", |t| {
                ip6(t).map(Value::Ip6)
            }),
            T::strict("ip", "an IPv4 or IPv6 address", "192.0.2.1", |t| {
                ip4(t).map(Value::Ip4).or_else(|| ip6(t).map(Value::Ip6))
            }),
            T::strict(
                "prefix4",
                "an IPv4 address with its length such as 192.0.2.0/24",
                "192.0.2.0/24",
                |t| prefix(t).filter(|p| p.address.is_ipv4()).map(Value::Prefix),
            ),
            T::strict(
                "prefix6",
                "an IPv6 address with its length such as 2001:db8::/32",
                "2001:db8::/32",
                |t| prefix(t).filter(|p| p.address.is_ipv6()).map(Value::Prefix),
            ),
            T::strict(
                "prefix",
                "an address with its length such as 192.0.2.0/24 or 2001:db8::/32",
                "192.0.2.0/24",
                |t| prefix(t).map(Value::Prefix),
            ),
            T::strict("mac", "a MAC address such as 02:fe:00:00:00:01", "02:fe:00:00:00:01", |t| {
                mac(t).map(Value::Mac)
            }),
            T::strict(
                "rate",
                "a rate per second such as 5000, 1.5M or 10G (k, M, G: powers of 1000)",
                "1.5M",
                |t| rate(t).map(Value::Real),
            ),
            T::strict(
                "size",
                "a size in bytes such as 2048, 4K, 2M or 1G (K, M, G: powers of 1024)",
                "2M",
                |t| size(t).map(Value::Number),
            ),
            T::strict("seconds", "a time in seconds such as 1, 0.5, 20ms or 10us", "0.5", |t| {
                seconds(t).map(Value::Real)
            }),
            T::strict(
                "range",
                "a range of numbers such as 64-1518, or one number",
                "64-1518",
                |t| range(t).map(|(low, high)| Value::Range(low, high)),
            ),
            T::strict("cores", "a list of cores such as 1,3-5", "1,3-5", |t| {
                core_list(t).map(|_| Value::Text(t))
            }),
        ])
    }
}

impl Types {
    /// Add a type. Its name must be new.
    pub fn add(&mut self, value_type: ValueType) {
        assert!(self.get(&value_type.name).is_none(), "the type {} exists twice", value_type.name);
        self.0.push(value_type);
    }

    /// The type of this name; `A-B` with two numbers is the numbers from A to B.
    pub fn get(&self, name: &str) -> Option<ValueType> {
        if let Some(found) = self.0.iter().find(|t| t.name == name) {
            return Some(found.clone());
        }
        let (min, max) = range(name).filter(|_| name.contains('-'))?;
        Some(ValueType::number(min, max))
    }
}

/// Decimal, or hexadecimal after `0x`.
#[inline]
pub fn whole_number(text: &str) -> Option<u64> {
    if let Some(digits) = text.strip_prefix("0x") {
        let all_digits = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
        return all_digits.then(|| u64::from_str_radix(digits, 16).ok()).flatten();
    }
    let bytes = text.as_bytes();
    if bytes.is_empty() || bytes.len() > 20 {
        return None;
    }
    bytes.iter().try_fold(0u64, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Four decimal bytes with dots, without leading zeros (RFC 6943 §3.1.1: those read as octal
/// elsewhere).
#[inline]
pub fn ip4(text: &str) -> Option<Ipv4Addr> {
    text.parse().ok()
}

#[inline]
fn ip6(text: &str) -> Option<Ipv6Addr> {
    if !text.as_bytes().contains(&b':') {
        return None;
    }
    text.parse().ok()
}

/// `ADDRESS/LENGTH`.
#[inline]
pub fn prefix(text: &str) -> Option<IpPrefix> {
    let slash = text.as_bytes().iter().rposition(|b| *b == b'/')?;
    let address = &text[..slash];
    let length = whole_number(&text[slash + 1..])?;
    let (address, bits) = match ip4(address) {
        Some(address) => (IpAddr::V4(address), 32),
        None => (IpAddr::V6(ip6(address)?), 128),
    };
    (length <= bits).then_some(IpPrefix { address, length: length as u8 })
}

/// Six bytes in hexadecimal, with `:` or `-` between, or three groups of four digits with dots.
pub fn mac(text: &str) -> Option<[u8; 6]> {
    let (digits_each, separators): (usize, &[char]) = match text.len() {
        17 => (2, &[':', '-']),
        14 => (4, &['.']),
        _ => return None,
    };
    let mut out = [0; 6];
    let mut at = 0;
    let separator = *separators.iter().find(|s| text.contains(**s))?;
    for group in text.split(separator) {
        if group.len() != digits_each || at >= 6 || !group.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        for pair in 0..digits_each / 2 {
            out[at] = u8::from_str_radix(&group[2 * pair..2 * pair + 2], 16).ok()?;
            at += 1;
        }
    }
    (at == 6).then_some(out)
}

/// A number with a decimal point perhaps; nothing else that a float could be.
fn decimal(text: &str) -> Option<f64> {
    let plain = !text.is_empty()
        && text.len() <= 32
        && text.bytes().all(|b| b.is_ascii_digit() || b == b'.')
        && text.bytes().any(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

fn rate(text: &str) -> Option<f64> {
    let text = text.strip_suffix("pps").unwrap_or(text);
    let (number, factor) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1e3),
        b'm' | b'M' => (&text[..text.len() - 1], 1e6),
        b'g' | b'G' => (&text[..text.len() - 1], 1e9),
        _ => (text, 1.0),
    };
    if let Some((mantissa, exponent)) = number.split_once('e') {
        let exponent = whole_number(exponent).filter(|e| *e <= 18)?;
        return Some(decimal(mantissa)? * 10f64.powi(exponent as i32) * factor);
    }
    Some(decimal(number)? * factor)
}

fn size(text: &str) -> Option<u64> {
    let (number, shift) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 10),
        b'm' | b'M' => (&text[..text.len() - 1], 20),
        b'g' | b'G' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    whole_number(number)?.checked_mul(1 << shift)
}

/// Longest time, about 30 years: any more is a slip, and would not fit into a `Duration` at some
/// point.
pub const SECONDS_MAX: f64 = 1e9;

fn seconds(text: &str) -> Option<f64> {
    let (number, factor) = if let Some(number) = text.strip_suffix("us") {
        (number, 1e-6)
    } else if let Some(number) = text.strip_suffix("ms") {
        (number, 1e-3)
    } else {
        (text.strip_suffix('s').unwrap_or(text), 1.0)
    };
    Some(decimal(number)? * factor).filter(|seconds| *seconds <= SECONDS_MAX)
}

fn range(text: &str) -> Option<(u64, u64)> {
    match text.split_once('-') {
        Some((low, high)) => {
            let (low, high) = (whole_number(low)?, whole_number(high)?);
            (low <= high).then_some((low, high))
        }
        None => whole_number(text).map(|n| (n, n)),
    }
}

/// Most cores a machine may have.
pub const CORES_MAX: u64 = 4096;

/// `1,3-5`: cores in the order written, none twice.
pub fn core_list(text: &str) -> Option<Vec<u16>> {
    let mut cores = Vec::new();
    for part in text.split(',') {
        let (low, high) = range(part)?;
        if high >= CORES_MAX {
            return None;
        }
        for core in low..=high {
            if cores.contains(&(core as u16)) {
                return None;
            }
            cores.push(core as u16);
        }
    }
    Some(cores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_reads_its_own_example() {
        for t in Types::default().0 {
            let quoted = t.example.starts_with('"');
            let text = t.example.trim_matches('"');
            let multiple = matches!(t.reads, Reads::Block | Reads::Rest);
            assert!(multiple || t.read(text, quoted).is_some(), "{}", t.name);
        }
    }

    #[test]
    fn suffixes_mean_powers_of_1000_for_rates_and_of_1024_for_sizes() {
        assert_eq!(rate("1.5M"), Some(1.5e6));
        assert_eq!(rate("1e6"), Some(1e6));
        assert_eq!(size("4K"), Some(4096));
        assert_eq!(seconds("20ms"), Some(0.02));
        assert_eq!(seconds(&"9".repeat(32)), None);
        assert_eq!(size("18446744073709551615G"), None);
    }

    #[test]
    fn mac_addresses_are_read_in_the_three_usual_ways() {
        let mac_bytes = Some([2, 0xfe, 0, 0, 0, 1]);
        assert_eq!(mac("02:fe:00:00:00:01"), mac_bytes);
        assert_eq!(mac("02-fe-00-00-00-01"), mac_bytes);
        assert_eq!(mac("02fe.0000.0001"), mac_bytes);
        assert_eq!(mac("02:fe:00:00:00:+1"), None);
        assert_eq!(mac("02:fé:00:00:00:1"), None);
    }

    #[test]
    fn a_prefix_longer_than_its_address_is_none() {
        assert_eq!(prefix("1.2.3.4/33"), None);
        assert_eq!(prefix("::/129"), None);
        assert!(prefix("::ffff:1.2.3.4/128").is_some());
    }

    #[test]
    fn a_list_of_cores_keeps_its_order_and_refuses_doubles() {
        assert_eq!(core_list("3,1,5-7"), Some(vec![3, 1, 5, 6, 7]));
        assert_eq!(core_list("1,1"), None);
        assert_eq!(core_list("1-9999999"), None);
    }
}
