//! Waiting for a condition: the usual way in which this crate waits.
//!
//! Bounds are meant for a machine without other load. On a loaded machine they are longer: a thread measures how much
//! other work delays it. `E2E_PATIENCE` multiplies all bounds as well.

use std::future::Future;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use rustix::time::{ClockId, clock_gettime};

/// The pause between two probes. Each probe is work for servers that many tests probe at once.
const INTERVAL: Duration = Duration::from_millis(250);

/// Repeats `probe` until it returns `Ok`, for at most `timeout` on a machine without other load.
///
/// An `Err` of the probe means "not yet" and says what was observed instead; the last one becomes the cause of the
/// failure. A probe that hangs is cancelled at the timeout too.
///
/// # Errors
///
/// `what` did not happen within `timeout`.
pub async fn eventually<T, F, Fut>(what: &str, timeout: Duration, mut probe: F) -> Result<T>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T>>,
{
    let began = Instant::now();
    let mut left = timeout.mul_f64(PATIENCE.by_hand);
    let mut last = anyhow!("the first look did not return");
    loop {
        if left.is_zero() {
            let waited = began.elapsed().as_secs_f64();
            return Err(last.context(format!("not within {timeout:?} (waited {waited:.1} s): {what}")));
        }
        let round = Instant::now();
        match tokio::time::timeout(left.mul_f64(PATIENCE.slowness()), probe()).await {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(not_yet)) => {
                last = not_yet;
                tokio::time::sleep(INTERVAL.min(left)).await;
            }
            Err(_) => {}
        }
        left = left.saturating_sub(round.elapsed().div_f64(PATIENCE.slowness()));
    }
}

/// A bound for other waits, multiplied for the machine's present load.
pub fn patient(bound: Duration) -> Duration {
    bound.mul_f64(PATIENCE.by_hand * PATIENCE.slowness())
}

static PATIENCE: LazyLock<Patience> = LazyLock::new(Patience::begin);

/// How much longer things take than on a machine without other load.
struct Patience {
    /// The factor `E2E_PATIENCE`, 1 to 100.
    by_hand: f64,
}

/// How much longer [`WORK`] took recently, as a factor in thousandths.
static SLOWNESS: AtomicU64 = AtomicU64::new(1000);
/// The processor time of one measurement, which other load delays. Late timers show little of it, because the kernel
/// prefers threads that have slept.
const WORK: Duration = Duration::from_millis(2);
const EVERY: Duration = Duration::from_millis(250);
/// The greatest factor. A machine that is slower than this is broken.
const SLOWEST: f64 = 10.0;

impl Patience {
    /// Starts the thread that measures as long as the process lives.
    fn begin() -> Self {
        let given = std::env::var("E2E_PATIENCE").ok().and_then(|text| text.parse().ok());
        // Without the thread bounds stay as they are, which is no reason to fail.
        drop(std::thread::Builder::new().name("patience".to_owned()).spawn(measure));
        Self {
            by_hand: given.unwrap_or(1.0_f64).clamp(1.0, 100.0),
        }
    }

    #[expect(clippy::unused_self, reason = "whoever asks has begun to measure")]
    fn slowness(&self) -> f64 {
        SLOWNESS.load(Ordering::Relaxed) as f64 / 1000.0
    }
}

fn measure() {
    let mut smooth = 1.0;
    loop {
        std::thread::sleep(EVERY);
        smooth = smoothed(smooth, work());
        SLOWNESS.store((smooth * 1000.0) as u64, Ordering::Relaxed);
    }
}

/// Measures how long [`WORK`] takes now.
fn work() -> Duration {
    let worked = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
    let (began, end) = (Instant::now(), worked() + WORK);
    while worked() < end {
        std::hint::spin_loop();
    }
    began.elapsed()
}

/// The new factor after [`WORK`] has taken `elapsed`; half of its weight is from the last second.
fn smoothed(before: f64, elapsed: Duration) -> f64 {
    let now = elapsed.div_duration_f64(WORK).clamp(1.0, SLOWEST);
    before + (now - before) / 6.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn failure_names_the_condition_and_the_last_state() {
        let mut count = 0;
        let outcome: Result<()> = eventually("the count is 1000", Duration::from_millis(500), || {
            count += 1;
            let attempt = count;
            async move { Err(anyhow!("the count is {}", if attempt > 1 { "higher" } else { "1" })) }
        })
        .await;
        let text = format!("{:#}", outcome.unwrap_err());
        assert!(text.starts_with("not within 500ms (waited "), "{text}");
        assert!(text.ends_with(" s): the count is 1000: the count is higher"), "{text}");
    }

    #[tokio::test]
    async fn hanging_probe_is_cut_off() {
        let outcome: Result<()> = eventually("an answer", Duration::from_millis(100), std::future::pending).await;
        assert!(outcome.is_err());
    }

    #[test]
    fn delayed_work_stretches_bounds_and_they_shrink_again() {
        let second = |mut factor: f64, elapsed: Duration| {
            (0..4).for_each(|_| factor = smoothed(factor, elapsed));
            factor
        };
        let idle = second(1.0, WORK + Duration::from_micros(20));
        assert!(idle < 1.01, "{idle}");
        let loaded = second(1.0, 5 * WORK);
        assert!((2.5..5.0).contains(&loaded), "{loaded}");
        assert!(second(loaded, WORK) < loaded / 1.5);
        assert!(
            second(1.0, 1000 * WORK) < SLOWEST,
            "a machine that hangs is not waited for"
        );
    }

    #[test]
    fn work_takes_at_least_its_time() {
        assert!(work() >= WORK);
    }
}
