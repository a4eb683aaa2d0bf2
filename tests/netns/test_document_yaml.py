"""A configuration as a YAML document on the real router, and files of vppcfg made into documents.

Documents are applied while hosts talk through the router, exported as they were, and valid by their schema.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from peers.network import answers, namespaces, reach
from peers.router import Router, binary

#: Echo requests while a document is applied.
PINGS = 100

DOCUMENT = """\
# Two links of an office.

interfaces:
  tap0:
    addresses: [10.1.0.1/24]   # the desks
    state: up
    tap: {host-if-name: lan, host-ns: {desks}, host-ip4-addr: 10.1.0.2/24}
  tap1:
    addresses: [10.2.0.1/24, "2001:db8:2::1/64"]
    state: up
    tap: {host-if-name: lan, host-ns: {servers}, host-ip4-addr: 10.2.0.2/24}

routes:
  192.0.2.0/24:
    via:
      - 10.1.0.2
      - {next-hop: 10.2.0.2, weight: 3}
"""


def schema() -> Any:
    done = subprocess.run(
        [binary("quiverd"), "--reference", "schema"], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


def applied(router: Router, file: Path, document: str) -> None:
    file.write_text(document)
    answer = router.answer("apply", str(file))
    assert answer.code == 0, answer.err


def test_a_document_makes_a_router_that_forwards_and_exports_the_same(tmp_path: Path) -> None:
    with namespaces("router", "desks", "servers") as (own, desks, servers), Router(own) as router:
        document = DOCUMENT.replace("{desks}", desks.name).replace("{servers}", servers.name)
        file = tmp_path / "router.yaml"
        file.write_text(document)
        assert "has no mistakes" in router.answer("check", str(file)).out
        applied(router, file, document)
        desks.ip("route", "add", "10.2.0.0/24", "via", "10.1.0.1")
        servers.ip("route", "add", "10.1.0.0/24", "via", "10.2.0.1")
        reach(desks, "10.2.0.2")
        exported = router.answer("export", "--format", "yaml").out
        assert exported.startswith("# Two links of an office.\n\n")
        assert "addresses: [10.1.0.1/24] # the desks\n" in exported
        # The same document, and what was exported, are no change.
        assert router.answer("diff", str(file)).out == ""
        applied(router, file, exported)
        assert router.answer("export", "--format", "yaml").out == exported
        # What changes is what differs; the other host's traffic does not notice.
        talking = desks.start("ping", "-i", "0.02", "-c", str(PINGS), "10.2.0.2")
        talking.wait_for_text("icmp_seq=5 ")
        applied(router, file, exported.replace("    state: up\n", "    mtu: 1400\n    state: up\n", 1))
        talking.wait()
        assert answers(talking.text()) == PINGS
        assert router.interface("tap0")["mtu_bytes"] == 1400
        validator = Draft202012Validator(schema())
        tree = json.loads(router.ctl("show running-config yaml json"))["document"]
        assert [error.message for error in validator.iter_errors(tree)] == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"interface": {}},
        {"interfaces": {"loop0": {"mtu": 70000}}},
        {"interfaces": {"loop0": {"mtu": "large"}}},
        {"interfaces": {"loop0": {"addresses": "10.0.0.1"}}},
        {"interfaces": {"loop0": {"loopback": {"mac": "0:1"}}}},
        {"routes": {"10.0.0.0": {"via": "drop"}}},
        {"routes": {"10.0.0.0/8": {"via": {"weight": 0}}}},
    ],
)
def test_the_schema_refuses_what_is_wrong(wrong: Any) -> None:
    Draft202012Validator.check_schema(schema())
    assert not Draft202012Validator(schema()).is_valid(wrong)


def test_a_file_of_vppcfg_becomes_a_document_that_the_router_takes(tmp_path: Path) -> None:
    there = tmp_path / "there.yaml"
    there.write_text(
        "loopbacks:\n  loop1: {mtu: 2000, addresses: [10.9.0.1/24]}\n"
        "bridgedomains:\n  bd10: {bvi: loop1, interfaces: [vxlan_tunnel0], settings: {learn: false}}\n"
        "vxlan_tunnels:\n  vxlan_tunnel0: {local: 192.0.2.1, remote: 192.0.2.2, vni: 100}\n"
        "acls:\n  web: {terms: [{action: permit}]}\n"
    )
    with namespaces("router") as (own,), Router(own) as router:
        imported = router.answer("import", "vppcfg", str(there))
        assert imported.code == 0
        assert f"{there}:8:3: web: access lists are not imported" in imported.err
        file = tmp_path / "here.yaml"
        applied(router, file, imported.out)
        assert "bvi" in router.ctl("show running-config")
        assert router.answer("diff", str(file)).out == ""
