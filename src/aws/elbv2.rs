//! Elastic Load Balancing: the network load balancers behind endpoint services, which others make.
//!
//! API: <https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/>

use hyperlink_engine::client::Reconcile;

use crate::api::action::Action;
use crate::api::client::Client;
use crate::api::error::AwsError;
use crate::api::pages::Page;
use crate::api::request::ServiceRequest;
use crate::wire::form::Form;
use crate::wire::xml::{Element, Malformed};

/// How many names one request takes.
pub const MAX_NAMES: usize = 20;
/// How many load balancers a page has at most.
const PAGE: usize = 400;

/// Elastic Load Balancing's calls, as the identity of a client.
#[derive(Clone)]
pub struct LoadBalancing(pub Client);

/// A load balancer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadBalancer {
    /// Its ARN.
    pub arn: String,
    /// Its name, of which there is one in an account and region.
    pub name: String,
    /// Its host name.
    pub dns_name: Option<String>,
    /// `network`, `application` or `gateway`.
    pub kind: Option<String>,
    /// How far AWS is with it.
    pub state: LoadBalancerState,
    /// The names of its zones in its own account.
    pub zones: Vec<String>,
}

/// The state of a load balancer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadBalancerState {
    /// Being created.
    Provisioning,
    /// In force.
    Active,
    /// In force, without all the resources it should have.
    ActiveImpaired,
    /// It could not be created.
    Failed,
    /// A state that Hyperlink does not know.
    Other(String),
}

impl LoadBalancerState {
    fn parse(text: &str) -> Self {
        match text.to_ascii_lowercase().as_str() {
            "provisioning" => Self::Provisioning,
            "active" => Self::Active,
            "active_impaired" => Self::ActiveImpaired,
            "failed" => Self::Failed,
            _ => Self::Other(text.to_owned()),
        }
    }
}

impl LoadBalancing {
    /// Reads load balancers by name, the first [`MAX_NAMES`] of these.
    ///
    /// # Errors
    /// AWS's. `LoadBalancerNotFound`: one of the names is unknown, and none is shown.
    pub async fn by_name(&self, reconcile: Reconcile, names: &[String]) -> Result<Vec<LoadBalancer>, AwsError> {
        // Without a name all are listed.
        if names.is_empty() {
            return Ok(Vec::new());
        }
        self.list(
            reconcile,
            &Form::default().with_members("Names", names.iter().take(MAX_NAMES)),
        )
        .await
    }

    /// Lists all load balancers of the account and region.
    ///
    /// # Errors
    /// AWS's.
    pub async fn all(&self, reconcile: Reconcile) -> Result<Vec<LoadBalancer>, AwsError> {
        self.list(reconcile, &Form::default().with("PageSize", PAGE.to_string()))
            .await
    }

    async fn list(&self, reconcile: Reconcile, first: &Form) -> Result<Vec<LoadBalancer>, AwsError> {
        let action = Action::DescribeLoadBalancers;
        let request = |next: &Form| ServiceRequest::query(action, &first.clone().followed_by(next));
        self.0.pages(reconcile, request, load_balancers).await
    }
}

fn load_balancers(root: &Element) -> Result<Page<LoadBalancer>, Malformed> {
    let result = root.required_child("DescribeLoadBalancersResult")?;
    let items = result.items("LoadBalancers", "member").map(load_balancer);
    let items = items.collect::<Result<_, _>>()?;
    Ok(Page::new(items, "Marker", result.optional("NextMarker")))
}

fn load_balancer(item: &Element) -> Result<LoadBalancer, Malformed> {
    let zones = item.items("AvailabilityZones", "member");
    let state = item.required_child("State")?.required("Code")?;
    Ok(LoadBalancer {
        arn: item.required("LoadBalancerArn")?,
        name: item.required("LoadBalancerName")?,
        dns_name: item.optional("DNSName"),
        kind: item.optional("Type"),
        state: LoadBalancerState::parse(&state),
        zones: zones.filter_map(|zone| zone.optional("ZoneName")).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::sample::{Sample, answer, reconcile, refusal};
    use hyperlink_engine::failure::Class;

    fn body(name: &str, state: &str, marker: &str) -> String {
        format!(
            "<DescribeLoadBalancersResponse xmlns=\"http://elasticloadbalancing.amazonaws.com/doc/2015-12-01/\">\
             <DescribeLoadBalancersResult><LoadBalancers><member><Type>network</Type>\
             <State><Code>{state}</Code></State>\
             <AvailabilityZones><member><ZoneName>us-east-1a</ZoneName></member><member><ZoneName>us-east-1b</ZoneName>\
             </member></AvailabilityZones><LoadBalancerName>{name}</LoadBalancerName><LoadBalancerArn>arn:{name}\
             </LoadBalancerArn><DNSName>{name}-1.elb.us-east-1.amazonaws.com</DNSName></member></LoadBalancers>\
             <NextMarker>{marker}</NextMarker></DescribeLoadBalancersResult></DescribeLoadBalancersResponse>"
        )
    }

    #[tokio::test]
    async fn load_balancers_are_read_by_name() {
        let sample = Sample::answering(&body("a1", "active_impaired", ""));
        let found = LoadBalancing(sample.client.clone())
            .by_name(reconcile(), &["a1".into(), "a2".into()])
            .await
            .unwrap();
        let form = "Action=DescribeLoadBalancers & Names.member.1=a1 & Names.member.2=a2";
        assert_eq!(sample.form(), form);
        assert_eq!(
            found,
            [LoadBalancer {
                arn: "arn:a1".into(),
                name: "a1".into(),
                dns_name: Some("a1-1.elb.us-east-1.amazonaws.com".into()),
                kind: Some("network".into()),
                state: LoadBalancerState::ActiveImpaired,
                zones: vec!["us-east-1a".into(), "us-east-1b".into()],
            }]
        );
    }

    #[tokio::test]
    async fn all_pages_are_read_until_the_marker_is_empty() {
        let (first, second) = (body("a1", "active", "m+1"), body("a2", "Provisioning", ""));
        let sample = Sample::new([answer(200, &first), answer(200, &second)]);
        let found = LoadBalancing(sample.client.clone()).all(reconcile()).await.unwrap();
        let names: Vec<_> = found.iter().map(|found| found.name.as_str()).collect();
        assert_eq!(names, ["a1", "a2"]);
        assert_eq!(found[1].state, LoadBalancerState::Provisioning);
        let requests = sample.aws.requests();
        assert!(requests[0].ends_with("PageSize=400"), "{requests:?}");
        assert!(requests[1].ends_with("PageSize=400&Marker=m%2B1"), "{requests:?}");
    }

    #[tokio::test]
    async fn no_name_asks_for_none_and_an_unknown_one_is_gone() {
        let sample = Sample::new([refusal(400, "LoadBalancerNotFound")]);
        let calls = LoadBalancing(sample.client.clone());
        assert_eq!(calls.by_name(reconcile(), &[]).await, Ok(Vec::new()));
        assert!(sample.aws.requests().is_empty());
        let error = calls.by_name(reconcile(), &["x".into()]).await.unwrap_err();
        assert_eq!(error.class, Class::Gone);
    }
}
