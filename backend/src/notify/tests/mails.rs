//! Mails, received by a small SMTP server.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::json;
use shared::access::Principal;
use shared::api::UserPatch;
use shared::decision::Via;
use shared::id::{RunId, TokenId};
use shared::notification::{Channel, DeliveryQuery, DeliveryStatus, Notifications, Occasion, Rule};
use shared::reassignment::Assignee;
use shared::time::Span;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::{eventually, settings, start};
use crate::clock::Clock as _;
use crate::engine::{Carrier, Input};
use crate::notify::tests::choose;
use crate::store::CommitFollower as _;
use crate::store::tests::support::{World, actor, decide, on_both, on_review, person};
use crate::store::{Actor, Change, Operation, Resume, UserChange};

on_both! {
    who_may_decide_is_written_to_after_a_while_if_it_is_still_pending,
    a_flood_of_reviews_is_one_mail,
    a_review_that_changes_hands_is_announced_to_whoever_gets_it,
    the_rules_of_the_settings_are_for_those_who_chose_none,
    a_conversation_is_one_mail_to_each_who_takes_part_and_the_next_after_a_pause,
    a_person_hears_what_their_own_agent_asks,
    only_a_refusal_of_the_address_is_final,
}

/// A mail server that keeps what it received, with envelopes.
pub(super) struct Post {
    port: u16,
    taken: Arc<Mutex<Vec<String>>>,
    refusals: Arc<Refusals>,
}

/// The commands that are refused, once each, and the replies to them. The greeting replies to an empty command.
type Refusals = Mutex<Vec<(&'static str, &'static str)>>;

impl Post {
    pub async fn start() -> Self {
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
    pub fn mails(&self) -> Vec<String> {
        let taken = self.taken.lock();
        taken.iter().map(|mail| mail.replace("=\n", "").replace("=C2=B7", "·").replace("=E2=80=9C", "“")).collect()
    }

    pub fn toml(&self) -> String {
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

pub(super) fn by_mail(address: &str, events: &[Occasion], after: Option<Span>) -> Notifications {
    let rule = Rule { channel: Channel::Email, events: events.to_vec(), after, severities: Vec::new() };
    Notifications { rules: Some(vec![rule]), email: Some(address.to_owned()), ..Notifications::default() }
}

async fn listed(world: &World, status: DeliveryStatus) -> Vec<shared::notification::Delivery> {
    let query = DeliveryQuery { status: Some(status), ..DeliveryQuery::default() };
    world.store.deliveries(&query).await.expect("reads").items
}

async fn who_may_decide_is_written_to_after_a_while_if_it_is_still_pending(world: World) {
    let post = Post::start().await;
    let all = Occasion::OF_REVIEWS.to_vec();
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
    assert!(to_dev[0].contains("Approved by tom") && !to_dev[0].contains("To review"), "{to_dev:?}");
    assert_eq!(to_ana.len(), 1, "{to_ana:?}");
    assert!(to_ana[0].contains("RCPT TO:<ana@desk.example>") && to_ana[0].contains("May this go out?"), "{to_ana:?}");
    assert!(to_ana[0].contains(&format!("https://desk.example/reviews/{}", waits.id)), "{to_ana:?}");
    assert!(to_ana[0].contains("min left, then it counts as rejected"), "{to_ana:?}");
    if world.database.url.starts_with("sqlite") {
        assert!(world.clock.now().since(begun) >= Duration::from_secs(599), "not before its time");
    }
    let dropped =
        eventually(&world, "one is dropped", async || listed(&world, DeliveryStatus::Dropped).await.pop()).await;
    assert_eq!((dropped.review_id, dropped.error.as_deref()), (Some(decided.id), Some("it was already decided")));
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

async fn the_rules_of_the_settings_are_for_those_who_chose_none(world: World) {
    let post = Post::start().await;
    let rules = "[default]\nrules = [{ channel = \"email\", events = [\"review.requested\"], after = \"10m\" }]";
    let mut feeder = super::feeder(&world, &settings(&format!("{}\n{rules}", post.toml()))).await;
    let addressed = async |name: &str, slack_user_id: Option<&str>| {
        let (email, slack_user_id) = (Some(format!("{name}@desk.example")), slack_user_id.map(str::to_owned));
        let patch = UserPatch { email, slack_user_id, ..UserPatch::default() };
        let change = UserChange { username: name.parse().expect("a name"), patch, password_hash: None };
        world.store.commit(Change::by_server(Operation::UpdateUser(Box::new(change)))).await.expect("addressed");
    };
    // Each of them may decide: nothing is known of eva but her address, ana is also known in Slack, tom wants nothing,
    // and kim has no address.
    for name in ["eva", "kim"] {
        world.add_user(name, &["reviewer"]).await;
    }
    addressed("eva", None).await;
    addressed("ana", Some("U024BE7LH")).await;
    addressed("tom", None).await;
    choose(&world, "tom", Notifications { rules: Some(Vec::new()), ..Notifications::default() }).await.expect("chosen");
    world.launched_review("one").await;
    let mut announced = async || {
        while matches!(feeder.advance().await.expect("reads"), Resume::Now) {}
        let waiting = listed(&world, DeliveryStatus::Waiting).await;
        let mut targets: Vec<_> = waiting.into_iter().map(|delivery| delivery.target).collect();
        targets.sort();
        targets
    };
    assert_eq!(announced().await, ["ana", "eva"]);
    // Tom goes back to them.
    choose(&world, "tom", Notifications::default()).await.expect("chosen");
    world.launched_review("two").await;
    assert_eq!(announced().await, ["ana", "ana", "eva", "eva", "tom"]);
}

async fn a_conversation_is_one_mail_to_each_who_takes_part_and_the_next_after_a_pause(world: World) {
    let post = Post::start().await;
    world.add_user("eva", &["reviewer"]).await;
    for name in ["ana", "tom", "dev", "eva"] {
        choose(&world, name, by_mail(&format!("{name}@desk.example"), &[Occasion::Commented], None))
            .await
            .expect("chosen");
    }
    let settings = settings(&post.toml());
    let mut feeder = super::feeder(&world, &settings).await;
    let review = world.launched_review("talked about").await;
    let comment = async |name: &str, text: &str| {
        let input = Input::Comment { review: review.id, by: person(name), via: Via::Human, text: text.to_owned() };
        world.store.commit(on_review(review.id, name, input)).await.expect("it is commented on");
    };
    // No server sends meanwhile.
    for (name, text) in [("tom", "one"), ("ana", "two"), ("tom", "three"), ("ana", "four"), ("ana", "five\n--\nsix")] {
        comment(name, text).await;
    }
    while matches!(feeder.advance().await.expect("reads"), Resume::Now) {}
    drop(feeder);
    let to = |name: &str| {
        let envelope = format!("RCPT TO:<{name}@desk.example>");
        post.mails().into_iter().filter(|mail| mail.contains(&envelope)).collect::<Vec<_>>()
    };
    let notifier = start(&world, &settings).await;
    let waits = async || listed(&world, DeliveryStatus::Waiting).await.len();
    eventually(&world, "all are told", async || (waits().await == 0).then_some(())).await;
    let (to_dev, to_tom) = (to("dev"), to("tom"));
    assert_eq!((to_dev.len(), to_tom.len(), post.mails().len()), (1, 1, 2), "{:?}", post.mails());
    assert!(
        to_dev[0].contains("Subject: Comment: ") && to_dev[0].contains("\n5 comments, the newest by ana:\n"),
        "{to_dev:?}"
    );
    assert!(to_dev[0].contains("\n> five\n> --\n> six\n"), "it cannot pass for the rest of the mail: {to_dev:?}");
    assert!(to_tom[0].contains("\n3 comments, the newest by ana:\n"), "{to_tom:?}");
    let dropped = listed(&world, DeliveryStatus::Dropped).await.pop().expect("ana knows what she has answered");
    assert_eq!((dropped.target.as_str(), dropped.error.as_deref()), ("ana", Some("this person has answered")));

    comment("tom", "seven").await;
    comment("tom", "eight").await;
    eventually(&world, "ana is told at once", async || (!to("ana").is_empty()).then_some(())).await;
    eventually(&world, "dev is told later", async || {
        let waiting = listed(&world, DeliveryStatus::Waiting).await;
        let to_dev: Vec<_> = waiting.iter().filter(|delivery| delivery.target == "dev").collect();
        (to_dev.len() == 2 && to_dev.iter().any(|delivery| delivery.attempts > 0)).then_some(())
    })
    .await;
    assert_eq!(to("dev").len(), 1);
    // PostgreSQL uses its own clock.
    if world.database.url.starts_with("sqlite") {
        world.clock.advance(Duration::from_mins(10));
        let to_dev =
            eventually(&world, "the next one", async || Some(to("dev")).filter(|mails| mails.len() == 2)).await;
        assert!(to_dev[1].contains("\n2 comments, the newest by tom:\n> eight\n"), "{to_dev:?}");
        eventually(&world, "none is left", async || (waits().await == 0).then_some(())).await;
        assert_eq!(to("dev").len(), 2);
    }
    notifier.shutdown().await;
    assert!(to("eva").is_empty(), "she only could decide");
}

async fn a_person_hears_what_their_own_agent_asks(world: World) {
    let post = Post::start().await;
    world.add_user("eva", &["developer", "reviewer"]).await;
    let mut feeder = super::feeder(&world, &settings(&post.toml())).await;
    choose(&world, "eva", by_mail("eva@desk.example", &[Occasion::Requested], None)).await.expect("chosen");
    let eva = Principal { roles: ["developer", "reviewer"].map(str::to_owned).into(), ..person("eva") };
    let token = TokenId(uuid::Uuid::from_u128(7));
    let agent = Principal { token: true, token_id: Some(token), ..eva.clone() };
    let asked =
        serde_json::from_value(json!({ "kind": "clarification", "question": "Which one?" })).expect("a question");
    for (number, (by, announced)) in (1..).zip([(eva, 0), (agent, 1)]) {
        let (run, question) = (RunId(uuid::Uuid::from_u128(number)), Box::new(Carrier::of(&asked).expect("it fits")));
        let operation = Operation::Ask { run, question };
        world.store.commit(Change { by: Some(Actor::of(by)), key: None, operation }).await.expect("asked");
        while matches!(feeder.advance().await.expect("reads"), Resume::Now) {}
        assert_eq!(listed(&world, DeliveryStatus::Waiting).await.len(), announced);
    }
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
