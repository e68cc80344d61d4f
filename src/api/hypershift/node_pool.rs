//! What is read of a NodePool: in which subnet its workers are.

use serde::{Deserialize, Deserializer, de::IgnoredAny};

use crate::api::lenient::or_default;

/// What is read of a NodePool's spec.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodePoolSpec {
    /// Name of the HostedCluster whose workers these are.
    #[serde(deserialize_with = "or_default")]
    pub cluster_name: Option<String>,
    /// Where the workers run.
    #[serde(deserialize_with = "or_default")]
    pub platform: NodePoolPlatform,
}

/// `spec.platform` of a NodePool: where the workers run.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodePoolPlatform {
    /// The details, for workers on AWS.
    #[serde(deserialize_with = "or_default")]
    pub aws: Option<NodesOnAws>,
}

/// `spec.platform.aws` of a NodePool: workers on AWS.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodesOnAws {
    /// Their subnet.
    #[serde(deserialize_with = "or_default")]
    pub subnet: NodeSubnet,
}

/// `spec.platform.aws.subnet` of a NodePool: by id or by filters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSubnet {
    /// The subnet's id.
    #[serde(deserialize_with = "or_default")]
    pub id: Option<String>,
    /// Whether filters choose the subnet. Hyperlink does not read by which.
    #[serde(rename = "filters", deserialize_with = "has_items")]
    pub has_filters: bool,
}

/// Whether the value is a list with an item at least.
fn has_items<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let items: Vec<IgnoredAny> = or_default(deserializer)?;
    Ok(!items.is_empty())
}

#[cfg(test)]
mod tests {
    use kube::Resource;
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::api::NodePool;

    #[rstest]
    #[case::id(json!({"id": "subnet-1"}), Some("subnet-1"), false)]
    #[case::filters(json!({"filters": [{"name": "tag:Name", "values": ["x"]}]}), None, true)]
    #[case::no_filters(json!({"id": "subnet-1", "filters": []}), Some("subnet-1"), false)]
    #[case::strange(json!({"id": 7, "filters": "x"}), None, false)]
    #[case::text(json!("subnet-1"), None, false)]
    fn subnet_is_read(#[case] subnet: Value, #[case] id: Option<&str>, #[case] has_filters: bool) {
        let pool: NodePool = serde_json::from_value(json!({"metadata": {"name": "workers"},
            "spec": {"clusterName": "example", "platform": {"type": "AWS", "aws": {"subnet": subnet}}}}))
        .unwrap();
        assert_eq!(pool.spec.cluster_name.as_deref(), Some("example"));
        let found = pool.spec.platform.aws.unwrap().subnet;
        assert_eq!((found.id.as_deref(), found.has_filters), (id, has_filters));
    }

    #[test]
    fn pool_of_another_shape_is_read_as_empty() {
        for spec in [
            json!(null),
            json!([]),
            json!({"clusterName": {}, "platform": {"aws": 1}}),
        ] {
            let pool: NodePool = serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap();
            assert_eq!(pool.spec, NodePoolSpec::default());
        }
        assert_eq!(NodePool::plural(&()), "nodepools");
    }
}
