"""Real peers for the real binaries: namespaces, routers, captures, raw frames and DPDK's testpmd."""
