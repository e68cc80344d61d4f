//! EC2's pages: `MaxResults` from 5 to 1000, and an opaque token that leads on.

use base64::{Engine as _, prelude::BASE64_STANDARD};

use crate::wire::error::AwsError;
use crate::wire::params::Params;

/// The items of the page that is asked for, and the token of the next one. `items` have their ids, in ascending order.
///
/// # Errors
/// A size out of range, a token that is none.
pub(crate) fn page<T>(params: &Params, items: Vec<(String, T)>) -> Result<(Vec<T>, Option<String>), AwsError> {
    let size: Option<usize> = params.number("MaxResults")?;
    if size.is_some_and(|size| !(5..=1000).contains(&size)) {
        let given = params.text("MaxResults").unwrap_or_default();
        let message =
            format!("Value ( {given} ) for parameter maxResults is invalid. Expecting a value from 5 to 1000.");
        return Err(AwsError::bad("InvalidParameterValue", message));
    }
    let after = match params.text("NextToken").filter(|token| !token.is_empty()) {
        Some(token) => Some(read(token).ok_or_else(|| AwsError::bad("InvalidNextToken", "The token is not valid."))?),
        None => None,
    };
    let mut rest = items
        .into_iter()
        .filter(|(id, _)| after.as_ref().is_none_or(|after| id > after))
        .peekable();
    let (mut shown, mut last) = (Vec::new(), String::new());
    while shown.len() < size.unwrap_or(1000) {
        let Some((id, item)) = rest.next() else { break };
        last = id;
        shown.push(item);
    }
    let next = rest.peek().map(|_| BASE64_STANDARD.encode(format!("after {last}")));
    Ok((shown, next))
}

fn read(token: &str) -> Option<String> {
    let text = String::from_utf8(BASE64_STANDARD.decode(token).ok()?).ok()?;
    text.strip_prefix("after ").map(str::to_owned)
}
