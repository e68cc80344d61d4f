//! The metrics of the custom resources.

use super::*;
use crate::api::condition::{ConditionType, Reason, Status};
use crate::azure::kinds::private_link_service::quota::CountedService;

/// A custom resource on Azure whose conditions all have this status, for so many seconds.
pub(super) fn object(name: &str, status: Option<Status>, reason: Option<Reason>, age: u64) -> ObservedObject {
    object_on(Platform::Azure, name, (status, reason), age)
}

/// The same on a platform.
fn object_on(
    platform: Platform,
    name: &str,
    (status, reason): (Option<Status>, Option<Reason>),
    age: u64,
) -> ObservedObject {
    let condition = |kind| ObservedCondition {
        kind,
        status,
        reason,
        age: Duration::from_secs(age),
    };
    ObservedObject {
        namespace: "clusters-one".into(),
        name: name.into(),
        deleting_for: None,
        conditions: ConditionType::of(platform).iter().copied().map(condition).collect(),
        link_service: None,
        awaits_service_on: None,
        zones: Vec::new(),
    }
}

pub(super) fn with_objects(objects: Vec<ObservedObject>) -> Metrics {
    with_objects_on(Platform::Azure, objects)
}

fn with_objects_on(platform: Platform, objects: Vec<ObservedObject>) -> Metrics {
    let metrics = metrics();
    metrics.list_objects_with(platform, move || objects.clone());
    metrics
}

pub(super) const NOT_OURS: (Option<Status>, Option<Reason>) = (Some(Status::False), Some(Reason::NotOurs));

#[test]
fn process_that_knows_no_custom_resources_reports_none() {
    let text = metrics().render().unwrap();
    for name in [
        "hyperlink_objects",
        "hyperlink_conditions",
        "hyperlink_deletion",
        "hyperlink_quota",
    ] {
        assert!(!text.contains(name), "{text}");
    }
}

#[test]
fn custom_resources_are_counted_by_state_and_condition() {
    let deleting = ObservedObject {
        deleting_for: Some(Duration::from_secs(70)),
        ..object("going", NOT_OURS.0, NOT_OURS.1, 500)
    };
    let metrics = with_objects(vec![
        object("well", Some(Status::True), Some(Reason::AzureSuccess), 10),
        object("ill", NOT_OURS.0, NOT_OURS.1, 100),
        object("worse", NOT_OURS.0, NOT_OURS.1, 300),
        object("new", None, None, 5),
        deleting,
    ]);
    for sample in [
        r#"hyperlink_objects{platform="azure",state="available"} 1"#,
        r#"hyperlink_objects{platform="azure",state="unavailable"} 3"#,
        r#"hyperlink_objects{platform="azure",state="deleting"} 1"#,
        r#"hyperlink_conditions{platform="azure",status="True",type="AzurePLSCreated"} 1"#,
        r#"hyperlink_conditions{platform="azure",status="False",type="AzurePLSCreated"} 3"#,
        r#"hyperlink_conditions{platform="azure",status="Unknown",type="AzurePLSCreated"} 1"#,
        // A custom resource under deletion need not be True any more.
        r#"hyperlink_conditions_not_true{platform="azure",reason="NotOurs",type="AzurePLSCreated"} 2"#,
        r#"hyperlink_conditions_not_true{platform="azure",reason="other",type="AzurePLSCreated"} 1"#,
        r#"hyperlink_condition_not_true_oldest_age_seconds{platform="azure",reason="NotOurs",type="AzurePLSCreated"} 300"#,
        r#"hyperlink_condition_not_true_oldest_age_seconds{platform="azure",reason="other",type="AzurePLSCreated"} 5"#,
        r#"hyperlink_object_available{platform="azure",control_plane="clusters-one",name="well"} 1"#,
        r#"hyperlink_object_available{platform="azure",control_plane="clusters-one",name="ill"} 0"#,
        r#"hyperlink_object_deletion_age_seconds{platform="azure",control_plane="clusters-one",name="going"} 70"#,
        r#"hyperlink_object_not_true_age_seconds{platform="azure",control_plane="clusters-one",name="ill",reason="NotOurs",type="AzurePLSCreated"} 100"#,
    ] {
        assert_sample(&metrics, sample);
    }
}

#[test]
fn custom_resource_on_aws_is_available_once_both_conditions_hold() {
    let with_endpoint = |name: &str, status: Option<Status>| {
        let mut object = object_on(Platform::Aws, name, (Some(Status::True), Some(Reason::AWSSuccess)), 40);
        object.conditions[1].status = status;
        object.conditions[1].reason = Some(Reason::EndpointNotAccepted);
        object
    };
    let well = with_endpoint("well", Some(Status::True));
    let metrics = with_objects_on(Platform::Aws, vec![well, with_endpoint("ill", Some(Status::False))]);
    for sample in [
        r#"hyperlink_objects{platform="aws",state="available"} 1"#,
        r#"hyperlink_objects{platform="aws",state="unavailable"} 1"#,
        r#"hyperlink_conditions{platform="aws",status="True",type="AWSEndpointServiceAvailable"} 2"#,
        r#"hyperlink_conditions{platform="aws",status="False",type="AWSEndpointAvailable"} 1"#,
        r#"hyperlink_conditions_not_true{platform="aws",reason="EndpointNotAccepted",type="AWSEndpointAvailable"} 1"#,
        r#"hyperlink_object_available{platform="aws",control_plane="clusters-one",name="well"} 1"#,
        r#"hyperlink_object_available{platform="aws",control_plane="clusters-one",name="ill"} 0"#,
        r#"hyperlink_object_not_true_age_seconds{platform="aws",control_plane="clusters-one",name="ill",reason="EndpointNotAccepted",type="AWSEndpointAvailable"} 40"#,
    ] {
        assert_sample(&metrics, sample);
    }
    let text = metrics.render().unwrap();
    for other in ["AzurePLSCreated", "platform=\"azure\",state", "hyperlink_quota"] {
        assert!(!text.contains(other), "{other} in\n{text}");
    }
}

#[test]
fn one_process_shows_the_custom_resources_of_both_platforms() {
    let metrics = with_objects(vec![object("private-router", NOT_OURS.0, NOT_OURS.1, 7)]);
    let on_aws = object_on(Platform::Aws, "private-router", (Some(Status::True), None), 7);
    metrics.list_objects_with(Platform::Aws, move || vec![on_aws.clone()]);
    for sample in [
        r#"hyperlink_objects{platform="azure",state="unavailable"} 1"#,
        r#"hyperlink_objects{platform="aws",state="available"} 1"#,
        r#"hyperlink_object_available{platform="azure",control_plane="clusters-one",name="private-router"} 0"#,
        r#"hyperlink_object_available{platform="aws",control_plane="clusters-one",name="private-router"} 1"#,
        r#"hyperlink_quota_limit{quota="zones_per_subscription"} 1000"#,
    ] {
        assert_sample(&metrics, sample);
    }
}

#[test]
fn page_grows_by_a_few_lines_for_each_unavailable_custom_resource() {
    let lines = |platform, count: usize, status: Status| {
        let name = |number: usize| format!("object{number}");
        let all = (0..count).map(|number| object_on(platform, &name(number), (Some(status), None), 100));
        let metrics = with_objects_on(platform, all.collect());
        metrics.render().unwrap().lines().count()
    };
    for (platform, status, each) in [
        (Platform::Azure, Status::True, 1),
        (Platform::Azure, Status::False, 2),
        (Platform::Aws, Status::True, 1),
        (Platform::Aws, Status::False, 3),
    ] {
        let many = lines(platform, 1_000, status);
        assert_eq!(lines(platform, 10_000, status) - many, 9_000 * each);
        assert!(many < 1_500 + 1_000 * each, "{many}");
    }
}

#[test]
fn without_deletions_and_failures_there_are_no_ages() {
    let metrics = with_objects(vec![object("well", Some(Status::True), None, 10)]);
    let text = metrics.render().unwrap();
    for age in ["not_true", "deletion_age"] {
        assert!(!text.contains(age), "{text}");
    }
}

fn in_namespace(namespace: &str, name: &str, age: u64) -> ObservedObject {
    ObservedObject {
        namespace: namespace.into(),
        ..object(name, NOT_OURS.0, NOT_OURS.1, age)
    }
}

/// The series of conditions that are not True, of one namespace and platform.
fn not_true_in(platform: Platform, namespace: &str, metrics: &Metrics) -> Vec<String> {
    let text = metrics.render().unwrap();
    let labels = format!("platform=\"{platform}\",control_plane=\"{namespace}\"");
    let start = format!("hyperlink_object_not_true_age_seconds{{{labels},");
    let found = text.lines().filter(|line| line.starts_with(&start));
    found.map(str::to_owned).collect()
}

#[test]
fn junk_of_one_namespace_hides_nothing_of_another() {
    let mut all: Vec<_> = (0..2_000)
        .map(|n| in_namespace("clusters-junk", &format!("junk{n}"), 1_000_000))
        .collect();
    all.push(in_namespace("clusters-victim", "private-router", 901));
    let metrics = with_objects(all);
    let victim = not_true_in(Platform::Azure, "clusters-victim", &metrics);
    assert_eq!(victim.len(), ConditionType::OF_AZURE.len(), "{victim:?}");
    let junk = not_true_in(Platform::Azure, "clusters-junk", &metrics);
    assert_eq!(junk.len(), 2_000 + 32);
}

/// Whoever writes in a namespace may create custom resources of the other platform there.
#[test]
fn junk_of_one_platform_hides_nothing_of_the_other() {
    let junk = |n: u64| ObservedObject {
        deleting_for: (n < 50).then_some(Duration::from_secs(1_000_000)),
        ..object_on(Platform::Aws, &format!("n{n}"), NOT_OURS, 1_000_000)
    };
    let metrics = with_objects(vec![
        object("private-router", NOT_OURS.0, NOT_OURS.1, 901),
        ObservedObject {
            deleting_for: Some(Duration::from_secs(70)),
            ..object("going", None, None, 1)
        },
    ]);
    metrics.list_objects_with(Platform::Aws, move || (0..100).map(junk).collect());
    let victim = not_true_in(Platform::Azure, "clusters-one", &metrics);
    assert_eq!(victim.len(), ConditionType::OF_AZURE.len(), "{victim:?}");
    assert_sample(
        &metrics,
        r#"hyperlink_object_deletion_age_seconds{platform="azure",control_plane="clusters-one",name="going"} 70"#,
    );
    let text = metrics.render().unwrap();
    let deleting = text.matches(r#"hyperlink_object_deletion_age_seconds{platform="aws""#);
    assert_eq!(deleting.count(), 8);
}

#[test]
fn each_unavailable_custom_resource_is_shown_or_the_oldest() {
    let all: Vec<_> = (0..500).map(|n| in_namespace("one", &format!("n{n}"), n)).collect();
    let series = not_true_in(Platform::Azure, "one", &with_objects(all));
    let of = |name: &str| series.iter().filter(|line| line.contains(name)).count();
    assert_eq!(of("AzurePrivateLinkServiceAvailable"), 500);
    assert_eq!(series.len(), 500 + 32);
    assert_eq!(of("\"n499\""), ConditionType::OF_AZURE.len());
    assert_eq!(of("\"n0\""), 1);
}

#[test]
fn quotas_are_reported_where_most_of_them_is_used() {
    let id = |subscription: &str, kind: &str, name: &str| {
        let id = format!("/subscriptions/{subscription}/resourceGroups/g/providers/Microsoft.Network/{kind}/{name}");
        ResourceId::parse(&id).unwrap()
    };
    let on = |balancer: &str, zones: &[(&str, &str)]| ObservedObject {
        link_service: Some(CountedService {
            id: id("s", "privateLinkServices", zones[0].1),
            load_balancer: Some(id("s", "loadBalancers", balancer)),
        }),
        zones: zones.iter().map(|(of, name)| id(of, "privateDnsZones", name)).collect(),
        ..object("o", Some(Status::True), None, 1)
    };
    let metrics = with_objects(vec![
        on("full", &[("a", "one.local"), ("a", "example.com")]),
        // Ids are the same in any case, and clusters may share a zone.
        on("FULL", &[("a", "two.local"), ("a", "EXAMPLE.com")]),
        on("empty", &[("b", "three.local")]),
        object("without", Some(Status::False), None, 1),
    ]);
    for sample in [
        r#"hyperlink_quota_used{quota="private_link_services_per_load_balancer"} 2"#,
        r#"hyperlink_quota_limit{quota="private_link_services_per_load_balancer"} 8"#,
        r#"hyperlink_quota_used{quota="private_link_services_per_subscription"} 3"#,
        r#"hyperlink_quota_limit{quota="private_link_services_per_subscription"} 800"#,
        r#"hyperlink_quota_used{quota="zones_per_subscription"} 3"#,
        r#"hyperlink_quota_limit{quota="zones_per_subscription"} 1000"#,
    ] {
        assert_sample(&metrics, sample);
    }
}

#[test]
fn quotas_of_aws_are_reported_once_counted() {
    let metrics = with_objects_on(Platform::Aws, vec![object_on(Platform::Aws, "o", (None, None), 1)]);
    assert!(!metrics.render().unwrap().contains("hyperlink_quota"));
    let used = |endpoints_per_vpc| QuotasOfAws {
        endpoints_per_vpc,
        route53_requests_per_second: 0.5,
    };
    metrics.count_quotas_of_aws_with(move || used(None));
    assert_sample(
        &metrics,
        r#"hyperlink_quota_used{quota="route53_requests_per_second"} 0.5"#,
    );
    assert_sample(
        &metrics,
        r#"hyperlink_quota_limit{quota="route53_requests_per_second"} 5"#,
    );
    assert!(!metrics.render().unwrap().contains("endpoints_per_vpc"));
    metrics.count_quotas_of_aws_with(move || used(Some(44)));
    assert_sample(&metrics, r#"hyperlink_quota_used{quota="endpoints_per_vpc"} 44"#);
    assert_sample(&metrics, r#"hyperlink_quota_limit{quota="endpoints_per_vpc"} 50"#);
    assert!(!metrics.render().unwrap().contains("private_link_services_per"));
}

/// A load balancer with 8 services, another one with 7, and on each a custom resource that awaits one.
pub(super) fn full_load_balancer() -> Vec<ObservedObject> {
    let id = |kind: &str, name: &str| {
        let id = format!("/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/{kind}/{name}");
        ResourceId::parse(&id).unwrap()
    };
    let served = |n: usize| ObservedObject {
        link_service: Some(CountedService {
            id: id("privateLinkServices", &n.to_string()),
            load_balancer: Some(id("loadBalancers", if n < 8 { "full" } else { "nearly" })),
        }),
        ..object("served", Some(Status::True), None, 1)
    };
    let awaiting = |(name, balancer): (&str, &str)| ObservedObject {
        awaits_service_on: Some(id("loadBalancers", balancer)),
        ..object(name, Some(Status::False), None, 1)
    };
    let awaiting = [("ninth", "FULL"), ("eighth", "nearly")].map(awaiting);
    (0..15).map(served).chain(awaiting).collect()
}

#[test]
fn cluster_that_does_not_fit_is_named_before_azure_refuses() {
    let text = with_objects(full_load_balancer()).render().unwrap();
    let shown = text
        .lines()
        .filter(|line| line.starts_with("hyperlink_object_without_quota{"));
    let quota = "private_link_services_per_load_balancer";
    let one = format!(
        r#"hyperlink_object_without_quota{{platform="azure",control_plane="clusters-one",name="ninth",quota="{quota}"}} 1"#
    );
    assert_eq!(shown.collect::<Vec<_>>(), [one]);
}

/// Whoever writes in a namespace can create any number of custom resources with Hyperlink's finalizer, and delete them.
#[test]
fn custom_resources_under_deletion_make_a_few_series() {
    let deleting = |n| ObservedObject {
        deleting_for: Some(Duration::from_secs(n)),
        ..object(&format!("n{n}"), None, None, 1)
    };
    let text = with_objects((0..500).map(deleting).collect()).render().unwrap();
    let series = text
        .lines()
        .filter(|line| line.starts_with("hyperlink_object_deletion_age_seconds{"));
    let series: Vec<&str> = series.collect();
    assert_eq!(series.len(), 8, "{series:?}");
    assert!(
        series.iter().any(|line| line.contains("n499")),
        "the oldest: {series:?}"
    );
}
