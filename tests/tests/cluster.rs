//! Three servers on one PostgreSQL are killed, frozen and stopped at random under load, and their database is crashed:
//! what was acknowledged is there once, every effect happens once, sockets and webhooks miss nothing, and the audit log
//! holds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use shared::api::Decided;
use shared::error::{Code, Problem};
use shared::id::{ReviewId, RunId};
use shared::log::{Cursor, Entry};
use shared::protocol::{ServerMessage, Topic};
use shared::review::ReviewStatus;
use shared::run::RunStatus;
use tests::log::{is_heard, log_after};
use tests::postgres::Postgres;
use tests::recorder::Call;
use tests::reviewing::{chosen, launch_of};
use tests::wait::eventually_within;
use tests::{Api, Database, Options, Recorder, Server, Socket, flows, settings};
use tokio::time::Instant;

/// The time limit for what must happen despite faults, which includes that leases of lost workers run out.
const SETTLE: Duration = Duration::from_mins(3);
const SERVERS: usize = 3;
const CLIENTS: usize = 6;
/// The time for which a server is frozen.
const FREEZE: Duration = Duration::from_secs(5);
/// The time limit for a stop.
const STOP: Duration = Duration::from_secs(40);

/// A person who is logged in at each server.
struct Person(Vec<Api>);

impl Person {
    async fn at(servers: &[Server], name: &str) -> Self {
        let logins = servers.iter().map(async |server| server.login(name).await.expect("they get in"));
        Self(join_all(logins).await)
    }

    fn anywhere(&self, random: &mut StdRng) -> &Api {
        &self.0[random.random_range(0..self.0.len())]
    }

    /// Sends a request to random servers until one answers. Retries when a server is unavailable or limits the rate.
    async fn insists<'a, T>(
        &'a self,
        what: &str,
        random: &mut StdRng,
        mut ask: impl AsyncFnMut(&'a Api) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        eventually_within(SETTLE, what, async || match ask(self.anywhere(random)).await {
            Err(problem) if matches!(problem.code, Code::Unavailable | Code::TooManyRequests) => None,
            answer => Some(answer),
        })
        .await
    }
}

/// One run with its review, and the two opposite decisions on it: person, option, and answer of the server.
struct Round {
    topic: String,
    timed: bool,
    run: RunId,
    review: ReviewId,
    answers: [(&'static str, &'static str, Result<Decided, Problem>); 2],
}

/// Launches runs until `stop`, and lets two people send opposite decisions at the same moment, to random servers. Some
/// runs have a timeout, and are decided at about that time.
async fn client(number: usize, seed: u64, [dev, ana, tom]: [&Person; 3], stop: &AtomicBool) -> Vec<Round> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut rounds = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let topic = format!("client-{number}-run-{}", rounds.len());
        let timed = random.random_bool(0.3);
        let flow = if timed { "timed" } else { "choice" };
        let launch = launch_of(flow, json!({ "topic": topic }));
        let key = format!("launch-{topic}");
        let run = dev.insists("launched", &mut random, async |api| api.launch(&launch, Some(&key)).await).await;
        let run = run.unwrap_or_else(|problem| panic!("{topic}: {problem}")).summary.id;
        let review = eventually_within(SETTLE, "somebody is asked", async || {
            let reviews = ana.anywhere(&mut random).run_reviews(run).await.ok()?;
            reviews.items.into_iter().next()
        })
        .await;
        if timed {
            tokio::time::sleep(Duration::from_millis(random.random_range(700..1200))).await;
        }
        let (mut one, mut other) = (StdRng::seed_from_u64(random.random()), StdRng::seed_from_u64(random.random()));
        let (yes, no) = (chosen(&review, "yes"), chosen(&review, "no"));
        let (yes_key, no_key) = (format!("yes-{topic}"), format!("no-{topic}"));
        let (yes, no) = tokio::join!(
            ana.insists("decided", &mut one, async |api| api.decide(review.id, &yes, Some(&yes_key)).await),
            tom.insists("decided", &mut other, async |api| api.decide(review.id, &no, Some(&no_key)).await),
        );
        let answers = [("ana", "yes", yes), ("tom", "no", no)];
        rounds.push(Round { topic, timed, run, review: review.id, answers });
    }
    rounds
}

/// A client that follows the log over sockets, and continues after the last entry when the connection ends.
struct Listener<'a> {
    /// The servers, each with a client, to one of which each connection goes at random.
    servers: &'a [(String, &'a Api)],
    /// The time without an entry after which the client reconnects, since a frozen server is as silent as an idle one.
    patience: Duration,
    heard: Mutex<Vec<Cursor>>,
}

impl Listener<'_> {
    fn last(&self) -> Option<Cursor> {
        self.heard().last().cloned()
    }

    fn heard(&self) -> MutexGuard<'_, Vec<Cursor>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn listen(&self, seed: u64, stop: &AtomicBool) {
        let mut random = StdRng::seed_from_u64(seed);
        while !stop.load(Ordering::Relaxed) {
            let (base, api) = &self.servers[random.random_range(0..self.servers.len())];
            let Some(mut socket) = Socket::attempt(base, api).await else {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            if !socket.follow_after(self.last().expect("where it begins"), &[Topic::Reviews, Topic::Runs]).await {
                continue;
            }
            while let Some(message) = socket.next_message(self.patience).await {
                match message {
                    ServerMessage::Entry(entry) => self.heard().push(entry.cursor),
                    ServerMessage::Resync => break,
                    other => panic!("not an entry: {other:?}"),
                }
            }
        }
    }
}

/// A fault that is caused on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Kill,
    Freeze,
    Stop,
    CrashDatabase,
}

/// Returns the next faults in random order. Every kind is among them, so that each happens soon.
fn deal(random: &mut StdRng) -> Vec<Fault> {
    let each = [(Fault::Kill, 5), (Fault::Freeze, 3), (Fault::Stop, 2), (Fault::CrashDatabase, 2)];
    let mut deck: Vec<_> = each.into_iter().flat_map(|(fault, times)| std::iter::repeat_n(fault, times)).collect();
    deck.shuffle(random);
    deck
}

/// Causes faults at random for `length`. Afterwards, all servers and the database run.
#[expect(clippy::print_stdout, reason = "a run is understood by its faults")]
async fn harm(servers: &mut [Server], postgres: &Postgres, random: &mut StdRng, length: Duration) {
    let begun = Instant::now();
    let mut frozen: Vec<(usize, Instant)> = Vec::new();
    let mut faults = Vec::new();
    while begun.elapsed() < length {
        // Not a wait for a condition: the load goes on for a random time before the next fault.
        tokio::time::sleep(Duration::from_millis(random.random_range(100..1000))).await;
        frozen.retain(|(index, until)| {
            let over = Instant::now() >= *until;
            if over {
                servers[*index].signal("CONT");
            }
            !over
        });
        let up: Vec<usize> = (0..servers.len()).filter(|at| frozen.iter().all(|(index, _)| index != at)).collect();
        let index = up[random.random_range(0..up.len())];
        if faults.is_empty() {
            faults = deal(random);
        }
        // At least one server must not be frozen at any time.
        let fault = match faults.pop() {
            Some(Fault::Freeze) if up.len() == 1 => Fault::Kill,
            fault => fault.expect("it was dealt"),
        };
        println!("{:>6.1} s: {fault:?}, server {index}", begun.elapsed().as_secs_f64());
        match fault {
            Fault::Freeze => {
                servers[index].signal("STOP");
                frozen.push((index, Instant::now() + FREEZE));
            }
            Fault::Stop => {
                servers[index].signal("TERM");
                let status = servers[index].ended(STOP).await;
                assert!(status.success(), "a stop ends well: {status}");
                servers[index].restart().await;
            }
            Fault::Kill => {
                servers[index].kill();
                tokio::time::sleep(Duration::from_millis(random.random_range(0..500))).await;
                servers[index].restart().await;
            }
            Fault::CrashDatabase => postgres.crash().await,
        }
    }
    for (index, _) in frozen {
        servers[index].signal("CONT");
    }
}

/// Checks that one run has completed with one resolution and one effect, as the winner was told. Returns the
/// idempotency key of its tool call.
async fn check(round: &Round, entries: &[&Entry], admin: &Api, tool: &Recorder) -> String {
    let Round { topic, timed, run, review, answers } = round;
    let run = eventually_within(SETTLE, &format!("the run of {topic} is over"), async || {
        let run = admin.run(*run).await.ok()?;
        run.summary.status.is_over().then_some(run)
    })
    .await;
    assert_eq!(run.summary.status, RunStatus::Completed, "{topic}: {:?}", run.summary.error);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in entries {
        *counts.entry(entry.event.kind.as_str()).or_default() += 1;
    }
    for kind in ["run.started", "review.requested", "review.resolved", "tool.executed", "run.completed"] {
        assert_eq!(counts.get(kind), Some(&1), "{topic}: {kind} in {counts:?}");
    }
    let resolution = admin.review(*review).await.expect("it is there").resolution.expect("it is resolved");
    let winners: Vec<_> = answers.iter().filter(|(.., answer)| answer.is_ok()).collect();
    for (name, _, answer) in answers {
        if let Err(problem) = answer {
            assert_eq!(problem.code, Code::ReviewResolved, "{topic}, {name}: {problem}");
            assert_eq!(problem.resolution.as_deref(), Some(&resolution), "{topic}: {name} is told who was first");
        }
    }
    let chosen = match winners[..] {
        [(name, option, _)] => {
            let decision = resolution.decision.as_ref().expect("a decision");
            assert_eq!(decision.by.as_str(), *name, "{topic}: what was acknowledged counts");
            *option
        }
        [] => {
            assert!(*timed, "{topic}: one of two decisions counts");
            assert_eq!(resolution.status, ReviewStatus::Expired, "{topic}: nobody was told that theirs counts");
            "yes"
        }
        _ => panic!("{topic}: both were told that theirs counts"),
    };
    // If the tool's answer was lost, the tool may have been called again, but with the same key.
    let calls = tool.calls_with("topic", topic);
    let keys: BTreeSet<&str> = calls.iter().map(|call| call.key.as_str()).collect();
    assert_eq!(keys.len(), 1, "{topic}: one effect, with one idempotency key");
    assert!(calls.iter().all(|call| call.arguments["chosen"] == chosen), "{topic}: the effect is what was decided");
    calls[0].key.clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_done_twice_by_three_servers_on_one_postgres() {
    let seed = settings::seed();
    println!("COUNTERSIGN_TEST_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let (tool, hook) = (Recorder::start(Duration::from_millis(5)).await, Recorder::start(Duration::ZERO).await);
    let postgres = Arc::new(Postgres::alone().await);
    // All servers start at once, on an empty database.
    let options = || Options::on(Database::Postgres).webhook(&hook.url);
    let starting = (0..SERVERS).map(|_| Server::start_on(Some(Arc::clone(&postgres)), options()));
    let mut servers = join_all(starting).await;
    servers[0].save(&flows::choice(&tool.url, "")).await;
    let timed = flows::choice(&tool.url, "timeout: 1s\n      on_timeout: approve");
    servers[0].save(&timed.replace("id: choice", "id: timed")).await;
    for (name, role) in [("ana", "reviewer"), ("tom", "reviewer")] {
        servers[0].person(name, &[role]).await;
    }
    servers[0].person("dora", &["developer", "reviewer"]).await;
    let bases: Vec<String> = servers.iter().map(|server| server.base.clone()).collect();
    let (dev, ana, tom) =
        (Person::at(&servers, "dora").await, Person::at(&servers, "ana").await, Person::at(&servers, "tom").await);
    let start = Socket::open(&bases[0], &dev.0[0], &[]).await.expect("let in").welcome().await;
    let places: Vec<(String, &Api)> = bases.into_iter().zip(&dev.0).collect();
    let listener = |servers, patience| Listener {
        servers,
        patience: Duration::from_secs(patience),
        heard: Mutex::new(vec![start.clone()]),
    };
    let mut listeners: Vec<Listener<'_>> = places.chunks(1).map(|place| listener(place, 10)).collect();
    listeners.push(listener(&places, 1));
    let (stop, deaf) = (AtomicBool::new(false), AtomicBool::new(false));

    let clients: Vec<_> =
        (0..CLIENTS).map(|number| client(number, random.random(), [&dev, &ana, &tom], &stop)).collect();
    let listening: Vec<_> = listeners.iter().map(|listener| listener.listen(random.random(), &deaf)).collect();
    let work = async {
        let length = Duration::from_secs(settings::seconds());
        let faults = async {
            harm(&mut servers, &postgres, &mut random, length).await;
            stop.store(true, Ordering::Relaxed);
        };
        let (rounds, ()) = tokio::join!(join_all(clients), faults);
        let rounds: Vec<Round> = rounds.into_iter().flatten().collect();
        println!("{} rounds", rounds.len());
        assert!(rounds.len() >= CLIENTS, "hardly any load: {} rounds", rounds.len());

        let admin = servers[0].admin().await;
        for round in &rounds {
            eventually_within(SETTLE, &format!("the run of {} is over", round.topic), async || {
                admin.run(round.run).await.ok()?.summary.status.is_over().then_some(())
            })
            .await;
        }
        let log = log_after(&admin, &start).await;
        let mut of_runs: BTreeMap<RunId, Vec<&Entry>> = BTreeMap::new();
        for entry in &log {
            if let Some(run) = entry.event.run_id {
                of_runs.entry(run).or_default().push(entry);
            }
        }
        assert_eq!(of_runs.len(), rounds.len(), "a launch whose answer was lost has not left a second run behind");
        let mut keys = BTreeSet::new();
        for round in &rounds {
            let entries = of_runs.get(&round.run).map_or(&[][..], Vec::as_slice);
            assert!(keys.insert(check(round, entries, &admin, &tool).await), "{}: its own effect", round.topic);
        }

        // The webhook was told of each review, under one id, however often the message was sent.
        let review = |call: &Call| call.arguments["data"]["review"]["id"].as_str().unwrap_or_default().to_owned();
        let told = || -> BTreeSet<_> { hook.calls().iter().map(|call| (review(call), call.key.clone())).collect() };
        let all_told = async || (told().len() >= rounds.len()).then_some(());
        eventually_within(SETTLE, "the webhook is told of every review", all_told).await;
        let reviews: BTreeSet<String> = told().into_iter().map(|(review, _)| review).collect();
        assert_eq!(reviews, rounds.iter().map(|round| round.review.to_string()).collect(), "every review is told");
        assert_eq!(told().len(), rounds.len(), "each under one id");

        // Sockets have received every entry, once and in order.
        let mut expected = vec![start.clone()];
        expected.extend(log.iter().filter(|entry| is_heard(entry.event.kind)).map(|entry| entry.cursor.clone()));
        for listener in &listeners {
            let all = async || (listener.heard().len() >= expected.len()).then_some(());
            eventually_within(SETTLE, "everything is heard", all).await;
        }
        deaf.store(true, Ordering::Relaxed);
        for listener in &listeners {
            let heard = listener.heard();
            let difference = heard.iter().zip(&expected).position(|(heard, expected)| heard != expected);
            assert_eq!((difference, heard.len()), (None, expected.len()), "every entry once and in order");
        }

        // Each server confirms that the audit log is valid and every entry is sealed.
        for server in &servers {
            let admin = server.admin().await;
            eventually_within(SETTLE, "everything is sealed", async || {
                let check = admin.verify_audit().await.expect("the record can be checked");
                assert!(check.valid, "{check:?}");
                (check.sealed == check.entries).then_some(())
            })
            .await;
            for bad in ["panicked", "unreadable", "RECORD_UNREADABLE", "stored data"] {
                let line = server.log_text().lines().find(|line| line.contains(bad)).map(str::to_owned);
                assert_eq!(line, None, "nothing of the kind is in the logs");
            }
        }
    };
    tokio::join!(join_all(listening), work);
}
