//! The identities of the roles may do what HyperShift's policies allow, and nothing else.

use anyhow::{Result, ensure};
use e2e::aws_cluster::AwsHostedCluster;
use e2e::aws_sim::{ADMINISTRATOR, CPO, Caller, GUEST_ADMINISTRATOR, HO};
use e2e::azure_sim::Preset;
use e2e::{AwsEnv, scenario};
use reqwest::Method;

async fn allows(caller: &Caller, action: &str, parameters: &[(&str, &str)]) -> Result<()> {
    caller.ec2(action, parameters).await?.ok().map(drop)
}

async fn refuses(caller: &Caller, action: &str, parameters: &[(&str, &str)]) -> Result<()> {
    let answer = caller.ec2(action, parameters).await?;
    ensure!(
        answer.code.as_deref() == Some("UnauthorizedOperation"),
        "{action}: {}",
        answer.body
    );
    Ok(())
}

#[test]
fn identities_may_do_what_the_policies_allow_alone() {
    scenario(async {
        let env = AwsEnv::local(Preset::Fast).await?;
        let cluster = AwsHostedCluster::new("allowed");
        cluster.create_guest_network(&env).await?;
        let change = "ModifyVpcEndpointServiceConfiguration";
        let to_change = [("ServiceId", "vpce-svc-0e2e"), ("AcceptanceRequired", "true")];

        let ho = env.caller(HO)?;
        allows(&ho, "DescribeVpcEndpointServiceConfigurations", &[]).await?;
        ho.load_balancing("DescribeLoadBalancers", &[]).await?.ok()?;
        refuses(&ho, change, &to_change).await?;
        refuses(&ho, "DescribeSubnets", &[]).await?;
        let unknown = env.caller(ADMINISTRATOR)?.ec2(change, &to_change).await?;
        ensure!(unknown.code.as_deref() != Some("UnauthorizedOperation"), "{unknown:?}");

        for cpo in [env.caller(CPO)?, env.cpo_session().await?] {
            // Route 53 takes five requests a second.
            env.oracle().advance(2.0).await?;
            allows(&cpo, "DescribeSubnets", &[]).await?;
            refuses(&cpo, "DescribeVpcEndpointServiceConfigurations", &[]).await?;
            cpo.route53(Method::GET, "/hostedzone", "").await?.ok()?;
            let records = format!("/hostedzone/{}/rrset", cluster.zone());
            cpo.route53(Method::GET, &records, "").await?.ok()?;
            let zone = format!("/hostedzone/{}", cluster.zone());
            let refused = cpo.route53(Method::GET, &zone, "").await?;
            ensure!(refused.code.as_deref() == Some("AccessDenied"), "{refused:?}");
        }
        let person = env.caller(GUEST_ADMINISTRATOR)?;
        allows(&person, "DescribeVpcs", &[]).await?;

        let journal = env.oracle().journal(0).await?;
        let denied = journal.iter().filter(|call| call.is_denied()).count();
        ensure!(denied == 6, "{journal:?}");
        ensure!(env.oracle().last_call().await? == journal.len() as u64, "{journal:?}");
        ensure!(journal.iter().any(|call| call.principal == HO.arn()), "{journal:?}");
        Ok(())
    });
}
