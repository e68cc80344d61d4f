//! The settings of the cloud, the credential, the proxy and role `ho`. Contradictions are refused here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::reader::Reader;
use super::setting::{
    AGGREGATE_CONDITIONS, ALSO_MANAGE, ARM_ENDPOINT, AUDIENCE, AUTHORITY, CA_FILE, CLOUD, CREDENTIAL, FRONTEND_MATCH,
    NAT_ADDRESS_POOL, NAT_PREFIX_LENGTH, NAT_SUBNET_ID, RESOURCE_GROUP, SUBSCRIPTION,
};
use super::{Azure, Management, parse};
use crate::api::Role;
use crate::azure::auth::{Cloud, CloudError, CredentialSource, CredentialsFile};
use crate::azure::https::{HttpSettings, ProxySettings};
use crate::azure::id::SubscriptionId;
use crate::controllers::private_link_service::nat_prefix::NatSubnetRules;

const CREDENTIALS_FILE: &str = "AZURE_CREDENTIALS_FILE";
const CLIENT_ID: &str = "AZURE_CLIENT_ID";
const TENANT_ID: &str = "AZURE_TENANT_ID";
const TOKEN_FILE: &str = "AZURE_FEDERATED_TOKEN_FILE";
/// HyperShift's switch to workload identity; the identity itself is in the other variables.
const PLS_CLIENT_ID: &str = "AZURE_PLS_CLIENT_ID";

/// The clouds, spelt as HostedControlPlanes spell them. The last three need their addresses as settings.
const CLOUDS: [&str; 6] = [
    "AzurePublicCloud",
    "AzureUSGovernmentCloud",
    "AzureChinaCloud",
    "AzureGermanCloud",
    "AzureBleuCloud",
    "AzureStackCloud",
];

pub(super) fn azure(
    reader: &mut Reader<'_>,
    roles: &BTreeSet<Role>,
    credential: Option<CredentialSource>,
) -> Option<Azure> {
    let cloud = cloud(reader);
    let http = http(reader, roles);
    let (cloud_name, cloud) = cloud?;
    Some(Azure {
        cloud_name,
        cloud,
        credential: credential?,
        http: http?,
    })
}

/// The named cloud, with the addresses that were given instead of its own.
fn cloud(reader: &mut Reader<'_>) -> Option<(&'static str, Cloud)> {
    let named = reader.one(&CLOUD, |given| {
        let known = CLOUDS.into_iter().find(|name| name.eq_ignore_ascii_case(given));
        known.ok_or_else(|| CloudError::UnknownName(given.to_owned()))
    });
    // If the name is wrong, the other settings are still checked.
    let name = named.unwrap_or(CLOUDS[0]);
    let known = Cloud::by_name(name).ok();
    let addresses = [&ARM_ENDPOINT, &AUTHORITY, &AUDIENCE];
    for setting in addresses.into_iter().filter(|_| known.is_none()) {
        if !reader.is_given(setting) {
            reader.missing(setting, &format!(": that of {name} has to be given"));
        }
    }
    let is_known = known.is_some();
    let base = known.unwrap_or_else(Cloud::public);
    let parts = (base.endpoint().as_str(), base.authority().as_str(), base.audience());
    let endpoint = reader.one(&ARM_ENDPOINT, |given| Cloud::custom(given, parts.1, parts.2));
    let authority = reader.one(&AUTHORITY, |given| Cloud::custom(parts.0, given, parts.2));
    let audience = reader.one(&AUDIENCE, |given| Cloud::custom(parts.0, parts.1, given));
    let endpoint = endpoint.as_ref().unwrap_or(&base).endpoint();
    if is_known && endpoint != base.endpoint() && !reader.is_given(&AUDIENCE) {
        reader.missing(&AUDIENCE, &format!(": {endpoint} is not the ARM endpoint of {name}"));
    }
    let authority = authority.as_ref().unwrap_or(&base).authority();
    let audience = audience.as_ref().unwrap_or(&base).audience();
    let cloud = Cloud::custom(endpoint.as_str(), authority.as_str(), audience);
    Some((name, cloud.ok()?))
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    SecretFile,
    WorkloadIdentity,
    ManagedIdentity,
    AzureCli,
}

fn kind(word: &str) -> Result<Kind, String> {
    match word {
        "secret-file" => Ok(Kind::SecretFile),
        "workload-identity" => Ok(Kind::WorkloadIdentity),
        "managed-identity" => Ok(Kind::ManagedIdentity),
        "azure-cli" => Ok(Kind::AzureCli),
        _ => Err(format!(
            "unknown credential {word:?}: use secret-file, workload-identity, managed-identity or azure-cli"
        )),
    }
}

pub(super) fn credential(reader: &mut Reader<'_>, roles: &BTreeSet<Role>) -> Option<CredentialSource> {
    let kind = if reader.is_given(&CREDENTIAL) {
        reader.one(&CREDENTIAL, kind)?
    } else {
        described(reader, roles)?
    };
    match kind {
        Kind::SecretFile => {
            let path = PathBuf::from(needed(reader, CREDENTIALS_FILE, "secret-file")?);
            credentials_file(reader, &path)?;
            Some(CredentialSource::SecretFile { path })
        }
        Kind::WorkloadIdentity => workload_identity(reader),
        Kind::ManagedIdentity => Some(CredentialSource::ManagedIdentity {
            client_id: reader.environment.variable(CLIENT_ID),
        }),
        Kind::AzureCli => Some(CredentialSource::AzureCli),
    }
}

fn workload_identity(reader: &mut Reader<'_>) -> Option<CredentialSource> {
    let variables = [CLIENT_ID, TENANT_ID, TOKEN_FILE];
    if variables.iter().all(|name| reader.environment.variable(name).is_none()) {
        reader.problem(format!(
            "{CLIENT_ID}, {TENANT_ID} and {TOKEN_FILE} are missing; credential workload-identity needs them: its webhook sets them when a \
             pod is made, so install it and make the pod anew, or set them all"
        ));
        return None;
    }
    let [client, tenant, token_file] = variables.map(|name| needed(reader, name, "workload-identity"));
    Some(CredentialSource::WorkloadIdentity {
        tenant: tenant?,
        client: client?,
        // It may not exist yet: HyperShift's token minter starts at the same time.
        token_file: token_file?.into(),
    })
}

/// The credential that HyperShift's variables describe. HyperShift's operator uses workload identity if its switch is
/// set, else the file; the control plane operator uses the federated token. Two that contradict each other are a
/// problem, never a guess.
fn described(reader: &mut Reader<'_>, roles: &BTreeSet<Role>) -> Option<Kind> {
    let is_set = |name| reader.environment.variable(name).is_some();
    let file = is_set(CREDENTIALS_FILE);
    if file && is_set(PLS_CLIENT_ID) {
        two_credentials(reader, PLS_CLIENT_ID);
        None
    } else if file && is_set(TOKEN_FILE) && roles.contains(&Role::Cpo) {
        two_credentials(reader, TOKEN_FILE);
        None
    } else if file {
        Some(Kind::SecretFile)
    } else if [PLS_CLIENT_ID, CLIENT_ID, TENANT_ID, TOKEN_FILE]
        .into_iter()
        .any(is_set)
    {
        Some(Kind::WorkloadIdentity)
    } else {
        reader.problem(format!(
            "no credential: set {CREDENTIALS_FILE}, or {CLIENT_ID}, {TENANT_ID} and {TOKEN_FILE}, or choose with --credential (or {})",
            CREDENTIAL.variable
        ));
        None
    }
}

fn two_credentials(reader: &mut Reader<'_>, other: &str) {
    reader.problem(format!(
        "two credentials: {CREDENTIALS_FILE} and {other} are both set; unset one or choose with --credential (or {})",
        CREDENTIAL.variable
    ));
}

fn needed(reader: &mut Reader<'_>, variable: &str, credential: &str) -> Option<String> {
    let value = reader.environment.variable(variable);
    if value.is_none() {
        reader.problem(format!("{variable} is missing; credential {credential} needs it"));
    }
    value
}

/// Only checks the file; it is read again for each token.
fn credentials_file(reader: &mut Reader<'_>, path: &Path) -> Option<CredentialsFile> {
    match CredentialsFile::read(path) {
        Ok(file) => Some(file),
        Err(error) => {
            reader.problem(format!("{CREDENTIALS_FILE}: {error}"));
            None
        }
    }
}

fn http(reader: &mut Reader<'_>, roles: &BTreeSet<Role>) -> Option<HttpSettings> {
    let words: Vec<&str> = roles.iter().map(|role| role.as_str()).collect();
    let environment = reader.environment;
    let either = |upper, lower| environment.variable(upper).or_else(|| environment.variable(lower));
    let proxy = ProxySettings {
        https_proxy: either("HTTPS_PROXY", "https_proxy").map(Into::into),
        no_proxy: either("NO_PROXY", "no_proxy"),
    };
    let settings = HttpSettings {
        ca_file: reader.one(&CA_FILE, parse::path),
        proxy,
        ..HttpSettings::new(&words.join(","))
    };
    // Building a client reads the CA file and the proxy's address; it opens no connection.
    match settings.client() {
        Ok(_) => Some(settings),
        Err(error) => {
            reader.problem(error.to_string());
            None
        }
    }
}

pub(super) fn management(reader: &mut Reader<'_>, credential: Option<&CredentialSource>) -> Option<Management> {
    let subscription = if reader.is_given(&SUBSCRIPTION) {
        reader.one(&SUBSCRIPTION, parse::subscription)
    } else {
        subscription_of(reader, credential)
    };
    let resource_group = reader.required(&RESOURCE_GROUP, "; role ho needs it", parse::resource_group);
    let also_manage = reader.list(&ALSO_MANAGE, parse::scope);
    let nat_prefix_length = reader.one(&NAT_PREFIX_LENGTH, parse::nat_prefix_length);
    let nat_address_pool = reader.one(&NAT_ADDRESS_POOL, parse::network);
    if let (Some(length), Some(pool)) = (nat_prefix_length, nat_address_pool)
        && pool.prefix_len() > length
    {
        reader.problem(format!(
            "--{} {pool} has no room for a NAT subnet of --{} {length}",
            NAT_ADDRESS_POOL.flag, NAT_PREFIX_LENGTH.flag
        ));
    }
    let nat_subnet = reader.one(&NAT_SUBNET_ID, parse::subnet);
    if let (Some(subscription), Some(subnet)) = (&subscription, &nat_subnet)
        && subnet.subscription() != subscription
    {
        reader.problem(format!("--{} is not in --{}", NAT_SUBNET_ID.flag, SUBSCRIPTION.flag));
    }
    let aggregate_conditions = reader.one(&AGGREGATE_CONDITIONS, parse::boolean);
    let frontend_match = reader.one(&FRONTEND_MATCH, parse::frontend_match);
    Some(Management {
        subscription: subscription?,
        resource_group: resource_group?,
        also_manage,
        nat: NatSubnetRules {
            prefix_length: nat_prefix_length?,
            pool: nat_address_pool,
        },
        nat_subnet,
        frontend_match: frontend_match?,
        aggregate_conditions: aggregate_conditions?,
    })
}

/// The subscription that the credentials file names; a wrong one is a problem.
fn subscription_of(reader: &mut Reader<'_>, credential: Option<&CredentialSource>) -> Option<SubscriptionId> {
    match credential {
        Some(CredentialSource::SecretFile { path }) => {
            let file = credentials_file(reader, path)?;
            let wrong = |error| format!("subscriptionId of {CREDENTIALS_FILE}: {error}");
            let checked = parse::subscription(&file.subscription).map_err(wrong);
            checked.map_err(|problem| reader.problem(problem)).ok()
        }
        // The problem is the file, which is reported already.
        None if reader.environment.variable(CREDENTIALS_FILE).is_some() => None,
        _ => {
            reader.missing(&SUBSCRIPTION, "; role ho needs it");
            None
        }
    }
}
