//! Whoever may write in the namespace changes the custom resource without end: calls stay few, and others' too.

use super::cluster::HOSTED;
use super::*;

const INTENT: &str = "hyperlink.hypershift.openshift.io/ho-intent";

impl Life {
    /// Changes the custom resource twice a second for two minutes, and reconciles each time with the management side.
    async fn changed_without_end(&mut self, patch: impl Fn(&Self, usize) -> Value) {
        self.object_changed_without_end(0, CR, patch).await;
    }

    /// The same with any object, and with this process.
    async fn object_changed_without_end(&mut self, at: usize, key: &str, patch: impl Fn(&Self, usize) -> Value) {
        self.aws.clear_journal();
        for number in 0..240 {
            let patch = patch(self, number);
            self.cluster.forge(key, &patch);
            let cr = self.cr().unwrap();
            self.reconcile_with(at, cr).await;
            sleep_until(Instant::now() + Duration::from_millis(500)).await;
        }
    }

    fn ho_intent(&self) -> Value {
        let recorded = self.cluster.get(CR).unwrap()["metadata"]["annotations"][INTENT].clone();
        serde_json::from_str(recorded.as_str().unwrap()).unwrap()
    }

    /// The patch that records these load balancers as those of before.
    fn former(&self, names: &[String]) -> Value {
        let mut intent = self.ho_intent();
        intent["formerLoadBalancers"] = json!(names);
        json!({"metadata": {"annotations": {INTENT: intent.to_string()}}})
    }
}

#[tokio::test(start_paused = true)]
async fn tags_changed_without_end_cost_few_writes() {
    let mut life = Life::new();
    life.until_available().await;
    let tag = |number: usize| json!({"spec": {"resourceTags": [{"key": "team", "value": format!("t{number}")}]}});
    life.changed_without_end(|_, number| tag(number)).await;
    let (writes, calls) = (life.calls_of("CreateTags").len(), life.aws.journal().len());
    assert!((1..=20).contains(&writes), "{writes} writes in two minutes");
    assert!(calls <= 60, "{calls} calls in two minutes");
    life.run_for(Duration::from_secs(900)).await;
    assert!(life.is_available() && life.is_reachable());
    let service = life.aws.resources("vpc-endpoint-service").remove(0);
    assert_eq!(service["tags"]["team"], "t239");
}

#[tokio::test(start_paused = true)]
async fn load_balancers_named_without_end_cost_few_searches() {
    let mut life = Life::new();
    life.until_available().await;
    let names = |number: usize| [0, 1, 2, 3].map(|at| format!("junk-{number}-{at}"));
    life.changed_without_end(|life, number| life.former(&names(number)))
        .await;
    let searches = life.calls_of("DescribeVpcEndpointServiceConfigurations").len();
    assert!((1..=45).contains(&searches), "{searches} searches in two minutes");
    life.run_for(Duration::from_secs(1_800)).await;
    assert!(life.is_available() && life.is_reachable());
    assert_eq!(life.ho_intent()["formerLoadBalancers"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn principals_named_without_end_cost_few_writes() {
    let mut life = Life::new();
    life.until_available().await;
    let principals = |number: usize| {
        let arn = |at: usize| format!("arn:aws:iam::{GUEST}:group/{number}-{at}");
        let all: Vec<String> = (0..25).map(arn).collect();
        json!({"spec": {"platform": {"aws": {"additionalAllowedPrincipals": all}}}})
    };
    life.object_changed_without_end(0, HOSTED, |_, number| principals(number))
        .await;
    let writes = life.calls_of("ModifyVpcEndpointServicePermissions").len();
    assert!((1..=100).contains(&writes), "{writes} writes in two minutes");
}

#[tokio::test(start_paused = true)]
async fn subnets_named_without_end_cost_few_reads() {
    let mut life = Life::new();
    life.until_available().await;
    let subnets = |number: usize| json!({"spec": {"subnetIDs": [format!("subnet-{number:017x}")]}});
    life.object_changed_without_end(1, CR, |_, number| subnets(number))
        .await;
    let reads = life.calls_of("DescribeSubnets").len();
    assert!((1..=45).contains(&reads), "{reads} reads in two minutes");
}

#[tokio::test(start_paused = true)]
async fn load_balancer_of_before_without_a_service_is_forgotten() {
    let mut life = Life::new();
    life.until_available().await;
    let recorded = life.ho_intent();
    let former = life.former(&["aold".to_owned()]);
    life.cluster.forge(CR, &former);
    life.run_for(Duration::from_secs(60)).await;
    assert_eq!(
        life.ho_intent()["formerLoadBalancers"],
        json!(["aold"]),
        "it may show late"
    );
    life.run_for(Duration::from_secs(1_800)).await;
    assert_eq!(life.ho_intent(), recorded);
    assert!(life.is_available());
}

#[tokio::test(start_paused = true)]
async fn endpoint_services_named_without_end_cost_few_calls() {
    let mut life = Life::new();
    life.until_available().await;
    let name = life.cr().unwrap().status.unwrap().endpoint_service_name.unwrap();
    let named = |number: usize| format!("com.amazonaws.vpce.us-east-1.vpce-svc-{number:017x}");
    life.object_changed_without_end(
        1,
        CR,
        |_, number| json!({"status": {"endpointServiceName": named(number)}}),
    )
    .await;
    let (reads, creates) = (
        life.calls_of("DescribeVpcEndpoints").len(),
        life.calls_of("CreateVpcEndpoint").len(),
    );
    assert!(
        (1..=45).contains(&(reads + creates)),
        "{reads} reads, {creates} creates in two minutes"
    );
    life.cluster
        .forge(CR, &json!({"status": {"endpointServiceName": name}}));
    life.run_for(Duration::from_secs(1_800)).await;
    assert!(life.is_available() && life.is_reachable());
}
