//! The subjects of drafts, and the names under which the browser stores them.

use shared::id::{ReviewId, RunId, Username};

/// A flow, and the version that is edited; 0: it is not saved yet.
pub type Edited = (String, u32);

/// What a draft is of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    Review(ReviewId),
    /// A version of a flow.
    Flow(Edited),
    /// A form that is sent by itself.
    Form(Form),
}

/// A form that is sent by itself, and what it is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// Starts a run of a version of a flow.
    Launch(Edited),
    /// Gives feedback on a run.
    Feedback(RunId),
    /// Hands a review to somebody else.
    Delegation(ReviewId),
    /// Takes a review back.
    Withdrawal(ReviewId),
}

impl Form {
    fn path(&self) -> String {
        match self {
            Self::Launch((id, version)) => format!("launch/{id}/{version}"),
            Self::Feedback(run) => format!("feedback/{run}"),
            Self::Delegation(review) => format!("delegation/{review}"),
            Self::Withdrawal(review) => format!("withdrawal/{review}"),
        }
    }

    fn of_path(path: &str) -> Option<Self> {
        let (form, of) = path.split_once('/')?;
        match form {
            "launch" => edited(of).map(Self::Launch),
            "feedback" => of.parse().ok().map(Self::Feedback),
            "delegation" => of.parse().ok().map(Self::Delegation),
            "withdrawal" => of.parse().ok().map(Self::Withdrawal),
            _ => None,
        }
    }
}

/// A version of a flow, as `article/3`.
fn edited(path: &str) -> Option<Edited> {
    let (id, version) = path.rsplit_once('/')?;
    Some((id.to_owned(), version.parse().ok()?))
}

impl From<ReviewId> for Subject {
    fn from(id: ReviewId) -> Self {
        Self::Review(id)
    }
}

impl From<Edited> for Subject {
    fn from(edited: Edited) -> Self {
        Self::Flow(edited)
    }
}

impl From<Form> for Subject {
    fn from(form: Form) -> Self {
        Self::Form(form)
    }
}

impl Subject {
    /// Under which name the browser keeps a person's draft of it.
    pub fn storage_key(&self, owner: &Username) -> String {
        let prefix = storage_prefix(owner);
        match self {
            Self::Review(id) => format!("{prefix}review/{id}"),
            Self::Flow((id, version)) => format!("{prefix}flow/{id}/{version}"),
            Self::Form(form) => format!("{prefix}form/{}", form.path()),
        }
    }

    /// What a draft of a person is of, by the name under which the browser keeps it.
    pub fn of_storage_key(key: &str, owner: &Username) -> Option<Self> {
        let (kind, of) = key.strip_prefix(&storage_prefix(owner))?.split_once('/')?;
        match kind {
            "review" => of.parse().ok().map(Self::Review),
            "flow" => edited(of).map(Self::Flow),
            "form" => Form::of_path(of).map(Self::Form),
            _ => None,
        }
    }
}

/// How the names of all drafts of a person begin. No username has a slash: that of nobody else begins so too.
pub fn storage_prefix(owner: &Username) -> String {
    format!("countersign.draft.{owner}/")
}
