//! The sections `linux-cp` and `linux-nl` of the start-up file.

use quiver_control::{Args, Refusal, Section, StartupPart};

/// Why sizes and pauses of batches do nothing.
const NO_BATCHES: &str = "a thread of its own reads changes as they come";
/// Why words about links that go down do nothing.
const LINK_DOWN: &str = "routes by a link that is down are not used, as in Linux";
/// Why some words do nothing.
const NOT_DONE: &str = "this router does not do that yet";

/// The sections.
pub fn startup() -> Vec<StartupPart> {
    let mirror = Section::new("linux-cp")
        .help("Twins of interfaces in Linux")
        .entry("default netns <namespace:word>", "where twins are made")
        .idle("lcp-sync", "twins follow their interfaces unless `lcp lcp-sync off` says otherwise")
        .idle("lcp-sync-unnumbered", "addresses that an interface borrows are not given to twins")
        .entry("lcp-auto-subint", "sub-interfaces get twins by themselves")
        .idle("del-static-on-link-down", LINK_DOWN)
        .idle("del-dynamic-on-link-down", LINK_DOWN)
        .idle("num-rx-queues <:u16>", "a twin has one queue; what Linux sends is little")
        .idle("num-tx-queues <:u16>", "a twin has one queue; what Linux gets is little")
        .idle("netlink-mac-learning", NOT_DONE)
        .idle("route-no-paths", "routes without a path are not forwarded");
    let netlink = Section::new("linux-nl")
        .help("How changes in Linux are heard")
        .entry("rx-buffer-size <:size>", "bytes of changes that may wait in the kernel")
        .entry("nl-rx-buffer-size <:size>", "the same")
        .idle("tx-buffer-size <:size>", "requests are answered one at a time")
        .idle("nl-batch-size <:u32>", NO_BATCHES)
        .idle("batch-size <:u32>", NO_BATCHES)
        .idle("nl-batch-delay-ms <:u32>", NO_BATCHES)
        .idle("batch-delay-ms <:u32>", NO_BATCHES);
    let netlink = StartupPart::new(netlink, |args: &Args<'_>| {
        let own = args.optional::<u64>("nl-rx-buffer-size")?;
        let bytes = args.optional::<u64>("rx-buffer-size")?.or(own);
        let line = |bytes| format!("lcp netlink rx-buffer-size {bytes}");
        Ok::<_, Refusal>(bytes.map(line).into_iter().collect())
    });
    let mirror = StartupPart::new(mirror, |args: &Args<'_>| {
        let namespace = args.optional::<String>("namespace")?;
        let default = namespace.map(|name| format!("lcp default netns {name}"));
        let automatic = args.has("lcp-auto-subint").then(|| "lcp lcp-auto-subint on".to_owned());
        Ok::<_, Refusal>(default.into_iter().chain(automatic).collect())
    });
    vec![mirror, netlink]
}
