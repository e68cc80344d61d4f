//! Endpoint services are read by id once that is known, and else searched in the list of the account: AWS has no filter
//! by load balancer.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hyperlink_engine::client::{Reconcile, WriteError, WriteTarget};
use hyperlink_engine::cloud::Key;
use hyperlink_engine::failure::Class;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Calls, Written, client_token, not_sent, put_to, shown};
use crate::api::error::AwsError;
use crate::body::{tags, texts};
use crate::cloud::Aws;
use crate::ec2::{EndpointService, NewEndpointService, Selection, ServiceChanges, ServiceState, filter};
use crate::kinds::load_balancer::name_in_arn;
use crate::slot::Slot;

/// How long it is remembered that AWS denied to change endpoint services. Somebody may allow it later.
///
/// Rule: X16 in `docs/compatibility.md`.
const DENIED_FOR: Duration = Duration::from_secs(3_600);

impl Calls {
    /// Reads the endpoint service of a load balancer. What a recorded id does not show is searched.
    pub(super) async fn endpoint_service(&self, reconcile: Reconcile, slot: &Slot) -> Result<Value, AwsError> {
        let region = &slot.scope().region;
        if let Some(id) = self.ids.known(slot) {
            match self.ec2.endpoint_services(reconcile, &Selection::id(&id)).await {
                Ok(found) => {
                    let found = found.iter().find(|service| service.id == id && exists(service));
                    let body = found.map(|service| shown::endpoint_service(service, region));
                    match body {
                        Some(body) if leads_to(&body, slot) => return Ok(body),
                        Some(_) => self.ids.forget_recorded(slot),
                        None => {}
                    }
                }
                // Only a recorded id may be wrong.
                Err(error) if is_no_such_id(&error) && self.ids.shown(slot).is_none() => {}
                Err(error) => return Err(error),
            }
        }
        let all = self.endpoint_services(reconcile, region).await?;
        let found = all.into_iter().find(|body| leads_to(body, slot));
        found.ok_or_else(AwsError::missing)
    }

    /// Reads all endpoint services of the account.
    pub(super) async fn endpoint_services(&self, reconcile: Reconcile, region: &str) -> Result<Vec<Value>, AwsError> {
        let all = self
            .ec2
            .endpoint_services(reconcile, &Selection::Filters(Vec::new()))
            .await?;
        let existing = all.iter().filter(|service| exists(service));
        Ok(existing
            .map(|service| shown::endpoint_service(service, region))
            .collect())
    }

    /// Reads the endpoint services with this tag.
    pub(super) async fn tagged_services(
        &self,
        reconcile: Reconcile,
        region: &str,
        (key, value): (&str, &str),
    ) -> Result<Vec<Value>, AwsError> {
        self.take_call(false, &format!("{:x} endpoint services", reconcile.caller))
            .map_err(not_sent)?;
        let selection = Selection::Filters(vec![filter(&format!("tag:{key}"), value)]);
        let found = self.ec2.endpoint_services(reconcile, &selection).await?;
        // The filter takes wildcards, and the value may be anybody's.
        let own = found
            .iter()
            .filter(|service| exists(service) && service.tags.get(key).is_some_and(|own| own == value));
        Ok(own.map(|service| shown::endpoint_service(service, region)).collect())
    }

    /// Creates an endpoint service, or changes what differs.
    pub(super) async fn put_endpoint_service(
        &self,
        reconcile: Reconcile,
        target: WriteTarget<'_, Aws>,
        body: &Value,
    ) -> Written {
        let Some(found) = target.found else {
            let arns = body["NetworkLoadBalancerArns"].as_array();
            let arn = arns.and_then(|arns| arns.first()).and_then(Value::as_str);
            let new = NewEndpointService {
                load_balancer: arn.unwrap_or_default().to_owned(),
                client_token: client_token(body)?,
                tags: tags(body),
            };
            let created = self.ec2.create_endpoint_service(reconcile, &new).await?;
            return Ok(put_to(shown::endpoint_service(&created, &target.key.scope().region)));
        };
        let id = self.id_of(target)?;
        let is_changed = found["AcceptanceRequired"] != body["AcceptanceRequired"];
        if is_changed {
            let changes = ServiceChanges {
                acceptance_required: body["AcceptanceRequired"].as_bool(),
                ..ServiceChanges::default()
            };
            self.change_endpoint_service(reconcile, &id, &changes).await?;
        }
        let mut changed = found.clone();
        changed["AcceptanceRequired"] = body["AcceptanceRequired"].clone();
        changed["Tags"] = json!(self.add_tags(reconcile, (found, body), is_changed).await?);
        Ok(put_to(changed))
    }
}

impl Calls {
    /// Changes an endpoint service, unless that was denied lately: HyperShift's own policies do not allow it.
    async fn change_endpoint_service(
        &self,
        reconcile: Reconcile,
        id: &str,
        changes: &ServiceChanges,
    ) -> Result<(), WriteError<AwsError>> {
        if let Some(error) = self.denied_change.lately(id, Instant::now()) {
            return Err(error.into());
        }
        let changed = self.ec2.modify_endpoint_service(reconcile, id, changes).await;
        if let Err(WriteError::Failed(error)) = &changed
            && error.is_of_policies()
        {
            self.denied_change.note(id, error, Instant::now());
        }
        changed
    }
}

/// Which endpoint services AWS denied to change, by id.
#[derive(Debug, Default)]
pub(super) struct DeniedChange(Mutex<HashMap<String, (AwsError, Instant)>>);

impl DeniedChange {
    fn lately(&self, id: &str, now: Instant) -> Option<AwsError> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, (_, at)| now.saturating_duration_since(*at) < DENIED_FOR);
        all.get(id).map(|(error, _)| error.clone())
    }

    fn note(&self, id: &str, error: &AwsError, now: Instant) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(id.to_owned(), (error.clone(), now));
    }
}

/// Whether it leads to the load balancer of this slot, whatever else it leads to.
fn leads_to(body: &Value, slot: &Slot) -> bool {
    let arns = texts(body, "NetworkLoadBalancerArns");
    arns.iter().any(|arn| name_in_arn(arn) == Some(slot.name()))
}

/// Whether AWS says that there is nothing with this id, or that it is none.
pub(super) fn is_no_such_id(error: &AwsError) -> bool {
    error.class == Class::Gone || (error.class == Class::Invalid && error.code.ends_with("Malformed"))
}

/// Whether it is more than the trace of one that is deleted.
fn exists(service: &EndpointService) -> bool {
    service.state != ServiceState::Deleted
}
