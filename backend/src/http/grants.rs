//! `/api/v1/grants`: remembered approvals of later calls.

use axum::Json;
use axum::response::NoContent;
use shared::access::{ADMIN, Act, access};
use shared::api::Page;
use shared::grant::Grant;
use shared::id::GrantId;

use super::api::Api;
use super::body::{Id, Params};
use super::pagination::{List, Paging};
use super::problem::Result;
use super::{Caller, Write};
use crate::store;

pub(super) fn mount(api: &mut Api) {
    api.get("/api/v1/grants", "List your active remembered approvals; for admins, all", list);
    api.delete("/api/v1/grants/{id}", "Revoke a remembered approval; later calls need approval again", revoke);
}

async fn list(caller: Caller, Params(paging): Params<Paging>) -> Result<Json<Page<Grant>>> {
    let principal = caller.principal();
    let mut items = caller.state.store.grants((!principal.has(ADMIN)).then_some(&principal.username)).await?;
    items.retain(|grant| access(principal, Act::RevokeGrant(&grant.given_by)).is_allowed());
    Ok(Json(List("grants").newest(items, paging, |grant| (grant.given_at, grant.id))?))
}

async fn revoke(write: Write, Id(id): Id<GrantId>) -> Result<NoContent> {
    write.commit_without_body(store::Operation::RevokeGrant(id)).await
}
