//! The results of tools, which contain what an agent needs and no more.

use serde::Serialize;
use serde_json::Value;
use shared::JsonMap;
use shared::access::Principal;
use shared::api::{FlowVersion, Page};
use shared::error::{FlowError, Problem};
use shared::id::{FlowId, ReviewId, RunId, Username};
use shared::review::{Comment, Review, ReviewStatus};
use shared::run::{Run, RunStatus};
use shared::time::Timestamp;

/// The hint beside a question that nobody has answered yet.
const PENDING: &str = "No one has answered yet. Call wait_for_review with this review_id.";
/// The hint beside a checkpoint that a person has paused.
const PAUSED: &str = "A person has paused the work. Do nothing further until wait_for_review returns their answer.";
/// The hint beside a pending question of which the last comment is not the agent's.
const COMMENTED: &str = "The newest comment is not yours, and may ask something back. Answer with comment_on_review if you \
    can, then call wait_for_review with this review_id, and with this comment_count as comments_after.";
/// The most bytes of comments in one result: a review can have far more than a model can read.
const MAX_COMMENTS: usize = 32 * 1024;

/// A question, with its answer if there is one.
#[derive(Serialize)]
pub(super) struct QuestionResult {
    review_id: ReviewId,
    title: String,
    status: ReviewStatus,
    /// Whether a person has paused the work at a checkpoint, which is still pending.
    #[serde(skip_serializing_if = "shared::is_default")]
    paused: bool,
    /// The address of the review in the console.
    url: Option<String>,
    /// Who answered it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    by: Vec<Username>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<Value>,
    /// Why there is no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "shared::is_default")]
    comment_count: usize,
    /// The newest comments, in order. Each is data in a member of its own, so that no text in it can pass for anything
    /// else in the result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    comments: Vec<CommentResult>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

#[derive(Serialize)]
struct CommentResult {
    by: Username,
    /// Whether it was written with the credentials of this caller.
    #[serde(skip_serializing_if = "shared::is_default")]
    yours: bool,
    /// Whether another program wrote it in the name of its person.
    #[serde(skip_serializing_if = "shared::is_default")]
    by_program: bool,
    at: Timestamp,
    text: String,
}

impl CommentResult {
    fn new(comment: Comment, reader: &Principal) -> Self {
        let yours = is_own(&comment, reader);
        let Comment { by, at, token, text } = comment;
        Self { by, yours, by_program: token.is_some() && !yours, at, text }
    }
}

/// Whether a comment was written with the credentials of this reader.
fn is_own(comment: &Comment, reader: &Principal) -> bool {
    comment.by == reader.username && comment.token == reader.token_id
}

/// Returns the newest comments that fit into a result, in order.
fn newest(comments: Vec<Comment>, reader: &Principal) -> Vec<CommentResult> {
    let mut room = MAX_COMMENTS;
    let fits = |comment: &Comment| {
        let rest = room.checked_sub(comment.text.len());
        room = rest.unwrap_or(0);
        rest.is_some()
    };
    let mut newest: Vec<_> = comments.into_iter().rev().take_while(fits).collect();
    newest.reverse();
    newest.into_iter().map(|comment| CommentResult::new(comment, reader)).collect()
}

impl QuestionResult {
    /// Creates the result for an agent with the rights of `reader`.
    pub fn new(review: Review, url: Option<String>, reader: &Principal) -> Self {
        let paused = review.is_pending() && review.paused.is_some();
        let commented = review.comments.last().is_some_and(|newest| !is_own(newest, reader));
        let hints = match (paused, commented) {
            (false, false) => vec![PENDING],
            (false, true) => vec![COMMENTED],
            (true, false) => vec![PAUSED],
            (true, true) => vec![PAUSED, COMMENTED],
        };
        let hint = review.is_pending().then(|| hints.join(" "));
        let (by, answer, reason) = match review.resolution {
            Some(resolution) => (resolution.by, resolution.answer, resolution.reason),
            None => (Vec::new(), None, None),
        };
        let Review { id: review_id, title, status, comments, .. } = review;
        let comment_count = comments.len();
        let comments = newest(comments, reader);
        Self { review_id, title, status, paused, url, by, answer, reason, comment_count, comments, hint }
    }
}

#[derive(Serialize)]
pub(super) struct FlowsResult {
    flows: Vec<FlowResult>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[serde_with::skip_serializing_none]
#[derive(Serialize)]
struct FlowResult {
    id: FlowId,
    version: u32,
    title: String,
    description: Option<String>,
    /// The JSON Schema of the input.
    input: Option<Value>,
}

impl From<Page<FlowVersion>> for FlowsResult {
    fn from(page: Page<FlowVersion>) -> Self {
        let flow = |flow: FlowVersion| {
            let FlowVersion { id, version, title, description, input, .. } = flow;
            FlowResult { id, version, title, description, input }
        };
        Self { flows: page.items.into_iter().map(flow).collect(), next_cursor: page.next_cursor }
    }
}

/// A run, with the reviews that it waits for.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
pub(super) struct RunResult {
    run_id: RunId,
    flow: FlowId,
    title: String,
    status: RunStatus,
    output: Option<JsonMap>,
    error: Option<FlowError>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waits_for: Vec<PendingReview>,
    /// The number of pending reviews. `waits_for` has those of them that the caller may see, without handoffs.
    pending_reviews: u32,
}

#[derive(Serialize)]
struct PendingReview {
    review_id: ReviewId,
    title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

impl RunResult {
    pub fn new(run: Run, pending: Vec<Review>, url: impl Fn(ReviewId) -> Option<String>) -> Self {
        let waits_for = pending.into_iter().filter(|review| review.kind.blocks()).map(|review| {
            let url = url(review.id);
            PendingReview { review_id: review.id, title: review.title, url }
        });
        Self {
            run_id: run.summary.id,
            flow: run.summary.flow,
            title: run.summary.title,
            status: run.summary.status,
            output: run.output,
            error: run.summary.error,
            waits_for: waits_for.collect(),
            pending_reviews: run.summary.pending_reviews,
        }
    }
}

/// Returns a problem without the review that it may contain, which an agent does not need.
pub(super) fn problem(problem: Problem) -> Value {
    serde_json::to_value(Problem { review: None, resolution: None, ..problem }).unwrap_or_default()
}
