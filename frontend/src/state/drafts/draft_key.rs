//! The keys of drafts: what each belongs to, and the name under which the browser stores it.

use shared::id::{ReviewId, RunId, Username};

/// The id of a flow and the version that is edited; version 0 is a new flow that is not saved yet.
pub type Edited = (String, u32);

/// What a draft belongs to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum DraftKey {
    Review(ReviewId),
    /// A version of a flow.
    Flow(Edited),
    /// A form that is submitted separately.
    Form(Form),
}

/// A form that is submitted separately from a decision, with its object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    Launch(Edited),
    Feedback(RunId),
    Delegation(ReviewId),
    Reassignment(ReviewId),
    Withdrawal(ReviewId),
    /// The note that goes with each decision on the selected reviews.
    Selection,
}

impl Form {
    fn path(&self) -> String {
        match self {
            Self::Launch((id, version)) => format!("launch/{id}/{version}"),
            Self::Feedback(run) => format!("feedback/{run}"),
            Self::Delegation(review) => format!("delegation/{review}"),
            Self::Reassignment(review) => format!("reassignment/{review}"),
            Self::Withdrawal(review) => format!("withdrawal/{review}"),
            Self::Selection => "selection/note".to_owned(),
        }
    }

    fn of_path(path: &str) -> Option<Self> {
        let (form, of) = path.split_once('/')?;
        match form {
            "launch" => edited(of).map(Self::Launch),
            "feedback" => of.parse().ok().map(Self::Feedback),
            "delegation" => of.parse().ok().map(Self::Delegation),
            "reassignment" => of.parse().ok().map(Self::Reassignment),
            "withdrawal" => of.parse().ok().map(Self::Withdrawal),
            "selection" => (of == "note").then_some(Self::Selection),
            _ => None,
        }
    }
}

/// Parses a version of a flow, such as `article/3`.
fn edited(path: &str) -> Option<Edited> {
    let (id, version) = path.rsplit_once('/')?;
    Some((id.to_owned(), version.parse().ok()?))
}

impl From<ReviewId> for DraftKey {
    fn from(id: ReviewId) -> Self {
        Self::Review(id)
    }
}

impl From<Edited> for DraftKey {
    fn from(edited: Edited) -> Self {
        Self::Flow(edited)
    }
}

impl From<Form> for DraftKey {
    fn from(form: Form) -> Self {
        Self::Form(form)
    }
}

impl DraftKey {
    /// The key under which the browser stores this person's draft.
    pub fn storage_key(&self, owner: &Username) -> String {
        let prefix = storage_prefix(owner);
        match self {
            Self::Review(id) => format!("{prefix}review/{id}"),
            Self::Flow((id, version)) => format!("{prefix}flow/{id}/{version}"),
            Self::Form(form) => format!("{prefix}form/{}", form.path()),
        }
    }

    /// Parses a storage key; `None` if it is not the key of a draft of this person.
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

/// The prefix of the storage keys of a person's drafts. Usernames have no slash, so the prefix cannot match another
/// person's key.
pub fn storage_prefix(owner: &Username) -> String {
    format!("countersign.draft.{owner}/")
}
