//! Saves the current filter of the inbox as a view.

use leptos::prelude::*;
use shared::error::{Code, Problem};
use shared::inbox::ReviewQuery;
use shared::saved_view::{MAX_VIEW_NAME, SavedView};

use crate::client::SavedViews;
use crate::components::button::Button;
use crate::components::dialog::Dialog;
use crate::components::glyph::Glyph;
use crate::state::saved_views::{is_new, with};

/// A button that saves the current filter, if it is one that no view has.
#[component]
pub fn SaveView(query: Memo<ReviewQuery>) -> impl IntoView {
    let saved = expect_context::<SavedViews>();
    let open = RwSignal::new(false);
    let can = Memo::new(move |_| saved.get().is_some_and(|saved| query.with(|query| is_new(&saved.views, query))));
    view! {
        <Show when=move || can.get()>
            <button type="button" class="chip add" on:click=move |_| open.set(true)>
                <Glyph icon=icondata::LuPlus />
                "Save view…"
            </button>
        </Show>
        <Dialog open title="Save this filter as a view">
            <Form query open />
        </Dialog>
    }
}

#[component]
fn Form(query: Memo<ReviewQuery>, open: RwSignal<bool>) -> impl IntoView {
    let saved = expect_context::<SavedViews>();
    let (name, default) = (RwSignal::new(String::new()), RwSignal::new(false));
    let wrong = RwSignal::new(None::<String>);
    let save = saving(open, wrong);
    let busy = save.pending();
    let submit = move |event: web_sys::SubmitEvent| {
        event.prevent_default();
        let Some(known) = untrack(move || saved.get()).filter(|_| !busy.get_untracked()) else { return };
        match with(&known.views, &name.get_untracked(), &query.get_untracked(), default.get_untracked()) {
            Ok(views) => drop(save.dispatch_local((known.revision, views))),
            Err(says) => wrong.set(Some(says)),
        }
    };
    view! {
        <form class="in" on:submit=submit>
            <label class="field">
                <span class="label">"Name"</span>
                <input
                    class="input"
                    maxlength=MAX_VIEW_NAME.to_string()
                    autocomplete="off"
                    aria-invalid=move || wrong.with(Option::is_some).to_string()
                    bind:value=name
                />
                {move || wrong.get().map(|wrong| view! { <span class="mistake" role="alert">{wrong}</span> })}
            </label>
            <label class="check"><input type="checkbox" bind:checked=default />"The inbox opens with this view"</label>
            <div class="actions">
                <button type="button" class="b" on:click=move |_| open.set(false)>"Cancel"</button>
                <Button class="b primary" off=busy>"Save view"</Button>
            </div>
        </form>
    }
}

/// Saves views over the revision that was read, and closes the dialog, or sets why they were not saved.
pub fn saving(open: RwSignal<bool>, wrong: RwSignal<Option<String>>) -> Action<(u64, Vec<SavedView>), ()> {
    let saved = expect_context::<SavedViews>();
    Action::new_local(move |(revision, views): &(u64, Vec<SavedView>)| {
        let (revision, views) = (*revision, views.clone());
        async move {
            let problem = saved.save(revision, views).await.err();
            if problem.is_none() {
                open.set(false);
            }
            wrong.try_set(problem.as_ref().map(says));
        }
    })
}

/// Why the views were not saved.
fn says(problem: &Problem) -> String {
    if problem.code == Code::Conflict {
        return "Your views were changed in another window. This shows them as they are now; try again.".to_owned();
    }
    problem.to_string()
}
