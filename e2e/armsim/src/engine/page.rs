//! Pages of a list: `value`, `nextLink`, `$top` and `$skipToken`.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::error::ArmError;
use super::kind::{Call, Reply};

/// One page of `items` = (key, item), which are in the order of keys; only what is on the page is shown. `size` is the
/// usual page, `$top` may change it.
///
/// The token holds the last key shown, so that a page is right even if the list has changed meanwhile.
pub(crate) fn page<T>(
    call: &Call<'_>,
    items: Vec<(String, T)>,
    size: usize,
    show: impl Fn(T) -> Value,
) -> Result<Reply, ArmError> {
    let wrong = |name: &str| {
        ArmError::gateway(
            400,
            "InvalidQueryParameter",
            format!("The query parameter '{name}' is invalid."),
        )
    };
    let size = match call.parameter("$top") {
        Some(top) => top.parse().ok().filter(|top| *top > 0).ok_or_else(|| wrong("$top"))?,
        None => size.max(1),
    };
    let after = match call.parameter("$skipToken") {
        Some(token) => {
            let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|_| wrong("$skipToken"))?;
            Some(String::from_utf8(bytes).map_err(|_| wrong("$skipToken"))?)
        }
        None => None,
    };
    let start = after.map_or(0, |after| items.partition_point(|(key, _)| *key <= after));
    let end = start.saturating_add(size).min(items.len());
    let more = end < items.len();
    let last = items
        .get(end.wrapping_sub(1))
        .filter(|_| more)
        .map(|(key, _)| key.clone());
    let shown: Vec<Value> = items
        .into_iter()
        .skip(start)
        .take(size)
        .map(|(_, item)| show(item))
        .collect();
    let rows = u32::try_from(shown.len()).ok();
    let mut body = json!({ "value": shown });
    if let Some(last) = last {
        let mut link = format!("{}?api-version={}", call.url, call.api_version);
        // Whatever else was asked for, such as $top, holds for the next page too.
        for (name, value) in &call.query {
            if !["api-version", "$skiptoken"].contains(&name.to_ascii_lowercase().as_str()) {
                let value: String = url::form_urlencoded::byte_serialize(value.as_bytes()).collect();
                link.push_str(&format!("&{name}={value}"));
            }
        }
        link.push_str(&format!("&$skipToken={}", URL_SAFE_NO_PAD.encode(last)));
        body["nextLink"] = json!(link);
    }
    let mut reply = Reply::new(200).body(body);
    reply.rows = rows;
    Ok(reply)
}
