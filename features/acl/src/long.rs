//! The memory of long lists is freed beside the router's work.

/// With more rules, a list is long: to free it takes milliseconds.
pub(crate) const RULES_MIN: usize = 4_096;

/// Drop a value on a thread of its own; here, if there is none.
pub(crate) fn drop_elsewhere(value: impl Send + 'static) {
    let thread = std::thread::Builder::new().name("quiver-free".into());
    // Without a thread, the closure is dropped, and with it the value.
    let _ = thread.spawn(move || drop(value));
}
