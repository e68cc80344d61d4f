//! EC2: endpoint services, endpoints, security groups, networks.

mod connections;
pub(crate) mod endpoint;
mod endpoint_create;
mod endpoint_modify;
pub(crate) mod endpoint_service;
mod endpoint_service_calls;
mod permissions;
pub(crate) mod rule;
pub(crate) mod security_group;
mod security_group_rules;
mod tagging;
pub(crate) mod vpc;

use jiff::Timestamp;

use crate::engine::call::{Answered, Call};
use crate::wire::error::AwsError;
use crate::wire::xml::{Xml, text};

/// Carries out a call.
pub(crate) fn answer(call: &mut Call<'_>) -> Answered {
    match call.action.as_str() {
        "AcceptVpcEndpointConnections" => connections::accept(call),
        "AuthorizeSecurityGroupEgress" => security_group_rules::authorize(call, true),
        "AuthorizeSecurityGroupIngress" => security_group_rules::authorize(call, false),
        "CreateSecurityGroup" => security_group::create(call),
        "CreateTags" => tagging::create(call),
        "CreateVpcEndpoint" => endpoint_create::create(call),
        "CreateVpcEndpointServiceConfiguration" => endpoint_service_calls::create(call),
        "DeleteSecurityGroup" => security_group::delete(call),
        "DeleteVpcEndpointServiceConfigurations" => endpoint_service_calls::delete(call),
        "DeleteVpcEndpoints" => endpoint_modify::delete(call),
        "DescribeNetworkInterfaces" => vpc::describe_interfaces(call),
        "DescribeSecurityGroups" => security_group::describe(call),
        "DescribeSubnets" => vpc::describe_subnets(call),
        "DescribeVpcEndpointConnections" => connections::describe(call),
        "DescribeVpcEndpointServiceConfigurations" => endpoint_service_calls::describe(call),
        "DescribeVpcEndpointServicePermissions" => permissions::describe(call),
        "DescribeVpcEndpoints" => endpoint_modify::describe(call),
        "DescribeVpcs" => vpc::describe_vpcs(call),
        "ModifyVpcEndpoint" => endpoint_modify::modify(call),
        "ModifyVpcEndpointServiceConfiguration" => endpoint_service_calls::modify(call),
        "ModifyVpcEndpointServicePermissions" => permissions::modify(call),
        "RejectVpcEndpointConnections" => connections::reject(call),
        "RevokeSecurityGroupEgress" => security_group_rules::revoke(call, true),
        "RevokeSecurityGroupIngress" => security_group_rules::revoke(call, false),
        other => {
            let message = format!("The action {other} is not valid for this web service.");
            Err(AwsError::bad("InvalidAction", message))
        }
    }
}

/// What a call answers that only succeeds.
fn returned() -> Vec<Xml> {
    vec![text("return", true)]
}

/// An item that failed in a call that succeeded.
fn unsuccessful(id: &str, error: &AwsError) -> Vec<Xml> {
    let error = vec![text("code", &error.code), text("message", &error.message)];
    vec![crate::wire::xml::group("error", error), text("resourceId", id)]
}

/// A time as EC2 shows it.
fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.000Z").to_string()
}

/// The token of the next page, if there is one.
fn next_token(token: Option<String>) -> Option<Xml> {
    token.map(|token| text("nextToken", token))
}

/// Whether an id has the form of its kind: prefix and 8 or 17 hexadecimal digits.
fn is_well_formed(id: &str, prefix: &str) -> bool {
    let digits = id.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('-'));
    digits
        .is_some_and(|digits| [8, 17].contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}
