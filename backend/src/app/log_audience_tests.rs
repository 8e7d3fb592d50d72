//! Who may see an entry of the log: the same people over HTTP and over the live socket.

use shared::access::Principal;
use shared::id::{ReviewId, RunId, Username};
use shared::log::{Cursor, Entry, EntryKind, Event, EventData, OfReview};
use shared::review::Review;
use shared::time::Timestamp;

use crate::flow;
use crate::store::tests::support::{World, actor, new_run, on_both};
use crate::store::{Change, NewFlow, Operation, Store};
use crate::{http, live};

on_both! {
    an_entry_is_seen_by_the_same_people_over_http_and_over_the_socket,
}

/// A run that asks two kinds of people at the same time.
const FLOW: &str = "
id: both
nodes:
  begin: { set: { go: true }, next: [one, two] }
  one: { human: { prompt: One?, options: [{ id: yes, label: 'Yes' }], reviewers: { roles: [editor] } } }
  two: { human: { prompt: Two?, options: [{ id: yes, label: 'Yes' }], reviewers: { roles: [legal] } } }
";

fn person(name: &str, roles: &[&str]) -> Principal {
    Principal::new(name.parse().unwrap(), roles.iter().map(ToString::to_string).collect())
}

fn entry(kind: EntryKind, run: Option<RunId>, review: Option<&Review>, actor: Option<&Username>) -> Entry {
    let data = match (kind, review) {
        (EntryKind::ReviewRequested, Some(review)) => {
            EventData::ReviewRequested(OfReview { review: Box::new(review.clone()) }).to_json()
        }
        _ => shared::JsonMap::new(),
    };
    let (run_id, review_id) = (run, review.map(|review| review.id));
    let event = Event { kind, at: Timestamp(0), run_id, review_id, actor: actor.cloned(), token: None, data };
    Entry { cursor: Cursor("1".to_owned()), sealed: None, event }
}

/// Saves the flow and starts a run of it.
async fn launch(store: &Store) -> RunId {
    let flow = flow::check(FLOW).flow.unwrap();
    let id = flow.id.clone();
    let new = NewFlow { flow, source: FLOW.to_owned(), digest: "sha256:2".to_owned() };
    store.commit(Change::by_server(Operation::SaveFlow(Box::new(new)))).await.unwrap();
    let (run, input) = (new_run(), shared::JsonMap::new());
    let operation = Operation::launch(run, id, input);
    store.commit(Change { by: Some(actor("dev")), key: None, operation }).await.unwrap();
    run
}

async fn an_entry_is_seen_by_the_same_people_over_http_and_over_the_socket(world: World) {
    let store = &world.store;
    let run = launch(store).await;
    let items = store.run_reviews(run).await.unwrap();
    let of = |node: &str| items.iter().find(|review| review.node.as_ref().is_some_and(|own| own.as_str() == node));
    let (one, two) = (of("one").unwrap(), of("two").unwrap());
    let gone = Review { id: ReviewId(uuid::Uuid::max()), ..one.clone() };

    let ana = person("ana", &["reviewer", "editor"]);
    let lea = person("lea", &["reviewer", "legal"]);
    let people = [
        person("admin", &["admin"]),
        person("dev", &["developer"]),
        ana.clone(),
        lea.clone(),
        person("eve", &["reviewer"]),
        Principal { token: true, ..person("ana", &[]) },
        Principal { token: true, ..person("ana", &["reviewer", "editor"]) },
    ];
    let places = [
        (None, None),
        (Some(run), None),
        (Some(run), Some(one)),
        (Some(run), Some(two)),
        (None, Some(one)),
        (None, Some(&gone)),
    ];
    let mut seen = 0;
    for kind in EntryKind::ALL.iter().copied() {
        for (run, review) in places {
            // A review that does not exist has no entry that contains it.
            if kind == EntryKind::ReviewRequested && review.is_some_and(|review| review.id == gone.id) {
                continue;
            }
            for actor in [None, Some(&ana.username)] {
                let entry = entry(kind, run, review, actor);
                for somebody in &people {
                    let over_http = http::lets_see(store, &entry, somebody).await;
                    let over_socket = live::lets_see(store, &entry, somebody).await;
                    assert_eq!(over_http, over_socket, "{somebody:?} {entry:?}");
                    seen += usize::from(over_http);
                }
            }
        }
    }
    assert!(seen > 0);

    // Lea sees the run, but not what is about a review that is not for her.
    for kind in [EntryKind::GuardrailFired, EntryKind::GrantMade, EntryKind::GrantUsed, EntryKind::ReviewUpdated] {
        let about = entry(kind, Some(run), Some(one), None);
        assert!(live::lets_see(store, &about, &ana).await, "{kind}");
        assert!(!live::lets_see(store, &about, &lea).await, "{kind}");
    }
    assert!(live::lets_see(store, &entry(EntryKind::GuardrailFired, Some(run), None, None), &lea).await);
    let viewed = entry(EntryKind::ReviewViewed, Some(run), Some(one), Some(&ana.username));
    assert!(live::lets_see(store, &viewed, &ana).await);
    assert!(!live::lets_see(store, &viewed, &person("dev", &["developer"])).await);
}
