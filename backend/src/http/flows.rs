//! `/api/v1/flows`: saving, checking and reading flow files.

use axum::Json;
use serde::Deserialize;
use serde_json::Value;
use shared::JsonMap;
use shared::access::{Act, access};
use shared::api::{FlowVersion, Graph, Page, Validation};
use shared::definition::Flow;
use shared::error::{Code, FlowCode, Mistake, Problem};
use shared::id::{FlowId, InvalidName};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::api::{Api, OperationDoc};
use super::body::{self, FlowSource, Id, Params, limit};
use super::pagination::{List, Paging};
use super::problem::{Refused, Result, unexpected};
use super::{AppState, Caller, Write};
use crate::flow::{self, CancelFlag, Compiled, Here, Library};
use crate::store::{self, Committed, NewFlow};

const FLOWS: List = List("flows");

pub(super) fn mount(api: &mut Api) {
    api.get("/api/v1/flows", "List the newest version of each flow", list);
    api.post("/api/v1/flows/validate", "Check a flow file without saving it", validate);
    let schema = OperationDoc::new("Get the JSON Schema of flow files, for editors").answer::<JsonMap>();
    api.get("/api/v1/flows/schema", schema, self::schema);
    api.get("/api/v1/flows/{id}", "Get a version of a flow; by default, the newest", get);
    api.put("/api/v1/flows/{id}", "Save a flow as a new version, unless its content is the same", put);
}

async fn list(caller: Caller, Params(paging): Params<Paging>) -> Result<Json<Page<FlowVersion>>> {
    caller.may(Act::SeeFlows)?;
    let place = FLOWS.place(paging.cursor)?;
    Ok(Json(FLOWS.page(caller.state.store.flows(limit(paging.limit)?, place.as_deref()).await?)))
}

#[derive(Debug, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct VersionQuery {
    version: Option<u32>,
}

async fn get(caller: Caller, Id(id): Id<FlowId>, Params(query): Params<VersionQuery>) -> Result<Json<FlowVersion>> {
    caller.may(Act::SeeFlows)?;
    let mut version = caller.state.store.flow(&id, query.version).await?.ok_or_else(|| Problem::new(Code::NotFound))?;
    if !access(caller.principal(), Act::SeeSource).is_allowed() {
        // Both contain addresses, prompts and names of secrets.
        (version.definition, version.source) = (None, None);
    }
    drawn(&caller.state, version).await.map(Json)
}

async fn put(
    write: Write,
    Id(id): Id<String>,
    FlowSource(body::Json { value: source, digest }): FlowSource,
) -> Result<Json<FlowVersion>> {
    write.caller.may(Act::SaveFlow)?;
    let id: FlowId = id.parse().map_err(|error: InvalidName| {
        let mistake = Mistake::new("/id", FlowCode::FlowInvalid.as_str(), error.to_string());
        Problem::new(Code::FlowInvalid).errors(vec![mistake])
    })?;
    let (checked, source, _) = check(&write.caller.state, source, Some(id)).await?;
    let (errors, warnings) = (checked.errors, checked.warnings);
    let (Some(flow), true) = (checked.flow, errors.is_empty()) else {
        return Err(Problem::new(Code::FlowInvalid).errors(errors).into());
    };
    let new = NewFlow { flow, digest: flow::digest(&source), source };
    let save = store::Operation::SaveFlow(Box::new(new));
    let answer = write.commit(digest, save).await?;
    let Committed::Flow { flow } = answer else { return Err(unexpected()) };
    drawn(&write.caller.state, FlowVersion { warnings, ..*flow }).await.map(Json)
}

async fn validate(
    caller: Caller,
    FlowSource(body::Json { value: source, .. }): FlowSource,
) -> Result<Json<Validation>> {
    caller.may(Act::SaveFlow)?;
    let (checked, _, library) = check(&caller.state, source, None).await?;
    let valid = checked.errors.is_empty() && checked.flow.is_some();
    // A flow with errors may be impossible to draw.
    let graph = match checked.flow {
        Some(flow) => off_thread(move |_| picture(&flow, &library)).await.ok(),
        None => None,
    };
    Ok(Json(Validation { valid, errors: checked.errors, warnings: checked.warnings, graph }))
}

async fn schema(caller: Caller) -> Result<Json<Value>> {
    caller.may(Act::SeeFlows)?;
    Ok(Json(flow::schema()))
}

/// Checks a file, also against the existing people and flows, and against the id under which it will be saved, if any.
/// Returns the source again, and the flows that it calls.
async fn check(state: &AppState, source: String, id: Option<FlowId>) -> Result<(flow::CheckedFlow, String, Library)> {
    let (draft, source) = off_thread(move |_| (flow::read(&source), source)).await?;
    let draft = match &id {
        Some(id) => draft.saved_as(id),
        None => draft,
    };
    let library = match draft.flow() {
        Some(flow) => state.store.library(flow).await?,
        None => Library::default(),
    };
    let people = state.store.people().await?;
    let reach = state.outside.reach.clone();
    let check = move |abandoned: &CancelFlag| {
        let here = Here { people: Some(&people), library: Some(&library), reach: Some(&reach) };
        (draft.check_unless(abandoned, &here), source, library)
    };
    off_thread(check).await
}

/// Returns the graph of a flow that is not saved. If the flow cannot be compiled, it is drawn without the flows that it
/// calls.
fn picture(flow: &Flow, library: &Library) -> Graph {
    match Compiled::calling(flow.clone(), 1, library) {
        Ok(compiled) => flow::graph_of(&compiled),
        Err(_) => flow::graph(flow),
    }
}

/// Adds the graph to a version, unless this server cannot read the version.
async fn drawn(state: &AppState, mut version: FlowVersion) -> Result<FlowVersion> {
    version.graph = match state.store.readable(&version.id, version.version).await?.ok() {
        Some(compiled) => Some(off_thread(move |_| flow::graph_of(&compiled)).await?),
        None => None,
    };
    Ok(version)
}

/// Limits how many flows are read, checked or laid out at the same time.
static WORKING: Semaphore = Semaphore::const_new(2);

/// Runs `work` on a blocking thread, because a large flow would delay other requests. If the request is dropped before
/// the work starts, the work never runs; if it is dropped later, the flag tells the work to stop, and the slot stays
/// occupied until it does.
async fn off_thread<T: Send + 'static>(work: impl FnOnce(&CancelFlag) -> T + Send + 'static) -> Result<T> {
    let permit = WORKING.acquire().await;
    let abandoned = CancelFlag::default();
    let _waiting = abandoned.on_drop();
    let work = move || {
        let _permit = permit;
        work(&abandoned)
    };
    spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "a flow could not be read or laid out");
        Refused(Problem::new(Code::Internal))
    })
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::off_thread;

    #[tokio::test]
    async fn work_ends_when_nobody_waits_for_it_any_more() {
        let (begin, begun) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let work = off_thread(move |abandoned| {
            let _ = begin.send(());
            while !abandoned.is_set() {
                std::thread::yield_now();
            }
            let _ = end.send(());
        });
        tokio::select! {
            _ = work => panic!("it ended though somebody waited"),
            begun = begun => begun.unwrap(),
        }
        ended.await.unwrap();
    }
}
