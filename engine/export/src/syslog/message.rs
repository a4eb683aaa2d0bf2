//! A message: header, and structured data (RFC 5424 §6).

use std::fmt::{self, Display, Write};
use std::net::IpAddr;

use crate::moment::write_time;

/// How severe what is reported is (RFC 5424 §6.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The system is unusable.
    Emergency = 0,
    /// Action must be taken at once.
    Alert = 1,
    /// Critical conditions.
    Critical = 2,
    /// Error conditions.
    Error = 3,
    /// Warning conditions.
    Warning = 4,
    /// Normal but significant.
    Notice = 5,
    /// Informational.
    Informational = 6,
    /// For debugging.
    Debug = 7,
}

impl Severity {
    /// All, the most severe first.
    pub const ALL: [Severity; 8] = [
        Severity::Emergency,
        Severity::Alert,
        Severity::Critical,
        Severity::Error,
        Severity::Warning,
        Severity::Notice,
        Severity::Informational,
        Severity::Debug,
    ];

    /// Its word, as VPP has it.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Emergency => "emerg",
            Severity::Alert => "alert",
            Severity::Critical => "crit",
            Severity::Error => "err",
            Severity::Warning => "warn",
            Severity::Notice => "notice",
            Severity::Informational => "info",
            Severity::Debug => "debug",
        }
    }
}

/// The facility local0 (RFC 5424 §6.2.1).
pub const LOCAL0: u8 = 16;

/// What a message begins with.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// Its facility, 0 to 23.
    pub facility: u8,
    /// Its severity.
    pub severity: Severity,
    /// Who says it: APP-NAME, at most 48 printable characters.
    pub application: &'static str,
    /// The kind of message: MSGID, at most 32 printable characters.
    pub message_id: &'static str,
    /// When it happened, nanoseconds since 1970.
    pub at_unix_ns: u64,
}

impl Head {
    /// Append it, with the host's address and the number of the process.
    pub(crate) fn write(&self, text: &mut String, host: IpAddr, process: u32) {
        let priority = u32::from(self.facility) * 8 + self.severity as u32;
        // Writing to a string never fails.
        let _ = write!(text, "<{priority}>1 ");
        write_time(text, self.at_unix_ns);
        let Head { application, message_id, .. } = self;
        let _ = write!(text, " {host} {application} {process} {message_id} ");
    }
}

/// Writes an element of structured data.
pub struct Element<'t> {
    text: &'t mut String,
}

impl Element<'_> {
    /// Add a parameter. What has a meaning in the value is escaped (RFC 5424 §6.3.3).
    pub fn param(&mut self, name: &str, value: impl Display) {
        let _ = write!(self.text, " {name}=\"");
        let _ = write!(Escaped(self.text), "{value}");
        self.text.push('"');
    }
}

/// Append an element of structured data, the only one of its message.
pub(crate) fn write_element(text: &mut String, id: &str, write: impl FnOnce(&mut Element<'_>)) {
    text.push('[');
    text.push_str(id);
    write(&mut Element { text });
    text.push(']');
}

struct Escaped<'t>(&'t mut String);

impl Write for Escaped<'_> {
    fn write_str(&mut self, value: &str) -> fmt::Result {
        for character in value.chars() {
            if matches!(character, '"' | '\\' | ']') {
                self.0.push('\\');
            }
            self.0.push(character);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_the_fields_of_rfc_5424() {
        let head = Head {
            facility: LOCAL0,
            severity: Severity::Informational,
            application: "NAT",
            message_id: "SADD",
            at_unix_ns: 951_782_400_007_000_000,
        };
        let mut text = String::new();
        head.write(&mut text, IpAddr::from([192, 0, 2, 1]), 7);
        write_element(&mut text, "nsess", |element| {
            element.param("ISPORT", 4000);
            element.param("NAME", r#"a"b\c]d"#);
        });
        // RFC 5424 §6.3.3: '"', '\' and ']' are escaped inside PARAM-VALUE.
        assert_eq!(
            text,
            "<134>1 2000-02-29T00:00:00.007Z 192.0.2.1 NAT 7 SADD \
             [nsess ISPORT=\"4000\" NAME=\"a\\\"b\\\\c\\]d\"]"
        );
    }
}
