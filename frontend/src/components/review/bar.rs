//! The bar at the bottom, with the note and the decision; or the reason why this person cannot decide.

use leptos::prelude::*;
use shared::definition::ChoiceKind;
use shared::error::Mistake;

use super::acts::{acts, sentence_end, time_to_undo};
use super::note_field::NoteField;
use super::option_form::OptionForm;
use super::pane::Pane;
use super::progress::Progress;
use super::standing::{ClaimedByOther, PausedSince, Votes, Why};
use crate::components::glyph::Glyph;
use crate::components::inert::{inert, inert_code, named};
use crate::components::listeners::while_shown;
use crate::state::option_fields::FIELDS_PATH;
use crate::state::verdict::{Intent, is_at};

#[component]
pub fn Bar(pane: Pane) -> impl IntoView {
    let open = Memo::new(move |_| pane.is_open());
    view! {
        <div class="decide">
            <Votes pane=pane />
            <Progress pane=pane />
            <PausedSince pane=pane />
            <Show when=move || open.get() fallback=move || view! { <Why pane=pane /> }>
                <ClaimedByOther pane=pane />
                <OptionForm pane=pane />
                <NoteField pane=pane />
                <General pane=pane />
                <Acts pane=pane />
            </Show>
        </div>
    }
}

/// The mistakes that belong to no field, and a hint if there are others.
#[component]
pub fn General(pane: Pane) -> impl IntoView {
    let general = Memo::new(move |_| {
        // Without fields, all messages are shown here.
        let fields = ["/edits", "/verdict/decisions", FIELDS_PATH].into_iter().filter(|_| pane.is_alone());
        pane.mistakes.with(|all| {
            let is_inside = |one: &Mistake, field: &str| is_at(one, field) && one.path != field;
            let general = all.iter().filter(|one| !fields.clone().any(|field| is_inside(one, field)));
            general.map(|one| one.message.clone()).collect::<Vec<_>>()
        })
    });
    let fields = move || pane.mistakes.with(Vec::len) - general.with(Vec::len);
    view! {
        <Show when=move || !pane.mistakes.with(Vec::is_empty)>
            <p class="banner stop" role="alert">
                <Glyph icon=icondata::LuTriangleAlert />
                <span>
                    {move || inert_code(&general.get().join(" "))}
                    {move || (fields() > 0).then_some(" Check the fields marked above. Nothing was sent.")}
                </span>
            </p>
        </Show>
    }
}

/// The buttons, and the effect of the one under the pointer.
#[component]
fn Acts(pane: Pane) -> impl IntoView {
    let all = Memo::new(move |_| acts(pane));
    let about = RwSignal::new(None::<Intent>);
    let changed = Memo::new(move |_| pane.has_changed());
    let loses_edit = move || {
        let kind = |id: &str| {
            pane.review.with(|review| review.options.iter().find(|option| option.id == id).map(|option| option.kind))
        };
        let edits = pane.with_draft(|draft| !draft.edits.is_empty());
        match about.get() {
            Some(Intent::Choose(id)) => edits && kind(&id) != Some(ChoiceKind::Accept),
            Some(Intent::Text) => edits && pane.review.with(|review| !review.answers_in_words()),
            _ => false,
        }
    };
    let what = move || {
        all.with(|all| {
            let act = about.get().and_then(|about| all.iter().find(|act| act.intent == about)).or_else(|| all.first());
            let does = act.map(|act| act.barred.clone().unwrap_or_else(|| act.does.clone())).unwrap_or_default();
            let lost = if loses_edit() { " Your edit will be discarded." } else { "" };
            let whose = pane.review.with(|review| pane.session.decides_for(review));
            let whose = whose.map(|owner| format!("On behalf of {owner}. ")).unwrap_or_default();
            let then = match act {
                Some(act) if act.barred.is_some() => String::new(),
                Some(act) if act.opens => " Opens its form; nothing is sent yet.".to_owned(),
                _ => pane.review.with(|review| time_to_undo(review, pane.live.now.get())),
            };
            format!("{whose}{}{lost}{then}", sentence_end(&does)).trim_start().to_owned()
        })
    };
    view! {
        <div class="acts" class:blocked=changed>
            {move || {
                all.get()
                    .into_iter()
                    .map(|act| {
                        let intent = act.intent.clone();
                        let (hover, focus) = (act.intent.clone(), act.intent.clone());
                        let barred = act.barred.is_some();
                        let data_key = act.key.clone();
                        let title = named(&act.barred.clone().unwrap_or_else(|| act.does.clone()));
                        view! {
                            <button
                                type="button"
                                class=act.class
                                title=title
                                data-key=data_key
                                aria-disabled=move || (barred || changed.get()).to_string()
                                on:mouseenter=move |_| about.set(Some(hover.clone()))
                                on:mouseleave=move |_| about.set(None)
                                on:focus=move |_| about.set(Some(focus.clone()))
                                on:blur=while_shown(move |_| about.set(None))
                                on:click=move |_| {
                                    if !barred {
                                        if act.opens { pane.press(&intent) } else { pane.decide(&intent) }
                                    }
                                }
                            >
                                <span>{inert(&act.says)}</span>
                                {act.key.map(|key| view! { <kbd aria-hidden="true">{key}</kbd> })}
                            </button>
                        }
                    })
                    .collect_view()
            }}
            <Show when=move || pane.filled().is_some()>
                <button type="button" class="b ghost" on:click=move |_| pane.close_form()>"Back to the options"</button>
            </Show>
            <span class="what" aria-live="off">{move || inert_code(&what())}</span>
        </div>
    }
}
