//! Who may call, changed while the server runs, and who has asked for tokens.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod http_support;

use http_support::*;
use reqwest::{Method, StatusCode};
use serde_json::json;

#[tokio::test]
async fn roles_that_change_count_from_the_next_call_on() {
    let server = start().await;
    let token = server.token(ARM_SCOPE).await;
    let object = small_seed()["roles"][0]["object_id"].clone();
    let granted = |action: &str| json!([{"object_id": object, "scope": "/", "actions": [action]}]);
    for (action, status) in [("Microsoft.Network/*", 403), ("*/read", 200)] {
        let answer = server.control(Method::PUT, "/roles", Some(granted(action))).await;
        assert_eq!(answer, (200, json!({})));
        assert_eq!(server.get_group(&token).await.status(), status, "{action}");
    }
    let unknown = json!([{"object": object}]);
    assert_eq!(server.control(Method::PUT, "/roles", Some(unknown)).await.0, 400);
    assert_eq!(server.get_group(&token).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn token_requests_are_counted_by_tenant_and_client() {
    let server = start().await;
    assert_eq!(server.control(Method::GET, "/tokens", None).await, (200, json!([])));
    for _ in 0..2 {
        server.token(ARM_SCOPE).await;
    }
    let (status, _) = server.token_request("elsewhere", &[("client_id", "stranger")]).await;
    assert_eq!(status, 400);
    let asked = json!([
        {"tenant": TENANT, "client_id": CLIENT, "count": 2},
        {"tenant": "elsewhere", "client_id": "stranger", "count": 1},
    ]);
    assert_eq!(server.control(Method::GET, "/tokens", None).await, (200, asked));
    server.control(Method::PUT, "/seed", Some(small_seed())).await;
    assert_eq!(server.control(Method::GET, "/tokens", None).await, (200, json!([])));
}
