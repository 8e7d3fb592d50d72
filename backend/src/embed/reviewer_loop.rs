//! The notifier of a program: follows the log, asks the reviewers, and commits their decisions.

use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::Poll;

use futures::FutureExt;
use shared::access::{Act, Principal, access};
use shared::api::{MAX_LIMIT, ReviewQuery};
use shared::decision::Via;
use shared::error::Mistake;
use shared::id::{ReviewId, Username};
use shared::review::{Review, ReviewStatus};
use tokio::sync::OwnedMutexGuard;
use tokio::sync::broadcast::{Receiver, error::RecvError};
use tokio::task::JoinSet;

use super::reviewer::Reviewer;
use super::{Awaited, Inner, News};
use crate::engine::{Input, Refusal};
use crate::store::{self, Actor, Change, CommitError, ExponentialBackoff, Operation, with_retries};

/// A person for whom the program decides.
pub(super) struct Person {
    pub username: Username,
    pub roles: Vec<String>,
    /// The channel of their decisions in the audit log.
    pub via: Via,
    pub reviewer: Arc<dyn Reviewer>,
}

/// Asks until it is dropped.
pub(super) struct ReviewerLoop {
    inner: Arc<Inner>,
    people: Vec<Arc<Person>>,
    /// Whether others may decide: in the console, or through the program in their name.
    served: bool,
    asked: HashMap<ReviewId, PendingReview>,
}

/// A review that is being decided. Dropping it cancels reviewers that are still busy.
struct PendingReview {
    awaited: Awaited,
    revision: u32,
    /// Who was asked about this revision, by their places in [`ReviewerLoop::people`]: several may share a name. An
    /// escalation or a delegation adds others.
    asked: HashSet<usize>,
    /// Shared by the reviewers that have neither answered nor declined yet.
    busy: Arc<()>,
    thinking: JoinSet<()>,
}

impl PendingReview {
    fn of(review: &Review) -> Self {
        Self {
            awaited: Awaited::of(review),
            revision: review.revision,
            asked: HashSet::new(),
            busy: Arc::new(()),
            thinking: JoinSet::new(),
        }
    }

    fn is_busy(&self) -> bool {
        Arc::strong_count(&self.busy) > 1
    }
}

impl ReviewerLoop {
    pub fn new(inner: Arc<Inner>, people: Vec<Arc<Person>>, served: bool) -> Self {
        Self { inner, people, served, asked: HashMap::new() }
    }

    /// Follows the news. Reviews that are already pending are asked first.
    pub async fn run(mut self, mut news: Receiver<News>) {
        self.check_pending().await;
        loop {
            match news.recv().await {
                Ok(News::Entry(entry)) => {
                    if let Some(review) = entry.event.review() {
                        self.hand_to_reviewer(review).await;
                    }
                }
                Ok(News::Attached(awaited)) => self.check_awaited(awaited).await,
                Ok(News::Recheck) => {}
                Err(RecvError::Lagged(_)) => self.check_pending().await,
                Err(RecvError::Closed) => return,
            }
        }
    }

    /// Finds pending reviews, in case news were missed.
    async fn check_pending(&mut self) {
        match with_retries(|| self.pending()).await {
            Ok(pending) => {
                self.asked.retain(|id, _| pending.contains_key(id));
                for review in pending.into_values() {
                    self.hand_to_reviewer(review).await;
                }
            }
            Err(error) => tracing::warn!(%error, "pending reviews could not be read"),
        }
    }

    /// Hands over the reviews of a run or a question to which the program has attached, since nobody was watching when
    /// they came: reviewers that have declined are asked again, and it is found out whether no one here may decide.
    async fn check_awaited(&mut self, awaited: Awaited) {
        // Before the reviews are read, which then have the answers of those that are no longer busy.
        self.asked.retain(|_, asked| asked.awaited != awaited || asked.is_busy());
        match with_retries(|| self.inner.pending(awaited)).await {
            Ok(reviews) => {
                for review in reviews {
                    self.hand_to_reviewer(review).await;
                }
            }
            Err(error) => tracing::warn!(%error, ?awaited, "pending reviews could not be read"),
        }
    }

    /// Returns the pending reviews of the people here, and of what is waited for, which may be for others.
    async fn pending(&self) -> Result<HashMap<ReviewId, Review>, store::Error> {
        let mut pending = HashMap::new();
        let watched: Vec<Awaited> = self.inner.watched.lock().keys().copied().collect();
        for awaited in watched {
            let reviews = self.inner.pending(awaited).await?;
            pending.extend(reviews.into_iter().map(|review| (review.id, review)));
        }
        for person in &self.people {
            let Some(principal) = self.principal(person).await? else { continue };
            let mut query = ReviewQuery {
                status: Some(ReviewStatus::Pending),
                assigned: Some(shared::inbox::Assigned::Me),
                limit: Some(MAX_LIMIT),
                ..ReviewQuery::default()
            };
            loop {
                let page = self.inner.store.reviews(&principal, &query).await?;
                pending.extend(page.items.into_iter().map(|review| (review.id, review)));
                query.cursor = page.next_cursor;
                if query.cursor.is_none() {
                    break;
                }
            }
        }
        Ok(pending)
    }

    async fn principal(&self, person: &Person) -> Result<Option<Principal>, store::Error> {
        let known = self.inner.store.user(&person.username).await?;
        Ok(known.filter(|known| known.user.active).map(|known| known.principal(None)))
    }

    /// Handles the current state of a review.
    async fn hand_to_reviewer(&mut self, review: Review) {
        if !review.is_pending() {
            self.asked.remove(&review.id);
            return;
        }
        let mut able = Vec::new();
        for (place, person) in self.people.iter().enumerate() {
            let may = match with_retries(|| self.principal(person)).await {
                Ok(principal) => principal.is_some_and(|by| access(&by, Act::Decide(&review)).is_allowed()),
                Err(error) => {
                    tracing::warn!(%error, "a reviewer could not be asked");
                    false
                }
            };
            let voted = |decision: &shared::decision::Decision| {
                decision.by == person.username && decision.revision == review.revision
            };
            if may && !review.decisions.iter().any(voted) {
                able.push((place, Arc::clone(person)));
            }
        }
        if able.is_empty() && !self.served && review.expires_at.is_none() && review.kind.blocks() {
            let why = if review.votes().is_empty() {
                format!("no reviewer here may decide it; it is for {}", wanted(&review))
            } else {
                "it needs more votes than there are reviewers here".to_owned()
            };
            self.inner.undecided(&review, why);
        }
        if self.asked.get(&review.id).is_none_or(|pending| pending.revision != review.revision) {
            self.asked.insert(review.id, PendingReview::of(&review));
        }
        let Some(pending) = self.asked.get_mut(&review.id) else { return };
        for (place, person) in able {
            if pending.asked.insert(place) {
                let turn = turn(&person).await;
                let (inner, busy) = (Arc::clone(&self.inner), Arc::clone(&pending.busy));
                pending.thinking.spawn(ask(inner, person, review.clone(), turn, busy));
            }
        }
    }
}

/// Takes a place in the queue of a reviewer that answers one question at a time. It is taken immediately, independently
/// of the scheduling of those who wait: a script answers in this order.
async fn turn(person: &Person) -> impl Future<Output = Option<OwnedMutexGuard<()>>> + Send + use<> {
    let mut turn = person.reviewer.turn().map(|turn| Box::pin(turn.lock_owned()));
    let at_once = match &mut turn {
        Some(turn) => futures::poll!(turn),
        None => Poll::Pending,
    };
    async move {
        match (at_once, turn) {
            (Poll::Ready(held), _) => Some(held),
            (Poll::Pending, Some(turn)) => Some(turn.await),
            (Poll::Pending, None) => None,
        }
    }
}

/// Asks a person until their answer is valid, or they decline.
async fn ask(
    inner: Arc<Inner>,
    person: Arc<Person>,
    review: Review,
    turn: impl Future<Output = Option<OwnedMutexGuard<()>>> + Send,
    busy: Arc<()>,
) {
    let turn = turn.await;
    // The previous answer may have resolved this review too, and the news of it may not have arrived yet.
    if turn.is_some() && inner.store.review(review.id).await.is_ok_and(|now| is_over(now.as_ref(), &review)) {
        return;
    }
    let answered = AssertUnwindSafe(answer(&inner, &person, &review)).catch_unwind().await;
    // First, so that whoever attaches meanwhile either is told, or finds that it can be asked again.
    drop(busy);
    match answered {
        Ok(Ok(())) => {}
        Ok(Err(why)) => inner.undecided(&review, why),
        Err(_) => inner.undecided(&review, format!("the reviewer `{}` panicked", person.username)),
    }
}

async fn answer(inner: &Inner, person: &Person, review: &Review) -> Result<(), String> {
    loop {
        let choice = person.reviewer.review(review).await.map_err(|declined| declined.to_string())?;
        // The commit inserts the person's current rights.
        let by = Principal::new(person.username.clone(), person.roles.iter().cloned().collect());
        let actor = Actor::of(by.clone());
        let request = match choice.on(review) {
            Ok(request) => request,
            Err(mistake) => {
                person.reviewer.refused(review, &[mistake]).await.map_err(|declined| declined.to_string())?;
                continue;
            }
        };
        let input = Input::decide(review.id, by, person.via, request);
        let operation = Operation::Review { review: review.id, input: Box::new(input) };
        let mistakes = match commit(inner, person, review, Change { by: Some(actor), key: None, operation }).await {
            // The outcome arrives with the news, even if someone else was faster.
            Ok(())
            | Err(CommitError::Refused(
                Refusal::ReviewResolved(_)
                | Refusal::Overtaken { .. }
                | Refusal::RevisionChanged(_)
                | Refusal::RunOver
                | Refusal::NotFound,
            )) => return Ok(()),
            Err(CommitError::Refused(Refusal::Invalid(mistakes))) => mistakes,
            Err(CommitError::Refused(Refusal::VisitLimit(why))) => {
                vec![Mistake::new("/verdict/option", "visit_limit", why)]
            }
            Err(error) => return Err(error.to_string()),
        };
        person.reviewer.refused(review, &mistakes).await.map_err(|declined| declined.to_string())?;
    }
}

/// Commits a decision, again and again while the database is unavailable: what a person chose must not be lost. If it is
/// not known whether an attempt took effect, the review tells.
async fn commit(inner: &Inner, person: &Person, review: &Review, change: Change) -> Result<(), CommitError> {
    let mut backoff = ExponentialBackoff::default();
    loop {
        let error = match inner.store.commit(change.clone()).await {
            Err(error @ (CommitError::Unavailable(_) | CommitError::Unknown(_))) => error,
            done => return done.map(drop),
        };
        tracing::warn!(%error, "a decision could not be committed; trying again");
        tokio::time::sleep(backoff.next_wait()).await;
        if matches!(error, CommitError::Unknown(_)) {
            let Ok(now) = with_retries(|| inner.store.review(review.id)).await else { return Err(error) };
            let said = |now: &Review| now.decisions.iter().filter(|decision| decision.by == person.username).count();
            if is_over(now.as_ref(), review) || now.is_some_and(|now| said(&now) > said(review)) {
                return Ok(());
            }
        }
    }
}

/// Whether a review is no longer the one to ask about.
fn is_over(now: Option<&Review>, asked: &Review) -> bool {
    now.is_none_or(|now| !now.is_pending() || now.revision != asked.revision)
}

/// Describes in words who a review is for.
fn wanted(review: &Review) -> String {
    let reviewers = &review.reviewers;
    let users = reviewers.users.iter().map(ToString::to_string);
    let roles = reviewers.roles.iter().map(|role| format!("the role {role}"));
    let mut named: Vec<String> = users.chain(roles).collect();
    if named.is_empty() {
        named.push("every reviewer".to_owned());
    }
    let but = if reviewers.not_requester { ", but not for the person who launched the run" } else { "" };
    named.join(" or ") + but
}
