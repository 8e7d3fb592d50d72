//! Statistics: what is counted of each review, including those of earlier versions, and the limit on reviews per
//! request.

use serde_json::{Value, json};
use shared::access::Principal;
use shared::review::Review;
use shared::statistics::{EscalationReason, Figures, StatisticsQuery};
use shared::time::Timestamp;

use super::support::{World, decide, decided, on_both, person};
use super::visibility::rewrite;
use crate::store::TooMuch;
use crate::store::db::Sql;

on_both! {
    each_kind_of_review_fills_its_figure,
    calls_count_as_what_is_gravest_of_them,
    an_alternative_is_no_approval,
    what_a_program_decides_counts_as_what_it_answered,
    a_judge_agrees_with_the_person_to_whom_it_passed_on,
    what_a_program_decides_with_a_token_is_no_time_of_a_person,
    reviews_of_an_earlier_version_are_counted_after_a_start,
    no_more_are_read_than_are_counted_at_once,
}

fn boss() -> Principal {
    Principal { roles: ["admin".to_owned()].into(), ..person("boss") }
}

async fn figures(world: &World) -> Figures {
    let query = StatisticsQuery::default();
    let counted = world.store.statistics(&boss(), &query, Timestamp(0), Timestamp::MAX).await.expect("reads");
    counted.expect("not too much").figures
}

/// Makes a review with these members.
async fn asked(world: &World, members: Value) -> Review {
    let review = world.launched_review("hello").await;
    let mut whole = serde_json::to_value(&review).expect("JSON");
    whole.as_object_mut().expect("an object").extend(members.as_object().expect("an object").clone());
    let review: Review = serde_json::from_value(whole).expect("a review");
    rewrite(world, &review).await;
    review
}

fn resolved(outcome: &str, via: &str, decision: Option<Value>) -> Value {
    let mut resolution = json!({
        "status": "resolved", "outcome": outcome, "by": ["ana"], "at": "2100-01-01T00:00:00Z", "via": via,
    });
    if let Some(decision) = decision {
        resolution["decision"] = decision;
    }
    resolution
}

fn decision(verdict: &Value) -> Value {
    json!({ "by": "ana", "at": "2100-01-01T00:00:00Z", "via": "human", "revision": 1, "digest": "", "verdict": verdict })
}

async fn an_alternative_is_no_approval(world: World) {
    for (option, alternative) in [("yes", false), ("later", true)] {
        let options = json!([{ "id": option, "kind": "accept", "label": option, "alternative": alternative }]);
        let chosen = decision(&json!({ "type": "choose", "option": option }));
        let resolution = resolved("accepted", "human", Some(chosen));
        asked(&world, json!({ "options": options, "status": "resolved", "resolution": resolution })).await;
    }
    let figures = figures(&world).await;
    assert_eq!((figures.approved, figures.answered, figures.rejected), (1, 1, 0));
}

async fn what_a_program_decides_with_a_token_is_no_time_of_a_person(world: World) {
    let token = json!("01900000-0000-7000-8000-000000000001");
    // At a terminal, people use a token too.
    for (via, token, people) in [("human", &token, 0), ("human", &Value::Null, 1), ("cli", &token, 2)] {
        let mut resolution = resolved("accepted", via, Some(decision(&json!({ "type": "choose", "option": "yes" }))));
        resolution["token"] = token.clone();
        asked(&world, json!({ "status": "resolved", "resolution": resolution })).await;
        let by_ana = StatisticsQuery { reviewer: Some("ana".to_owned()), ..StatisticsQuery::default() };
        let counted = world.store.statistics(&boss(), &by_ana, Timestamp(0), Timestamp::MAX).await.expect("reads");
        assert_eq!(counted.expect("not too much").figures.approved, people, "{via}");
    }
    assert_eq!(figures(&world).await.approved, 3, "it is approved, whoever did it");
}

async fn each_kind_of_review_fills_its_figure(world: World) {
    for kind in ["clarification", "edit", "escalation", "checkpoint", "handoff"] {
        asked(&world, json!({ "kind": kind, "category": "out_of_scope" })).await;
    }
    let mut changed = decision(&json!({ "type": "choose", "option": "yes" }));
    changed["edits"] = json!({ "content": "A better text" });
    asked(
        &world,
        json!({ "kind": "edit", "status": "resolved", "resolution": resolved("accepted", "human", Some(changed)) }),
    )
    .await;
    asked(&world, json!({ "kind": "escalation", "category": "a word of the flow's" })).await;
    let taken = decision(&json!({ "type": "choose", "option": "taken" }));
    asked(
        &world,
        json!({ "kind": "handoff", "status": "resolved", "resolution": resolved("accepted", "human", Some(taken)) }),
    )
    .await;
    let figures = figures(&world).await;
    assert_eq!((figures.requests, figures.clarifications, figures.checkpoints, figures.handoffs), (8, 1, 1, 2));
    assert_eq!((figures.approved, figures.answered), (1, 1), "who takes work over approves nothing");
    assert_eq!((figures.edits.count, figures.edits.changed, figures.escalations), (2, 1, 2));
    assert_eq!(figures.escalations_by_reason[&EscalationReason::OutOfScope], 1);
    assert_eq!(figures.escalations_by_reason.values().sum::<u64>(), 1);
}

async fn calls_count_as_what_is_gravest_of_them(world: World) {
    let (approve, edit) = (json!({ "type": "approve" }), json!({ "type": "edit", "arguments": {} }));
    let (reject, respond) = (json!({ "type": "reject" }), json!({ "type": "respond", "message": "It is done." }));
    for (one, other) in [(&approve, &approve), (&approve, &edit), (&edit, &reject), (&respond, &respond)] {
        let verdict = json!({ "type": "actions", "decisions": { "c1": one, "c2": other } });
        let resolution = resolved("decided", "human", Some(decision(&verdict)));
        asked(&world, json!({ "status": "resolved", "resolution": resolution })).await;
    }
    // No decision is on record if a handler resolves a review; an `auto` handler gives a reason only if it rejects.
    let mut rejected = resolved("decided", "auto", None);
    rejected["reason"] = json!("Rejected automatically.");
    for resolution in [resolved("decided", "auto", None), rejected] {
        asked(&world, json!({ "status": "resolved", "resolution": resolution })).await;
    }
    let figures = figures(&world).await;
    assert_eq!((figures.approved, figures.corrected, figures.rejected, figures.answered), (2, 1, 2, 1));
    assert!(figures.response_ms.avg.is_some());
}

async fn what_a_program_decides_counts_as_what_it_answered(world: World) {
    let advice = |by: &str, via: &str, answer: Value| json!({ "by": by, "via": via, "at": "2026-01-01T00:00:00Z", "reason": "Hm.", "answer": answer });
    let mut judge = advice("m/j", "judge", Value::Null);
    judge["verdict"] = json!({ "approved": false, "confidence": 0.5, "threshold": 0.8 });
    let webhook = |answer| advice("ok.test", "webhook", answer);
    let calls = |decision: Value| json!({ "verdict": { "type": "actions", "decisions": { "c1": decision } } });
    let with_reason = |via| {
        let mut resolution = resolved("decided", via, None);
        resolution["reason"] = json!("Within the limits.");
        resolution
    };
    // Each answer has a reason. Before it, a judge that would have rejected passed the question on.
    for answer in [
        json!({ "approved": true, "reason": "Within the limits." }),
        calls(json!({ "type": "approve" })),
        json!({ "approved": true, "modifications": { "toolArgs": { "amount": 5 } } }),
        calls(json!({ "type": "edit", "arguments": {} })),
        json!({ "approved": false }),
        json!({ "verdict": { "type": "text", "text": "No." } }),
        calls(json!({ "type": "respond", "message": "It is done." })),
        // The program could not be asked, and the flow says that this rejects.
        Value::Null,
    ] {
        let advice = json!([judge, webhook(answer)]);
        asked(&world, json!({ "advice": advice, "status": "resolved", "resolution": with_reason("webhook") })).await;
    }
    // One function decides; another passes the question on to a handler that approves.
    let functions =
        [(json!({ "approved": true }), with_reason("auto")), (Value::Null, resolved("decided", "auto", None))];
    for (answer, resolution) in functions {
        let advice = json!([advice("limits", "auto", answer)]);
        asked(&world, json!({ "advice": advice, "status": "resolved", "resolution": resolution })).await;
    }
    let edited = json!([webhook(json!({ "approved": true, "modifications": { "output": { "content": "Better" } } }))]);
    let resolution = resolved("accepted", "webhook", None);
    asked(&world, json!({ "kind": "edit", "advice": edited, "status": "resolved", "resolution": resolution })).await;

    let figures = figures(&world).await;
    assert_eq!((figures.approved, figures.corrected, figures.rejected, figures.answered), (5, 2, 3, 1));
    assert_eq!((figures.edits.count, figures.edits.changed), (1, 1));
    assert_eq!(figures.response_ms.avg, None, "no person decided");
}

async fn a_judge_agrees_with_the_person_to_whom_it_passed_on(world: World) {
    let advice = |verdict: Value| json!({ "by": "m/j", "via": "judge", "at": "2026-01-01T00:00:00Z", "reason": "Hm.", "verdict": verdict });
    let unsure = |approved: bool| json!({ "approved": approved, "confidence": 0.5, "threshold": 0.8 });
    let accepted = resolved("accepted", "human", None);
    for (advice, resolution) in [
        (json!([advice(Value::Null), advice(unsure(true))]), accepted.clone()),
        (json!([advice(unsure(false))]), accepted),
        (
            json!([advice(json!({ "approved": true, "confidence": 0.9, "threshold": 0.8 }))]),
            resolved("accepted", "judge", None),
        ),
    ] {
        asked(&world, json!({ "advice": advice, "status": "resolved", "resolution": resolution })).await;
    }
    asked(&world, json!({ "advice": [advice(unsure(true))] })).await;
    let judge = figures(&world).await.judge;
    assert_eq!((judge.asked, judge.decided, judge.passed_on, judge.failed), (5, 1, 3, 1));
    assert_eq!((judge.agreed, judge.disagreed), (1, 1));
}

async fn reviews_of_an_earlier_version_are_counted_after_a_start(world: World) {
    let review = world.launched_review("one").await;
    decided(world.store.commit(decide(&review, "tom", "no")).await).expect("decided");
    let broken = world.launched_review("two").await;
    world.launched_review("three").await;
    let before = figures(&world).await;
    assert_eq!((before.requests, before.rejected, before.pending), (3, 1, 2));
    let mut conn = world.store.inner.db.write_on_this_thread().await.expect("writes");
    conn.execute(Sql::new("UPDATE reviews SET facts = NULL, severity_rank = NULL")).await.expect("writes");
    conn.execute(Sql::new("UPDATE reviews SET body = '{' WHERE id = ").bind(broken.id.0)).await.expect("writes");
    conn.commit().await.expect("writes");
    assert_eq!(figures(&world).await.requests, 0);

    let store = world.another().await;
    let after = figures(&world).await;
    assert_eq!((after.requests, after.pending), (2, 1), "all but what cannot be read");
    assert_eq!((after.rejected, after.response_ms), (before.rejected, before.response_ms));
    store.close().await;
}

async fn no_more_are_read_than_are_counted_at_once(world: World) {
    for text in ["one", "two", "three"] {
        world.launched_review(text).await;
    }
    let query = StatisticsQuery::default();
    for (most, expected) in [(3, None), (2, Some(TooMuch::Reviews(2)))] {
        let counted = world.store.statistics_of(&boss(), &query, Timestamp(0), Timestamp::MAX, most).await;
        assert_eq!(counted.expect("reads").err(), expected);
    }
}
