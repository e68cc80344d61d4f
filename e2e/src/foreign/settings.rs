//! The settings of a run on a given cluster and a given Azure, all of them environment variables, and which are
//! refused.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use hyperlink::azure::arm::auth::AzureCloud;

use crate::scenarios::Scenario;

/// What every prefix begins with, so that no other name looks like one.
const PREFIX: &str = "hle2e-";

/// How long anything may take by default. Private Endpoints and zones take minutes each, and a deletion waits for all.
const PATIENCE: Duration = Duration::from_secs(1200);

/// The prefix of the names of everything that a run creates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix(String);

impl Prefix {
    /// A random prefix, which nobody else has.
    pub fn random() -> Self {
        let id = uuid::Uuid::new_v4().simple().to_string();
        Self(format!("{PREFIX}{}", id.get(..6).unwrap_or_default()))
    }

    /// The prefix as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a name is the prefix itself or begins with it and a hyphen.
    pub fn owns(&self, name: &str) -> bool {
        let rest = name.to_ascii_lowercase();
        rest.strip_prefix(&self.0)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    }

    /// Whether a namespace belongs to any run.
    pub fn of_some_run(namespace: &str) -> bool {
        namespace.starts_with(PREFIX)
    }
}

impl FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let own = text.strip_prefix(PREFIX).unwrap_or_default();
        let usual = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        if (4..=10).contains(&own.len()) && own.chars().all(usual) {
            return Ok(Self(text.to_owned()));
        }
        Err(format!(
            "the prefix {text:?} is not {PREFIX} and 4 to 10 lower-case letters and digits"
        ))
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// How the run authenticates to Azure.
#[derive(Clone)]
pub enum Proof {
    /// A client secret.
    Secret(String),
    /// A file with a federated token.
    TokenFile(PathBuf),
}

impl fmt::Debug for Proof {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Secret(_) => formatter.write_str("Secret"),
            Self::TokenFile(path) => formatter.debug_tuple("TokenFile").field(path).finish(),
        }
    }
}

/// All settings of a run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The prefix of all names.
    pub prefix: Prefix,
    /// Path of the kubeconfig.
    pub kubeconfig: PathBuf,
    /// The context in the kubeconfig.
    pub context: String,
    /// The addresses of ARM and of the token issuer.
    pub cloud: AzureCloud,
    /// Certificate authority of ARM and of the token issuer, unless the system trusts it.
    pub ca_file: Option<PathBuf>,
    /// The subscription for everything.
    pub subscription: String,
    /// The region for everything.
    pub location: String,
    /// The identity's tenant id.
    pub tenant: String,
    /// Client id of the identity for everything.
    pub client: String,
    /// How the identity authenticates.
    pub proof: Proof,
    /// ARM id of the VNet in which the cluster's cloud provider gives Services their addresses. None where the cluster
    /// has no such provider: then the run creates a network and plays the provider.
    pub cluster_vnet: Option<String>,
    /// Whether Hyperlink runs as the Pods of an installed chart, and not as processes of the run.
    pub pods: bool,
    /// The scenarios to run.
    pub scenarios: Vec<Scenario>,
    /// How long anything may take.
    pub patience: Duration,
}

impl Settings {
    /// Reads the settings from variables. `prefix` replaces the one of `E2E_PREFIX`.
    ///
    /// # Errors
    ///
    /// Settings are missing or wrong; the error names all of them.
    pub fn read(get: &dyn Fn(&str) -> Option<String>, prefix: Option<&str>) -> Result<Self, Refused> {
        let mut reader = Reader { get, wrong: Vec::new() };
        let settings = reader.settings(prefix);
        match settings {
            Some(settings) if reader.wrong.is_empty() => Ok(settings),
            _ => Err(Refused(reader.wrong)),
        }
    }
}

/// All reasons why the run did not begin.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused(pub Vec<String>);

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "refused, nothing was made:\n  {}", self.0.join("\n  "))
    }
}

impl std::error::Error for Refused {}

struct Reader<'a> {
    get: &'a dyn Fn(&str) -> Option<String>,
    wrong: Vec<String>,
}

impl Reader<'_> {
    fn settings(&mut self, prefix: Option<&str>) -> Option<Settings> {
        if self.given("E2E_AZURE").as_deref() != Some("env") {
            self.refuse(
                "E2E_AZURE=env says that the AZURE_ variables name the Azure to use; there is no other way yet",
            );
        }
        let kubeconfig = self.required("E2E_KUBECONFIG", "the kubeconfig of a cluster that may be written to");
        let context = self.required(
            "E2E_CONTEXT",
            "the context in it; its current context is not taken by itself",
        );
        let subscription = self.subscription();
        let location = self.required("E2E_LOCATION", "the Azure region to make everything in");
        let tenant = self.required("AZURE_TENANT_ID", "the identity's tenant");
        let client = self.required("AZURE_CLIENT_ID", "the identity's client id");
        let (proof, cloud, scenarios) = (self.proof(), self.cloud(), self.scenarios());
        let prefix = match prefix.map(str::to_owned).or_else(|| self.given("E2E_PREFIX")) {
            Some(text) => text.parse().map_err(|why: String| self.wrong.push(why)).ok(),
            None => Some(Prefix::random()),
        };
        let pods = self.given("E2E_HYPERLINK").unwrap_or_else(|| "processes".into());
        if !matches!(pods.as_str(), "processes" | "pods") {
            self.refuse("E2E_HYPERLINK is processes or pods");
        }
        let patience = self
            .given("E2E_PATIENCE")
            .map(|text| text.parse().map(Duration::from_secs));
        let patience = patience.unwrap_or(Ok(PATIENCE)).ok();
        if patience.is_none() {
            self.refuse("E2E_PATIENCE is a number of seconds");
        }
        Some(Settings {
            prefix: prefix?,
            kubeconfig: kubeconfig?.into(),
            context: context?,
            cloud: cloud?,
            ca_file: self.given("HYPERLINK_CA_FILE").map(PathBuf::from),
            subscription: subscription?,
            location: location?,
            tenant: tenant?,
            client: client?,
            proof: proof?,
            cluster_vnet: self.given("E2E_CLUSTER_VNET"),
            pods: pods == "pods",
            scenarios,
            patience: patience?,
        })
    }

    fn given(&self, name: &str) -> Option<String> {
        (self.get)(name).filter(|value| !value.is_empty())
    }

    fn required(&mut self, name: &str, what: &str) -> Option<String> {
        let given = self.given(name);
        if given.is_none() {
            self.wrong.push(format!("{name} is not set: {what}"));
        }
        given
    }

    fn refuse(&mut self, why: &str) {
        self.wrong.push(why.to_owned());
    }

    /// The subscription of the run. A shell often has one by default. A run creates and deletes resources, so it needs
    /// a setting of its own.
    fn subscription(&mut self) -> Option<String> {
        let what =
            "the subscription to make everything in, said for this run alone: AZURE_SUBSCRIPTION_ID may be a default";
        let named = self.required("E2E_SUBSCRIPTION", what)?;
        let default = self.given("AZURE_SUBSCRIPTION_ID");
        if default.is_some_and(|default| !default.eq_ignore_ascii_case(&named)) {
            self.refuse("E2E_SUBSCRIPTION and AZURE_SUBSCRIPTION_ID name different subscriptions");
        } else if uuid::Uuid::parse_str(&named).is_err() {
            self.refuse("E2E_SUBSCRIPTION is not a subscription's id");
        }
        Some(named)
    }

    fn proof(&mut self) -> Option<Proof> {
        match (
            self.given("AZURE_CLIENT_SECRET"),
            self.given("AZURE_FEDERATED_TOKEN_FILE"),
        ) {
            (Some(secret), None) => Some(Proof::Secret(secret)),
            (None, Some(file)) => Some(Proof::TokenFile(file.into())),
            _ => {
                self.refuse("set either AZURE_CLIENT_SECRET or AZURE_FEDERATED_TOKEN_FILE");
                None
            }
        }
    }

    /// The public cloud, or one that the variables give by its addresses.
    fn cloud(&mut self) -> Option<AzureCloud> {
        let Some(endpoint) = self.given("HYPERLINK_ARM_ENDPOINT") else {
            return Some(AzureCloud::public());
        };
        let authority = self.required(
            "AZURE_AUTHORITY_HOST",
            "where tokens for HYPERLINK_ARM_ENDPOINT are issued",
        );
        let audience = self.required("HYPERLINK_AUDIENCE", "whom tokens for HYPERLINK_ARM_ENDPOINT are for");
        let cloud = AzureCloud::custom(&endpoint, &authority?, &audience?);
        cloud.map_err(|why| self.wrong.push(why.to_string())).ok()
    }

    fn scenarios(&mut self) -> Vec<Scenario> {
        // A run cannot choose addresses in a VNet that it has not created.
        let for_here = |one: &Scenario| self.given("E2E_CLUSTER_VNET").is_none() || !one.gives_a_nat_subnet();
        let all: Vec<_> = Scenario::ALL.into_iter().filter(for_here).collect();
        let Some(names) = self.given("E2E_ONLY") else {
            return all;
        };
        let (mut selected, names) = (Vec::new(), names.split(',').map(str::trim).collect::<Vec<_>>());
        for name in names {
            match all.iter().find(|one| one.as_str() == name) {
                Some(one) => selected.push(*one),
                None => {
                    let known: Vec<_> = all.iter().map(|one| one.as_str()).collect();
                    self.wrong.push(format!(
                        "E2E_ONLY: no scenario {name} for this place; there are {}",
                        known.join(", ")
                    ));
                }
            }
        }
        selected
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const SUBSCRIPTION: &str = "33333333-3333-4333-8333-333333333333";

    fn whole() -> BTreeMap<&'static str, &'static str> {
        BTreeMap::from([
            ("E2E_AZURE", "env"),
            ("E2E_KUBECONFIG", "/k"),
            ("E2E_CONTEXT", "c"),
            ("E2E_SUBSCRIPTION", SUBSCRIPTION),
            ("E2E_LOCATION", "westeurope"),
            ("AZURE_TENANT_ID", "t"),
            ("AZURE_CLIENT_ID", "c"),
            ("AZURE_CLIENT_SECRET", "s"),
        ])
    }

    fn read(variables: &BTreeMap<&'static str, &'static str>) -> Result<Settings, Refused> {
        Settings::read(&|name| variables.get(name).map(|value| (*value).to_owned()), None)
    }

    #[test]
    fn complete_settings_are_accepted_with_a_new_prefix() {
        let (one, other) = (read(&whole()).unwrap(), read(&whole()).unwrap());
        assert_ne!(one.prefix, other.prefix);
        assert_eq!(one.cloud, AzureCloud::public());
        assert_eq!(one.scenarios, Scenario::ALL);
        assert!(!format!("{one:?}").contains("\"s\""), "{one:?}");
    }

    #[rstest::rstest]
    #[case("E2E_AZURE")]
    #[case("E2E_KUBECONFIG")]
    #[case("E2E_CONTEXT")]
    #[case("E2E_SUBSCRIPTION")]
    #[case("E2E_LOCATION")]
    #[case("AZURE_TENANT_ID")]
    #[case("AZURE_CLIENT_ID")]
    #[case("AZURE_CLIENT_SECRET")]
    fn what_is_missing_is_named(#[case] name: &'static str) {
        let mut variables = whole();
        variables.insert(name, "");
        let Refused(why) = read(&variables).unwrap_err();
        assert!(why.len() == 1 && why[0].contains(name), "{why:?}");
    }

    #[test]
    fn subscription_by_default_is_not_enough() {
        let mut variables = whole();
        variables.insert("AZURE_SUBSCRIPTION_ID", SUBSCRIPTION);
        assert!(read(&variables).is_ok());
        variables.insert("AZURE_SUBSCRIPTION_ID", "44444444-4444-4444-8444-444444444444");
        assert!(read(&variables).is_err());
        variables.insert("AZURE_SUBSCRIPTION_ID", SUBSCRIPTION);
        variables.remove("E2E_SUBSCRIPTION");
        let text = read(&variables).unwrap_err().to_string();
        assert!(text.contains("E2E_SUBSCRIPTION is not set"), "{text}");
    }

    #[rstest::rstest]
    #[case("AZURE_FEDERATED_TOKEN_FILE", "/t", "either")]
    #[case("HYPERLINK_ARM_ENDPOINT", "https://arm.example", "HYPERLINK_AUDIENCE")]
    #[case("E2E_ONLY", "nonsense", "nonsense")]
    #[case("E2E_PREFIX", "prod", "prod")]
    #[case("E2E_HYPERLINK", "both", "processes or pods")]
    #[case("E2E_PATIENCE", "long", "seconds")]
    #[case("E2E_SUBSCRIPTION", "mine", "id")]
    fn wrong_value_is_refused(#[case] name: &'static str, #[case] value: &'static str, #[case] expected: &str) {
        let mut variables = whole();
        variables.insert(name, value);
        let text = read(&variables).unwrap_err().to_string();
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn scenario_with_addresses_of_its_own_needs_its_own_network() {
        let mut variables = whole();
        variables.insert("E2E_CLUSTER_VNET", "/v");
        assert!(
            read(&variables)
                .unwrap()
                .scenarios
                .iter()
                .all(|one| !one.gives_a_nat_subnet())
        );
        variables.insert("E2E_ONLY", "given");
        assert!(read(&variables).is_err());
    }

    #[test]
    fn prefix_owns_what_begins_with_it_and_nothing_else() {
        let prefix: Prefix = "hle2e-abcd".parse().unwrap();
        for own in ["hle2e-abcd", "hle2e-abcd-plain", "HLE2E-ABCD-management"] {
            assert!(prefix.owns(own), "{own}");
        }
        for foreign in ["hle2e-abcde", "hle2e-abc", "x-hle2e-abcd", "", "production"] {
            assert!(!prefix.owns(foreign), "{foreign}");
        }
    }
}
