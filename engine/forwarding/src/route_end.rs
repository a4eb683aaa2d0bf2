//! Why a route leads nowhere, as the index of a drop hop says it.

quiver_core::reasons! {
    /// Why a packet reaches `ip4-drop` or `ip6-drop`.
    pub enum RouteEnd {
        /// Nothing matches.
        NoRoute = "no-route", "no route to the destination (`show ip fib`, `show ip6 fib`)";
        /// Told to.
        Dropped = "route-drops", "the route to the destination says drop, or none of its paths \
            can be used";
        /// Told to answer.
        Unreachable = "route-unreachable", "the route to the destination says unreachable; the \
            sender is told";
        /// Told to answer.
        Prohibited = "route-prohibits", "the route to the destination says prohibit; the sender \
            is told";
        /// Not asked to speak the protocol there.
        NotEnabled = "not-enabled", "received on an interface without an address (`set interface \
            ip address IF ADDR/LEN`)";
    }
}
