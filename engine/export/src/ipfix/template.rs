//! Templates: the fields of a kind of data records (RFC 7011 §3.4.1 and §3.4.2).

/// An information element with a fixed length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    /// Its number in the registry of IANA.
    pub id: u16,
    /// Its length in records, bytes.
    pub bytes: u16,
}

/// A template. Numbers begin at 256; 0 to 255 are those of sets (RFC 7011 §3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Template {
    /// Its number, which is that of sets of its records.
    pub id: u16,
    /// How many of the first fields are scope fields; 0 for a template that is no options template.
    pub scope_fields: u16,
    /// The fields in their order.
    pub fields: &'static [Element],
}

impl Template {
    /// A template of data records.
    pub const fn new(id: u16, fields: &'static [Element]) -> Template {
        Template { id, scope_fields: 0, fields }
    }

    /// An options template whose first field is its scope.
    pub const fn options(id: u16, fields: &'static [Element]) -> Template {
        Template { id, scope_fields: 1, fields }
    }

    /// Bytes of a record.
    pub fn record_bytes(&self) -> usize {
        self.fields.iter().map(|field| usize::from(field.bytes)).sum()
    }

    /// Bytes of the template record.
    pub fn bytes(&self) -> usize {
        let header = if self.scope_fields > 0 { 6 } else { 4 };
        header + 4 * self.fields.len()
    }
}
