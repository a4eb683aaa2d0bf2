//! The processor: its clock, its cache hints, what it can do.
#![allow(unsafe_code)]

use std::sync::OnceLock;

/// Ask for a cache line, to be read soon.
#[inline(always)]
pub fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// The time stamp counter: it counts at a constant rate, whatever the core's frequency.
#[inline(always)]
pub fn clocks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has it.
    unsafe {
        std::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(0, |t| t.as_nanos() as u64)
    }
}

/// Clocks in a second, measured once against the system's monotonic clock.
pub fn clocks_per_second() -> f64 {
    static RATE: OnceLock<f64> = OnceLock::new();
    *RATE.get_or_init(|| {
        // The best of a few short measurements: an interruption only ever makes one worse.
        let mut best: Option<(std::time::Duration, f64)> = None;
        for _ in 0..5 {
            let (t0, c0, _) = stamp();
            while t0.elapsed().as_millis() < 5 {
                std::hint::spin_loop();
            }
            let (t1, c1, slack) = stamp();
            let rate = (c1 - c0) as f64 / (t1 - t0).as_secs_f64();
            if best.is_none_or(|(b, _)| slack < b) {
                best = Some((slack, rate));
            }
        }
        best.map_or(1e9, |(_, rate)| rate)
    })
}

/// The time and the counter at one moment, and how far apart the two readings may lie.
fn stamp() -> (std::time::Instant, u64, std::time::Duration) {
    let before = std::time::Instant::now();
    let counter = clocks();
    let after = std::time::Instant::now();
    (before + (after - before) / 2, counter, after - before)
}

/// The forms of the look-up kernels; the best one that this processor can run is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// Anything.
    Scalar,
    /// POPCNT, BMI1 and BMI2.
    Bmi2,
}

impl Variant {
    /// The best this processor has.
    pub fn best() -> Variant {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("popcnt")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
            {
                return Variant::Bmi2;
            }
        }
        Variant::Scalar
    }
}

/// Keep the calling thread on one core; the system's error when it cannot be.
pub fn pin_to_core(core: usize) -> std::io::Result<()> {
    // SAFETY: the set is a plain bit mask on the stack.
    let result = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if core >= libc::CPU_SETSIZE as usize {
            return Err(std::io::Error::from_raw_os_error(libc::EINVAL));
        }
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
    };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}
