"""Models: the seed's own figures come out, parameters that were put in are found, and errors are told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from quiver_lab.forwarders import NodeClocks
from quiver_lab.host.facts import cache_levels
from quiver_lab.models.cache import (
    IP6_FIB_ENTRY_BYTES,
    L2_FIB_ENTRY_BYTES,
    CacheLevel,
    cache_limits,
    fit_table_sizes,
)
from quiver_lab.models.clock import fit_clock
from quiver_lab.models.cycles import predict_throughput
from quiver_lab.models.fit import ModelError
from quiver_lab.models.latency import THESIS, average_latency_ns, fit_latency
from quiver_lab.models.lookup import fit_lookup, share_of_nodes
from quiver_lab.models.workers import fit_workers, speedups

CACHES = (CacheLevel("L3", 8 << 20), CacheLevel("L1", 32 << 10), CacheLevel("L2", 256 << 10))
TABLE_6_1 = {
    "xconnect": (7.34, 12.90, 13.20),
    "l2 bridge no features": (6.69, 11.84, 12.18),
    "IPv4 1 route": (6.03, 10.98, 11.28),
    "l2 bridge mac-learn, mac-age": (6.05, 10.84, 11.09),
    "IPv6 1 route": (5.38, 9.87, 10.14),
    "VXLAN encap": (4.48, 8.15, 8.21),
}


@pytest.mark.parametrize("scenario", TABLE_6_1)
def test_the_clock_model_finds_nine_tenths_in_the_thesis_table(scenario: str) -> None:
    points = [(ghz * 1e9, mpps * 1e6) for ghz, mpps in zip((1.6, 3.1, 3.2), TABLE_6_1[scenario], strict=True)]
    fit = fit_clock(points)
    assert fit.parameter("k") == pytest.approx(0.9, abs=0.07)
    assert fit.worst_error < 0.015
    assert fit.r_squared > 0.99


def test_workers_scale_until_the_line_is_full() -> None:
    measured = [(1, 5.0e6), (2, 9.9e6), (3, 15.1e6), (4, 20.0e6), (5, 20.0e6)]
    fit = fit_workers(measured, limit_pps=20e6)
    assert fit.parameter("w_t") == pytest.approx(5e6, rel=0.02)
    assert fit.predicted[-1] == 20e6
    assert fit.worst_error < 0.02
    gained = speedups(measured)
    assert gained[1].factor == pytest.approx(1.98)
    assert gained[4].efficiency == pytest.approx(0.8)
    with pytest.raises(ModelError, match="at the limit"):
        fit_workers([(2, 20e6)], limit_pps=20e6)


def test_cache_marks_are_those_of_the_thesis() -> None:
    marks = cache_limits(CACHES, L2_FIB_ENTRY_BYTES)
    assert [(mark.cache, mark.entries) for mark in marks] == [("L1", 2048), ("L2", 16_384), ("L3", 524_288)]
    assert cache_limits(CACHES, IP6_FIB_ENTRY_BYTES)[-1].entries == pytest.approx(419_430.4)


def test_costs_of_missing_each_cache_are_found_in_a_sweep() -> None:
    sizes = [2.0**power for power in range(0, 24)]
    costs = {"L1": 12.0, "L2": 30.0, "L3": 150.0}
    marks = {mark.cache: mark.entries for mark in cache_limits(CACHES, 16.0)}

    def clocks(n: float) -> float:
        return 200.0 + sum(cost * max(0.0, 1.0 - marks[name] / n) for name, cost in costs.items())

    chance = np.random.default_rng(5)
    measured = [(n, 3e9 / clocks(n) * (1.0 + float(chance.normal(0, 0.002)))) for n in sizes]
    fit = fit_table_sizes(measured, CACHES, 16.0, 3e9)
    assert fit.parameter("c_0") == pytest.approx(200.0, rel=0.01)
    for name, cost in costs.items():
        assert fit.parameter(f"c_{name}") == pytest.approx(cost, abs=4.0)
    assert fit.logarithmic_x
    assert len(fit.curve.x) == len(fit.curve.y) > 100


def test_throughput_falls_by_the_share_of_the_look_up() -> None:
    fit = fit_lookup([(0.1, 9.05e6), (0.25, 7.5e6), (0.4, 5.98e6)])
    assert fit.parameter("t_max") == pytest.approx(1e7, rel=0.01)
    assert fit.worst_error < 0.01
    with pytest.raises(ModelError, match="between 0 and 1"):
        fit_lookup([(1.0, 5.0)])


def test_the_latency_curve_of_the_thesis_is_found_again() -> None:
    t_max = 11.3e6
    loads = np.linspace(0.05, 0.99, 14) * t_max
    exact = average_latency_ns(loads, t_max, *THESIS)
    assert exact[0] == pytest.approx(4_400.0, rel=0.2)  # the thesis: about 5 µs for low packet rates
    chance = np.random.default_rng(6)
    noisy = exact * (1.0 + chance.normal(0.0, 0.01, loads.size))
    fit = fit_latency(
        [(float(x), float(y)) for x, y in zip(loads, noisy, strict=True)] + [(t_max, 6e5)], t_max
    )
    assert fit.parameter("A") == pytest.approx(59_000.0, rel=0.05)
    assert fit.parameter("B") == pytest.approx(62_000.0, rel=0.05)
    assert fit.parameter("C") == pytest.approx(8.0, rel=0.1)
    assert max(fit.measured.x) < t_max


def test_points_that_cannot_be_fitted_are_refused_with_a_reason() -> None:
    with pytest.raises(ModelError, match="at 2 different places"):
        fit_clock([(1e9, 5.0), (1e9, 6.0)])
    with pytest.raises(ModelError, match="leave out what failed"):
        fit_workers([(1, 0.0)])
    with pytest.raises(ModelError):
        cache_limits(CACHES, 0.0)


# Telemetry of IPv6 with 200,000 routes over memif, as `show runtime` printed it; 19.31 Mpps were received.
IP6_200K = [
    NodeClocks("ip6-lookup", 41_590, 10_641_645, 82.286, 255.87),
    NodeClocks("memif-input", 726_289, 10_641_645, 17.8, 14.65),
    NodeClocks("memif1/0-tx", 20_795, 5_319_610, 16.985, 255.81),
    NodeClocks("memif1/1-tx", 20_795, 5_322_035, 16.776, 255.93),
    NodeClocks("ip6-rewrite", 41_590, 10_641_645, 8.858, 255.87),
    NodeClocks("ethernet-input", 41_590, 10_641_645, 4.381, 255.87),
    NodeClocks("ip6-input", 41_590, 10_641_645, 4.167, 255.87),
    NodeClocks("memif1/0-output", 20_795, 5_319_610, 1.168, 255.81),
    NodeClocks("memif1/1-output", 20_795, 5_322_035, 1.182, 255.93),
]


def test_clocks_per_node_predict_what_was_measured_and_name_the_bottleneck() -> None:
    found = predict_throughput(IP6_200K, 2.6e9, 1, 19.31e6)
    assert found.bottleneck == "ip6-lookup"
    assert found.error == pytest.approx(-0.007, abs=0.01)
    assert found.busy == pytest.approx(1.0, abs=0.02)
    assert found.nodes[0].share == pytest.approx(0.607, abs=0.01)
    assert found.nodes[0].speedup_if_free == pytest.approx(1.0 / (1.0 - found.nodes[0].share))
    assert "the core is the limit" in found.verdict
    assert predict_throughput(IP6_200K, 2.6e9, 2).predicted_pps == pytest.approx(2 * found.predicted_pps)
    assert share_of_nodes(IP6_200K, {"ip6-lookup"}) == pytest.approx(found.nodes[0].share)


def test_a_measurement_far_from_the_prediction_says_what_that_means() -> None:
    bound = predict_throughput(IP6_200K, 2.6e9, 1, 9.6e6)
    assert bound.error == pytest.approx(1.0, abs=0.02)
    assert "needed only 50% of their clocks" in bound.verdict
    assert "not of the same traffic" in predict_throughput(IP6_200K, 2.6e9, 1, 40e6).verdict
    assert predict_throughput(IP6_200K, 2.6e9, 1).error is None
    with pytest.raises(ModelError, match="no clocks"):
        predict_throughput([], 2.6e9, 1)


def test_caches_are_read_from_the_kernel(tmp_path: Path) -> None:
    for index, (level, kind, size) in enumerate(
        [
            ("1", "Data", "48K"),
            ("1", "Instruction", "32K"),
            ("2", "Unified", "1024K"),
            ("3", "Unified", "32M"),
        ]
    ):
        folder = tmp_path / "cpu0" / "cache" / f"index{index}"
        folder.mkdir(parents=True)
        for name, text in (("level", level), ("type", kind), ("size", size)):
            (folder / name).write_text(text + "\n")
    found = [(cache.name, cache.size_bytes) for cache in cache_levels(root=tmp_path)]
    assert found == [("L1", 48 << 10), ("L2", 1 << 20), ("L3", 32 << 20)]
    assert cache_levels(root=tmp_path / "none") == ()
