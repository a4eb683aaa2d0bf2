"""What only looks: shows, traces, captures, counters."""

from __future__ import annotations

from stress.change import Change

READING = [
    Change(
        "everything shown",
        cycle=(
            "show runtime",
            "show interface",
            "show errors",
            "show hardware-interfaces verbose",
            "show memif memif1/0",
            "show ip fib",
            "show adj",
            "show vlan",
            "show load-balance",
            "show ip mfib",
            "show ip6 nd",
            "show igmp",
            "show mld",
            "show node",
            "show graph",
            "show buffers",
            "show memory",
            "show threads",
            "show running-config",
        ),
    ),
    Change(
        "descriptors of the loaded memif shown",
        cycle=("show memif memif1/0 descriptors",),
        round_s=1.0,
        is_long=True,
    ),
    Change(
        "counters cleared",
        cycle=("clear runtime", "clear errors", "clear interfaces"),
        clears_counters=True,
    ),
    Change(
        "traces of the load",
        cycle=("trace add memif-input 100", "show trace max 10", "clear trace"),
    ),
    Change(
        "captures of the load",
        cycle=("pcap trace rx tx drop max 1000 file {folder}/all.pcap", "pcap trace off"),
    ),
    Change(
        "drops monitored",
        cycle=("sflow drop-monitoring enable", "sflow drop-monitoring disable"),
    ),
    Change(
        "the load sampled",
        cycle=("sflow enable-disable memif1/0 both", "sflow enable-disable memif1/0 disable"),
    ),
]
