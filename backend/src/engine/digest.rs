//! Digests of the content that people see: `sha256:` over canonical JSON (RFC 8785), so that the same content has the
//! same digest in any order of keys. Numbers are compared as RFC 8785 writes them, as doubles.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use shared::JsonMap;
use shared::decision::DecisionRequest;
use shared::definition::{Alternative, Cost, Severity, Stakes};
use shared::request::Request;
use shared::review::{Action, Item, Review, ReviewKind, ReviewOption};

use crate::flow::guardrail::Inquiry;

/// What a decision is bound to: never claims, comments, votes or times.
#[derive(Serialize)]
struct DigestedContent<'a> {
    kind: ReviewKind,
    title: &'a str,
    prompt: &'a str,
    items: &'a [Item],
    options: &'a [ReviewOption],
    actions: Vec<Cow<'a, Action>>,
    consequences: &'a [String],
    /// What is at stake besides. What is not said leaves no trace, so that a client that knows less has the same
    /// digest.
    #[serde(skip_serializing_if = "is_usual")]
    severity: Severity,
    #[serde(skip_serializing_if = "Option::is_none")]
    category: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reversible: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_cost: Option<&'a Cost>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    alternatives: &'a [Alternative],
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_usual(severity: &Severity) -> bool {
    *severity == Severity::default()
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

/// What a guardrail redacts is redacted after the decision: it was not shown.
fn unredacted(action: &Action) -> Cow<'_, Action> {
    if action.redacted { Cow::Owned(Action { redacted: false, ..action.clone() }) } else { Cow::Borrowed(action) }
}

/// The digest of a call: all of it that has an effect. Before requests were recorded it was that of the arguments.
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

/// The digest of what a program is asked by a guardrail: the same question has the same answer, whoever approves.
pub fn of_inquiry(inquiry: &Inquiry) -> String {
    of(inquiry)
}

/// The digest of a value of the state.
pub(super) fn of_value(value: &Value) -> String {
    of(value)
}

fn of(value: &impl Serialize) -> String {
    // By way of a `Value`, whose keys are strings and whose numbers are finite: it always has a canonical form.
    let canonical = serde_json::to_value(value)
        .and_then(|value: Value| serde_json_canonicalizer::to_vec(&value))
        .expect("what is shown is plain JSON");
    format!("sha256:{}", hex::encode(Sha256::digest(canonical)))
}
