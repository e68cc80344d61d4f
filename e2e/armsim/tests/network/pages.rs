//! Lists of endpoints and of network interfaces, page by page.

use armsim::Preset;
use rstest::rstest;
use serde_json::{Value, json};

use crate::network_support::{GUEST_NET, GUEST_SUB, Sim, seed};

/// Five endpoints to one service, and three rows on a page.
fn five() -> Sim {
    let mut json = seed();
    json["switches"] = json!({"network_page_rows": 3});
    let mut sim = Sim::seeded(json, Preset::Recorded);
    let alias = sim.link_service("svc");
    for at in 0..5 {
        sim.endpoint(&format!("pe{at}"), &alias);
    }
    sim
}

/// All rows of a list along its links, and how many were on each page.
fn all_pages(sim: &mut Sim, path: &str) -> (Vec<Value>, Vec<usize>) {
    let (mut rows, mut sizes) = (Vec::new(), Vec::new());
    let mut page = sim.get(path);
    loop {
        assert_eq!(page.status, 200, "{}", page.body);
        let shown = page.body["value"].as_array().unwrap().clone();
        sizes.push(shown.len());
        rows.extend(shown);
        let Some(next) = page.body["nextLink"].as_str().map(str::to_owned) else {
            return (rows, sizes);
        };
        page = sim.poll(&next);
    }
}

/// A list of all of a type in the subscription.
fn everywhere(list: &str) -> String {
    format!("/subscriptions/{GUEST_SUB}/providers/Microsoft.Network/{list}")
}

#[rstest]
#[case::endpoints_of_a_group(format!("{GUEST_NET}/privateEndpoints"))]
#[case::endpoints_of_a_subscription(everywhere("privateEndpoints"))]
#[case::interfaces_of_a_group(format!("{GUEST_NET}/networkInterfaces"))]
#[case::interfaces_of_a_subscription(everywhere("networkInterfaces"))]
fn list_comes_in_pages_with_each_row_once(#[case] path: String) {
    let mut sim = five();
    let (rows, sizes) = all_pages(&mut sim, &path);
    assert_eq!(sizes, [3, 2]);
    for row in &rows {
        let got = sim.get(row["id"].as_str().unwrap());
        assert_eq!((got.status, &got.body), (200, row));
    }
    let mut ids: Vec<&str> = rows.iter().map(|row| row["id"].as_str().unwrap()).collect();
    ids.dedup();
    assert_eq!(ids.len(), 5);
}

#[test]
fn list_of_endpoints_names_interfaces_by_id_only() {
    let mut sim = five();
    let (rows, _) = all_pages(&mut sim, &format!("{GUEST_NET}/privateEndpoints"));
    for row in rows {
        let interfaces = row["properties"]["networkInterfaces"].as_array().unwrap();
        assert_eq!(interfaces.len(), 1);
        assert_eq!(interfaces[0].as_object().unwrap().len(), 1, "{}", interfaces[0]);
    }
}
