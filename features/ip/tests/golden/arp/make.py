#!/usr/bin/python3
"""Who asks for us gets an answer; what is wrong or not for us does not."""
import json

from scapy.all import ARP, Ether, Raw, wrpcap

E0, H0, BCAST = "02:fe:00:00:00:00", "02:00:00:00:00:c0", "ff:ff:ff:ff:ff:ff"
frame = lambda src=H0, dst=BCAST: Ether(src=src, dst=dst, type=0x0806)
ask = lambda **f: ARP(**{"op": 1, "hwsrc": H0, "psrc": "10.0.0.3", "pdst": "10.0.0.1", **f})
answer = lambda **f: Ether(src=E0, dst=H0) / ARP(
    **{"op": 2, "hwsrc": E0, "psrc": "10.0.0.1", "hwdst": H0, "pdst": "10.0.0.3", **f}
)
wrpcap("01-in.e0.pcap", [frame() / ask() / Raw(b"\0" * 18), frame(dst=E0) / ask(), frame() / ask(psrc="0.0.0.0")])
wrpcap("01-out.e0.pcap", [answer(), answer(), answer(pdst="0.0.0.0")])
events = {"arp-input": {"replied": 3, "requests-received": 3, "learned": 1, "known-already": 1}}
json.dump({"events": events}, open("01-counters.json", "w"), indent=2)

# For others: no answer, and nobody new is learned.
wrpcap("02-in.e0.pcap", [frame() / ask(psrc="10.0.0.4", pdst="10.0.0.9"), frame() / ask(psrc="10.0.0.5", pdst="10.0.0.5")])
json.dump({"events": {"arp-input": {"gratuitous": 1}}}, open("02-counters.json", "w"), indent=2)

wrong = {
    "truncated": frame() / Raw(bytes(ask())[:27]),
    "bad-type": frame() / ask(hwtype=6),
    "bad-operation": frame() / ask(op=3),
    "bad-sender-mac": frame(src="03:00:00:00:00:01") / ask(hwsrc="03:00:00:00:00:01"),
    "bad-sender": frame() / ask(psrc="255.255.255.255"),
    "not-on-subnet": frame() / ask(psrc="192.0.2.1"),
    "address-conflict": frame() / ask(psrc="10.0.0.1", pdst="10.0.0.9"),
}
wrpcap("03-in.e0.pcap", list(wrong.values()))
wrpcap("03-in.e2.pcap", [frame() / ask()])
json.dump({"drops": {"arp-input": {**{n: 1 for n in wrong}, "no-address": 1}}}, open("03-counters.json", "w"), indent=2)
# The answer's frame comes from the router's own MAC address, as of a virtual router: it is taken (RFC 826).
virtual = frame(dst=E0) / answer(op=2, hwsrc="00:00:5e:00:01:07", psrc="10.0.0.7", hwdst=E0, pdst="10.0.0.1").payload
wrpcap("04-in.e0.pcap", [virtual])
json.dump({"events": {"arp-input": {"other-sender": 1, "learned": 1}}}, open("04-counters.json", "w"), indent=2)
# Who claims our address hears that it is ours.
wrpcap("03-out.e0.pcap", [Ether(src=E0, dst=BCAST) / ARP(op=1, hwsrc=E0, psrc="10.0.0.1", hwdst="00:00:00:00:00:00", pdst="10.0.0.1")])
