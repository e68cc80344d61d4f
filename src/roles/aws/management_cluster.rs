//! What is learned before a role leads on AWS: the own account, and for role `ho` the name of the management cluster's
//! infrastructure.

use std::time::Duration;

use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};

use super::{AwsConnection, Prepared};
use crate::api::Role;
use crate::aws::api::error::AwsError;
use crate::aws::sts;
use crate::http::ReadinessItem;
use crate::runtime::call::{ReconcileError, within};

/// The time between two tries to learn both.
const RETRY: Duration = Duration::from_secs(5);

/// Why they are not known.
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
pub(super) async fn wait_for(role: Role, aws: &AwsConnection, kube: &kube::Client, item: &ReadinessItem) -> Prepared {
    loop {
        match read(role, aws, kube).await {
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
pub(super) async fn read(role: Role, aws: &AwsConnection, kube: &kube::Client) -> Result<Prepared, Unknown> {
    let account = sts::caller_account(&aws.connection, &aws.sessions).await;
    Ok(Prepared {
        account: account.map_err(Unknown::Account)?,
        infrastructure: match role {
            Role::Ho => infrastructure_name(kube).await?,
            Role::Cpo | Role::Capz => None,
        },
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
