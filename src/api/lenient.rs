//! Reads objects that others write. What has an unexpected shape counts as absent, so that one strange object never
//! stops the watch that delivers all others.

use serde::de::{Deserialize, DeserializeOwned, Deserializer, IgnoredAny};

#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Either<T> {
    Good(T),
    Bad(IgnoredAny),
}

/// The value, or the default if it has another shape.
pub(super) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    Ok(match Either::deserialize(deserializer)? {
        Either::Good(value) => value,
        Either::Bad(_) => T::default(),
    })
}

/// The items that have the expected shape.
pub(super) fn good_items<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let items: Vec<Either<T>> = or_default(deserializer)?;
    let good = items.into_iter().filter_map(|item| match item {
        Either::Good(value) => Some(value),
        Either::Bad(_) => None,
    });
    Ok(good.collect())
}

/// All items, with the default in place of one that has another shape, so that positions stay.
pub(super) fn positioned_items<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let items: Vec<Either<T>> = or_default(deserializer)?;
    let items = items.into_iter().map(|item| match item {
        Either::Good(value) => value,
        Either::Bad(_) => T::default(),
    });
    Ok(items.collect())
}
