//! Signature Version 4: whether a request is signed by who it says, for this service, now. Written from AWS's
//! description of it, and independent of any client's signer.

use aws_lc_rs::hmac;
use bytes::Bytes;
use http::{HeaderMap, Request};
use jiff::{SignedDuration, Timestamp, civil};
use sha2::{Digest as _, Sha256};

use super::error::AwsError;
use crate::engine::service::Service;
use crate::engine::state::State;
use crate::iam::caller::{Caller, find_key};

/// The algorithm; asymmetric signing is not taken.
const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// An `Authorization` header, apart.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Authorization {
    pub(crate) access_key_id: String,
    date: String,
    pub(crate) region: String,
    pub(crate) service: String,
    signed_headers: String,
    signature: String,
}

impl Authorization {
    /// `None` where there is none, or not of this form.
    pub(crate) fn read(headers: &HeaderMap) -> Option<Self> {
        let header = headers.get("authorization")?.to_str().ok()?;
        let rest = header.strip_prefix(ALGORITHM)?;
        let member = |name: &str| {
            let members = rest.split(',').map(str::trim);
            let found = members
                .filter_map(|member| member.strip_prefix(name)?.strip_prefix('='))
                .next();
            found.map(str::to_owned)
        };
        let credential = member("Credential")?;
        let scope: Vec<&str> = credential.split('/').collect();
        let [access_key_id, date, region, service, "aws4_request"] = scope[..] else {
            return None;
        };
        Some(Self {
            access_key_id: access_key_id.to_owned(),
            date: date.to_owned(),
            region: region.to_owned(),
            service: service.to_owned(),
            signed_headers: member("SignedHeaders")?,
            signature: member("Signature")?,
        })
    }
}

/// Verifies a request's signature.
///
/// # Errors
/// The code that the service has for what is wrong.
pub(crate) fn verify(
    state: &State,
    now: Timestamp,
    service: Service,
    authorization: &Authorization,
    request: &Request<Bytes>,
) -> Result<Caller, AwsError> {
    let ec2 = service == Service::Ec2;
    let key = find_key(state, &authorization.access_key_id).ok_or_else(|| unknown_key(ec2))?;
    let headers = request.headers();
    let stamp = header(headers, "x-amz-date").unwrap_or_default();
    let signed = time(stamp).ok_or_else(|| incomplete("X-Amz-Date"))?;
    if !stamp.starts_with(&authorization.date) {
        return Err(mismatch(
            "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date",
        ));
    }
    match (&key.token, header(headers, "x-amz-security-token")) {
        (None, None) => {}
        (Some(token), Some(given)) if token == given => {}
        _ => return Err(unknown_key(ec2)),
    }
    let names: Vec<&str> = authorization.signed_headers.split(';').collect();
    let mut carried = ["host", "x-amz-date"]
        .into_iter()
        .chain(key.token.is_some().then_some("x-amz-security-token"));
    if let Some(missing) = carried.find(|name| !names.contains(name)) {
        return Err(mismatch(&format!(
            "'{missing}' must be a 'SignedHeader' in the AWS Authorization."
        )));
    }
    let expected = signature(&key.secret, authorization, request, stamp).ok_or_else(|| incomplete("SignedHeaders"))?;
    if expected != authorization.signature {
        let message = "The request signature we calculated does not match the signature you provided. Check your AWS \
                       Secret Access Key and signing method. Consult the service documentation for details.";
        return Err(match ec2 {
            true => AwsError::new(
                401,
                "AuthFailure",
                "AWS was not able to validate the provided access credentials",
            ),
            false => mismatch(message),
        });
    }
    let skew = SignedDuration::from_mins(if ec2 { 5 } else { 15 });
    let callers_now = now.duration_since(signed) - state.callers_behind;
    if callers_now.abs() > skew {
        return Err(match ec2 {
            true => AwsError::bad("RequestExpired", "Request has expired."),
            false => mismatch(&format!(
                "Signature expired: {stamp} is not within {} min of {now}",
                skew.as_mins()
            )),
        });
    }
    if key.expires.is_some_and(|expires| expires <= now) {
        let message = "The security token included in the request is expired";
        return Err(match ec2 {
            true if state.switches.ec2_expired_code == "RequestExpired" => {
                AwsError::bad("RequestExpired", "Request has expired.")
            }
            true => AwsError::bad("ExpiredToken", message),
            false => AwsError::new(403, "ExpiredToken", message),
        });
    }
    Ok(key.caller)
}

fn unknown_key(ec2: bool) -> AwsError {
    match ec2 {
        true => AwsError::new(
            401,
            "AuthFailure",
            "AWS was not able to validate the provided access credentials",
        ),
        false => AwsError::new(
            403,
            "InvalidClientTokenId",
            "The security token included in the request is invalid.",
        ),
    }
}

fn mismatch(message: &str) -> AwsError {
    AwsError::new(403, "SignatureDoesNotMatch", message)
}

fn incomplete(what: &str) -> AwsError {
    let message = format!("Authorization header requires '{what}'.");
    AwsError::new(403, "IncompleteSignature", message)
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// `20261127T054153Z`.
fn time(stamp: &str) -> Option<Timestamp> {
    let parsed = civil::DateTime::strptime("%Y%m%dT%H%M%SZ", stamp).ok()?;
    parsed
        .to_zoned(jiff::tz::TimeZone::UTC)
        .ok()
        .map(|zoned| zoned.timestamp())
}

fn hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes())
        .as_ref()
        .to_vec()
}

/// The signature that the request should have; `None` where a signed header is missing.
fn signature(secret: &str, authorization: &Authorization, request: &Request<Bytes>, stamp: &str) -> Option<String> {
    let Authorization {
        date, region, service, ..
    } = authorization;
    let canonical = canonical_request(&authorization.signed_headers, request)?;
    let scope = format!("{date}/{region}/{service}/aws4_request");
    let text = format!("{ALGORITHM}\n{stamp}\n{scope}\n{}", hash(canonical.as_bytes()));
    let mut key = mac(format!("AWS4{secret}").as_bytes(), date);
    for part in [region.as_str(), service, "aws4_request"] {
        key = mac(&key, part);
    }
    Some(hex(&mac(&key, &text)))
}

fn canonical_request(signed_headers: &str, request: &Request<Bytes>) -> Option<String> {
    let mut headers = String::new();
    for name in signed_headers.split(';') {
        let values: Vec<&str> = request
            .headers()
            .get_all(name)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .collect();
        let value = match (values.is_empty(), name) {
            (false, _) => values.join(","),
            (true, "host") => request.uri().authority()?.to_string(),
            (true, _) => return None,
        };
        let single_spaced: Vec<&str> = value.split(' ').filter(|part| !part.is_empty()).collect();
        headers.push_str(&format!("{name}:{}\n", single_spaced.join(" ")));
    }
    let path: Vec<String> = request.uri().path().split('/').map(encode).collect();
    let path = path.join("/");
    let query = canonical_query(request.uri().query().unwrap_or_default());
    let method = request.method();
    let body = hash(request.body());
    Some(format!(
        "{method}\n{path}\n{query}\n{headers}\n{signed_headers}\n{body}"
    ))
}

fn canonical_query(query: &str) -> String {
    let mut pairs: Vec<String> = url::form_urlencoded::parse(query.as_bytes())
        .map(|(name, value)| format!("{}={}", encode(&name), encode(&value)))
        .collect();
    pairs.sort_unstable();
    pairs.join("&")
}

/// Percent-encoding of all but RFC 3986's unreserved characters.
fn encode(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
