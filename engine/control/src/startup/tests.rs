//! Start-up files as text: what is understood, and what is refused.

use super::*;

fn refused(text: &str) -> String {
    let schema = StartupSchema::default();
    let file = StartupFile::from_text("startup.conf", text);
    let startup = match schema.parse(&file) {
        Err(refusal) => return refusal.to_string(),
        Ok(startup) => startup,
    };
    startup.cpu().expect_err("it is accepted").to_string()
}

#[test]
fn an_operators_file_is_read_into_types() {
    let text = "unix {\n  nodaemon # stay\n  cli-listen /run/q/cli.sock exec /etc/q/setup.cli\n  \
                gid vpp\n}\n\
                cpu { main-core 0 corelist-workers 1,3-4 }\n\
                buffers {\n buffers-per-numa 65536\n default data-size 2048\n page-size 2M }";
    let schema = StartupSchema::default();
    let file = StartupFile::from_text("startup.conf", text);
    let startup = schema.parse(&file).unwrap();
    let unix = startup.unix().unwrap();
    assert!(unix.nodaemon && !unix.interactive);
    assert_eq!(unix.exec, Some("/etc/q/setup.cli".into()));
    let cpu = Cpu { main_core: Some(0), workers: Workers::Cores(vec![1, 3, 4]), ..Cpu::default() };
    assert_eq!(startup.cpu().unwrap(), cpu);
    let buffers = startup.buffers().unwrap();
    assert_eq!((buffers.per_numa, buffers.data_size_bytes), (Some(65536), Some(2048)));
    assert_eq!(buffers.page_size, PageSize::Megabytes2);
}

#[test]
fn a_fault_names_file_line_and_what_was_meant() {
    assert_eq!(
        refused("unix {\n  nodemon\n}"),
        "startup.conf:2: unknown word 'nodemon': did you mean nodaemon?"
    );
    assert_eq!(
        refused("\ncpus { }"),
        "startup.conf:2: this router has no section 'cpus': did you mean cpu?"
    );
    assert_eq!(
        refused("wlan {\n dev 0000:02:00.0 { name e0 }\n}"),
        "startup.conf:1: this router has no section 'wlan': its sections are unix, api, cpu, \
         buffers"
    );
    assert_eq!(
        refused("unix { log /x\n log /y }"),
        "startup.conf:2: 'log' is given twice: once is enough"
    );
    assert_eq!(
        refused("cpu\n{ main-core x }"),
        "startup.conf:2: 'x' does not fit here: it must be a number from 0 to 4095"
    );
    assert_eq!(
        refused("unix { nodaemon"),
        "startup.conf:1: the section unix is not closed: close it with }"
    );
    assert_eq!(
        refused("unix nodaemon"),
        "startup.conf:1: the section unix has no braces: write unix { … }"
    );
    assert_eq!(
        refused("cpu { }\ncpu { }"),
        "startup.conf:2: the section cpu is given twice: put its entries together"
    );
    assert_eq!(refused("unix { }\n}"), "startup.conf:2: a brace is closed that was never opened");
    assert_eq!(
        refused("unix {\n main }"),
        "startup.conf:2: unknown word 'main': expected nodaemon, interactive, cli-listen, log, \
         exec, startup-config, exec-strict, runtime-dir, files-dir, state-dir, versions-kept, \
         pidfile or others (try ?)"
    );
    assert_eq!(
        refused("cpu {\n main-core 1\n workers 2\n corelist-workers 1 }"),
        "startup.conf:3: both corelist-workers and workers are given: give one of them"
    );
    assert_eq!(
        refused("cpu {\n corelist-workers 1-2\n main-core 1 }"),
        "startup.conf:3: core 1 is both main-core and a worker's: take it out of corelist-workers"
    );
}

#[test]
fn a_feature_declares_a_section_with_blocks_that_repeat() {
    let mut schema = StartupSchema::default();
    schema.add(
        Section::new("devices")
            .help("Devices of DPDK")
            .entry(
                "(dev <address:word> ['{' {[name <:word>] [num-rx-queues <:1-64>]} '}'])...",
                "a device",
            )
            .entry("no-multi-seg", "frames fit into one buffer")
            .entry("uio-driver <:word>", "the kernel's driver"),
    );
    let text = "devices {\n dev 0000:02:00.0 { name e0 }\n dev 0000:03:00.0\n no-multi-seg\n \
                uio-driver vfio-pci\n dev 0000:04:00.0 { num-rx-queues 2 name e2 } }";
    let file = StartupFile::from_text("startup.conf", text);
    let startup = schema.parse(&file).unwrap();
    let args = startup.section("devices").unwrap();
    let devices: Vec<(String, Option<String>)> = args
        .groups("dev")
        .map(|dev| (dev.get("address").unwrap(), dev.optional("name").unwrap()))
        .collect();
    assert_eq!(devices.len(), 3);
    assert_eq!(devices[0], ("0000:02:00.0".into(), Some("e0".into())));
    assert_eq!(devices[1], ("0000:03:00.0".into(), None));
    assert!(args.has("no-multi-seg"));
    let refusal = startup.refuse_in(
        "devices",
        args.groups("dev").nth(1).unwrap().refuse("address", "no such device"),
    );
    assert_eq!(refusal.to_string(), "startup.conf:3: no such device");
}

#[test]
fn a_file_written_for_vpp_is_taken_and_each_word_without_effect_is_named_once() {
    let text = "unix {\n nodaemon\n full-coredump\n poll-sleep-usec 100\n}\nheapsize 2G\n\
                api-trace { on }\ncpu { relative }\n\
                dpdk { dev default { num-rx-desc 512 }\n dev 0000:02:00.1 { num-rx-queues 2 name \
                eth0 }\n no-multi-seg }\nplugins { plugin default { disable }\n plugin \
                dpdk_plugin.so { enable } }\n\
                nat { endpoint-dependent max users per thread 64 }\n\
                buffers { numa 0 { buffers 1024 } page-size default-hugepage }";
    let schema = StartupSchema::default();
    let file = StartupFile::from_text("startup.conf", text);
    let startup = schema.parse(&file).unwrap();
    assert!(startup.unix().unwrap().full_coredump);
    assert_eq!(startup.buffers().unwrap().page_size, PageSize::Default);
    let places: Vec<String> = startup
        .idle()
        .iter()
        .map(|said| said.split(" does nothing").next().unwrap_or("").to_owned())
        .collect();
    let expected = [
        "startup.conf:4: unix poll-sleep-usec",
        "startup.conf:6: heapsize",
        "startup.conf:7: api-trace",
        "startup.conf:8: cpu relative",
        "startup.conf:9: dpdk",
        "startup.conf:12: plugins",
        "startup.conf:14: nat",
        "startup.conf:15: buffers numa",
    ];
    assert_eq!(places, expected);
}

#[test]
fn heapsize_with_braces_or_a_word_that_vpp_does_not_have_is_an_error_still() {
    assert_eq!(refused("heapsize x"), "startup.conf:1: unknown word 'x': did you mean {?");
    assert!(refused("dpdk {\n dew 1 }").starts_with("startup.conf:2: unknown word 'dew'"));
}

#[test]
fn a_port_to_listen_at_is_refused_with_what_to_do() {
    let schema = StartupSchema::default();
    let file = StartupFile::from_text("startup.conf", "unix {\n cli-listen localhost:5002 }");
    let refusal = schema.parse(&file).unwrap().unix().unwrap_err().to_string();
    assert!(
        refusal.starts_with("startup.conf:2: localhost:5002 is not a path: name a socket"),
        "{refusal}"
    );
}

#[test]
fn an_entry_under_its_old_name_has_the_same_effect_and_is_named_with_the_new_one() {
    let schema = StartupSchema::default();
    for (word, notes) in [
        ("no-block-driver", vec![]),
        (
            "no-superblocks",
            vec!["startup.conf:2: cpu no-superblocks is an old name: write no-block-driver"],
        ),
    ] {
        let text = format!("cpu {{\n {word}\n}}");
        let file = StartupFile::from_text("startup.conf", &text);
        let startup = schema.parse(&file).expect("both names parse");
        assert!(startup.cpu().expect("a section").no_block_driver);
        assert_eq!(startup.idle(), notes);
    }
}
