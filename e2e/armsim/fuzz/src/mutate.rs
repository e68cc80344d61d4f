//! Changes a JSON value as bytes say, so that most of it stays what it was.

use serde_json::{Value, json};

/// The bytes that are left.
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl Input<'_> {
    /// The next one; 0 when there are no more.
    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }
}

const TEXTS: [&str; 16] = [
    "",
    " ",
    "*",
    "/",
    "westus2",
    "Succeeded",
    "Static",
    "10.0.0.4",
    "10.0.0.0/24",
    "10.0.0.0/33",
    "::1/64",
    "global",
    "a/b",
    "\u{0}",
    "\u{1f600}",
    "/subscriptions/aaaaaaaa-0000-4000-8000-000000000001/resourceGroups/rg0/providers/Microsoft.Network/virtualNetworks/v0",
];

/// Up to three changes, each at a place that bytes choose; none for the byte 0.
pub(crate) fn mutate(value: &mut Value, input: &mut Input<'_>) {
    for _ in 0..input.byte() % 4 {
        change(value, input, 0);
    }
}

fn change(value: &mut Value, input: &mut Input<'_>, depth: usize) {
    let choice = usize::from(input.byte());
    let inside = match value {
        Value::Object(fields) if !fields.is_empty() && depth < 12 && choice % 8 != 7 => {
            let at = choice / 8 % fields.len();
            fields.values_mut().nth(at)
        }
        Value::Array(items) if !items.is_empty() && depth < 12 && choice % 8 != 7 => {
            let at = choice / 8 % items.len();
            items.get_mut(at)
        }
        _ => None,
    };
    match inside {
        Some(inside) => change(inside, input, depth + 1),
        None => replace(value, input),
    }
}

fn replace(value: &mut Value, input: &mut Input<'_>) {
    let (kind, detail) = (input.byte(), input.byte());
    *value = match kind % 14 {
        0 => Value::Null,
        1 => json!(detail),
        2 => json!(-1),
        3 => json!(u64::MAX),
        4 => json!(1e300),
        5 => json!(detail % 2 == 0),
        6 => json!(TEXTS[usize::from(detail) % TEXTS.len()]),
        7 => json!("n".repeat(usize::from(detail) * 4)),
        8 => json!([]),
        9 => json!({}),
        10 => json!([value.take()]),
        11 => twice(value.take(), detail),
        12 => without(value.take(), detail),
        _ => json!({"properties": value.take()}),
    };
}

/// An array with one of its items twice.
fn twice(mut value: Value, detail: u8) -> Value {
    if let Value::Array(items) = &mut value
        && !items.is_empty()
    {
        let item = items[usize::from(detail) % items.len()].clone();
        items.push(item);
    }
    value
}

/// An object or array with one of its members fewer.
fn without(mut value: Value, detail: u8) -> Value {
    match &mut value {
        Value::Object(fields) if !fields.is_empty() => {
            let name = fields.keys().nth(usize::from(detail) % fields.len()).cloned();
            name.map(|name| fields.remove(&name));
        }
        Value::Array(items) if !items.is_empty() => drop(items.remove(usize::from(detail) % items.len())),
        _ => {}
    }
    value
}
