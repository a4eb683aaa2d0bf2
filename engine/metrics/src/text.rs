//! The text of a scrape: families of samples in the text format 0.0.4 of Prometheus, or in
//! OpenMetrics 1.0.

use std::fmt::{self, Display, Write as _};

/// What a scrape is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// The text format 0.0.4 of Prometheus.
    Text,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Format {
    /// The value of the header `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::Text => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// What a family's samples mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows, and begins at 0 again when the router restarts; its name ends in `_total`.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts by upper bounds.
    Histogram,
    /// A constant 1 whose labels are what it says; its name ends in `_info`.
    Info,
    /// Has a name of VPP's, which breaks the rules for names of its kind.
    Unknown,
}

/// The declaration of a family: samples of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// The name, in the form of the text format: the counter `quiver_drops_total`.
    pub name: &'static str,
    /// What its samples mean.
    pub kind: Kind,
    /// A sentence.
    pub help: &'static str,
}

impl Family {
    /// A counter; its name ends in `_total`.
    pub const fn counter(name: &'static str, help: &'static str) -> Family {
        Family { name, kind: Kind::Counter, help }
    }

    /// A gauge.
    pub const fn gauge(name: &'static str, help: &'static str) -> Family {
        Family { name, kind: Kind::Gauge, help }
    }

    /// A histogram.
    pub const fn histogram(name: &'static str, help: &'static str) -> Family {
        Family { name, kind: Kind::Histogram, help }
    }

    /// A constant 1 with labels; its name ends in `_info`.
    pub const fn info(name: &'static str, help: &'static str) -> Family {
        Family { name, kind: Kind::Info, help }
    }

    /// A name of VPP's.
    pub const fn vpp(name: &'static str, help: &'static str) -> Family {
        Family { name, kind: Kind::Unknown, help }
    }

    /// The name of the family in OpenMetrics, which is without the suffix of its samples.
    fn open_metrics_name(&self) -> &'static str {
        let suffix = match self.kind {
            Kind::Counter => "_total",
            Kind::Info => "_info",
            _ => "",
        };
        self.name.strip_suffix(suffix).unwrap_or(self.name)
    }

    /// The unit that the name says, which OpenMetrics states once more.
    fn unit(&self) -> Option<&'static str> {
        let name = self.open_metrics_name();
        let has = |unit: &&str| name.strip_suffix(*unit).is_some_and(|rest| rest.ends_with('_'));
        ["seconds", "bytes"].into_iter().find(has).filter(|_| self.kind != Kind::Unknown)
    }
}

/// The labels of a sample as they are written, with their braces; empty without labels. Made once
/// for a thing of which there are samples in several families.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(String);

impl Labels {
    /// These names and values. Values may be any text.
    pub fn new<const N: usize>(labels: [(&str, &dyn Display); N]) -> Labels {
        let mut out = String::new();
        for (name, value) in labels {
            out.push(if out.is_empty() { '{' } else { ',' });
            out += name;
            out += "=\"";
            let _ = write!(Escaped(&mut out), "{value}");
            out.push('"');
        }
        if !out.is_empty() {
            out.push('}');
        }
        Labels(out)
    }

    /// One label more.
    fn with(&self, name: &str, value: &dyn Display) -> Labels {
        let mut out = match self.0.strip_suffix('}') {
            Some(labels) => format!("{labels},"),
            None => "{".to_owned(),
        };
        out += name;
        out += "=\"";
        let _ = write!(Escaped(&mut out), "{value}");
        out += "\"}";
        Labels(out)
    }
}

/// Writes text as it stands between quotation marks.
struct Escaped<'a>(&'a mut String);

impl fmt::Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            match character {
                '\\' => *self.0 += "\\\\",
                '"' => *self.0 += "\\\"",
                '\n' => *self.0 += "\\n",
                other => self.0.push(other),
            }
        }
        Ok(())
    }
}

/// Which families a scrape has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Names {
    /// All.
    #[default]
    Both,
    /// Those whose names are VPP's.
    Vpp,
    /// Those whose names begin with `quiver_`.
    Quiver,
}

impl Names {
    /// Is a family of this kind a part of the scrape?
    fn has(self, kind: Kind) -> bool {
        match self {
            Names::Both => true,
            Names::Vpp => kind == Kind::Unknown,
            Names::Quiver => kind != Kind::Unknown,
        }
    }
}

/// A scrape while it is written.
#[derive(Debug)]
pub struct Text {
    format: Format,
    names: Names,
    out: String,
    /// The family of the samples that come now.
    family: Option<Family>,
    /// Is it a part of the scrape?
    takes: bool,
    samples: usize,
}

impl Text {
    /// Nothing yet, with room for so many bytes.
    pub fn new(format: Format, names: Names, bytes: usize) -> Text {
        let out = String::with_capacity(bytes);
        Text { format, names, out, family: None, takes: false, samples: 0 }
    }

    /// Begin a family. Its samples follow, and it does not come back.
    pub fn family(&mut self, family: &Family) {
        self.takes = self.names.has(family.kind);
        self.family = Some(*family);
        if !self.takes {
            return;
        }
        let (name, kind) = match self.format {
            Format::Text => (
                family.name,
                match family.kind {
                    Kind::Counter => "counter",
                    Kind::Gauge | Kind::Info => "gauge",
                    Kind::Histogram => "histogram",
                    Kind::Unknown => "untyped",
                },
            ),
            Format::OpenMetrics => (
                family.open_metrics_name(),
                match family.kind {
                    Kind::Counter => "counter",
                    Kind::Gauge => "gauge",
                    Kind::Histogram => "histogram",
                    Kind::Info => "info",
                    Kind::Unknown => "unknown",
                },
            ),
        };
        let _ = writeln!(self.out, "# TYPE {name} {kind}");
        if let (Format::OpenMetrics, Some(unit)) = (self.format, family.unit()) {
            let _ = writeln!(self.out, "# UNIT {name} {unit}");
        }
        let _ = writeln!(self.out, "# HELP {name} {}", family.help);
    }

    /// Are samples of the family that was begun wanted?
    pub fn takes(&self) -> bool {
        self.takes
    }

    /// Add a sample of a whole number to the family.
    pub fn count(&mut self, labels: &Labels, value: u64) {
        self.sample("", labels, &value);
    }

    /// Add a sample to the family.
    pub fn value(&mut self, labels: &Labels, value: f64) {
        self.sample("", labels, &value);
    }

    /// Add the samples of a histogram: how many were at most so much, by growing bounds, and how
    /// many there are and their sum, where it is known.
    pub fn histogram(
        &mut self,
        labels: &Labels,
        buckets: impl IntoIterator<Item = (f64, u64)>,
        count: u64,
        sum: Option<f64>,
    ) {
        for (bound, at_most) in buckets {
            self.sample("_bucket", &labels.with("le", &bound), &at_most);
        }
        self.sample("_bucket", &labels.with("le", &"+Inf"), &count);
        if let Some(sum) = sum {
            self.sample("_sum", labels, &sum);
            self.sample("_count", labels, &count);
        }
    }

    fn sample(&mut self, suffix: &str, labels: &Labels, value: &dyn Display) {
        if let (true, Some(family)) = (self.takes, &self.family) {
            let _ = writeln!(self.out, "{}{suffix}{} {value}", family.name, labels.0);
            self.samples += 1;
        }
    }

    /// Samples so far.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// The whole.
    pub fn finish(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.out += "# EOF\n";
        }
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RX: Family = Family::counter("quiver_rx_bytes_total", "Bytes received");
    const VPP: Family = Family::vpp("interfaces_rx_bytes", "Bytes received");

    fn written(format: Format, names: Names) -> String {
        let mut text = Text::new(format, names, 0);
        text.family(&RX);
        text.count(&Labels::new([("interface", &"a\"b\\c\nd"), ("thread", &1)]), 7);
        text.family(&VPP);
        text.count(&Labels::default(), 8);
        text.finish()
    }

    #[test]
    fn a_counter_is_written_as_each_format_wants_it() {
        assert_eq!(
            written(Format::Text, Names::Both),
            "# TYPE quiver_rx_bytes_total counter\n\
             # HELP quiver_rx_bytes_total Bytes received\n\
             quiver_rx_bytes_total{interface=\"a\\\"b\\\\c\\nd\",thread=\"1\"} 7\n\
             # TYPE interfaces_rx_bytes untyped\n\
             # HELP interfaces_rx_bytes Bytes received\n\
             interfaces_rx_bytes 8\n"
        );
        assert_eq!(
            written(Format::OpenMetrics, Names::Quiver),
            "# TYPE quiver_rx_bytes counter\n\
             # UNIT quiver_rx_bytes bytes\n\
             # HELP quiver_rx_bytes Bytes received\n\
             quiver_rx_bytes_total{interface=\"a\\\"b\\\\c\\nd\",thread=\"1\"} 7\n\
             # EOF\n"
        );
        assert!(!written(Format::Text, Names::Vpp).contains("quiver_"));
    }

    #[test]
    fn a_histogram_ends_with_all_that_there_are() {
        const TIMES: Family = Family::histogram("quiver_call_seconds", "Times");
        let mut text = Text::new(Format::Text, Names::Both, 0);
        text.family(&TIMES);
        text.histogram(&Labels::new([("worker", &0)]), [(0.5, 1), (1.0, 3)], 4, Some(2.5));
        let lines: Vec<String> = text.finish().lines().skip(2).map(str::to_owned).collect();
        assert_eq!(
            lines,
            [
                "quiver_call_seconds_bucket{worker=\"0\",le=\"0.5\"} 1",
                "quiver_call_seconds_bucket{worker=\"0\",le=\"1\"} 3",
                "quiver_call_seconds_bucket{worker=\"0\",le=\"+Inf\"} 4",
                "quiver_call_seconds_sum{worker=\"0\"} 2.5",
                "quiver_call_seconds_count{worker=\"0\"} 4",
            ]
        );
    }

    proptest! {
        #[test]
        fn any_value_of_a_label_stays_on_its_line_and_between_its_marks(value in ".*") {
            let labels = Labels::new([("name", &value)]).0;
            let inner = labels.strip_prefix("{name=\"").and_then(|rest| rest.strip_suffix("\"}"));
            let inner = inner.expect("braces and marks");
            prop_assert!(!inner.contains('\n'));
            let mut read = String::new();
            let mut characters = inner.chars();
            while let Some(character) = characters.next() {
                prop_assert!(character != '"', "a mark that is not escaped");
                read.push(match character {
                    '\\' => match characters.next() {
                        Some('n') => '\n',
                        Some(other) => other,
                        None => panic!("half an escape"),
                    },
                    other => other,
                });
            }
            prop_assert_eq!(read, value);
        }
    }
}
