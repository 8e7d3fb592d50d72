//! The texts of a form that cannot be read: what the fields, the JSON tab and the draft hold of them is the same. One
//! whose field is gone is still shown, and can only be discarded.

use leptos::prelude::*;

use super::draft::FieldDraft;
use crate::components::inert::inert;
use crate::state::unparsed::Unparsed;

/// The texts that stand in a form: `whole`, the JSON text if it has a mistake; otherwise those of the fields; and `left`,
/// those without a field.
pub fn typed(
    whole: impl Fn() -> Option<String> + Send + Sync + 'static,
    draft: Option<RwSignal<FieldDraft>>,
    left: RwSignal<Unparsed>,
) -> Memo<Unparsed> {
    Memo::new(move |_| {
        let mut texts = left.get();
        match (whole(), draft) {
            (Some(text), _) => texts.insert("", text),
            (None, Some(draft)) => draft.with(|draft| draft.collect_unparsed("", &mut texts)),
            (None, None) => {}
        }
        texts
    })
}

/// Keeps what is `typed` in `kept`, and lets `show` show what comes from elsewhere.
pub fn keep_equal<T>(kept: RwSignal<T>, typed: Memo<T>, show: impl Fn(&T) + 'static)
where
    T: Clone + PartialEq + Send + Sync + 'static,
{
    Effect::new(move |_| {
        let typed = typed.get();
        if kept.with_untracked(|kept| *kept != typed) {
            kept.set(typed);
        }
    });
    Effect::new(move |_| {
        let kept = kept.get();
        if typed.with_untracked(|typed| *typed != kept) {
            show(&kept);
        }
    });
}

/// Says that there are texts without a field, which prevent a decision.
pub fn flaw_of(left: RwSignal<Unparsed>) -> Option<String> {
    let is_any = left.with(|left| !left.is_empty());
    is_any.then(|| "What you typed has no field any more. Discard it below the form.".to_owned())
}

/// The texts whose fields are gone, for example because the review has changed.
#[component]
pub fn LeftOver(left: RwSignal<Unparsed>) -> impl IntoView {
    let texts = move || {
        let text = |(place, text): (&str, &str)| {
            view! {
                <p class="mistake">"You typed this at "<code>{inert(place)}</code>", which is no longer in the form:"</p>
                <pre class="code">{inert(text)}</pre>
            }
        };
        left.with(|left| left.iter().map(text).collect_view())
    };
    view! {
        <Show when=move || left.with(|left| !left.is_empty())>
            <div class="left-over">
                {texts}
                <button type="button" class="b sm" on:click=move |_| left.set(Unparsed::default())>"Discard what has no field"</button>
            </div>
        </Show>
    }
}
