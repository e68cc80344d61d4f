//! What nobody looks after any more.

use super::*;

#[tokio::test(start_paused = true)]
async fn what_is_absent_and_looked_at_no_more_is_soon_forgotten() {
    let (memory, now) = (memory(), Instant::now());
    let there =
        ResourceId::parse("/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/privateDnsZones/t").unwrap();
    memory.resting(Kind::Zone, &id(), Seen::Absent, now);
    memory.resting(Kind::Zone, &there, Seen::Found(serde_json::json!({})), now);
    let known = |minutes: u64| {
        memory.forget_left(now + Duration::from_secs(60 * minutes));
        [memory.knows(&id()), memory.knows(&there)]
    };
    assert_eq!([known(10), known(30)], [[true, true], [false, true]]);
}
