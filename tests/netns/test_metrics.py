"""What Prometheus reads of the router, judged by promtool, scraped by Prometheus, and attacked."""

from __future__ import annotations

import http.client
import json
import re
import socket
import subprocess
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from peers.namespace import Namespace
from peers.network import Network, namespaces, network, ping_all
from peers.processes import Process, need, run, wait_until
from peers.router import Router

ROOT = Path(__file__).resolve().parents[2]
DASHBOARD = ROOT / "dashboards" / "grafana" / "quiver.json"
PROMETHEUS = ROOT / "dashboards" / "prometheus"
PORT = 9482
REQUEST = b"GET /metrics HTTP/1.1\r\nHost: router\r\n\r\n"
OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
TEXT = "text/plain; version=0.0.4; charset=utf-8"
#: A document is shared by clients that ask within this time.
SHARED_S = 0.1
INTERFACES = 1000


def connect(namespace: Namespace, port: int = PORT, patience_s: float = 20.0) -> socket.socket:
    """A connection to a server in a namespace."""
    made = namespace.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.settimeout(patience_s)
    made.connect(("127.0.0.1", port))
    return made


@dataclass(frozen=True)
class Answer:
    """An answer over HTTP."""

    status: int
    kind: str
    body: str


def get(
    namespace: Namespace, path: str = "/metrics", *, port: int = PORT, accept: str = "", method: str = "GET"
) -> Answer:
    """Ask a server in a namespace."""
    client = http.client.HTTPConnection("127.0.0.1", port)
    client.sock = connect(namespace, port)
    try:
        client.request(method, path, headers={"Accept": accept} if accept else {})
        answer = client.getresponse()
        return Answer(answer.status, answer.headers.get("Content-Type", ""), answer.read().decode())
    finally:
        client.close()


def fresh(namespace: Namespace, accept: str = "") -> str:
    """A document that is written now."""
    time.sleep(2 * SHARED_S)
    answer = get(namespace, accept=accept)
    assert answer.status == 200
    return answer.body


def sample(text: str, name: str) -> float:
    """The value of the one sample of this name and labels."""
    found = re.findall(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
    assert len(found) == 1, f"{name}: {found}"
    return float(found[0])


def lint(text: str) -> None:
    """`promtool check metrics` has nothing to say."""
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, text=True, capture_output=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def namespace_of(made: Network) -> Namespace:
    """Where the router is."""
    assert made.router.namespace is not None
    return made.router.namespace


@pytest.fixture(scope="module")
def scraped() -> Iterator[Network]:
    """A router between two hosts that serves Prometheus, with something in every table."""
    need("prometheus", "promtool")
    with network() as made:
        made.meet()
        left, right = made.left.interface, made.right.interface
        made.router.configure(
            "\n".join(
                [
                    "prom enable",
                    f"vrrp vr add {left} vr_id 7 priority 200 interval 50 {made.left.router_ip4[:-1]}77",
                    f"vrrp proto start {left} vr_id 7",
                    f"bfd udp session add interface {right} local-addr {made.right.router_ip4} "
                    f"peer-addr {made.right.ip4} desired-min-tx 100000 required-min-rx 100000 "
                    "detect-mult 3",
                    f"lcp create {right} host-if twin",
                    "create bridge-domain 13",
                ]
            )
        )
        yield made


def test_promtool_has_nothing_to_say(scraped: Network) -> None:
    namespace = namespace_of(scraped)
    ping_all(scraped.left.host, scraped.right.ip4)
    lint(fresh(namespace))
    scraped.router.ctl("prom enable all-stats")
    try:
        everything = fresh(namespace)
        lint(everything)
        assert everything.count("\n") > 2000, "nodes that never ran and reasons never given"
    finally:
        scraped.router.ctl("prom enable")


def test_counters_are_those_of_the_commands(scraped: Network) -> None:
    namespace, router, left = namespace_of(scraped), scraped.router, scraped.left.interface
    before = router.errors()
    # Nobody has this address, and no route leads there.
    scraped.left.host.run("ping", "-n", "-c", "7", "-i", "0.05", "-W", "0.2", "203.0.113.9", check=False)
    dropped = {key: count for key, count in router.counted_since(before).items() if count >= 7}
    assert dropped
    text = fresh(namespace)
    counters = router.counters(left)
    name = "quiver_interface_rx_packets_total"
    assert sample(text, f'{name}{{interface="{left}"}}') <= counters["rx_packets"]
    assert sample(text, f'{name}{{interface="{left}"}}') >= 7
    (node, reason), _ = next(iter(dropped.items()))
    # An event is no drop.
    families = {"err": "error", "quiver_drops_total": "reason", "quiver_events_total": "event"}
    names = [f'{family}{{node="{node}",{label}="{reason}"}}' for family, label in families.items()]
    there = [name for name in names if name in text]
    assert len(there) == 2
    for name in there:
        assert 7 <= sample(text, name) <= router.errors()[node, reason]
    assert sample(text, 'quiver_routes{family="ip4"}') > 0
    assert sample(text, 'quiver_buffers{pool="default"}') == router.buffers()["total"]


def test_a_clear_does_not_take_an_interfaces_counters_back(scraped: Network) -> None:
    namespace, left = namespace_of(scraped), scraped.left.interface
    name = f'quiver_interface_rx_packets_total{{interface="{left}"}}'
    before = sample(fresh(namespace), name)
    scraped.router.ctl("clear interfaces")
    assert sample(fresh(namespace), name) >= before > 0


def test_an_interface_that_takes_over_a_number_counts_from_0(scraped: Network) -> None:
    router, namespace = scraped.router, namespace_of(scraped)
    with_traffic = router.ctl("create loopback interface").strip()
    router.configure(
        f"set interface state {with_traffic} up\nset interface ip address {with_traffic} 10.9.0.1/24"
    )
    scraped.left.host.run("ping", "-n", "-c", "5", "-i", "0.02", "-W", "0.2", "10.9.0.7", check=False)
    router.ctl(f"delete loopback interface intfc {with_traffic}")
    again = router.ctl("create loopback interface").strip()
    try:
        text = fresh(namespace)
        assert sample(text, f'quiver_interface_tx_packets_total{{interface="{again}"}}') == 0
    finally:
        router.ctl(f"delete loopback interface intfc {again}")


def test_each_scraper_has_the_form_that_it_prefers(scraped: Network) -> None:
    namespace = namespace_of(scraped)
    plain = get(namespace)
    assert plain.kind == TEXT
    assert "# EOF" not in plain.body
    opened = get(namespace, accept="application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
    assert opened.kind == OPEN_METRICS
    assert opened.body.endswith("# EOF\n")
    assert "# TYPE quiver_drops counter" in opened.body
    families = re.findall(r"^# TYPE (\S+)", opened.body, re.MULTILINE)
    assert len(families) == len(set(families)), "a family comes once"
    assert get(namespace, method="HEAD").body == ""


def test_names_of_one_kind_can_be_left_out(scraped: Network) -> None:
    namespace, router = namespace_of(scraped), scraped.router
    try:
        router.ctl("prom enable names vpp")
        text = fresh(namespace)
        assert "interfaces_rx_packets{" in text
        assert "quiver_" not in text
        assert "prom enable names vpp" in router.ctl("show running-config")
        router.ctl("prom enable names quiver")
        assert not re.search("^(interfaces|nodes|err|sys|mem)", fresh(namespace), re.MULTILINE)
    finally:
        router.ctl("prom enable")


def test_what_cannot_be_listened_on_is_refused_and_nothing_changes(scraped: Network) -> None:
    router = scraped.router
    assert "192.0.2.99:9482 cannot be listened on" in router.refused("prom enable address 192.0.2.99")
    assert router.json("show prom")["address"] == "127.0.0.1:9482/metrics"
    assert get(namespace_of(scraped)).status == 200
    router.ctl("prom disable")
    with pytest.raises(OSError, match="refused"):
        connect(namespace_of(scraped))
    assert "not served" in router.refused("prom disable")
    router.ctl("prom enable")


@pytest.mark.parametrize(
    ("section", "port", "command"),
    [
        ("prom { }", PORT, "prom enable"),
        ("prom { names quiver port 9555 all-stats }", 9555, "prom enable port 9555 all-stats names quiver"),
    ],
)
def test_the_start_up_file_lets_the_router_serve(section: str, port: int, command: str) -> None:
    with namespaces("router") as (own,), Router(own, sections=section) as router:
        assert "quiver_uptime_seconds" in get(own, port=port).body
        assert command in router.ctl("show running-config").splitlines()


# Prometheus itself.


class Prometheus:
    """A Prometheus in the router's namespace that scrapes it every second."""

    PORT = 9090

    def __init__(self, namespace: Namespace, folder: Path) -> None:
        self.namespace = namespace
        config = (PROMETHEUS / "prometheus.yml").read_text(encoding="utf-8")
        config = config.replace("15s", "1s").replace("alerts.yml", str(PROMETHEUS / "alerts.yml"))
        place = folder / "prometheus.yml"
        place.write_text(config, encoding="utf-8")
        self.process: Process = namespace.start(
            "prometheus",
            f"--config.file={place}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.PORT}",
            "--log.level=warn",
        )
        wait_until("Prometheus is ready", self._is_ready, 60.0)

    def _is_ready(self) -> bool:
        assert self.process.is_alive, self.process.text()
        try:
            return get(self.namespace, "/-/ready", port=self.PORT).status == 200
        except OSError:
            return False

    def ask(self, path: str, **words: object) -> Any:
        """The data of an answer of its interface."""
        answer = get(self.namespace, f"/api/v1/{path}?{urllib.parse.urlencode(words)}", port=self.PORT)
        told = json.loads(answer.body)
        assert told["status"] == "success", told
        return told["data"]

    def target(self) -> dict[str, Any]:
        """How the scrape of the router goes; empty until Prometheus knows of it."""
        found = self.ask("targets")["activeTargets"]
        return dict(found[0]) if found else {}

    def value(self, query: str) -> list[Any]:
        """The samples of a query now."""
        found: list[Any] = self.ask("query", query=query)["result"]
        return found


def panels() -> list[tuple[str, list[tuple[str, str]]]]:
    """The dashboard's panels: titles, queries and legends, with its variables filled in."""
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    filled = {"$__rate_interval": "5s", "$instance": ".*"}
    made = []
    for panel in board["panels"]:
        queries = []
        for target in panel.get("targets", []):
            query = target["expr"]
            for variable, value in filled.items():
                query = query.replace(variable, value)
            queries.append((query, target["legendFormat"]))
        if queries:
            made.append((panel["title"], queries))
    return made


#: Sends UDP to an address for so many seconds.
SENDER = """
import socket, sys, time
to, seconds = sys.argv[1], float(sys.argv[2])
made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end, number = time.monotonic() + seconds, 0
while time.monotonic() < end:
    for _ in range(20 + 15 * (int(end - time.monotonic()) % 4)):
        made.sendto(bytes(200), (to, 9)); number += 1
    time.sleep(0.01)
"""


def test_prometheus_has_data_for_every_panel(scraped: Network, tmp_path: Path) -> None:
    namespace = namespace_of(scraped)
    prometheus = Prometheus(namespace, tmp_path)
    begun = time.time()
    seconds = 24
    for side, other in ((scraped.left, scraped.right), (scraped.right, scraped.left)):
        side.host.start("python3", "-c", SENDER, other.ip4, str(seconds))
    scraped.left.host.start("python3", "-c", SENDER, "203.0.113.9", str(seconds))
    wait_until("Prometheus has scraped", lambda: prometheus.target().get("health") == "up", 60.0)
    # Routes that come and go as those of a daemon do.
    for number in range(seconds // 2):
        routes = "\n".join(f"route add 10.{number}.{third}.0/24 dev twin" for third in range(200))
        namespace.run("ip", "-batch", "-", stdin=routes, check=False)
        time.sleep(2)
    assert prometheus.target()["lastError"] == ""
    missing = [
        f"{title}: {query}"
        for title, queries in panels()
        for query, _ in queries
        if not prometheus.value(f"last_over_time(({query})[20s:1s])")
    ]
    assert missing == []
    assert prometheus.value("up == 1")
    rules = prometheus.ask("rules")["groups"][0]["rules"]
    assert [rule["name"] for rule in rules if rule["health"] != "ok"] == []
    draw(prometheus, begun)


def draw(prometheus: Prometheus, begun: float) -> None:
    """Draw the panels as Prometheus answers their queries: `out/watching.png`."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    described = {panel["title"]: panel for panel in board["panels"]}
    all_panels = panels()
    rows = -(-len(all_panels) // 3)
    figure, axes = pyplot.subplots(rows, 3, figsize=(18, 2.9 * rows), layout="constrained")
    for axis, (title, queries) in zip(axes.flat, all_panels, strict=False):
        lines = 0
        for query, legend in queries:
            found = prometheus.ask("query_range", query=query, start=begun, end=time.time(), step="1s")
            for series in found["result"]:
                label = legend
                for name in re.findall(r"{{(\w+)}}", legend):
                    label = label.replace("{{" + name + "}}", series["metric"].get(name, ""))
                points = [(float(at) - begun, float(value)) for at, value in series["values"]]
                axis.plot(*zip(*points, strict=True), linewidth=1, label=label if lines < 8 else None)
                lines += 1
        axis.set_title(f"{title} [{described[title]['fieldConfig']['defaults']['unit']}]", fontsize=9)
        scale = described[title]["fieldConfig"]["defaults"]["custom"]["scaleDistribution"]["type"]
        axis.set_yscale("log" if scale == "log" else "linear")
        axis.tick_params(labelsize=7)
        axis.legend(fontsize=5, loc="best", framealpha=0.4)
    for axis in axes.flat[len(all_panels) :]:
        axis.set_axis_off()
    out = ROOT / "out"
    out.mkdir(exist_ok=True)
    figure.savefig(out / "watching.png", dpi=60)
    pyplot.close(figure)


def test_the_alerts_do_what_they_say() -> None:
    need("promtool")
    run("promtool", "check", "rules", str(PROMETHEUS / "alerts.yml"))
    run("promtool", "test", "rules", str(PROMETHEUS / "alerts_test.yml"))


def test_alerts_and_panels_name_families_that_there_are(scraped: Network) -> None:
    scraped.router.ctl("prom enable all-stats")
    try:
        text = fresh(namespace_of(scraped))
    finally:
        scraped.router.ctl("prom enable")
    there = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    used = set()
    for words in (
        DASHBOARD.read_text(encoding="utf-8"),
        (PROMETHEUS / "alerts.yml").read_text(encoding="utf-8"),
    ):
        used |= set(re.findall(r"\b(?:quiver|process)_[a-z0-9_]+", words))
    unknown = {name for name in used if name not in there and name.removesuffix("_bucket") not in there}
    assert unknown == set()


# Clients that mean harm.


def refusal(namespace: Namespace, request: bytes) -> bytes:
    """The first line that the server answers."""
    with connect(namespace) as client:
        client.sendall(request)
        return client.recv(4096).split(b"\r\n")[0]


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"POST /metrics HTTP/1.1\r\nHost: r\r\n\r\n", b"405"),
        (b"CONNECT r:1 HTTP/1.1\r\nHost: r\r\n\r\n", b"405"),
        (b"GET /../etc/passwd HTTP/1.1\r\nHost: r\r\n\r\n", b"404"),
        (b"GET /metrics HTTP/1.1\r\nHost: r\r\nContent-Length: 9\r\n\r\nsmuggled!", b"400"),
        (b"GET /metrics HTTP/1.1\r\nHost: r\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"400"),
        (b"GET /metrics HTTP/3.0\r\n\r\n", b"505"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"400"),
        (b"GET /metrics HTTP/1.1\r\nHost: r\r\n" + b"A: b\r\n" * 10_000 + b"\r\n", b"431"),
        (b"GET /" + b"m" * 100_000, b"431"),
    ],
)
def test_a_request_that_is_none_is_refused(scraped: Network, request_bytes: bytes, status: bytes) -> None:
    assert refusal(namespace_of(scraped), request_bytes).split()[1] == status
    assert get(namespace_of(scraped)).status == 200


def test_requests_one_behind_the_other_are_all_answered(scraped: Network) -> None:
    with connect(namespace_of(scraped)) as client:
        client.sendall(REQUEST * 50 + REQUEST.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        text = b""
        while more := client.recv(1 << 20):
            text += more
    assert text.count(b"HTTP/1.1 200 OK") == 51


def test_200_clients_that_harm_do_not_keep_a_scraper_away(scraped: Network) -> None:
    namespace, router = namespace_of(scraped), scraped.router
    hostile = []
    for number in range(200):
        client = connect(namespace)
        hostile.append(client)
        # Half a request, nothing at all, or requests whose answers are never read.
        client.setblocking(False)
        with suppress(OSError):  # turned away already
            client.send([b"GET /metr", b"", REQUEST * 20][number % 3])
    slowest, refused = 0.0, 0
    end = time.monotonic() + 12
    while time.monotonic() < end:
        begun = time.monotonic()
        try:
            status = get(namespace).status
        except OSError:
            status = 503
        refused += status != 200
        slowest = max(slowest, time.monotonic() - begun)
        router.ctl("show version")
        ping_all(scraped.left.host, scraped.right.ip4)
        time.sleep(0.5)
    told = router.json("show prom")
    for client in hostile:
        client.close()
    print(f"\n200 hostile clients: slowest scrape {slowest * 1e3:.0f} ms, {refused} refused; {told}")
    assert refused <= 4, "the hostile ones give way within seconds"
    assert told["turned_away"] >= 100
    wait_until("all are gone", lambda: router.json("show prom")["clients"] <= 1)
    router.check_sound()


def test_a_request_that_does_not_end_is_ended(scraped: Network) -> None:
    with connect(namespace_of(scraped)) as client:
        begun = time.monotonic()
        said = b""
        try:
            for byte in REQUEST[:-2] + b"A: " + b"x" * 100:
                client.send(bytes([byte]))
                client.settimeout(0.25)
                try:
                    said += client.recv(4096)
                    break
                except TimeoutError:
                    continue
        except OSError:
            pass
        assert 9 < time.monotonic() - begun < 20
        assert said.startswith(b"HTTP/1.1 408") or said == b""


# Figures.


def test_a_thousand_interfaces_are_scraped(scraped: Network) -> None:
    router, namespace = scraped.router, namespace_of(scraped)
    router.configure("\n".join(["create loopback interface"] * INTERFACES))
    times, told = [], []
    for accept in ["", "application/openmetrics-text"] * 5:
        time.sleep(2 * SHARED_S)
        begun = time.perf_counter()
        text = get(namespace, accept=accept).body
        times.append(time.perf_counter() - begun)
        told.append(router.json("show prom"))
    assert len(re.findall(r"^quiver_interface_up\{", text, re.MULTILINE)) >= INTERFACES
    names = [
        match[1] for match in re.finditer(r'^quiver_interface_up\{interface="(loop\d+)"', text, re.MULTILINE)
    ]
    middle = sorted(told, key=lambda one: one["elapsed_ms"])[len(told) // 2]
    print(
        f"\n{len(names)} loopbacks: {middle['samples']} samples, {middle['bytes'] / 1e6:.2f} MB, "
        f"{middle['elapsed_ms']:.1f} ms ({middle['control_thread_ms']:.1f} ms of the control thread, longest "
        f"turn {middle['longest_turn_ms']:.2f} ms); with HTTP {sorted(times)[len(times) // 2] * 1e3:.1f} ms"
    )
    assert max(one["longest_turn_ms"] for one in told) < 100, "written in slices"
    lint(fresh(namespace))
    router.configure("\n".join(f"delete loopback interface intfc {name}" for name in names))
    # What is gone has no samples.
    assert not re.search(r'interface="loop', fresh(namespace))


@pytest.mark.alone
def test_a_scrape_takes_little_of_a_worker(scraped: Network) -> None:
    """Print how many packets a worker moves in a second that is scraped ten times, and in one that is not."""
    router, namespace = scraped.router, namespace_of(scraped)
    router.configure("\n".join(["create loopback interface"] * INTERFACES))
    router.configure(
        "create packet-generator interface pg0\nset interface state pg0 up\n"
        "packet-generator new { name full interface pg0 node ip4-input size 64-64 "
        "data { UDP: 192.0.2.1 -> 203.0.113.7 UDP: 1 -> 2 incrementing 8 } }\n"
        "packet-generator enable-stream full"
    )

    def moved() -> float:
        return sample(fresh(namespace), 'quiver_interface_rx_packets_total{interface="pg0"}')

    rates: dict[int, list[float]] = {0: [], 10: []}
    for turn in range(16):
        scrapes = 10 * (turn % 2)
        before, begun = moved(), time.perf_counter()
        for _ in range(scrapes):
            get(namespace)
            time.sleep(0.1)
        time.sleep(max(0.0, 1.2 - (time.perf_counter() - begun)))
        rates[scrapes].append((moved() - before) / (time.perf_counter() - begun))
    router.ctl("packet-generator disable-stream full")
    middles = {scrapes: sorted(all_rates)[len(all_rates) // 2] for scrapes, all_rates in rates.items()}
    assert min(middles.values()) > 0
    lost = 1 - middles[10] / middles[0]
    print(
        f"\n{middles[0] / 1e6:.2f} Mpps without scrapes, {middles[10] / 1e6:.2f} with ten a second: "
        f"{lost:.2%} lost"
    )
