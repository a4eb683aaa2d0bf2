#!/usr/bin/python3
"""Control packets that are discarded before a session is known, each for its reason."""
import json

from scapy.all import IP, UDP, Ether, IPv6, Raw, wrpcap
from scapy.contrib.bfd import BFD

E0, PEER = "02:fe:00:00:00:00", "02:00:00:00:00:02"


def control(ttl=255, port=3784, **fields):
    told = {
        "sta": 1, "my_discriminator": 7, "your_discriminator": 0, "min_tx_interval": 1000000,
        "min_rx_interval": 1000000, "echo_rx_interval": 0, "detect_mult": 3, "len": 24, **fields,
    }
    told = {key: value for key, value in told.items() if value is not None}
    return (
        Ether(src=PEER, dst=E0) / IP(src="192.0.2.2", dst="192.0.2.1", ttl=ttl, id=0)
        / UDP(sport=49152, dport=port) / Raw(bytes(BFD(**told)))
    )


def six(hop_limit):
    told = BFD(sta=1, my_discriminator=7, your_discriminator=0, detect_mult=3, len=24)
    return (
        Ether(src=PEER, dst=E0) / IPv6(src="2001:db8::2", dst="2001:db8::1", hlim=hop_limit)
        / UDP(sport=49152, dport=3784) / Raw(bytes(told))
    )


short = control()
short[Raw].load = short[Raw].load[:20]
frames = [
    control(), control(port=4784, ttl=3), six(255),  # no session
    control(ttl=254), six(254),  # not one hop
    control(version=0), control(version=2),
    control(len=23), control(len=25), short,
    control(detect_mult=0), control(flags="M"), control(my_discriminator=0),
    control(sta=2), control(sta=3),  # Init and Up need Your Discriminator
    control(sta=3, your_discriminator=99),
    Ether(src=PEER, dst=E0) / IP(src="192.0.2.2", dst="192.0.2.1", ttl=254, id=0)
    / UDP(sport=49152, dport=3785) / Raw(b"somebody else's echo"),
]
wrpcap("01-in.e0.pcap", frames)
drops = {
    "no-session": 3, "ttl-not-255": 2, "bad-version": 2, "bad-length": 1, "length-beyond-packet": 1,
    "truncated": 1, "detect-mult-zero": 1, "multipoint": 1, "my-discriminator-zero": 1,
    "your-discriminator-zero": 2, "unknown-discriminator": 1, "echo-unknown": 1,
}
json.dump({"drops": {"bfd-input": drops}}, open("01-counters.json", "w"), indent=2)
