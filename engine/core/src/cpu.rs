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

/// The forms that loops over packets and look-up kernels are compiled in. All give the same
/// answers; the best one that the processor can run is used unless the start-up file says
/// otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// Any x86-64 (and any other processor).
    Scalar,
    /// x86-64-v3: AVX2, BMI1, BMI2, LZCNT, POPCNT.
    Avx2,
    /// x86-64-v4: AVX-512 F, BW, CD, DQ and VL beside those.
    Avx512,
}

impl Variant {
    /// All, the plainest first.
    pub const ALL: [Variant; 3] = [Variant::Scalar, Variant::Avx2, Variant::Avx512];

    /// Its name, as in the start-up file and `show cpu`.
    pub const fn name(self) -> &'static str {
        match self {
            Variant::Scalar => "scalar",
            Variant::Avx2 => "avx2",
            Variant::Avx512 => "avx512",
        }
    }

    /// The best this processor has.
    pub fn best() -> Variant {
        static BEST: OnceLock<Variant> = OnceLock::new();
        *BEST.get_or_init(Variant::detect)
    }

    #[cfg(target_arch = "x86_64")]
    fn detect() -> Variant {
        macro_rules! has {
            ($($name:tt)*) => { $(is_x86_feature_detected!($name))&&* };
        }
        if !has!("avx2" "bmi1" "bmi2" "lzcnt" "popcnt") {
            Variant::Scalar
        } else if has!("avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl") {
            Variant::Avx512
        } else {
            Variant::Avx2
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn detect() -> Variant {
        Variant::Scalar
    }

    /// Can this processor run it?
    pub fn is_available(self) -> bool {
        self <= Variant::best()
    }

    /// Those that this processor can run.
    pub fn available() -> impl Iterator<Item = Variant> {
        Variant::ALL.into_iter().filter(|v| v.is_available())
    }

    /// Run `body` compiled for this variant. What is inlined into it (the stages of a kernel,
    /// the loops of a kernel) may use the variant's instructions; what is called is not affected.
    /// One well predicted branch: choose once per vector, not per packet. A variant that the
    /// processor does not have is replaced by the best it has.
    #[inline(always)]
    pub fn run<B: Body>(self, body: B) -> B::Answer {
        #[cfg(target_arch = "x86_64")]
        match self.min(Variant::best()) {
            Variant::Scalar => body.run(),
            // SAFETY: the processor has these features, `best` has seen them.
            Variant::Avx2 => unsafe { run_avx2(body) },
            // SAFETY: as above.
            Variant::Avx512 => unsafe { run_avx512(body) },
        }
        #[cfg(not(target_arch = "x86_64"))]
        body.run()
    }
}

/// What [`Variant::run`] compiles in each form. A closure will do when it is small; a longer one
/// the compiler does not inline, and then it stays in its plainest form: make it a type of its own
/// and give `run` the attribute `#[inline(always)]`.
pub trait Body {
    /// What comes out.
    type Answer;
    /// The loop.
    fn run(self) -> Self::Answer;
}

impl<R, F: FnOnce() -> R> Body for F {
    type Answer = R;

    #[inline(always)]
    fn run(self) -> R {
        self()
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn run_avx2<B: Body>(body: B) -> B::Answer {
    body.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(
    enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt"
)]
fn run_avx512<B: Body>(body: B) -> B::Answer {
    body.run()
}

/// Keep the calling thread on one core; the system's error when it cannot be.
///
/// # Errors
/// The core does not exist, or the system refuses.
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
