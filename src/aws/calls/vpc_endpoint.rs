//! Endpoints are read by their VPC and endpoint service, and by id where that does not show the one that is known.

use std::collections::VecDeque;
use std::time::Duration;

use hyperlink_engine::client::{Execution, Reconcile, WriteError, WriteTarget};
use hyperlink_engine::cloud::Key;
use hyperlink_engine::failure::Class;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::endpoint_service::is_no_such_id;
use super::{Calls, Written, accepted, client_token, not_sent, put_to, shown};

use crate::api::error::{AwsError, TOO_MANY_UNANSWERED};
use crate::body::{Tags, tags, text, texts};
use crate::cloud::Aws;
use crate::ec2::{Endpoint, EndpointChanges, EndpointState, NewEndpoint, Selection, filter};
use crate::kinds::vpc_endpoint::SubnetChange;
use crate::slot::Slot;

/// The code of a call of which AWS refuses a subnet, so that another one is tried.
const SUBNET_REFUSED: &str = "SubnetRefused";

/// The wait before another subnet is tried.
const NEXT_SUBNET: Duration = Duration::from_secs(5);

impl Calls {
    /// Reads the endpoint in a VPC to an endpoint service. Of several it shows the one that is known first, else the
    /// oldest of those that are available.
    pub(super) async fn vpc_endpoint(&self, reconcile: Reconcile, slot: &Slot) -> Result<Value, AwsError> {
        let vpc = slot.container().unwrap_or_default();
        let mut found = self.endpoints_of_vpc(reconcile, slot.name(), vpc).await?;
        let known = self.ids.known(slot);
        // A filter may be behind.
        if let Some(id) = known
            .as_deref()
            .filter(|id| found.iter().all(|endpoint| endpoint.id != *id))
        {
            match self.ec2.endpoints(reconcile, &Selection::id(id)).await {
                Ok(by_id) => found.extend(by_id),
                Err(error) if is_no_such_id(&error) => {}
                Err(error) => return Err(error),
            }
        }
        let fits = |endpoint: &&Endpoint| {
            let service = endpoint.service_name.as_deref() == Some(slot.name());
            service && endpoint.vpc_id.as_deref() == Some(vpc) && endpoint.state != EndpointState::Deleted
        };
        let mut found: Vec<&Endpoint> = found.iter().filter(fits).collect();
        found.sort_by_key(|endpoint| {
            let is_other = known.as_ref() != Some(&endpoint.id);
            (is_other, rank(&endpoint.state), endpoint.created, endpoint.id.clone())
        });
        let mut bodies: VecDeque<Value> = found.into_iter().map(shown::vpc_endpoint).collect();
        let mut body = bodies.pop_front().ok_or_else(AwsError::missing)?;
        self.note_tags(slot, &mut body)?;
        if !bodies.is_empty() {
            body["Candidates"] = json!(bodies);
        }
        Ok(body)
    }

    /// Reads a further endpoint, by its id.
    pub(super) async fn further_endpoint(&self, reconcile: Reconcile, slot: &Slot) -> Result<Value, AwsError> {
        let found = self.ec2.endpoints(reconcile, &Selection::id(slot.name())).await?;
        let is_it = |endpoint: &&Endpoint| endpoint.id == slot.name() && endpoint.state != EndpointState::Deleted;
        let endpoint = found.iter().find(is_it).ok_or_else(AwsError::missing)?;
        Ok(shown::vpc_endpoint(endpoint))
    }

    /// Reads the endpoints in a VPC with these tags.
    pub(super) async fn tagged_endpoints(
        &self,
        reconcile: Reconcile,
        vpc: &str,
        tags: &Tags,
    ) -> Result<Vec<Value>, AwsError> {
        self.take_call(false, &format!("{:x} endpoints {vpc}", reconcile.caller))
            .map_err(not_sent)?;
        let of_tags = tags.iter().map(|(key, value)| filter(&format!("tag:{key}"), value));
        let filters = std::iter::once(filter("vpc-id", vpc)).chain(of_tags);
        let found = self
            .ec2
            .endpoints(reconcile, &Selection::Filters(filters.collect()))
            .await?;
        // The filters take wildcards, and the values may be anybody's.
        let has_all = |endpoint: &&Endpoint| tags.iter().all(|(key, value)| endpoint.tags.get(key) == Some(value));
        let live = found.iter().filter(|endpoint| endpoint.state != EndpointState::Deleted);
        Ok(live.filter(has_all).map(shown::vpc_endpoint).collect())
    }

    /// Reads the endpoints in a VPC to an endpoint service, and now and then with them all others of the VPC, to count
    /// them.
    async fn endpoints_of_vpc(
        &self,
        reconcile: Reconcile,
        service: &str,
        vpc: &str,
    ) -> Result<Vec<Endpoint>, AwsError> {
        let counts = self.vpc_usage.is_due(vpc, Instant::now());
        let mut filters = vec![filter("vpc-id", vpc)];
        if !counts {
            filters.push(filter("service-name", service));
        }
        let found = self.ec2.endpoints(reconcile, &Selection::Filters(filters)).await?;
        if counts {
            self.vpc_usage.count(vpc, &found, Instant::now());
        }
        Ok(found)
    }

    /// Creates an endpoint, or makes the next change to it.
    pub(super) async fn put_vpc_endpoint(
        &self,
        reconcile: Reconcile,
        target: WriteTarget<'_, Aws>,
        body: &Value,
    ) -> Written {
        let Some(found) = target.found else {
            let new = NewEndpoint {
                service_name: text(body, "ServiceName").to_owned(),
                vpc_id: text(body, "VpcId").to_owned(),
                subnet_ids: texts(body, "SubnetIds").into_iter().collect(),
                group_ids: texts(body, "GroupIds").into_iter().collect(),
                client_token: client_token(body)?,
                tags: tags(body),
            };
            let asked = EndpointChanges {
                add_subnets: new.subnet_ids.clone(),
                ..EndpointChanges::default()
            };
            let created = self.ec2.create_endpoint(reconcile, &new).await;
            let created = created.map_err(|error| self.or_refusal(target.key, (None, body), &asked, error))?;
            self.vpc_usage.forget(&new.vpc_id);
            return Ok(put_to(shown::vpc_endpoint(&created)));
        };
        let id = self.id_of(target)?;
        let subnets = SubnetChange::next(found, body).map(|change| self.taken_in_one_call(target.key, change));
        let groups = texts(body, "GroupIds");
        let missing_groups: Vec<String> = groups.difference(&texts(found, "GroupIds")).cloned().collect();
        if subnets.is_none() && missing_groups.is_empty() {
            let mut changed = found.clone();
            changed["Tags"] = json!(self.add_tags(reconcile, (found, body), false).await?);
            return Ok(put_to(changed));
        }
        let subnets = subnets.unwrap_or_default();
        let changes = EndpointChanges {
            add_subnets: subnets.added.into_iter().collect(),
            remove_subnets: subnets.removed.into_iter().collect(),
            add_groups: missing_groups,
            remove_groups: Vec::new(),
        };
        let (slot, now) = (target.key, Instant::now());
        if self.sent_changes.is_taken(slot, &changes, now) {
            return Ok(accepted(Some(found.clone()), Execution::Running));
        }
        let modified = self.ec2.modify_endpoint(reconcile, &id, &changes).await;
        if let Err(WriteError::Failed(error)) = &modified
            && error.class == Class::Down
            && error.code != TOO_MANY_UNANSWERED
        {
            // AWS may have taken it.
            self.sent_changes.note_taken(slot, changes.clone(), now);
        }
        modified.map_err(|error| self.or_refusal(slot, (Some(found), body), &changes, error))?;
        self.sent_changes.note_taken(slot, changes, now);
        // What it was serves until a read shows what it is.
        let mut shown = found.clone();
        shown["Tags"] = json!(self.add_tags(reconcile, (found, body), true).await?);
        Ok(accepted(Some(shown), Execution::Running))
    }

    /// The change, or the first half of a swap where AWS takes none in one call.
    fn taken_in_one_call(&self, slot: &Slot, change: SubnetChange) -> SubnetChange {
        if change.is_swap() && self.sent_changes.refuses_swaps(slot, Instant::now()) {
            return change.removal();
        }
        change
    }

    /// Notes which subnets AWS refuses, where nothing told that it takes them. Returns the error: in that case that
    /// something else is tried next.
    fn or_refusal(
        &self,
        slot: &Slot,
        (found, body): (Option<&Value>, &Value),
        changes: &EndpointChanges,
        error: WriteError<AwsError>,
    ) -> WriteError<AwsError> {
        let WriteError::Failed(refusal) = &error else {
            return error;
        };
        let (sent, now) = (&self.sent_changes, Instant::now());
        let may_be_refused = body["MayBeRefused"] == true && changes.add_groups.is_empty();
        let removes_all = found.is_some_and(|found| changes.remove_subnets.iter().eq(&texts(found, "SubnetIds")));
        match (changes.add_subnets.as_slice(), changes.remove_subnets.as_slice()) {
            ([_], [_]) if refusal.refuses_two_of_a_zone() => sent.note_refused_swap(slot, now),
            ([], [only]) if removes_all && refusal.class == Class::Invalid => {
                sent.note_refused(slot, only, &refusal.code, false, now);
            }
            (added, _) if may_be_refused && !added.is_empty() && refusal.may_refuse_a_subnet() => {
                let refused = if let [one] = added { one } else { "" };
                sent.note_refused(slot, refused, &refusal.code, found.is_none(), now);
            }
            _ => return error,
        }
        tracing::warn!(id = %slot, code = refusal.code, text = refusal.text, "subnet refused");
        let next = AwsError {
            retry_after: Some(NEXT_SUBNET),
            ..AwsError::own(Class::Busy, SUBNET_REFUSED)
        };
        WriteError::Failed(next)
    }
}

/// Which state comes first where there are several endpoints.
fn rank(state: &EndpointState) -> u8 {
    match state {
        EndpointState::Available => 0,
        EndpointState::Pending | EndpointState::PendingAcceptance => 1,
        EndpointState::Deleting => 3,
        _ => 2,
    }
}
