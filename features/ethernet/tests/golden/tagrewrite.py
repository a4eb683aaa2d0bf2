"""What the cases of tag rewrite have in common: frames into a sub-interface of e0, rewritten, out of e1; and back.

A case says which frames the sub-interface takes, the rewrite, the tags of a frame outside and inside; `make.py`
of each is one call of `case`.
"""

import json

from scapy.all import IP, UDP, Dot1AD, Dot1Q, Ether, IPv6, Raw, wrpcap

A, B = "02:00:00:00:00:a0", "02:00:00:00:00:b1"


def q(vlan, prio=0, dei=0):
    """A customer tag."""
    return Dot1Q(vlan=vlan, prio=prio, id=dei)


def ad(vlan, prio=0, dei=0):
    """A service tag."""
    return Dot1AD(vlan=vlan, prio=prio, id=dei)


def payloads():
    return [
        IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=1, dport=2) / Raw(b"x" * 50),
        IPv6(src="fd00::1", dst="fd00::2") / UDP(sport=1, dport=2) / Raw(b"y" * 1400),
        Raw(bytes(range(46))),
    ]


def frames(tags, src=A, dst=B):
    """One frame for each payload; the last is of a type that nobody knows."""
    out = []
    for payload in payloads():
        kind = {"IP": 0x0800, "IPv6": 0x86DD}.get(payload.name, 0x9999)
        frame = Ether(src=src, dst=dst)
        for tag in tags:
            frame = frame / tag.copy()
        frame.lastlayer().type = kind
        out.append(Ether(bytes(frame / payload)))
    return out


def setup(takes, rewrite):
    with open("setup.cli", "w") as out:
        name = "e0.5" if takes else "e0"
        out.write("create test interface e0\ncreate test interface e1\n")
        out.write("set interface state e0 up\nset interface state e1 up\n")
        if takes:
            out.write(
                f"create sub-interfaces e0 5 {takes}\nset interface state e0.5 up\n"
            )
        out.write(
            f"set interface l2 xconnect {name} e1\nset interface l2 xconnect e1 {name}\n"
        )
        out.write(f"set interface l2 tag-rewrite {name} {rewrite}\n")


def case(takes, rewrite, outside, inside, back=None):
    """Frames with the tags `outside` at e0 are frames with the tags `inside` at e1, and the other way round; `back`
    is what comes back when priorities are lost on the way."""
    setup(takes, rewrite)
    wrpcap("01-in.e0.pcap", frames(outside))
    wrpcap("01-out.e1.pcap", frames(inside))
    wrpcap("02-in.e1.pcap", frames(inside, B, A))
    wrpcap("02-out.e0.pcap", frames(outside if back is None else back, B, A))
    if takes:
        total = sum(len(frame) for frame in frames(outside))
        counted = {"rx_packets": 3, "rx_bytes": total, "tx_packets": 0}
        json.dump(
            {"interfaces": {"e0.5": counted, "e0": {"rx_packets": 3}}},
            open("01-counters.json", "w"),
            indent=2,
        )
