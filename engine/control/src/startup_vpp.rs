//! Sections and words of VPP's start-up file that have nothing to do in this router. They are
//! known, so that a file written for VPP starts this router, and the log says once why each of them
//! does nothing.

use crate::startup::Section;

/// A section that does nothing: its name, what it is about in VPP, why it does nothing here, and
/// its entries.
type Idle = (&'static str, &'static str, &'static str, &'static [&'static str]);

/// Why what an API client of VPP would need does nothing.
const NO_BINARY_API: &str =
    "this router has no binary API; its API is JSON-RPC at api.sock in runtime-dir";
/// Why the size of a heap does nothing.
const NO_HEAPS: &str =
    "tables grow as they need and `set fib limit` bounds them; no heap is set aside";
/// Why a feature that is not built in does nothing.
const NOT_BUILT_IN: &str = "this router does not have that feature";

const SECTIONS: &[Idle] = &[
    (
        "api-trace",
        "Tracing of the binary API",
        NO_BINARY_API,
        &["api-trace <:on|off>", "on", "enable", "nitems <:u32>", "save-api-table <:path>"],
    ),
    (
        "api-segment",
        "Shared memory of the binary API",
        NO_BINARY_API,
        &[
            "prefix <:word>",
            "uid <:word>",
            "gid <:word>",
            "baseva <:word>",
            "global-size <:size>",
            "global-pvt-heap-size [size] <global-pvt-heap:size>",
            "api-pvt-heap-size [size] <api-pvt-heap:size>",
            "api-size <:size>",
        ],
    ),
    ("api-queue", "Queue of the binary API", NO_BINARY_API, &["length <:u32>"]),
    (
        "socksvr",
        "Socket of the binary API",
        NO_BINARY_API,
        &["default", "socket-name <:path>", "socket-perm <:word>"],
    ),
    (
        "dpdk",
        "Devices of DPDK",
        "DPDK is not built in; take devices with `create interface af_xdp` or `create \
         host-interface`",
        &[
            "(dev <device:word> ['{' {[name <:word>] [tag <:word>] [num-rx-queues <:u16>] \
             [num-tx-queues <:u16>] [num-rx-desc <:u16>] [num-tx-desc <:u16>] [workers <:word>] \
             [vlan-strip-offload <:on|off>] [tso <:on|off>] [rss <:word>] [rss-queues <:word>] \
             [devargs <:word>] [hqos] [no-rx-interrupts] [max-lro-pkt-size <:u32>]} '}'])...",
            "(blacklist <pci:word>)...",
            "(vdev <virtual-device:word>)...",
            "uio-driver <:word>",
            "uio-bind-force",
            "no-multi-seg",
            "no-pci",
            "no-hugetlb",
            "no-tx-checksum-offload",
            "enable-tcp-udp-checksum",
            "outer-checksum-offload",
            "decimal-interface-names",
            "interface-name-format <:word>",
            "log-level <:word>",
            "socket-mem <:word>",
            "huge-dir <:path>",
            "coremask <:word>",
            "nchannels <:u8>",
            "iova-mode <:word>",
            "file-prefix <:word>",
            "num-mbufs <:u32>",
            "max-simd-bitwidth <:word>",
            "telemetry",
            "proc-type <:word>",
            "base-virtaddr <:word>",
        ],
    ),
    (
        "plugins",
        "Plug-ins",
        "everything is built into one program; `show features` lists it",
        &[
            "path <:path>",
            "add-path <:path>",
            "name-filter <:word>",
            "vat-path <:path>",
            "vat-name-filter <:word>",
            "(plugin <plugin-name:word> ('{' {[enable] [disable] [skip-version-check]} '}' | \
             enable | disable))...",
        ],
    ),
    (
        "statseg",
        "Shared memory of counters",
        "counters are read with `show … json`, not from shared memory",
        &[
            "default",
            "socket-name <:path>",
            "socket-perm <:word>",
            "size <:size>",
            "page-size <:word>",
            "per-node-counters <:on|off>",
            "update-interval <:seconds>",
        ],
    ),
    (
        "nat",
        "Address translation",
        NOT_BUILT_IN,
        &[
            "endpoint-dependent",
            "deterministic",
            "dslite ce",
            "dynamic mapping only",
            "static mapping only [connection tracking]",
            "out2in dpo",
            "(translation hash (buckets <translation-buckets:u32> | memory \
             <translation-memory:size>))...",
            "(user hash (buckets <user-buckets:u32> | memory <user-memory:size>))...",
            "(max (translations per (thread <translations:u32> | user <per-user:u32>) | \
             users per thread <users:u32>))...",
            "inside VRF id <inside:u32>",
            "(outside (VRF id <outside:u32> | ip6 VRF id <outside6:u32>))...",
            "(nat64 (bib hash buckets <bib:u32> | st hash buckets <st:u32>))...",
        ],
    ),
    (
        "session",
        "Sessions of the host stack",
        NOT_BUILT_IN,
        &[
            "enable",
            "disable",
            "event-queue-length <:u32>",
            "wrk-mqs-segment-size <:size>",
            "use-private-rx-mqs",
            "use-app-socket-api",
            "use-dma",
            "no-adaptive",
            "poll-main",
            "preallocated-sessions <:u32>",
            "v4-session-table-buckets <:u32>",
            "v4-halfopen-table-buckets <:u32>",
            "v6-session-table-buckets <:u32>",
            "v6-halfopen-table-buckets <:u32>",
            "v4-session-table-memory <:size>",
            "v4-halfopen-table-memory <:size>",
            "v6-session-table-memory <:size>",
            "v6-halfopen-table-memory <:size>",
            "local-endpoints-table-memory <:size>",
            "local-endpoints-table-buckets <:u32>",
            "segment-baseva <:word>",
            "evt_qs_memfd_seg",
            "evt_qs_seg_size <:size>",
        ],
    ),
    (
        "tcp",
        "TCP of the host stack",
        NOT_BUILT_IN,
        &[
            "preallocated-connections <:u32>",
            "preallocated-half-open-connections <:u32>",
            "buffer-fail-fraction <:word>",
            "max-rx-fifo <:size>",
            "min-rx-fifo <:size>",
            "mtu <:u16>",
            "rwnd-min-update-ack <:u32>",
            "initial-cwnd-multiplier <:u32>",
            "no-tx-pacing",
            "tso",
            "no-tso",
            "no-csum-offload",
            "cc-algo <:word>",
            "closewait-time <:seconds>",
            "timewait-time <:seconds>",
            "finwait1-time <:seconds>",
            "finwait2-time <:seconds>",
            "lastack-time <:seconds>",
            "closing-time <:seconds>",
            "cleanup-time <:seconds>",
        ],
    ),
    (
        "udp",
        "UDP of the host stack",
        NOT_BUILT_IN,
        &["mtu <:u16>", "icmp-unreachable-disabled", "no-csum-offload"],
    ),
    (
        "tls",
        "TLS of the host stack",
        NOT_BUILT_IN,
        &[
            "use-test-cert-in-ca",
            "ca-cert-path <:path>",
            "first-segment-size <:size>",
            "add-segment-size <:size>",
        ],
    ),
    (
        "quic",
        "QUIC of the host stack",
        NOT_BUILT_IN,
        &["fifo-prealloc <:u32>", "max_packets_per_key <:u64>"],
    ),
    (
        "punt",
        "Packets that sockets of the host take",
        NOT_BUILT_IN,
        &["socket <:path>", "ip4-punt", "ip6-punt"],
    ),
    (
        "vhost-user",
        "vhost-user interfaces",
        NOT_BUILT_IN,
        &["coalesce-frames <:u32>", "coalesce-time <:seconds>", "dont-dump-memory"],
    ),
    (
        "mactime",
        "Times at which MAC addresses may send",
        NOT_BUILT_IN,
        &["lookup-table-buckets <:u32>", "lookup-table-memory <:size>", "timezone_offset <:word>"],
    ),
    ("nsim", "Simulation of a network", NOT_BUILT_IN, &["poll-main-thread"]),
    ("oddbuf", "Buffers at odd addresses", NOT_BUILT_IN, &["n_to_copy <:u32>"]),
    ("map", "MAP-E and MAP-T", NOT_BUILT_IN, &["customer edge"]),
    ("dns", "Resolver with a cache", NOT_BUILT_IN, &["max-cache-size <:u32>", "max-ttl <:u32>"]),
    ("l2tp", "L2TPv3", NOT_BUILT_IN, &["lookup-v6-src", "lookup-v6-dst", "lookup-session-id"]),
    ("oam", "Probes with ICMP", NOT_BUILT_IN, &["interval <:seconds>", "misses-allowed <:u32>"]),
    ("ipsec", "IPsec", NOT_BUILT_IN, &["ip4 <:on|off>", "ip6 <:on|off>"]),
    (
        "cj",
        "Circular journal",
        "`show logging` and `trace add` say what happens",
        &["records <:u32>", "on"],
    ),
    (
        "vlib",
        "Event log",
        "`show logging`, `trace add` and `show runtime` say what happens",
        &[
            "memory-trace",
            "elog-events <:u32>",
            "elog-post-mortem-dump",
            "buffer-alloc-success-rate <:word>",
        ],
    ),
    (
        "node",
        "Variants of nodes for processors",
        "`cpu { variant … }` sets the variant of all nodes",
        &["default variant <variant:word>", "variant <:word>"],
    ),
    (
        "tapcli",
        "Tap interfaces as they were",
        "make them with `create tap`",
        &["mtu <:u16>", "disable"],
    ),
    (
        "tuntap",
        "Tun interface to Linux",
        "make one with `create tap`",
        &[
            "enable",
            "disable",
            "ethernet",
            "ether",
            "have-normal-interface",
            "have-normal",
            "name <:word>",
        ],
    ),
    (
        "ethernet",
        "Ethernet interfaces",
        "interfaces have the MTU of their devices; `set interface mtu` changes it",
        &["default-mtu <:64-9000>"],
    ),
    (
        "memory",
        "Main heap",
        NO_HEAPS,
        &["main-heap-size <:size>", "main-heap-page-size <:word>", "default-hugepage-size <:word>"],
    ),
    ("physmem", "Memory for devices", NO_HEAPS, &["base-addr <:word>", "max-size <:size>"]),
];

/// All of them.
pub(crate) fn sections() -> Vec<Section> {
    let idle = |(name, help, why, entries): &Idle| {
        let section = Section::new(name).help(help).does_nothing(why);
        entries
            .iter()
            .fold(section, |section, entry| section.entry(entry, "as in VPP; does nothing here"))
    };
    let heapsize = Section::new("heapsize").help("Main heap").does_nothing(NO_HEAPS);
    let mut all: Vec<Section> = SECTIONS.iter().map(idle).collect();
    all.push(heapsize.bare("<heapsize:size>"));
    all
}
