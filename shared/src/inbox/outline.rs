//! The part of a review that filters and rights depend on: the queue groups similar reviews by it, and the live socket
//! keeps it instead of the whole review.

use std::collections::BTreeMap;

use crate::JsonMap;
use crate::collaboration::Delegation;
use crate::decision::{Decision, Verdict, Via};
use crate::definition::{Policy, Stakes};
use crate::id::ReviewId;
use crate::review::Review;
use crate::run::{Context, Usage};
use crate::time::Timestamp;
use crate::voting::Voting;

/// Returns the part of a review that determines who may see it, with its id and version.
pub fn rights_outline(review: &Review) -> Review {
    Review { id: review.id, version: review.version, ..outline(review) }
}

/// Returns the part of a pending review that filters and rights depend on, and whether it has a problem; without its
/// deadline, its claim and the time of the request. Reviews of one node of a flow mostly have the same outline.
pub fn outline(review: &Review) -> Review {
    let decisions = review.decisions.iter().map(|said| Decision {
        by: said.by.clone(),
        on_behalf_of: said.on_behalf_of.clone(),
        at: Timestamp::default(),
        via: Via::Human,
        token: None,
        revision: 0,
        digest: String::new(),
        shown: None,
        sent: None,
        verdict: Verdict::Text { text: String::new() },
        edits: JsonMap::new(),
        comment: None,
        metadata: JsonMap::new(),
        grant: None,
        requests: BTreeMap::new(),
    });
    let stakes = Stakes { severity: review.stakes.severity, reversible: review.stakes.reversible, ..Stakes::default() };
    let voting = review.voting.as_ref().map(|voting| Voting { voters: voting.voters.clone(), ..Voting::default() });
    let handed = |handed: &Delegation| Delegation { token: None, at: Timestamp::default(), ..handed.clone() };
    let delegations = review.delegations.iter().map(handed);
    Review {
        id: ReviewId(uuid::Uuid::nil()),
        revision: 0,
        digest: String::new(),
        version: 0,
        kind: review.kind,
        status: review.status,
        run_id: None,
        flow: review.flow.clone(),
        flow_title: None,
        node: None,
        visit: None,
        part: None,
        asked_by: None,
        source: None,
        title: String::new(),
        prompt: String::new(),
        stakes,
        items: Vec::new(),
        options: Vec::new(),
        free_text: false,
        actions: Vec::new(),
        policy: Policy::default(),
        deny: None,
        blind: false,
        reviewers: review.reviewers.clone(),
        barred: review.barred.clone(),
        voting,
        problem: review.problem.as_ref().map(|_| String::new()),
        unreadable: review.unreadable,
        claimed_by: None,
        delegations: delegations.collect(),
        reassignments: Vec::new(),
        advice: Vec::new(),
        paused: None,
        asked: None,
        warnings: Vec::new(),
        grantable: Vec::new(),
        comments: Vec::new(),
        decisions: decisions.collect(),
        resolution: None,
        context: Context::default(),
        usage: Usage::default(),
        requested_by: review.requested_by.clone(),
        created_at: Timestamp::default(),
        expires_at: None,
        on_timeout: None,
        escalated: review.escalated.clone(),
    }
}
