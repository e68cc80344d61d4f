//! Recordings of HTTP traffic as one list of exchanges, whoever recorded them.
//!
//! Reads go-vcr and vcrpy (YAML, several documents or one; JSON), Ruby's VCR, Azure PowerShell's session records, those of
//! Microsoft's Java libraries and the JSON of the SDKs' test proxy. Bodies come out as text: base64 and gzip are undone.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use regex::Regex;
use serde_json::{Map, Value};

use super::names::pattern;

/// What stands for the cloud's host in records of Java's libraries.
static LOCAL: LazyLock<Regex> = LazyLock::new(|| pattern(r"http://localhost:\d+"));
/// Where paths without a host belong.
const PUBLIC_CLOUD: &str = "https://management.azure.com";

/// Why a text is no recording.
#[derive(Debug, thiserror::Error)]
pub enum CassetteError {
    /// Neither YAML nor JSON.
    #[error("neither YAML nor JSON: {0}")]
    Syntax(String),
    /// Of a form that nobody here reads.
    #[error(
        "no recording: neither `interactions` (go-vcr, vcrpy), `http_interactions` (VCR), `Entries` (PowerShell, test proxy) \
         nor `networkCallRecords` (Java)"
    )]
    Form,
    /// An exchange without the parts that all have.
    #[error("exchange {0}: {1} is missing")]
    Exchange(usize, &'static str),
}

/// Headers and body of one direction.
#[derive(Clone, Debug, Default)]
pub(super) struct Message {
    /// By lower-case name; several values are joined by commas.
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: String,
}

impl Message {
    /// A header's value, empty if there is none.
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// The body as JSON; null where it is empty or something else.
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }
}

/// One recorded call and its answer.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    /// In upper case.
    pub(super) method: String,
    /// Absolute.
    pub(super) url: String,
    pub(super) sent: Message,
    /// Whether the recorder kept what was sent.
    pub(super) sent_is_known: bool,
    pub(super) status: u16,
    pub(super) got: Message,
}

impl Exchange {
    /// The path, as sent.
    pub(super) fn path(&self) -> &str {
        path(&self.url)
    }

    pub(super) fn host(&self) -> &str {
        let rest = self.url.split_once("://").map_or("", |(_, rest)| rest);
        rest.split(['/', '?']).next().unwrap_or_default()
    }

    /// A parameter of the query, decoded.
    pub(super) fn parameter(&self, name: &str) -> Option<String> {
        let (_, query) = self.url.split_once('?')?;
        url::form_urlencoded::parse(query.as_bytes())
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.into_owned())
    }

    /// When it was answered, if the recorder kept that.
    pub(super) fn date(&self) -> Option<Timestamp> {
        let date = rfc2822::parse(self.got.header("date")).ok()?;
        Some(date.timestamp())
    }

    pub(super) fn succeeded(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// The path of an absolute URL, without its query.
pub(super) fn path(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = rest.find('/').and_then(|at| rest.get(at..)).unwrap_or_default();
    path.split('?').next().unwrap_or_default()
}

/// Reads one exchange; the error names what it lacks.
type Read = fn(&Value) -> Result<Exchange, &'static str>;

/// The list that each form keeps its exchanges in.
const FORMS: [(&str, Read); 4] = [
    ("interactions", vcr_exchange),
    ("http_interactions", vcr_exchange),
    ("Entries", session_exchange),
    ("networkCallRecords", java_exchange),
];

/// Reads a recording of any of the known forms.
pub(super) fn parse(text: &str) -> Result<Vec<Exchange>, CassetteError> {
    let text = text.trim_start_matches('\u{feff}');
    let mut exchanges = Vec::new();
    let mut known = false;
    for document in documents(text)? {
        for (list, read) in FORMS {
            let Some(entries) = document[list].as_array() else {
                continue;
            };
            known = true;
            for entry in entries {
                let number = exchanges.len() + 1;
                exchanges.push(read(entry).map_err(|what| CassetteError::Exchange(number, what))?);
            }
            if entries.iter().any(|entry| entry.get("EncodedRequestUri").is_some()) {
                in_time(&mut exchanges);
            }
        }
    }
    if known { Ok(exchanges) } else { Err(CassetteError::Form) }
}

/// Session records of PowerShell are kept by method and URL; what was answered first goes first. One without a date stays
/// behind the one before it.
fn in_time(exchanges: &mut Vec<Exchange>) {
    let mut last = Timestamp::MIN;
    let mut dated: Vec<(Timestamp, Exchange)> = Vec::with_capacity(exchanges.len());
    for exchange in exchanges.drain(..) {
        last = exchange.date().unwrap_or(last);
        dated.push((last, exchange));
    }
    dated.sort_by_key(|(date, _)| *date);
    exchanges.extend(dated.into_iter().map(|(_, exchange)| exchange));
}

fn documents(text: &str) -> Result<Vec<Value>, CassetteError> {
    if text.trim_start().starts_with('{') {
        let json: Result<Value, _> = serde_json::from_str(text);
        return json
            .map(|document| vec![document])
            .map_err(|error| CassetteError::Syntax(error.to_string()));
    }
    // Python's and Go's writers take `y` for a text; a binary body stays in base64, for it may be gzip.
    let options = serde_saphyr::options! {
        strict_booleans: true,
        ignore_binary_tag_for_string: true,
        with_snippet: false,
    };
    serde_saphyr::from_multiple_with_options(text, options).map_err(|error| CassetteError::Syntax(error.to_string()))
}

/// go-vcr writes `url`, `code` and a plain body, vcrpy and VCR `uri`, `status.code` and `body.string`.
fn vcr_exchange(entry: &Value) -> Result<Exchange, &'static str> {
    let (request, response) = (&entry["request"], &entry["response"]);
    let status = [&response["code"], &response["status"]["code"], &response["status"]];
    Ok(Exchange {
        method: text(&request["method"]).ok_or("the method")?.to_ascii_uppercase(),
        url: text(&request["url"])
            .or_else(|| text(&request["uri"]))
            .ok_or("the URL")?,
        sent: message(&request["headers"], &request["body"]),
        sent_is_known: true,
        status: status.into_iter().find_map(code).ok_or("the status")?,
        got: message(&response["headers"], &response["body"]),
    })
}

fn session_exchange(entry: &Value) -> Result<Exchange, &'static str> {
    let encoded = || {
        let bytes = STANDARD.decode(entry["EncodedRequestUri"].as_str()?).ok()?;
        String::from_utf8(bytes).ok()
    };
    let uri = text(&entry["RequestUri"]).filter(|uri| !uri.is_empty());
    let uri = uri.or_else(encoded).ok_or("the URL")?;
    Ok(Exchange {
        method: text(&entry["RequestMethod"]).ok_or("the method")?.to_ascii_uppercase(),
        url: if uri.starts_with('/') {
            format!("{PUBLIC_CLOUD}{uri}")
        } else {
            uri
        },
        sent: message(&entry["RequestHeaders"], &entry["RequestBody"]),
        sent_is_known: true,
        status: code(&entry["StatusCode"]).ok_or("the status")?,
        got: message(&entry["ResponseHeaders"], &entry["ResponseBody"]),
    })
}

/// Java's libraries leave out what was sent and the cloud's host, and keep status and body among the answer's headers.
fn java_exchange(entry: &Value) -> Result<Exchange, &'static str> {
    let answer = entry["Response"].as_object().ok_or("the answer")?;
    let headers = answer
        .iter()
        .filter(|(name, _)| !["StatusCode", "Body"].contains(&name.as_str()));
    let in_cloud = |text: &str| LOCAL.replace_all(text, PUBLIC_CLOUD).into_owned();
    let headers: Map<String, Value> = headers
        .map(|(name, value)| (name.clone(), Value::String(in_cloud(&plain(value)))))
        .collect();
    let body = answer.get("Body").map(|body| Value::String(in_cloud(&plain(body))));
    Ok(Exchange {
        method: text(&entry["Method"]).ok_or("the method")?.to_ascii_uppercase(),
        url: in_cloud(entry["Uri"].as_str().ok_or("the URL")?),
        sent: message(&entry["Headers"], &Value::Null),
        sent_is_known: false,
        status: answer.get("StatusCode").and_then(code).ok_or("the status")?,
        got: message(&Value::Object(headers), &body.unwrap_or_default()),
    })
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// 200, `"200"` or `"200 OK"`.
fn code(value: &Value) -> Option<u16> {
    let text = value.as_str().unwrap_or_default();
    let number = value.as_u64().or_else(|| text.split(' ').next()?.parse().ok())?;
    u16::try_from(number).ok().filter(|code| (100..600).contains(code))
}

fn message(headers: &Value, body: &Value) -> Message {
    let mut known = BTreeMap::new();
    for (name, value) in headers.as_object().into_iter().flatten() {
        let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        let values: Vec<String> = values.iter().map(plain).collect();
        known.insert(name.to_ascii_lowercase(), values.join(","));
    }
    Message {
        headers: known,
        body: body_text(body),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn body_text(body: &Value) -> String {
    match body {
        Value::Null => String::new(),
        Value::String(text) => match python_bytes(text) {
            // Some recorders did it twice.
            Some(inner) => decoded(python_bytes(&inner).as_deref().unwrap_or(&inner)),
            None => decoded(text),
        },
        Value::Object(wrapped) if wrapped.contains_key("string") => body_text(&wrapped["string"]),
        Value::Object(wrapped) if wrapped.contains_key("base64_string") => body_text(&wrapped["base64_string"]),
        other => other.to_string(),
    }
}

/// The text in `b'…'`, which old clients of vcrpy recorded in place of what they sent.
fn python_bytes(text: &str) -> Option<String> {
    let quoted = |quote: char| text.strip_prefix('b')?.strip_prefix(quote)?.strip_suffix(quote);
    let inner = quoted('\'').or_else(|| quoted('"'))?;
    Some(inner.replace("\\'", "'").replace("\\\\", "\\"))
}

/// The text behind base64 and gzip; every other text as it is. What is JSON is not base64.
fn decoded(text: &str) -> String {
    let packed: String = text.split_whitespace().collect();
    let bytes = Some(packed)
        .filter(|packed| packed.len() >= 8)
        .and_then(|packed| STANDARD.decode(packed).ok());
    let Some(bytes) = bytes else { return text.to_owned() };
    let mut unpacked = String::new();
    let gzip = bytes.starts_with(&[0x1f, 0x8b]);
    if gzip
        && flate2::read::MultiGzDecoder::new(bytes.as_slice())
            .read_to_string(&mut unpacked)
            .is_ok()
    {
        return unpacked;
    }
    let json = |text: &String| serde_json::from_str::<Value>(text).is_ok_and(|value| !value.is_number());
    String::from_utf8(bytes)
        .ok()
        .filter(json)
        .unwrap_or_else(|| text.to_owned())
}
