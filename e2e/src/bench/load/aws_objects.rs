//! The content of the simulated AWS under load: what hosted clusters have there, and calls about it.

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{HeaderValue, Method, Request, header};
use http_body_util::Full;
use serde_json::{Value, json};

use crate::aws_sim::{self, Caller, GUEST, MANAGEMENT, MANAGEMENT_SUBNETS, MANAGEMENT_VPC, REGION, ec2_form};

/// One hosted cluster's resources, by the cluster's number.
pub(super) struct Cluster(pub(super) usize);

impl Cluster {
    /// The id of the cluster's only thing of this kind.
    fn id(&self, prefix: &str) -> String {
        format!("{prefix}-{:017x}", 0x1000 + self.0)
    }

    fn subnet(&self, zone: usize) -> String {
        format!("subnet-{:016x}{zone}", 0x1000 + self.0)
    }

    fn zone(&self) -> String {
        format!("Z{:019}", self.0)
    }

    fn resources(&self) -> Vec<Value> {
        let arn = |account: &str, kind: &str, id: &str| format!("arn:aws:ec2:{REGION}:{account}:{kind}/{id}");
        let guest = |kind: &str, id: &str| arn(GUEST, kind, id);
        let [vpc, group, endpoint, service] = ["vpc", "sg", "vpce", "vpce-svc"].map(|prefix| self.id(prefix));
        let hash = format!("{:016x}", 0x1000 + self.0);
        let balancer = format!(
            "arn:aws:elasticloadbalancing:{REGION}:{MANAGEMENT}:loadbalancer/net/load{}/{hash}",
            self.0
        );
        let tags = json!({"hypershift.openshift.io/cluster-id": format!("cluster-{}", self.0)});
        let first = self.subnet(1);
        let rule = json!({"protocol": "tcp", "ports": [443, 443], "source": {"ipv4": "10.0.0.0/16"}});
        let name = format!("c{}.hypershift.local", self.0);
        let target = format!("{endpoint}-x.{service}.{REGION}.vpce.amazonaws.com");
        let record =
            |label: &str| json!({"name": format!("{label}.{name}"), "type": "CNAME", "ttl": 300, "values": [target]});
        let mut all = vec![json!({"id": guest("vpc", &vpc), "cidr": "10.0.0.0/16"})];
        all.extend((1..4).map(|zone| {
            json!({"id": guest("subnet", &self.subnet(zone)), "vpc": vpc, "cidr": format!("10.0.{zone}.0/24"),
                "zone_id": format!("use1-az{zone}")})
        }));
        let balancer_subnets = MANAGEMENT_SUBNETS.map(|(id, _)| id);
        all.extend([
            json!({"id": balancer, "vpc": MANAGEMENT_VPC, "subnets": balancer_subnets, "state": "active"}),
            json!({"id": arn(MANAGEMENT, "vpc-endpoint-service", &service), "load_balancers": [balancer], "tags": tags}),
            json!({"id": guest("security-group", &group), "vpc": vpc, "name": "load", "ingress": [rule], "tags": tags}),
            json!({"id": guest("vpc-endpoint", &endpoint), "vpc": vpc, "service_id": service, "state": "available",
                "subnets": [first], "groups": [group], "label": "x", "tags": tags}),
            json!({"id": guest("network-interface", &self.id("eni")), "vpc": vpc, "subnet": first, "groups": [group],
                "address": "10.0.1.4", "endpoint": endpoint}),
            json!({"id": format!("arn:aws:route53:::hostedzone/{}", self.zone()), "account": GUEST, "name": name,
                "vpcs": [{"id": vpc, "region": REGION}], "records": [record("api"), record("*.apps")]}),
        ]);
        all
    }

    /// The reads of a path at rest: the endpoint by its id, and the records of the zone.
    pub(super) fn reads(&self, caller: &Caller) -> Result<[Request<Full<Bytes>>; 2]> {
        let form = ec2_form("DescribeVpcEndpoints", &[("VpcEndpointId.1", &self.id("vpce"))]);
        let records = format!("/2013-04-01/hostedzone/{}/rrset", self.zone());
        Ok([
            sendable(caller.signed("ec2", &Method::POST, "/", form)?)?,
            sendable(caller.signed("route53", &Method::GET, &records, String::new())?)?,
        ])
    }

    /// Gives the endpoint a tag of this value.
    pub(super) fn write(&self, caller: &Caller, value: &str) -> Result<Request<Full<Bytes>>> {
        let endpoint = self.id("vpce");
        let parameters = [
            ("ResourceId.1", endpoint.as_str()),
            ("Tag.1.Key", "write"),
            ("Tag.1.Value", value),
        ];
        let form = ec2_form("CreateTags", &parameters);
        sendable(caller.signed("ec2", &Method::POST, "/", form)?)
    }
}

/// A request as it goes over the wire: the host is a header, and the rest of the address a path.
fn sendable(request: Request<String>) -> Result<Request<Full<Bytes>>> {
    let (mut parts, body) = request.into_parts();
    let host = parts.uri.authority().context("no host")?.as_str().to_owned();
    parts.headers.insert(header::HOST, HeaderValue::try_from(host)?);
    parts.uri = parts.uri.path().parse()?;
    Ok(Request::from_parts(parts, Full::new(body.into())))
}

/// A seed for the simulator with the resources of `clusters` clusters, without throttling.
pub(super) fn seed(clusters: usize) -> Result<Value> {
    let mut seed = aws_sim::seed(&json!({"keys": []}))?;
    let resources = seed["resources"].as_array_mut().context("no resources")?;
    resources.extend((0..clusters).flat_map(|number| Cluster(number).resources()));
    seed["throttle"] = json!({"enabled": false});
    Ok(seed)
}
