//! What is learned of the management cluster on AWS: its account, and the name of its infrastructure.

use std::time::Duration;

use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};

use super::{AwsConnection, Prepared};
use crate::aws::api::error::AwsError;
use crate::aws::sts;
use crate::http::ReadinessItem;
use crate::runtime::call::{ReconcileError, within};

/// The time between two tries to learn of the management cluster.
const RETRY: Duration = Duration::from_secs(5);

/// Why nothing is known of the management cluster.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unknown {
    /// AWS does not tell the account.
    #[error("the Security Token Service does not tell the own account: {0}")]
    Account(AwsError),
    /// The API server refuses, or does not answer.
    #[error("infrastructures.config.openshift.io \"cluster\" cannot be read: {0}")]
    Infrastructure(#[from] ReconcileError),
}

/// Waits until both are known.
pub(super) async fn wait_for(aws: &AwsConnection, kube: &kube::Client, item: &ReadinessItem) -> Prepared {
    loop {
        match read(aws, kube).await {
            Ok(prepared) => {
                item.ready();
                return prepared;
            }
            Err(error) => item.waiting(&error.to_string()),
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// Reads both.
pub(super) async fn read(aws: &AwsConnection, kube: &kube::Client) -> Result<Prepared, Unknown> {
    let account = sts::caller_account(&aws.connection, &aws.sessions).await;
    Ok(Prepared {
        account: account.map_err(Unknown::Account)?,
        infrastructure: infrastructure_name(kube).await?,
    })
}

/// The name; none where the API server has no such object or API.
async fn infrastructure_name(kube: &kube::Client) -> Result<Option<String>, ReconcileError> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("config.openshift.io", "v1", "Infrastructure"));
    let api: Api<DynamicObject> = Api::all_with(kube.clone(), &resource);
    let found = within(api.get_opt("cluster")).await?;
    let name = found.and_then(|found| found.data["status"]["infrastructureName"].as_str().map(str::to_owned));
    Ok(name.filter(|name| !name.is_empty()))
}
