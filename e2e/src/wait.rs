//! Waiting for a condition: the only way in which this crate lets time pass.

use std::future::Future;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

/// Each probe is work for the servers that are asked, on which many wait at once.
const INTERVAL: Duration = Duration::from_millis(100);

/// Asks `probe` again and again until it answers `Ok`, for at most `timeout`.
///
/// An `Err` of the probe means "not yet" and says what was seen instead; the last one becomes
/// the cause of the failure. A probe that hangs is cut off at the timeout too.
///
/// # Errors
///
/// `what` did not happen within `timeout`.
pub async fn eventually<T, F, Fut>(what: &str, timeout: Duration, mut probe: F) -> Result<T>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T>>,
{
    let deadline = Instant::now() + timeout;
    let mut last = anyhow!("the first look did not return");
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(last.context(format!("not within {timeout:?}: {what}")));
        }
        match tokio::time::timeout(left, probe()).await {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(not_yet)) => last = not_yet,
            Err(_) => continue,
        }
        tokio::time::sleep(INTERVAL.min(deadline.saturating_duration_since(Instant::now()))).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn failure_names_the_condition_and_the_last_state() {
        let mut count = 0;
        let outcome: Result<()> = eventually("the count is 1000", Duration::from_millis(500), || {
            count += 1;
            let seen = count;
            async move { Err(anyhow!("the count is {}", if seen > 1 { "higher" } else { "1" })) }
        })
        .await;
        let text = format!("{:#}", outcome.unwrap_err());
        assert_eq!(text, "not within 500ms: the count is 1000: the count is higher");
    }

    #[tokio::test]
    async fn hanging_probe_is_cut_off() {
        let outcome: Result<()> = eventually("an answer", Duration::from_millis(100), std::future::pending).await;
        assert!(outcome.is_err());
    }
}
