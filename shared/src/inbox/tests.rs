//! Tests of the order of urgency, of filters, and of outlines.

use serde_json::{Value, json};

use super::{AgeGroup, Assigned, Due, Facet, Nearness, ReviewQuery, Urgency, outline, roles};
use crate::access::{Act, Principal, access};
use crate::definition::Severity;
use crate::review::Review;
use crate::time::{Span, Timestamp};

const NOW: &str = "2026-01-02T12:00:00Z";

fn review(number: u128, more: &Value) -> Review {
    let mut review = json!({
        "id": uuid::Uuid::from_u128(number), "revision": 1, "digest": "", "version": 1, "kind": "approval",
        "status": "pending", "title": "", "prompt": "", "requested_by": "dev", "created_at": "2026-01-01T00:00:00Z",
    });
    review.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    serde_json::from_value(review).expect("a review")
}

fn ana() -> Principal {
    Principal::new("ana".parse().expect("a name"), ["reviewer".to_owned()].into())
}

fn now() -> Timestamp {
    NOW.parse().expect("a time")
}

#[test]
fn the_soonest_comes_first_then_what_has_most_at_stake_then_the_oldest() {
    let in_order = [
        review(9, &json!({ "expires_at": "2026-01-02T12:00:00Z", "severity": "low" })),
        review(8, &json!({ "expires_at": "2026-01-02T13:00:00Z", "severity": "critical" })),
        review(7, &json!({ "expires_at": "2026-01-02T13:00:00Z", "severity": "high" })),
        review(6, &json!({ "severity": "critical", "created_at": "2026-01-02T00:00:00Z" })),
        review(5, &json!({ "severity": "high" })),
        review(3, &json!({ "severity": "medium", "created_at": "2025-01-01T00:00:00Z" })),
        review(2, &json!({ "severity": "medium" })),
        review(4, &json!({ "severity": "medium" })),
        review(1, &json!({ "severity": "low", "created_at": "2020-01-01T00:00:00Z" })),
    ];
    assert!(in_order.iter().map(Urgency::of).is_sorted_by(|one, next| one < next));
}

#[test]
fn each_part_of_a_filter_lets_through_what_it_says() {
    let one = review(
        1,
        &json!({
            "kind": "tool_calls", "severity": "high", "flow": "mail", "reversible": false, "escalated": ["lead"],
            "reviewers": { "roles": ["reviewer"], "tags": ["gold"] }, "expires_at": "2026-01-02T12:30:00Z",
            "claimed_by": { "by": "tom", "until": "2026-01-02T12:00:01Z" },
        }),
    );
    let fits = |query: &str| {
        let pairs = query.split('&').map(|pair| pair.split_once('=').expect("a pair"));
        let mut query: serde_json::Map<String, Value> =
            pairs.map(|(name, value)| (name.to_owned(), json!(value))).collect();
        if let Some(whether) = query.get_mut("irreversible") {
            *whether = json!(whether == "true");
        }
        let query: ReviewQuery = serde_json::from_value(Value::Object(query)).expect(NOW);
        query.matches(&one, &ana(), now())
    };
    for query in [
        "status=pending",
        "kind=tool_calls",
        "severity=high",
        "flow=mail",
        "role=reviewer",
        "role=lead",
        "tag=gold",
        "assigned=claimed",
        "due=30m",
        "due=2026-01-02T12:30:00Z",
        "irreversible=true",
        "age=36h",
    ] {
        assert!(fits(query), "{query}");
    }
    // Ana lacks the tag, so she may not decide the review.
    for query in [
        "status=resolved",
        "kind=approval",
        "severity=low",
        "flow=other",
        "role=editor",
        "tag=silver",
        "assigned=me",
        "assigned=unclaimed",
        "due=29m",
        "due=2026-01-02T12:29:59Z",
        "due=none",
        "irreversible=false",
        "age=37h",
        "kind=tool_calls&severity=low",
    ] {
        assert!(!fits(query), "{query}");
    }
    let plain = review(2, &json!({}));
    let never = ReviewQuery { due: Some(Due::Never), assigned: Some(Assigned::Me), ..ReviewQuery::default() };
    assert!(never.matches(&plain, &ana(), now()), "no deadline, and for every reviewer");
    assert_eq!(roles(&plain).collect::<Vec<_>>(), ["reviewer"]);
    let over = ReviewQuery { assigned: Some(Assigned::Unclaimed), ..ReviewQuery::default() };
    assert!(over.matches(&one, &ana(), now().after(std::time::Duration::from_secs(1))), "a claim ends with its lease");
}

#[test]
fn what_does_not_fit_is_named_by_its_facet() {
    let filter = ReviewQuery {
        severity: Some(Severity::High),
        irreversible: Some(true),
        age: Some(Span::secs(1)),
        ..ReviewQuery::default()
    };
    let missed = |more: Value| filter.misses(&review(1, &more), &ana(), now()).collect::<Vec<_>>();
    assert_eq!(missed(json!({ "severity": "high", "reversible": false })), []);
    assert_eq!(missed(json!({ "severity": "low", "reversible": false })), [Some(Facet::Severity)]);
    assert_eq!(missed(json!({ "severity": "low" })), [None, Some(Facet::Severity)]);
}

#[test]
fn deadlines_are_soon_today_later_or_none() {
    let of = |time: &str| Nearness::of(Some(time.parse().expect("a time")), now());
    assert_eq!(of("2026-01-02T11:00:00Z"), Nearness::Soon, "what is over is soon enough");
    assert_eq!(of("2026-01-02T12:30:00Z"), Nearness::Soon);
    assert_eq!(of("2026-01-02T12:30:00.000001Z"), Nearness::Today);
    assert_eq!(of("2026-01-03T12:00:00.000001Z"), Nearness::Later);
    assert_eq!(Nearness::of(None, now()), Nearness::None);
    let of = |time: &str| AgeGroup::of(time.parse().expect("a time"), now());
    assert_eq!(of("2026-01-02T12:00:01Z"), AgeGroup::Minutes, "asked by a clock that is ahead");
    assert_eq!(of("2026-01-02T11:00:00.000001Z"), AgeGroup::Minutes);
    assert_eq!(of("2026-01-02T11:00:00Z"), AgeGroup::Hours);
    assert_eq!(of("2026-01-01T12:00:00Z"), AgeGroup::Days);
    assert_eq!(of("2025-12-26T12:00:00Z"), AgeGroup::Weeks);
}

#[test]
fn a_deadline_is_asked_for_by_length_by_time_or_as_none() {
    for (text, due) in [("30m", Due::Within(Span::secs(1800))), (NOW, Due::By(now())), ("none", Due::Never)] {
        assert_eq!(text.parse(), Ok(due));
        assert_eq!(due.to_string().parse(), Ok(due));
    }
    assert!("soon".parse::<Due>().unwrap_err().contains("30m"), "the mistake says what is right");
}

#[test]
fn an_outline_has_the_rights_of_its_review_and_fits_as_it_does() {
    let said = json!({ "by": "tom", "on_behalf_of": "ana", "at": NOW, "via": "human", "revision": 1, "digest": "",
        "verdict": { "type": "choose", "option": "yes" }, "comment": "secret" });
    let voting = json!({ "voters": ["ana", "tom"], "votes": 1, "standing": "s" });
    for more in [
        json!({}),
        json!({ "reviewers": { "roles": ["legal"], "users": ["ana"], "not_requester": true }, "requested_by": "ana" }),
        json!({ "reviewers": { "roles": ["legal"] }, "escalated": ["reviewer"], "severity": "critical" }),
        json!({ "barred": ["ana"] }),
        json!({ "policy": "majority", "voting": voting, "decisions": [said] }),
        json!({ "delegations": [{ "from": "ana", "to": "tom", "at": NOW }] }),
        json!({ "unreadable": true }),
        json!({ "reversible": false, "flow": "mail", "kind": "tool_calls", "reviewers": { "tags": ["gold"] } }),
    ] {
        let whole = review(7, &more);
        let outline = outline(&whole);
        for name in ["ana", "tom", "dev"] {
            for roles in [&[][..], &["reviewer"], &["legal"], &["admin"], &["reviewer", "gold"]] {
                let roles = roles.iter().map(ToString::to_string).collect();
                let somebody = Principal::new(name.parse().expect("a name"), roles);
                for act in [Act::SeeReview, Act::Decide] {
                    assert_eq!(access(&somebody, act(&whole)), access(&somebody, act(&outline)), "{more} {somebody:?}");
                }
            }
        }
        let filter =
            ReviewQuery { kind: Some(whole.kind), severity: Some(whole.stakes.severity), ..ReviewQuery::default() };
        let filter = ReviewQuery {
            flow: whole.flow.as_ref().map(ToString::to_string),
            irreversible: Some(whole.stakes.reversible == Some(false)),
            ..filter
        };
        assert!(filter.matches(&outline, &ana(), now()));
        assert!(!serde_json::to_string(&outline).expect("JSON").contains("secret"), "and nothing else");
    }
}
