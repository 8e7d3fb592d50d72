//! The shared state of the pane: the review, what the person has seen and typed, and their decision.

use std::collections::BTreeMap;
use std::sync::Arc;

use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::access::{Access, Act};
use shared::api::Decided;
use shared::decision::Verdict;
use shared::error::{Mistake, Problem};
use shared::id::ReviewId;
use shared::review::{Review, ReviewOption};

use crate::client::{Api, Live, Session, Workspace, use_api};
use crate::components::focus::{MISTAKE, focus_on};
use crate::components::notice::Notifier;
use crate::components::schema_form::next_key;
use crate::state::changes;
use crate::state::drafts::chosen::choice;
use crate::state::drafts::{Draft, Form};
use crate::state::guardrail_notes::Answered;
use crate::state::inbox::InboxRow;
use crate::state::option_fields::{self, FIELDS_PATH};
use crate::state::outbox::Stage;
use crate::state::verdict::keys::on_enter;
use crate::state::verdict::{Intent, sends_edits};

/// A selector for the first button of an action that is not decided yet.
const UNDECIDED: &str = ".card.action:not(.decided) :is(.unfold, footer:not([hidden]) button)";

/// A mistake in a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// The message, with the name of the field.
    says: String,
    /// Whether it is in an edit, which only some decisions send.
    is_of_edit: bool,
}

/// The state shared by the parts of the pane. Cheap to copy into closures.
#[derive(Clone, Copy)]
pub struct Pane {
    pub id: ReviewId,
    /// The newest version of the review.
    pub review: Memo<Arc<Review>>,
    /// The review as the person saw it before it changed; `None` if they have seen the newest content.
    pub before: RwSignal<Option<Arc<Review>>>,
    /// The review of the previous round; `None` until the run's report is loaded, and in the first round.
    pub round: RwSignal<Option<Arc<Review>>>,
    /// The newest revision that the person has seen.
    pub known: RwSignal<u32>,
    /// Whether this person may decide the review, and if not, why.
    pub access: Memo<Access>,
    /// Mistakes in the draft, found here or by the server.
    pub mistakes: RwSignal<Vec<Mistake>>,
    /// The id of the option whose form is open.
    pub filling: RwSignal<Option<String>>,
    /// Whether the dialog that reassigns the review is open.
    pub reassigning: RwSignal<bool>,
    /// Notified when the first editable value or action shall open its editor.
    pub edit: Trigger,
    /// The mistakes in open forms, by a number of the form.
    pub flaws: RwSignal<BTreeMap<u64, Flaw>>,
    /// The last check of the draft by guardrails.
    pub checked: RwSignal<Answered>,
    /// Drafts and decisions on their way.
    pub workspace: Workspace,
    pub api: Api,
    pub live: Live,
    pub session: Session,
    pub notifier: Notifier,
    /// Whether the content is only shown, and decided elsewhere on the page.
    only_shown: bool,
}

impl Pane {
    /// Creates the state of a pane; `None` if the review is not in memory. With `only_shown`, nothing in it can be edited
    /// or decided.
    pub fn new(id: ReviewId, row: Memo<Option<InboxRow>>, only_shown: bool) -> Option<Self> {
        let session = expect_context::<Session>();
        let first = row.get_untracked()?.review;
        let fallback = Arc::clone(&first);
        let review = Memo::new(move |_| row.get().map_or_else(|| Arc::clone(&fallback), |row| row.review));
        let gone = Memo::new(move |_| row.with(|row| row.as_ref().is_some_and(|row| row.gone)));
        let access = Memo::new(move |_| {
            if gone.get() {
                return Access::Denied("you no longer have access to this review");
            }
            review.with(|review| session.access(Act::Decide(review)))
        });
        let workspace = expect_context::<Workspace>();
        // A draft on an older revision is shown with what has changed since.
        let draft = workspace.draft_now(id);
        let before = draft.is_behind(&first).then(|| draft.saw(&first)).flatten().map(Arc::new);
        let known = if draft.is_behind(&first) { draft.revision } else { first.revision };
        let pane = Self {
            id,
            review,
            before: RwSignal::new(before),
            round: RwSignal::new(None),
            known: RwSignal::new(known),
            access,
            mistakes: RwSignal::new(Vec::new()),
            filling: RwSignal::new(workspace.outbox.with_untracked(|outbox| {
                option_fields::begun(&first, &draft, outbox.get(id).map(|sending| &sending.request))
            })),
            reassigning: RwSignal::new(false),
            edit: Trigger::new(),
            flaws: RwSignal::new(BTreeMap::new()),
            checked: RwSignal::new(None),
            workspace,
            api: use_api(),
            live: expect_context::<Live>(),
            session,
            notifier: expect_context::<Notifier>(),
            only_shown,
        };
        pane.keep_what_was_seen();
        pane.take_refusals();
        Some(pane)
    }

    /// Takes over the mistakes that the server finds in a decision. They are shown at their fields, in the form where
    /// they were typed, and another decision can be made.
    fn take_refusals(self) {
        Effect::new(move |_| {
            let refused = self.workspace.outbox.with(|outbox| {
                let sending = outbox.get(self.id)?;
                let Stage::Refused(problem) = &sending.stage else { return None };
                (!problem.errors.is_empty()).then(|| (problem.errors.clone(), sending.request.verdict.clone()))
            });
            let Some((mistakes, verdict)) = refused else { return };
            let is_in_form = mistakes.iter().any(|mistake| mistake.path.starts_with(FIELDS_PATH));
            self.mistakes.set(mistakes);
            if !self.only_shown {
                if let (Verdict::Choose { option, .. }, true) = (verdict, is_in_form) {
                    self.filling.set(Some(option));
                }
                focus_on(MISTAKE);
            }
            self.workspace.dismiss(self.id);
        });
    }

    /// Keeps the content before a change, so that the difference can be shown.
    fn keep_what_was_seen(self) {
        Effect::new(move |previous: Option<Arc<Review>>| {
            let now = self.review.get();
            // After several changes, the content before the first of them stays.
            let known = |previous: &Arc<Review>| previous.revision == self.known.get_untracked();
            if let Some(previous) = previous.filter(known).filter(|previous| previous.revision < now.revision) {
                // The person knows what they have changed by deciding.
                if changes::is_own(&previous, &now, self.session.username().as_deref()) {
                    self.known.set(now.revision);
                    self.workspace.see(&now);
                } else {
                    self.before.set(Some(previous));
                }
            }
            now
        });
    }

    /// Reads the draft by reference, and follows it.
    pub fn with_draft<U>(self, look: impl FnOnce(&Draft) -> U) -> U {
        self.workspace.with_draft(self.id, look)
    }

    /// The role of a card in the pane, if it is no landmark: beside other reviews, its name says too little.
    pub fn card_role(self) -> Option<&'static str> {
        self.only_shown.then_some("group")
    }

    /// Whether it is the only review on the page, with fields and keys of its own.
    pub fn is_alone(self) -> bool {
        !self.only_shown
    }

    /// The role of a message that is announced when it changes. The page of several reviews announces a summary instead.
    pub fn status_role(self) -> Option<&'static str> {
        (!self.only_shown).then_some("status")
    }

    /// Whether this person can decide the review in this pane now.
    pub fn is_open(self) -> bool {
        !self.only_shown && self.is_undecided()
    }

    /// Whether this person can decide the review now: it is pending, they may decide, and no decision is on its way.
    pub fn is_undecided(self) -> bool {
        self.review.with(|review| review.is_pending())
            && self.access.get().is_allowed()
            && self.workspace.outbox.with(|outbox| {
                // One that another decision was ahead of is over, also if the review turns out to be pending after all.
                outbox.get(self.id).is_none_or(|sending| sending.stage == Stage::Overtaken)
            })
    }

    /// Whether the content has changed since the person read it, or since they wrote their draft.
    pub fn has_changed(self) -> bool {
        let known = self.known.get();
        let behind = |review: &Review| {
            self.workspace.drafts.with(|drafts| drafts.review(self.id).is_some_and(|draft| draft.is_behind(review)))
        };
        self.review.with(|review| review.revision > known || behind(review))
    }

    /// Records that the person has looked at the change.
    pub fn read_change(self) {
        let review = self.review.get_untracked();
        self.known.set(review.revision);
        self.workspace.see(&review);
        self.mistakes.set(Vec::new());
        // The server records that the person has seen this revision. Another one shows itself as the next change.
        let (api, id, revision) = (self.api, self.id, review.revision);
        spawn_local(async move {
            drop(api.viewed_review(id, revision).await);
        });
    }

    /// The option whose form is open. Follows it.
    pub fn filled(self) -> Option<ReviewOption> {
        let id = self.filling.get()?;
        let is_offered = |option: &&ReviewOption| option.id == id && option.fields.is_some();
        self.review.with(|review| review.options.iter().find(is_offered).cloned())
    }

    /// Does what Ctrl+Enter does: sends the open form, the choices or the text. If a choice has to be made first, moves
    /// the focus there.
    pub fn send(self) {
        if !untrack(move || self.is_open()) {
            return;
        }
        let (review, draft) = (self.review.get_untracked(), self.workspace.draft_now(self.id));
        let filled = untrack(move || self.filled()).map(|option| option.id);
        match on_enter(&review, &draft, filled.as_deref()) {
            Some(intent) => self.decide(&intent),
            None => self.go_to_decision(),
        }
    }

    /// Moves the focus to the next thing to decide.
    pub fn go_to_decision(self) {
        let (review, draft) = (self.review.get_untracked(), self.workspace.draft_now(self.id));
        // One button can approve all actions, unless some are decided already or each must be decided separately.
        if review.is_one_by_one() || review.actions.iter().any(|action| choice(action, &draft).is_some()) {
            focus_on(UNDECIDED);
        } else {
            focus_on(".acts button");
        }
    }

    /// Decides the review, if the person can, has seen all changes, and the draft is complete; otherwise shows what is
    /// missing.
    pub fn decide(self, intent: &Intent) {
        if !untrack(move || self.is_open()) {
            return;
        }
        if untrack(move || self.has_changed()) {
            self.notifier.bad("The content has changed. Look at the change before you decide.");
            return;
        }
        let sends_edits = sends_edits(&self.review.get_untracked(), intent);
        let flaw = self.flaws.with_untracked(|flaws| {
            flaws.values().find(|flaw| sends_edits || !flaw.is_of_edit).map(|flaw| flaw.says.clone())
        });
        if let Some(flaw) = flaw {
            self.notifier.bad(format!("Nothing was sent. {flaw}"));
            focus_on(MISTAKE);
            return;
        }
        match self.workspace.decide(&self.review.get_untracked(), intent) {
            Ok(()) => self.mistakes.set(Vec::new()),
            Err(mistakes) => {
                self.mistakes.set(mistakes);
                focus_on(MISTAKE);
            }
        }
    }

    /// Takes over the answer to what a dialog has sent: forgets what was typed in its form and closes it, or sets why it
    /// was refused.
    pub fn take_answer(
        self,
        answer: Result<Decided, Problem>,
        form: &Form,
        open: RwSignal<bool>,
        problem: RwSignal<Option<String>>,
    ) -> Result<(), Problem> {
        let decided = answer.inspect_err(|refused| problem.set(Some(refused.to_string())))?;
        self.workspace.write_form(form, None, false);
        open.set(false);
        self.live.inbox.update(|inbox| inbox.put(decided.review, self.live.server_now()));
        Ok(())
    }

    /// Prevents every decision while `flaw` returns a mistake of a form.
    pub fn watch(self, flaw: impl Fn() -> Option<String> + 'static) {
        self.watch_form(false, flaw);
    }

    /// Like [`Self::watch`], for a form whose content only some decisions send.
    pub fn watch_edit(self, flaw: impl Fn() -> Option<String> + 'static) {
        self.watch_form(true, flaw);
    }

    fn watch_form(self, is_of_edit: bool, flaw: impl Fn() -> Option<String> + 'static) {
        let own = next_key();
        Effect::new(move |_| {
            let flaw = flaw().map(|says| Flaw { says, is_of_edit });
            self.flaws.update(|flaws| drop(flaws.remove(&own)));
            if let Some(flaw) = flaw {
                self.flaws.update(|flaws| drop(flaws.insert(own, flaw)));
            }
        });
        // It fails only if the pane is gone too.
        on_cleanup(move || drop(self.flaws.try_update(|flaws| flaws.remove(&own))));
    }
}
