//! Finds out what a decision needs to know of Azure. Reads only.

use std::time::Duration;

use futures::future::join_all;

use tokio::time::Instant;

use super::context::Context;
use super::facts::{Facts, Need, Needs};
use crate::azure::client::Pass;
use crate::azure::error::ArmError;
use crate::azure::id::SubscriptionId;
use crate::azure::load_balancer::Frontend;
use crate::azure::look::Looker;
use crate::azure::resource::{Kind, Seen};

/// A list that is searched for something that must have appeared just now may be this old: whatever appears, and wherever, it
/// is not read more often.
const JUST_NOW: Duration = Duration::from_secs(1);

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
    read_single(cx, pass, facts, &needs).await;
    for need in needs {
        match need {
            Need::Look(..) => {}
            Need::NewLook(_, id) => {
                facts.new_looks.insert(id);
            }
            Need::Frontends(subscription, group) => {
                let found = frontends(cx, pass, &subscription, group.as_deref(), cx.resync * 4 / 5)
                    .await
                    .1;
                facts.frontends.insert((subscription, group), found);
            }
            Need::NewFrontends(subscription, group) => {
                let (seen, found) = frontends(cx, pass, &subscription, group.as_deref(), JUST_NOW).await;
                facts.frontends.insert((subscription.clone(), group.clone()), found);
                facts.older_frontends |= seen < pass.began;
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
                let found = cx.memory.list_of(&zone, found, Instant::now());
                facts.inside.insert((kind, zone), found);
            }
        }
    }
}

/// Reads the single resources among the needs, all at once.
async fn read_single(cx: &Context, pass: Pass, facts: &mut Facts, needs: &[Need]) {
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
    let seen: Vec<_> = join_all(looks).await.into_iter().flatten().collect();
    let now = Instant::now();
    let gone = seen
        .iter()
        .filter_map(|(id, _)| Some((id.clone(), cx.memory.gone_for(id, now)?)));
    facts.gone_for.extend(gone);
    for (id, seen) in &seen {
        // It may have been seen otherwise before.
        facts.proven.remove(id);
        facts.surely_gone.remove(id);
        match seen {
            Seen::Found(body) if cx.memory.is_proven(id, body) => drop(facts.proven.insert(id.clone())),
            Seen::Absent if cx.memory.surely_gone(id) => drop(facts.surely_gone.insert(id.clone())),
            _ => {}
        }
    }
    facts.looks.extend(seen);
}

async fn frontends(
    cx: &Context,
    pass: Pass,
    subscription: &SubscriptionId,
    group: Option<&str>,
    age: Duration,
) -> (Instant, Result<Vec<Frontend>, ArmError>) {
    cx.inventory.frontends(&cx.arm, pass, subscription, group, age).await
}
