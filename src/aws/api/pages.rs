//! Lists that come in pages: all pages are read, up to a limit.

use std::collections::HashSet;

use hyperlink_engine::client::Reconcile;
use hyperlink_engine::failure::Class;

use crate::api::client::Client;
use crate::api::error::AwsError;
use crate::api::request::ServiceRequest;
use crate::wire::form::Form;
use crate::wire::xml::{Element, Malformed};

/// The largest number of pages of one list.
const MAX_PAGES: usize = 200;
/// The largest number of items of one list.
const MAX_ITEMS: usize = 25_000;

/// One page of a list.
#[derive(Debug)]
pub(crate) struct Page<T> {
    /// What the page shows.
    pub(crate) items: Vec<T>,
    /// The parameters that the request for the next page has besides those of the first; none after the last page.
    pub(crate) next: Option<Form>,
}

impl<T> Page<T> {
    /// A page after which there is another one if AWS gives a token.
    pub(crate) fn new(items: Vec<T>, parameter: &'static str, token: Option<String>) -> Self {
        let next = token.map(|token| Form::default().with(parameter, token));
        Self { items, next }
    }
}

impl Client {
    /// Reads all pages. `request` makes the request for a page from its `next`. Too many pages or items are an error.
    pub(crate) async fn pages<T>(
        &self,
        reconcile: Reconcile,
        request: impl Fn(&Form) -> ServiceRequest + Send + Sync,
        parse: fn(&Element) -> Result<Page<T>, Malformed>,
    ) -> Result<Vec<T>, AwsError> {
        let (mut items, mut next, mut read) = (Vec::new(), Form::default(), HashSet::new());
        while read.len() < MAX_PAGES && read.insert(next.encoded()) {
            let page = self.read(reconcile, request(&next), parse).await?;
            items.extend(page.items);
            if items.len() > MAX_ITEMS {
                return Err(AwsError::own(Class::Invalid, "ListTooLong"));
            }
            match page.next {
                None => return Ok(items),
                Some(further) => next = further,
            }
        }
        Err(AwsError::own(Class::Down, "EndlessList"))
    }
}
