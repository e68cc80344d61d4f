//! Cuts JSON that is nested too deep, as it arrives. The API server stores such objects, but serde_json gives up at 128
//! levels, and then one object of a tenant would hide all others in its list.

use bytes::Bytes;
use http::Response;
use http_body::Body;
use http_body_util::BodyExt;

/// The most levels that are kept: what lies deeper becomes null. Kubernetes and HyperShift write at most half as many.
const MOST: usize = 96;

/// The response, in which everything that is nested too deep is null.
pub(crate) fn cut<B: Body<Data = Bytes>>(response: Response<B>) -> Response<impl Body<Data = Bytes, Error = B::Error>> {
    let mut cutter = Cutter::default();
    response.map(|body| body.map_frame(move |body_frame| body_frame.map_data(|data| cutter.feed(data))))
}

/// The position in a stream of JSON documents.
#[derive(Debug, Default)]
struct Cutter {
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Cutter {
    /// The next bytes without what is too deep.
    fn feed(&mut self, data: Bytes) -> Bytes {
        // Nothing is copied as long as nothing is cut.
        let mut remaining: Option<Vec<u8>> = None;
        for (at, byte) in data.iter().enumerate() {
            let outside = self.depth <= MOST;
            self.step(*byte);
            let begins = outside && self.depth > MOST;
            if begins || !outside {
                let remaining = remaining.get_or_insert_with(|| data[..at].to_vec());
                remaining.extend_from_slice(if begins { b"null" } else { b"" });
            } else if let Some(remaining) = &mut remaining {
                remaining.push(*byte);
            }
        }
        remaining.map_or(data, Bytes::from)
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn fed(text: &str, chunk: usize) -> String {
        let mut cutter = Cutter::default();
        let chunks = text.as_bytes().chunks(chunk);
        let fed: Vec<u8> = chunks
            .flat_map(|chunk| cutter.feed(Bytes::copy_from_slice(chunk)))
            .collect();
        String::from_utf8(fed).unwrap()
    }

    fn nested(levels: usize) -> String {
        format!("{}1{}", "{\"f:a\":[".repeat(levels / 2), "]}".repeat(levels / 2))
    }

    #[rstest]
    #[case::in_one_piece(usize::MAX)]
    #[case::in_pieces(7)]
    #[case::byte_by_byte(1)]
    fn object_that_is_nested_too_deep_hides_no_other(#[case] chunk: usize) {
        let deep = format!(r#"{{"items":[{{"a":{},"b":"}}{{\"["}},{{"c":2}}]}}"#, nested(20_000));
        assert!(serde_json::from_str::<Value>(&deep).is_err());
        let read: Value = serde_json::from_str(&fed(&deep, chunk)).unwrap();
        assert_eq!(
            (&read["items"][0]["b"], &read["items"][1]["c"]),
            (&json!("}{\"["), &json!(2))
        );
    }

    #[rstest]
    #[case::nothing("")]
    #[case::brackets_in_strings(r#"{"a":"{[\"{[\\"}{"b":[]}"#)]
    #[case::several_documents("{\"type\":\"ADDED\"}\n{\"type\":\"DELETED\"}\n")]
    #[case::no_json("]]]} no json {")]
    fn what_is_not_too_deep_stays_to_the_byte(#[case] text: &str) {
        for chunk in [1, 3, usize::MAX] {
            assert_eq!(fed(text, chunk), text);
            let deepest = nested(MOST);
            assert_eq!(fed(&deepest, chunk), deepest);
        }
    }
}
