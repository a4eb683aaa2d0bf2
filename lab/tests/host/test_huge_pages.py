"""Huge pages are taken for the demo, given back whatever happens, and both are said."""

from __future__ import annotations

from pathlib import Path

import pytest

from quiver_lab.host import huge_pages as pages
from quiver_lab.host.huge_pages import PAGES, Pool, give_back, huge_pages, take

GIBIBYTES = 1 << 20
"""In the unit of /proc/meminfo."""


@pytest.fixture
def pool(tmp_path: Path) -> Pool:
    """A pool of which 8 pages are taken and none is free."""
    (tmp_path / "nr_hugepages").write_text("8\n")
    (tmp_path / "free_hugepages").write_text("0\n")
    (tmp_path / "meminfo").write_text(f"MemTotal: 1 kB\nMemAvailable: {4 * GIBIBYTES} kB\n")
    return Pool(tmp_path, tmp_path / "meminfo")


def test_pages_are_taken_and_given_back_and_said(pool: Pool) -> None:
    told: list[str] = []
    with huge_pages(told.append, pool):
        assert pool.count() == 8 + PAGES
    assert pool.count() == 8
    assert told == [
        f"huge pages: took {PAGES} of 2 MiB, they are given back at the end",
        f"huge pages: gave back {PAGES}",
    ]


def test_a_run_takes_as_many_as_it_wants(pool: Pool) -> None:
    with huge_pages(lambda _: None, pool, wanted=20):
        assert pool.count() == 8 + 20
    assert pool.count() == 8


def test_a_run_that_is_interrupted_gives_them_back(pool: Pool) -> None:
    told: list[str] = []
    with pytest.raises(KeyboardInterrupt), huge_pages(told.append, pool):
        raise KeyboardInterrupt
    assert pool.count() == 8
    assert "gave back" in told[-1]


def test_what_others_add_meanwhile_stays(pool: Pool) -> None:
    taken, _ = take(pool)
    pool.resize(pool.count() + 5)
    give_back(pool, taken)
    assert pool.count() == 8 + 5


def test_enough_free_pages_are_left_alone(pool: Pool) -> None:
    (pool.folder / "free_hugepages").write_text(f"{PAGES}\n")
    assert take(pool)[0] == 0
    assert pool.count() == 8


def test_a_small_machine_keeps_its_memory(pool: Pool) -> None:
    pool.meminfo.write_text(f"MemAvailable: {GIBIBYTES // 2} kB\n")
    taken, told = take(pool)
    assert (taken, pool.count()) == (0, 8)
    assert "too little memory" in told


def test_who_is_not_root_is_told_and_measures_all_the_same(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_pool: Pool, _count: int) -> int:
        raise PermissionError

    monkeypatch.setattr(pages.Pool, "resize", refused)
    told: list[str] = []
    with huge_pages(told.append, pool):
        pass
    assert len(told) == 1
    assert "only root may" in told[0]


def test_a_kernel_without_such_pages_is_told(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text(f"MemAvailable: {4 * GIBIBYTES} kB\n")
    told: list[str] = []
    with huge_pages(told.append, Pool(tmp_path / "none", tmp_path / "meminfo")):
        pass
    assert told[0].startswith("huge pages: none taken (No such file")
