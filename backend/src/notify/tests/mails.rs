//! Mails, received by a small SMTP server.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use shared::api::UserPatch;
use shared::decision::Via;
use shared::notification::{Channel, DeliveryQuery, DeliveryStatus, Notifications, Occasion, Rule};
use shared::reassignment::Assignee;
use shared::time::Span;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::{eventually, settings, start};
use crate::clock::Clock as _;
use crate::engine::Input;
use crate::notify::tests::choose;
use crate::store::CommitFollower as _;
use crate::store::tests::support::{World, actor, decide, on_both, person};
use crate::store::{Change, Operation, Resume, UserChange};

on_both! {
    who_may_decide_is_written_to_after_a_while_if_it_is_still_pending,
    a_flood_of_reviews_is_one_mail,
    a_review_that_changes_hands_is_announced_to_whoever_gets_it,
    only_a_refusal_of_the_address_is_final,
}

/// A mail server that keeps what it received, with envelopes.
struct Post {
    port: u16,
    taken: Arc<Mutex<Vec<String>>>,
    refusals: Arc<Refusals>,
}

/// The commands that are refused, once each, and the replies to them. The greeting replies to an empty command.
type Refusals = Mutex<Vec<(&'static str, &'static str)>>;

impl Post {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let taken = Arc::new(Mutex::new(Vec::new()));
        let refusals = Arc::new(Refusals::default());
        let (mails, refused) = (Arc::clone(&taken), Arc::clone(&refusals));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(speak(stream, Arc::clone(&mails), Arc::clone(&refused)));
            }
        });
        Self { port, taken, refusals }
    }

    /// The received mails, without the transfer encoding.
    fn mails(&self) -> Vec<String> {
        let taken = self.taken.lock();
        taken.iter().map(|mail| mail.replace("=\n", "").replace("=C2=B7", "·").replace("=E2=80=9C", "“")).collect()
    }

    fn toml(&self) -> String {
        let port = self.port;
        format!(
            "[smtp]\nhost = \"127.0.0.1\"\nport = {port}\nencryption = \"none\"\nfrom = \"Countersign <desk@desk.example>\""
        )
    }
}

/// Speaks SMTP on one connection, and keeps the mails that it receives.
async fn speak(mut stream: TcpStream, mails: Arc<Mutex<Vec<String>>>, refusals: Arc<Refusals>) -> Option<()> {
    let refusal = |command: &str| {
        let mut refusals = refusals.lock();
        let place = refusals.iter().position(|(refused, _)| *refused == command)?;
        Some(refusals.remove(place).1)
    };
    let (read, mut write) = stream.split();
    let mut lines = BufReader::new(read).lines();
    write.write_all(refusal("").unwrap_or("220 post ESMTP\r\n").as_bytes()).await.ok()?;
    let (mut mail, mut data) = (String::new(), false);
    while let Some(line) = lines.next_line().await.ok()? {
        let command = line.split([' ', ':']).next().unwrap_or_default().to_ascii_uppercase();
        if !data && let Some(refused) = refusal(&command) {
            write.write_all(refused.as_bytes()).await.ok()?;
            continue;
        }
        let answer = match command.as_str() {
            "." if data => {
                data = false;
                mails.lock().push(std::mem::take(&mut mail));
                "250 taken\r\n"
            }
            _ if data => {
                mail.push_str(&line);
                mail.push('\n');
                continue;
            }
            "EHLO" => "250-post\r\n250 8BITMIME\r\n",
            "DATA" => {
                data = true;
                "354 go on\r\n"
            }
            "QUIT" => "221 bye\r\n",
            _ => {
                mail.push_str(&line);
                mail.push('\n');
                "250 ok\r\n"
            }
        };
        write.write_all(answer.as_bytes()).await.ok()?;
    }
    Some(())
}

fn by_mail(address: &str, events: &[Occasion], after: Option<Span>) -> Notifications {
    let rule = Rule { channel: Channel::Email, events: events.to_vec(), after, severities: Vec::new() };
    Notifications { rules: vec![rule], email: Some(address.to_owned()), ..Notifications::default() }
}

async fn listed(world: &World, status: DeliveryStatus) -> Vec<shared::notification::Delivery> {
    let query = DeliveryQuery { status: Some(status), ..DeliveryQuery::default() };
    world.store.deliveries(&query).await.expect("reads").items
}

async fn who_may_decide_is_written_to_after_a_while_if_it_is_still_pending(world: World) {
    let post = Post::start().await;
    let all = Occasion::ALL.to_vec();
    // PostgreSQL uses its own clock, so the test waits for real.
    let while_ = Span::secs(if world.database.url.starts_with("sqlite") { 600 } else { 1 });
    choose(&world, "ana", by_mail("ana@desk.example", &all, Some(while_))).await.expect("chosen");
    choose(&world, "dev", by_mail("dev@desk.example", &all, None)).await.expect("chosen");
    // From here on, everything is fed; nothing is sent before the decision, however slow the machine is.
    let settings = settings(&post.toml());
    let feeder = super::feeder(&world, &settings).await;
    let decided = world.launched_review("decided at once").await;
    world.store.commit(decide(&decided, "tom", "yes")).await.expect("decided");
    drop(feeder);
    let notifier = start(&world, &settings).await;
    let waits = world.launched_review("waits").await;
    let begun = world.clock.now();
    let to_dev = |mails: Vec<String>| mails.into_iter().find(|mail| mail.contains("RCPT TO:<dev@desk.example>"));
    eventually(&world, "who asked is told at once", async || to_dev(post.mails())).await;
    world.clock.advance(Duration::from_secs(590));
    let mails = eventually(&world, "two mails", async || Some(post.mails()).filter(|mails| mails.len() >= 2)).await;
    let (to_dev, to_ana): (Vec<_>, Vec<_>) = mails.iter().partition(|mail| mail.contains("RCPT TO:<dev@desk.example>"));
    assert!(to_dev[0].contains("Decided: ") && to_dev[0].contains(&decided.id.to_string()), "{to_dev:?}");
    assert!(to_dev[0].contains("Accepted by tom") && !to_dev[0].contains("To review"), "{to_dev:?}");
    assert_eq!(to_ana.len(), 1, "{to_ana:?}");
    assert!(to_ana[0].contains("RCPT TO:<ana@desk.example>") && to_ana[0].contains("May this go out?"), "{to_ana:?}");
    assert!(to_ana[0].contains(&format!("https://desk.example/reviews/{}", waits.id)), "{to_ana:?}");
    assert!(to_ana[0].contains("min left, then it counts as rejected"), "{to_ana:?}");
    if world.database.url.starts_with("sqlite") {
        assert!(world.clock.now().since(begun) >= Duration::from_secs(599), "not before its time");
    }
    let dropped =
        eventually(&world, "one is dropped", async || listed(&world, DeliveryStatus::Dropped).await.pop()).await;
    assert_eq!((dropped.review_id, dropped.error.as_deref()), (decided.id, Some("it was already decided")));
    notifier.shutdown().await;
    assert_eq!(post.mails().len(), 2, "nobody is told of what does not concern them");
}

async fn a_flood_of_reviews_is_one_mail(world: World) {
    let post = Post::start().await;
    choose(&world, "ana", by_mail("ana@desk.example", &[Occasion::Requested], None)).await.expect("chosen");
    let settings = settings(&post.toml());
    // No server sends while these reviews are requested, so they all wait together.
    let mut feeder = super::feeder(&world, &settings).await;
    for number in 0..20 {
        world.launched_review(&format!("review {number}")).await;
    }
    eventually(&world, "all wait", async || {
        feeder.advance().await.expect("reads");
        (listed(&world, DeliveryStatus::Waiting).await.len() == 20).then_some(())
    })
    .await;
    let notifier = start(&world, &settings).await;
    let mail = eventually(&world, "a mail", async || post.mails().pop()).await;
    assert!(mail.contains("Subject: 20 reviews"), "{mail}");
    assert_eq!(mail.matches("https://desk.example/reviews/").count(), 20);
    eventually(&world, "all are told", async || (listed(&world, DeliveryStatus::Sent).await.len() == 20).then_some(()))
        .await;
    notifier.shutdown().await;
    assert_eq!(post.mails().len(), 1);
}

async fn a_review_that_changes_hands_is_announced_to_whoever_gets_it(world: World) {
    let post = Post::start().await;
    world.add_user("eva", &["reviewer"]).await;
    let review = world.launched_review("changes hands").await;
    let run = review.run_id.expect("its run");
    let mut feeder = super::feeder(&world, &settings(&post.toml())).await;
    for name in ["ana", "tom", "eva"] {
        let address = format!("{name}@desk.example");
        choose(&world, name, by_mail(&address, &[Occasion::Requested], None)).await.expect("chosen");
    }
    let mut announced = async || {
        while matches!(feeder.advance().await.expect("reads"), Resume::Now) {}
        let mut targets: Vec<_> =
            listed(&world, DeliveryStatus::Waiting).await.into_iter().map(|delivery| delivery.target).collect();
        targets.sort();
        targets
    };
    let change = |by: Option<&str>, input| Change {
        by: by.map(actor),
        key: None,
        operation: Operation::Run { run, input: Box::new(input) },
    };
    let (by, to) = (person("ana"), "tom".parse().expect("a name"));
    let delegate = Input::Delegate { review: review.id, by, via: Via::Human, to, person: None };
    world.store.commit(change(Some("ana"), delegate)).await.expect("delegated");
    assert_eq!(announced().await, ["tom"]);
    let patch = UserPatch { roles: Some(vec!["developer".parse().expect("a role")]), ..UserPatch::default() };
    let lost = UserChange { username: "tom".parse().expect("a name"), patch, password_hash: None };
    world.store.commit(Change::by_server(Operation::UpdateUser(Box::new(lost)))).await.expect("tom has lost the role");
    world.store.commit(change(None, Input::Recount)).await.expect("recounted");
    assert_eq!(announced().await, ["ana", "tom"], "and nobody else");
    let (by, to) = (person("boss"), Assignee::User("eva".parse().expect("a name")));
    let reason = "ana is away".to_owned();
    let reassign = Input::Reassign { review: review.id, by, via: Via::Human, from: None, to, reason };
    world.store.commit(change(Some("boss"), reassign)).await.expect("reassigned");
    assert_eq!(announced().await, ["ana", "eva", "tom"]);
}

async fn only_a_refusal_of_the_address_is_final(world: World) {
    let post = Post::start().await;
    choose(&world, "ana", by_mail("ana@desk.example", &[Occasion::Requested], None)).await.expect("chosen");
    let notifier = start(&world, &settings(&post.toml())).await;
    *post.refusals.lock() = vec![
        ("", "554 no service now\r\n"),
        ("MAIL", "530 5.7.0 authentication required\r\n"),
        ("RCPT", "554 5.7.1 not for you\r\n"),
    ];
    world.launched_review("first").await;
    eventually(&world, "a mail after three failures", async || post.mails().pop()).await;
    *post.refusals.lock() = vec![("RCPT", "550 5.1.1 no such person\r\n")];
    world.launched_review("second").await;
    let given_up =
        eventually(&world, "one is given up", async || listed(&world, DeliveryStatus::GivenUp).await.pop()).await;
    let error = given_up.error.unwrap_or_default();
    assert!(given_up.attempts == 1 && error.contains("no such person"), "{} {error}", given_up.attempts);
    notifier.shutdown().await;
}
