//! Which frames a capture is about: the words of pcap-filter(7) that ask about parsed headers.
//!
//! ```text
//! ip4 and udp port 53 and not host 10.0.0.1
//! vlan 100 and (net 2001:db8::/32 or tcp dst portrange 1024-2047)
//! stream 3 and greater 1000
//! ```

use std::net::IpAddr;
use std::ops::RangeInclusive;

use quiver_wire::{Ip4Prefix, Ip6Prefix, IpPrefix, MacAddress};
use serde::de::{Deserialize, Deserializer, Error};

use super::headers::Headers;

/// Characters of an expression.
pub const FILTER_CHARACTERS_MAX: usize = 4096;
/// Parentheses and nots within one another, and words joined: none may fill a worker's stack.
pub const FILTER_DEPTH_MAX: usize = 64;

/// Source, destination, or either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Source,
    Destination,
    Either,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
enum Expression {
    All(Vec<Expression>),
    Any(Vec<Expression>),
    Not(Box<Expression>),
    EtherType(u16),
    Protocol(u8),
    Vlan(Option<u16>),
    Label(Option<u32>),
    Mac(Side, MacAddress),
    Net(Side, IpPrefix),
    Ports(Side, RangeInclusive<u16>),
    Length(RangeInclusive<usize>),
    Stream(u8),
}

/// A filter.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    expression: Option<Expression>,
    text: String,
}

/// Why an expression is not one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("filter, column {column}: {message}")]
pub struct FilterError {
    /// Counted from 1.
    pub column: usize,
    /// The mistake, and what would be right.
    pub message: String,
}

impl Side {
    fn any<T>(self, both: &[T; 2], is: impl Fn(&T) -> bool) -> bool {
        match self {
            Side::Source => is(&both[0]),
            Side::Destination => is(&both[1]),
            Side::Either => both.iter().any(is),
        }
    }
}

impl Expression {
    fn matches(&self, headers: &Headers) -> bool {
        match self {
            Expression::All(parts) => parts.iter().all(|part| part.matches(headers)),
            Expression::Any(parts) => parts.iter().any(|part| part.matches(headers)),
            Expression::Not(part) => !part.matches(headers),
            Expression::EtherType(kind) => headers.ether_type == Some(*kind),
            Expression::Protocol(protocol) => headers.protocol == Some(*protocol),
            Expression::Vlan(None) => headers.vlans[0].is_some(),
            Expression::Vlan(wanted) => headers.vlans.contains(wanted),
            Expression::Label(None) => headers.labels[0].is_some(),
            Expression::Label(wanted) => headers.labels.contains(wanted),
            Expression::Mac(side, wanted) => {
                headers.macs.is_some_and(|macs| side.any(&macs, |mac| mac == wanted))
            }
            Expression::Net(side, net) => headers
                .addresses
                .is_some_and(|both| side.any(&both, |address| contains(net, *address))),
            Expression::Ports(side, wanted) => {
                headers.ports.is_some_and(|ports| side.any(&ports, |port| wanted.contains(port)))
            }
            Expression::Length(wanted) => wanted.contains(&headers.length),
            Expression::Stream(wanted) => headers.stream == Some(*wanted),
        }
    }
}

fn contains(net: &IpPrefix, address: IpAddr) -> bool {
    match (net, address) {
        (IpPrefix::V4(net), IpAddr::V4(address)) => net.contains(address),
        (IpPrefix::V6(net), IpAddr::V6(address)) => net.contains(address),
        _ => false,
    }
}

impl Filter {
    /// Every frame.
    pub fn all() -> Filter {
        Filter { expression: None, text: String::new() }
    }

    /// Read an expression; an empty one is every frame.
    ///
    /// # Errors
    /// When the text is no expression; the error says the column and what would be right.
    pub fn parse(text: &str) -> Result<Filter, FilterError> {
        if text.chars().count() > FILTER_CHARACTERS_MAX {
            let message = format!("it has more than {FILTER_CHARACTERS_MAX} characters");
            return Err(FilterError { column: FILTER_CHARACTERS_MAX, message });
        }
        let mut parser = Parser { words: words(text), at: 0, end: text.chars().count() + 1 };
        if parser.words.is_empty() {
            return Ok(Filter::all());
        }
        let expression = parser.any(0)?;
        match parser.peek() {
            None => Ok(Filter { expression: Some(expression), text: text.to_owned() }),
            Some(word) => parser.wrong(format!("`{word}` stands alone; join with and, or")),
        }
    }

    /// Does it want this frame?
    #[inline]
    pub fn matches(&self, headers: &Headers) -> bool {
        self.expression.as_ref().is_none_or(|expression| expression.matches(headers))
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl<'de> Deserialize<'de> for Filter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Filter::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// Words and signs, each with its column.
fn words(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut is_word = false;
    for (place, character) in text.chars().enumerate() {
        let is_sign = matches!(character, '(' | ')' | '!');
        if character.is_whitespace() {
            is_word = false;
        } else if is_word && !is_sign {
            if let Some((_, word)) = found.last_mut() {
                word.push(character);
            }
        } else {
            found.push((place + 1, character.to_string()));
            is_word = !is_sign;
        }
    }
    found
}

struct Parser {
    words: Vec<(usize, String)>,
    at: usize,
    end: usize,
}

impl Parser {
    fn peek(&self) -> Option<&str> {
        self.words.get(self.at).map(|(_, word)| word.as_str())
    }

    fn wrong<T>(&self, message: impl Into<String>) -> Result<T, FilterError> {
        let column = self.words.get(self.at).map_or(self.end, |(column, _)| *column);
        Err(FilterError { column, message: message.into() })
    }

    fn take(&mut self, words: &[&str]) -> bool {
        let is_one = self.peek().is_some_and(|word| words.contains(&word));
        self.at += usize::from(is_one);
        is_one
    }

    /// The next word as a value; `what` says what it should be.
    fn value<T>(
        &mut self,
        what: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, FilterError> {
        match self.peek().map(|word| (read(word), word.to_owned())) {
            Some((Some(value), _)) => {
                self.at += 1;
                Ok(value)
            }
            Some((None, word)) => self.wrong(format!("`{word}` is not {what}")),
            None => self.wrong(format!("it ends where {what} should follow")),
        }
    }

    fn any(&mut self, depth: usize) -> Result<Expression, FilterError> {
        let mut parts = vec![self.all(depth)?];
        while self.take(&["or", "||"]) {
            parts.push(self.all(depth)?);
        }
        Ok(one_or(parts, Expression::Any))
    }

    fn all(&mut self, depth: usize) -> Result<Expression, FilterError> {
        let mut parts = vec![self.part(depth)?];
        while self.take(&["and", "&&"]) {
            parts.push(self.part(depth)?);
        }
        Ok(one_or(parts, Expression::All))
    }

    fn part(&mut self, depth: usize) -> Result<Expression, FilterError> {
        if depth == FILTER_DEPTH_MAX {
            return self.wrong(format!(
                "more than {FILTER_DEPTH_MAX} parentheses and nots within one another"
            ));
        }
        if self.take(&["not", "!"]) {
            return Ok(Expression::Not(Box::new(self.part(depth + 1)?)));
        }
        if self.take(&["("]) {
            let inner = self.any(depth + 1)?;
            return if self.take(&[")"]) { Ok(inner) } else { self.wrong("a ) is missing here") };
        }
        self.primitive()
    }

    fn primitive(&mut self) -> Result<Expression, FilterError> {
        let kinds: [(&[&str], Expression); 8] = [
            (&["ip4", "ip"], Expression::EtherType(0x0800)),
            (&["ip6"], Expression::EtherType(0x86dd)),
            (&["arp"], Expression::EtherType(0x0806)),
            (&["icmp"], Expression::Protocol(1)),
            (&["icmp6"], Expression::Protocol(58)),
            (&["tcp"], Expression::Protocol(6)),
            (&["udp"], Expression::Protocol(17)),
            (&["sctp"], Expression::Protocol(132)),
        ];
        for (names, kind) in kinds {
            if self.take(names) {
                // `udp port 53` is `udp and port 53`.
                let goes_on = ["src", "dst", "host", "net", "port", "portrange"];
                return match self.peek() {
                    Some(word) if goes_on.contains(&word) => {
                        Ok(Expression::All(vec![kind, self.ends()?]))
                    }
                    _ => Ok(kind),
                };
            }
        }
        match self.peek() {
            Some("vlan") => {
                self.at += 1;
                self.number("a VLAN from 0 to 4095", 4095)
                    .map(|id| Expression::Vlan(id.map(|id| id as u16)))
            }
            Some("mpls") => {
                self.at += 1;
                self.number("a label below 1048576", (1 << 20) - 1)
                    .map(|label| Expression::Label(label.map(|label| label as u32)))
            }
            Some("ether") => self.ether(),
            Some("proto") => {
                self.at += 1;
                self.value("a protocol from 0 to 255", |word| word.parse().ok())
                    .map(Expression::Protocol)
            }
            Some("stream") => {
                self.at += 1;
                self.value("a stream's number from 0 to 255", |word| word.parse().ok())
                    .map(Expression::Stream)
            }
            Some("less") => {
                self.at += 1;
                let bytes = self.value("a number of bytes", |word| word.parse().ok())?;
                Ok(Expression::Length(0..=bytes))
            }
            Some("greater") => {
                self.at += 1;
                let bytes = self.value("a number of bytes", |word| word.parse().ok())?;
                Ok(Expression::Length(bytes..=usize::MAX))
            }
            _ => self.ends(),
        }
    }

    /// A number, if one follows.
    fn number(&mut self, what: &str, most: u64) -> Result<Option<u64>, FilterError> {
        let is_number =
            self.peek().is_some_and(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        if !is_number {
            return Ok(None);
        }
        self.value(what, |word| word.parse().ok().filter(|number| *number <= most)).map(Some)
    }

    fn side(&mut self) -> Side {
        if self.take(&["src"]) {
            Side::Source
        } else if self.take(&["dst"]) {
            Side::Destination
        } else {
            Side::Either
        }
    }

    fn ether(&mut self) -> Result<Expression, FilterError> {
        self.at += 1;
        if self.take(&["proto"]) {
            return self
                .value("an Ethernet type like 0x0800", hexadecimal)
                .map(Expression::EtherType);
        }
        let side = self.side();
        self.take(&["host"]);
        let mac = self.value("a MAC address", |word| word.parse().ok())?;
        Ok(Expression::Mac(side, mac))
    }

    /// Hosts, nets and ports.
    fn ends(&mut self) -> Result<Expression, FilterError> {
        let before = self.at;
        let side = self.side();
        if self.take(&["port"]) {
            let port = self.value("a port from 0 to 65535", |word| word.parse().ok())?;
            return Ok(Expression::Ports(side, port..=port));
        }
        if self.take(&["portrange"]) {
            return self
                .value("ports like 1024-2047", range)
                .map(|range| Expression::Ports(side, range));
        }
        if self.take(&["net"]) {
            let net = self.value("a prefix like 10.0.0.0/8", |word| word.parse().ok())?;
            return Ok(Expression::Net(side, net));
        }
        if self.take(&["host"]) || self.at > before {
            let address: IpAddr = self.value("an IP address", |word| word.parse().ok())?;
            return Ok(Expression::Net(side, host(address)));
        }
        let expected = "ip4, ip6, arp, icmp, icmp6, tcp, udp, sctp, vlan, mpls, ether, proto, \
            host, net, port, \
                        portrange, src, dst, less, greater, stream, not or (";
        match self.peek() {
            Some(word) => self.wrong(format!("`{word}` is not known; expected {expected}")),
            None => self.wrong(format!("it ends where one of {expected} should follow")),
        }
    }
}

fn one_or(mut parts: Vec<Expression>, many: fn(Vec<Expression>) -> Expression) -> Expression {
    match (parts.len(), parts.pop()) {
        (1, Some(part)) => part,
        (_, last) => many(parts.into_iter().chain(last).collect()),
    }
}

fn hexadecimal(word: &str) -> Option<u16> {
    match word.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

fn range(word: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = word.split_once('-')?;
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then_some(first..=last)
}

fn host(address: IpAddr) -> IpPrefix {
    match address {
        IpAddr::V4(address) => IpPrefix::V4(Ip4Prefix::host(address)),
        IpAddr::V6(address) => IpPrefix::V6(Ip6Prefix::host(address)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A UDP frame in VLAN 100 from 10.0.0.1, port 1000, to 10.0.0.2, port 53.
    fn frame() -> Vec<u8> {
        let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x81, 0, 0, 100, 8, 0];
        bytes.extend([0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.extend([3, 232, 0, 53, 0, 26, 0, 0]);
        bytes.resize(64, 0);
        bytes
    }

    fn matches(text: &str) -> bool {
        let filter = Filter::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        filter.matches(&Headers::of(&frame(), 64, Some(3)))
    }

    #[test]
    fn words_mean_what_they_mean_to_tcpdump() {
        for text in [
            "",
            "ip4",
            "ip and udp port 53",
            "udp dst port 53 and src port 1000",
            "not udp src port 53",
            "! tcp",
            "host 10.0.0.1 && host 10.0.0.2",
            "src 10.0.0.1 and dst host 10.0.0.2",
            "net 10.0.0.0/8 and not net 11.0.0.0/8",
            "vlan",
            "vlan 100 and not vlan 101",
            "portrange 50-60",
            "ether src 02:00:00:00:00:01 and ether host 02:00:00:00:00:02",
            "ether proto 0x0800 and proto 17",
            "(tcp or udp) and (less 64 and greater 64)",
            "stream 3 and not stream 4",
            "ip6 or arp or mpls or udp",
        ] {
            assert!(matches(text), "{text}");
        }
        for text in
            ["ip6", "tcp port 53", "dst 10.0.0.1", "net 2001:db8::/32", "mpls 16", "greater 65"]
        {
            assert!(!matches(text), "{text}");
        }
    }

    #[test]
    fn and_precedes_or() {
        assert!(matches("udp or tcp and ip6"));
        assert!(!matches("(udp or tcp) and ip6"));
    }

    #[test]
    fn a_mistake_is_told_with_its_column_and_what_would_be_right() {
        let refused = |text: &str, column: usize, words: &str| {
            let error = Filter::parse(text).expect_err(text);
            assert_eq!(error.column, column, "{text}: {error}");
            assert!(error.message.contains(words), "{text}: {error}");
        };
        refused("udp prt 53", 5, "stands alone");
        refused("udp port", 9, "a port from 0 to 65535 should follow");
        refused("udp port 70000", 10, "is not a port");
        refused("ip4 and hots 10.0.0.1", 9, "`hots` is not known");
        refused("host 10.0.0", 6, "is not an IP address");
        refused("net 10.0.0.1/8", 5, "is not a prefix");
        refused("(udp or tcp", 12, "a ) is missing");
        refused("vlan 5000", 6, "0 to 4095");
        refused("portrange 9-3", 11, "1024-2047");
        refused("udp and", 8, "it ends where");
        refused(&"(".repeat(100), 65, "within one another");
        refused("ether src 10.0.0.1", 11, "MAC");
        refused(&"a".repeat(5000), FILTER_CHARACTERS_MAX, "characters");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_fail(text in "[a-z0-9 ()!&|./:-]{0,60}|\\PC{0,60}") {
            if let Ok(filter) = Filter::parse(&text) {
                let _ = filter.matches(&Headers::of(&frame(), 64, None));
            }
        }
    }
}
