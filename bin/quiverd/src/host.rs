//! `--check`: what the host lacks for a fast router, and the command that gives it.
//!
//! Nothing of this ends a start. The router says in its log what it does instead.

use std::fmt;
use std::fs;
use std::path::Path;

use quiver_control::types::core_list;
use quiver_core::graph::builder::EngineConfig;
use quiver_core::memory::buffer::DATA_BYTES_MAX;
use quiver_core::memory::mapping::PageSize;

/// Bytes of a huge page.
const HUGE_PAGE_BYTES: usize = 2 << 20;
/// Bytes of a buffer beside its data, at most.
const BUFFER_OVERHEAD_BYTES: usize = (1 << 16) - DATA_BYTES_MAX;
/// Bytes of memory that AF_XDP sockets of one device pin, at least.
const LOCKED_BYTES_WANTED: u64 = 64 << 20;

/// Capabilities, their numbers in `linux/capability.h`, and the commands that need them. Found by
/// starting the router without each.
const CAPABILITIES: [(&str, u32, &str); 5] = [
    ("CAP_NET_ADMIN", 12, "create tap, create interface af_xdp, lcp create"),
    ("CAP_NET_RAW", 13, "create host-interface, create interface af_xdp"),
    ("CAP_IPC_LOCK", 14, "create interface af_xdp with a small limit of locked memory"),
    ("CAP_SYS_ADMIN", 21, "host-ns and netns: network namespaces other than the router's own"),
    ("CAP_BPF", 39, "create interface af_xdp"),
];

/// Something that the host lacks.
#[derive(Debug, PartialEq, Eq)]
pub struct Lack {
    what: String,
    remedy: String,
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host: {}: {}", self.what, self.remedy)
    }
}

/// What is known of the host.
#[derive(Debug)]
pub struct Host {
    /// Huge pages of 2 MiB that are free; `None` when the kernel has none of this size.
    huge_pages_free: Option<usize>,
    /// Huge pages of 2 MiB that exist.
    huge_pages: usize,
    /// Cores that this process may use.
    cores: Vec<u16>,
    /// Cores that the scheduler gives to no other process (`isolcpus`).
    isolated: Vec<u16>,
    /// Effective capabilities of this process, a bit each.
    capabilities: u64,
    /// Bytes that this process may lock; `None` is no limit.
    locked_bytes_max: Option<u64>,
    has_tun: bool,
    /// Families of sockets that the kernel has now.
    protocols: String,
}

impl Host {
    /// Reads `/proc`, `/sys` and `/dev`. What cannot be read counts as lacking.
    pub fn read() -> Host {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let number = |path: &str| text(path).trim().parse().ok();
        let status = text("/proc/self/status");
        let field =
            |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let cores = |list: &str| core_list(list.trim()).unwrap_or_default();
        let pages = "/sys/kernel/mm/hugepages/hugepages-2048kB";
        Host {
            huge_pages_free: number(&format!("{pages}/free_hugepages")),
            huge_pages: number(&format!("{pages}/nr_hugepages")).unwrap_or_default(),
            cores: field("Cpus_allowed_list:").map(cores).unwrap_or_default(),
            isolated: cores(&text("/sys/devices/system/cpu/isolated")),
            capabilities: field("CapEff:")
                .and_then(|mask| u64::from_str_radix(mask, 16).ok())
                .unwrap_or_default(),
            locked_bytes_max: rustix::process::getrlimit(rustix::process::Resource::Memlock)
                .current,
            has_tun: Path::new("/dev/net/tun").exists(),
            protocols: text("/proc/net/protocols"),
        }
    }

    /// What it lacks for this router.
    pub fn lacks(&self, engine: &EngineConfig) -> Vec<Lack> {
        let mut lacks = Vec::new();
        let mut lack = |what: String, remedy: String| lacks.push(Lack { what, remedy });
        self.huge_pages(engine, &mut lack);
        self.workers(engine, &mut lack);
        self.rights(&mut lack);
        self.modules(&mut lack);
        lacks
    }

    fn huge_pages(&self, engine: &EngineConfig, lack: &mut impl FnMut(String, String)) {
        let buffer_bytes = engine.buffer_data_bytes + BUFFER_OVERHEAD_BYTES;
        let wanted = (engine.buffers * buffer_bytes).div_ceil(HUGE_PAGE_BYTES);
        let (instead, is_wanted) = match engine.pages {
            PageSize::Small => ("", false),
            PageSize::Best => ("; they lie in pages of 4 KiB instead", true),
            PageSize::Huge => ("; a start with `page-size 2M` ends", true),
        };
        match self.huge_pages_free {
            _ if !is_wanted => {}
            Some(free) if free >= wanted => {}
            Some(free) => lack(
                format!("{free} huge pages of 2 MiB are free, the buffers need {wanted}{instead}"),
                format!("`sysctl -w vm.nr_hugepages={}`", self.huge_pages + wanted - free),
            ),
            None => lack(
                format!(
                    "the kernel has no huge pages of 2 MiB, the buffers need {wanted}{instead}"
                ),
                "take a kernel with CONFIG_HUGETLBFS".to_owned(),
            ),
        }
    }

    fn workers(&self, engine: &EngineConfig, lack: &mut impl FnMut(String, String)) {
        if self.cores.len() == 1 {
            lack(
                "one core: the control thread and the worker share it".to_owned(),
                "give the machine a second core".to_owned(),
            );
            return;
        }
        let shared: Vec<String> = engine
            .worker_cores
            .iter()
            .filter(|core| !self.isolated.iter().any(|isolated| usize::from(*isolated) == **core))
            .map(usize::to_string)
            .collect();
        if !shared.is_empty() {
            let list = shared.join(",");
            lack(
                format!("other processes may run on cores of workers ({list})"),
                format!(
                    "boot Linux with `isolcpus=managed_irq,domain,{list} nohz_full={list} \
                     rcu_nocbs={list}`"
                ),
            );
        }
    }

    fn rights(&self, lack: &mut impl FnMut(String, String)) {
        let has = |number: u32| self.capabilities & 1 << number != 0;
        for (name, number, commands) in CAPABILITIES {
            let is_needless = name == "CAP_IPC_LOCK"
                && self.locked_bytes_max.is_none_or(|most| most >= LOCKED_BYTES_WANTED);
            // CAP_SYS_ADMIN includes what CAP_BPF allows.
            let is_included = name == "CAP_BPF" && has(21);
            if !has(number) && !is_needless && !is_included {
                lack(
                    format!("no {name}, which these need: {commands}"),
                    format!(
                        "start it by quiver.service, where `systemctl edit quiver` adds \
                         AmbientCapabilities={name}, or run it as root"
                    ),
                );
            }
        }
    }

    fn modules(&self, lack: &mut impl FnMut(String, String)) {
        if !self.has_tun {
            lack(
                "no /dev/net/tun, which create tap and lcp create need".to_owned(),
                "`modprobe tun`; a container takes it by `--device /dev/net/tun`".to_owned(),
            );
        }
        let has = |family: &str| {
            self.protocols.lines().any(|line| line.split_whitespace().next() == Some(family))
        };
        if !has("PACKET") {
            lack(
                "no packet sockets, which create host-interface needs".to_owned(),
                "`modprobe af_packet`".to_owned(),
            );
        }
        if !has("XDP") {
            lack(
                "no AF_XDP sockets, which create interface af_xdp needs".to_owned(),
                "take a kernel with CONFIG_XDP_SOCKETS, or create host-interface".to_owned(),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete() -> Host {
        Host {
            huge_pages_free: Some(512),
            huge_pages: 512,
            cores: vec![0, 1, 2],
            isolated: vec![1, 2],
            capabilities: u64::MAX,
            locked_bytes_max: None,
            has_tun: true,
            protocols: "protocol  size\nPACKET 1\nXDP 2\n".to_owned(),
        }
    }

    fn engine() -> EngineConfig {
        EngineConfig { worker_cores: vec![1, 2], ..EngineConfig::default() }
    }

    fn said(host: &Host) -> Vec<String> {
        host.lacks(&engine()).iter().map(Lack::to_string).collect()
    }

    #[test]
    fn a_complete_host_lacks_nothing() {
        assert_eq!(said(&complete()), [""; 0]);
    }

    #[test]
    fn missing_huge_pages_are_said_with_the_number_that_gives_them() {
        let host = Host { huge_pages_free: Some(1), huge_pages: 4, ..complete() };
        let buffers = engine().buffers * (engine().buffer_data_bytes + BUFFER_OVERHEAD_BYTES);
        let wanted = buffers.div_ceil(HUGE_PAGE_BYTES);
        let lines = said(&host);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].contains(&format!("the buffers need {wanted}")), "{lines:?}");
        assert!(lines[0].ends_with(&format!("`sysctl -w vm.nr_hugepages={}`", wanted + 3)));
        let small = EngineConfig { pages: PageSize::Small, ..engine() };
        assert_eq!(host.lacks(&small), []);
    }

    #[test]
    fn a_missing_capability_names_the_commands_that_need_it() {
        let host = Host { capabilities: !(1 << 13), ..complete() };
        let lines = said(&host);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].contains("no CAP_NET_RAW"), "{lines:?}");
        assert!(lines[0].contains("create host-interface"), "{lines:?}");
        // A limit of locked memory matters only without CAP_IPC_LOCK.
        let limited = Host { locked_bytes_max: Some(8 << 20), ..complete() };
        assert_eq!(said(&limited), [""; 0]);
        assert_eq!(said(&Host { capabilities: !(1 << 14), ..limited }).len(), 1);
    }

    #[test]
    fn cores_that_others_use_are_named() {
        let host = Host { isolated: vec![2], ..complete() };
        let lines = said(&host);
        assert!(lines[0].contains("cores of workers (1)"), "{lines:?}");
        assert!(lines[0].contains("isolcpus=managed_irq,domain,1 "), "{lines:?}");
    }
}
