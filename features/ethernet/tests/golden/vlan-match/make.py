#!/usr/bin/python3
"""Which sub-interface takes a frame: the one that says most of its tags."""
import json

from scapy.all import Dot1AD, Dot1Q, Ether, Raw, wrpcap

q = lambda vlan, prio=0: Dot1Q(vlan=vlan, prio=prio)
ad = lambda vlan, prio=0: Dot1AD(vlan=vlan, prio=prio)
TAKES = {
    "1": "dot1q 100 exact-match",
    "2": "dot1q 100 inner-dot1q 200 exact-match",
    "3": "dot1q 100 inner-dot1q any",
    "4": "dot1ad 100",
    "5": "dot1ad 100 inner-dot1q 200",
    "6": "dot1q any",
    "7": "dot1ad any inner-dot1q 300 exact-match",
    "8": "untagged",
    "9": "default",
}
FRAMES = {
    "1": [[q(100)], [q(100, 7)], [q(100), q(0, 5)]],
    "2": [[q(100), q(200)], [q(100, 1), q(200, 6)]],
    "3": [[q(100), q(201)], [q(100), q(200), q(300)], [q(100), q(4094)], [q(100), q(200), ad(300)]],
    "4": [[ad(100)], [ad(100), q(201)], [ad(100), ad(200)], [ad(100), q(201), q(200)]],
    "5": [[ad(100), q(200)], [ad(100), q(200), q(1)]],
    "6": [[q(101)], [q(4095)], [q(101), q(200)], [q(101), q(200), q(3)], [q(1), ad(2)]],
    "7": [[ad(5), q(300)], [ad(4094), q(300)]],
    "8": [[], [q(0, 3)], [ad(0, 3)], [q(0), q(100)]],
    "9": [[ad(101)], [ad(5), q(300), q(1)], [ad(5), q(301)]],
}


def frame(tags, number):
    out = Ether(src="02:00:00:00:00:a0", dst="02:00:00:00:00:b1")
    for tag in tags:
        out = out / tag.copy()
    out.lastlayer().type = 0x9999
    return Ether(bytes(out / Raw(bytes([number]) * 46)))


with open("setup.cli", "w") as setup:
    setup.write("create test interface e0\nset interface state e0 up\n")
    for number, takes in TAKES.items():
        setup.write(f"create test interface o{number}\nset interface state o{number} up\n")
        setup.write(f"create sub-interfaces e0 {number} {takes}\nset interface state e0.{number} up\n")
        setup.write(f"set interface l2 xconnect e0.{number} o{number}\n")
sent = {number: [frame(tags, i) for i, tags in enumerate(all_tags)] for number, all_tags in FRAMES.items()}
# All at once, taken turn about.
rounds = max(map(len, sent.values()))
wrpcap("01-in.e0.pcap", [frames[i] for i in range(rounds) for frames in sent.values() if i < len(frames)])
for number, frames in sent.items():
    wrpcap(f"01-out.o{number}.pcap", frames)
counters = {f"e0.{number}": {"rx_packets": len(frames)} for number, frames in sent.items()}
json.dump({"interfaces": counters}, open("01-counters.json", "w"), indent=2)
