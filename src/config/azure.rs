//! The settings of the cloud, the proxy and role `ho`, checked against each other.

use std::collections::BTreeSet;

use super::credential::CREDENTIALS_FILE;
use super::settings::{Connections, Ho};
use super::{Environment, Problems, value};
use crate::api::Role;
use crate::azure::arm::auth::{AzureCloud, CloudError, CredentialSource, CredentialsFile};
use crate::azure::arm::https::{HttpSettings, ProxySettings};
use crate::azure::arm::id::SubscriptionId;
use crate::hypershift::azure::management_scopes::{ManagementScope, ManagementScopes};

const ARM_ENDPOINT: &str = "--arm-endpoint (or HYPERLINK_ARM_ENDPOINT)";
const AUTHORITY: &str = "--authority (or AZURE_AUTHORITY_HOST)";
const AUDIENCE: &str = "--audience (or HYPERLINK_AUDIENCE)";

/// The Azure cloud, and the credential for it.
#[derive(Debug, Clone)]
pub struct Azure {
    /// The cloud's name as HostedControlPlanes spell it.
    pub cloud_name: &'static str,
    /// Addresses and audience of the cloud.
    pub cloud: AzureCloud,
    /// How the process authenticates itself; none for role `capz`, which calls as each cluster's own identity.
    pub credential: Option<CredentialSource>,
    /// How ARM and the authority are reached; a client can be built from it.
    pub http: HttpSettings,
}

/// The settings of role `ho`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Management {
    /// Where the load balancers and Private Link Services of which clusters are.
    pub scopes: ManagementScopes,
    /// The other settings of the role.
    pub ho: Ho,
}

pub(super) fn azure(
    settings: &Connections,
    roles: &BTreeSet<Role>,
    credential: Option<CredentialSource>,
    environment: &Environment,
    problems: &mut Problems,
) -> Option<Azure> {
    let cloud = cloud(settings, problems);
    let http = http(settings, roles, environment);
    // Building a client reads the CA file and the proxy's address; it opens no connection.
    problems.check(http.client())?;
    Some(Azure {
        cloud_name: settings.cloud,
        cloud: cloud?,
        credential: if roles.contains(&Role::Capz) {
            None
        } else {
            Some(credential?)
        },
        http,
    })
}

/// The named cloud, with the addresses that were given instead of its own.
fn cloud(settings: &Connections, problems: &mut Problems) -> Option<AzureCloud> {
    let Connections {
        cloud: name,
        arm_endpoint,
        authority,
        audience,
        ..
    } = settings;
    let known = AzureCloud::by_name(name).ok();
    if known.is_none() {
        let addresses = [
            (ARM_ENDPOINT, arm_endpoint),
            (AUTHORITY, authority),
            (AUDIENCE, audience),
        ];
        for (flag, _) in addresses.iter().filter(|(_, given)| given.is_none()) {
            problems.add(format!("{flag} is missing: that of {name} has to be given"));
        }
    }
    let base = known.clone().unwrap_or_else(AzureCloud::public);
    let own_endpoint = base.endpoint().as_str();
    let own_authority = base.authority().as_str();
    let own_audience = base.audience();
    let is_own_audience = audience.is_none();
    let endpoint = arm_endpoint.as_deref().unwrap_or(own_endpoint);
    let authority = authority.as_deref().unwrap_or(own_authority);
    let audience = audience.as_deref().unwrap_or(own_audience);
    // Each by itself, so that all wrong ones are reported.
    let at_endpoint = AzureCloud::custom(endpoint, own_authority, own_audience);
    let at_authority = AzureCloud::custom(own_endpoint, authority, own_audience);
    let with_audience = AzureCloud::custom(own_endpoint, own_authority, audience);
    let at_endpoint = problems.check(given_by(ARM_ENDPOINT, at_endpoint));
    problems.check(given_by(AUTHORITY, at_authority));
    problems.check(given_by(AUDIENCE, with_audience));
    let elsewhere = at_endpoint.filter(|cloud| cloud.endpoint() != base.endpoint());
    if let Some(cloud) = elsewhere.filter(|_| known.is_some() && is_own_audience) {
        let endpoint = cloud.endpoint();
        problems.add(format!(
            "{AUDIENCE} is missing: {endpoint} is not the ARM endpoint of {name}"
        ));
    }
    AzureCloud::custom(endpoint, authority, audience).ok()
}

/// The cloud, or the problem with what `flag` gives.
fn given_by(flag: &str, cloud: Result<AzureCloud, CloudError>) -> Result<AzureCloud, String> {
    cloud.map_err(|error| format!("{flag}: {error}"))
}

pub(super) fn http(settings: &Connections, roles: &BTreeSet<Role>, environment: &Environment) -> HttpSettings {
    let words: Vec<&str> = roles.iter().map(|role| role.as_str()).collect();
    HttpSettings {
        ca_file: settings.ca_file.clone(),
        proxy: ProxySettings {
            https_proxy: either(environment, "HTTPS_PROXY", "https_proxy").map(Into::into),
            no_proxy: either(environment, "NO_PROXY", "no_proxy"),
        },
        ..HttpSettings::new(&words.join(","))
    }
}

/// A variable that programs write in either case.
fn either(environment: &Environment, upper: &str, lower: &str) -> Option<String> {
    environment.variable(upper).or_else(|| environment.variable(lower))
}

pub(super) fn management(
    ho: Ho,
    credential: Option<&CredentialSource>,
    environment: &Environment,
    problems: &mut Problems,
) -> Option<Management> {
    let scopes = match (&ho.management_scopes, &ho.resource_group) {
        (Some(scopes), None) => Some(scopes.clone()),
        (scopes, _) => {
            let usual = usual_scope(&ho, credential, environment, problems);
            usual.map(|usual| scopes.clone().unwrap_or_default().with_default(usual))
        }
    };
    if scopes.as_ref().is_some_and(|scopes| scopes.all().is_empty()) {
        problems.add("--management-scopes has no entry, and --resource-group (or AZURE_RESOURCE_GROUP) is missing");
    }
    let length = ho.nat_prefix_length;
    if let Some(pool) = ho.nat_address_pool.filter(|pool| pool.prefix_len() > length) {
        problems.add(format!(
            "--nat-address-pool {pool} has no room for a NAT subnet of --nat-prefix-length {length}"
        ));
    }
    if let (Some(scopes), Some(subnet)) = (&scopes, &ho.nat_subnet_id) {
        let mut all = scopes.all().into_iter();
        if !all.any(|scope| *subnet.subscription() == scope.subscription) {
            problems.add("--nat-subnet-id is in no subscription of --subscription and --management-scopes");
        }
    }
    Some(Management { scopes: scopes?, ho })
}

/// The management scope of all clusters that are in no other.
fn usual_scope(
    ho: &Ho,
    credential: Option<&CredentialSource>,
    environment: &Environment,
    problems: &mut Problems,
) -> Option<ManagementScope> {
    let subscription = match &ho.subscription {
        Some(subscription) => Some(subscription.clone()),
        None => subscription_of(credential, environment, problems),
    };
    let missing = "--resource-group (or AZURE_RESOURCE_GROUP) is missing; role ho needs it";
    let resource_group = problems.check(ho.resource_group.clone().ok_or(missing));
    Some(ManagementScope {
        subscription: subscription?,
        resource_group: resource_group?,
    })
}

/// The subscription that the credentials file names.
fn subscription_of(
    credential: Option<&CredentialSource>,
    environment: &Environment,
    problems: &mut Problems,
) -> Option<SubscriptionId> {
    match credential {
        Some(CredentialSource::SecretFile { path }) => {
            let file = CredentialsFile::read(path).map_err(|error| error.to_string());
            let named = file.and_then(|file| value::subscription(&file.subscription).map_err(str::to_owned));
            problems.check(named.map_err(|error| format!("subscriptionId of {CREDENTIALS_FILE}: {error}")))
        }
        // The problem is the file, which is reported already.
        None if environment.variable(CREDENTIALS_FILE).is_some() => None,
        _ => {
            problems.add("--subscription (or AZURE_SUBSCRIPTION_ID) is missing; role ho needs it");
            None
        }
    }
}
