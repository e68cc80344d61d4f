//! Replaces times that cannot be parsed here, in JSON as it arrives. The API server stores years up to the last day of
//! 9999 and beyond, also where a tenant may write them, as in `managedFields`. One such time would hide all other
//! objects of its list.

use bytes::Bytes;
use http::Response;
use http_body::Body;
use http_body_util::BodyExt;
use jiff::Timestamp;

/// Replaces a time that cannot be parsed: it is as far away.
const FAR: &[u8] = b"9999-12-30T00:00:00Z";
/// The most bytes of a time.
const LONGEST: usize = 40;

/// The response, in which all times can be parsed.
pub(crate) fn readable<B: Body<Data = Bytes>>(
    response: Response<B>,
) -> Response<impl Body<Data = Bytes, Error = B::Error>> {
    let mut texts = Texts::default();
    response.map(|body| body.map_frame(move |body_frame| body_frame.map_data(|data| texts.feed(&data))))
}

/// The position in a stream of JSON documents.
#[derive(Debug, Default)]
enum Texts {
    /// Outside of any text.
    #[default]
    Outside,
    /// In a text that may be a time; none of it has been passed on yet.
    Held(Vec<u8>),
    /// In any other text.
    Inside { escaped: bool },
}

impl Texts {
    /// The next bytes. What may become a time waits for its end.
    fn feed(&mut self, data: &[u8]) -> Bytes {
        let mut out = Vec::with_capacity(data.len() + LONGEST);
        for byte in data {
            self.step(*byte, &mut out);
        }
        out.into()
    }

    fn step(&mut self, byte: u8, out: &mut Vec<u8>) {
        if let Self::Held(text) = self {
            if byte != b'"' && text.len() < LONGEST && may_be_in_a_time(byte) {
                text.push(byte);
                return;
            }
            let whole = byte == b'"';
            out.extend_from_slice(if whole && is_unreadable(text) { FAR } else { text });
            *self = Self::Inside { escaped: false };
        }
        out.push(byte);
        match (&mut *self, byte) {
            (Self::Outside, b'"') => *self = Self::Held(Vec::new()),
            (Self::Inside { escaped: false }, b'"') => *self = Self::Outside,
            (Self::Inside { escaped }, byte) => *escaped = !*escaped && byte == b'\\',
            _ => {}
        }
    }
}

fn may_be_in_a_time(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'-' | b':' | b'.' | b'+' | b'T' | b'Z')
}

/// Whether the text is a time as the API server writes it back, and cannot be parsed here. Other texts of that form
/// stay: where they are no time they mean something else, as in `pausedUntil`.
fn is_unreadable(text: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(text) else {
        return false;
    };
    let Some((day, time)) = text.split_once('T') else {
        return false;
    };
    let time = time.strip_suffix('Z').unwrap_or_default();
    let (clock, fraction) = time.split_at(time.len().min(8));
    let is_clock = shape(clock) == "00:00:00" && (fraction.is_empty() || fraction.starts_with('.'));
    let year = day.len().checked_sub(6).map(|year| day.split_at(year));
    let far = year.is_some_and(|(year, rest)| shape(rest) == "-00-00" && is_far(year));
    is_clock && far && text.parse::<Timestamp>().is_err()
}

/// Whether times of this year may be unreadable: it is 9999, or has not four digits.
fn is_far(year: &str) -> bool {
    year.starts_with('-') || year.len() != 4 || year == "9999"
}

/// The text with each digit as 0.
fn shape(text: &str) -> String {
    text.replace(|c: char| c.is_ascii_digit(), "0")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn fed(text: &str, chunk: usize) -> String {
        let mut texts = Texts::default();
        let fed: Vec<u8> = text
            .as_bytes()
            .chunks(chunk)
            .flat_map(|part| texts.feed(part))
            .collect();
        String::from_utf8(fed).unwrap()
    }

    #[rstest]
    #[case::last_day("9999-12-31T12:00:00Z")]
    #[case::five_digits("10000-01-01T22:59:59Z")]
    #[case::before_the_year_0("-001-12-31T23:59:59Z")]
    fn time_that_nobody_can_read_is_replaced(#[case] time: &str) {
        assert!(time.parse::<Timestamp>().is_err());
        let entry = |time: &str| format!(r#"{{"time":"{time}","manager":"x"}}"#);
        for chunk in [1, 7, usize::MAX] {
            assert_eq!(fed(&entry(time), chunk), entry("9999-12-30T00:00:00Z"));
        }
        assert!("9999-12-30T00:00:00Z".parse::<Timestamp>().is_ok());
    }

    #[rstest]
    #[case::nothing("")]
    #[case::times(r#"{"a":"2026-01-01T00:00:00Z","b":"2026-01-01T00:00:00.000001Z","c":"0001-01-01T00:00:00+00:00"}"#)]
    #[case::beginnings_of_times(
        r#"{"2026-":"T","a":"","b":"10.0.0.1","c":"2026-01-01T00:00:00Z \" 9999-12-31T12:00:00Z"}"#
    )]
    #[case::escapes(r#"{"a":"\\","b":"\"9999-12-31T12:00:00Z","c":"1\u0041"}"#)]
    #[case::what_go_takes_for_no_time(
        r#"["2026-01-01T00:00:00","2026-02-30T00:00:00Z","2026-08-22T9:00:01Z","9999-12-31T12:00Z"]"#
    )]
    #[case::long_numbers(r#"["11111111111111111111111111111111111111111111111111111111111"]"#)]
    #[case::several_documents("{\"type\":\"ADDED\"}\n{\"type\":\"DELETED\"}\n")]
    fn all_else_stays_to_the_byte(#[case] text: &str) {
        for chunk in [1, 3, usize::MAX] {
            assert_eq!(fed(text, chunk), text);
        }
    }
}
