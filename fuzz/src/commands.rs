//! The real grammar: bytes choose commands and their values, and frames between them. Then the
//! running configuration is loaded by a fresh router, which must have the same.

use quiver_control::random::Chooser;
use quiver_testkit::choices::{Bytes, Choices, Numbers};
use quiver_testkit::configuration::{START, changes_state, loads_again, running};
use quiver_testkit::{Router, Settings};
use quiverd::features;

use crate::{chosen, folder};

/// Commands of one input.
const COMMANDS_MAX: usize = 40;
/// Buffers of each router.
const BUFFERS: usize = 256;
/// Ports that frames come in by.
const PORTS: [&str; 2] = ["e0", "e1"];
/// Bytes of a frame.
const FRAME_BYTES_MAX: usize = 255;

fn router() -> Router {
    let settings =
        Settings { buffers: BUFFERS, runtime_dir: Some(folder()), ..Settings::default() };
    Router::with(settings, &[features::built_in])
}

/// Execute commands, send frames, and load what came of it. Each step begins with a byte: below 208
/// it is a command, above a frame.
pub fn run(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let mut router = router();
    for port in PORTS {
        router.interface(port);
    }
    let wanted = u32::from_le_bytes([bytes.byte(), bytes.byte(), bytes.byte(), 0]);
    for (number, line) in START.iter().enumerate() {
        if wanted & 1 << number != 0 {
            let _ = router.execute(&line.replace("{folder}", &folder().display().to_string()));
        }
    }
    let forms: Vec<(usize, String)> = {
        let commands = router.commands();
        let commands = commands.borrow();
        let all = commands.form_names().map(str::to_owned).enumerate();
        all.filter(|(_, name)| changes_state(name)).collect()
    };
    let mut config = running(&mut router);
    for _ in 0..COMMANDS_MAX {
        if bytes.is_empty() {
            break;
        }
        match bytes.byte() {
            kind @ 0..208 => command(&mut router, &mut config, &forms, &mut bytes, kind),
            kind => frame(&mut router, &mut bytes, kind),
        }
    }
    router.discard();
    if let Some(fault) = loads_again(self::router(), &config, &config) {
        panic!("{}: {}", fault.kind, fault.text);
    }
}

/// A form by two bytes, and its values by those that follow; `config` is the running configuration
/// before and after.
fn command(
    router: &mut Router,
    config: &mut String,
    forms: &[(usize, String)],
    bytes: &mut Bytes<'_>,
    kind: u8,
) {
    let interfaces: Vec<String> =
        router.engine().all_interfaces().map(|interface| interface.name.clone()).collect();
    let selector = u16::from_le_bytes([bytes.byte(), bytes.byte()]);
    let (form, _) = chosen(selector, forms, |(_, name)| name);
    let density = [2, 5, 8][usize::from(kind) % 3];
    let mut choices =
        Choices { numbers: bytes, interfaces: &interfaces, folder: folder(), density };
    let chooser: &mut dyn Chooser = &mut choices;
    let line = router.commands().borrow().random_line(*form, chooser);
    let refused = router.execute(&line).is_err();
    let after = running(router);
    assert!(!refused || *config == after, "`{line}` is refused and changes\n{config}\nto\n{after}");
    *config = after;
    router.step();
}

/// A frame to the port, to everybody or to anybody, with any content.
fn frame(router: &mut Router, bytes: &mut Bytes<'_>, kind: u8) {
    let ports = router.interfaces(); // a command may have given it another name
    let port = &ports[usize::from(kind) % ports.len()];
    let length = bytes.below(FRAME_BYTES_MAX);
    let mut frame = match kind % 3 {
        0 => vec![2, 0xfe, 0, 0, 0, kind & 1],
        1 => vec![0xff; 6],
        _ => Vec::new(),
    };
    frame.extend_from_slice(bytes.take(length));
    if !frame.is_empty() {
        router.send(port, &frame);
    }
}
