//! Texts that others wrote: cut for the log, and checked for their form.

use uuid::Uuid;

/// Makes foreign text harmless for logs: no control characters, no blanks before it, limited length.
pub fn clean(text: &str, max_chars: usize) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .skip_while(|c| c.is_whitespace())
        .take(max_chars)
        .collect()
}

/// Whether a text is a UUID with its hyphens, as subscriptions' and clusters' ids are.
pub fn is_uuid(text: &str) -> bool {
    text.len() == 36 && Uuid::try_parse(text).is_ok()
}
