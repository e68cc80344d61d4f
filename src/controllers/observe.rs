//! Finds out what a decision needs to know of Azure. Reads only.

use std::time::Duration;

use futures::future::join_all;

use super::context::Context;
use super::facts::{Facts, Need, Needs};
use crate::azure::client::Pass;
use crate::azure::error::ArmError;
use crate::azure::id::SubscriptionId;
use crate::azure::load_balancer::Frontend;
use crate::azure::look::Looker;
use crate::azure::resource::Kind;

/// A list that is searched for something that must have appeared just now may be this old.
const JUST_NOW: Duration = Duration::from_secs(5);

/// Runs `decide` until it needs nothing more.
pub async fn until_decided<T>(
    cx: &Context,
    pass: Pass,
    facts: &mut Facts,
    decide: &mut impl FnMut(&Facts) -> Result<T, Needs>,
) -> T {
    loop {
        match decide(facts) {
            Ok(decided) => return decided,
            Err(needs) => satisfy(cx, pass, facts, needs).await,
        }
    }
}

async fn satisfy(cx: &Context, pass: Pass, facts: &mut Facts, needs: Needs) {
    let looker = Looker {
        client: &cx.arm,
        memory: &cx.memory,
        inventory: &cx.inventory,
        pass,
    };
    let looks = needs.iter().map(async |need| match need {
        Need::Look(kind, id) => Some((id.clone(), looker.look(*kind, id).await)),
        Need::NewLook(kind, id) => Some((id.clone(), looker.look_anew(*kind, id).await)),
        _ => None,
    });
    facts.looks.extend(join_all(looks).await.into_iter().flatten());
    for need in needs {
        match need {
            Need::Look(..) => {}
            Need::NewLook(_, id) => {
                facts.new_looks.insert(id);
            }
            Need::Frontends(subscription, group) => {
                let found = frontends(cx, pass, &subscription, group.as_deref(), cx.resync * 4 / 5).await;
                facts.frontends.insert((subscription, group), found);
            }
            Need::NewFrontends(subscription, group) => {
                let found = frontends(cx, pass, &subscription, group.as_deref(), JUST_NOW).await;
                facts.frontends.insert((subscription.clone(), group.clone()), found);
                facts.new_frontends.insert((subscription, group));
            }
            Need::Inside(kind, zone) => {
                let part = if kind == Kind::Record {
                    "ALL"
                } else {
                    "virtualNetworkLinks"
                };
                let found = cx
                    .arm
                    .list(pass, kind, zone.subscription(), &format!("{zone}/{part}"))
                    .await;
                facts.inside.insert((kind, zone), found);
            }
        }
    }
}

async fn frontends(
    cx: &Context,
    pass: Pass,
    subscription: &SubscriptionId,
    group: Option<&str>,
    age: Duration,
) -> Result<Vec<Frontend>, ArmError> {
    cx.inventory.frontends(&cx.arm, pass, subscription, group, age).await
}
