//! What the simulated AWS holds at first: the accounts of the management cluster and of the guests, with the
//! identities of Hyperlink's roles and HyperShift's own policies, and the network of the management cluster.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::shipped_policy;
use crate::ControlPlane;

/// Region of everything.
pub const REGION: &str = "us-east-1";
/// Account of the management cluster.
pub const MANAGEMENT: &str = "111122223333";
/// Account of the hosted clusters.
pub const GUEST: &str = "444455556666";
/// Account of an owner of shared VPCs.
pub const VPC_OWNER: &str = "777788889999";
/// ARN of the role in that account by which the CPO role has its way in EC2.
pub const SHARED_ENDPOINTS_ROLE: &str = "arn:aws:iam::777788889999:role/shared-vpc-endpoints";
/// ARN of the role in that account by which the CPO role has its way in Route 53.
pub const SHARED_RECORDS_ROLE: &str = "arn:aws:iam::777788889999:role/shared-vpc-records";
/// Ids of the guests' private hosted zones begin so: in them, and in no others, the CPO identities may write records.
pub const ZONE_PREFIX: &str = "ZE2E";

pub(crate) const MANAGEMENT_VPC: &str = "vpc-0e2e0000000000001";
/// The subnets of the load balancers with the ids of their zones.
pub(crate) const MANAGEMENT_SUBNETS: [(&str, &str); 2] = [
    ("subnet-0e2e0000000000001", "use1-az1"),
    ("subnet-0e2e0000000000002", "use1-az2"),
];

/// A user with one access key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The user's name.
    pub name: &'static str,
    /// The user's account.
    pub account: &'static str,
    /// The id of the access key.
    pub access_key_id: &'static str,
}

impl Identity {
    /// The user's ARN, as the journal has it.
    pub fn arn(&self) -> String {
        format!("arn:aws:iam::{}:user/{}", self.account, self.name)
    }

    /// The secret of the access key.
    pub fn secret(&self) -> String {
        format!("secret-of-{}", self.name)
    }
}

/// The HO role's identity.
pub const HO: Identity = Identity {
    name: "ho",
    account: MANAGEMENT,
    access_key_id: "AKIAHO",
};
/// Another identity with the rights of [`HO`].
pub const HO_TWIN: Identity = Identity {
    name: "ho-twin",
    account: MANAGEMENT,
    access_key_id: "AKIAHOTWIN",
};
/// The CPO role's identity where it has keys. Endpoint services allow [`CPO_ROLE`], not this user.
pub const CPO: Identity = Identity {
    name: "cpo",
    account: GUEST,
    access_key_id: "AKIACPO",
};
/// A person who may do everything in the management account.
pub const ADMINISTRATOR: Identity = Identity {
    name: "administrator",
    account: MANAGEMENT,
    access_key_id: "AKIAADMINISTRATOR",
};
/// A person who may do everything in the guests' account.
pub const GUEST_ADMINISTRATOR: Identity = Identity {
    name: "administrator",
    account: GUEST,
    access_key_id: "AKIAGUESTADMINISTRATOR",
};

/// ARN of a role with the rights of [`HO`], for tokens of the ServiceAccount `HO_ACCOUNT`.
pub const HO_ROLE: &str = "arn:aws:iam::111122223333:role/hypershift-operator";
/// ARN of the role of the machine on which the processes run. [`HO_ROLE`] trusts it too.
pub const MACHINE_ROLE: &str = "arn:aws:iam::111122223333:role/worker";
/// ARN of the CPO role's identity in the guests' account, with an IAM path, for tokens of the ServiceAccount
/// `CPO_ACCOUNT`.
pub const CPO_ROLE: &str = "arn:aws:iam::444455556666:role/hosted/control-plane-operator";

/// The ServiceAccount, namespace and name, whose tokens [`HO_ROLE`] trusts.
pub(crate) const HO_ACCOUNT: (&str, &str) = ("hypershift", "operator");
/// The ServiceAccount, namespace and name, whose tokens [`CPO_ROLE`] trusts.
pub(crate) const CPO_ACCOUNT: (&str, &str) = ("kube-system", "control-plane-operator");
/// The audience of these tokens.
pub(crate) const TOKEN_AUDIENCE: &str = "openshift";

fn user(identity: Identity, policy: &Value) -> Value {
    json!({"name": identity.name, "access_key_id": identity.access_key_id, "secret_access_key": identity.secret(),
        "policies": [policy]})
}

/// What a role has that trusts the tokens of a ServiceAccount, namespace and name.
pub(crate) fn web_identity((namespace, name): (&str, &str)) -> Value {
    json!({
        "issuer": ControlPlane::TOKEN_ISSUER,
        "subject": format!("system:serviceaccount:{namespace}:{name}"),
        "audience": TOKEN_AUDIENCE,
    })
}

/// A role that trusts the tokens of one ServiceAccount.
fn role(arn: &str, account: (&str, &str), policy: &Value) -> Value {
    let full_name = arn.split_once(":role").map_or(arn, |(_, full_name)| full_name);
    let (path, role) = full_name.rsplit_once('/').unwrap_or_default();
    json!({
        "name": role,
        "path": format!("{path}/"),
        "web_identities": [web_identity(account)],
        "policies": [policy],
    })
}

/// The seed of the simulator: accounts, identities with exactly the rights that HyperShift's policies give, and the
/// management network. `token_keys` verify the tokens of ServiceAccounts.
///
/// # Errors
/// A policy cannot be read.
pub fn seed(token_keys: &Value) -> Result<Value> {
    let (ho, cpo) = (shipped_policy("ho")?, shipped_policy("cpo")?);
    let everything = json!({
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}],
    });
    let mut ho_role = role(HO_ROLE, HO_ACCOUNT, &ho);
    ho_role["trusted"] = json!([MACHINE_ROLE]);
    let assume = json!({"Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": HO_ROLE}]});
    let machine = json!({"name": MACHINE_ROLE.rsplit('/').next(), "policies": [assume]});
    let issuers = json!([{"issuer": ControlPlane::TOKEN_ISSUER, "jwks": token_keys}]);
    Ok(json!({
        "accounts": [
            {
                "id": MANAGEMENT,
                "users": [user(HO, &ho), user(HO_TWIN, &ho), user(ADMINISTRATOR, &everything)],
                "roles": [ho_role, machine],
                "oidc_providers": issuers,
            },
            {
                "id": GUEST,
                "users": [user(CPO, &cpo), user(GUEST_ADMINISTRATOR, &everything)],
                "roles": [role(CPO_ROLE, CPO_ACCOUNT, &cpo)],
                "oidc_providers": issuers,
            },
        ],
        "resources": management_network(),
        "machine_role": MACHINE_ROLE,
    }))
}

/// Adds to a seed an account whose owner shares VPCs: with two roles which the CPO role may assume, each with its part
/// of the shipped policy. The CPO role itself may do nothing else.
///
/// # Errors
/// A policy cannot be read.
pub fn share_vpcs(seed: &mut Value) -> Result<()> {
    let role = |arn: &str, service: &str| {
        let mut policy = shipped_policy("cpo")?;
        for rule in policy["Statement"].as_array_mut().context("no rules")? {
            let actions = rule["Action"].as_array_mut().context("no actions")?;
            actions.retain(|action| action.as_str().is_some_and(|action| action.starts_with(service)));
        }
        let name = arn.rsplit('/').next();
        anyhow::Ok(json!({"name": name, "trusted": [CPO_ROLE], "policies": [policy]}))
    };
    let roles = [
        role(SHARED_ENDPOINTS_ROLE, "ec2:")?,
        role(SHARED_RECORDS_ROLE, "route53:")?,
    ];
    let owner = json!({"id": VPC_OWNER, "roles": roles});
    let accounts = seed["accounts"].as_array_mut().context("no accounts")?;
    let guest = accounts
        .iter_mut()
        .find(|account| account["id"] == GUEST)
        .context("no guest")?;
    let roles_of_owner = [SHARED_ENDPOINTS_ROLE, SHARED_RECORDS_ROLE];
    let assume = json!({"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": roles_of_owner});
    guest["roles"][0]["policies"] = json!([{"Version": "2012-10-17", "Statement": [assume]}]);
    accounts.push(owner);
    Ok(())
}

fn management_network() -> Vec<Value> {
    let arn = |resource: &str| format!("arn:aws:ec2:{REGION}:{MANAGEMENT}:{resource}");
    let vpc = json!({"id": arn(&format!("vpc/{MANAGEMENT_VPC}")), "cidr": "10.8.0.0/16"});
    let subnets = MANAGEMENT_SUBNETS.iter().zip(1..).map(|((id, zone_id), number)| {
        json!({"id": arn(&format!("subnet/{id}")), "vpc": MANAGEMENT_VPC, "cidr": format!("10.8.{number}.0/24"),
            "zone_id": zone_id})
    });
    std::iter::once(vpc).chain(subnets).collect()
}
