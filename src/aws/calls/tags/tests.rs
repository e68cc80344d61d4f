use hyperlink_engine::client::{Accepted, CloudClient, Condition, WriteTarget};
use rstest::rstest;
use serde_json::json;

use super::*;
use crate::api::sample::{Sample, answer, reconcile, refusal};
use crate::calls::tests::{calls, done, scope, sent};
use crate::cloud::Aws;
use crate::kinds::security_group::RULE_DESCRIPTION;
use crate::owner_tags::CLUSTER_ID_TAG;
use crate::slot::Slot;

/// What is there, made by HyperShift's own controllers, and how it has to be changed first.
struct Case {
    slot: Slot,
    action: &'static str,
    found: Value,
    body: Value,
}

fn endpoint() -> Case {
    Case {
        slot: Slot::vpc_endpoint(&scope(), "vpc-1", "com.amazonaws.vpce.us-east-1.vpce-svc-1"),
        action: "ModifyVpcEndpoint",
        found: json!({"Id": "vpce-1", "State": "available", "SubnetIds": ["subnet-a"], "GroupIds": ["sg-1"]}),
        body: json!({"SubnetIds": ["subnet-a", "subnet-b"], "GroupIds": ["sg-1"]}),
    }
}

fn group() -> Case {
    let rule = json!({"Protocol": "tcp", "FromPort": 443, "ToPort": 443, "Range": "10.0.0.0/16",
        "Description": RULE_DESCRIPTION});
    Case {
        slot: Slot::security_group(&scope(), "vpc-1", "x-vpce-private-router"),
        action: "AuthorizeSecurityGroupIngress",
        found: json!({"Id": "sg-1", "Rules": []}),
        body: json!({ "Rules": [rule] }),
    }
}

fn service() -> Case {
    Case {
        slot: Slot::endpoint_service(&scope(), "a1b2"),
        action: "ModifyVpcEndpointServiceConfiguration",
        found: json!({"Id": "vpce-svc-1", "State": "available", "AcceptanceRequired": true}),
        body: json!({"AcceptanceRequired": false}),
    }
}

impl Case {
    /// The same, of which only the tags differ.
    fn unchanged(self) -> Self {
        let mut found = self.body.clone();
        found["Id"] = self.found["Id"].clone();
        Self { found, ..self }
    }

    /// Puts it with these tags, where it has one of them; CreateTags is answered like this.
    async fn put(mut self, sample: &Sample, tags: Value) -> Result<Accepted<Aws>, WriteError<AwsError>> {
        self.found["Tags"] = json!({"team": "x", "by-hand": "y"});
        self.body["Tags"] = tags;
        let target = WriteTarget {
            kind: self.slot.kind(),
            key: &self.slot,
            found: Some(&self.found),
        };
        let calls = calls(sample);
        calls.put(reconcile(), target, &self.body, &Condition::Any).await
    }
}

#[rstest]
#[case::endpoint(endpoint())]
#[case::group(group())]
#[case::service(service())]
#[tokio::test]
async fn tags_that_differ_are_sent_after_all_else(#[case] case: Case) {
    let sample = Sample::new([answer(200, &done(case.action)), answer(200, &done("CreateTags"))]);
    let (action, tags) = (case.action, json!({"team": "x", CLUSTER_ID_TAG: "id"}));
    let put = case.put(&sample, tags).await.unwrap();
    let expected = [action, &format!("CreateTags Tag.1.Key={CLUSTER_ID_TAG}")];
    assert_eq!(sent(&sample, &["Tag.1.Key", "Tag.2.Key"]), expected);
    if let Some(shown) = put.shown {
        let all = json!({"team": "x", "by-hand": "y", CLUSTER_ID_TAG: "id"});
        assert_eq!(shown["Tags"], all);
    }
}

/// Those that it has to have are missing in the next read; the owner's alone is no difference.
#[rstest]
#[case::endpoint(endpoint())]
#[case::group(group())]
#[case::service(service())]
#[tokio::test]
async fn refused_tags_leave_what_was_changed_as_a_success(
    #[case] case: Case,
    #[values("UnauthorizedOperation", "TagLimitExceeded", "RequestLimitExceeded")] code: &str,
) {
    let sample = Sample::new([answer(200, &done(case.action)), refusal(400, code)]);
    let put = case.put(&sample, json!({"team": "z"})).await.unwrap();
    assert_eq!(sample.aws.requests().len(), 2);
    if let Some(shown) = put.shown {
        assert_eq!(shown["Tags"]["team"], "x", "as it is");
    }
}

#[rstest]
#[case::endpoint(endpoint())]
#[case::group(group())]
#[case::service(service())]
#[tokio::test]
async fn refused_tags_alone_are_a_failure(#[case] case: Case) {
    let sample = Sample::new([refusal(403, "UnauthorizedOperation")]);
    let put = case.unchanged().put(&sample, json!({"team": "z"})).await;
    assert!(matches!(put, Err(WriteError::Failed(error)) if error.code == "UnauthorizedOperation"));
}
