//! Counts pending reviews by the values of their filters.
//!
//! The database counts by class, deadline, age and claim. Each of these groups is matched against the filter as one
//! representative review.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use shared::access::{Act, Principal, access};
use shared::api::ReviewQuery;
use shared::collaboration::Claim;
use shared::inbox::{self, AgeGroup, Assigned, Count, Counts, Due, Facet, Facets, Nearness, SOON, TODAY};
use shared::review::Review;
use shared::time::Timestamp;
use uuid::Uuid;

use super::db::{Conn, GroupKey, Sql};
use super::log_index::{ReviewSearch, WordIndex};
use super::words::Words;
use super::{Error, Store, queue, search};

/// The largest number of values that are returned for a facet.
const MAX_VALUES: usize = 25;
/// The largest number of reviews that are searched for words, the most urgent first.
const MAX_SEARCHED: u32 = 5_000;

/// Pending reviews that no filter tells apart.
struct QueueGroup {
    like: Review,
    count: u64,
}

impl Store {
    /// Counts the pending reviews that the viewer may see and that match, in total and by the values of each facet.
    pub async fn facets(&self, viewer: &Principal, query: &ReviewQuery) -> Result<Facets, Error> {
        self.facets_among(viewer, query, search::FEW, MAX_SEARCHED).await
    }

    /// Like [`Self::facets`]. Up to `few` reviews that have the words are found by the index; otherwise up to `most`
    /// reviews are searched.
    pub(super) async fn facets_among(
        &self,
        viewer: &Principal,
        query: &ReviewQuery,
        few: usize,
        most: u32,
    ) -> Result<Facets, Error> {
        let now = self.inner.clock.now();
        let (store, viewer, query) = (self.clone(), viewer.clone(), query.clone());
        let read = move |mut conn: Conn| async move {
            let (groups, at_least) = store.groups(&mut conn, &viewer, &query, (few, most), now).await?;
            conn.rollback().await?;
            Ok(Facets { at_least, ..count(&groups, &query, &viewer, now) })
        };
        self.inner.db.snapshot_as_one(read).await
    }

    /// Groups the reviews that the viewer may see and that have the words. Also returns whether some were not searched.
    async fn groups(
        &self,
        conn: &mut Conn,
        viewer: &Principal,
        query: &ReviewQuery,
        (few, most): (usize, u32),
        now: Timestamp,
    ) -> Result<(Vec<QueueGroup>, bool), Error> {
        let all = self.classes(conn).await?;
        let seen = all.iter().filter(|(_, outline)| access(viewer, Act::SeeReview(outline)).is_allowed());
        let seen: HashMap<Uuid, _> = seen.map(|(class, outline)| (*class, outline)).collect();
        let classes: Vec<_> = seen.keys().copied().collect();
        let (thresholds, ages) = (thresholds(query.due, now), ages(query, now));
        let search = match Words::of(query.q.as_deref()) {
            Some(words) => Some(conn.search_reviews(words, &[WordIndex::Pending], few).await?),
            None => None,
        };
        if classes.is_empty() {
            return Ok((Vec::new(), false));
        }
        let sql = Sql::new("SELECT v.class, CAST(");
        let sql = thresholds
            .iter()
            .fold(sql, |sql, threshold| sql.push("CASE WHEN v.due > ").bind(threshold.0).push(" THEN 1 ELSE 0 END + "));
        let sql = sql.push("CASE WHEN v.due = ").bind(Timestamp::MAX.0).push(" THEN 1 ELSE 0 END AS BIGINT), CAST(");
        let sql = sql.push("CASE WHEN v.claimed_until > ").bind(now.0).push(" THEN 1 ELSE 0 END AS BIGINT), CAST(0");
        let sql = ages
            .iter()
            .fold(sql, |sql, asked| sql.push(" + CASE WHEN v.created_at > ").bind(asked.0).push(" THEN 1 ELSE 0 END"));
        let sql = sql.push(" AS BIGINT)");
        let sql = match &search {
            Some(ReviewSearch::Each(_)) => queue::from(sql.push(", r.search FROM "), true, None),
            Some(ReviewSearch::Among(ids)) => queue::from(sql.push(" FROM "), false, Some(ids)),
            None => queue::from(sql.push(" FROM "), false, None),
        };
        let sql = queue::of_classes(sql, all.len(), &classes);
        let (mut counts, mut searched) = (BTreeMap::<GroupKey, u64>::new(), 0);
        if let Some(ReviewSearch::Each(words)) = &search {
            let sql = sql.push(" ORDER BY v.due, v.severity_rank, v.created_at, v.id LIMIT ").bind(most);
            for row in conn.fetch(sql).await? {
                searched += 1;
                if words.are_in(&row.text(4)?) {
                    *counts.entry(GroupKey::of(&row)?).or_default() += 1;
                }
            }
        } else {
            counts.extend(conn.count_groups(sql).await?);
        }
        let mut groups = Vec::new();
        for (GroupKey { id: class, numbers: [past, claimed, young] }, count) in counts {
            let Some(outline) = seen.get(&class) else { continue };
            let past = usize::try_from(past).unwrap_or(0);
            let mut like = Review::clone(outline);
            // Past the last threshold come later deadlines, and then reviews without a deadline.
            like.expires_at = match thresholds.get(past) {
                Some(threshold) => Some(*threshold),
                None if past == thresholds.len() => Some(LATEST),
                None => None,
            };
            let soon = now.after(Duration::from_micros(1));
            like.claimed_by = (claimed == 1).then(|| Claim { by: viewer.username.clone(), token: None, until: soon });
            // After the last age come reviews that are younger than any.
            like.created_at = ages.get(usize::try_from(young).unwrap_or(0)).copied().unwrap_or(soon);
            groups.push(QueueGroup { like, count });
        }
        Ok((groups, searched >= most))
    }
}

/// The latest possible deadline; one microsecond later stands for none.
const LATEST: Timestamp = Timestamp(Timestamp::MAX.0 - 1);

/// The deadlines at which the filter or the counts change, in order.
fn thresholds(due: Option<Due>, now: Timestamp) -> Vec<Timestamp> {
    let asked = due.and_then(|due| due.latest(now));
    let mut all: Vec<_> = [now.after(SOON), now.after(TODAY)].into_iter().chain(asked).collect();
    for threshold in &mut all {
        *threshold = (*threshold).min(LATEST);
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// The times of creation at which the filter or the counts change, in order.
fn ages(query: &ReviewQuery, now: Timestamp) -> Vec<Timestamp> {
    let mut all: Vec<_> = AgeGroup::FROM.iter().map(|(_, age)| now.before(*age)).chain(query.oldest(now)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn count(groups: &[QueueGroup], query: &ReviewQuery, viewer: &Principal, now: Timestamp) -> Facets {
    let mut facets = Facets::default();
    let mut tallies: [BTreeMap<&str, u64>; Facet::ALL.len()] = Default::default();
    for QueueGroup { like, count } in groups {
        let missed: Vec<_> = query.misses(like, viewer, now).collect();
        if missed.is_empty() {
            facets.total += count;
            facets.mine += if inbox::is_with(Assigned::Me, like, viewer, now) { *count } else { 0 };
        }
        for (facet, tally) in Facet::ALL.iter().zip(&mut tallies) {
            if missed.iter().all(|missed| *missed == Some(*facet)) {
                for value in values(*facet, like, viewer, now) {
                    *tally.entry(value).or_default() += count;
                }
            }
        }
    }
    let [kind, severity, flow, role, tag, assigned, due, age] = tallies.map(most_frequent);
    Facets { kind, severity, flow, role, tag, assigned, due, age, ..facets }
}

fn values<'r>(facet: Facet, review: &'r Review, viewer: &Principal, now: Timestamp) -> BTreeSet<&'r str> {
    match facet {
        Facet::Kind => BTreeSet::from([review.kind.as_str()]),
        Facet::Severity => BTreeSet::from([review.stakes.severity.as_str()]),
        Facet::Flow => review.flow.as_deref().into_iter().collect(),
        Facet::Role => inbox::roles(review).collect(),
        Facet::Tag => review.reviewers.tags.iter().map(String::as_str).collect(),
        Facet::Assigned => {
            let with = Assigned::ALL.iter().copied().filter(|assigned| inbox::is_with(*assigned, review, viewer, now));
            with.map(Assigned::as_str).collect()
        }
        Facet::Due => BTreeSet::from([Nearness::of(review.expires_at, now).as_str()]),
        Facet::Age => BTreeSet::from([AgeGroup::of(review.created_at, now).as_str()]),
    }
}

fn most_frequent(tally: BTreeMap<&str, u64>) -> Counts {
    let mut values: Vec<_> = tally.into_iter().map(|(value, count)| Count { value: value.to_owned(), count }).collect();
    // The sort is stable: equally frequent values stay in alphabetical order.
    values.sort_by_key(|value| std::cmp::Reverse(value.count));
    let left_out = values.split_off(values.len().min(MAX_VALUES));
    let rest = (!left_out.is_empty()).then(|| left_out.iter().map(|value| value.count).sum());
    Counts { values, rest }
}
