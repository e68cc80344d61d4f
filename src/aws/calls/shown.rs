//! What AWS shows of resources, as the engine keeps it.

use serde_json::{Map, Value, json};

use crate::ec2::{Endpoint, EndpointService, EndpointState, Rule, SecurityGroup, ServiceState};
use crate::elbv2::{LoadBalancer, LoadBalancerState};
use crate::route53::RecordSet;

/// A load balancer.
pub(super) fn load_balancer(found: &LoadBalancer) -> Value {
    let state = match &found.state {
        LoadBalancerState::Provisioning => "provisioning",
        LoadBalancerState::Active => "active",
        LoadBalancerState::ActiveImpaired => "active_impaired",
        LoadBalancerState::Failed => "failed",
        LoadBalancerState::Other(state) => state,
    };
    json!({"Id": found.arn, "Name": found.name, "State": state, "DNSName": found.dns_name, "Zones": found.zones})
}

/// An endpoint service in this region.
pub(super) fn endpoint_service(found: &EndpointService, region: &str) -> Value {
    let state = match &found.state {
        ServiceState::Pending => "pending",
        ServiceState::Available => "available",
        ServiceState::Deleting => "deleting",
        ServiceState::Deleted => "deleted",
        ServiceState::Failed => "failed",
        ServiceState::Other(state) => state,
    };
    json!({"Id": found.id, "ServiceName": found.name, "State": state, "Region": region,
        "AcceptanceRequired": found.acceptance_required, "NetworkLoadBalancerArns": found.load_balancers,
        "ZoneIds": found.zone_ids, "Tags": found.tags})
}

/// The state of an endpoint or a connection.
pub(super) fn endpoint_state(state: &EndpointState) -> &str {
    match state {
        EndpointState::PendingAcceptance => "pendingAcceptance",
        EndpointState::Pending => "pending",
        EndpointState::Available => "available",
        EndpointState::Deleting => "deleting",
        EndpointState::Deleted => "deleted",
        EndpointState::Rejected => "rejected",
        EndpointState::Failed => "failed",
        EndpointState::Expired => "expired",
        EndpointState::Partial => "partial",
        EndpointState::Other(state) => state,
    }
}

/// An endpoint.
pub(super) fn vpc_endpoint(found: &Endpoint) -> Value {
    let names: Vec<&str> = found.dns_entries.iter().map(|entry| entry.name.as_str()).collect();
    json!({"Id": found.id, "State": endpoint_state(&found.state), "ServiceName": found.service_name,
        "VpcId": found.vpc_id, "SubnetIds": found.subnet_ids, "GroupIds": found.group_ids, "DnsNames": names,
        "LastError": found.last_error, "Tags": found.tags})
}

/// A security group.
pub(super) fn security_group(found: &SecurityGroup) -> Value {
    let rules: Vec<Value> = found.ingress.iter().map(rule).collect();
    json!({"Id": found.id, "GroupName": found.name, "VpcId": found.vpc_id, "Tags": found.tags, "Rules": rules})
}

fn rule(rule: &Rule) -> Value {
    let (from, to) = rule.ports.unzip();
    json!({"Protocol": rule.protocol, "FromPort": from, "ToPort": to, "Range": rule.cidr,
        "Description": rule.description})
}

/// Records, by name.
pub(super) fn records(found: &[RecordSet]) -> Value {
    let records = found.iter().map(|record| {
        let mut shown = json!({"Type": record.kind, "TTL": record.ttl, "Values": record.values});
        if let Some(identifier) = &record.set_identifier {
            shown["SetIdentifier"] = json!(identifier);
        }
        (record.name.to_ascii_lowercase(), shown)
    });
    json!({"Records": records.collect::<Map<_, _>>()})
}
