//! When a request is made again: backoff with jitter, and the server's own wish where it is sane.

use std::time::Duration;

use reqwest::header::HeaderMap;

/// Requests for one turn at most.
pub const MAX_ATTEMPTS: u32 = 4;
/// The longest wait that a server may ask for; a longer one ends the turn at once.
pub const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The wait before attempt `attempt + 1` (the first attempt is 1): 0.5 s, 1 s, 2 s, … with up to half as much again.
pub fn backoff(attempt: u32) -> Duration {
    let base = Duration::from_millis(500) * 2_u32.saturating_pow(attempt.saturating_sub(1).min(6));
    let jitter = f64::from(uuid::Uuid::new_v4().as_bytes()[0]) / 255.0 * 0.5;
    base.mul_f64(1.0 + jitter).min(LONGEST_WAIT)
}

/// The wait that the response's headers ask for. Nonsense (negative, not a number, a date in the past) is no wish.
pub fn asked_for(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(milliseconds) = text("retry-after-ms").and_then(|text| text.parse::<f64>().ok()) {
        return seconds(milliseconds / 1000.0);
    }
    let wish = text("retry-after")?;
    if let Ok(number) = wish.parse::<f64>() {
        seconds(number)
    } else {
        // RFC 9110's date form, read as RFC 2822.
        let date = jiff::fmt::rfc2822::parse(wish).ok()?;
        let wait = date.timestamp().duration_since(jiff::Timestamp::now());
        seconds(wait.as_secs_f64())
    }
}

fn seconds(number: f64) -> Option<Duration> {
    (number.is_finite() && number >= 0.0).then(|| Duration::from_secs_f64(number.min(1e6)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(value: &str) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", value.parse().expect("a header"));
        asked_for(&headers)
    }

    #[test]
    fn sane_wishes_are_read_and_nonsense_is_not() {
        assert_eq!(asked("3"), Some(Duration::from_secs(3)));
        assert_eq!(asked("0.5"), Some(Duration::from_millis(500)));
        for nonsense in ["-1", "soon", "NaN", "inf", "", "Wed, 21 Oct 2015 07:28:00 GMT"] {
            assert_eq!(asked(nonsense), None, "{nonsense}");
        }
        assert!(asked("99999999999999999999").is_some_and(|wait| wait > LONGEST_WAIT));
    }

    #[test]
    fn waits_grow_and_stay_bounded() {
        assert!(backoff(1) >= Duration::from_millis(500) && backoff(1) <= Duration::from_millis(750));
        assert!(backoff(3) >= Duration::from_secs(2) && backoff(60) <= LONGEST_WAIT);
    }
}
