#!/usr/bin/python3
"""IPv4 and IPv6 cross the router between a port and its sub-interfaces: tags off, tags on."""
import json

from scapy.all import IP, UDP, Dot1AD, Dot1Q, Ether, IPv6, Raw, wrpcap

E0, E1 = "02:fe:00:00:00:00", "02:fe:00:00:00:01"
MACS = {"e0": "02:00:00:00:00:a0", "100": "02:00:00:00:00:a1", "7": "02:00:00:00:00:a2",
        "8": "02:00:00:00:00:a3", "9": "02:00:00:00:00:a4"}
TAGS = {
    "e0": [], "100": [Dot1Q(vlan=100)], "7": [Dot1AD(vlan=200), Dot1Q(vlan=300)],
    "8": [Dot1AD(vlan=100)], "9": [Dot1Q(vlan=200), Dot1Q(vlan=300)],
}
NET = {"e0": "10.0.0.2", "100": "10.1.0.2", "7": "10.2.0.2", "8": "10.3.0.2", "9": "10.4.0.2"}
NET6 = {"100": "fd10::2", "7": "fd12::2"}


def stack(ether, tags, packet):
    frame = ether
    for tag in tags:
        frame = frame / tag.copy()
    return Ether(bytes(frame / packet))


def ip(ttl, src, dst):
    return IP(ttl=ttl, src=src, dst=dst) / UDP(sport=1, dport=2) / Raw(b"x" * 50)


def ip6(hops, src, dst):
    return IPv6(hlim=hops, src=src, dst=dst) / UDP(sport=1, dport=2) / Raw(b"x" * 50)


# Tagged in, untagged out; with priority and drop eligible, which routing does not keep.
received = [stack(Ether(src=MACS[i], dst=E0), TAGS[i], ip(64, NET[i], "10.0.1.2")) for i in TAGS]
received += [stack(Ether(src=MACS[i], dst=E0), TAGS[i], ip6(64, NET6[i], "fd01::2")) for i in NET6]
received += [stack(Ether(src=MACS["100"], dst=E0), [Dot1Q(vlan=100, prio=5, id=1)], ip(64, NET["100"], "10.0.1.2"))]
sent = [Ether(src=E1, dst="02:00:00:00:00:b1") / ip(63, NET[i], "10.0.1.2") for i in TAGS]
sent += [Ether(src=E1, dst="02:00:00:00:00:b1") / ip(63, NET["100"], "10.0.1.2")]
sent += [Ether(src=E1, dst="02:00:00:00:00:b1") / ip6(63, NET6[i], "fd01::2") for i in NET6]
wrpcap("01-in.e0.pcap", received)
wrpcap("01-out.e1.pcap", sent)
size = len(received[1])
interfaces = {
    "e0": {"rx_packets": 8, "ip4": 1, "ip6": 0},
    "e0.100": {"rx_packets": 3, "rx_bytes": 2 * size + len(received[5]), "ip4": 2, "ip6": 1},
    "e0.7": {"rx_packets": 2, "ip4": 1, "ip6": 1},
    "e0.8": {"rx_packets": 1}, "e0.9": {"rx_packets": 1}, "e1": {"tx_packets": 8},
}
json.dump({"interfaces": interfaces}, open("01-counters.json", "w"), indent=2)

# Untagged in, tagged out.
H1 = "02:00:00:00:00:b1"
wrpcap("02-in.e1.pcap", [Ether(src=H1, dst=E1) / ip(64, "10.0.1.2", NET[i]) for i in TAGS]
       + [Ether(src=H1, dst=E1) / ip6(64, "fd01::2", NET6[i]) for i in NET6])
out = [stack(Ether(src=E0, dst=MACS[i]), TAGS[i], ip(63, "10.0.1.2", NET[i])) for i in TAGS]
out += [stack(Ether(src=E0, dst=MACS[i]), TAGS[i], ip6(63, "fd01::2", NET6[i])) for i in NET6]
# Untagged ones need no `sub-interface-output`, and are there first.
wrpcap("02-out.e0.pcap", out)
interfaces = {
    "e0": {"tx_packets": 7, "tx_bytes": sum(map(len, out))},
    "e0.100": {"tx_packets": 2, "tx_bytes": len(out[1]) + len(out[5])},
    "e0.7": {"tx_packets": 2, "tx_bytes": len(out[2]) + len(out[6])},
    "e0.8": {"tx_packets": 1, "tx_bytes": len(out[3])}, "e0.9": {"tx_packets": 1, "tx_bytes": len(out[4])},
}
json.dump({"interfaces": interfaces}, open("02-counters.json", "w"), indent=2)

# From one sub-interface to another of the same port.
wrpcap("03-in.e0.pcap", [stack(Ether(src=MACS["100"], dst=E0), TAGS["100"], ip(2, NET["100"], NET["7"]))])
wrpcap("03-out.e0.pcap", [stack(Ether(src=E0, dst=MACS["7"]), TAGS["7"], ip(1, NET["100"], NET["7"]))])
