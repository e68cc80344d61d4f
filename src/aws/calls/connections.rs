//! The connections of an endpoint service are read together; to delete them is to reject them.

use hyperlink_engine::client::{Execution, Reconcile, WriteError, WriteTarget};
use serde_json::{Value, json};

use super::{Calls, shown};
use crate::api::error::AwsError;
use crate::body::texts;
use crate::cloud::Aws;
use crate::kinds::endpoint_connections::is_rejectable;
use crate::slot::Slot;

impl Calls {
    /// Reads the connections that have to be rejected.
    pub(super) async fn endpoint_connections(&self, reconcile: Reconcile, slot: &Slot) -> Result<Value, AwsError> {
        let service = self.service_id(slot)?;
        let found = self.ec2.connections(reconcile, &service).await?;
        let live = found
            .iter()
            .filter(|connection| is_rejectable(shown::endpoint_state(&connection.state)));
        let endpoints: Vec<&str> = live.map(|connection| connection.endpoint_id.as_str()).collect();
        if endpoints.is_empty() {
            return Err(AwsError::missing());
        }
        Ok(json!({"EndpointIds": endpoints}))
    }

    /// Rejects the connections that were read.
    pub(super) async fn reject_connections(
        &self,
        reconcile: Reconcile,
        target: WriteTarget<'_, Aws>,
    ) -> Result<Execution, WriteError<AwsError>> {
        let service = self.service_id(target.key)?;
        let rejected = target
            .found
            .map(|found| texts(found, "EndpointIds"))
            .unwrap_or_default();
        let rejected: Vec<String> = rejected.into_iter().collect();
        let failed = self.ec2.reject_connections(reconcile, &service, &rejected).await?;
        match failed.into_iter().next() {
            Some((_, error)) => Err(error.into()),
            None => Ok(Execution::Running),
        }
    }
}
