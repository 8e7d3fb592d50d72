//! A field for several values: a check box for each, with its description.

use leptos::prelude::*;

use super::place::FieldParts;
use crate::components::inert::inert;
use crate::components::listeners::while_shown;
use crate::state::schema::FieldChoice;

/// The check boxes, in the order of the schema. `ticked` has the indices of the ticked ones.
pub fn boxes(choices: &[FieldChoice], ticked: &ArcRwSignal<Vec<usize>>, parts: FieldParts) -> AnyView {
    let row = |(at, choice): (usize, &FieldChoice)| {
        let (is, set) = (ticked.clone(), ticked.clone());
        let toggle = move |_| {
            set.update(|ticked| {
                if let Some(own) = ticked.iter().position(|own| *own == at) {
                    ticked.remove(own);
                } else {
                    ticked.push(at);
                    ticked.sort_unstable();
                }
            });
            parts.left.set(true);
        };
        let description = choice.description.as_deref().map(|text| view! { <small class="hint">{inert(text)}</small> });
        view! {
            <label class="tick">
                <input type="checkbox" prop:checked=move || is.with(|ticked| ticked.contains(&at))
                    on:change=while_shown(toggle) aria-describedby=parts.help() aria-invalid=move || parts.invalid()/>
                <span>{inert(&choice.label)}{description}</span>
            </label>
        }
    };
    let rows = choices.iter().enumerate().map(row).collect_view();
    view! { <div class="ticks" role="group" aria-labelledby=parts.label()>{rows}</div> }.into_any()
}
