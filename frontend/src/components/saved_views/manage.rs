//! Renames, reorders and removes saved views, and chooses the one that the inbox opens with.

use leptos::prelude::*;
use shared::saved_view::{MAX_VIEW_NAME, SavedView, Views};

use super::save::saving;
use crate::client::SavedViews;
use crate::components::button::Button;
use crate::components::dialog::Dialog;
use crate::components::glyph::Glyph;
use crate::components::inert::{inert_code, named};
use crate::components::listeners::while_shown;
use crate::state::saved_views::wrong_name;

#[component]
pub fn ManageViews(open: RwSignal<bool>) -> impl IntoView {
    view! {
        <Dialog open title="Saved views">
            <Form open />
        </Dialog>
    }
}

/// The views in the dialog, each with a number that stays when it moves.
type Rows = RwSignal<Vec<(usize, SavedView)>>;

#[component]
fn Form(open: RwSignal<bool>) -> impl IntoView {
    let saved = expect_context::<SavedViews>();
    let rows: Rows = RwSignal::new(Vec::new());
    let revision = StoredValue::new(0);
    // Follows changes by other windows: these views cannot be saved over them.
    let known = Memo::new(move |_| saved.get().unwrap_or_default());
    Effect::new(move |_| {
        let Views { revision: newest, views } = known.get();
        revision.set_value(newest);
        rows.set(views.into_iter().enumerate().collect());
    });
    let problem = RwSignal::new(None::<String>);
    let save = saving(open, problem);
    let busy = save.pending();
    let submit = move |event: web_sys::SubmitEvent| {
        event.prevent_default();
        let mut views: Vec<SavedView> = rows.with_untracked(|rows| rows.iter().map(|(_, view)| view.clone()).collect());
        for view in &mut views {
            view.name = view.name.trim().to_owned();
        }
        match (0..views.len()).find_map(|index| wrong_name(&views, index)) {
            Some(wrong) => problem.set(Some(wrong)),
            None if busy.get_untracked() => {}
            None => drop(save.dispatch_local((revision.get_value(), views))),
        }
    };
    let opens_with = move |chosen: String| {
        rows.update(|rows| rows.iter_mut().for_each(|(key, view)| view.default = key.to_string() == chosen));
    };
    let options = move || {
        let option = |(key, view): (usize, SavedView)| {
            view! { <option value=key.to_string() prop:selected=view.default>{named(&view.name)}</option> }
        };
        rows.get().into_iter().map(option).collect_view()
    };
    view! {
        <form class="in" on:submit=submit>
            <ul class="view-rows">
                <For each=move || rows.with(|rows| rows.iter().map(|(key, _)| *key).collect::<Vec<_>>()) key=|key| *key let:key>
                    <Row rows key />
                </For>
            </ul>
            <Show when=move || rows.with(Vec::is_empty)><p class="muted">"No views are left."</p></Show>
            <label class="field">
                <span class="label">"The inbox opens with"</span>
                <select class="select" on:change=while_shown(move |event| opens_with(event_target_value(&event)))>
                    <option value="" prop:selected=move || rows.with(|rows| rows.iter().all(|(_, view)| !view.default))>"All reviews"</option>
                    {options}
                </select>
            </label>
            {move || problem.get().map(|problem| view! { <p class="mistake" role="alert">{inert_code(&problem)}</p> })}
            <div class="actions">
                <button type="button" class="b" on:click=move |_| open.set(false)>"Cancel"</button>
                <Button class="b primary" off=busy>"Save"</Button>
            </div>
        </form>
    }
}

#[component]
fn Row(rows: Rows, key: usize) -> impl IntoView {
    let index = Memo::new(move |_| rows.with(|rows| rows.iter().position(|(own, _)| *own == key)).unwrap_or_default());
    let name = Memo::new(move |_| {
        let of = |rows: &Vec<(usize, SavedView)>| {
            rows.iter().find(|(own, _)| *own == key).map(|(_, view)| view.name.clone())
        };
        rows.with(of).unwrap_or_default()
    });
    let is_first = Signal::derive(move || index.get() == 0);
    let is_last = Signal::derive(move || index.get() + 1 >= rows.with(Vec::len));
    let rename = move |event| {
        let text = event_target_value(&event);
        rows.update(|rows| {
            if let Some((_, view)) = rows.iter_mut().find(|(own, _)| *own == key) {
                view.name = text;
            }
        });
    };
    let swap_with_next = move |at: usize| rows.update(|rows| rows.swap(at, at + 1));
    let remove = move |_| rows.update(|rows| rows.retain(|(own, _)| *own != key));
    let label = move |what: &'static str| Signal::derive(move || Some(format!("{what} “{}”", named(&name.get()))));
    view! {
        <li>
            <input class="input" maxlength=MAX_VIEW_NAME.to_string() aria-label=move || format!("Name of view {}", index.get() + 1) prop:value=name on:input=rename />
            <Button class="b ghost icon" off=is_first label=label("Move up") press=move |()| swap_with_next(index.get_untracked() - 1)><Glyph icon=icondata::LuArrowUp /></Button>
            <Button class="b ghost icon" off=is_last label=label("Move down") press=move |()| swap_with_next(index.get_untracked())><Glyph icon=icondata::LuArrowDown /></Button>
            <button type="button" class="b ghost icon" aria-label=label("Remove") on:click=remove><Glyph icon=icondata::LuTrash2 /></button>
        </li>
    }
}
