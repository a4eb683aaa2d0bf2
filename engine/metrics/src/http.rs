//! HTTP/1.1 as a scraper speaks it (RFC 9110, RFC 9112): requests for one document, without bodies.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::text::Format;

/// The document.
pub const PATH: &str = "/metrics";
/// Longest request, with all its headers, bytes.
pub const REQUEST_BYTES_MAX: usize = 8 * 1024;
/// Headers of a request at most.
const HEADERS_MAX: usize = 64;

/// How a request is answered that is not answered with the document (RFC 9110 §15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It is no request, or has a body.
    BadRequest,
    /// Another document.
    NotFound,
    /// Another method than GET and HEAD.
    MethodNotAllowed,
    /// It did not end in time.
    RequestTimeout,
    /// Its headers are too long or too many.
    HeadersTooLarge,
    /// There is no place for a client.
    Unavailable,
    /// Another version of HTTP.
    VersionNotSupported,
}

impl Status {
    /// The number and the phrase.
    pub fn line(self) -> &'static str {
        match self {
            Status::BadRequest => "400 Bad Request",
            Status::NotFound => "404 Not Found",
            Status::MethodNotAllowed => "405 Method Not Allowed",
            Status::RequestTimeout => "408 Request Timeout",
            Status::HeadersTooLarge => "431 Request Header Fields Too Large",
            Status::Unavailable => "503 Service Unavailable",
            Status::VersionNotSupported => "505 HTTP Version Not Supported",
        }
    }
}

/// A request for the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Bytes of the buffer that it is.
    pub bytes: usize,
    /// Only the headers of the answer are wanted.
    pub is_head: bool,
    /// May another request follow on the connection?
    pub keeps_alive: bool,
    /// What the answer is written in.
    pub format: Format,
}

/// Read the first request of what a client has sent; `None` when it goes on.
///
/// # Errors
/// The answer to a request that is refused; the connection ends with it.
pub fn parse(buffer: &[u8]) -> Result<Option<Request>, Status> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let bytes = match request.parse(buffer) {
        Ok(httparse::Status::Complete(bytes)) if bytes <= REQUEST_BYTES_MAX => bytes,
        Ok(httparse::Status::Complete(_)) => return Err(Status::HeadersTooLarge),
        Ok(httparse::Status::Partial) if buffer.len() < REQUEST_BYTES_MAX => return Ok(None),
        Ok(httparse::Status::Partial) => return Err(Status::HeadersTooLarge),
        Err(httparse::Error::TooManyHeaders) => return Err(Status::HeadersTooLarge),
        Err(httparse::Error::Version) => return Err(Status::VersionNotSupported),
        Err(_) => return Err(Status::BadRequest),
    };
    let is_1_0 = request.version == Some(0);
    let (mut hosts, mut keeps_alive, mut format) = (0, !is_1_0, Format::Text);
    for header in request.headers.iter() {
        let value = std::str::from_utf8(header.value).map_err(|_| Status::BadRequest)?.trim();
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        if is("host") {
            hosts += 1;
        } else if is("transfer-encoding") || is("content-length") && value != "0" {
            return Err(Status::BadRequest);
        } else if is("connection") && lists(value, "close") {
            keeps_alive = false;
        } else if is("accept") {
            format = accepted(value);
        }
    }
    // RFC 9112 §3.2.
    if hosts > 1 || hosts == 0 && !is_1_0 {
        return Err(Status::BadRequest);
    }
    let is_head = match request.method {
        Some("GET") => false,
        Some("HEAD") => true,
        _ => return Err(Status::MethodNotAllowed),
    };
    match request.path.map(path_of) {
        Some(PATH) => Ok(Some(Request { bytes, is_head, keeps_alive, format })),
        _ => Err(Status::NotFound),
    }
}

/// The path of a request target in its origin form or absolute form (RFC 9112 §3.2).
fn path_of(target: &str) -> &str {
    let path = match target.strip_prefix("http://") {
        Some(rest) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => target,
    };
    path.split(['?', '#']).next().unwrap_or(path)
}

/// Is a word in a list that commas divide?
fn lists(value: &str, word: &str) -> bool {
    value.split(',').any(|item| item.trim().eq_ignore_ascii_case(word))
}

/// The form that the header `Accept` (RFC 9110 §12.5.1) prefers: OpenMetrics where it is named and
/// no less welcome than text.
fn accepted(value: &str) -> Format {
    let (mut open_metrics, mut text) = (0.0_f32, 0.0_f32);
    for item in value.split(',') {
        let mut words = item.split(';').map(str::trim);
        let kind = words.next().unwrap_or_default();
        let (mut quality, mut is_known_version) = (1.0_f32, true);
        for word in words {
            if let Some(number) = word.strip_prefix("q=") {
                quality = number.parse().ok().filter(|q| (0.0..=1.0).contains(q)).unwrap_or(0.0);
            } else if let Some(version) = word.strip_prefix("version=") {
                is_known_version = matches!(version, "1.0.0" | "0.0.1" | "0.0.4");
            }
        }
        if !is_known_version {
            continue;
        }
        match kind {
            "application/openmetrics-text" => open_metrics = open_metrics.max(quality),
            "text/plain" | "text/*" | "*/*" => text = text.max(quality),
            _ => {}
        }
    }
    if open_metrics > 0.0 && open_metrics >= text { Format::OpenMetrics } else { Format::Text }
}

/// The head of an answer with the document, whose body is so long.
pub fn head(format: Format, body_bytes: usize, keeps_alive: bool, now: SystemTime) -> String {
    let close = if keeps_alive { "" } else { "Connection: close\r\n" };
    format!(
        "HTTP/1.1 200 OK\r\nDate: {}\r\nContent-Type: {}\r\nContent-Length: {body_bytes}\r\n\
         {close}\r\n",
        date(now),
        format.content_type()
    )
}

/// A whole answer without the document, after which the connection ends.
pub fn refusal(status: Status, now: SystemTime) -> String {
    let allow = if status == Status::MethodNotAllowed { "Allow: GET, HEAD\r\n" } else { "" };
    let body = format!("{}: this server has GET {PATH}\n", status.line());
    format!(
        "HTTP/1.1 {}\r\nDate: {}\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Length: {}\r\n{allow}Connection: close\r\n\r\n{body}",
        status.line(),
        date(now),
        body.len()
    )
}

/// A time as RFC 9110 §5.6.7 writes it: `Sun, 06 Nov 1994 08:49:37 GMT`.
fn date(now: SystemTime) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let seconds = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (mut year, mut left) = (1970, days);
    let is_leap = |year: u64| year % 4 == 0 && year % 100 != 0 || year % 400 == 0;
    while left >= 365 + u64::from(is_leap(year)) && year < 9999 {
        left -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while month < 11 && left >= lengths[month] {
        left -= lengths[month];
        month += 1;
    }
    format!(
        "{}, {:02} {} {year} {:02}:{:02}:{:02} GMT",
        DAYS[(days % 7) as usize],
        left + 1,
        MONTHS[month],
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    #[test]
    fn a_scrapers_request_is_read_and_what_follows_is_left() {
        let accept = "application/openmetrics-text;version=1.0.0,\
                      application/openmetrics-text;version=0.0.1;q=0.75,\
                      text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        let first = format!("GET /metrics HTTP/1.1\r\nHost: r:9482\r\nAccept: {accept}\r\n\r\n");
        let sent = format!("{first}GET /metr");
        let request = parse(sent.as_bytes()).unwrap().unwrap();
        assert_eq!(request.bytes, first.len());
        assert_eq!(request.format, Format::OpenMetrics);
        assert!(request.keeps_alive && !request.is_head);
        assert_eq!(parse(&sent.as_bytes()[request.bytes..]), Ok(None));
    }

    #[test]
    fn what_the_client_prefers_is_sent() {
        for (accept, format) in [
            ("*/*", Format::Text),
            ("text/plain;version=0.0.4", Format::Text),
            ("application/openmetrics-text; version=1.0.0; q=0.2, text/plain; q=0.9", Format::Text),
            ("application/openmetrics-text;q=0", Format::Text),
            ("application/openmetrics-text;version=9.0.0", Format::Text),
            ("application/openmetrics-text", Format::OpenMetrics),
            ("q=;;,,;q=x", Format::Text),
        ] {
            assert_eq!(accepted(accept), format, "{accept}");
        }
    }

    #[test]
    fn every_other_request_is_refused_with_its_reason() {
        let many = "A: b\r\n".repeat(HEADERS_MAX + 1);
        let long = "x".repeat(REQUEST_BYTES_MAX);
        for (request, status) in [
            ("POST /metrics HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), Status::MethodNotAllowed),
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), Status::NotFound),
            ("GET /metrics HTTP/1.1\r\n\r\n".to_owned(), Status::BadRequest),
            ("GET /metrics HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n".into(), Status::BadRequest),
            (
                "GET /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n".into(),
                Status::BadRequest,
            ),
            (
                "GET /metrics HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".into(),
                Status::BadRequest,
            ),
            ("GET /metrics HTTP/2.0\r\n\r\n".into(), Status::VersionNotSupported),
            ("\x16\x03\x01\x02\x00".into(), Status::BadRequest),
            (format!("GET /metrics HTTP/1.1\r\n{many}\r\n"), Status::HeadersTooLarge),
            (format!("GET /{long}"), Status::HeadersTooLarge),
        ] {
            assert_eq!(parse(request.as_bytes()), Err(status), "{request}");
        }
    }

    #[test]
    fn targets_have_an_origin_form_and_an_absolute_form() {
        for target in ["/metrics", "/metrics?name=x", "http://router:9482/metrics"] {
            let request = format!("HEAD {target} HTTP/1.0\r\n\r\n");
            let request = parse(request.as_bytes()).unwrap().unwrap();
            assert!(request.is_head && !request.keeps_alive);
        }
        assert_eq!(path_of("http://router"), "/");
    }

    #[test]
    fn dates_are_those_of_the_rfc() {
        for (seconds, text) in [
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
        ] {
            assert_eq!(date(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic_and_no_request_is_longer_than_what_came(
            bytes in prop::collection::vec(any::<u8>(), 0..600),
            head in prop::sample::select(vec!["", "GET /metrics HTTP/1.1\r\nHost: a\r\n"]),
        ) {
            let buffer = [head.as_bytes(), &bytes].concat();
            if let Ok(Some(request)) = parse(&buffer) {
                prop_assert!(request.bytes <= buffer.len() && request.bytes > 0);
            }
        }
    }
}
