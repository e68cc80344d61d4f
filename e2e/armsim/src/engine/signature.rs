//! The signature that ARM puts on polling URLs: who has the URL as it was given out may ask it.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::route::OperationUrl;

/// What a polling URL's `t`, `c`, `s` and `h` are worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signature {
    /// As given out.
    Genuine,
    /// None of the four is there.
    Missing,
    /// Not what was given out for this operation.
    Changed,
}

/// With the others, what makes recorded URLs longer than 3,000 bytes.
static CERTIFICATE: LazyLock<String> = LazyLock::new(|| format!("MIIH{}", noise("certificate", 2571)));

/// The four parameters for the URL of an operation that is given out at `now`.
pub(crate) fn sign(operation: &str, url: OperationUrl, now: Timestamp) -> String {
    // .NET ticks: 100 ns since the year 1.
    let ticks = 621_355_968_000_000_000 + i128::from(now.as_microsecond()) * 10;
    let [certificate, signature, hash] = parts(operation, url, &ticks.to_string());
    format!("t={ticks}&c={certificate}&s={signature}&h={hash}")
}

/// Judges the parameters of a request.
pub(crate) fn judge(operation: &str, url: OperationUrl, query: &[(String, String)]) -> Signature {
    let given = |name: &str| {
        query
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    };
    let all = [given("t"), given("c"), given("s"), given("h")];
    if all.iter().all(Option::is_none) {
        return Signature::Missing;
    }
    let [Some(ticks), rest @ ..] = all else {
        return Signature::Changed;
    };
    let right = parts(operation, url, ticks);
    if rest.iter().zip(&right).all(|(given, right)| *given == Some(right)) {
        Signature::Genuine
    } else {
        Signature::Changed
    }
}

fn parts(operation: &str, url: OperationUrl, ticks: &str) -> [String; 3] {
    let seed = format!("{}{url:?}{ticks}", operation.to_ascii_lowercase());
    [
        CERTIFICATE.clone(),
        noise(&format!("s{seed}"), 342),
        noise(&format!("h{seed}"), 43),
    ]
}

/// `length` characters of base64 that depend on nothing but `seed`.
fn noise(seed: &str, length: usize) -> String {
    let mut text = String::with_capacity(length + 43);
    let mut block = Sha256::digest(seed.as_bytes());
    while text.len() < length {
        URL_SAFE_NO_PAD.encode_string(block, &mut text);
        block = Sha256::digest(block);
    }
    text.truncate(length);
    text
}
