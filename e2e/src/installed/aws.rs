//! The releases of the chart for clusters on AWS, with the identities that the examples speak of.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{HOME, create_home, example, install};
use crate::AwsEnv;
use crate::aws_cluster::AwsHostedCluster;
use crate::aws_sim::{CPO_ROLE, HO_ROLE, shipped_policy, web_identity};
use crate::azure_sim::Preset;
use crate::helm::Helm;
use crate::hyperlink::{Hyperlink, Role};
use crate::pod::Pod;

/// The role in the example of a guest side for many clusters that one of them is served by.
pub const BLUE_ROLE: &str = "arn:aws:iam::444455556666:role/hyperlink-blue";
/// The role of that process itself.
const BASE_ROLE: &str = "arn:aws:iam::111122223333:role/hyperlink-cpo";
/// The Secret with the profile of the machine's role; in the examples another profile has the same name.
const MACHINE_SECRET: &str = "hyperlink-aws-machine";
/// The token that the examples' profiles name.
const TOKEN_FILE: &str = "/var/run/secrets/openshift/serviceaccount/token";

/// A test environment with the objects and identities that the releases `ho`, `cpo` and `many` refer to.
#[derive(Debug)]
pub struct InstalledOnAws {
    /// The cluster and the simulated AWS.
    pub env: AwsEnv,
    helm: Helm,
}

impl InstalledOnAws {
    /// Starts an environment, and creates the objects and identities.
    ///
    /// # Errors
    ///
    /// As [`AwsEnv::local`], or the API server refuses.
    pub async fn start() -> Result<Self> {
        let mut trusted = Ok(());
        let env = AwsEnv::local_with(Preset::Fast, |seed| trusted = trust_the_releases(seed)).await?;
        trusted?;
        let profile = |role| format!("[default]\nrole_arn = {role}\nweb_identity_token_file = {TOKEN_FILE}\n");
        let secrets = [
            ("hyperlink-aws", &*profile(HO_ROLE)),
            ("control-plane-operator-creds", &profile(CPO_ROLE)),
            ("hyperlink-cpo-aws", &profile(BASE_ROLE)),
            (
                MACHINE_SECRET,
                &format!("[default]\nrole_arn = {HO_ROLE}\ncredential_source = Ec2InstanceMetadata\n"),
            ),
        ];
        create_home(env.control_plane(), env.aws().ca_file(), &secrets).await?;
        let helm = Helm::new(Some(env.control_plane().kubeconfig_path()))?;
        Ok(Self { env, helm })
    }

    /// The values of an example, with this test environment's addresses and short resync intervals.
    fn example(&self, name: &str) -> Result<Value> {
        let endpoint = self.env.aws().endpoint();
        let settings = [
            ("awsEndpointEc2", endpoint),
            ("awsEndpointElb", endpoint),
            ("awsEndpointRoute53", endpoint),
            ("awsEndpointSts", endpoint),
            ("resync", "3s"),
            ("recordResync", "3s"),
        ];
        example(name, &settings)
    }

    /// Installs the HO role, with a role of AWS for the token of its Pods, as release `ho`.
    ///
    /// # Errors
    ///
    /// helm fails.
    pub fn install_ho(&self) -> Result<()> {
        self.install("ho", &self.example("ho-aws-web-identity")?)
    }

    /// Upgrades release `ho` to the role of the machine.
    ///
    /// # Errors
    ///
    /// helm fails.
    pub fn give_ho_the_machines_role(&self) -> Result<()> {
        let mut values = self.example("ho-aws-instance-role")?;
        values["settings"]["awsEndpointImds"] = self.env.oracle().control_url().into();
        values["aws"]["secret"]["name"] = MACHINE_SECRET.into();
        self.install("ho", &values)
    }

    /// Installs the CPO role for one control plane, with a token that a sidecar writes, as release `cpo`.
    ///
    /// # Errors
    ///
    /// helm fails.
    pub fn install_cpo_of(&self, cluster: &AwsHostedCluster) -> Result<()> {
        let mut values = self.example("cpo-aws-one-control-plane")?;
        values["namespace"] = cluster.control_plane_namespace().into();
        self.install("cpo", &values)
    }

    /// Installs the CPO role for all control planes but those in a namespace, as release `many`. Of the example's
    /// clusters it serves `blue`.
    ///
    /// # Errors
    ///
    /// helm fails.
    pub fn install_cpo_of_many(&self, blue: &AwsHostedCluster, excluded: &str) -> Result<()> {
        let mut values = self.example("cpo-aws-many")?;
        let mut entry = values["allowScopes"]["hostedClusters"][0].take();
        entry["aws"]["vpcIDs"] = json!([blue.vpc()]);
        entry["aws"]["hostedZoneIDs"] = json!([blue.zone()]);
        values["allowScopes"] = json!({"hostedClusters": [entry], "excludeNamespaces": [excluded]});
        self.install("many", &values)
    }

    fn install(&self, release: &str, values: &Value) -> Result<()> {
        install(&self.helm, self.env.dir(), release, values)
    }

    /// Runs a Pod of a release as a process, with this token of HyperShift's token minter if there is one.
    ///
    /// # Errors
    ///
    /// As [`Pod::of`] and [`Pod::start`].
    pub async fn run(&self, release: &str, role: Role, minted: Option<&str>) -> Result<Hyperlink> {
        let (deployment, name) = (format!("{release}-hyperlink"), format!("{release}-0"));
        let pod = Pod::of(self.env.control_plane(), HOME, &deployment, &name, self.env.dir(), "").await?;
        let started = pod.start(role, self.env.dir()).await?;
        if let Some(token) = minted {
            let (directory, file) = TOKEN_FILE.rsplit_once('/').context("no directory")?;
            std::fs::write(pod.mounted(directory)?.join(file), token)?;
        }
        Ok(started)
    }
}

/// Makes roles of AWS trust the ServiceAccounts of the releases `ho` and `many`, and adds those that are missing.
fn trust_the_releases(seed: &mut Value) -> Result<()> {
    let assume = json!({"Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": BLUE_ROLE}]});
    let name = |arn: &str| arn.rsplit('/').next().map(str::to_owned);
    let base = json!({"name": name(BASE_ROLE), "policies": [assume],
        "web_identities": [web_identity((HOME, "many-hyperlink"))]});
    let blue = json!({"name": name(BLUE_ROLE), "policies": [shipped_policy("cpo")?], "trusted": [BASE_ROLE]});
    for (account, list, added) in [
        (0, "/roles/0/web_identities", web_identity((HOME, "ho-hyperlink"))),
        (0, "/roles", base),
        (1, "/roles", blue),
    ] {
        let items = seed["accounts"][account]
            .pointer_mut(list)
            .and_then(Value::as_array_mut);
        items.context("a seed without roles")?.push(added);
    }
    Ok(())
}
