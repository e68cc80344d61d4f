//! The calls of the engine, as the client sends them.

use hyperlink_engine::client::{
    self, Accepted, Condition, Execution, OperationState, Reconcile, WriteError, WriteTarget,
};
use serde_json::Value;
use url::Url;

use crate::arm::client::{Answer, Client};
use crate::arm::error::ArmError;
use crate::arm::id::ResourceId;
use crate::arm::message::shows;
use crate::arm::resource_list::ResourceList;
use crate::cloud::Arm;
use crate::kinds::Kind;

impl client::CloudClient<Arm> for Client {
    async fn get(&self, reconcile: Reconcile, kind: Kind, id: &ResourceId) -> Result<Value, ArmError> {
        let answer = self.get(reconcile, kind, id).await?;
        Ok(answer.body)
    }

    async fn list(&self, reconcile: Reconcile, kind: Kind, list: &ResourceList) -> Result<Vec<Value>, ArmError> {
        self.list(reconcile, kind, list.subscription(), &list.path()).await
    }

    async fn put(
        &self,
        reconcile: Reconcile,
        target: WriteTarget<'_, Arm>,
        body: &Value,
        condition: &Condition,
    ) -> Result<Accepted<Arm>, WriteError<ArmError>> {
        let answer = self.put(reconcile, target.kind, target.key, body, condition).await?;
        Ok(accepted(answer, target.key))
    }

    async fn delete(
        &self,
        reconcile: Reconcile,
        target: WriteTarget<'_, Arm>,
        condition: &Condition,
    ) -> Result<Accepted<Arm>, WriteError<ArmError>> {
        let answer = self.delete(reconcile, target.kind, target.key, condition).await?;
        Ok(accepted(answer, target.key))
    }

    async fn poll(
        &self,
        reconcile: Reconcile,
        kind: Kind,
        id: &ResourceId,
        url: &Url,
    ) -> Result<OperationState<ArmError>, ArmError> {
        self.operation(reconcile, kind, id, url).await
    }
}

fn accepted(answer: Answer, id: &ResourceId) -> Accepted<Arm> {
    Accepted {
        execution: match answer.status {
            202 => Execution::Running,
            204 => Execution::NothingThere,
            _ => Execution::Complete,
        },
        shown: Some(answer.body).filter(|body| shows(body, id)),
        retry_after: answer.retry_after,
        operation: answer.operation,
    }
}
