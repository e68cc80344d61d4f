//! Processes that are killed (-9) at each write to AWS, once before and once after its effect, while a cluster is
//! created and while it is deleted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use e2e::hyperlink::Role;
use e2e::{AwsEnv, eventually, scenario};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, DeleteParams};
use serde_json::{Value, json};

use crate::both::{Both, is_of, lease_of};

/// The longest time that a phase takes with all its deaths.
const PHASE: Duration = Duration::from_secs(300);
/// The actions that create a path.
const CREATION: [&str; 6] = [
    "CreateSecurityGroup",
    "AuthorizeSecurityGroupIngress",
    "CreateVpcEndpointServiceConfiguration",
    "ModifyVpcEndpointServicePermissions",
    "CreateVpcEndpoint",
    "ChangeResourceRecordSets",
];
/// The actions that delete it.
const DELETION: [&str; 4] = [
    "ChangeResourceRecordSets",
    "DeleteVpcEndpoints",
    "DeleteSecurityGroup",
    "DeleteVpcEndpointServiceConfigurations",
];

/// The deaths that are still to come: by action, whether AWS carries out the call that a process dies in.
struct Deaths(BTreeMap<&'static str, bool>);

impl Deaths {
    fn at(actions: &[&'static str]) -> Self {
        Self(actions.iter().map(|action| (*action, false)).collect())
    }

    /// Fault rules by which none of these calls is answered.
    fn rules(&self) -> Value {
        let rule = |(action, accepted): (&&str, &bool)| {
            let mut held = json!({"delay_ms": 300_000});
            if !accepted {
                held["drop"] = json!("before");
            }
            json!({"match": {"path": format!("/{action}$"), "from": 1, "times": 1_000_000}, "do": held})
        };
        self.0.iter().map(rule).collect()
    }

    /// One death less: the next one at this action is after its effect.
    fn suffer(&mut self, action: &str) {
        if let Some(accepted) = self.0.get_mut(action) {
            if *accepted {
                self.0.remove(action);
            } else {
                *accepted = true;
            }
        }
    }
}

impl Both {
    /// Kills a process at each of these calls, and starts it again.
    async fn lives_on(&mut self, actions: &[&'static str]) -> Result<()> {
        let mut deaths = Deaths::at(actions);
        let mut since = self.env.oracle().last_call().await?;
        while !deaths.0.is_empty() {
            self.env.oracle().faults(&deaths.rules()).await?;
            let call = eventually(&format!("one of {:?}", deaths.0), PHASE, || async {
                let calls = self.calls(since).await?;
                let due = calls.into_iter().find(|call| deaths.0.contains_key(call.action()));
                due.context("none of them")
            })
            .await?;
            let role = if is_of(Role::Ho, &call) { Role::Ho } else { Role::Cpo };
            println!("{} dies at {}: {:?}", role.as_str(), call.action(), deaths.0);
            *self.process(role) = None;
            since = call.seq;
            deaths.suffer(call.action());
            self.env.oracle().faults(&deaths.rules()).await?;
            release_lease(&self.env, &lease_of(role, &self.cluster)).await?;
            self.start_role(role).await?;
        }
        self.env.oracle().faults(&json!([])).await
    }
}

/// Lets the next process with this lease lead at once: the dead one holds it.
async fn release_lease(env: &AwsEnv, lease: &str) -> Result<()> {
    let leases: Api<Lease> = Api::namespaced(env.client()?, env.hyperlink_namespace());
    leases.delete(lease, &DeleteParams::default()).await?;
    env.create_lease(lease).await
}

#[test]
fn roles_killed_at_each_write_leave_one_of_everything() {
    scenario(async {
        let mut both = Both::start("mortal", "3s").await?;
        let rules = Deaths::at(&CREATION).rules();
        both.env.oracle().faults(&rules).await?;
        both.cluster.create_objects(&both.env).await?;
        both.lives_on(&CREATION).await?;
        both.becomes_available().await?;
        for kind in ["vpc-endpoint-service", "vpc-endpoint", "security-group"] {
            both.only(kind).await?;
        }

        let (cluster, env) = (both.cluster.clone(), Arc::clone(&both.env));
        env.oracle().faults(&Deaths::at(&DELETION).rules()).await?;
        tokio::try_join!(cluster.delete(&env, PHASE), both.lives_on(&DELETION))?;
        both.nothing_is_left().await?;
        both.ensure_no_denied_call().await?;
        both.stop().await
    });
}
