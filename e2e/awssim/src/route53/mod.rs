//! Route 53: private hosted zones and their records.

mod batch;
pub(crate) mod names;
mod records;
pub(crate) mod zone;
mod zones;

use http::Method;

use crate::engine::call::{Answered, Call};
use crate::wire::error::AwsError;
use crate::wire::xml::Xml;

/// What a path asks for: the action and the id in it.
pub(crate) fn route(method: &Method, path: &str) -> Option<(&'static str, String)> {
    let rest = path.strip_prefix("/2013-04-01/")?;
    let parts: Vec<&str> = rest.trim_end_matches('/').split('/').collect();
    let (action, id) = match (method, &parts[..]) {
        (&Method::GET, ["hostedzone"]) => ("ListHostedZones", ""),
        (&Method::GET, ["hostedzonesbyname"]) => ("ListHostedZonesByName", ""),
        (&Method::GET, ["hostedzonesbyvpc"]) => ("ListHostedZonesByVPC", ""),
        (&Method::GET, ["hostedzone", id]) => ("GetHostedZone", *id),
        (&Method::GET, ["hostedzone", id, "rrset"]) => ("ListResourceRecordSets", *id),
        (&Method::POST, ["hostedzone", id, "rrset"]) => ("ChangeResourceRecordSets", *id),
        (&Method::GET, ["change", id]) => ("GetChange", *id),
        _ => return None,
    };
    Some((action, id.to_owned()))
}

/// Carries out a call; `id` is the one in its path.
pub(crate) fn answer(call: &mut Call<'_>, id: &str, body: &[u8]) -> Answered {
    match call.action.as_str() {
        "ListHostedZones" => zones::list_all(call),
        "ListHostedZonesByName" => zones::list_by_name(call),
        "ListHostedZonesByVPC" => zones::list_by_vpc(call),
        "GetHostedZone" => zones::get(call, id),
        "ListResourceRecordSets" => records::list_records(call, id),
        "ChangeResourceRecordSets" => batch::change(call, id, body),
        "GetChange" => batch::get_change(call, id),
        other => Err(AwsError::bad(
            "InvalidAction",
            format!("Could not find operation {other}"),
        )),
    }
}

/// The size of a page: at most, and unless given, AWS's limit.
fn max_items(call: &Call<'_>, most: usize) -> Result<usize, AwsError> {
    let size: usize = call
        .params
        .number("maxitems")
        .map_err(|_| invalid("maxitems is not a number"))?
        .unwrap_or(most);
    match size {
        0 => Err(invalid("maxitems must be at least 1")),
        _ => Ok(size.min(most)),
    }
}

fn invalid(message: &str) -> AwsError {
    AwsError::bad("InvalidInput", message)
}

/// The elements of a list that is cut off, or not.
fn truncated(is: bool, size: usize) -> Vec<Xml> {
    use crate::wire::xml::text;
    vec![text("IsTruncated", is), text("MaxItems", size)]
}
