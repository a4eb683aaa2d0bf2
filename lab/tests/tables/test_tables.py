"""Generated tables: right lengths, no duplicates, allowed space; destinations lead where they should."""

from __future__ import annotations

import ipaddress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiver_lab.tables.ip4 import generate_ip4, ip4_destinations, ip4_texts
from quiver_lab.tables.ip6 import generate_ip6, ip6_destinations, ip6_texts
from quiver_lab.tables.lengths import IP4_LENGTHS, IP6_LENGTHS, scaled
from quiver_lab.tables.popularity import Demand, draw_entries

Ip = ipaddress.IPv4Network | ipaddress.IPv6Network


def longest_match_ports(networks: dict[Ip, int], addresses: list[str]) -> set[int]:
    """A naive longest prefix match; the port of each address."""
    by_length: dict[int, dict[int, int]] = {}
    for network, port in networks.items():
        by_length.setdefault(network.prefixlen, {})[int(network.network_address)] = port
    ports = set()
    for text in addresses:
        address = ipaddress.ip_address(text)
        for length in sorted(by_length, reverse=True):
            shift = address.max_prefixlen - length
            if (port := by_length[length].get(int(address) >> shift << shift)) is not None:
                ports.add(port)
                break
        else:
            ports.add(-1)
    return ports


@given(total=st.integers(1, 2_000_000))
def test_a_scaled_distribution_has_exactly_the_total(total: int) -> None:
    for counts in (IP4_LENGTHS, IP6_LENGTHS):
        result = scaled(counts, total)
        assert sum(result.values()) == total
        assert all(n >= 0 for n in result.values())


def test_a_million_ip4_prefixes_have_the_internets_lengths() -> None:
    table = generate_ip4(1_000_000, 32, 1)
    assert len(table) == 1_000_000
    keys = table.addresses.astype(np.uint64) << np.uint64(8) | table.lengths.astype(np.uint64)
    assert len(np.unique(keys)) == 1_000_000
    whole = sum(IP4_LENGTHS.values())
    for length, count in IP4_LENGTHS.items():
        share = np.count_nonzero(table.lengths == length) / 1_000_000
        assert share == pytest.approx(count / whole, abs=2e-6), length
    assert not (table.addresses & ((1 << (32 - table.lengths.astype(np.uint64))) - 1).astype(np.uint32)).any()
    assert 0.45 < table.ports.mean() < 0.55
    assert set(np.unique(table.next_hops)) == set(range(32))


def test_a_small_ip4_table_stays_in_unicast_space() -> None:
    table = generate_ip4(20_000, 4, 7)
    blocks = "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 192.168.0.0/16 198.18.0.0/15 224.0.0.0/3"
    special = [ipaddress.ip_network(block) for block in blocks.split()]
    for text, length in zip(ip4_texts(table.addresses), table.lengths.tolist(), strict=True):
        network = ipaddress.ip_network(f"{text}/{length}")
        assert not any(network.overlaps(block) for block in special)


@pytest.mark.parametrize("order", ["seq", "rnd", "zipf"])
@pytest.mark.parametrize("port", [0, 1])
def test_ip4_destinations_lead_to_their_port_by_longest_match(order: str, port: int) -> None:
    table = generate_ip4(20_000, 4, 3)
    texts = ip4_texts(table.addresses)
    networks: dict[Ip, int] = {
        ipaddress.ip_network(f"{text}/{length}"): out
        for text, length, out in zip(texts, table.lengths.tolist(), table.ports.tolist(), strict=True)
    }
    demand = Demand(order, 3_000)  # type: ignore[arg-type]
    assert longest_match_ports(networks, ip4_texts(ip4_destinations(table, port, demand))) == {port}


@pytest.mark.parametrize("order", ["rnd", "zipf"])
def test_ip6_tables_are_right_and_their_destinations_lead_to_their_port(order: str) -> None:
    table = generate_ip6(20_000, 4, 3)
    networks: dict[Ip, int] = {
        ipaddress.ip_network(f"{text}/{length}"): out
        for text, length, out in zip(
            ip6_texts(table.high, table.low), table.lengths.tolist(), table.ports.tolist(), strict=True
        )
    }  # ip_network refuses host bits
    assert len(networks) == 20_000
    own = ipaddress.ip_network("2001:2::/32")
    assert not any(network.overlaps(own) for network in networks)
    assert all(network.network_address in ipaddress.ip_network("2000::/3") for network in networks)
    for port in (0, 1):
        drawn = ip6_destinations(table, port, Demand(order, 3_000))  # type: ignore[arg-type]
        assert longest_match_ports(networks, ip6_texts(*drawn)) == {port}


def test_two_hundred_thousand_ip6_prefixes_have_the_internets_lengths() -> None:
    table = generate_ip6(200_000, 32, 1)
    expected = scaled(IP6_LENGTHS, 200_000)
    assert {k: v for k, v in expected.items() if v} == {
        int(length): int(n) for length, n in zip(*np.unique(table.lengths, return_counts=True), strict=True)
    }


def test_the_same_seed_gives_the_same_table_and_another_one_does_not() -> None:
    one, two, three = (generate_ip4(5_000, 4, seed) for seed in (1, 1, 2))
    assert (one.addresses == two.addresses).all()
    assert (one.addresses != three.addresses).any()


def test_zipf_makes_the_most_popular_entry_as_popular_as_it_says() -> None:
    entries, draws = 10_000, 400_000
    drawn = draw_entries(entries, Demand("zipf", draws), np.random.default_rng(1))
    counts = np.sort(np.bincount(drawn, minlength=entries))[::-1]
    harmonic = np.sum(1.0 / np.arange(1, entries + 1))
    assert counts[0] / draws == pytest.approx(1.0 / harmonic, rel=0.05)
    assert counts[9] / draws == pytest.approx(0.1 / harmonic, rel=0.15)


@given(
    entries=st.integers(1, 1_000),
    draws=st.integers(1, 1_000),
    order=st.sampled_from(["seq", "rnd", "zipf"]),
    exponent=st.floats(0.1, 4.0),
)
@settings(max_examples=50)
def test_draws_are_always_entries_of_the_table(entries: int, draws: int, order: str, exponent: float) -> None:
    demand = Demand(order, draws, exponent=exponent)  # type: ignore[arg-type]
    drawn = draw_entries(entries, demand, np.random.default_rng(0))
    assert len(drawn) == draws
    assert drawn.min() >= 0
    assert drawn.max() < entries
