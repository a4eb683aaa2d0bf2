//! docs/reference/tests.md: the test cases of each area, by the names of test functions and golden
//! folders.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::metadata::root;

/// Where the test cases of an area stand.
struct Source {
    /// A file, or a folder with all that is in it: `.rs`, `.py`, and the cases of `golden` folders.
    path: &'static str,
    /// Only cases whose names have one of these in them; all, when there is none.
    having: &'static [&'static str],
}

/// All test cases of a file or folder.
const fn all(path: &'static str) -> Source {
    Source { path, having: &[] }
}

/// Those whose names have one of `having` in them.
const fn some(path: &'static str, having: &'static [&'static str]) -> Source {
    Source { path, having }
}

/// The areas. A case that is of two areas stands in both.
const AREAS: &[(&str, &[Source])] = &[
    (
        "IPv4",
        &[
            all("engine/wire/src/ip4.rs"),
            all("engine/wire/src/ip4"),
            all("engine/wire/src/icmp4.rs"),
            all("engine/forwarding/src/ip4"),
            all("features/ip/src/ip4"),
            some("features/ip/tests/golden", &["ip4", "ip-mode"]),
            some("features/ip/tests", &["ip4", "ping", "route", "table", "ttl"]),
            some("tests/netns", &["ip4", "ping", "route", "traceroute", "tracepath", "icmp"]),
        ],
    ),
    (
        "IPv6",
        &[
            all("engine/wire/src/ip6.rs"),
            all("engine/wire/src/ip6"),
            all("engine/wire/src/icmp6.rs"),
            all("engine/wire/src/icmp6"),
            all("engine/forwarding/src/ip6"),
            all("features/ip/src/ip6"),
            some("features/ip/tests/golden", &["ip6", "ip-mode"]),
            some("features/ip/tests", &["ip6", "ping", "route", "link_local", "hop"]),
            some("tests/netns", &["ip6", "ping", "route", "traceroute", "tracepath", "icmp"]),
        ],
    ),
    (
        "Routes: tables, next hops, recursion, ECMP",
        &[
            all("engine/forwarding/src/fib"),
            all("engine/tables/src/lpm"),
            all("engine/forwarding/src/next_hop_group.rs"),
            some("engine/tables/tests", &[]),
            some("engine/forwarding/tests", &["fib"]),
            all("engine/wire/src/flow.rs"),
            all("engine/wire/src/flow"),
            all("tests/netns/test_routes.py"),
        ],
    ),
    (
        "Neighbours",
        &[
            all("engine/wire/src/arp.rs"),
            all("engine/wire/src/icmp6/nd.rs"),
            all("engine/wire/src/icmp6/nd"),
            all("engine/forwarding/src/neighbour.rs"),
            all("engine/forwarding/src/fib/neighbours.rs"),
            all("features/ip/src/neighbor"),
            all("features/ip/tests/held.rs"),
            all("features/ip/tests/neighbours.rs"),
            all("features/ip/tests/neighbours"),
            some("features/ip/tests/golden", &["arp", "nd", "neigh", "dad", "proxy"]),
            all("tests/netns/test_neighbours.py"),
        ],
    ),
    (
        "Bridge and MAC table",
        &[
            all("features/bridge"),
            all("engine/tables/src/mac"),
            all("engine/tables/tests/mac.rs"),
            all("tests/netns/test_bridge.py"),
            some("tests/netns", &["bridge", "bvi", "l2fib"]),
        ],
    ),
    (
        "VLAN and tag rewrite",
        &[
            all("engine/wire/src/vlan.rs"),
            all("features/ethernet"),
            all("tests/netns/test_vlan.py"),
            some("tests/netns", &["vlan", "dot1q", "qinq"]),
            some("tests/interop", &["vlan", "dot1q", "qinq"]),
        ],
    ),
    (
        "Reassembly and fragmentation",
        &[
            all("features/reassembly"),
            all("engine/wire/src/upper.rs"),
            all("engine/wire/src/ip6/extension.rs"),
            all("features/ip/src/ip4/fragment.rs"),
            some("features/ip", &["fragment", "too-big", "too_big"]),
            all("tests/netns/test_fragments.py"),
        ],
    ),
    (
        "SRv6",
        &[
            all("engine/wire/src/srh.rs"),
            all("engine/wire/src/srh"),
            all("engine/wire/src/csid.rs"),
            all("engine/wire/src/gtpu.rs"),
            all("engine/wire/src/gtpu"),
            all("features/srv6"),
            some("tests/netns", &["srv6"]),
        ],
    ),
    ("Bonding and LACP", &[all("features/bond"), some("tests", &["bond", "lacp"])]),
    ("LLDP", &[all("features/lldp"), some("tests", &["lldp"])]),
    ("SPAN", &[all("features/span"), some("tests", &["span", "mirror"])]),
    ("sFlow", &[all("features/sflow"), some("tests", &["sflow"])]),
    ("Flow records", &[all("features/flowprobe"), some("tests", &["flowprobe", "flow_records"])]),
    ("uRPF", &[all("features/urpf"), some("tests", &["urpf", "reverse_path"])]),
    (
        "Access lists",
        &[
            all("features/acl"),
            all("engine/classifier"),
            all("engine/access-lists"),
            some("tests", &["acl", "firewall"]),
        ],
    ),
    ("COP", &[all("features/cop"), some("tests", &["whitelist"])]),
    ("NAT44", &[all("features/nat44"), all("engine/standby-sessions"), some("tests", &["nat44"])]),
    ("DET44", &[all("features/det44"), some("tests", &["det44"])]),
    (
        "NAT64 and SIIT",
        &[
            all("engine/translation/src/versions"),
            all("features/nat64"),
            all("features/siit"),
            some("tests", &["nat64", "464xlat", "standby_ip6"]),
        ],
    ),
    (
        "NAPT66",
        &[
            all("engine/translation/src/ip6"),
            all("engine/bindings"),
            all("features/nat66"),
            some("tests", &["nat66"]),
        ],
    ),
    ("NPTv6", &[all("features/npt66"), some("tests", &["npt66"])]),
    (
        "DS-Lite",
        &[
            some("features/nat44", &["softwire"]),
            some("tests", &["dslite", "softwire", "standby_ip6"]),
        ],
    ),
    ("MAP and lw4o6", &[all("features/map"), some("tests", &["test_map", "softwire"])]),
    ("Policers", &[all("engine/policing"), all("features/policer"), some("tests", &["policer"])]),
    ("Classes of service", &[all("features/qos"), some("tests", &["qos"])]),
    ("Classifier tables", &[all("features/classify"), some("tests", &["classify"])]),
    ("Shapers", &[all("engine/shaping"), all("features/shaper"), some("tests", &["shaper"])]),
    ("PBR", &[all("features/pbr"), some("tests", &["pbr", "policy_rout", "policy_based"])]),
    (
        "Router advertisement",
        &[all("features/router-advertisement"), some("tests", &["advertis", "slaac", "solicit"])],
    ),
    ("Multicast", &[all("features/multicast"), some("tests", &["multicast", "mroute"])]),
    (
        "IGMP and MLD",
        &[
            some("features/multicast", &["igmp", "mld", "member", "report", "quer"]),
            all("engine/wire/src/igmp.rs"),
            all("engine/wire/src/mld.rs"),
            all("engine/wire/src/icmp6/mld.rs"),
            some("tests", &["igmp", "mld"]),
        ],
    ),
    (
        "Classes of defects that other routers had",
        &[all("tests/netns/test_defects.py"), all("features/reassembly/tests/defects.rs")],
    ),
];

/// A test case.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Case {
    file: String,
    name: String,
}

/// The page.
pub fn render() -> Result<String> {
    let mut listed = Vec::new();
    for (area, sources) in AREAS {
        let mut cases = Vec::new();
        for source in *sources {
            gather(&root().join(source.path), source.having, &mut cases)?;
        }
        cases.sort();
        cases.dedup();
        listed.push((*area, cases));
    }
    let mut page = String::from(
        "# Test cases by area\n\nWritten by `make reference` from the names of test functions \
         (`#[test]`, `def test_…`) and golden folders.\nA case of two areas stands in both; a \
         golden folder counts once, however many steps it has.\n\n\
         | area | cases |\n| --- | ---: |\n",
    );
    for (area, cases) in &listed {
        let _ = writeln!(page, "| [{area}](#{}) | {} |", anchor(area), cases.len());
    }
    for (area, cases) in &listed {
        let _ = writeln!(page, "\n## {area}\n");
        let mut file = "";
        for case in cases {
            if case.file != file {
                file = &case.file;
                let _ = writeln!(page, "- `{file}`");
            }
            let _ = writeln!(page, "  - {}", case.name);
        }
        if cases.is_empty() {
            page += "None.\n";
        }
    }
    Ok(page)
}

/// A heading as GitHub names it in a link.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || *c == ' ' || *c == '-');
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// Add the cases of a file or folder. What is not there has none.
fn gather(path: &Path, having: &[&str], cases: &mut Vec<Case>) -> Result<()> {
    if path.is_dir() {
        if path.file_name().is_some_and(|name| name == "golden") {
            return gather_golden(path, having, cases);
        }
        for entry in children(path)? {
            if !entry.ends_with("target") {
                gather(&entry, having, cases)?;
            }
        }
        return Ok(());
    }
    let names = match path.extension().and_then(|extension| extension.to_str()) {
        Some("rs") if path.is_file() => rust_tests(&read(path)?),
        Some("py") if path.is_file() => python_tests(&read(path)?),
        _ => return Ok(()),
    };
    let file = place(path);
    let wanted = |name: &String| having.is_empty() || having.iter().any(|part| name.contains(part));
    // A file that is named for it has all of its cases in it.
    let by_file = having
        .iter()
        .any(|part| path.file_stem().is_some_and(|stem| stem.to_string_lossy().contains(part)));
    let names = names.into_iter().filter(|name| by_file || wanted(name));
    cases.extend(names.map(|name| Case { file: file.clone(), name: name.replace('_', " ") }));
    Ok(())
}

fn gather_golden(folder: &Path, having: &[&str], cases: &mut Vec<Case>) -> Result<()> {
    for case in children(folder)?.into_iter().filter(|path| path.join("setup.cli").is_file()) {
        let name =
            case.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if having.is_empty() || having.iter().any(|part| name.contains(part)) {
            cases.push(Case { file: format!("{}/", place(folder)), name });
        }
    }
    Ok(())
}

fn children(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| path.display().to_string())
}

/// The path as seen from the root.
fn place(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// The functions behind `#[test]`, in property tests as well.
fn rust_tests(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_test = false;
    for line in text.lines().map(str::trim) {
        if line == "#[test]" {
            is_test = true;
        } else if let Some(rest) = line.strip_prefix("fn ").filter(|_| is_test) {
            names.extend(rest.split(['(', '<']).next().map(str::to_owned));
            is_test = false;
        }
    }
    names
}

/// The functions that pytest takes for tests.
fn python_tests(text: &str) -> Vec<String> {
    let functions = text.lines().filter_map(|line| line.trim().strip_prefix("def test_"));
    functions.filter_map(|rest| Some(rest.split('(').next()?.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_functions_are_found_behind_other_attributes() {
        let text = "#[test]\n#[ignore]\nfn one_thing() {}\nfn helper() {}\n  #[test]\n  fn \
            other(x: u8) {}";
        assert_eq!(rust_tests(text), ["one_thing", "other"]);
        let text =
            "def test_pings(hosts):\n    pass\ndef helper():\nclass A:\n    def test_more(self):";
        assert_eq!(python_tests(text), ["pings", "more"]);
    }

    #[test]
    fn every_area_has_a_heading_that_can_be_linked() {
        assert_eq!(
            anchor("Routes: tables, next hops, recursion, ECMP"),
            "routes-tables-next-hops-recursion-ecmp"
        );
    }
}
