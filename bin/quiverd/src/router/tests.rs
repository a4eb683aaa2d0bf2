//! The commands of the whole router, as clients of other users may use them.

use quiver_control::{Collected, Commands, Places, Registry, Started, Trust};
use quiver_core::Engine;
use quiver_core::clock::Clock;
use quiver_core::graph::builder::{EngineConfig, GraphBuilder};
use quiver_core::memory::mapping::PageSize;

use quiverd::features;

/// Every path that a command takes: the command, the value, and a line in which it leads outside.
const PATHS: [(&str, &str, &str); 21] = [
    ("set acl-plugin acl-file", "file", "set acl-plugin acl-file /etc/hostname"),
    ("set acl-plugin set-file", "file", "set acl-plugin set-file bad /etc/hostname"),
    ("configuration apply", "file", "configuration apply /etc/hostname"),
    ("configuration check", "file", "configuration check /etc/hostname"),
    ("configuration diff", "file", "configuration diff /etc/hostname"),
    ("exec", "file", "exec /etc/hostname"),
    ("pcap trace", "file", "pcap trace rx file /etc/quiver-test.pcap"),
    (
        "create memif socket id",
        "filename",
        "create memif socket id 7 filename /etc/quiver-test.sock",
    ),
    ("create tap", "host-ns", "create tap id 0 host-ns /proc/1/ns/net"),
    ("lcp create", "namespace", "lcp create pg0 host-if x netns /proc/1/ns/net"),
    ("lcp evpn", "namespace", "lcp evpn pg0 host-if x netns /proc/1/ns/net"),
    ("lcp default netns", "namespace", "lcp default netns /proc/1/ns/net"),
    ("lcp fpm listen", "namespace", "lcp fpm listen netns /proc/1/ns/net"),
    ("bfd dplane listen", "namespace", "bfd dplane listen netns /proc/1/ns/net"),
    ("bfd dplane connect", "namespace", "bfd dplane connect netns /proc/1/ns/net"),
    ("bfd dplane listen unix", "socket", "bfd dplane listen unix /etc/quiver-test.sock"),
    ("bfd dplane connect unix", "socket", "bfd dplane connect unix /etc/quiver-test.sock"),
    (
        "packet-generator new {",
        "pcap",
        "packet-generator new { name x interface pg0 pcap /etc/hostname }",
    ),
    ("shaper subscriber-file", "file", "shaper subscriber-file /etc/hostname"),
    ("create pcap", "rx", "create pcap id 0 rx /etc/hostname"),
    ("create pcap", "tx", "create pcap id 0 tx /etc/quiver-test.pcap"),
];

/// What values that hold paths are called.
const PATH_NAMES: [&str; 9] =
    ["file", "filename", "path", "dir", "folder", "pcap", "prog", "socket", "host-ns"];

/// A client that is neither root nor the router's own user.
const OTHER: Trust = Trust::Confined { user: 4_000_000, group: 4_000_000 };

fn router() -> (Engine, std::rc::Rc<std::cell::RefCell<Commands<Engine>>>) {
    let config = EngineConfig { buffers: 256, pages: PageSize::Small, ..Default::default() };
    let mut registry = Registry::new(GraphBuilder::new(config, Clock::tsc()).unwrap());
    features::register(&mut registry);
    registry.build().unwrap()
}

fn said(commands: &Commands<Engine>, engine: &mut Engine, line: &str) -> Result<String, String> {
    let done = match commands.start_as(engine, line, OTHER.into()) {
        Ok(Started::Done(output)) => Ok(output),
        Ok(Started::Running(execution)) => {
            execution.finish(commands, engine, &mut Collected::default())
        }
        Err(refusal) => Err(refusal),
    };
    done.map(|output| output.to_text()).map_err(|refusal| refusal.to_string())
}

#[test]
fn every_path_that_a_command_takes_is_known_and_confined() {
    let (mut engine, commands) = router();
    let mut found: Vec<_> = commands.borrow().values_of("path");
    let mut known: Vec<_> =
        PATHS.iter().map(|(command, value, _)| ((*command).to_owned(), *value)).collect();
    found.sort();
    known.sort();
    assert_eq!(found, known, "who adds a path to a command says here how it is confined");
    let folder = std::env::temp_dir().join(format!("quiverd-paths-{}", std::process::id()));
    let places = Places::in_runtime_dir(&folder);
    std::fs::create_dir_all(&places.files_dir).unwrap();
    commands.borrow_mut().set_places(places);
    let commands = commands.borrow();
    for line in ["create packet-generator interface pg0", "set acl-plugin set bad addresses"] {
        commands.execute(&mut engine, line).unwrap();
    }
    for (_, _, line) in PATHS {
        let refused = said(&commands, &mut engine, line).expect_err(line);
        assert!(
            refused.contains("is not inside") || refused.contains("is a path"),
            "{line}: {refused}"
        );
    }
    for left in ["/etc/quiver-test.pcap", "/etc/quiver-test.sock"] {
        assert!(!std::path::Path::new(left).exists(), "{left} was made");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_is_called_like_a_path_is_declared_as_one() {
    let (_, commands) = router();
    let commands = commands.borrow();
    for kind in ["word", "text", "rest"] {
        let named = commands.values_of(kind).into_iter();
        let paths: Vec<_> = named.filter(|(_, name)| PATH_NAMES.contains(name)).collect();
        assert!(paths.is_empty(), "{paths:?}: declare as <:path>, and open by the client's access");
    }
}

/// What secrets are called.
const SECRET_NAMES: [&str; 8] = [
    "secret",
    "shared-secret",
    "key-material",
    "password",
    "passphrase",
    "psk",
    "token",
    "crypto-key",
];

#[test]
fn what_is_called_like_a_secret_is_declared_as_one() {
    let (_, commands) = router();
    let commands = commands.borrow();
    for kind in ["word", "text", "rest", "block"] {
        let named = commands.values_of(kind).into_iter();
        let secrets: Vec<_> = named.filter(|(_, name)| SECRET_NAMES.contains(name)).collect();
        assert!(secrets.is_empty(), "{secrets:?}: declare as <:secret>, so that no log has it");
    }
    assert!(commands.values_of("secret").len() >= 2, "memif and the keys of SRv6 have secrets");
}
