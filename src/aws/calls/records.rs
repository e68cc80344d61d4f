//! The records of a slot are read together, and changed in one batch.

use std::collections::BTreeMap;

use hyperlink_engine::client::{Execution, Reconcile, WriteError, WriteTarget};
use serde_json::{Value, json};

use super::{Calls, Written, accepted, shown};
use crate::api::error::AwsError;
use crate::body::text;
use crate::cloud::Aws;
use crate::kinds::records;
use crate::route53::{Change, ChangeKind, RecordSet};
use crate::slot::Slot;

impl Calls {
    /// Reads the records of a slot; gone if there is none.
    pub(super) async fn records(&self, reconcile: Reconcile, slot: &Slot) -> Result<Value, AwsError> {
        let zone = slot.container().unwrap_or_default();
        let names: Vec<&str> = slot.record_names().collect();
        let found = self.route53.records_named(reconcile, zone, &names).await?;
        if found.is_empty() {
            return Err(AwsError::missing());
        }
        Ok(shown::records(&found))
    }

    /// Creates the records of the body, or puts them in place of those that were read. All others are left as they are.
    pub(super) async fn put_records(
        &self,
        reconcile: Reconcile,
        target: WriteTarget<'_, Aws>,
        body: &Value,
    ) -> Written {
        let desired = records::shown(body);
        let found = target.found.map(records::shown).unwrap_or_default();
        let replaced = found
            .iter()
            .filter(|(name, record)| desired.get(*name).is_some_and(|desired| desired != *record));
        let mut changes = changes(ChangeKind::Delete, replaced);
        let missing = desired
            .iter()
            .filter(|(name, record)| found.get(*name) != Some(*record));
        changes.extend(self::changes(ChangeKind::Create, missing));
        self.change(reconcile, target.key, &changes).await?;
        let after: BTreeMap<&str, &Value> = found.into_iter().chain(desired).collect();
        Ok(accepted(Some(json!({"Records": after})), Execution::Complete))
    }

    /// Deletes the records as they were read.
    pub(super) async fn delete_records(
        &self,
        reconcile: Reconcile,
        target: WriteTarget<'_, Aws>,
    ) -> Result<Execution, WriteError<AwsError>> {
        let Some(found) = target.found else {
            return Ok(Execution::NothingThere);
        };
        let found = records::shown(found);
        self.change(reconcile, target.key, &changes(ChangeKind::Delete, found.iter()))
            .await?;
        Ok(Execution::Complete)
    }

    async fn change(&self, reconcile: Reconcile, slot: &Slot, changes: &[Change]) -> Result<(), WriteError<AwsError>> {
        let zone = slot.container().unwrap_or_default();
        self.route53.change_records(reconcile, zone, changes).await
    }
}

/// One change of this kind for each record.
fn changes<'a>(kind: ChangeKind, records: impl Iterator<Item = (&'a &'a str, &'a &'a Value)>) -> Vec<Change> {
    let changes = records.map(|(name, record)| Change {
        kind,
        records: record_set(name, record),
    });
    changes.collect()
}

fn record_set(name: &str, record: &Value) -> RecordSet {
    let values = record["Values"].as_array().into_iter().flatten();
    RecordSet {
        name: name.to_owned(),
        kind: text(record, "Type").to_owned(),
        ttl: record["TTL"].as_u64(),
        values: values.filter_map(Value::as_str).map(str::to_owned).collect(),
        set_identifier: record["SetIdentifier"].as_str().map(str::to_owned),
    }
}
