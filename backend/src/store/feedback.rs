//! Stored feedback, by agent and flow.

use std::collections::BTreeSet;

use shared::access::{Act, Principal, access};
use shared::api::{DEFAULT_LIMIT, MAX_LIMIT, Page};
use shared::feedback::{Feedback, FeedbackQuery};
use shared::id::{FeedbackId, FlowId};

use super::batch::Table;
use super::cursor::ListPlace;
use super::db::{Arg, Conn, Row, Sql};
use super::{Error, Store};

pub(super) const FEEDBACK: Table =
    Table { name: "feedback", key: "id", others: "run_id, flow, agent, type, given_by, at, body" };

impl Store {
    /// Lists the feedback that the viewer may see, newest first.
    pub async fn feedback(&self, viewer: &Principal, query: &FeedbackQuery) -> Result<Page<Feedback>, Error> {
        let limit = query.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
        let mut sql = Sql::new("SELECT body FROM feedback WHERE at >= ").bind(query.since.unwrap_or_default().0);
        let texts = [("agent", &query.agent), ("flow", &query.flow)];
        for (column, value) in texts {
            if let Some(value) = value {
                sql = sql.push(" AND ").push(column).push(" = ").bind(value.as_str());
            }
        }
        if let Some(of) = query.feedback_type {
            sql = sql.push(" AND type = ").bind(of.as_str());
        }
        if let Some(run) = query.run {
            sql = sql.push(" AND run_id = ").bind(run.0);
        }
        if !access(viewer, Act::SeeFeedback(None)).is_allowed() {
            // They may see at most their own.
            if !access(viewer, Act::SeeFeedback(Some(&viewer.username))).is_allowed() {
                return Ok(Page { items: Vec::new(), next_cursor: None });
            }
            sql = sql.push(" AND given_by = ").bind(viewer.username.as_str());
        }
        if let Some(place) = ListPlace::of(query.cursor.as_deref())? {
            sql = place.condition(sql, "at", "id");
        }
        let sql = sql.push(" ORDER BY at DESC, id DESC LIMIT ").bind(limit + 1);
        let rows = self.inner.db.read().await?.fetch(sql).await?;
        let mut items = rows.iter().map(feedback).collect::<Result<Vec<_>, _>>()?;
        let next_cursor =
            super::cut(&mut items, limit, |last: &Feedback| ListPlace { at: last.at.0, id: last.id.0 }.encode());
        Ok(Page { items, next_cursor })
    }
}

impl Conn {
    /// Returns the newest feedback on each agent, up to the given number per agent, newest first.
    pub async fn newest_feedback(&mut self, wanted: &BTreeSet<(FlowId, String, u32)>) -> Result<Vec<Feedback>, Error> {
        let mut found = Vec::new();
        for (flow, agent, most) in wanted {
            let sql = Sql::new("SELECT body FROM feedback WHERE (flow, agent) = (");
            let sql = sql.list([Arg::from(flow.as_str()), agent.as_str().into()]);
            let sql = sql.push(") ORDER BY at DESC, id DESC LIMIT ").bind(*most);
            for row in self.fetch(sql).await? {
                found.push(feedback(&row)?);
            }
        }
        Ok(found)
    }

    /// Returns feedback by id. In PostgreSQL, its rows are locked until the transaction ends, so that it is retracted
    /// only once.
    pub async fn feedback_by_id(&mut self, ids: impl IntoIterator<Item = FeedbackId>) -> Result<Vec<Feedback>, Error> {
        let ids = ids.into_iter().map(|id| id.0);
        let sql = Sql::new("SELECT body FROM feedback WHERE id").among(ids).push(" ORDER BY id");
        let sql = sql.push(if self.locks_rows() { " FOR UPDATE" } else { "" });
        self.fetch(sql).await?.iter().map(feedback).collect()
    }
}

pub(super) fn feedback_row(feedback: &Feedback) -> Vec<Arg> {
    vec![
        feedback.id.0.into(),
        feedback.run_id.0.into(),
        feedback.flow.as_str().into(),
        feedback.agent.as_str().into(),
        feedback.feedback_type.as_str().into(),
        feedback.by.as_str().into(),
        feedback.at.0.into(),
        serde_json::json!(feedback).to_string().into(),
    ]
}

fn feedback(row: &Row) -> Result<Feedback, Error> {
    serde_json::from_str(&row.text(0)?).map_err(|error| Error::Stored(format!("feedback: {error}")))
}
