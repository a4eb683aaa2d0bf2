"""What the levels print last: sums, and the names of tests that ran again."""

from __future__ import annotations

from levels import Count, Pytest, last_lines

OUTPUT = """\
..R..                                                                    [100%]
RERUN tests/netns/test_top.py::test_a[IPv4 - left]
RERUN tests/netns/test_top.py::test_a[IPv4 - left]
RERUN tests/netns/test_af_xdp.py::test_b - AssertionError: waited 20 s in vain
4 passed, 1 skipped, 3 rerun in 2.10s
"""


def read(output: str) -> Count:
    reader, total = Pytest(), Count()
    for line in output.splitlines(keepends=True):
        total += reader.line(line)[0]
    return total


def test_reruns_are_named_with_a_count() -> None:
    assert last_lines(read(OUTPUT)) == [
        "ran again: 2 tests, 3 times",
        "  2 x tests/netns/test_top.py::test_a[IPv4 - left]",
        "  1 x tests/netns/test_af_xdp.py::test_b",
        "4 passed, 0 failed, 1 skipped",
    ]


def test_without_reruns_the_sum_stands_alone() -> None:
    assert last_lines(read("3 passed in 0.10s\n")) == ["3 passed, 0 failed, 0 skipped"]
