//! Tests of the seals and the verification of the audit log, as admins use them.

use std::time::Duration;

use serde_json::json;

use super::Site;
use crate::audit::{SealKey, Sealer, Trusted, verify_file};

#[tokio::test]
async fn an_admin_verifies_the_record_and_takes_the_proof_along() {
    let site = Site::new().await;
    let admin = site.login("admin").await;
    assert_eq!(admin.get("/api/v1/audit/seal").await.code(404), "not_found");
    let check = admin.get("/api/v1/audit/verify").await.expect(200);
    assert_eq!((&check["valid"], &check["sealed"]), (&json!(true), &json!(0)));

    let (key, trusted) = SealKey::open(&site.folder.path().join("seal.key"), &*site.clock).unwrap();
    let sealer = Sealer::new(site.store.clone(), key, site.seals.clone(), site.clock.clone()).run();
    let sealing = async {
        while admin.get("/api/v1/audit/seal").await.status != 200 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), sealing).await.expect("what happened is sealed");
    sealer.stop().await;
    let head = admin.get("/api/v1/audit/seal").await.expect(200);
    let check = admin.get("/api/v1/audit/verify").await.expect(200);
    assert_eq!((&check["valid"], &check["head"], &check["sealed"]), (&json!(true), &head["head"], &head["sealed"]));
    let listed = admin.get("/api/v1/audit").await.expect(200);
    assert_eq!(listed["items"].as_array().unwrap().last().unwrap()["sealed"], 1);

    let lines = admin.get("/api/v1/audit/export?format=jsonl").await.expect(200);
    let lines = lines.as_str().unwrap();
    let expected = head["head"].as_str().unwrap().parse().unwrap();
    let file = verify_file(lines.as_bytes(), &trusted, Some(&expected)).unwrap();
    assert!(file.check.valid && !file.part, "{file:?}");
    assert!(!verify_file(lines.as_bytes(), &Trusted::default(), None).unwrap().check.valid, "nobody else's key");

    let ana = site.join("ana", &["reviewer"]).await;
    for path in ["/api/v1/audit/seal", "/api/v1/audit/verify"] {
        assert_eq!(ana.get(path).await.code(403), "forbidden");
    }
}
