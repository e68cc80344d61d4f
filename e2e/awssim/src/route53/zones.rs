//! Lists of hosted zones, and one zone.

use super::zone::HostedZone;
use super::{invalid, max_items, names, truncated};
use crate::engine::call::{Answered, Call};
use crate::wire::error::AwsError;
use crate::wire::xml::{Xml, group, list, text};

fn show(id: &str, zone: &HostedZone) -> Vec<Xml> {
    let mut config = vec![text("PrivateZone", zone.private)];
    if !zone.comment.is_empty() {
        config.insert(0, text("Comment", &zone.comment));
    }
    vec![
        text("Id", format!("/hostedzone/{id}")),
        text("Name", names::shown(&zone.name)),
        text("CallerReference", format!("reference-of-{id}")),
        group("Config", config),
        text("ResourceRecordSetCount", zone.records.len()),
    ]
}

pub(super) fn list_all(call: &mut Call<'_>) -> Answered {
    call.authorize(&["*".to_owned()])?;
    let size = max_items(call, 100)?;
    let marker = call.params.text("marker").unwrap_or_default();
    if !marker.is_empty() && !call.state.zones.contains_key(marker) {
        return Err(AwsError::bad(
            "InvalidInput",
            format!("The marker {marker} is not a hosted zone"),
        ));
    }
    let own = call
        .state
        .zones
        .iter()
        .filter(|(_, zone)| zone.account == call.account());
    let rest: Vec<_> = own.filter(|(id, _)| id.as_str() >= marker).collect();
    let shown = list(
        "HostedZones",
        "HostedZone",
        rest.iter().take(size).map(|(id, zone)| show(id, zone)),
    );
    let mut answer = vec![shown];
    if !marker.is_empty() {
        answer.push(text("Marker", marker));
    }
    answer.extend(truncated(rest.len() > size, size));
    answer.extend(rest.get(size).map(|(id, _)| text("NextMarker", id)));
    Ok(answer)
}

pub(super) fn list_by_name(call: &mut Call<'_>) -> Answered {
    call.authorize(&["*".to_owned()])?;
    let size = max_items(call, 100)?;
    let start = call
        .params
        .text("dnsname")
        .map(|name| names::order(&names::plain(name)));
    let from = call.params.text("hostedzoneid").unwrap_or_default();
    if !from.is_empty() && start.is_none() {
        return Err(invalid("hostedzoneid needs dnsname"));
    }
    let key = |id: &str, zone: &HostedZone| (names::order(&zone.name), id.to_owned());
    let first = (start.unwrap_or_default(), from.to_owned());
    let own = call
        .state
        .zones
        .iter()
        .filter(|(_, zone)| zone.account == call.account());
    let mut rest: Vec<_> = own.filter(|(id, zone)| key(id, zone) >= first).collect();
    rest.sort_by_key(|(id, zone)| key(id, zone));
    let shown = list(
        "HostedZones",
        "HostedZone",
        rest.iter().take(size).map(|(id, zone)| show(id, zone)),
    );
    let mut answer = vec![shown];
    answer.extend(
        call.params
            .text("dnsname")
            .map(|name| text("DNSName", names::shown(&names::plain(name)))),
    );
    answer.extend(truncated(rest.len() > size, size));
    if let Some((id, zone)) = rest.get(size) {
        answer.extend([
            text("NextDNSName", names::shown(&zone.name)),
            text("NextHostedZoneId", id),
        ]);
    }
    Ok(answer)
}

pub(super) fn list_by_vpc(call: &mut Call<'_>) -> Answered {
    call.authorize(&["*".to_owned()])?;
    call.allow("ec2:DescribeVpcs", &["*".to_owned()])?;
    let size = max_items(call, 100)?;
    let missing = |name: &str| AwsError::bad("InvalidInput", format!("{name} is required"));
    let vpc = call.params.text("vpcid").ok_or_else(|| missing("vpcid"))?;
    let region = call.params.text("vpcregion").ok_or_else(|| missing("vpcregion"))?;
    let known = call.state.vpcs.get(vpc).filter(|known| known.region == region);
    if known.is_none_or(|known| known.account != call.account()) {
        let message =
            format!("The VPC {vpc} in region {region} that you provided is not authorized to make the association.");
        return Err(AwsError::bad("InvalidVPCId", message));
    }
    let after = call.params.text("nexttoken").unwrap_or_default();
    let resolves = |zone: &HostedZone| zone.vpcs.iter().any(|known| known.id == vpc && known.region == region);
    let found = call
        .state
        .zones
        .iter()
        .filter(|(id, zone)| resolves(zone) && id.as_str() > after);
    let found: Vec<_> = found.collect();
    let shown = found.iter().take(size).map(|(id, zone)| {
        let owner = group("Owner", vec![text("OwningAccount", &zone.account)]);
        vec![text("HostedZoneId", id), text("Name", names::shown(&zone.name)), owner]
    });
    let mut answer = vec![
        list("HostedZoneSummaries", "HostedZoneSummary", shown),
        text("MaxItems", size),
    ];
    if found.len() > size {
        answer.extend(found.get(size - 1).map(|(id, _)| text("NextToken", id)));
    }
    Ok(answer)
}

pub(super) fn get(call: &mut Call<'_>, id: &str) -> Answered {
    call.authorize(&[call.zone_arn(id)])?;
    let zone = call.zone(id)?;
    let vpcs = zone
        .vpcs
        .iter()
        .map(|vpc| vec![text("VPCRegion", &vpc.region), text("VPCId", &vpc.id)]);
    Ok(vec![group("HostedZone", show(id, zone)), list("VPCs", "VPC", vpcs)])
}
