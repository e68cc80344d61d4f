//! The settings of AWS, checked against each other.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::settings::{AwsEndpoints, AwsSettings, Connections};
use super::{Environment, Problems, azure};
use crate::api::Role;
use crate::aws::credentials::Profile;
use crate::aws::endpoints::{EndpointOverrides, Endpoints};
use crate::aws::region::Region;
use crate::azure::arm::https::HttpSettings;
use crate::hypershift::aws::load_balancer_name::NlbMatch;

const CREDENTIALS_FILE: &str = "--aws-credentials-file (or AWS_SHARED_CREDENTIALS_FILE)";
const REGION: &str = "--aws-region (or AWS_REGION)";

/// How AWS is reached, and as whom.
#[derive(Debug, Clone)]
pub struct Aws {
    /// The region, and the origins to which requests are sent.
    pub endpoints: Endpoints,
    /// The file of which the profile `default` is the identity of this process.
    pub credentials_file: PathBuf,
    /// How all of them are reached; a client can be built from it.
    pub http: HttpSettings,
    /// How role `ho` recognises the load balancer of a Service.
    pub nlb_match: NlbMatch,
}

pub(super) fn aws(
    settings: AwsSettings,
    connections: &Connections,
    roles: &BTreeSet<Role>,
    environment: &Environment,
    problems: &mut Problems,
) -> Option<Aws> {
    let missing = format!("{CREDENTIALS_FILE} is missing; platform aws needs it");
    let credentials_file = problems.check(settings.aws_credentials_file.ok_or(missing));
    let region = region(settings.aws_region, credentials_file.as_ref(), problems);
    let http = azure::http(connections, roles, environment);
    problems.check(http.client())?;
    let endpoints = region.map(|region| Endpoints::new(region, &overrides(settings.endpoints)));
    Some(Aws {
        endpoints: problems.check(endpoints?)?,
        credentials_file: credentials_file?,
        http,
        nlb_match: settings.nlb_match,
    })
}

/// The region that is given, or else that of the credentials file. That the file is wrong is reported once.
fn region(given: Option<String>, file: Option<&PathBuf>, problems: &mut Problems) -> Option<Region> {
    let profile = problems.check(Profile::read(file?))?;
    let Some(name) = given.or(profile.region) else {
        problems.add(format!("{REGION} is missing, and the credentials file names no region"));
        return None;
    };
    problems.check(Region::parse(&name).map_err(|error| format!("{REGION}: {error}")))
}

fn overrides(given: AwsEndpoints) -> EndpointOverrides {
    EndpointOverrides {
        ec2: given.aws_endpoint_ec2,
        elbv2: given.aws_endpoint_elb,
        route53: given.aws_endpoint_route53,
        sts: given.aws_endpoint_sts,
        instance_metadata: given.aws_endpoint_imds,
    }
}
