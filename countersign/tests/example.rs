//! Tests that the example publishes what is approved, and nothing else.

#[expect(dead_code, reason = "the example's own main is not run here")]
#[path = "../examples/embedded.rs"]
mod embedded;

use countersign::FlowCode;

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_is_corrected_until_it_pleases_and_published_once() {
    let (ended, published) = embedded::article("the ocean", 120).await.expect("it starts");
    let finished = ended.expect("it completes");
    assert_eq!(published, 1);
    assert!(finished.output["publish"]["bytes"].as_u64() > Some(0), "{:?}", finished.output);
    assert_eq!(finished.report.reviews.last().map(|last| last.actions.len()), Some(1), "the call was asked about");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_reviewer_stops_is_an_error_with_code_node_and_message() {
    let (ended, published) = embedded::article("the ocean", 3).await.expect("it starts");
    let error = ended.expect_err("it was stopped");
    assert!(error.is_rejected());
    let failure = error.failure().expect("it says why");
    assert_eq!(failure.code, FlowCode::FlowHumanRejected);
    assert_eq!(failure.node.as_deref(), Some("review"));
    assert!(failure.message.contains("still too long"), "{failure}");
    assert_eq!(published, 0, "the function was never touched");
}
