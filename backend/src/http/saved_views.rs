//! `/api/v1/me/views`: the caller's saved views of the inbox.

use std::collections::BTreeSet;

use axum::Json;
use shared::error::{Code, Mistake, Problem, pointer};
use shared::saved_view::{MAX_VIEW_NAME, MAX_VIEWS, SavedView, Views};

use super::api::Api;
use super::body;
use super::problem::Result;
use super::reviews::wrong_filter;
use super::{Caller, Write};
use crate::store;

pub(super) fn mount(api: &mut Api) {
    api.get("/api/v1/me/views", "Get your saved views of the inbox", get);
    api.put("/api/v1/me/views", "Replace your saved views of the inbox", put);
}

async fn get(caller: Caller) -> Result<Json<Views>> {
    caller.in_session()?;
    Ok(Json(caller.state.store.saved_views(&caller.principal().username).await?))
}

async fn put(write: Write, body::Json { value, digest }: body::Json<Views>) -> Result<Json<Views>> {
    let username = write.caller.principal().username.clone();
    let views = checked(value)?;
    let saved = Views { revision: views.revision.saturating_add(1), ..views.clone() };
    write.commit(digest, store::Operation::SaveViews { username, views: Box::new(views) }).await?;
    Ok(Json(saved))
}

/// Trims the names and checks the views; the problem lists every error.
fn checked(mut chosen: Views) -> Result<Views> {
    let mut mistakes = Vec::new();
    let mut wrong = |path: String, why: String| mistakes.push(Mistake::new(path, "invalid", why));
    if chosen.views.len() > MAX_VIEWS {
        wrong("/views".to_owned(), format!("at most {MAX_VIEWS} views"));
    }
    let mut names = BTreeSet::new();
    let mut has_default = false;
    for (index, SavedView { name, filter, default }) in chosen.views.iter_mut().enumerate() {
        let path = |field: &str| pointer(["views", &index.to_string(), field]);
        *name = name.trim().to_owned();
        match name.chars().count() {
            0 => wrong(path("name"), "a view needs a name".to_owned()),
            1..=MAX_VIEW_NAME => {}
            _ => wrong(path("name"), format!("at most {MAX_VIEW_NAME} characters")),
        }
        if !names.insert(name.to_lowercase()) {
            wrong(path("name"), "another view has this name".to_owned());
        }
        if let Some((field, why)) = wrong_filter(filter) {
            wrong(pointer(["views", &index.to_string(), "filter", field]), why);
        }
        if *default && has_default {
            wrong(path("default"), "the inbox opens with one view: only one can be the default".to_owned());
        }
        has_default |= *default;
    }
    if mistakes.is_empty() { Ok(chosen) } else { Err(Problem::new(Code::Invalid).errors(mistakes).into()) }
}
