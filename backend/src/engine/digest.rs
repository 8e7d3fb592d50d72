//! Digests of what people see: `sha256:` over canonical JSON (RFC 8785), so that the same content has the same digest
//! whatever the order of its keys. RFC 8785 writes numbers as doubles, so long integers that differ could get the same
//! digest: those that a double may not hold exactly are appended after a zero byte, as they are.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Number, Value, json};
use sha2::{Digest, Sha256};
use shared::JsonMap;
use shared::decision::DecisionRequest;
use shared::definition::{Alternative, Cost, Severity, Stakes};
use shared::request::Request;
use shared::review::{Action, Item, Review, ReviewKind, ReviewOption};

use crate::flow::guardrail::Inquiry;

/// The content that a decision is bound to: no claims, comments, votes or times.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
struct DigestedContent<'a> {
    kind: ReviewKind,
    title: &'a str,
    prompt: &'a str,
    items: &'a [Item],
    options: &'a [ReviewOption],
    actions: Vec<Cow<'a, Action>>,
    consequences: &'a [String],
    /// The stakes besides the consequences. Default values are left out, so that a client that does not know these
    /// members computes the same digest.
    #[serde(skip_serializing_if = "shared::is_default")]
    severity: Severity,
    category: Option<&'a str>,
    reversible: Option<bool>,
    estimated_cost: Option<&'a Cost>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    alternatives: &'a [Alternative],
}

/// The digest of what a review shows.
pub(super) fn of_review(review: &Review) -> String {
    let Stakes { severity, category, reversible, consequences, estimated_cost, alternatives } = &review.stakes;
    of(&DigestedContent {
        kind: review.kind,
        title: &review.title,
        prompt: &review.prompt,
        items: &review.items,
        options: &review.options,
        actions: review.actions.iter().map(unredacted).collect(),
        consequences,
        severity: *severity,
        category: category.as_deref(),
        reversible: *reversible,
        estimated_cost: estimated_cost.as_ref(),
        alternatives,
    })
}

/// Returns the action as it was shown: guardrails redact only after the decision.
fn unredacted(action: &Action) -> Cow<'_, Action> {
    if action.redacted { Cow::Owned(Action { redacted: false, ..action.clone() }) } else { Cow::Borrowed(action) }
}

/// The digest of everything in a call that has an effect. Without a request, as before requests were recorded, it is
/// that of the arguments.
pub(super) fn of_call(tool: &str, arguments: &JsonMap, request: Option<&Request>) -> String {
    match request {
        Some(request) => of(&json!({ "tool": tool, "arguments": arguments, "request": request })),
        None => of(arguments),
    }
}

/// The digest of what a reviewer sent.
pub(super) fn of_request(request: &DecisionRequest) -> String {
    of(request)
}

/// The digest of what a guardrail asks a program: an answer holds for the same inquiry, whoever approves.
pub fn of_inquiry(inquiry: &Inquiry) -> String {
    of(inquiry)
}

/// The digest of a value of the state.
pub(super) fn of_value(value: &Value) -> String {
    of(value)
}

fn of(value: &impl Serialize) -> String {
    // By way of a `Value`, whose keys are strings and whose numbers are finite: it always has a canonical form.
    let value: Value = serde_json::to_value(value).expect("what is shown is plain JSON");
    let canonical = serde_json_canonicalizer::to_vec(&value).expect("what is shown is plain JSON");
    let mut hash = Sha256::new_with_prefix(canonical);
    // Hardly any value has one, so the keys of most values need not be sorted.
    if has_long_integer(&value) {
        let mut exact = Vec::new();
        long_integers(&value, &mut exact);
        hash.update(b"\0");
        hash.update(exact.join(","));
    }
    format!("sha256:{}", hex::encode(hash.finalize()))
}

/// The size from which on a double may not hold an integer exactly: 2^53.
const LONG: u64 = 1 << 53;

fn is_long(number: &Number) -> bool {
    number.as_i64().map(i64::unsigned_abs).or_else(|| number.as_u64()).is_some_and(|size| size >= LONG)
}

fn has_long_integer(value: &Value) -> bool {
    match value {
        Value::Number(number) => is_long(number),
        Value::Array(items) => items.iter().any(has_long_integer),
        Value::Object(members) => members.values().any(has_long_integer),
        _ => false,
    }
}

/// Collects the long integers of a value, in the order of sorted keys.
fn long_integers(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Number(number) if is_long(number) => found.push(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| long_integers(item, found)),
        Value::Object(members) => {
            let sorted: BTreeMap<&String, &Value> = members.iter().collect();
            for member in sorted.values() {
                long_integers(member, found);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_differ_have_different_digests_however_long_they_are() {
        let of = |text: &str| of_value(&serde_json::from_str(text).unwrap());
        assert_ne!(of(r#"{"a": 1234567890123456789}"#), of(r#"{"a": 1234567890123456800}"#));
        assert_ne!(of(r#"{"a": -9007199254740993}"#), of(r#"{"a": -9007199254740992}"#));
        assert_ne!(of(r#"{"a": [9007199254740993], "b": 1}"#), of(r#"{"a": [9007199254740992], "b": 1}"#));
        assert_eq!(
            of(r#"{"a": 9007199254740993, "b": 9007199254740995}"#),
            of(r#"{"b": 9007199254740995, "a": 9007199254740993}"#)
        );
        assert_eq!(of(r#"{"a": 1.0}"#), of(r#"{"a": 1}"#), "as RFC 8785 says");
        let canonical = format!("sha256:{}", hex::encode(Sha256::digest(br#"{"a":9007199254740991}"#)));
        assert_eq!(of(r#"{"a": 9007199254740991}"#), canonical);
    }
}
