//! Callers by access key: users, and sessions of roles.

use jiff::Timestamp;

use super::policy::Policy;
use crate::engine::seed::{Account, Role};
use crate::engine::state::State;

/// An identified caller.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) account: String,
    pub(crate) partition: String,
    /// Of the user, or of the session (`…:assumed-role/…`).
    pub(crate) arn: String,
    /// Of the user, or of the session's role: what trust names.
    pub(crate) principal: String,
    pub(crate) user_id: String,
    pub(crate) policies: Vec<Policy>,
}

/// What an access key stands for.
pub(crate) struct Key {
    pub(crate) caller: Caller,
    pub(crate) secret: String,
    /// The session token that has to come with it.
    pub(crate) token: Option<String>,
    pub(crate) expires: Option<Timestamp>,
}

pub(crate) fn role_arn(account: &Account, role: &Role) -> String {
    format!(
        "arn:{}:iam::{}:role{}{}",
        account.partition, account.id, role.path, role.name
    )
}

/// A unique id as IAM gives them, always the same for one ARN.
pub(crate) fn unique_id(prefix: &str, arn: &str) -> String {
    use sha2::Digest as _;
    const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let digest = sha2::Sha256::digest(arn.as_bytes());
    let letters = digest
        .iter()
        .take(17)
        .map(|byte| char::from(LETTERS[usize::from(byte & 31)]));
    prefix.chars().chain(letters).collect()
}

/// The role of an ARN.
pub(crate) fn find_role<'s>(state: &'s State, arn: &str) -> Option<(&'s Account, &'s Role)> {
    let roles = state
        .accounts
        .iter()
        .flat_map(|account| account.roles.iter().map(move |role| (account, role)));
    roles.into_iter().find(|(account, role)| role_arn(account, role) == arn)
}

/// What an access key stands for.
pub(crate) fn find_key(state: &State, access_key_id: &str) -> Option<Key> {
    if let Some(session) = state.sessions.get(access_key_id) {
        let (account, role) = find_role(state, &session.role)?;
        return Some(Key {
            caller: Caller {
                account: account.id.clone(),
                partition: account.partition.clone(),
                arn: session.arn.clone(),
                principal: session.role.clone(),
                user_id: session.user_id.clone(),
                policies: role.policies.clone(),
            },
            secret: session.secret.clone(),
            token: Some(session.token.clone()),
            expires: Some(session.expires),
        });
    }
    state.accounts.iter().find_map(|account| {
        let user = account.users.iter().find(|user| user.access_key_id == access_key_id)?;
        let arn = format!("arn:{}:iam::{}:user/{}", account.partition, account.id, user.name);
        Some(Key {
            caller: Caller {
                account: account.id.clone(),
                partition: account.partition.clone(),
                principal: arn.clone(),
                user_id: unique_id("AIDA", &arn),
                arn,
                policies: user.policies.clone(),
            },
            secret: user.secret_access_key.clone(),
            token: None,
            expires: None,
        })
    })
}
