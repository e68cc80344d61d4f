//! Each reason of a path on AWS, as the RUNBOOK quotes its condition.

use rstest::rstest;

use super::*;
use crate::sim::fault;

const RUNBOOK: &str = include_str!("../../../RUNBOOK.md");
const ALWAYS: u64 = 1_000_000;

/// The lines of the RUNBOOK that quote a condition with this reason.
fn quotes(reason: &str) -> Vec<&'static str> {
    let (_, entry) = RUNBOOK.split_once(&format!("\n### {reason}\n")).unwrap();
    let (_, quoted) = entry.split_once("```\n").unwrap();
    let (quoted, _) = quoted.split_once("```").unwrap();
    quoted.lines().collect()
}

/// The text with the names that the RUNBOOK has in place of those of this test.
fn with_names_of_runbook(text: &str) -> String {
    let balancer = hyperlink::hypershift::names::load_balancer(cluster::UID);
    let words = text
        .split(' ')
        .map(|word| match word.strip_prefix("com.amazonaws.vpce") {
            Some(_) => format!(
                "com.amazonaws.vpce.us-east-1.vpce-svc-0123456789abcdef0{}",
                if word.ends_with(':') { ":" } else { "" }
            ),
            None => word
                .replace(&balancer, "a1b2")
                .replace("subnet-00000001", "subnet-0123456789abcdef0"),
        });
    words.collect::<Vec<_>>().join(" ")
}

impl Life {
    /// The conditions of the custom resource, as the RUNBOOK writes them.
    fn conditions(&self) -> Vec<String> {
        let cr = self.cluster.get(CR).unwrap();
        let all = cr["status"]["conditions"].as_array().into_iter().flatten();
        let line = |one: &Value| {
            let text = |field: &str| one[field].as_str().unwrap_or_default();
            let (kind, status, reason) = (text("type"), text("status"), text("reason"));
            with_names_of_runbook(&format!("{kind}={status} {reason}: {}", text("message")))
        };
        all.map(line).collect()
    }

    /// Reconciles until a condition is as the RUNBOOK quotes it first, or second.
    pub(super) async fn comes_to(&mut self, reason: &str, quote: usize) {
        let quote = quotes(reason)[quote];
        let end = Instant::now() + Duration::from_secs(7_200);
        while !self.conditions().iter().any(|line| line.trim_end() == quote) {
            assert!(Instant::now() < end, "{quote} is not among {:#?}", self.conditions());
            self.reconcile_next().await;
        }
    }

    /// Changes the load balancer, in which state it stays.
    pub(super) fn change_load_balancer(&self, change: impl FnOnce(&mut Value)) {
        let mut all = self
            .aws
            .aws()
            .resources(self.aws.now(), "arn:aws:elasticloadbalancing:");
        self.aws.change(all.remove(0), change);
    }
}

/// The resource of this id in a seed.
fn seeded<'s>(seed: &'s mut Value, id: &str) -> &'s mut Value {
    let all = seed["resources"].as_array_mut().unwrap().iter_mut();
    let mut found = all.filter(|body| body["id"].as_str().unwrap().ends_with(id));
    found.next().unwrap()
}

#[rstest]
#[case::endpoint_service(
    "EndpointServiceFailed",
    "CreateVpcEndpointServiceConfiguration",
    "UnauthorizedOperation"
)]
#[case::principals("PrincipalsFailed", "ModifyVpcEndpointServicePermissions", "InvalidPrincipal")]
#[case::security_group("SecurityGroupFailed", "CreateSecurityGroup", "UnauthorizedOperation")]
#[case::endpoint("EndpointFailed", "CreateVpcEndpoint", "UnauthorizedOperation")]
#[case::records("RecordsFailed", "ChangeResourceRecordSets", "AccessDenied")]
#[tokio::test(start_paused = true)]
async fn refused_step_has_the_reason_of_its_own(#[case] reason: &str, #[case] action: &str, #[case] code: &str) {
    let mut life = Life::new();
    let status = if code == "InvalidPrincipal" { 400 } else { 403 };
    let refused = json!({"status": status, "code": code});
    life.aws.set_faults(&fault(&format!("/{action}$"), ALWAYS, &refused));
    life.comes_to(reason, 0).await;
    life.aws.set_faults(&json!([]));
    life.until_available().await;
    assert_eq!(
        quotes("AWSSuccess"),
        [
            "AWSEndpointServiceAvailable=True AWSSuccess:",
            "AWSEndpointAvailable=True AWSSuccess:"
        ]
    );
    life.comes_to("AWSSuccess", 0).await;
    life.comes_to("AWSSuccess", 1).await;
}

#[rstest]
#[case::waits("pendingAcceptance", "EndpointNotAccepted", 0)]
#[case::rejected("rejected", "EndpointRejected", 0)]
#[case::failed("failed", "EndpointFailed", 1)]
#[tokio::test(start_paused = true)]
async fn state_of_the_endpoint_has_its_reason(#[case] state: &str, #[case] reason: &str, #[case] quote: usize) {
    let mut life = Life::new();
    life.until_available().await;
    life.put_into_state("vpc-endpoint", state);
    life.comes_to(reason, quote).await;
}

#[tokio::test(start_paused = true)]
async fn load_balancer_is_waited_for_and_missed() {
    let mut life = Life::new();
    life.comes_to("LoadBalancerNotActive", 0).await;
    life.change_load_balancer(|body| body["dns_name"] = json!("other-0123456789abcdef.elb.us-east-1.amazonaws.com"));
    life.comes_to("LoadBalancerNotActive", 1).await;
}

#[rstest]
#[case::unknown("NoSubnets", 1, |seed: &mut Value| {
    seeded(seed, "subnet-00000001")["id"] = json!("arn:aws:ec2:us-east-1:444455556666:subnet/subnet-00000009");
})]
#[case::other_zones("NoCommonZone", 0, |seed: &mut Value| seeded(seed, "subnet-00000001")["zone_id"] = json!("use1-az6"))]
#[case::no_hosted_zone("HostedZoneNotFound", 0, |seed: &mut Value| {
    seeded(seed, "Z0123456789")["name"] = json!("other.hypershift.local");
})]
#[case::two_hosted_zones("AmbiguousHostedZone", 0, |seed: &mut Value| {
    let mut second = seeded(seed, "Z0123456789").clone();
    second["id"] = json!("arn:aws:route53:::hostedzone/Z1111111111");
    seed["resources"].as_array_mut().unwrap().push(second);
})]
#[tokio::test(start_paused = true)]
async fn network_of_the_guest_has_its_reason(
    #[case] reason: &str,
    #[case] quote: usize,
    #[case] change: fn(&mut Value),
) {
    let mut life = Life::with(change);
    life.comes_to(reason, quote).await;
}

#[tokio::test(start_paused = true)]
async fn no_node_pool_names_a_subnet() {
    let mut life = Life::new();
    life.cluster.remove("clusters/nodepools/a");
    life.comes_to("NoSubnets", 0).await;
}

#[tokio::test(start_paused = true)]
async fn path_opens_though_a_principal_is_refused() {
    let mut life = Life::new();
    let principals = [
        format!("arn:aws:iam::{GUEST}:user/cpo"),
        format!("arn:aws:sts::{GUEST}:assumed-role/x/y"),
    ];
    let platform = json!({"aws": {"additionalAllowedPrincipals": principals}});
    life.cluster
        .forge(cluster::HOSTED, &json!({"spec": {"platform": platform}}));
    life.run_for(Duration::from_secs(3_600)).await;
    assert!(life.is_reachable(), "{:#?}", life.conditions());
    let text = "AWSEndpointServiceAvailable=False PrincipalsFailed: ";
    let conditions = life.conditions();
    assert!(conditions.iter().any(|line| line.starts_with(text)), "{conditions:#?}");
}
