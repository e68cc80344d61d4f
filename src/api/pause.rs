//! What `spec.pausedUntil` of a HostedCluster or HostedControlPlane means.

use jiff::civil::DateTime;
use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp};

const TRUE: [&str; 6] = ["1", "t", "T", "TRUE", "true", "True"];

/// Whether the reconciliation of a cluster is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paused {
    /// Not paused: the field is absent, a false word, a time in the past, or not understood.
    No,
    /// Paused until this time, which is in the future.
    Until(Timestamp),
    /// Paused until the field changes.
    Indefinitely,
}

impl Paused {
    /// Reads the field as HyperShift does: first as one of Go's booleans, else as an RFC 3339 time.
    pub fn read(paused_until: Option<&str>, now: Timestamp) -> Paused {
        match paused_until {
            Some(text) if TRUE.contains(&text) => Paused::Indefinitely,
            Some(text) => match rfc3339(text) {
                Some(until) if now < until => Paused::Until(until),
                _ => Paused::No,
            },
            None => Paused::No,
        }
    }
}

/// Whether the field has a meaning. Without one the cluster is not paused, which has to be reported.
pub fn understood(paused_until: &str) -> bool {
    const FALSE: [&str; 6] = ["0", "f", "F", "FALSE", "false", "False"];
    TRUE.contains(&paused_until) || FALSE.contains(&paused_until) || rfc3339(paused_until).is_some()
}

/// RFC 3339 as Go's `time.Parse` reads it, which is neither the standard nor jiff: an hour may have one digit, a comma
/// may begin a fraction of any length, an offset may be 24 hours or 60 minutes; letters are upper case and no second is
/// the 60th. A time beyond jiff's range becomes the end of that range.
fn rfc3339(text: &str) -> Option<Timestamp> {
    let mut rest = text;
    let year = digits(&mut rest, 4)?;
    let month = after(&mut rest, '-').and_then(|()| digits(&mut rest, 2))?;
    let day = after(&mut rest, '-').and_then(|()| digits(&mut rest, 2))?;
    let hour = after(&mut rest, 'T').and_then(|()| digits(&mut rest, 2).or_else(|| digits(&mut rest, 1)))?;
    let minute = after(&mut rest, ':').and_then(|()| digits(&mut rest, 2))?;
    let second = after(&mut rest, ':').and_then(|()| digits(&mut rest, 2))?;
    let nanosecond = fraction(&mut rest);
    let offset = offset(rest)?;
    let small = |value: i64| i8::try_from(value).ok();
    let (year, nanosecond) = (i16::try_from(year).ok()?, i32::try_from(nanosecond).ok()?);
    let (month, day, hour) = (small(month)?, small(day)?, small(hour)?);
    let local = DateTime::new(year, month, day, hour, small(minute)?, small(second)?, nanosecond).ok()?;
    let utc = Offset::UTC.to_timestamp(local).unwrap_or(Timestamp::MAX);
    Some(utc.checked_sub(offset).unwrap_or(Timestamp::MAX))
}

/// Takes exactly `count` digits, if they are there.
fn digits(rest: &mut &str, count: usize) -> Option<i64> {
    let (number, after) = rest.split_at_checked(count)?;
    let value = number
        .bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| number.parse().ok())??;
    *rest = after;
    Some(value)
}

fn after(rest: &mut &str, letter: char) -> Option<()> {
    *rest = rest.strip_prefix(letter)?;
    Some(())
}

/// Takes a fraction of a second, if there is one, in nanoseconds.
fn fraction(rest: &mut &str) -> i64 {
    let Some(number) = rest.strip_prefix(['.', ',']) else {
        return 0;
    };
    let after = number.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = number.strip_suffix(after).unwrap_or_default();
    if number.is_empty() {
        return 0;
    }
    *rest = after;
    let nine: String = number.chars().chain("000000000".chars()).take(9).collect();
    nine.parse().unwrap_or_default()
}

fn offset(zone: &str) -> Option<SignedDuration> {
    if zone == "Z" {
        return Some(SignedDuration::ZERO);
    }
    let sign = match zone.get(..1)? {
        "+" => 1,
        "-" => -1,
        _ => return None,
    };
    let mut rest = zone.get(1..)?;
    let hours = digits(&mut rest, 2).filter(|hours| *hours <= 24)?;
    let minutes = after(&mut rest, ':').and_then(|()| digits(&mut rest, 2))?;
    (minutes <= 60 && rest.is_empty()).then(|| SignedDuration::from_mins(sign * (hours * 60 + minutes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Paused {
        Paused::read(Some(text), "2026-08-22T10:00:00Z".parse().unwrap())
    }

    #[test]
    fn an_absent_field_does_not_pause() {
        assert_eq!(Paused::read(None, Timestamp::UNIX_EPOCH), Paused::No);
    }

    #[test]
    fn every_true_word_of_go_pauses_for_good() {
        for word in ["1", "t", "T", "TRUE", "true", "True"] {
            assert_eq!(read(word), Paused::Indefinitely, "{word}");
        }
    }

    #[test]
    fn false_words_and_garbage_do_not_pause() {
        for word in [
            "0", "f", "F", "FALSE", "false", "False", "", "yes", "tRUE", " true", "ä",
        ] {
            assert_eq!(read(word), Paused::No, "{word}");
        }
    }

    #[test]
    fn a_time_ahead_pauses_until_then() {
        for text in [
            "2026-08-22T10:00:01Z",
            "2026-08-22T12:00:01+02:00",
            "2026-08-22T10:00:01.000Z",
            "2026-08-22T10:00:01,0Z",
            "2026-08-22T10:00:01.0000000000000000001Z",
            "2026-08-22T10:00:01-00:00",
            "2026-08-22T9:00:01-01:00",
            "2026-08-23T10:00:01+24:00",
            "2026-08-22T12:00:01+01:60",
        ] {
            let until = "2026-08-22T10:00:01Z".parse().unwrap();
            assert_eq!(read(text), Paused::Until(until), "{text}");
        }
    }

    #[test]
    fn a_fraction_counts() {
        let until = "2026-08-22T10:00:00.25Z".parse().unwrap();
        assert_eq!(read("2026-08-22T10:00:00.25Z"), Paused::Until(until));
    }

    #[test]
    fn the_end_of_all_times_is_ahead() {
        for text in [
            "9999-12-31T23:59:59Z",
            "9999-12-31T23:59:59.999-24:00",
            "9999-12-30T23:59:59-23:00",
        ] {
            assert_eq!(read(text), Paused::Until(Timestamp::MAX), "{text}");
        }
        assert_eq!(read("0000-01-01T00:00:00+24:00"), Paused::No);
        assert!(understood("0000-01-01T00:00:00+24:00"));
    }

    #[test]
    fn invalid_pause_is_distinguished_from_one_that_is_over() {
        for text in ["true", "0", "False", "1999-12-31T23:59:59Z"] {
            assert!(understood(text), "{text}");
        }
        for text in ["", "yes", "tRUE", " true", "2099-02-30T00:00:00Z", "ä"] {
            assert!(!understood(text), "{text}");
        }
    }

    #[test]
    fn a_time_that_has_come_does_not_pause() {
        for text in [
            "2026-08-22T10:00:00Z",
            "2026-08-22T11:59:59+02:00",
            "1999-12-31T23:59:59Z",
        ] {
            assert_eq!(read(text), Paused::No, "{text}");
        }
    }

    #[test]
    fn times_that_go_would_not_read_do_not_pause() {
        for text in [
            "2099-01-01",
            "2099-01-01T00:00:00",
            "2099-01-01T00:00Z",
            "2099-01-01 00:00:00Z",
            "2099-01-01t00:00:00z",
            "2099-01-01T00:00:00+0200",
            "2099-01-01T00:00:00Z[UTC]",
            "2099-13-01T00:00:00Z",
            "2099-02-29T00:00:00Z",
            "2099-01-00T00:00:00Z",
            "2099-01-01T24:00:00Z",
            "2099-01-01T00:60:00Z",
            "2099-01-01T23:59:60Z",
            "2099-1-1T00:00:00Z",
            "2099-01-01T00:0:00Z",
            "2099-01-01T00:00:00.Z",
            "2099-01-01T00:00:00+25:00",
            "2099-01-01T00:00:00+00:61",
            "2099-01-01T00:00:00+1:00",
            "2099-01-01T00:00:00Z ",
            " 2099-01-01T00:00:00Z",
            "+2099-01-01T00:00:00Z",
            "2099-01-01T00:00:00Zä",
            "209ä-01-01T00:00:00Z",
        ] {
            assert_eq!(read(text), Paused::No, "{text}");
        }
    }
}
