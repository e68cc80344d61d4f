//! What both roles export of a cluster on AWS.

use anyhow::{Context, Result, ensure};
use e2e::hosted_cluster::ROUTER;
use e2e::hyperlink::Role;
use e2e::{eventually, scenario};

use crate::SOON;
use crate::both::Both;

/// The page of a role's metrics.
async fn page(both: &mut Both, role: Role) -> Result<String> {
    let process = both.process(role).as_ref().context("the role does not run")?;
    Ok(process.page("/metrics").await?.1)
}

/// Waits until a role exports these series of the cluster's custom resource, `{}` standing for its labels.
async fn exports(both: &mut Both, role: Role, series: &[&str]) -> Result<()> {
    let namespace = both.cluster.control_plane_namespace();
    let labels = format!("platform=\"aws\",control_plane=\"{namespace}\",name=\"{ROUTER}\"");
    let process = both.process(role).as_ref().context("the role does not run")?;
    for one in series {
        let one = one.replace("{}", &labels);
        eventually(&format!("{role:?} exports {one}"), SOON, || async {
            let (_, text) = process.page("/metrics").await?;
            let about: Vec<_> = text.lines().filter(|line| line.contains("platform=\"aws\"")).collect();
            ensure!(about.iter().any(|line| line.starts_with(&one)), "{about:#?}");
            Ok(())
        })
        .await?;
    }
    Ok(())
}

#[test]
fn path_is_in_the_metrics_of_both_roles_from_waiting_to_available() {
    scenario(async {
        let mut both = Both::without_roles("counted", "3s").await?;
        both.start_role(Role::Cpo).await?;
        both.cluster.create_objects(&both.env).await?;
        let not_available = [
            "hyperlink_object_available{{}} 0",
            "hyperlink_object_not_true_age_seconds{{},reason=\"other\",type=\"AWSEndpointServiceAvailable\"} ",
            "hyperlink_objects{platform=\"aws\",state=\"unavailable\"} 1",
        ];
        exports(&mut both, Role::Cpo, &not_available).await?;

        both.start_role(Role::Ho).await?;
        both.becomes_available().await?;
        let available = [
            "hyperlink_object_available{{}} 1",
            "hyperlink_objects{platform=\"aws\",state=\"available\"} 1",
            "hyperlink_conditions{platform=\"aws\",status=\"True\",type=\"AWSEndpointServiceAvailable\"} 1",
            "hyperlink_conditions{platform=\"aws\",status=\"True\",type=\"AWSEndpointAvailable\"} 1",
        ];
        for role in [Role::Ho, Role::Cpo] {
            exports(&mut both, role, &available).await?;
            let text = page(&mut both, role).await?;
            for other in ["hyperlink_object_not_true_age", "platform=\"azure\",state"] {
                ensure!(!text.contains(other), "{other} in\n{text}");
            }
        }
        // CPO has a session, and HO keys without an end.
        let session = "hyperlink_aws_session_expires_in_seconds ";
        let left = page(&mut both, Role::Cpo).await?;
        let left = left
            .lines()
            .find_map(|line| line.strip_prefix(session))
            .context(session)?;
        ensure!(left.parse::<f64>()? > 1_800.0, "{left}");
        ensure!(!page(&mut both, Role::Ho).await?.contains(session), "keys have no end");

        let of_vpc = ["used", "limit"].map(|what| format!("hyperlink_quota_{what}{{quota=\"endpoints_per_vpc\"}} "));
        ensure!(
            !page(&mut both, Role::Ho).await?.contains("hyperlink_quota"),
            "ho counts no endpoints"
        );
        let text = page(&mut both, Role::Cpo).await?;
        let quota: Vec<_> = of_vpc
            .iter()
            .map(|one| text.lines().find_map(|line| line.strip_prefix(&**one)))
            .collect();
        ensure!(quota == [Some("1"), Some("50")], "{quota:?}");

        let counted = "hyperlink_time_to_available_seconds_count{platform=\"aws\",since=\"creation\"} 1";
        exports(&mut both, Role::Cpo, &[counted]).await?;
        both.stop().await
    });
}
