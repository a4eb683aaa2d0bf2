"""The packages in a clean Debian 12: installed, started as the unit says, upgraded, removed, purged.

The tests of this file are one life of the package, in this order. The test stands in the place of
systemd: it starts the router as the unit file says, and reads every message of the notification
socket. `test_systemd.py` has systemd itself.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from package.clean_root import CleanRoot, Service, running
from package.conftest import deb
from peers.namespace import Namespace
from peers.processes import SCRATCH, need, run


@pytest.fixture(scope="module")
def installed(root: CleanRoot, packages: Path) -> CleanRoot:
    """A clean system with the router and the generator."""
    root.install(deb(packages, "quiver"))
    root.install(deb(packages, "quiver-tg"))
    return root


def test_lintian_finds_no_error(packages: Path) -> None:
    need("lintian")
    files = [str(deb(packages, name)) for name in ("quiver", "quiver-tg", "python3-quiver-api")]
    done = run("lintian", "--allow-root", "--fail-on", "error", *files, check=False, patience_s=300.0)
    assert done.returncode == 0, done.stdout + done.stderr


def test_programs_are_stripped_and_their_symbols_are_a_package_of_their_own(packages: Path) -> None:
    program = SCRATCH / "unpacked"
    run("dpkg-deb", "--extract", str(deb(packages, "quiver")), str(program))
    run("dpkg-deb", "--extract", str(deb(packages, "quiver-dbgsym")), str(program))
    quiverd = str(program / "usr/bin/quiverd")
    notes = run("readelf", "--notes", quiverd).stdout
    build_id = next(line.split()[-1] for line in notes.splitlines() if "Build ID" in line)
    symbols = program / f"usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
    assert ".debug_line" in run("readelf", "--wide", "--sections", str(symbols)).stdout
    assert ".debug_line" not in run("readelf", "--wide", "--sections", quiverd).stdout


def test_the_client_for_python_is_where_python_looks(packages: Path) -> None:
    folder = SCRATCH / "client"
    run("dpkg-deb", "--extract", str(deb(packages, "python3-quiver-api")), str(folder))
    where = folder / "usr/lib/python3/dist-packages"
    code = "import sys; sys.path.insert(0, sys.argv[1]); import quiver_api; print(quiver_api.__file__)"
    assert run("python3", "-I", "-c", code, str(where)).stdout.startswith(str(where))
    assert {"methods.pyi", "py.typed"} < {file.name for file in (where / "quiver_api").iterdir()}


def test_it_installs_with_a_group_and_without_touching_an_interface(installed: CleanRoot) -> None:
    assert installed.is_installed("quiver")
    assert installed.run("getent", "group", "quiver").stdout.startswith("quiver:")
    assert installed.run("dpkg", "--verify", "quiver").stdout == ""
    check = installed.run("quiverd", "--check", "--config", "/etc/quiver/startup.conf")
    assert check.stdout.endswith("the start-up file is in order\n")


def test_check_says_what_the_host_lacks(installed: CleanRoot) -> None:
    bare = installed.run("setpriv", "--bounding-set=-all", "--inh-caps=-all", "quiverd", "--check")
    for name in ("CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_BPF"):
        assert f"host: no {name}, which these need: " in bare.stdout


def test_units_are_in_order(installed: CleanRoot) -> None:
    for unit in ("quiver.service", "quiver-huge-pages.service"):
        done = installed.run("systemd-analyze", "verify", f"/lib/systemd/system/{unit}", check=False)
        said = [line for line in (done.stdout + done.stderr).splitlines() if unit in line]
        assert (done.returncode, said) == (0, [])
    security = installed.run(
        "systemd-analyze", "security", "--offline=yes", "--threshold=40", "--no-pager", "quiver.service",
        check=False,
    )  # fmt: skip
    assert security.returncode == 0, security.stdout


def test_the_service_says_when_it_is_ready_alive_reloading_and_stopping(installed: CleanRoot) -> None:
    with running(installed) as service:
        assert service.watchdogs(2.0) >= 5  # every 200 ms; a busy host may take some
        said = service.reload()
        assert said.index("RELOADING=1") < said.index("READY=1")
        assert any(line.startswith("MONOTONIC_USEC=") for line in said)
        assert service.stop() == 0
        assert "STOPPING=1" in service.messages


def test_the_service_forwards_between_two_hosts_without_the_rights_of_root(installed: CleanRoot) -> None:
    hosts = [Namespace(name) for name in ("alice", "bob")]
    try:
        with running(installed):
            for number, host in enumerate(hosts):
                port = f"eth{number + 1}"
                installed.namespace.ip("link", "add", port, "type", "veth", "peer", "name", "eth0", "netns",
                                       host.name)  # fmt: skip
                installed.namespace.ip("link", "set", port, "up")
                host.ip("link", "set", "eth0", "up")
                host.ip("addr", "add", f"10.0.{number}.2/24", "dev", "eth0")
                host.ip("route", "add", "default", "via", f"10.0.{number}.1")
                for command in (
                    f"create host-interface name {port}",
                    f"set interface ip address host-{port} 10.0.{number}.1/24",
                    f"set interface state host-{port} up",
                ):
                    installed.quiverctl(command)
            assert " 0% packet loss" in hosts[0].run("ping", "-c3", "-i0.2", "10.0.1.2").stdout
            configuration = installed.quiverctl("show running-config")
        installed.path("/etc/quiver/setup.cli").write_text(configuration)
        with running(installed):
            assert " 0% packet loss" in hosts[0].run("ping", "-c3", "-i0.2", "10.0.1.2").stdout
    finally:
        for host in hosts:
            host.remove()


def test_the_group_may_configure_it_and_others_may_not(installed: CleanRoot) -> None:
    installed.run("adduser", "--quiet", "--system", "--ingroup", "quiver", "--no-create-home", "member")
    with running(installed):
        member = installed.run("setpriv", "--reuid", "member", "--regid", "quiver", "--init-groups",
                               "quiverctl", "show", "version")  # fmt: skip
        assert "quiver" in member.stdout.lower()
        other = installed.run("setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups",
                              "quiverctl", "show", "version", check=False)  # fmt: skip
        assert other.returncode == 3
        assert "unix { gid" in other.stderr


def test_completion_asks_the_router(installed: CleanRoot) -> None:
    script = (
        ". /usr/share/bash-completion/bash_completion; . /usr/share/bash-completion/completions/quiverctl; "
        "COMP_WORDS=(quiverctl show interfa); COMP_CWORD=2; _quiverctl; echo ${COMPREPLY[*]}"
    )
    fish = "complete --do-complete 'quiverctl show interfa'"
    with running(installed):
        assert installed.run("bash", "-c", script).stdout.strip() == "interface"
        assert "interface" in installed.run("fish", "-c", fish).stdout
    for shell in ("quiverd", "quiver-tg"):
        installed.run("bash", "-n", f"/usr/share/bash-completion/completions/{shell}")
    for name in ("_quiverctl", "_quiverd", "_quiver-tg"):
        installed.run("zsh", "-n", f"/usr/share/zsh/vendor-completions/{name}")


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("quiverd.8", "--check"),
        ("quiverctl.1", "--socket"),
        ("quiver-tg.1", "self-test"),
        ("quiver-cli.7", "set interface ip address"),
        ("quiver.conf.5", "corelist-workers"),
        ("quiver-counters.7", "show errors"),
    ],
)
def test_a_manual_page_is_read_without_a_warning(installed: CleanRoot, page: str, text: str) -> None:
    file = next(installed.path("/usr/share/man").rglob(f"{page}.gz"))
    need("man")
    shown = run("man", "--warnings", "--local-file", str(file))
    assert text in shown.stdout.replace("\u2010", "-")
    assert shown.stderr == ""


def test_logrotate_turns_the_log(installed: CleanRoot) -> None:
    log = installed.path("/var/log/quiver/quiver.log")
    log.write_text("a line\n")
    installed.run("chown", "quiver:quiver", "/var/log/quiver/quiver.log")
    installed.run("logrotate", "--force", "/etc/logrotate.d/quiver")
    assert log.with_suffix(".log.1").read_text() == "a line\n"
    assert (log.stat().st_uid, log.stat().st_size) == (log.with_suffix(".log.1").stat().st_uid, 0)


def test_huge_pages_are_added_and_never_taken_away(installed: CleanRoot) -> None:
    pages = installed.path("/tmp/nr_hugepages")
    for there, wanted, then in ((3, "64", "64"), (100, "64", "100"), (0, "0", "0")):
        pages.write_text(f"{there}\n")
        installed.run("env", "HUGE_PAGES_FILE=/tmp/nr_hugepages", f"HUGE_PAGES={wanted}",
                      "/usr/lib/quiver/take-huge-pages")  # fmt: skip
        assert pages.read_text().strip() == then
    refused = installed.run("env", "HUGE_PAGES_FILE=/tmp/nr_hugepages", "HUGE_PAGES=many",
                            "/usr/lib/quiver/take-huge-pages", check=False)  # fmt: skip
    assert refused.returncode == 1
    assert "HUGE_PAGES=many" in refused.stderr


def test_an_upgrade_keeps_a_changed_configuration(installed: CleanRoot, newer: Path) -> None:
    config = installed.path("/etc/quiver/startup.conf")
    config.write_text(config.read_text() + "buffers { buffers-per-numa 4096 }\n")
    setup = installed.path("/etc/quiver/setup.cli")
    setup.write_text("create loopback interface instance 7\n")
    installed.install(newer, "--force-confold")
    assert config.read_text().endswith("buffers { buffers-per-numa 4096 }\n")
    assert "a line of the later version" in config.with_suffix(".conf.dpkg-dist").read_text()
    with running(installed):
        assert "loop7" in installed.quiverctl("show", "interface")


def test_a_downgrade_goes_back_and_starts_with_the_same_configuration(
    installed: CleanRoot, packages: Path
) -> None:
    done = installed.install(deb(packages, "quiver"), "--force-confold")
    assert "downgrading quiver" in done.stdout + done.stderr
    with running(installed):
        assert "loop7" in installed.quiverctl("show", "interface")


def test_a_second_router_leaves_the_folder_to_the_first(installed: CleanRoot) -> None:
    with running(installed):
        second = Service(installed)
        assert second.process.wait() == 3  # RestartPreventExitStatus of the unit
        second.stop()


def test_removing_keeps_the_configuration_and_purging_takes_it(installed: CleanRoot) -> None:
    installed.run("dpkg", "--remove", "quiver")
    assert not installed.path("/usr/bin/quiverd").exists()
    assert installed.path("/etc/quiver/startup.conf").exists()
    installed.run("dpkg", "--purge", "quiver")
    left = [name for name in ("/etc/quiver", "/var/lib/quiver", "/var/log/quiver", "/etc/default/quiver",
                              "/etc/logrotate.d/quiver") if installed.path(name).exists()]  # fmt: skip
    shutil.rmtree(installed.path("/run/quiver"), ignore_errors=True)
    assert left == []
    assert installed.run("getent", "group", "quiver").stdout.startswith("quiver:")
