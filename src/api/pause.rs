//! What `spec.pausedUntil` of a HostedCluster or HostedControlPlane means.

use jiff::Timestamp;
use jiff::fmt::temporal::Pieces;

const TRUE: [&str; 6] = ["1", "t", "T", "TRUE", "true", "True"];

/// Go reads offsets of up to 24 hours and 60 minutes, jiff more. In seconds.
const BEYOND_EVERY_OFFSET: i32 = 25 * 60 * 60;

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
    /// Reads the field as HyperShift does: first as one of Go's booleans, else as an RFC 3339 time. Of Go's other
    /// spellings of times (an hour of one digit, an offset of 60 minutes) none is understood.
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

/// RFC 3339, with capital letters and an offset: jiff alone would also read other forms of ISO 8601, which HyperShift
/// refuses. A time beyond jiff's range becomes the end of that range.
fn rfc3339(text: &str) -> Option<Timestamp> {
    let shape = text.replace(|c: char| c.is_ascii_digit(), "0");
    let has_offset = ["Z", "+00:00", "-00:00"].iter().any(|offset| shape.ends_with(offset));
    // jiff takes a leap second for the one before.
    if !shape.starts_with("0000-00-00T00:00:00") || !has_offset || text.contains(":60") {
        return None;
    }
    let parsed = Pieces::parse(text).ok()?;
    let local = parsed.date().to_datetime(parsed.time()?);
    let offset = parsed.to_numeric_offset()?;
    if offset.seconds().abs() >= BEYOND_EVERY_OFFSET {
        return None;
    }
    let utc = offset.to_timestamp(local);
    Some(utc.unwrap_or(Timestamp::MAX))
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
            "2026-08-22T10:00:01-00:00",
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
        for text in ["9999-12-31T23:59:59Z", "9999-12-30T23:59:59-23:00"] {
            assert_eq!(read(text), Paused::Until(Timestamp::MAX), "{text}");
        }
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
    fn other_forms_of_times_do_not_pause_and_are_reported() {
        for text in [
            "2099-01-01",
            "2099-01-01T00:00:00",
            "2099-01-01T00:00Z",
            "2099-01-01 00:00:00Z",
            "2099-01-01t00:00:00Z",
            "2099-01-01T00:00:00z",
            "20990101T000000Z",
            "2099-01-01T9:00:00Z",
            "2099-01-01T00:00:00+02",
            "2099-01-01T00:00:00+25:00",
            "2099-01-01T00:00:00-25:59",
            "2099-01-01T00:00:00+01:60",
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
            "2099-01-01T00:00:00+00:61",
            "2099-01-01T00:00:00+1:00",
            "2099-01-01T00:00:00Z ",
            " 2099-01-01T00:00:00Z",
            "+2099-01-01T00:00:00Z",
            "2099-01-01T00:00:00Zä",
            "209ä-01-01T00:00:00Z",
        ] {
            assert_eq!(read(text), Paused::No, "{text}");
            assert!(!understood(text), "{text}");
        }
    }
}
