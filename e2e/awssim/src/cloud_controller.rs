//! The part of AWS's cloud provider that gives Services network load balancers, named and listed as the provider that
//! is built into Kubernetes does. Decides nothing about PrivateLink.

use std::path::PathBuf;

use clap::Args;
use http::{Method, StatusCode};
use k8s_openapi::api::core::v1::{LoadBalancerIngress, Service};
use kube::ResourceExt as _;
use serde_json::{Value, json};
use simulator::cloud_controller::{self, CloudControllerError, ControlClient, ControlError, LoadBalancers, query};
use tokio_util::sync::CancellationToken;

use crate::load_balancer_hash;

/// The annotation that says which kind of load balancer a Service gets; a classic one without it
/// (<https://kubernetes.io/docs/concepts/services-networking/service/#aws-nlb-support>).
const TYPE: &str = "service.beta.kubernetes.io/aws-load-balancer-type";

/// What the controller works with.
#[derive(Args, Debug, Clone)]
pub struct Options {
    /// Kubeconfig of the cluster whose Services are served
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: PathBuf,
    /// Control address of `awssim serve`, http://127.0.0.1:PORT
    #[arg(long, value_name = "URL")]
    pub control: String,
    /// Account of the load balancers
    #[arg(long, value_name = "ID")]
    pub account: String,
    /// Partition of the account
    #[arg(long, value_name = "NAME", default_value = "aws")]
    pub partition: String,
    /// Region of the load balancers
    #[arg(long, value_name = "NAME")]
    pub region: String,
    /// Their VPC
    #[arg(long, value_name = "ID")]
    pub vpc: String,
    /// Their subnets, one in each zone
    #[arg(long = "subnet", value_name = "ID", required = true)]
    pub subnets: Vec<String>,
}

/// The network load balancers of one cluster.
struct Balancers {
    control: ControlClient,
    options: Options,
}

/// Serves Services until `stop` is cancelled. Prints one line of JSON to standard output when all Services have been
/// read once. Lost connections are taken up again.
///
/// # Errors
/// Only a kubeconfig that cannot be used; everything later is retried.
pub async fn run(options: Options, stop: CancellationToken) -> Result<(), CloudControllerError> {
    let ready = json!({"ready": true, "account": options.account, "control": options.control});
    let kubeconfig = options.kubeconfig.clone();
    let balancers = Balancers {
        control: ControlClient::new(&options.control),
        options,
    };
    cloud_controller::run(balancers, cloud_controller::Options { kubeconfig, ready }, stop).await
}

impl LoadBalancers for Balancers {
    const ANNOTATIONS: &'static str = "service.beta.kubernetes.io/aws-";

    fn serves(&self, service: &Service) -> bool {
        // `external` and `nlb-ip` are for another controller.
        service.annotations().get(TYPE).map(String::as_str) == Some("nlb")
    }

    /// The host name is shown at once, while the load balancer is `provisioning`.
    async fn ensure_present(&self, service: &Service, name: &str) -> Result<LoadBalancerIngress, CloudControllerError> {
        let arn = self.arn(name);
        let known = self.control.list(&arn).await?;
        let balancer = match known.into_iter().find(|known| known["id"] == arn.as_str()) {
            Some(known) => known,
            None => self.create(service, &arn).await?,
        };
        let host_name = balancer["dns_name"].as_str();
        let host_name = host_name.ok_or_else(|| CloudControllerError::Cloud(format!("{arn} has no host name")))?;
        let behind = json!({"load_balancer": arn, "name": full_name(service)});
        self.control.call(Method::PUT, "/services", Some(&behind)).await?;
        Ok(LoadBalancerIngress {
            hostname: Some(host_name.to_owned()),
            ..LoadBalancerIngress::default()
        })
    }

    /// Fails as long as an endpoint service uses the load balancer.
    async fn ensure_absent(&self, name: &str) -> Result<(), CloudControllerError> {
        let arn = self.arn(name);
        let path = format!("/load-balancers/{arn}");
        match self.control.call(Method::DELETE, &path, None).await {
            Ok(_) => tracing::info!(load_balancer = name, "load balancer deleted"),
            Err(ControlError::Refused(StatusCode::NOT_FOUND, _)) => {}
            Err(error) => return Err(error.into()),
        }
        let path = format!("/services?{}", query(&[("load_balancer", &arn)]));
        self.control.call(Method::DELETE, &path, None).await?;
        Ok(())
    }
}

impl Balancers {
    async fn create(&self, service: &Service, arn: &str) -> Result<Value, ControlError> {
        let balancer = json!({
            "vpc": self.options.vpc,
            "subnets": self.options.subnets,
            "state": "provisioning",
            "tags": {"kubernetes.io/service-name": full_name(service)},
        });
        let created = self
            .control
            .call(Method::PUT, &format!("/resources/{arn}"), Some(&balancer))
            .await?;
        tracing::info!(
            service = service.name_any(),
            namespace = service.namespace(),
            arn,
            "load balancer created"
        );
        Ok(created)
    }

    fn arn(&self, name: &str) -> String {
        let Options {
            partition,
            region,
            account,
            ..
        } = &self.options;
        let hash = load_balancer_hash(name);
        format!("arn:{partition}:elasticloadbalancing:{region}:{account}:loadbalancer/net/{name}/{hash}")
    }
}

fn full_name(service: &Service) -> String {
    format!("{}/{}", service.namespace().unwrap_or_default(), service.name_any())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Preset, Server};

    fn service() -> Service {
        let metadata = json!({"namespace": "clusters-one", "name": "private-router", "annotations": {TYPE: "nlb"}});
        serde_json::from_value(json!({"metadata": metadata})).unwrap()
    }

    async fn seeded() -> (Server, Balancers) {
        let options = crate::Options {
            preset: Preset::Recorded,
            ..crate::Options::default()
        };
        let server = Server::start(options).await.unwrap();
        let control = ControlClient::new(&server.control);
        let seed = json!({"accounts": [{"id": "111122223333"}]});
        control.call(Method::PUT, "/seed", Some(&seed)).await.unwrap();
        let options = Options {
            kubeconfig: PathBuf::new(),
            control: server.control.clone(),
            account: "111122223333".to_owned(),
            partition: "aws".to_owned(),
            region: "us-east-1".to_owned(),
            vpc: "vpc-1".to_owned(),
            subnets: vec!["subnet-1".to_owned()],
        };
        (server, Balancers { control, options })
    }

    #[tokio::test]
    async fn load_balancer_is_made_once_and_keeps_its_state() {
        let (_server, balancers) = seeded().await;
        let first = balancers.ensure_present(&service(), "a0a1b").await.unwrap();
        let hash = load_balancer_hash("a0a1b");
        let expected = format!("a0a1b-{hash}.elb.us-east-1.amazonaws.com");
        assert_eq!(first.hostname, Some(expected));
        let advance = json!({"advance_s": 150});
        balancers
            .control
            .call(Method::POST, "/clock", Some(&advance))
            .await
            .unwrap();
        balancers.ensure_present(&service(), "a0a1b").await.unwrap();
        let found = balancers.control.list("arn:aws:elasticloadbalancing:").await.unwrap();
        assert_eq!((found.len(), &found[0]["state"]), (1, &json!("active")));
    }

    #[tokio::test]
    async fn load_balancer_in_use_stays() {
        let (server, balancers) = seeded().await;
        balancers.ensure_present(&service(), "a0a1b").await.unwrap();
        let used = "/resources/arn:aws:ec2:us-east-1:111122223333:vpc-endpoint-service/vpce-svc-1";
        let body = json!({"load_balancers": [balancers.arn("a0a1b")]});
        balancers.control.call(Method::PUT, used, Some(&body)).await.unwrap();
        let refused = balancers.ensure_absent("a0a1b").await.unwrap_err().to_string();
        assert!(refused.contains("ResourceInUse"), "{refused}");
        assert_eq!(server.with_aws(|aws, _| aws.services().len()), 1);
        balancers.control.call(Method::DELETE, used, None).await.unwrap();
        for _ in 0..2 {
            balancers.ensure_absent("a0a1b").await.unwrap();
        }
        assert_eq!(server.with_aws(|aws, _| aws.services().len()), 0);
    }

    #[tokio::test]
    async fn only_services_that_ask_for_this_kind_are_served() {
        let (_server, balancers) = seeded().await;
        assert!(balancers.serves(&service()));
        let mut other = service();
        for kind in [Some("external"), None] {
            other.metadata.annotations = kind.map(|kind| [(TYPE.to_owned(), kind.to_owned())].into());
            assert!(!balancers.serves(&other));
        }
    }
}
