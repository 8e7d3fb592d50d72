//! Selecting reviews in the inbox: the box of a row, the bar below the list, and what decides whether a review can be
//! selected.

use leptos::prelude::*;
use shared::access::{Access, Act, Principal, access};
use shared::id::ReviewId;

use super::glyph::Glyph;
use super::inert::named;
use super::notice::Notifier;
use crate::client::{GlobalSignal, Live, Session, Workspace};
use crate::state::drafts::Form;
use crate::state::inbox::InboxRow;
use crate::state::outbox::Stage;
use crate::state::selection::{self, Begun, MAX_SELECTED, Selection};
use crate::state::selection_note::Note;
use crate::state::standing::{Standing, standing};
use crate::state::words::count;

/// The selection of the inbox. Cheap to copy into closures.
#[derive(Clone, Copy)]
pub struct Selecting {
    /// The selected reviews.
    pub selection: GlobalSignal<Selection>,
    live: Live,
    session: Session,
    workspace: Workspace,
    notifier: Notifier,
}

impl Selecting {
    /// Creates an empty selection, which follows its reviews while the calling component exists. `on_page`: whether the
    /// page of the selection is open.
    pub fn new(on_page: Memo<bool>) -> Self {
        let selecting = Self {
            selection: GlobalSignal::new(Selection::default()),
            live: expect_context::<Live>(),
            session: expect_context::<Session>(),
            workspace: expect_context::<Workspace>(),
            notifier: expect_context::<Notifier>(),
        };
        let Self { selection, live, .. } = selecting;
        let shown = Memo::new(move |_| selection.with(Selection::shown));
        Effect::new(move |_| {
            shown.with(|_| ());
            let on_page = on_page.get();
            let before = selection.get_untracked();
            let mut now = before.clone();
            now.follow(on_page, |id| selecting.revision_of(id, on_page));
            if now != before {
                selection.set(now);
            }
        });
        selecting.keep_note(on_page, shown);
        Effect::new(move |_| {
            let shown = shown.get();
            live.inbox.maybe_update(|inbox| inbox.select(shown));
        });
        selecting
    }

    /// Keeps the note as a draft until it is emptied or cleared, or its reviews are decided. It returns on the page of
    /// the selection, where it is seen before anything is sent.
    fn keep_note(self, on_page: Memo<bool>, shown: Memo<Vec<ReviewId>>) {
        let Self { selection, workspace, .. } = self;
        Effect::new(move |noted: Option<Vec<ReviewId>>| {
            let kept = selection.with(|selection| selection.note.kept(selection.ticked()));
            if kept.is_some() {
                workspace.write_form(&Form::Selection, kept, false);
                return selection
                    .with_untracked(|selection| selection.ticked().filter(|id| selection.note.is_for(*id)).collect());
            }
            // A selection begins without a note, which is no reason to drop the one of before. Nor is one whose reviews
            // have left the list, for example by a search.
            let noted = noted.unwrap_or_default();
            let is_emptied =
                selection.with_untracked(|Selection { note, .. }| note.is_blank() && !note.reviews.is_empty());
            if !noted.is_empty() && (is_emptied || noted.iter().all(|id| self.is_done(*id))) {
                workspace.write_form(&Form::Selection, None, false);
            }
            Vec::new()
        });
        Effect::new(move |_| {
            let shown = shown.get();
            if !on_page.get() || selection.with_untracked(|selection| !selection.note.text.is_empty()) {
                return;
            }
            if let Some(note) = workspace.form(&Form::Selection).and_then(|kept| Note::returns(&kept, &shown)) {
                selection.update(|selection| selection.note = note);
            }
        });
    }

    /// The revision of a review that can be decided with others; `None` if it cannot. Follows it.
    fn revision_of(self, id: ReviewId, on_page: bool) -> Option<u32> {
        let now = self.live.server_now();
        let row = self.live.inbox.with(|inbox| {
            // A row that has left the list would be selected without being seen.
            inbox.get(id).filter(|_| on_page || inbox.is_listed(id, now)).cloned()
        })?;
        self.refusal(&row).is_none().then_some(row.review.revision)
    }

    /// Why a review cannot be decided with others; `None` if it can. Follows what this person may and has done.
    pub fn refusal(self, row: &InboxRow) -> Option<&'static str> {
        refusal(row, self.session.principal().as_ref(), self.begun(row))
    }

    fn begun(self, row: &InboxRow) -> Begun {
        let id = row.review.id;
        let drafted = self.workspace.drafts.with(|drafts| drafts.review(id).is_some_and(|draft| !draft.is_empty()));
        let me = self.session.username();
        self.workspace.outbox.with(|outbox| {
            let stage = outbox.get(id).map(|sending| &sending.stage);
            selection::begun(&row.review, drafted, stage, me.as_deref())
        })
    }

    /// Whether a review is over, or this person has decided it.
    fn is_done(self, id: ReviewId) -> bool {
        let row = self.live.inbox.with_untracked(|inbox| inbox.get(id).cloned());
        row.is_some_and(|row| {
            let begun = untrack(|| self.begun(&row));
            row.gone || !row.review.is_pending() || begun.sent || begun.voted
        })
    }

    /// How far a review of the selection has come. Follows it.
    pub fn standing(self, row: &InboxRow) -> Standing {
        let stage: Option<Stage> =
            self.workspace.outbox.with(|outbox| outbox.get(row.review.id).map(|sending| sending.stage.clone()));
        standing(stage.as_ref(), self.refusal(row), self.begun(row).voted)
    }

    /// Selects a review or removes it from the selection; says why if it cannot be selected.
    pub fn toggle(self, id: ReviewId) {
        if self.selection.with_untracked(|selection| selection.has(id)) {
            self.selection.update(|selection| selection.remove(id));
            return;
        }
        let Some(row) = self.live.inbox.with_untracked(|inbox| inbox.get(id).cloned()) else { return };
        if let Some(reason) = untrack(|| self.refusal(&row)) {
            self.notifier.say(format!("“{}” cannot be selected: {reason}.", named(&row.review.title)));
        } else if self.selection.with_untracked(Selection::is_full) {
            self.notifier.say(format!("At most {MAX_SELECTED} reviews can be decided together."));
        } else {
            self.selection.update(|selection| selection.tick(id));
        }
    }

    /// Removes all reviews from the selection, and its note. Returns whether there were any reviews.
    pub fn clear(self) -> bool {
        let any = self.selection.with_untracked(|selection| selection.ticked().next().is_some());
        if any {
            // One that is kept for other reviews stays.
            if self.selection.with_untracked(|selection| selection.note.kept(selection.ticked()).is_some()) {
                self.workspace.write_form(&Form::Selection, None, false);
            }
            self.selection.update(Selection::clear);
        }
        any
    }

    /// Like [`Self::clear`], but keeps a selection for which something is chosen or written, and says what it did.
    pub fn clear_untouched(self) -> bool {
        let number = self.selection.with_untracked(|selection| selection.ticked().count());
        let clears = self.selection.with_untracked(Selection::is_untouched) && self.clear();
        if clears {
            self.notifier.say(format!("{} no longer selected.", count(number, "review is", "reviews are")));
        }
        clears
    }
}

/// Why a row cannot be selected by this person; `None` if it can.
pub fn refusal(row: &InboxRow, viewer: Option<&Principal>, begun: Begun) -> Option<&'static str> {
    let access = match viewer {
        Some(viewer) if !row.gone => access(viewer, Act::Decide(&row.review)),
        _ => Access::Hidden,
    };
    selection::refusal(&row.review, access, begun)
}

/// The bar below the list while reviews are selected.
#[component]
pub fn SelectionBar(
    /// Whether the page of the selection is open.
    on_page: Memo<bool>,
    /// Opens that page.
    open: Callback<()>,
) -> impl IntoView {
    let selecting = expect_context::<Selecting>();
    let number = Memo::new(move |_| selecting.selection.with(|selection| selection.ticked().count()));
    // It comes and goes with the first and the last review, so it is announced by an element that stays.
    let says = move || match number.get() {
        0 => String::new(),
        number => format!("{number} selected"),
    };
    let clear = move |_| {
        selecting.clear();
    };
    view! {
        <span class="sr" role="status">{says}</span>
        <Show when=move || { number.get() > 0 }>
            <div class="selection-bar">
                <b class="grow" aria-hidden="true">{says}</b>
                <button type="button" class="b ghost icon" title="Clear" aria-label="Clear the selection" on:click=clear>
                    <Glyph icon=icondata::LuX />
                </button>
                <Show when=move || !on_page.get()>
                    <button type="button" class="b primary" on:click=move |_| open.run(())>"Review and decide…"</button>
                </Show>
            </div>
        </Show>
    }
}
