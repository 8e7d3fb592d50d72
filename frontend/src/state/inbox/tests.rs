//! The window follows the socket, answers older than it are ignored, and the open review stays in memory.

use serde_json::{Value, json};
use shared::inbox::Assigned;
use shared::log::Cursor;

use super::*;
use crate::state::fixtures::{resolved, review};

const NOW: Timestamp = Timestamp(1_000_000);

fn ana() -> Principal {
    Principal::new("ana".parse().unwrap(), ["reviewer".to_owned()].into())
}

fn page(reviews: Vec<Review>, next: Option<&str>) -> Page<Review> {
    Page { items: reviews, next_cursor: next.map(str::to_owned) }
}

fn inbox_of(query: ReviewQuery, reviews: Vec<Review>) -> Inbox {
    let mut inbox = Inbox::default();
    inbox.show(query, ana());
    inbox.await_answer();
    inbox.take(Some(0), vec![page(reviews, None)], NOW);
    inbox
}

fn inbox(reviews: Vec<Review>) -> Inbox {
    inbox_of(ReviewQuery::default(), reviews)
}

fn plain(number: u8) -> Review {
    review(number, 1, json!({}))
}

fn due(number: u8, version: u64, time: &str) -> Review {
    review(number, version, json!({ "expires_at": format!("2026-11-20T{time}:00Z") }))
}

fn id(number: u8) -> ReviewId {
    plain(number).id
}

fn shown(inbox: &Inbox) -> Vec<ReviewId> {
    inbox.window().rows().iter().map(|row| row.id).collect()
}

#[test]
fn a_resolved_review_keeps_its_place_for_a_minute() {
    let mut inbox = inbox(vec![plain(1), plain(2)]);
    inbox.put(resolved(1, 2, "tom"), NOW);
    assert_eq!(shown(&inbox), [id(1), id(2)]);
    let later = Timestamp(NOW.0 + LINGER);
    assert!(!inbox.needs_sweep(Timestamp(later.0 - 1), &[]) && inbox.needs_sweep(later, &[]));
    inbox.read_now(Some(id(1)));
    inbox.sweep(later, &[]);
    assert_eq!(shown(&inbox), [id(1), id(2)], "what is open stays");
    inbox.read_now(None);
    inbox.sweep(later, &[id(1)]);
    assert!(inbox.get(id(1)).is_some(), "and what a decision is on its way for");
    inbox.sweep(later, &[]);
    assert_eq!((shown(&inbox), inbox.get(id(1))), (vec![id(2)], None));
}

#[test]
fn of_many_that_were_resolved_the_last_keep_their_place() {
    let all: Vec<u8> = (1..=150).collect();
    let mut inbox = inbox(all.iter().map(|number| plain(*number)).collect());
    for number in &all {
        inbox.put(resolved(*number, 2, "tom"), Timestamp(NOW.0 + i64::from(*number)));
    }
    let soon = Timestamp(NOW.0 + 1000);
    assert!(inbox.needs_sweep(soon, &[]));
    inbox.sweep(soon, &[]);
    assert_eq!(shown(&inbox), (51..=150).map(id).collect::<Vec<_>>());
    assert!(!inbox.needs_sweep(soon, &[]) && inbox.get(id(50)).is_none());
}

#[test]
fn entries_move_rows_in_and_out_and_to_where_they_stand_now() {
    let mut inbox = inbox(vec![due(1, 1, "11:00"), due(2, 1, "12:00")]);
    inbox.put(due(3, 1, "11:30"), NOW);
    assert_eq!(shown(&inbox), [id(1), id(3), id(2)]);
    inbox.put(due(2, 2, "10:30"), NOW);
    assert_eq!(shown(&inbox), [id(2), id(1), id(3)], "escalated: its deadline is another one");
    inbox.put(due(2, 1, "12:00"), NOW);
    assert_eq!(shown(&inbox)[0], id(2), "an older version changes nothing");
    assert_eq!((inbox.index(id(3)), inbox.get(id(3)).unwrap().arrived), (Some(2), Some(NOW)));
}

#[test]
fn only_what_fits_is_listed_and_what_is_behind_the_window_is_not_kept() {
    let unclaimed = ReviewQuery { assigned: Some(Assigned::Unclaimed), ..ReviewQuery::default() };
    let mut inbox = inbox_of(unclaimed, vec![plain(1), plain(2)]);
    let claim = json!({ "claimed_by": { "by": "tom", "until": "2026-11-20T11:00:00Z" } });
    inbox.put(review(1, 2, claim.clone()), NOW);
    inbox.put(review(3, 1, claim), NOW);
    assert_eq!(shown(&inbox), [id(2)]);
    inbox.put(review(1, 3, json!({})), NOW);
    assert_eq!(shown(&inbox), [id(1), id(2)], "released");

    inbox.await_answer();
    inbox.take(Some(0), vec![page(vec![due(4, 1, "11:00")], Some("more"))], NOW);
    inbox.put(due(5, 1, "12:00"), NOW);
    assert_eq!((shown(&inbox), inbox.get(id(5))), (vec![id(4)], None));
}

#[test]
fn an_answer_that_is_older_than_what_was_heard_changes_nothing() {
    let mut inbox = inbox(vec![]);
    inbox.await_answer();
    inbox.put(resolved(1, 2, "tom"), NOW);
    inbox.put(plain(2), NOW);
    inbox.apply(&ServerMessage::Gone { cursor: Cursor("2".into()), review_id: id(3) }, NOW);
    inbox.take(Some(0), vec![page(vec![plain(1), plain(3), plain(4)], None)], NOW);
    assert!(!inbox.get(id(1)).unwrap().review.is_pending(), "resolved while the answer was under way");
    assert_eq!(shown(&inbox), [id(1), id(2), id(4)], "2 came meanwhile, 3 went");
    inbox.put(plain(9), NOW);
    assert!(inbox.meanwhile.is_empty(), "nothing is remembered while no answer is awaited");
}

#[test]
fn what_a_search_finds_only_the_server_knows() {
    let words = ReviewQuery { q: Some("refund".to_owned()), ..ReviewQuery::default() };
    let mut inbox = inbox_of(words, vec![plain(1)]);
    inbox.put(review(1, 2, json!({ "title": "Another title" })), NOW);
    assert!(!inbox.is_doubtful());
    inbox.put(plain(2), NOW);
    assert_eq!((shown(&inbox), inbox.is_doubtful()), (vec![id(1)], true));
    inbox.await_answer();
    inbox.take(Some(0), vec![page(vec![plain(2)], None)], NOW);
    assert_eq!((shown(&inbox), inbox.is_doubtful()), (vec![id(2)], false));

    // A review that arrives during a reload may be missing from the answer, so it is a reason for another reload.
    inbox.put(plain(3), NOW);
    inbox.await_answer();
    inbox.put(plain(4), NOW);
    let before = inbox.doubts();
    inbox.take(Some(0), vec![page(vec![plain(2), plain(3)], None)], NOW);
    assert!(inbox.is_doubtful() && inbox.doubts() > before);
}

#[test]
fn reading_the_list_anew_takes_nothing_away_that_is_read() {
    let mut inbox = inbox(vec![plain(1), plain(2), plain(3)]);
    inbox.put(resolved(3, 2, "tom"), NOW);
    inbox.read_now(Some(id(1)));
    inbox.await_answer();
    inbox.take(Some(0), vec![page(vec![plain(2)], None)], NOW);
    inbox.sweep(NOW, &[]);
    assert!(inbox.get(id(1)).is_some(), "the review that is open is in memory");
    assert_eq!(shown(&inbox), [id(2), id(3)], "what was just resolved lingers where it stood");
}

#[test]
fn what_has_left_ones_sight_stays_greyed() {
    let mut inbox = inbox(vec![plain(1)]);
    let gone = ServerMessage::Gone { cursor: Cursor("2".into()), review_id: id(1) };
    inbox.apply(&gone, NOW);
    assert!(inbox.get(id(1)).unwrap().gone && shown(&inbox) == [id(1)]);
    inbox.put(review(1, 2, json!({})), NOW);
    assert!(!inbox.get(id(1)).unwrap().gone);
    // A fetched review is visible again too, and stays.
    inbox.apply(&gone, NOW);
    inbox.read(review(1, 2, json!({})), NOW);
    assert!(!inbox.get(id(1)).unwrap().gone && !inbox.needs_sweep(Timestamp(NOW.0 + LINGER), &[]));
}

#[test]
fn the_run_that_is_read_shows_what_it_asks_next() {
    let run = plain(1).run_id.unwrap();
    let mut inbox = inbox_of(ReviewQuery { flow: Some("other".to_owned()), ..ReviewQuery::default() }, vec![]);
    inbox.put(plain(1), NOW);
    assert_eq!(inbox.asked_by(run), None, "nobody reads anything of this run");
    inbox.read_now(Some(id(1)));
    inbox.read(resolved(1, 2, "ana"), NOW);
    inbox.put(plain(2), NOW);
    inbox.sweep(NOW, &[]);
    assert_eq!((inbox.asked_by(run), shown(&inbox).len()), (Some(id(2)), 0));
}

#[test]
fn one_walks_from_row_to_row_also_from_one_that_has_left() {
    let mut inbox = inbox(vec![due(1, 1, "11:00"), due(2, 1, "12:00"), due(3, 1, "13:00")]);
    assert_eq!(inbox.beside(None, 1), Some(id(1)));
    assert_eq!((inbox.beside(Some(id(1)), 1), inbox.beside(Some(id(2)), -1)), (Some(id(2)), Some(id(1))));
    assert_eq!((inbox.beside(Some(id(3)), 1), inbox.beside(Some(id(1)), -1)), (Some(id(3)), Some(id(1))));
    inbox.read_now(Some(id(2)));
    inbox.await_answer();
    inbox.take(Some(0), vec![page(vec![due(1, 1, "11:00"), due(3, 1, "13:00")], None)], NOW);
    assert_eq!((inbox.beside(Some(id(2)), 1), inbox.beside(Some(id(2)), -1)), (Some(id(3)), Some(id(1))));
    inbox.clear();
    assert_eq!(inbox.beside(Some(id(2)), 1), None);
}

#[test]
fn ones_own_secret_vote_stays_until_what_it_was_on_changes() {
    let vote = json!({"by": "ana", "at": "2026-11-20T10:05:00Z", "via": "human", "revision": 1,
        "digest": "sha256:aa", "verdict": {"type": "choose", "option": "approve"}});
    let secret = |version: u64, revision: u32, decisions: Value| {
        let voting = json!({"voters": ["ana"], "votes": 1, "standing": "s"});
        let more = json!({"blind": true, "voting": voting, "revision": revision, "decisions": decisions});
        review(1, version, more)
    };
    let mut inbox = inbox(vec![secret(2, 1, json!([vote]))]);
    inbox.put(secret(3, 1, json!([])), NOW);
    assert_eq!(inbox.get(id(1)).unwrap().review.decisions.len(), 1);
    inbox.put(secret(4, 2, json!([])), NOW);
    let now = &inbox.get(id(1)).unwrap().review;
    assert_eq!((now.decisions.len(), now.voting.as_ref().unwrap().voided.len()), (0, 1));
    // They vote again in another tab. Only the server says so, whether it is asked before the message comes or after.
    let again = json!([{ "by": "ana", "at": "2026-11-20T10:06:00Z", "via": "human", "revision": 2,
        "digest": "sha256:aa", "verdict": {"type": "choose", "option": "approve"} }]);
    inbox.put(secret(5, 2, json!([])), NOW);
    for version in [5, 6] {
        inbox.read(secret(version, 2, again.clone()), NOW);
        inbox.put(secret(version, 2, json!([])), NOW);
        let now = &inbox.get(id(1)).unwrap().review;
        assert_eq!((now.decisions.len(), now.voting.as_ref().unwrap().voided.len()), (1, 0));
    }
}

#[test]
fn who_comes_back_finds_the_list_where_it_was_and_as_it_is_now() {
    let mut inbox = inbox(vec![due(1, 1, "11:00"), due(2, 1, "12:00")]);
    inbox.read_now(Some(id(1)));
    inbox.leave();
    inbox.put(due(3, 1, "11:30"), NOW);
    inbox.lose(id(1), NOW);
    assert_eq!((shown(&inbox), inbox.open()), (vec![id(1), id(3), id(2)], None));
    assert!(inbox.get(id(1)).is_some_and(|row| row.gone), "it leaves the list as it would if one looked");
}
