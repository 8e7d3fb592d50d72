//! A database with a person who has left traces everywhere, and with others.

use std::time::Duration;

use serde_json::json;
use shared::JsonMap;
use shared::access::{Involvement, Principal};
use shared::api::{User, UserPatch};
use shared::decision::{DecisionRequest, Verdict, Via};
use shared::deputy::Deputyship;
use shared::feedback::NewFeedback;
use shared::id::{DeputyId, ReviewId, RunId, TokenId};
use shared::log::Cursor;
use shared::notification::{Channel, Occasion};
use shared::review::Review;
use shared::single_sign_on::Trouble;

use crate::audit::tests::support as audit;
use crate::clock::{Clock as _, Moment, SystemClock};
use crate::engine::Input;
use crate::erasure::Eraser;
use crate::erasure::eraser::Reached;
use crate::store::{
    Actor, Change, ChosenNotifications, CommitError, Committed, Credential, CredentialKind, DeliveryEvent,
    DeliveryKind, DeliverySubject, IdempotencyKey, NewCredential, NewDelivery, NewFlow, NewUserRecord, Operation,
    ProviderAccount, RefusedSignIn, SessionClient, Store, UserChange,
};

/// The username of the person to erase.
pub const NAME: &str = "anastasia";
/// Traces of the person and of their remark, in all forms. A full-text index stores only the part of a word that
/// differs from the previous one.
pub const TRACES: [&str; 6] = ["stasia", "Lindqvist", "lind@mail", "xotically", "U777", "10.9.8.7"];
/// The remark of the person.
pub const REMARK: &str = "Quixotically put, if you ask me";

pub struct World {
    pub record: audit::World,
}

impl World {
    pub async fn sqlite() -> Self {
        Self::on(audit::World::sqlite().await).await
    }

    pub async fn postgres() -> Option<Self> {
        Some(Self::on(audit::World::postgres().await?).await)
    }

    async fn on(record: audit::World) -> Self {
        let world = Self { record };
        world.add(NAME, Some("Ana Lindqvist")).await;
        world.add("zoe", None).await;
        let flow = json!({
            "id": "ask", "agents": {"writer": {"model": "demo/writer", "instructions": "Write."}},
            "input": {"type": "object", "properties": {"text": {"type": "string"}}},
            "nodes": {
                "check": {"human": {
                    "prompt": "May it go out?", "edit_keys": ["text"], "on_reject": "write",
                    "options": [{"id": "yes", "kind": "accept", "label": "Yes"}, {"id": "no", "kind": "stop", "label": "No"}],
                }},
                "write": {"agent": "writer", "prompt": "Again."},
            },
        });
        let source = flow.to_string();
        let flow = serde_json::from_value(flow).expect("the flow is well-formed");
        let new = NewFlow { digest: "sha256:1".to_owned(), source, flow };
        world.by(NAME, Operation::SaveFlow(Box::new(new))).await.expect("the flow is saved");
        world
    }

    pub fn store(&self) -> &Store {
        &self.record.store
    }

    pub fn eraser(&self) -> Eraser {
        Eraser::new(self.store().clone(), self.record.trusted.clone())
    }

    pub async fn add(&self, name: &str, display_name: Option<&str>) {
        let user = json!({
            "username": name, "roles": ["developer", "reviewer"], "created_at": self.record.clock.now(),
            "display_name": display_name, "email": display_name.map(|_| "lind@mail.example"),
        });
        let user: User = serde_json::from_value(user).expect("a person");
        let record = NewUserRecord { user, password_hash: Some("a hash".to_owned()) };
        let added = Change::by_server(Operation::CreateUser(Box::new(record)));
        self.store().commit(added).await.expect("a person is added");
    }

    pub async fn by(&self, name: &str, operation: Operation) -> Result<Committed, CommitError> {
        let scope = format!("{name} POST /api/v1/something");
        let key = Moment::of(&SystemClock).ids().uuid().to_string();
        let key = Some(IdempotencyKey { scope, key, body: [1; 32] });
        self.store().commit(Change { by: Some(Actor::of(person(name))), key, operation }).await
    }

    /// Starts a run. The person's program is told of its end, and the messages about it wait.
    pub async fn launch(&self, name: &str, text: &str) -> (RunId, Review) {
        let run = RunId(Moment::of(&SystemClock).ids().uuid());
        let is_told = name == NAME;
        let operation = Operation::Launch {
            run,
            flow: "ask".parse().expect("an id"),
            version: None,
            input: [("text".to_owned(), json!(text))].into_iter().collect(),
            context: Box::new(shared::run::Context { user: Some(name.to_owned()), ..Default::default() }),
            callback_url: is_told.then(|| format!("https://hooks.example/{name}?key=s3cret")),
        };
        self.by(name, operation).await.expect("the run starts");
        if is_told {
            self.told(run).await;
        }
        let review = self.store().run_reviews(run).await.expect("reads").pop().expect("it asks");
        (run, review)
    }

    /// Adds the deliveries about a run to the person and to their program.
    async fn told(&self, run: RunId) {
        let by_mail = DeliveryKind::Person(Channel::Email);
        let deliveries = [DeliveryKind::Callback, by_mail].map(|kind| NewDelivery {
            id: NewDelivery::id_of(&[&run.to_string(), kind.as_str()]),
            kind,
            target: NAME.to_owned(),
            event: DeliveryEvent::Announce(Occasion::RunFailed),
            subject: DeliverySubject::Run(run),
            place: Cursor("somewhere".to_owned()),
            receipt: None,
            due_at: self.record.clock.now(),
        });
        self.store().add_deliveries(&deliveries).await.expect("writes");
    }

    pub async fn on_review(&self, name: &str, review: ReviewId, input: Input) {
        self.by(name, Operation::Review { review, input: Box::new(input) }).await.expect("it is taken");
    }

    pub async fn decide(&self, name: &str, review: &Review, comment: &str) {
        let request = DecisionRequest {
            revision: review.revision,
            digest: review.digest.clone(),
            verdict: Verdict::Choose { option: "yes".to_owned(), fields: JsonMap::new() },
            edits: [("text".to_owned(), json!(format!("As {comment} says: better")))].into_iter().collect(),
            comment: Some(comment.to_owned()),
            metadata: JsonMap::new(),
        };
        let input = Input::decide(review.id, person(name), Via::Human, request);
        self.on_review(name, review.id, input).await;
    }

    /// Finishes a run: `started` starts it, and `decided` decides it with a remark and an edit.
    pub async fn finished(&self, started: &str, decided: &str, comment: &str) -> RunId {
        let (run, review) = self.launch(started, &"a long text ".repeat(300)).await;
        let said = Input::Comment {
            review: review.id,
            by: person(decided),
            via: Via::Human,
            text: format!("{comment}, beside it"),
        };
        self.on_review(decided, review.id, said).await;
        self.on_review(decided, review.id, Input::Claim { review: review.id, by: person(decided), via: Via::Human })
            .await;
        let review = self.store().run_reviews(run).await.expect("reads").pop().expect("it asks");
        self.decide(decided, &review, comment).await;
        let feedback: NewFeedback = serde_json::from_value(json!({
            "agent": "writer", "type": "complaint", "content": comment, "context": comment,
        }))
        .expect("feedback");
        let feedback = Operation::GiveFeedback { run, involvement: Involvement::Reviews, feedback: Box::new(feedback) };
        self.by(decided, feedback).await.expect("it is given");
        run
    }

    /// Finishes a run whose input and whose decision by the person have their own members, one of them with the name.
    pub async fn decided_form(&self) -> RunId {
        let text = json!({"type": "string"});
        let flow = json!({
            "id": "form", "input": {"type": "object", "properties": {"owner": text, "input": text}},
            "nodes": {"check": {"human": {
                "prompt": "Whose is it?", "options": [{"id": "yes", "kind": "accept", "label": "Yes"}],
            }}},
        });
        let source = flow.to_string();
        let flow = serde_json::from_value(flow).expect("the flow is well-formed");
        let new = NewFlow { digest: "sha256:2".to_owned(), source, flow };
        self.by("zoe", Operation::SaveFlow(Box::new(new))).await.expect("the flow is saved");
        let run = RunId(Moment::of(&SystemClock).ids().uuid());
        let mut members = JsonMap::from_iter([("owner".to_owned(), json!(NAME))]);
        let metadata = members.clone();
        // An input of the engine has a member with this name, too.
        members.insert("input".to_owned(), json!("form"));
        let launch = Operation::launch(run, "form".parse().expect("an id"), members);
        self.by("zoe", launch).await.expect("the run starts");
        let review = self.store().run_reviews(run).await.expect("reads").pop().expect("it asks");
        let request = DecisionRequest {
            revision: review.revision,
            digest: review.digest.clone(),
            verdict: Verdict::Choose { option: "yes".to_owned(), fields: JsonMap::new() },
            edits: JsonMap::new(),
            comment: None,
            metadata,
        };
        let input = Input::decide(review.id, person(NAME), Via::Human, request);
        self.on_review(NAME, review.id, input).await;
        run
    }

    /// Links the person to an account at an identity provider, after a sign-in with it was refused under another name.
    async fn link(&self) {
        let account = ProviderAccount { issuer: "https://id.example".to_owned(), subject: "x-stasia-7".to_owned() };
        let username = Some("stasia.l".parse().expect("a name"));
        let refused =
            RefusedSignIn { account: account.clone(), username, trouble: Trouble::Unknown, is_recorded: true };
        let link = Operation::LinkAccount { username: NAME.parse().expect("a name"), account: Some(account) };
        for operation in [Operation::RefuseSignIn(Box::new(refused)), link] {
            self.store().commit(Change::by_server(operation)).await.expect("it is recorded");
        }
    }

    /// Sets up the person's account, credentials, notification settings and deputies.
    pub async fn account(&self) {
        self.link().await;
        let now = self.record.clock.now();
        for (kind, digest) in [(CredentialKind::Session, [3; 32]), (CredentialKind::Token, [4; 32])] {
            let credential = Credential {
                kind,
                id: Some(TokenId(Moment::of(&SystemClock).ids().uuid())),
                name: Some(REMARK.to_owned()),
                username: NAME.parse().expect("a name"),
                roles: Some(vec!["developer".to_owned()]),
                created_at: now,
                expires_at: Some(shared::time::Timestamp(now.0 + 1_000_000_000_000)),
                last_used_at: None,
                client: Some(SessionClient { address: "10.9.8.7".to_owned(), agent: None }),
                confirmed_at: None,
            };
            let new = Operation::AddCredential(Box::new(NewCredential { digest, credential }));
            self.by(NAME, new).await.expect("it is added");
        }
        let notifications = serde_json::from_value(json!({"slack_user_id": "U777", "rules": []})).expect("a choice");
        let chosen = ChosenNotifications { username: NAME.parse().expect("a name"), notifications };
        // Nobody sets their own member ID in Slack.
        let chosen = Change::by_server(Operation::ChooseNotifications(Box::new(chosen)));
        self.store().commit(chosen).await.expect("it is chosen");
        let view = json!({"revision": 0, "views": [{"name": REMARK, "filter": {"q": REMARK}}]});
        let views = serde_json::from_value(view).expect("views");
        let username = NAME.parse().expect("a name");
        self.by(NAME, Operation::SaveViews { username, views: Box::new(views) }).await.expect("they are saved");
        for (person, deputy) in [(NAME, "zoe"), ("zoe", NAME)] {
            let span = Deputyship {
                id: DeputyId(Moment::of(&SystemClock).ids().uuid()),
                person: person.parse().expect("a name"),
                deputy: deputy.parse().expect("a name"),
                from: now,
                until: shared::time::Timestamp(now.0 + 1_000_000_000),
                note: Some(format!("{REMARK} again")).filter(|_| person == NAME),
                made_by: person.parse().expect("a name"),
                created_at: now,
            };
            self.by(person, Operation::NameDeputy(Box::new(span))).await.expect("a deputy is named");
        }
        self.change(UserPatch { display_name: Some("Ana M. Lindqvist".to_owned()), ..UserPatch::default() }).await;
    }

    pub async fn change(&self, patch: UserPatch) {
        let change = UserChange { username: NAME.parse().expect("a name"), patch, password_hash: None };
        let change = Change::by_server(Operation::UpdateUser(Box::new(change)));
        self.store().commit(change).await.expect("they are changed");
    }

    pub async fn deactivate(&self) {
        self.change(UserPatch { active: Some(false), ..UserPatch::default() }).await;
    }

    /// Erases the account. Returns the user with the pseudonym.
    pub async fn erase(&self) -> Result<User, CommitError> {
        let erase = Operation::EraseUser(NAME.parse().expect("a name"));
        match self.store().commit(Change::by_server(erase)).await? {
            Committed::User { user } => Ok(*user),
            other => panic!("an erasure answers a person, not {other:?}"),
        }
    }

    /// Seals everything, and erases until nothing is left.
    pub async fn erase_all(&mut self) {
        self.record.seal_all().await;
        assert_eq!(whole_pass(&mut self.eraser()).await, Reached::End);
    }

    /// Returns the tables that contain a trace of the person.
    pub async fn traces(&self) -> Vec<String> {
        let mut found = Vec::new();
        for trace in TRACES {
            let tables = self.record.database.holding(trace).await.expect("reads");
            found.extend(tables.into_iter().map(|table| format!("{trace} in {table}")));
        }
        found
    }
}

/// Makes passes until none is cut short because the log was indexed in the background meanwhile. Everything that is to be
/// erased must be sealed.
pub async fn whole_pass(eraser: &mut Eraser) -> Reached {
    let passes = async {
        loop {
            match eraser.pass(u64::MAX).await.expect("erases") {
                Reached::Soon => tokio::time::sleep(Duration::from_millis(5)).await,
                reached => return reached,
            }
        }
    };
    tokio::time::timeout(Duration::from_mins(1), passes).await.expect("nothing holds it up")
}

pub fn person(name: &str) -> Principal {
    let principal = json!({"username": name, "roles": ["developer", "reviewer"], "token": false});
    serde_json::from_value(principal).expect("somebody")
}
