//! The changes that can be committed, and their results.

mod archive;
mod credential;
mod erase;
mod sign_in;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use shared::access::{ADMIN, Involvement, Principal};
use shared::api::{Decided, FlowVersion, Token, User, UserPatch};
use shared::definition::Flow;
use shared::deputy::Deputyship;
use shared::feedback::{Feedback, NewFeedback};
use shared::id::{DeputyId, FeedbackId, FlowId, GrantId, ReviewId, RunId, TokenId, Username};
use shared::notification::Notifications;
use shared::review::Review;
use shared::run::{Context, Run};
use shared::saved_view::Views;
use shared::time::{Span, Timestamp};

use crate::engine::{Carrier, GuardrailReply, Input};

pub use archive::{NewArchive, RunInArchive};
pub use credential::{Credential, CredentialKind, CredentialUse, NewCredential, SessionClient};
pub use erase::NewErasure;
pub use sign_in::{
    ConfirmedSession, FactorChange, FailedLogin, NewSession, PasswordChange, Proof, ProviderAccount, ProviderSignIn,
    RefusedSignIn, SecondFactor, SignIn,
};

/// A change to commit, with its preconditions.
#[derive(Debug, Clone)]
pub struct Change {
    /// Who makes the change; their rights are read again in its transaction. `None`: the server itself.
    pub by: Option<Actor>,
    /// If the key was used before, the result of the first time is returned.
    pub key: Option<IdempotencyKey>,
    /// What the change does.
    pub operation: Operation,
}

impl Change {
    /// Creates a change that the server itself makes.
    pub fn by_server(operation: Operation) -> Self {
        Self { by: None, key: None, operation }
    }

    /// The answers of programs that guardrails ask, as known to a decision. `None` if the change is not a decision.
    pub(super) fn replies(&mut self) -> Option<&mut Vec<GuardrailReply>> {
        let (Operation::Review { input, .. } | Operation::Run { input, .. }) = &mut self.operation else { return None };
        match &mut **input {
            Input::Decide { replies, .. } | Input::CallBack { replies, .. } => Some(replies),
            _ => None,
        }
    }
}

/// The person or program that makes a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// Who it is, with the rights at the time of authentication.
    pub principal: Principal,
    /// The SHA-256 of the session or token that authenticated them. It must still be valid in the transaction.
    pub credential: Option<[u8; 32]>,
    /// When their rights change by themselves: a deputyship begins or ends, or the session or token expires.
    pub rights_until: Option<Timestamp>,
    /// The people whose deputy they are now, also those who may not log in at the moment.
    pub deputy_of: BTreeSet<Username>,
    /// How recent their last login must be for changes that give access; the transaction compares. `None` if any login
    /// will do: a token was created soon after one.
    pub login_within: Option<Span>,
}

impl Actor {
    /// Creates an actor for whom the server acts, without a session or token.
    pub fn of(principal: Principal) -> Self {
        Self { principal, credential: None, rights_until: None, deputy_of: BTreeSet::new(), login_within: None }
    }

    /// Makes the idempotency key of a request by this actor. All sessions of a person share their keys; a token has its
    /// own, so that it never receives a result meant for its owner.
    pub fn key(&self, target: &str, key: String, body: [u8; 32]) -> IdempotencyKey {
        use std::fmt::Write as _;
        let mut scope = self.principal.username.to_string();
        if self.principal.token {
            scope.push_str(" token:");
            for byte in self.credential.iter().flatten() {
                let _ = write!(scope, "{byte:02x}");
            }
        }
        IdempotencyKey { scope: format!("{scope} {target}"), key, body }
    }
}

/// An idempotency key: a repeated request with the same key has no further effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The principal, method and path. Requests with different scopes never share a key.
    pub scope: String,
    /// The key that the client chose; at most 255 bytes.
    pub key: String,
    /// The SHA-256 of the body. The key is refused with any other body.
    pub body: [u8; 32],
}

/// The operations that can be committed.
#[derive(Debug, Clone)]
pub enum Operation {
    /// Starts a run. Returns [`Committed::Run`].
    Launch {
        /// The id of the new run; `CommitError::Conflict` if it exists.
        run: RunId,
        /// The flow to run; `CommitError::NotFound` if it does not exist.
        flow: FlowId,
        /// The version; `None` for the newest.
        version: Option<u32>,
        /// The input of the run, checked against the flow's `input`.
        input: shared::JsonMap,
        /// User, tenant, session and metadata of the run.
        context: Box<Context>,
        /// The URL to which the end of the run is posted.
        callback_url: Option<String>,
    },
    /// Asks people a question without a flow. Returns [`Committed::Review`].
    Ask {
        /// The id of the run that carries the question.
        run: RunId,
        /// The question.
        question: Box<Carrier>,
    },
    /// Passes an input to a run. Returns [`Committed::Run`].
    Run {
        /// The run; `CommitError::NotFound` if it does not exist.
        run: RunId,
        /// The input of the engine.
        input: Box<Input>,
    },
    /// Passes an input to the run of a review. Returns [`Committed::Decided`], or [`Committed::Done`] for a view.
    Review {
        /// The review; its run is looked up.
        review: ReviewId,
        /// The input of the engine.
        input: Box<Input>,
    },
    /// Gives feedback on an agent of a run. Returns [`Committed::Feedback`].
    GiveFeedback {
        /// The run in which the agent worked.
        run: RunId,
        /// Whether the actor may decide one of its reviews, or has.
        involvement: Involvement,
        /// The feedback.
        feedback: Box<NewFeedback>,
    },
    /// Retracts feedback; `CommitError::NotFound` if it does not exist.
    RetractFeedback(FeedbackId),
    /// Saves a flow: as a new version, unless the newest version has the same source and calls the same versions.
    /// Returns [`Committed::Flow`].
    SaveFlow(Box<NewFlow>),
    /// Adds a person. Returns [`Committed::User`]; `CommitError::Conflict` if the name is taken.
    CreateUser(Box<NewUserRecord>),
    /// Changes a person. A new password or a deactivation ends their sessions, tokens and links; a new password also
    /// removes their Slack member ID, unless another one is given; a deactivation or a lost role revokes their grants.
    /// Returns [`Committed::User`].
    UpdateUser(Box<UserChange>),
    /// Makes a person the deputy of another. Returns [`Committed::Deputy`].
    NameDeputy(Box<Deputyship>),
    /// Removes a deputyship. Returns [`Committed::Done`].
    RemoveDeputy(DeputyId),
    /// Revokes a grant. Returns [`Committed::Done`].
    RevokeGrant(GrantId),
    /// Stores how a person wants to be notified. Returns [`Committed::Done`]; `CommitError::Conflict` if the Slack
    /// member ID belongs to someone else, `CommitError::Forbidden` if it is new and the caller may not set it.
    ChooseNotifications(Box<ChosenNotifications>),
    /// Replaces a person's saved views. Returns [`Committed::Done`]; `CommitError::Conflict` if they are not made from
    /// the stored revision.
    SaveViews {
        /// The person, who is the caller.
        username: Username,
        /// The new views, with the revision that they were made from.
        views: Box<Views>,
    },
    /// Adds a session, token or link. Returns [`Committed::Token`] for a token, otherwise [`Committed::Done`].
    AddCredential(Box<NewCredential>),
    /// Logs a person in. What was checked before is checked again: `CommitError::NotFound` or
    /// `CommitError::Unauthenticated` if it no longer holds. Returns [`Committed::User`]. With the identity provider
    /// also `CommitError::NotFound` if the person is unknown and must not be added, and `CommitError::Conflict` if
    /// the name belongs to someone else.
    StartSession(Box<NewSession>),
    /// Records that a person whom the provider signed in was not admitted. Returns [`Committed::Done`].
    RefuseSignIn(Box<RefusedSignIn>),
    /// Replaces the caller's own password. Returns [`Committed::Done`].
    ChangePassword(Box<PasswordChange>),
    /// Changes a person's second factor. Returns [`Committed::Done`].
    ChangeSecondFactor {
        /// The person whose second factor it is.
        username: Username,
        /// The step of its setup or removal.
        change: FactorChange,
    },
    /// Links a person to an account of the identity provider, or removes the link. Either ends their password,
    /// sessions, tokens and links. Returns [`Committed::Done`]; `CommitError::Conflict` if the account belongs to
    /// someone else.
    LinkAccount {
        /// The person to link.
        username: Username,
        /// The account at the provider. `None` removes the link.
        account: Option<ProviderAccount>,
    },
    /// Confirms the actor's session. Returns [`Committed::Done`].
    ConfirmSession(Box<ConfirmedSession>),
    /// Ends a session. Returns [`Committed::Done`].
    EndSession {
        /// The SHA-256 of the session's secret.
        digest: [u8; 32],
    },
    /// Revokes a token. Returns [`Committed::Done`].
    RevokeToken(TokenId),
    /// Records a failed login. Returns [`Committed::Done`].
    LoginFailed(Box<FailedLogin>),
    /// Archives finished runs: records where they are, and removes them from the runs. Returns [`Committed::Done`];
    /// `CommitError::Conflict` if one of them has changed since it was read, or another archive was made meanwhile.
    ArchiveRuns(Box<NewArchive>),
    /// Erases a person who may no longer log in: the account loses their data, and gets another name. Other places that
    /// name them are erased afterwards. Returns [`Committed::User`], also if it was done before;
    /// `CommitError::Conflict` if something still waits for them.
    EraseUser(Username),
    /// Removes an erased person from entries and from the rows that belong to these. Returns [`Committed::Done`];
    /// `CommitError::Conflict` if any of it has changed since it was read.
    EraseEntries(Box<NewErasure>),
    /// Records that an operator accepted another head of the audit log. Returns [`Committed::Done`].
    AcceptHead {
        /// The head that was kept before, if any.
        previous: Option<String>,
        /// The head that was accepted. `None`: nothing is sealed.
        head: Option<String>,
    },
}

impl Operation {
    /// Creates a [`Self::Launch`] of the newest version, without a context and a callback.
    pub fn launch(run: RunId, flow: FlowId, input: shared::JsonMap) -> Self {
        Self::Launch { run, flow, version: None, input, context: Box::default(), callback_url: None }
    }
}

/// A flow to save.
#[derive(Debug, Clone)]
pub struct NewFlow {
    /// The checked flow.
    pub flow: Flow,
    /// The file as it was written.
    pub source: String,
    /// `sha256:` of the source.
    pub digest: String,
}

/// A person to add.
#[derive(Debug, Clone)]
pub struct NewUserRecord {
    /// The account, with its roles; the username must not be taken.
    pub user: User,
    /// The PHC string of their password; `None` if they have none.
    pub password_hash: Option<String>,
}

/// A change to a person's account.
#[derive(Clone)]
pub struct UserChange {
    /// The person whose account changes; they must not have been erased.
    pub username: Username,
    /// The change; its `password` is ignored.
    pub patch: UserPatch,
    /// The PHC string of the new password, if it changes. It ends the person's sessions, tokens and links.
    pub password_hash: Option<String>,
}

impl UserChange {
    /// Whether the person may lose rights.
    pub fn takes_rights(&self) -> bool {
        self.patch.active == Some(false) || self.patch.roles.is_some()
    }

    /// The new member ID in Slack, if it changes: what it lets somebody do ends with their other access.
    pub fn slack_user_id(&self) -> Option<Option<&str>> {
        match &self.patch.slack_user_id {
            Some(id) => Some(Some(id.as_str()).filter(|id| !id.is_empty())),
            None => self.password_hash.is_some().then_some(None),
        }
    }

    /// Whether an admin would no longer be one.
    pub fn takes_admin(&self) -> bool {
        let UserPatch { active, roles, .. } = &self.patch;
        *active == Some(false) || roles.as_ref().is_some_and(|roles| !roles.iter().any(|role| role == ADMIN))
    }
}

impl std::fmt::Debug for UserChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UserChange").field("username", &self.username).finish_non_exhaustive()
    }
}

/// How a person wants to be notified.
#[derive(Debug, Clone)]
pub struct ChosenNotifications {
    /// The person who chose; only admins choose for someone else.
    pub username: Username,
    /// The occasions and channels that they chose.
    pub notifications: Notifications,
}

/// The result of a commit. It is stored under the idempotency key, except for tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Committed {
    /// A run after the change.
    Run {
        /// The run as the API shows it.
        run: Box<Run>,
    },
    /// A review that was requested.
    Review {
        /// The review as the API shows it.
        review: Box<Review>,
    },
    /// A review after the change.
    Decided {
        /// What happened, and the review.
        decided: Box<Decided>,
    },
    /// Feedback on an agent of a run.
    Feedback {
        /// The feedback as stored.
        feedback: Box<Feedback>,
    },
    /// A saved flow.
    Flow {
        /// The newest version: a new one, or the existing one that is the same.
        flow: Box<FlowVersion>,
    },
    /// A person who was added or changed.
    User {
        /// The account after the change.
        user: Box<User>,
    },
    /// A deputyship that was added.
    Deputy {
        /// The deputyship, as it was stored.
        deputyship: Box<Deputyship>,
    },
    /// A token, without its secret.
    Token {
        /// The token as lists show it.
        token: Box<Token>,
    },
    /// The change was made, and has no result.
    Done,
}
