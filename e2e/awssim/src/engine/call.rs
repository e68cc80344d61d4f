//! One call on its way: who calls, where, with what, and what may be done.

use std::time::Duration;

use jiff::Timestamp;

use super::seed::Quotas;
use super::service::Service;
use super::state::{SpentToken, State, seconds};
use super::tags::Tags;
use crate::iam::caller::Caller;
use crate::iam::policy;
use crate::wire::error::AwsError;
use crate::wire::params::Params;
use crate::wire::xml::Xml;

/// What a call answers.
pub(crate) type Answered = Result<Vec<Xml>, AwsError>;

/// A call whose signature is good.
pub(crate) struct Call<'a> {
    pub(crate) state: &'a mut State,
    pub(crate) now: Timestamp,
    pub(crate) caller: Caller,
    pub(crate) region: String,
    pub(crate) service: Service,
    pub(crate) action: String,
    pub(crate) params: Params,
    /// Whether anything was changed.
    pub(crate) changed: bool,
    /// How late the answer is.
    pub(crate) late: Option<Duration>,
    /// The state that a fault rule lets the created thing end in.
    pub(crate) ends: Option<String>,
}

impl Call<'_> {
    pub(crate) fn account(&self) -> &str {
        &self.caller.account
    }

    /// Whether a thing is in the caller's account and the call's region.
    pub(crate) fn is_here(&self, account: &str, region: &str) -> bool {
        self.caller.account == account && self.region == region
    }

    pub(crate) fn quotas(&self) -> Quotas {
        self.state.quotas(&self.caller.account)
    }

    /// The ARN of a thing of EC2 in the caller's account.
    pub(crate) fn arn(&self, resource: &str) -> String {
        self.arn_in(&self.caller.account, resource)
    }

    /// The ARN of a thing of EC2 in an account.
    pub(crate) fn arn_in(&self, account: &str, resource: &str) -> String {
        let Caller { partition, .. } = &self.caller;
        format!("arn:{partition}:ec2:{}:{account}:{resource}", self.region)
    }

    /// Asks the caller's policies about this action on each of these things; after that, a dry run ends.
    pub(crate) fn authorize(&self, resources: &[String]) -> Result<(), AwsError> {
        let action = format!("{}:{}", self.service.prefix(), self.action);
        self.allow(&action, resources)?;
        match self.params.flag("DryRun")? {
            Some(true) if self.service == Service::Ec2 => {
                let message = "Request would have succeeded, but DryRun flag is set.";
                Err(AwsError::new(412, "DryRunOperation", message))
            }
            _ => Ok(()),
        }
    }

    /// Asks the caller's policies about any action.
    pub(crate) fn allow(&self, action: &str, resources: &[String]) -> Result<(), AwsError> {
        self.allow_in(None, action, resources)
    }

    /// Asks the caller's policies about an action that this create takes for what it makes.
    fn allow_in(&self, create: Option<&str>, action: &str, resources: &[String]) -> Result<(), AwsError> {
        for resource in resources {
            if !policy::allows(&self.caller.policies, action, resource, create) {
                let arn = &self.caller.arn;
                let message = format!(
                    "User: {arn} is not authorized to perform: {action} on resource: {resource} because no \
                     identity-based policy allows the {action} action"
                );
                return Err(match self.service {
                    Service::Ec2 => {
                        let message = format!("You are not authorized to perform this operation. {message}");
                        AwsError::new(403, "UnauthorizedOperation", message)
                    }
                    _ => AwsError::new(403, "AccessDenied", message),
                });
            }
        }
        Ok(())
    }

    /// Creating with tags needs the right to tag.
    pub(crate) fn allow_tags(&self, tags: &Tags, resource: &str) -> Result<(), AwsError> {
        match tags.is_empty() {
            true => Ok(()),
            false => self.allow_in(Some(&self.action), "ec2:CreateTags", &[self.arn(resource)]),
        }
    }

    /// Whether describe calls show what was created at `created`.
    pub(crate) fn shows(&self, created: Timestamp) -> bool {
        self.now.duration_since(created) >= seconds(self.state.switches.describe_lag_s)
    }

    /// The tags as describe calls show them.
    pub(crate) fn shown_tags(&self, tags: &Tags, created: Timestamp) -> Tags {
        match self.now.duration_since(created) >= seconds(self.state.switches.tag_lag_s) {
            true => tags.clone(),
            false => Tags::new(),
        }
    }

    fn token_key(&self, token: &str) -> String {
        format!("{}/{}/{}/{token}", self.caller.account, self.region, self.action)
    }

    /// The id of what a call with this client token made earlier.
    ///
    /// # Errors
    /// A token that is too long, or was used with other parameters.
    pub(crate) fn repeated(&self) -> Result<Option<String>, AwsError> {
        let Some(token) = self.params.text("ClientToken").filter(|token| !token.is_empty()) else {
            return Ok(None);
        };
        if token.chars().count() > 64 {
            let message = "Client token must be at most 64 characters";
            return Err(AwsError::bad("InvalidParameterValue", message));
        }
        match self.state.tokens.get(&self.token_key(token)) {
            None => Ok(None),
            Some(spent) if spent.fingerprint == self.params.fingerprint() => Ok(Some(spent.id.clone())),
            Some(_) => Err(mismatch()),
        }
    }

    /// What a repeated call is answered by whose thing is gone: `None` to make a new one.
    pub(crate) fn repeated_but_gone(&self) -> Result<(), AwsError> {
        match self.state.switches.spent_token_is_refused {
            true => Err(mismatch()),
            false => Ok(()),
        }
    }

    /// Remembers what the client token made.
    pub(crate) fn spend_token(&mut self, id: &str) {
        let Some(token) = self.params.text("ClientToken").filter(|token| !token.is_empty()) else {
            return;
        };
        let key = self.token_key(token);
        let fingerprint = self.params.fingerprint();
        let id = id.to_owned();
        self.state.tokens.insert(key, SpentToken { fingerprint, id });
    }
}

fn mismatch() -> AwsError {
    let message = "The request uses the same client token as a previous, but non-identical request.";
    AwsError::bad("IdempotentParameterMismatch", message)
}
