//! `/api/v1/grants`: remembered approvals of later calls.

use axum::Json;
use axum::http::StatusCode;
use shared::access::{ADMIN, Act, access};
use shared::api::Page;
use shared::grant::Grant;
use shared::id::GrantId;

use super::api::{Api, OperationDoc};
use super::body::{Id, Params};
use super::pagination::{List, Paging};
use super::problem::Result;
use super::{Caller, Write};
use crate::store;

pub(super) fn mount(api: &mut Api) {
    let list = OperationDoc::new("List your active remembered approvals; for admins, all").answer::<Page<Grant>>();
    api.get("/api/v1/grants", list, self::list);
    let revoke = OperationDoc::new("Revoke a remembered approval; later calls need approval again").status(204);
    api.delete("/api/v1/grants/{id}", revoke, self::revoke);
}

async fn list(caller: Caller, Params(paging): Params<Paging>) -> Result<Json<Page<Grant>>> {
    let principal = caller.principal();
    let mut items = caller.state.store.grants((!principal.has(ADMIN)).then_some(&principal.username)).await?;
    items.retain(|grant| access(principal, Act::RevokeGrant(&grant.given_by)).is_allowed());
    Ok(Json(List("grants").newest(items, paging, |grant| (grant.given_at, grant.id))?))
}

async fn revoke(write: Write, Id(id): Id<GrantId>) -> Result<StatusCode> {
    write.commit_without_body(store::Operation::RevokeGrant(id)).await?;
    Ok(StatusCode::NO_CONTENT)
}
