//! The file of allowed scopes: an error of one line, or a file whose every entry is valid.

use hyperlink::azure::arm::id::SubscriptionId;
use hyperlink::azure::arm::scope::AzureScope;
use hyperlink::hypershift::host_names::dns_name;
use hyperlink::hypershift::scopes::AllowedScopes;
use serde_json::{Value, json};

use super::mutate::{Input, mutate};

/// A file as text, or a valid one with something changed.
pub fn scopes(data: &[u8]) {
    let mut input = Input(data);
    let text = match input.byte() % 2 {
        0 => String::from_utf8_lossy(input.0).into_owned(),
        _ => {
            let mut file = valid();
            mutate(&mut file, &mut input);
            file.to_string()
        }
    };
    match AllowedScopes::parse(&text) {
        // `/readyz` shows it.
        Err(error) => assert!(!error.to_string().contains(char::is_control), "{error}"),
        Ok(allowed) => every_entry_is_valid(&text, &allowed),
    }
}

fn valid() -> Value {
    json!({
        "hostedClusters": [
            {"namespace": "clusters", "names": ["a", "b"], "scopes": ["/subscriptions/s/resourceGroups/g"],
                "additionalAllowedSubscriptions": ["44444444-4444-4444-4444-444444444444"],
                "baseDomains": ["example.com"]},
            {"namespace": "others", "scopes": ["/subscriptions/t"]},
            {"namespace": "amazon", "names": ["a"], "aws": {"roleARN": "arn:aws:iam::444455556666:role/a",
                "vpcIDs": ["vpc-0123456789abcdef0"], "hostedZoneIDs": ["Z0123456789"]}},
        ],
        "excludeNamespaces": ["clusters-c"],
    })
}

fn every_entry_is_valid(text: &str, allowed: &AllowedScopes) {
    let options = serde_saphyr::options! { strict_booleans: true };
    let file: Value = serde_saphyr::from_str_with_options(text, options).unwrap();
    assert_eq!(
        AllowedScopes::parse(&file.to_string()).unwrap(),
        *allowed,
        "as JSON: {file}"
    );
    let mut entries = 0;
    for entry in items(&file["hostedClusters"]) {
        entries += entry["names"].as_array().map_or(1, Vec::len);
        assert!(
            texts(&entry["scopes"]).all(|text| AzureScope::parse(text).is_ok()),
            "{entry}"
        );
        let mut connect = texts(&entry["additionalAllowedSubscriptions"]);
        assert!(connect.all(|text| SubscriptionId::parse(text).is_ok()), "{entry}");
        assert!(
            texts(&entry["baseDomains"]).all(|text| dns_name(text).is_some()),
            "{entry}"
        );
    }
    assert_eq!(allowed.entries(), entries);
    assert!(texts(&file["excludeNamespaces"]).all(|name| !name.is_empty() && allowed.excludes(name)));
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    items(list).map(|text| text.as_str().unwrap())
}
