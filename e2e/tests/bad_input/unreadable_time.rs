//! A time that the API server accepts and this program's library cannot read, where any writer may put one.

use anyhow::{Result, bail};
use e2e::hosted_cluster::ROUTER;
use e2e::hyperlink::{Hyperlink, Role};
use e2e::shared_env::{SharedEnv, alone};
use e2e::tenant::Tenant;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

/// A patch of `managedFields` whose time the API server accepts and this program's library cannot read.
fn written_at_the_end_of_time(version: &str) -> Value {
    let entry = json!({"manager": "x", "operation": "Update", "time": "9999-12-31T12:00:00Z", "apiVersion": version,
        "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:location": {}}}});
    json!({"metadata": {"managedFields": [entry]}})
}

/// A process that watches already is not affected; the next one has to list.
#[test]
fn object_of_a_tenant_that_cannot_be_read_stops_no_new_leader() {
    alone(async |test_env| {
        let ho = Hyperlink::start(&test_env, Role::Ho, "ho", &[]).await?;
        let cpo = Hyperlink::start(&test_env, Role::Cpo, "cpo", &[]).await?;
        let mut shared_env = SharedEnv { test_env, ho, cpo };
        let cluster = shared_env.lives("tenant").await?;
        let tenant = Tenant::of(&shared_env.test_env, &cluster).await?;
        let hypershift = written_at_the_end_of_time("hypershift.openshift.io/v1beta1");
        spoil(&tenant.hypershift("AzurePrivateLinkService"), ROUTER, &hypershift).await?;
        spoil(&tenant.hypershift("HostedControlPlane"), cluster.name(), &hypershift).await?;
        let services = tenant.api("", "v1", "Service");
        spoil(&services, ROUTER, &written_at_the_end_of_time("v1")).await?;
        restart(&mut shared_env).await?;
        shared_env.lives("newcomer").await.map(drop)
    });
}

/// Applies a patch that the API server accepts; its answer cannot be read here either.
async fn spoil(api: &Api<DynamicObject>, name: &str, patch: &Value) -> Result<()> {
    match api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await {
        Err(kube::Error::SerdeError(_)) => Ok(()),
        answer => bail!("it can be read: {answer:?}"),
    }
}

async fn restart(shared_env: &mut SharedEnv) -> Result<()> {
    let ho = Hyperlink::start(&shared_env.test_env, Role::Ho, "ho-again", &[]).await?;
    std::mem::replace(&mut shared_env.ho, ho).stop().await?;
    let cpo = Hyperlink::start(&shared_env.test_env, Role::Cpo, "cpo-again", &[]).await?;
    std::mem::replace(&mut shared_env.cpo, cpo).stop().await
}
