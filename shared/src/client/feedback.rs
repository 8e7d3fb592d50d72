//! Feedback on agents.

use serde::de::DeserializeOwned;

use super::{ApiResult, Client, Transport, query_string};
use crate::api::Page;
use crate::feedback::{Feedback, FeedbackQuery, NewFeedback};
use crate::id::{FeedbackId, RunId};

impl<T: Transport, D: DeserializeOwned> Client<T, D> {
    /// `GET /api/v1/feedback`: the matching feedback, newest first, a page at a time: everyone's for developers and
    /// admins, their own for others.
    pub async fn feedback(&self, query: &FeedbackQuery) -> ApiResult<Page<Feedback>> {
        self.get(format!("/api/v1/feedback{}", query_string(query))).await
    }

    /// `POST /api/v1/runs/{id}/feedback`: gives feedback on an agent of a run, and returns it; for those who may see
    /// the run. Tokens may not.
    pub async fn give_feedback(&self, run: RunId, feedback: &NewFeedback, key: Option<&str>) -> ApiResult<Feedback> {
        self.send("POST", format!("/api/v1/runs/{run}/feedback"), feedback, key).await
    }

    /// `DELETE /api/v1/feedback/{id}`: retracts feedback, so that agents are not told it any more; for the person who
    /// gave it, and for developers.
    pub async fn retract_feedback(&self, id: FeedbackId) -> ApiResult<()> {
        self.send("DELETE", format!("/api/v1/feedback/{id}"), &(), None).await
    }
}
