//! What `spec.pausedUntil` of a HostedCluster or HostedControlPlane means.

use jiff::Timestamp;

/// Whether a cluster is to be left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paused {
    /// Not paused: absent, a false word, a time that has come, or not understood.
    No,
    /// Paused until this time, which lies ahead.
    Until(Timestamp),
    /// Paused until the field changes.
    Indefinitely,
}

impl Paused {
    /// Reads the field as HyperShift does: first as one of Go's booleans, else as an RFC 3339 time.
    pub fn read(paused_until: Option<&str>, now: Timestamp) -> Paused {
        match paused_until {
            Some("1" | "t" | "T" | "TRUE" | "true" | "True") => Paused::Indefinitely,
            Some(text) => match rfc3339(text) {
                Some(until) if now < until => Paused::Until(until),
                _ => Paused::No,
            },
            None => Paused::No,
        }
    }
}

/// RFC 3339 as Go reads it: `T`, seconds and a zone are required. jiff alone takes much more.
fn rfc3339(text: &str) -> Option<Timestamp> {
    const SHAPE: &[u8; 19] = b"0000-00-00T00:00:00";
    let (date_time, rest) = text.split_at_checked(SHAPE.len())?;
    let fits = |(byte, shape): (u8, &u8)| match shape {
        b'0' => byte.is_ascii_digit(),
        other => byte == *other,
    };
    let zone = match rest.strip_prefix('.') {
        Some(fraction) => fraction.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => rest,
    };
    let zoned = zone == "Z" || (zone.len() == 6 && zone.starts_with(['+', '-']));
    (zoned && date_time.bytes().zip(SHAPE).all(fits)).then(|| text.parse().ok())?
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
        ] {
            let until = "2026-08-22T10:00:01Z".parse().unwrap();
            assert_eq!(read(text), Paused::Until(until), "{text}");
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
        ] {
            assert_eq!(read(text), Paused::No, "{text}");
        }
    }
}
