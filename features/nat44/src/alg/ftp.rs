//! The lines of FTP that name an end of a data connection: PORT and the reply 227 (RFC 959 §4.1.2),
//! EPRT and the reply 229 (RFC 2428 §2 and §3).

use std::fmt::Write;
use std::net::Ipv4Addr;
use std::ops::Range;

use quiver_translation::flow::End;

/// Bytes of a line without an end that may still become one of these.
const UNFINISHED_MAX: usize = 80;
/// The protocol of RFC 2428 §2 that is IPv4, between delimiters.
const IPV4: &[u8] = b"|1|";
const CLIENT_WORDS: [&[u8]; 2] = [b"PORT ", b"EPRT "];
const SERVER_WORDS: [&[u8]; 2] = [b"227 ", b"229 "];

/// How an end is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `h1,h2,h3,h4,p1,p2`, of the client.
    Port,
    /// `1|address|port`, of the client.
    Eprt,
    /// `h1,h2,h3,h4,p1,p2`, of the server.
    Pasv,
    /// The port alone, of the server.
    Epsv,
}

/// An end that a line names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub form: Form,
    /// The bytes of the line that say it.
    pub argument: Range<usize>,
    /// None where the line names a port alone.
    pub address: Option<u32>,
    pub port: u16,
}

/// A text that replaces the argument of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text {
    bytes: [u8; Text::BYTES_MAX],
    length: usize,
}

impl Text {
    /// `255,255,255,255,255,255` has 23 bytes, and so has `1|255.255.255.255|65535`.
    const BYTES_MAX: usize = 24;

    /// An end in a form.
    pub fn new(form: Form, end: End) -> Text {
        let mut text = Text { bytes: [0; Text::BYTES_MAX], length: 0 };
        let [a, b, c, d] = end.address.to_be_bytes();
        let (high, low) = (end.port >> 8, end.port & 255);
        let address = Ipv4Addr::from(end.address);
        // It fits: see above.
        let _ = match form {
            Form::Port | Form::Pasv => write!(text, "{a},{b},{c},{d},{high},{low}"),
            Form::Eprt => write!(text, "1|{address}|{}", end.port),
            Form::Epsv => write!(text, "{}", end.port),
        };
        text
    }

    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

impl Write for Text {
    fn write_str(&mut self, more: &str) -> std::fmt::Result {
        let place = self.bytes.get_mut(self.length..self.length + more.len());
        place.ok_or(std::fmt::Error)?.copy_from_slice(more.as_bytes());
        self.length += more.len();
        Ok(())
    }
}

/// A decimal number at the front of `bytes`, of at most `digits` digits and not above `most`; and
/// its length.
fn number(bytes: &[u8], digits: usize, most: u32) -> Option<(u32, usize)> {
    let length = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if length == 0 || length > digits {
        return None;
    }
    let digits = bytes.get(..length)?;
    let value = digits.iter().fold(0u32, |value, digit| value * 10 + u32::from(digit - b'0'));
    (value <= most).then_some((value, length))
}

/// `h1,h2,h3,h4,p1,p2` at the front of `bytes`: address, port, length.
fn six_numbers(bytes: &[u8]) -> Option<(u32, u16, usize)> {
    let (mut all, mut at) = (0u64, 0);
    for nth in 0..6 {
        if nth > 0 {
            (*bytes.get(at)? == b',').then_some(())?;
            at += 1;
        }
        let (value, length) = number(bytes.get(at..)?, 3, 255)?;
        all = all << 8 | u64::from(value);
        at += length;
    }
    Some(((all >> 16) as u32, all as u16, at))
}

/// `a.b.c.d` at the front of `bytes`, and its length.
fn dotted(bytes: &[u8]) -> Option<(u32, usize)> {
    let length = bytes.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
    let text = std::str::from_utf8(bytes.get(..length)?).ok()?;
    Some((text.parse::<Ipv4Addr>().ok()?.into(), length))
}

fn begins_with(line: &[u8], word: &[u8]) -> bool {
    line.get(..word.len()).is_some_and(|front| front.eq_ignore_ascii_case(word))
}

/// The end that a line of the client or of the server names.
pub(crate) fn parse(line: &[u8], is_client: bool) -> Option<Named> {
    let words = if is_client { CLIENT_WORDS } else { SERVER_WORDS };
    let word = words.iter().position(|word| begins_with(line, word))?;
    match (is_client, word) {
        (true, 0) => parse_six(line, Form::Port),
        (true, _) => parse_eprt(line),
        (false, 0) => parse_six(line, Form::Pasv),
        (false, _) => parse_epsv(line),
    }
}

/// PORT, or 227, of which RFC 1123 §4.1.2.6 says that the first digit behind the code begins the
/// numbers.
fn parse_six(line: &[u8], form: Form) -> Option<Named> {
    let word = if form == Form::Port { CLIENT_WORDS[0] } else { SERVER_WORDS[0] };
    let behind = line.get(word.len()..)?;
    let skipped = match form {
        Form::Port => behind.iter().position(|byte| *byte != b' ')?,
        _ => behind.iter().position(u8::is_ascii_digit)?,
    };
    let at = word.len() + skipped;
    let (address, port, length) = six_numbers(line.get(at..)?)?;
    Some(Named { form, argument: at..at + length, address: Some(address), port })
}

/// `EPRT |1|132.235.1.2|6275|`, with the delimiter that RFC 2428 §2 recommends.
fn parse_eprt(line: &[u8]) -> Option<Named> {
    let behind = line.get(CLIENT_WORDS[1].len()..)?;
    let skipped = behind.iter().position(|byte| *byte != b' ')?;
    let begin = CLIENT_WORDS[1].len() + skipped;
    begins_with(line.get(begin..)?, IPV4).then_some(())?;
    let at = begin + IPV4.len();
    let (address, length) = dotted(line.get(at..)?)?;
    let at = at + length;
    (*line.get(at)? == b'|').then_some(())?;
    let (port, length) = number(line.get(at + 1..)?, 5, 65_535)?;
    let end = at + 1 + length;
    (*line.get(end)? == b'|').then_some(())?;
    let argument = begin + 1..end;
    Some(Named { form: Form::Eprt, argument, address: Some(address), port: port as u16 })
}

/// `229 Entering Extended Passive Mode (|||6446|)`
fn parse_epsv(line: &[u8]) -> Option<Named> {
    let open = line.iter().position(|byte| *byte == b'(')?;
    let delimiter = *line.get(open + 1)?;
    let at = open + 4;
    (line.get(open + 1..at)? == [delimiter; 3]).then_some(())?;
    let (port, length) = number(line.get(at..)?, 5, 65_535)?;
    (line.get(at + length..at + length + 2)? == [delimiter, b')']).then_some(())?;
    let argument = at..at + length;
    Some(Named { form: Form::Epsv, argument, address: None, port: port as u16 })
}

/// May a line whose end has not come yet become one that names an end?
pub(crate) fn is_unfinished(front: &[u8], is_client: bool) -> bool {
    let words = if is_client { CLIENT_WORDS } else { SERVER_WORDS };
    front.len() <= UNFINISHED_MAX
        && words.iter().any(|word| {
            let length = word.len().min(front.len());
            word.get(..length).is_some_and(|word| begins_with(front, word))
        })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(line: &[u8], is_client: bool) -> Option<(Form, String, Option<u32>, u16)> {
        let Named { form, argument, address, port } = parse(line, is_client)?;
        let text = String::from_utf8(line[argument].to_vec()).expect("digits");
        Some((form, text, address, port))
    }

    #[test]
    fn every_form_is_read() {
        let address = Some(0x0a00_0002);
        let port = (Form::Port, "10,0,0,2,4,1".to_owned(), address, 1025);
        assert_eq!(of(b"PORT 10,0,0,2,4,1\r\n", true), Some(port.clone()));
        assert_eq!(of(b"port  10,0,0,2,4,1\n", true), Some(port));
        let eprt = (Form::Eprt, "1|10.0.0.2|1025".to_owned(), address, 1025);
        assert_eq!(of(b"EPRT |1|10.0.0.2|1025|\r\n", true), Some(eprt));
        let pasv = (Form::Pasv, "10,0,0,2,4,1".to_owned(), address, 1025);
        assert_eq!(of(b"227 Entering Passive Mode (10,0,0,2,4,1).\r\n", false), Some(pasv.clone()));
        assert_eq!(of(b"227 =10,0,0,2,4,1\r\n", false), Some(pasv));
        let epsv = (Form::Epsv, "1025".to_owned(), None, 1025);
        assert_eq!(of(b"229 Extended Passive Mode OK (|||1025|)\r\n", false), Some(epsv));
    }

    #[test]
    fn other_lines_name_nothing() {
        for line in [
            &b"PORT 10,0,0,256,4,1\r\n"[..],
            b"PORT 10,0,0,2,4\r\n",
            b"PORT 10,0,0,2,4,1000\r\n",
            b"PORT 10,0,0,2,4,\r\n",
            b"PORT \r\n",
            b"PORT",
            b"EPRT |2|::1|1025|\r\n",
            b"EPRT |1|10.0.0.2|65536|\r\n",
            b"EPRT |1|10.0.0|1025|\r\n",
            b"EPRT |1|10.0.0.2|1025\r\n",
            b"EPRT ",
            b"RETR PORT 10,0,0,2,4,1\r\n",
            b"227 (10,0,0,2,4,1)\r\n",
        ] {
            assert_eq!(parse(line, true), None, "{}", line.escape_ascii());
        }
        for line in [
            &b"227 \r\n"[..],
            b"227-10,0,0,2,4,1\r\n",
            b"229 (||1025|)\r\n",
            b"229 (|||1025|",
            b"229 (|||99999|)\r\n",
            b"PORT 10,0,0,2,4,1\r\n",
        ] {
            assert_eq!(parse(line, false), None, "{}", line.escape_ascii());
        }
    }

    #[test]
    fn a_line_is_waited_for_while_it_may_name_an_end() {
        for front in [&b"P"[..], b"po", b"PORT 1,2", b"EPRT |"] {
            assert!(is_unfinished(front, true), "{}", front.escape_ascii());
        }
        for front in [&b"PA"[..], b"RETR x", b"PORTS", &[b'P'; 100], b"227 "] {
            assert!(!is_unfinished(front, true), "{}", front.escape_ascii());
        }
        assert!(is_unfinished(b"227 Entering", false) && !is_unfinished(b"226", false));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(address: u32, port: u16) {
            let end = End { address, port };
            for (form, front, back) in [
                (Form::Port, "PORT ", "\r\n"),
                (Form::Eprt, "EPRT |", "|\r\n"),
                (Form::Pasv, "227 Entering Passive Mode (", ")\r\n"),
                (Form::Epsv, "229 Entering Extended Passive Mode (|||", "|)\r\n"),
            ] {
                let text = Text::new(form, end);
                let line = [front.as_bytes(), text.bytes(), back.as_bytes()].concat();
                let named = parse(&line, matches!(form, Form::Port | Form::Eprt));
                let wanted = Named {
                    form,
                    argument: front.len()..front.len() + text.bytes().len(),
                    address: (form != Form::Epsv).then_some(address),
                    port,
                };
                prop_assert_eq!(named, Some(wanted));
            }
        }

        #[test]
        fn no_line_makes_it_panic(
            front in 0usize..4, line: Vec<u8>, digits in "[0-9,|.() ]{0,40}", is_client: bool,
        ) {
            let word = [CLIENT_WORDS, SERVER_WORDS].concat()[front];
            let (any, numbers) = ([word, &line[..]].concat(), [word, digits.as_bytes()].concat());
            for line in [&line[..], &any, &numbers] {
                if let Some(named) = parse(line, is_client) {
                    prop_assert!(named.argument.end <= line.len());
                }
                let _ = is_unfinished(line, is_client);
            }
        }
    }
}
