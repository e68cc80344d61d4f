//! Hosted zones, which others make.

use hyperlink_engine::client::Reconcile;

use super::Route53;
use super::hosted_zone::HostedZone;
use super::names::plain;
use crate::api::action::Action;
use crate::api::error::AwsError;
use crate::api::pages::Page;
use crate::api::request::ServiceRequest;
use crate::wire::form::Form;
use crate::wire::xml::{Element, Malformed};

/// How many zones a page has at most.
const PAGE: &str = "100";

impl Route53 {
    /// Lists all hosted zones of the account.
    ///
    /// # Errors
    /// AWS's.
    pub async fn hosted_zones(&self, reconcile: Reconcile) -> Result<Vec<HostedZone>, AwsError> {
        let request = |next: &Form| {
            let query = Form::default().with("maxitems", PAGE).followed_by(next);
            ServiceRequest::get(Action::ListHostedZones, &["hostedzone"], query)
        };
        self.0.pages(reconcile, request, zones).await
    }
}

fn zones(root: &Element) -> Result<Page<HostedZone>, Malformed> {
    let items = root.items("HostedZones", "HostedZone").map(|item| {
        let id = item.required("Id")?;
        let config = item.child("Config");
        Ok(HostedZone {
            id: id.strip_prefix("/hostedzone/").unwrap_or(&id).to_owned(),
            name: plain(&item.required("Name")?),
            private: config.map_or(Ok(false), |config| config.flag("PrivateZone"))?,
        })
    });
    let items = items.collect::<Result<_, _>>()?;
    let is_truncated = root.flag("IsTruncated")?;
    let next = is_truncated.then(|| root.required("NextMarker")).transpose()?;
    Ok(Page::new(items, "marker", next))
}
