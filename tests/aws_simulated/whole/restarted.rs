//! A process that begins beside paths that are ready already.

use kube::Api;

use super::*;

const OTHER: &str = "clusters-other/awsendpointservices/private-router";

impl Life {
    /// Starts the process of the management side again, which serves two namespaces: it begins with lists.
    async fn restart_among_two(&mut self) {
        let mut other = self.cluster.get(CR).unwrap();
        other["metadata"]["namespace"] = json!("clusters-other");
        other["metadata"]["uid"] = json!("other");
        other["metadata"]["annotations"] = json!({});
        other["spec"]["networkLoadBalancerName"] = json!("other");
        self.cluster.put(OTHER, other);
        self.restart(Role::Ho);
        let cx = &self.processes[0].cx;
        cx.resources.read(&Api::all(cx.runtime.kube.clone())).await.unwrap();
        assert_eq!(cx.resources.namespaces(), 2);
        self.wake();
    }

    fn principals(&self) -> Value {
        self.aws.resources("vpc-endpoint-service").remove(0)["principals"].clone()
    }
}

#[tokio::test(start_paused = true)]
async fn principals_of_a_listed_service_are_read() {
    let mut life = Life::new();
    life.until_available().await;
    life.run_for(Duration::from_secs(600)).await;
    let desired = life.principals();
    let service = life.aws.resources("vpc-endpoint-service").remove(0);
    life.aws.change(service, |body| {
        let foreign = json!({"arn": format!("arn:aws:iam::{GUEST}:user/foreign")});
        body["principals"].as_array_mut().unwrap().push(foreign);
    });
    life.restart_among_two().await;
    // Sooner than anything is read again.
    life.run_for(Duration::from_secs(120)).await;
    assert_eq!(life.principals(), desired);
}
