//! Exactly one resolution: of decisions, timers and cancels at the same moment, one wins. The others are told who won
//! and how, and the effects happen once.

use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use shared::api::{LogQuery, Reason};
use shared::error::{Code, Problem};
use shared::id::RunId;
use shared::log::EntryKind;
use shared::review::{Resolution, Review, ReviewStatus};
use shared::run::{Run, RunStatus};
use tests::reviewing::{chosen, launch_as};
use tests::{Api, Database, Options, Recorder, Server, eventually, flows, settings};

struct Race {
    server: Server,
    recorder: Recorder,
    admin: Api,
    ana: Api,
    tom: Api,
}

impl Race {
    async fn prepare(database: Database, human: &str) -> Self {
        let recorder = Recorder::start(Duration::ZERO).await;
        // Two people send 64 decisions at once, so the limit on writes per person is off.
        let settings = "[limits]\nwrites_per_second = 0\n".to_owned();
        let server = Server::start(Options { settings, ..Options::on(database) }).await;
        server.save(&flows::choice(&recorder.url, human)).await;
        let ana = server.person("ana", &["reviewer"]).await;
        let tom = server.person("tom", &["reviewer"]).await;
        let admin = server.admin().await;
        Self { server, recorder, admin, ana, tom }
    }

    /// Launches a run, and returns it with its one review.
    async fn waiting(&self, topic: &str) -> (RunId, Review) {
        let run = launch_as(&self.admin, "choice", json!({ "topic": topic })).await;
        let reviews = eventually("somebody is asked", async || {
            let reviews = self.ana.run_reviews(run).await.ok()?.items;
            (!reviews.is_empty()).then_some(reviews)
        })
        .await;
        (run, reviews.into_iter().next().expect("one"))
    }

    async fn over(&self, run: RunId) -> Run {
        eventually("the run is over", async || {
            let run = self.admin.run(run).await.ok()?;
            run.summary.status.is_over().then_some(run)
        })
        .await
    }

    /// Checks that the log has exactly one resolution of the review, and returns it.
    async fn check(&self, run: RunId, review: &Review, topic: &str) -> Resolution {
        let log = LogQuery { run: Some(run), limit: Some(200), after: None };
        let entries = self.admin.log(&log).await.expect("the log").items;
        let count = |kind| entries.iter().filter(|entry| entry.event.kind == kind).count();
        assert_eq!(count(EntryKind::ReviewResolved), 1, "{topic}: it leaves `pending` exactly once");
        let resolved = self.ana.review(review.id).await.expect("seen");
        let resolution = resolved.resolution.expect("resolved");
        assert_eq!(resolution.status, resolved.status);
        resolution
    }
}

/// The head start of the decision over its rival, in milliseconds. It adapts: the winner starts later in the next
/// round, and much later if it wins again and again, so that each side wins sometimes, however fast the machine is.
struct HeadStart {
    milliseconds: i64,
    step: i64,
    least_step: i64,
    /// Whether the decision won the last round.
    decided: Option<bool>,
}

impl HeadStart {
    fn of(milliseconds: i64, least_step: i64) -> Self {
        Self { milliseconds, step: least_step, least_step, decided: None }
    }

    fn after(&mut self, decided: bool) {
        let again = self.decided.replace(decided) == Some(decided);
        self.step = if again { (self.step * 2).min(200) } else { self.least_step };
        let change = if decided { -self.step } else { self.step };
        self.milliseconds = (self.milliseconds + change).clamp(-400, 800);
    }
}

/// Checks that a refusal carries the resolution that the winner has caused.
fn told(problem: &Problem, resolution: &Resolution) {
    assert_eq!(problem.code, Code::ReviewResolved, "{problem}");
    assert_eq!(problem.resolution.as_deref(), Some(resolution));
}

async fn opposite_decisions(database: Database) {
    let race = Race::prepare(database, "").await;
    for round in 0..settings::rounds() {
        let topic = format!("round {round}");
        let (run, review) = race.waiting(&topic).await;
        let all = (0..64).map(|number| {
            let (person, option) = if number % 2 == 0 { (&race.ana, "yes") } else { (&race.tom, "no") };
            let request = chosen(&review, option);
            async move { (option, person.decide(review.id, &request, None).await) }
        });
        let answers = join_all(all).await;
        let run_after = race.over(run).await;
        assert_eq!(run_after.summary.status, RunStatus::Completed, "{topic}");
        let resolution = race.check(run, &review, &topic).await;
        let winners: Vec<&str> =
            answers.iter().filter(|(_, answer)| answer.is_ok()).map(|(option, _)| *option).collect();
        assert_eq!(winners.len(), 1, "{topic}: exactly one wins");
        for (_, answer) in &answers {
            if let Err(problem) = answer {
                told(problem, &resolution);
            }
        }
        let calls = race.recorder.calls_with("topic", &topic);
        assert_eq!(calls.len(), 1, "{topic}: what follows happens once");
        assert_eq!(calls[0].arguments["chosen"], winners[0], "{topic}: as the winner said");
    }
    drop(race.server);
}

async fn decision_against_timer(database: Database) {
    let race = Race::prepare(database, "timeout: 1s\n      on_timeout: approve").await;
    let mut head_start = HeadStart::of(10, 7);
    let (mut decided, mut expired) = (0, 0);
    for round in 0..settings::rounds() {
        let topic = format!("round {round}");
        let (run, review) = race.waiting(&topic).await;
        let expires = review.expires_at.expect("a deadline");
        // Around the deadline, by this machine's clock, which is also the server's.
        let moment = shared::time::Timestamp(expires.0 - head_start.milliseconds * 1_000);
        #[expect(clippy::disallowed_methods, reason = "a race against the server's clock")]
        let now = shared::time::Timestamp::from(std::time::SystemTime::now());
        tokio::time::sleep(moment.since(now)).await;
        let answer = race.tom.decide(review.id, &chosen(&review, "no"), None).await;
        race.over(run).await;
        let resolution = race.check(run, &review, &topic).await;
        let calls = race.recorder.calls_with("topic", &topic);
        assert_eq!(calls.len(), 1, "{topic}: what follows happens once");
        head_start.after(answer.is_ok());
        match answer {
            Ok(_) => {
                decided += 1;
                assert_eq!(resolution.status, ReviewStatus::Resolved, "{topic}");
                assert_eq!(calls[0].arguments["chosen"], "no", "{topic}");
                assert!(resolution.at < expires, "{topic}: at the deadline the timer has won");
            }
            Err(problem) => {
                expired += 1;
                told(&problem, &resolution);
                assert_eq!(resolution.status, ReviewStatus::Expired, "{topic}");
                assert_eq!(calls[0].arguments["chosen"], "yes", "{topic}: the first accept option");
            }
        }
    }
    assert!(decided > 0 && expired > 0, "no race: {decided} decided, {expired} expired");
}

async fn decision_against_cancel(database: Database) {
    let race = Race::prepare(database, "").await;
    let reason = Reason { reason: Some("no longer wanted".to_owned()) };
    let mut head_start = HeadStart::of(0, 1);
    let (mut decided, mut withdrawn) = (0, 0);
    for round in 0..settings::rounds() {
        let topic = format!("round {round}");
        let (run, review) = race.waiting(&topic).await;
        let request = chosen(&review, "yes");
        let late = |milliseconds: i64| Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0));
        let decide = async {
            tokio::time::sleep(late(-head_start.milliseconds)).await;
            race.ana.decide(review.id, &request, None).await
        };
        let cancel = async {
            tokio::time::sleep(late(head_start.milliseconds)).await;
            race.admin.cancel(run, &reason, None).await
        };
        let (decision, cancel) = tokio::join!(decide, cancel);
        head_start.after(decision.is_ok());
        let run_after = race.over(run).await;
        let resolution = race.check(run, &review, &topic).await;
        if let Err(problem) = &cancel {
            assert_eq!(problem.code, Code::RunOver, "{topic}: {problem}");
            assert_eq!(run_after.summary.status, RunStatus::Completed, "{topic}");
        }
        let calls = race.recorder.calls_with("topic", &topic).len();
        match decision {
            Ok(_) => {
                decided += 1;
                assert_eq!(resolution.status, ReviewStatus::Resolved, "{topic}");
                assert!(calls <= 1, "{topic}: what follows happens once");
            }
            Err(problem) => {
                withdrawn += 1;
                told(&problem, &resolution);
                assert_eq!(resolution.status, ReviewStatus::Withdrawn, "{topic}");
                assert_eq!((run_after.summary.status, calls), (RunStatus::Cancelled, 0), "{topic}");
            }
        }
    }
    assert!(decided > 0 && withdrawn > 0, "no race: {decided} decided, {withdrawn} withdrawn");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_64_opposite_decisions_one_wins_on_sqlite() {
    opposite_decisions(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_64_opposite_decisions_one_wins_on_postgres() {
    opposite_decisions(Database::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_and_its_timer_never_both_act_on_sqlite() {
    decision_against_timer(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_and_its_timer_never_both_act_on_postgres() {
    decision_against_timer(Database::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_and_a_cancel_never_both_act_on_sqlite() {
    decision_against_cancel(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_and_a_cancel_never_both_act_on_postgres() {
    decision_against_cancel(Database::Postgres).await;
}
