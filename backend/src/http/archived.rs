//! Answers about what was archived: to those who may know of the run, where it is; to everyone else, that it does not
//! exist.

use shared::access::{Act, access};
use shared::error::{Code, Problem};
use shared::id::{ReviewId, RunId};
use shared::run::ArchivedRun;

use super::Caller;
use super::problem::Result;

/// Returns the problem for a run that is not in the database, or that the caller may not see: `410` if it was archived
/// and the caller may know that, otherwise `404`.
pub(super) async fn run_gone(caller: &Caller, id: RunId) -> Result<Problem> {
    let archived = caller.state.store.archived_run(id).await?.map(|(archived, _)| archived);
    Ok(gone(caller, archived, "it"))
}

/// Returns the problem for a review that is not in the database: `410` if it was archived with its run and the caller may
/// know that, otherwise `404`.
pub(super) async fn review_gone(caller: &Caller, id: ReviewId) -> Result<Problem> {
    let archived = caller.state.store.archived_run_of(id).await?;
    Ok(gone(caller, archived, "its run"))
}

/// Returns `410` for an archived run that the caller may know of. `what` names the run in the detail.
fn gone(caller: &Caller, archived: Option<ArchivedRun>, what: &str) -> Problem {
    let seen = archived.filter(|archived| access(caller.principal(), Act::SeeArchivedRun(archived)).is_allowed());
    let Some(archived) = seen else { return Problem::new(Code::NotFound) };
    let detail = format!(
        "{what} was archived on {:.10} in {}; an operator reads it with `countersign archive show {}`",
        archived.archived_at.to_string(),
        archived.file,
        archived.id
    );
    Problem { archived: Some(Box::new(archived)), ..Problem::new(Code::RunArchived).detail(detail) }
}
