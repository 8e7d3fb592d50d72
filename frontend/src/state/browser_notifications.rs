//! Notifications that the browser shows while nobody looks at the console: what they say, and when they are shown, so
//! that many reviews at once make few of them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use shared::author::Author;
use shared::definition::Severity;
use shared::id::{ReviewId, RunId, Username};
use shared::review::Review;
use shared::run::RunSummary;
use shared::time::Timestamp;

use super::ending;
use super::hidden::named;
use super::sentences::sentence;
use super::words;

/// The number of notifications that are shown one by one before the others are counted in one.
const ONE_BY_ONE: usize = 3;
/// The shortest time from then on between two notifications, in microseconds, and the pause that ends this.
const PAUSE: i64 = 10_000_000;

/// What a person has chosen for this browser.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotificationChoice {
    /// Whether notifications are shown.
    pub on: bool,
    /// Whether they say what is asked. Others may see the screen, so it is off at first.
    pub says_what: bool,
}

/// The key under which the browser stores a person's choice.
pub fn storage_key(owner: &Username) -> String {
    format!("countersign.browser-notifications.{owner}")
}

/// What a notification is about: a review that waits, the comments on one, or a run that has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotificationTarget {
    Review(ReviewId),
    Comments(ReviewId),
    Run(RunId),
}

impl NotificationTarget {
    /// The tag of its notification. Notifications of all tabs with one tag replace each other.
    pub fn tag(self) -> String {
        match self {
            Self::Review(id) => id.to_string(),
            Self::Comments(id) => format!("{id}.comments"),
            Self::Run(id) => id.to_string(),
        }
    }

    fn path(self) -> String {
        match self {
            Self::Review(id) | Self::Comments(id) => format!("/reviews/{id}"),
            Self::Run(id) => format!("/runs/{id}"),
        }
    }
}

/// What a notification says of a review or a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    pub about: NotificationTarget,
    /// The severity of a review.
    severity: Option<Severity>,
    title: String,
    from: String,
    pub expires_at: Option<Timestamp>,
}

impl News {
    /// Reads a review that waits. Its texts are those of agents, so hidden characters in them are named, and long ones
    /// cut.
    pub fn of(review: &Review) -> Self {
        Self {
            about: NotificationTarget::Review(review.id),
            severity: Some(review.stakes.severity),
            title: words::cut(&named(&review.title)),
            from: words::cut(&named(&words::origin(review))),
            expires_at: review.expires_at,
        }
    }

    /// Reads a review on which somebody has just commented. What they wrote is left to the console.
    pub fn of_comment(review: &Review) -> Self {
        let news = Self::of(review);
        let by = review.comments.last().map(|comment| format!("{} · ", Author::from(comment))).unwrap_or_default();
        let from = format!("{by}{}", news.from);
        Self { about: NotificationTarget::Comments(review.id), from, expires_at: None, ..news }
    }

    /// Reads a run that has failed, or was stopped by a decision or a deadline. Its error is left to the console.
    pub fn of_failed_run(run: &RunSummary) -> Self {
        let topic = run.topic.as_deref().map(|topic| words::cut(&named(topic))).unwrap_or_default();
        Self {
            about: NotificationTarget::Run(run.id),
            severity: None,
            title: format!("{} · {}", ending::tag(run.status, run.error.as_ref()).0, words::cut(&named(&run.title))),
            from: topic,
            expires_at: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrowserNotification {
    /// Notifications of all tabs with one tag replace each other.
    pub tag: String,
    pub title: String,
    pub body: String,
    /// The address that a click opens.
    pub path: String,
}

/// The notification of one review. `until` is its deadline in words.
pub fn one(news: &News, says_what: bool, until: Option<String>) -> BrowserNotification {
    let severity = news.severity.map(|severity| sentence(severity.as_str()));
    let (known, unknown) = match news.about {
        NotificationTarget::Review(_) => (severity.as_deref(), "A review waits for you"),
        NotificationTarget::Comments(_) => (Some("Comment"), "New comment on a review"),
        NotificationTarget::Run(_) => (None, "A run of yours has failed"),
    };
    let (title, body) = if says_what {
        let until = until.map(|until| format!(" · until {until}")).unwrap_or_default();
        let parts: Vec<&str> = known.into_iter().chain([news.title.as_str()]).collect();
        (parts.join(" · "), format!("{}{until}", news.from))
    } else {
        let parts: Vec<&str> = std::iter::once(unknown).chain(severity.as_deref()).collect();
        (parts.join(" · "), String::new())
    };
    BrowserNotification { tag: news.about.tag(), title, body, path: news.about.path() }
}

/// The tag of the notification that counts the others.
pub const SEVERAL: &str = "countersign.reviews";

/// The numbers of reviews that wait, of reviews with comments, and of runs that have failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub waiting: usize,
    pub commented: usize,
    pub failed: usize,
}

/// The notification that counts what is not shown one by one.
pub fn several(counts: Counts) -> BrowserNotification {
    let Counts { waiting, commented, failed } = counts;
    let counted = |count: usize, one: &str, more: &str| match count {
        0 => None,
        1 => Some(one.to_owned()),
        count => Some(format!("{count} {more}")),
    };
    let parts = [
        counted(waiting, "Another review waits for you", "more reviews wait for you"),
        counted(commented, "Another review has new comments", "more reviews have new comments"),
        counted(failed, "Another run of yours has failed", "more runs of yours have failed"),
    ];
    let title = parts.into_iter().flatten().collect::<Vec<_>>().join(" · ");
    let path = if waiting + commented == 0 { "/runs" } else { "/inbox" };
    BrowserNotification { tag: SEVERAL.to_owned(), title, body: String::new(), path: path.to_owned() }
}

/// What is to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shows {
    One(News),
    Several(Counts),
}

/// The news that have arrived and are not shown yet.
#[derive(Debug, Default)]
pub struct Arrivals {
    waiting: Vec<News>,
    /// What the notification of several counts.
    counted: BTreeSet<NotificationTarget>,
    /// When the last notification was shown, and how many one by one since a pause.
    last: Option<Timestamp>,
    shown: usize,
    /// Whether reviews had to wait since then.
    holds: bool,
}

impl Arrivals {
    pub fn arrive(&mut self, news: News) {
        self.waiting.retain(|other| other.about != news.about);
        self.waiting.push(news);
    }

    /// Whether this waits or is counted.
    pub fn has(&self, about: NotificationTarget) -> bool {
        self.counted.contains(&about) || self.waiting.iter().any(|news| news.about == about)
    }

    /// Notes that a review is over, or somebody else's, or that its comments are known. Returns whether the notification
    /// of several counts nothing any more.
    pub fn end(&mut self, about: NotificationTarget) -> bool {
        self.waiting.retain(|other| other.about != about);
        self.counted.remove(&about) && self.counted.is_empty()
    }

    /// Drops what waits and what was counted, because the person looks at the console.
    pub fn look(&mut self) {
        self.waiting.clear();
        self.counted.clear();
        self.holds = false;
    }

    /// What is to be shown at `now`.
    pub fn due(&mut self, now: Timestamp) -> Vec<Shows> {
        let quiet = self.last.is_none_or(|last| now.0 - last.0 >= PAUSE);
        if quiet && !self.holds {
            self.shown = 0;
        }
        let mut shows = Vec::new();
        if !self.holds {
            let room = (ONE_BY_ONE - self.shown).min(self.waiting.len());
            shows.extend(self.waiting.drain(..room).map(Shows::One));
            self.shown += room;
        }
        self.holds = !self.waiting.is_empty();
        if quiet && self.holds && shows.is_empty() {
            self.counted.extend(self.waiting.drain(..).map(|news| news.about));
            self.holds = false;
            let mut counts = Counts::default();
            for about in &self.counted {
                match about {
                    NotificationTarget::Review(_) => counts.waiting += 1,
                    NotificationTarget::Comments(_) => counts.commented += 1,
                    NotificationTarget::Run(_) => counts.failed += 1,
                }
            }
            shows.push(Shows::Several(counts));
        }
        if !shows.is_empty() {
            self.last = Some(now);
        }
        shows
    }

    /// When to ask again what is to be shown; `None` if nothing waits.
    pub fn again_at(&self) -> Option<Timestamp> {
        self.last.filter(|_| self.holds).map(|last| Timestamp(last.0 + PAUSE))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::state::fixtures::review;

    fn asked(number: u32) -> News {
        let id = ReviewId(format!("00000000-0000-0000-0000-{number:012}").parse().unwrap());
        News { about: NotificationTarget::Review(id), ..News::of(&review(1, 1, json!({}))) }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp(seconds * 1_000_000)
    }

    fn waiting(waiting: usize) -> Shows {
        Shows::Several(Counts { waiting, ..Counts::default() })
    }

    fn arrive(arrivals: &mut Arrivals, numbers: std::ops::Range<u32>) {
        numbers.for_each(|number| arrivals.arrive(asked(number)));
    }

    #[test]
    fn after_the_third_they_are_counted_in_one_every_ten_seconds() {
        let mut arrivals = Arrivals::default();
        arrive(&mut arrivals, 0..5);
        assert_eq!(arrivals.due(at(0)), [0, 1, 2].map(|number| Shows::One(asked(number))));
        assert_eq!(arrivals.again_at(), Some(at(10)));
        arrive(&mut arrivals, 5..7);
        assert_eq!(arrivals.due(at(4)), []);
        assert_eq!(arrivals.due(at(10)), [waiting(4)]);
        assert_eq!(arrivals.again_at(), None, "nothing waits");
        // The burst goes on, and the count grows.
        arrive(&mut arrivals, 7..8);
        assert_eq!(arrivals.due(at(12)), []);
        assert_eq!(arrivals.due(at(20)), [waiting(5)]);
        // After a pause, reviews are shown one by one again.
        arrive(&mut arrivals, 8..9);
        assert_eq!(arrivals.due(at(30)), [Shows::One(asked(8))]);
    }

    #[test]
    fn what_is_over_is_neither_shown_nor_counted() {
        let mut arrivals = Arrivals::default();
        arrive(&mut arrivals, 0..6);
        assert!(!arrivals.end(asked(1).about), "it was not shown");
        assert_eq!(arrivals.due(at(0)), [0, 2, 3].map(|number| Shows::One(asked(number))));
        arrivals.end(asked(4).about);
        assert_eq!(arrivals.due(at(10)), [waiting(1)]);
        assert!(arrivals.end(asked(5).about), "the notification counts none any more");
        assert!(!arrivals.end(asked(5).about));
    }

    #[test]
    fn nothing_waits_for_those_who_have_looked() {
        let mut arrivals = Arrivals::default();
        arrive(&mut arrivals, 0..5);
        arrivals.due(at(0));
        arrivals.look();
        assert_eq!((arrivals.again_at(), arrivals.due(at(20))), (None, Vec::new()));
        arrive(&mut arrivals, 5..6);
        assert_eq!(arrivals.due(at(20)), [Shows::One(asked(5))]);
    }

    #[test]
    fn it_says_what_is_asked_only_on_request_and_hides_nothing() {
        let hostile = format!("Pay\u{202e}evoli {}", "x".repeat(500));
        let review = review(1, 1, json!({ "title": hostile, "flow_title": "Refunds", "severity": "high" }));
        let notice = one(&News::of(&review), false, Some("14:05".into()));
        assert_eq!((notice.title.as_str(), notice.body.as_str()), ("A review waits for you · High", ""));
        let notice = one(&News::of(&review), true, Some("14:05".into()));
        assert!(notice.title.starts_with("High · Pay[RLO]evoli xxx"), "{}", notice.title);
        assert!(notice.title.chars().count() < 140, "{}", notice.title);
        assert_eq!(notice.body, "Refunds · until 14:05");
        assert_eq!(notice.path, format!("/reviews/{}", review.id));
    }

    #[test]
    fn a_conversation_is_one_notification_beside_that_of_its_review_and_quotes_nothing() {
        let comment = json!([{ "by": "tom", "at": "2026-01-01T00:00:00Z", "text": "The secret plan." }]);
        let review = review(1, 1, json!({ "title": "Pay it?", "flow_title": "Refunds", "comments": comment }));
        let mut arrivals = Arrivals::default();
        arrivals.arrive(News::of(&review));
        for _ in 0..50 {
            arrivals.arrive(News::of_comment(&review));
        }
        let shown = arrivals.due(at(0));
        let [Shows::One(asked), Shows::One(comments)] = &shown[..] else { panic!("{shown:?}") };
        let (asked, notice) = (one(asked, true, None), one(comments, true, None));
        assert_eq!((notice.title.as_str(), notice.body.as_str()), ("Comment · Pay it?", "tom · Refunds"));
        assert!(notice.tag != asked.tag && notice.path == asked.path);
        let hidden = one(comments, false, None);
        assert_eq!((hidden.title.as_str(), hidden.body.as_str()), ("New comment on a review · Medium", ""));
        let counts = Counts { waiting: 2, commented: 1, failed: 0 };
        assert_eq!(several(counts).title, "2 more reviews wait for you · Another review has new comments");
    }

    #[test]
    fn a_run_that_has_failed_says_what_it_was_only_on_request() {
        let run: RunSummary = serde_json::from_value(json!({
            "id": "00000000-0000-0000-0000-000000000001", "flow": "mail", "title": "Mail\u{202e}", "topic": "the ocean",
            "version": 1, "status": "failed", "revision": 3, "requested_by": "ana",
            "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z",
            "error": { "code": "TOOL_FAILED", "message": "secret" },
        }))
        .unwrap();
        let news = News::of_failed_run(&run);
        let (hidden, shown) = (one(&news, false, None), one(&news, true, None));
        assert_eq!((hidden.title.as_str(), hidden.body.as_str()), ("A run of yours has failed", ""));
        assert_eq!((shown.title.as_str(), shown.body.as_str()), ("Failed · Mail[RLO]", "the ocean"));
        assert_eq!(shown.path, format!("/runs/{}", run.id));
        assert_eq!(several(Counts { failed: 2, ..Counts::default() }).path, "/runs");
    }
}
