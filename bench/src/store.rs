//! The store alone, without HTTP: transitions per second, compared with a bare loop that writes the same rows and bytes
//! with the same grouping to a database with the same schema.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use backend::clock::{Clock as _, Moment, SystemClock};
use backend::engine::Input;
use backend::flow;
use backend::store::{Actor, Change, Committed, NewFlow, NewUserRecord, Operation, Store, StoreOptions};
use shared::access::Principal;
use shared::decision::{DecisionRequest, Verdict, Via};
use shared::id::{ReviewId, RunId};

use crate::client::CLIENTS;
use crate::cycles::repeat;
use crate::report::Row;
use crate::server::FLOW;
use crate::{Options, bare, median, share_of};

/// Measures the store's transitions per second, as a share of the bare loop's.
pub async fn against_bare_loop(options: &Options) -> Result<[Row; 1]> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("store.db");
    let url = format!("sqlite:{}", path.display());
    let store = Store::open(StoreOptions::new(url, Arc::new(SystemClock))).await?;
    save_flow(&store, FLOW).await?;
    let length = Duration::from_secs(options.seconds);
    round_of_transitions(&store, length).await?;
    let shape = bare::Shape::of(&path)?;
    let mut rival = bare::Loop::open(&folder.path().join("bare.db"), shape)?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        ours.push(round_of_transitions(&store, length).await?);
        theirs.push(rival.round(length)?);
    }
    store.close().await;
    Ok([share_of("store_sqlite", median(ours), "commits/s", median(theirs), 0.6)])
}

/// Creates the admin, and saves a flow.
pub async fn save_flow(store: &Store, source: &str) -> Result<()> {
    let flow = flow::check(source).flow.context("the flow of the bench has mistakes")?;
    let user = shared::api::User::new("admin".parse()?, vec!["admin".to_owned()], SystemClock.now());
    let user = NewUserRecord { user, password_hash: None };
    store.commit(Change::by_server(Operation::CreateUser(Box::new(user)))).await?;
    let new = NewFlow { flow, source: source.to_owned(), digest: flow::digest(source) };
    store.commit(Change::by_server(Operation::SaveFlow(Box::new(new)))).await?;
    Ok(())
}

async fn round_of_transitions(store: &Store, length: Duration) -> Result<f64> {
    let (_, cycles_per_second) = repeat(vec![store.clone(); CLIENTS], length, |store| Box::pin(cycle(store))).await?;
    Ok(2.0 * cycles_per_second)
}

/// Launches a run and decides its review: two transitions.
async fn cycle(store: &Store) -> Result<()> {
    let (_, review) = launch(store, "ask", shared::JsonMap::new()).await?;
    decide(store, review).await
}

/// Launches a run as the admin, and returns its id and that of the review that it asks for at once.
pub async fn launch(store: &Store, flow: &str, input: shared::JsonMap) -> Result<(RunId, ReviewId)> {
    let run = RunId(Moment::of(&SystemClock).ids().uuid());
    let launch = Operation::launch(run, flow.parse()?, input);
    let change = Change { by: Some(Actor::of(admin()?)), key: None, operation: launch };
    let Committed::Run { run: started } = store.commit(change).await? else { bail!("not a run") };
    Ok((run, started.positions.first().and_then(|position| position.review).context("no review")?))
}

/// Decides a review as the admin, with the option `yes`.
pub async fn decide(store: &Store, review: ReviewId) -> Result<()> {
    let shown = store.review(review).await?.context("no review")?;
    let request = DecisionRequest {
        revision: shown.revision,
        digest: shown.digest,
        verdict: Verdict::Choose { option: "yes".to_owned(), fields: shared::JsonMap::new() },
        edits: shared::JsonMap::new(),
        comment: None,
        metadata: shared::JsonMap::new(),
    };
    let input = Box::new(Input::decide(review, admin()?, Via::Human, request));
    let by = Some(Actor::of(admin()?));
    store.commit(Change { by, key: None, operation: Operation::Review { review, input } }).await?;
    Ok(())
}

fn admin() -> Result<Principal> {
    Ok(Principal::new("admin".parse()?, ["admin".to_owned()].into()))
}
