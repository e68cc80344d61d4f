//! Choices where AWS's own answer is not known. The defaults are the stricter answers.

use serde::{Deserialize, Serialize};

/// One choice per open question; the README has the list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Switches {
    /// Seconds in which a new thing is not shown by describe, by id or by filter.
    pub describe_lag_s: f64,
    /// Seconds in which the tags of a new thing are not shown, and filters on them miss it.
    pub tag_lag_s: f64,
    /// A client token whose thing was deleted is refused (`IdempotentParameterMismatch`); otherwise it makes a new one.
    pub spent_token_is_refused: bool,
    /// A connection that is `deleting` still keeps an endpoint service from being deleted.
    pub deleting_blocks_delete: bool,
    /// Adding and removing subnets of one zone in one ModifyVpcEndpoint is refused.
    pub zone_swap_is_refused: bool,
    /// An endpoint without subnets is refused.
    pub subnets_are_required: bool,
    /// One rule that exists refuses the whole authorization; otherwise the others are added all the same.
    pub authorize_is_atomic: bool,
    /// The filter `vpc-endpoint-id` of connections is refused.
    pub connection_filter_is_refused: bool,
    /// A principal whose role is gone is shown by its unique id, not its ARN.
    pub gone_principal_shows_id: bool,
    /// EC2's code for an expired session: `RequestExpired` or `ExpiredToken`.
    pub ec2_expired_code: String,
    /// A refused batch is answered by Route 53's own element with messages; otherwise by the usual error.
    pub batch_error_has_messages: bool,
    /// Seconds after a change in which a zone refuses the next one.
    pub zone_busy_s: f64,
    /// Seconds in which a rejected connection is still listed after its endpoint has gone.
    pub rejected_listed_s: f64,
}

impl Default for Switches {
    fn default() -> Self {
        Self {
            describe_lag_s: 1.0,
            tag_lag_s: 2.0,
            spent_token_is_refused: true,
            deleting_blocks_delete: true,
            zone_swap_is_refused: true,
            subnets_are_required: false,
            authorize_is_atomic: true,
            connection_filter_is_refused: true,
            gone_principal_shows_id: true,
            ec2_expired_code: "RequestExpired".to_owned(),
            batch_error_has_messages: false,
            zone_busy_s: 0.2,
            rejected_listed_s: 3600.0,
        }
    }
}
