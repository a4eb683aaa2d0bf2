//! Everything that reads a file or a request. The first byte says which.

use std::cell::OnceCell;
use std::io::Cursor;

use quiver_control::document::{Language, from_vppcfg};
use quiver_control::server::check_request;
use quiver_control::{Collected, OnRefusal, StartupFile, StartupSchema};
use quiver_core::pcap_file::PcapReader;
use quiver_testkit::configuration::changes_state;
use quiver_testkit::{Router, Settings};
use quiver_wire::{Ip4InterfaceAddress, Ip6InterfaceAddress, IpPrefix, MacAddress};
use quiverd::features;

use crate::folder;

/// Records of a capture that are read; a file has no limit of them.
const RECORDS_MAX: usize = 1000;
/// Buffers of a router that forwards nothing.
const BUFFERS: usize = 256;

const READERS: [fn(&[u8]); 8] =
    [startup_file, script, capture, request, json_form, completion, addresses, document];

thread_local! {
    /// A router whose grammar is used, and that never changes.
    static ROUTER: OnceCell<Router> = const { OnceCell::new() };
}

/// Read the bytes behind the first as the file or request that it says.
pub fn run(bytes: &[u8]) {
    if let Some((reader, bytes)) = bytes.split_first() {
        READERS[usize::from(*reader) % READERS.len()](bytes);
    }
}

fn with_router<R>(act: impl FnOnce(&Router) -> R) -> R {
    ROUTER.with(|router| act(router.get_or_init(new_router)))
}

fn new_router() -> Router {
    let settings =
        Settings { buffers: BUFFERS, runtime_dir: Some(folder()), ..Settings::default() };
    Router::with(settings, &[features::built_in])
}

/// A configuration in YAML: what is read is a configuration, and can be written.
fn document(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let _ = from_vppcfg(text).is_ok();
    with_router(|router| {
        let commands = router.commands();
        let commands = commands.borrow();
        if let Ok(wanted) = commands.read_configuration(&(), text, Language::Yaml)
            && commands.mistakes_in(&(), &wanted.text).is_empty()
            && let Ok(document) = commands.document_of(&wanted.text)
        {
            let _ = document.yaml(&wanted.comments.unwrap_or_default()).len();
        }
    });
}

fn startup_file(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let (mut schema, parts) = (StartupSchema::default(), features::startup());
    parts.iter().for_each(|part| schema.add(part.section.clone()));
    let file = StartupFile::from_text("startup.conf", text);
    if let Ok(startup) = schema.parse(&file) {
        let _ = (
            startup.unix().is_ok(),
            startup.cpu().is_ok(),
            startup.buffers().is_ok(),
            startup.idle(),
        );
        if let Ok(commands) = startup.commands(&parts) {
            with_router(|router| {
                let all = router.commands();
                for line in commands {
                    assert!(
                        all.borrow().name_of(&line).is_some(),
                        "a section means `{line}`, which is no command"
                    );
                }
            });
        }
    }
}

/// Lines that touch neither Linux nor files are executed by a router of their own.
fn script(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let is_harmless = |line: &str| {
        // What a line alone does not show: commands of several lines, and behind a filter.
        !line.contains(['{', '"', '|'])
            && with_router(|router| {
                let commands = router.commands();
                let commands = commands.borrow();
                commands
                    .name_of(line)
                    .is_none_or(|name| changes_state(name) && !name.contains("memif socket"))
            })
    };
    if text.contains(" /") || !text.lines().all(is_harmless) {
        return;
    }
    let mut router = new_router();
    let commands = router.commands();
    let commands = commands.borrow();
    let script = commands.start_script(text.to_owned(), Some("script".into()), OnRefusal::Continue);
    let mut sink = Collected::default();
    let _ = script.finish(&commands, router.engine(), &mut sink);
    router.discard();
}

fn capture(bytes: &[u8]) {
    if let Ok(reader) = PcapReader::new(Cursor::new(bytes)) {
        for record in reader.take(RECORDS_MAX).map_while(Result::ok) {
            assert!(record.bytes.len() <= bytes.len());
        }
    }
}

/// The response to a request that is not taken is JSON itself.
fn request(bytes: &[u8]) {
    if let Err(response) = check_request(bytes) {
        let response: serde_json::Value =
            serde_json::from_str(&response).expect("a response is JSON");
        assert!(response["error"]["code"].is_i64(), "{response}");
    }
}

/// What the JSON form of a command says is one line, and parses as that command or is refused.
fn json_form(bytes: &[u8]) {
    let Ok(form) = serde_json::from_slice(bytes) else { return };
    with_router(|router| {
        let commands = router.commands();
        let commands = commands.borrow();
        if let Ok(line) = commands.line_of_json(&form) {
            assert!(!line.contains('\n'), "{line:?}");
            let _ = commands.name_of(&line);
        }
    });
}

/// The cursor is at the number of the first byte.
fn completion(bytes: &[u8]) {
    let Some((cursor, line)) = bytes.split_first() else { return };
    let Ok(line) = str::from_utf8(line) else { return };
    with_router(|router| {
        let commands = router.commands();
        let commands = commands.borrow();
        for cursor in [usize::from(*cursor).min(line.len()), line.len()] {
            let found = commands.complete(&(), line, cursor);
            assert!(
                found.start <= line.len() && line.is_char_boundary(found.start),
                "{line:?} at {cursor}"
            );
        }
    });
}

/// What is read of an address, written and read again is the same.
fn addresses(bytes: &[u8]) {
    fn read<T: std::str::FromStr + std::fmt::Display + PartialEq + std::fmt::Debug>(text: &str) {
        if let Ok(value) = text.parse::<T>() {
            let written = value.to_string();
            assert_eq!(written.parse::<T>().ok().as_ref(), Some(&value), "{text:?} as {written:?}");
        }
    }
    let Ok(text) = str::from_utf8(bytes) else { return };
    read::<MacAddress>(text);
    read::<IpPrefix>(text);
    read::<Ip4InterfaceAddress>(text);
    read::<Ip6InterfaceAddress>(text);
}
