//! The simulated Azure as a process of its own, and what it holds at first: one management subscription with a VNet and
//! an internal load balancer, two empty subscriptions for hosted clusters, and one identity for each role of Hyperlink
//! with the rights that are shipped.

mod control;
mod simulator;
pub mod used;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

pub(crate) use self::simulator::{Simulator, serving};
use crate::ControlPlane;
use crate::hosted_cluster::ADDITIONAL_SUBSCRIPTION;
use crate::hyperlink::Role;
use crate::process::{Process, Program};
use crate::test_env::{Azure, Credential, Journal, Oracle};

const TENANT: &str = "22222222-2222-4222-8222-222222222222";
const GUEST: &str = "11111111-1111-4111-8111-111111111111";
const OTHER_GUEST: &str = "55555555-5555-4555-8555-555555555555";
const MANAGEMENT: &str = "33333333-3333-4333-8333-333333333333";
const GROUP: &str = "mgmt-rg";
const LOCATION: &str = "eastus";
/// The audience of tokens for ARM.
pub(crate) const AUDIENCE: &str = "https://management.azure.com";

/// Client id of the HO role's identity.
pub const HO_CLIENT: &str = "aaaaaaaa-0001-4000-8000-000000000001";
const HO_OBJECT: &str = "bbbbbbbb-0001-4000-8000-000000000001";
/// Client id of the CPO role's identity.
pub const CPO_CLIENT: &str = "aaaaaaaa-0002-4000-8000-000000000002";
const CPO_OBJECT: &str = "bbbbbbbb-0002-4000-8000-000000000002";

/// Client id of another identity with the rights of the HO role.
pub const HO_TWIN: &str = "aaaaaaaa-0001-4000-8000-000000000002";
/// Client id of another identity with the rights of the CPO role.
pub const CPO_TWIN: &str = "aaaaaaaa-0002-4000-8000-000000000003";

/// Client id of the identity of HyperShift's own operator.
pub const GO_HO_CLIENT: &str = "aaaaaaaa-0003-4000-8000-000000000001";
/// Client id of the identity of HyperShift's own control-plane-operator.
pub const GO_CPO_CLIENT: &str = "aaaaaaaa-0003-4000-8000-000000000002";

/// Client id of a person's identity that may do everything in the management subscription.
pub const ADMINISTRATOR: &str = "aaaaaaaa-0004-4000-8000-000000000001";
const ADMINISTRATOR_OBJECT: &str = "bbbbbbbb-0004-4000-8000-000000000001";
/// Client secret of [`ADMINISTRATOR`].
pub const ADMINISTRATOR_SECRET: &str = "administrator-secret";

/// The actions that HyperShift's operators may do, in the scopes of Hyperlink's identities.
const GO_ACTIONS: &str = "Microsoft.Network/*";

/// How long a start may take.
const START: Duration = Duration::from_secs(60);

/// Client secret of the HO role's identity.
pub const HO_SECRET: &str = "ho-secret";

/// How long the simulated operations take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Operations take 0.2 to 1 s.
    Fast,
    /// Operations take as long as recorded at Azure, up to minutes.
    Recorded,
}

impl Preset {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Recorded => "recorded",
        }
    }
}

impl std::str::FromStr for Preset {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "fast" => Ok(Self::Fast),
            "recorded" => Ok(Self::Recorded),
            _ => bail!("unknown preset {text:?}: use fast or recorded"),
        }
    }
}

/// A running simulator with its cloud controller. Dropping it ends both.
#[derive(Debug)]
pub struct AzureSim {
    cloud_controller: Process,
    simulator: Simulator,
}

impl AzureSim {
    /// Starts the simulator and its cloud controller, and seeds the simulator with `world` (see [`world`]).
    /// `token_file` holds a ServiceAccount token of `control_plane`, which the CPO role's identity trusts.
    ///
    /// # Errors
    ///
    /// One of them does not come up, or the simulator refuses the seed.
    pub async fn start(
        armsim: &Path,
        dir: &Path,
        preset: Preset,
        control_plane: &ControlPlane,
        token_file: PathBuf,
        world: Value,
    ) -> Result<(Self, Azure)> {
        let address = control_plane.listens().address();
        let simulator = Simulator::start(armsim, dir, preset, address, &with_twins(world)?).await?;
        let cloud_controller = cloud_controller(armsim, dir, control_plane, simulator.control().url())?;
        cloud_controller.first_line(START).await?;
        let addresses = simulator.addresses();
        let azure = Azure {
            arm: addresses.arm.clone(),
            authority: addresses.authority.clone(),
            audience: AUDIENCE.into(),
            ca_file: Some(addresses.ca.clone()),
            tenant: TENANT.into(),
            location: LOCATION.into(),
            management_subscription: MANAGEMENT.into(),
            management_group: GROUP.into(),
            management_vnet: format!("{}/virtualNetworks/mgmt-vnet", network()),
            guest_subscription: GUEST.into(),
            other_guest_subscription: OTHER_GUEST.into(),
            additional_subscription: ADDITIONAL_SUBSCRIPTION.into(),
            ho: ho_credential(dir, HO_CLIENT)?,
            ho_twin: ho_credential(dir, HO_TWIN)?,
            cpo: cpo_credential(CPO_CLIENT, token_file.clone()),
            cpo_twin: cpo_credential(CPO_TWIN, token_file.clone()),
            go_ho: ho_credential(dir, GO_HO_CLIENT)?,
            go_cpo: cpo_credential(GO_CPO_CLIENT, token_file),
        };
        Ok((
            Self {
                cloud_controller,
                simulator,
            },
            azure,
        ))
    }

    /// The simulator's control API as an oracle.
    pub fn oracle(&self) -> Arc<dyn Oracle> {
        Arc::new(self.simulator.control().clone())
    }

    /// The simulator's control API as an oracle with its journal.
    pub fn journal(&self) -> &dyn Journal {
        self.simulator.control()
    }

    /// Ends the cloud controller.
    pub fn end_cloud_controller(&self) {
        self.cloud_controller.kill();
    }

    /// The URL of the simulator's control API.
    pub fn control_url(&self) -> &str {
        self.simulator.control().url()
    }
}

fn cloud_controller(armsim: &Path, dir: &Path, control_plane: &ControlPlane, control: &str) -> Result<Process> {
    let network = network();
    Program::new(armsim)
        .without_our_environment()
        .arg("cloud-controller")
        .flag("kubeconfig", control_plane.kubeconfig_path())
        .flag("control", control)
        .flag("load-balancer", format!("{network}/loadBalancers/kubernetes-internal"))
        .flag("subnet", format!("{network}/virtualNetworks/mgmt-vnet/subnets/nodes"))
        .spawn("cloud-controller", dir)
}

fn network() -> String {
    format!("/subscriptions/{MANAGEMENT}/resourceGroups/{GROUP}/providers/Microsoft.Network")
}

fn cpo_credential(client: &str, token_file: PathBuf) -> Credential {
    Credential::WorkloadIdentity {
        tenant: TENANT.into(),
        client: client.into(),
        token_file,
    }
}

fn ho_credential(dir: &Path, client: &str) -> Result<Credential> {
    let path = dir.join(format!("azure-credentials-{client}.json"));
    let file = json!({
        "subscriptionId": MANAGEMENT, "tenantId": TENANT, "clientId": client, "clientSecret": HO_SECRET,
    });
    std::fs::write(&path, file.to_string())?;
    Ok(Credential::SecretFile { path })
}

/// Adds a second identity for each role, with the credentials and rights of the first, so that the journal
/// distinguishes two processes of one role. Adds a third for HyperShift's own operators, which may do all of
/// [`GO_ACTIONS`].
fn with_twins(mut seed: Value) -> Result<Value> {
    for (first, twin) in [
        (HO_CLIENT, HO_TWIN),
        (CPO_CLIENT, CPO_TWIN),
        (HO_CLIENT, GO_HO_CLIENT),
        (CPO_CLIENT, GO_CPO_CLIENT),
    ] {
        let principals = seed.pointer_mut("/tenants/0/principals").and_then(Value::as_array_mut);
        let principals = principals.context("a seed with principals")?;
        let known = principals.iter().find(|one| one["client_id"] == first);
        let mut principal = known.context("the first identity")?.clone();
        let object = principal["object_id"].take();
        (principal["client_id"], principal["object_id"]) = (twin.into(), twin.into());
        principals.push(principal);
        let roles = seed["roles"].as_array_mut().context("a seed with roles")?;
        let mut rights: Vec<_> = roles
            .iter()
            .filter(|role| role["object_id"] == object)
            .cloned()
            .collect();
        for right in &mut rights {
            right["object_id"] = twin.into();
            if matches!(twin, GO_HO_CLIENT | GO_CPO_CLIENT) {
                right["actions"] = json!([GO_ACTIONS]);
            }
        }
        roles.extend(rights);
    }
    Ok(seed)
}

/// The Actions of a shipped Azure role definition.
///
/// # Errors
///
/// The file is missing or is no role definition.
pub fn shipped_actions(role: &str) -> Result<Vec<String>> {
    let path = crate::repository().join(format!("docs/azure/role-{role}.json"));
    let text = std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    let mut definition: Value = serde_json::from_str(&text)?;
    serde_json::from_value(definition["Actions"].take()).with_context(|| format!("no Actions in {}", path.display()))
}

/// The ids of the ten subscriptions that guests lie in: [`Azure::guest_subscription`],
/// [`Azure::other_guest_subscription`] and eight more.
pub fn guest_subscriptions() -> Vec<String> {
    let more = (2..10).map(|n| format!("55555555-5555-4555-8555-55555555550{n}"));
    [GUEST, OTHER_GUEST]
        .map(str::to_owned)
        .into_iter()
        .chain(more)
        .collect()
}

/// The seed of the simulator: subscriptions, identities, rights and the management network.
///
/// The identities may do the shipped actions, except one `denied` action of one role; `quotas` are those of each
/// subscription, `switches` those of the simulator.
///
/// # Errors
///
/// A shipped role definition cannot be read.
pub fn world(token_keys: &Value, denied: Option<(Role, &str)>, quotas: &Value, switches: &Value) -> Result<Value> {
    let actions = |role: Role| -> Result<Vec<String>> {
        let mut actions = shipped_actions(role.as_str())?;
        actions.retain(|action| denied != Some((role, action)));
        Ok(actions)
    };
    let ho = json!({"client_id": HO_CLIENT, "object_id": HO_OBJECT, "secret": HO_SECRET});
    let cpo = json!({"client_id": CPO_CLIENT, "object_id": CPO_OBJECT, "federated": [{
        "issuer": ControlPlane::TOKEN_ISSUER,
        "subject": "system:serviceaccount:kube-system:control-plane-operator",
        "audience": "openshift",
        "jwks": token_keys,
    }]});
    let administrator =
        json!({"client_id": ADMINISTRATOR, "object_id": ADMINISTRATOR_OBJECT, "secret": ADMINISTRATOR_SECRET});
    let guests = guest_subscriptions();
    let subscriptions: Vec<_> = std::iter::once(MANAGEMENT)
        .chain(guests.iter().map(String::as_str))
        .map(|id| json!({"id": id, "tenant": TENANT, "quotas": quotas}))
        .collect();
    let role = |object: &str, subscription: &str, actions: &[String]| json!({"object_id": object, "scope": format!("/subscriptions/{subscription}"), "actions": actions});
    let of_cpo = actions(Role::Cpo)?;
    let mut roles = vec![
        role(HO_OBJECT, MANAGEMENT, &actions(Role::Ho)?),
        role(ADMINISTRATOR_OBJECT, MANAGEMENT, &["*".to_owned()]),
    ];
    roles.extend(guests.iter().map(|guest| role(CPO_OBJECT, guest, &of_cpo)));
    Ok(json!({
        "switches": switches,
        "tenants": [{"id": TENANT, "principals": [ho, cpo, administrator]}],
        "subscriptions": subscriptions,
        "roles": roles,
        "resources": [
            {"id": format!("/subscriptions/{MANAGEMENT}/resourceGroups/{GROUP}"), "location": LOCATION},
            {"id": format!("{}/virtualNetworks/mgmt-vnet", network()), "location": LOCATION, "properties": {
                "addressSpace": {"addressPrefixes": ["10.224.0.0/12"]},
                "subnets": [{"name": "nodes", "properties": {"addressPrefix": "10.224.0.0/16"}}]}},
            {"id": format!("{}/loadBalancers/kubernetes-internal", network()), "location": LOCATION,
                "sku": {"name": "Standard"}, "properties": {}},
        ],
    }))
}
