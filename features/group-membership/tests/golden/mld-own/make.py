#!/usr/bin/python3
"""An interface reports the groups of its addresses, and what operators join (RFC 3810 §6.1, RFC 4291 §2.8)."""
from scapy.all import Ether, ICMPv6MLDMultAddrRec, ICMPv6MLReport2, IPv6, IPv6ExtHdrHopByHop, PadN, RouterAlert, wrpcap

MINE = "fe80::fe:ff:fe00:0"
def report(*records, mine=MINE):
    hop = IPv6ExtHdrHopByHop(options=[RouterAlert(value=0), PadN(optdata=b"")])
    return Ether(src="02:fe:00:00:00:00", dst="33:33:00:00:00:16") / IPv6(src=mine, dst="ff02::16", hlim=1) / hop / ICMPv6MLReport2(records=list(records))

record = lambda kind, group, *sources: ICMPv6MLDMultAddrRec(rtype=kind, dst=group, sources=list(sources))
steps = {
    "01": ("set interface ip address e0 2001:db8:2::77:7/64", report(record(4, "ff02::1:ff77:7"))),
    "02": ("mld listen enable int e0 ff0e::1", report(record(4, "ff0e::1"))),
    "03": ("mld listen enable int e0 2001:db8::9 ff3e::1", report(record(5, "ff3e::1", "2001:db8::9"))),
    "04": ("set interface ip address del e0 2001:db8:2::77:7/64", report(record(3, "ff02::1:ff77:7"))),
}
for number, (command, out) in steps.items():
    open(f"{number}.cli", "w").write(f"{command}\ntest advance 3\n")
    wrpcap(f"{number}-out.e0.pcap", [out, out])
everything = report(
    record(4, "ff02::2"), record(4, "ff02::1:ff00:0"), record(4, "ff02::1:ff00:1"), record(4, "ff0e::1"), record(5, "ff3e::1", "2001:db8::9")
)
open("05.cli", "w").write("set interface state e0 down\nset interface state e0 up\ntest advance 3\n")
wrpcap("05-out.e0.pcap", [everything, everything])
