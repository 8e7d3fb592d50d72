//! The changes that can be committed, and their results.

mod archive;
mod credential;
mod erase;
mod sign_in;

use serde::{Deserialize, Serialize};
use shared::access::{ADMIN, Involvement, Principal};
use shared::api::{Decided, FlowVersion, Token, User, UserPatch};
use shared::definition::Flow;
use shared::deputy::Deputyship;
use shared::feedback::{Feedback, NewFeedback};
use shared::id::{DeputyId, FlowId, GrantId, ReviewId, RunId, TokenId, Username};
use shared::notification::Notifications;
use shared::review::Review;
use shared::run::{Context, Run};
use shared::time::Timestamp;

use crate::engine::{Carrier, Input, Looked};

pub use archive::{NewArchive, RunInArchive};
pub use credential::{Credential, CredentialKind, NewCredential, SessionClient};
pub use erase::NewErasure;
pub use sign_in::{
    FactorChange, NewSession, PasswordChange, Proof, ProviderAccount, ProviderSignIn, RefusedSignIn, SecondFactor,
    SignIn,
};

/// One change with every precondition that it rests on.
#[derive(Debug, Clone)]
pub struct Change {
    /// Who makes it; their rights are read again in its transaction. Nobody: the server itself.
    pub by: Option<Actor>,
    /// Answers the same as the first time where it was used before.
    pub key: Option<IdempotencyKey>,
    /// What is to be done.
    pub operation: Operation,
}

impl Change {
    /// A change that the server itself makes.
    pub fn by_server(operation: Operation) -> Self {
        Self { by: None, key: None, operation }
    }

    /// What is known to a decision of what programs say that guardrails ask; none where nobody decides.
    pub(super) fn looked(&mut self) -> Option<&mut Vec<Looked>> {
        let (Operation::Review { input, .. } | Operation::Run { input, .. }) = &mut self.operation else { return None };
        match &mut **input {
            Input::Decide { looked, .. } | Input::CallBack { looked, .. } => Some(looked),
            _ => None,
        }
    }
}

/// Who makes a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// Who, with the rights that they had when they were let in.
    pub principal: Principal,
    /// The SHA-256 of the session or token that let them in: it must still hold in the transaction.
    pub credential: Option<[u8; 32]>,
    /// When their rights change by themselves: a time in which they stand in for somebody begins or ends, or what let them
    /// in runs out.
    pub rights_until: Option<Timestamp>,
}

impl Actor {
    /// Somebody for whom the server acts: no session or token let them in.
    pub fn of(principal: Principal) -> Self {
        Self { principal, credential: None, rights_until: None }
    }

    /// The idempotency key of a request of theirs. A person has the same keys in all their sessions; a token has keys of
    /// its own, so that it is never answered what its maker was answered.
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

/// The key under which a client may say the same thing twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// Principal, method and path: two of them never share a key.
    pub scope: String,
    /// What the client chose; at most 255 bytes.
    pub key: String,
    /// SHA-256 of the body: another body under the same key is refused.
    pub body: [u8; 32],
}

/// What is to be done.
#[derive(Debug, Clone)]
pub enum Operation {
    /// Starts a run. Answers [`Committed::Run`].
    Launch {
        /// The new run's id; [`CommitError::Conflict`] where there is such a run.
        run: RunId,
        /// The flow to run; [`CommitError::NotFound`] where there is none of that name.
        flow: FlowId,
        /// The version; none: the newest.
        version: Option<u32>,
        /// What the run is started with, checked against the flow's `input`.
        input: shared::JsonMap,
        /// User, tenant, session and metadata of the run.
        context: Context,
    },
    /// Asks people something without a flow. Answers [`Committed::Review`].
    Ask {
        /// The run that carries it.
        run: RunId,
        /// What is asked.
        question: Box<Carrier>,
    },
    /// Tells a run something. Answers [`Committed::Run`].
    Run {
        /// The run that is told; [`CommitError::NotFound`] where there is no such run.
        run: RunId,
        /// The input of the engine.
        input: Box<Input>,
    },
    /// Tells the run of a review something. Answers [`Committed::Decided`].
    Review {
        /// The review; its run is looked up.
        review: ReviewId,
        /// The input of the engine.
        input: Box<Input>,
    },
    /// Says how an agent of a run worked. Answers [`Committed::Feedback`].
    GiveFeedback {
        /// The run in which the agent worked.
        run: RunId,
        /// Whether the actor may decide one of its reviews, or has.
        involvement: Involvement,
        /// What they say.
        feedback: Box<NewFeedback>,
    },
    /// Saves a flow: a new version, or the same where the source is the newest version's. Answers [`Committed::Flow`].
    SaveFlow(Box<NewFlow>),
    /// Adds a person. Answers [`Committed::User`]; a taken name is [`CommitError::Conflict`].
    CreateUser(Box<NewUserRecord>),
    /// Changes a person; roles or activity that changed end what rests on them. Answers [`Committed::User`].
    UpdateUser(Box<UserChange>),
    /// Says that somebody stands in for somebody else. Answers [`Committed::Deputy`].
    NameDeputy(Box<Deputyship>),
    /// Takes that back. Answers [`Committed::Done`].
    RemoveDeputy(DeputyId),
    /// Takes a grant back. Answers [`Committed::Done`].
    RevokeGrant(GrantId),
    /// Says what somebody wants to be told. Answers [`Committed::Done`]; a name in Slack that is somebody else's is
    /// [`CommitError::Conflict`].
    ChooseNotifications(Box<ChosenNotifications>),
    /// Adds a session, token or link. Answers [`Committed::Token`] for a token, else [`Committed::Done`].
    AddCredential(Box<NewCredential>),
    /// Logs somebody in. What was checked before is checked again; where it no longer holds, [`CommitError::NotFound`] or
    /// [`CommitError::Unauthenticated`]. Answers [`Committed::User`]. By the provider also: somebody whom nobody knows and
    /// who is not to be added is [`CommitError::NotFound`], a name that is somebody else's [`CommitError::Conflict`].
    StartSession(Box<NewSession>),
    /// Puts on the record that somebody whom the provider signed in was not let in. Answers [`Committed::Done`].
    RefuseSignIn(Box<RefusedSignIn>),
    /// Replaces the caller's own password. Answers [`Committed::Done`].
    ChangePassword(Box<PasswordChange>),
    /// Changes somebody's second factor. Answers [`Committed::Done`].
    ChangeSecondFactor {
        /// The person whose second factor it is.
        username: Username,
        /// The step of its setup or removal.
        change: FactorChange,
    },
    /// Lets somebody sign in by the identity provider from now on, and no longer by a password; or no longer by the
    /// provider. What let them in ends. Answers [`Committed::Done`]; an account that is somebody else's is
    /// [`CommitError::Conflict`].
    LinkAccount {
        /// The person whose account it is.
        username: Username,
        /// By what the provider knows them.
        account: Option<ProviderAccount>,
    },
    /// Ends a session. Answers [`Committed::Done`].
    EndSession {
        /// The SHA-256 of its secret.
        digest: [u8; 32],
    },
    /// Revokes a token of this person (of anybody, where `owner` is none). Answers [`Committed::Done`].
    RevokeToken {
        /// The token that lets nobody in any more.
        id: TokenId,
        /// Whose it must be.
        owner: Option<Username>,
    },
    /// Puts a failed login on the record. Answers [`Committed::Done`].
    LoginFailed {
        /// The name that was tried; only where such a person exists.
        username: Username,
    },
    /// Makes finished runs archived ones: says on the record where they are, and takes them out of the runs. Answers
    /// [`Committed::Done`]; [`CommitError::Conflict`] where something has happened to one of them since it was read, or
    /// another archive was made meanwhile.
    ArchiveRuns(Box<NewArchive>),
    /// Erases somebody who may no longer log in: the account loses what it has of them, and gets another name. What else
    /// names them is erased afterwards. Answers [`Committed::User`], also where it was done before;
    /// [`CommitError::Conflict`] where something still waits for them.
    EraseUser(Username),
    /// Takes somebody who was erased out of entries, and out of what belongs to them. Answers [`Committed::Done`];
    /// [`CommitError::Conflict`] where any of it has changed since it was read.
    EraseEntries(Box<NewErasure>),
    /// Puts on the record that an operator accepted another head of the audit. Answers [`Committed::Done`].
    AcceptHead {
        /// The head that was kept until then.
        previous: Option<String>,
        /// The head that was accepted; none: nothing is sealed.
        head: Option<String>,
    },
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
    /// PHC string of their password.
    pub password_hash: Option<String>,
}

/// What changes of a person.
#[derive(Clone)]
pub struct UserChange {
    /// The person whose account changes; they must not have been erased.
    pub username: Username,
    /// What; `password` is ignored here.
    pub patch: UserPatch,
    /// PHC string of the new password; ends everything that lets them in.
    pub password_hash: Option<String>,
}

impl UserChange {
    /// Whether somebody may have fewer rights afterwards.
    pub fn takes_rights(&self) -> bool {
        self.patch.active == Some(false) || self.patch.roles.is_some()
    }

    /// Whether somebody who is an admin would not be one any more.
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

/// What somebody wants to be told.
#[derive(Debug, Clone)]
pub struct ChosenNotifications {
    /// The person who chose; only admins choose for somebody else.
    pub username: Username,
    /// The occasions and channels that they chose.
    pub notifications: Notifications,
}

/// What a commit answers; kept under its idempotency key (a token never).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Committed {
    /// A run after the change.
    Run {
        /// The run as the API shows it.
        run: Box<Run>,
    },
    /// A review that was asked.
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
        /// As it was given.
        feedback: Box<Feedback>,
    },
    /// A saved flow.
    Flow {
        /// The newest version: a new one, or the one whose source is the same.
        flow: Box<FlowVersion>,
    },
    /// A person who was added or changed.
    User {
        /// The account after the change.
        user: Box<User>,
    },
    /// A time in which somebody stands in for somebody else.
    Deputy {
        /// The deputyship, as it was stored.
        deputyship: Box<Deputyship>,
    },
    /// A token, without its secret.
    Token {
        /// The token as lists show it.
        token: Box<Token>,
    },
    /// Nothing to say.
    Done,
}
