//! The options of a review, with what each of them says of itself and what is sent with it.

use leptos::prelude::*;
use shared::review::ReviewOption;

use crate::components::inert::inert;
use crate::state::sentences::quoted;

/// A card with the label, the description and the message of each option. `role` replaces the card's own, which is a landmark.
pub fn options(options: &[ReviewOption], role: Option<&'static str>) -> AnyView {
    let option = |option: &ReviewOption| {
        let says = option.description.iter().cloned().chain(option.message.iter().map(|message| quoted(message)));
        let lines = says.map(|text| view! { <div>{inert(&text)}</div> }).collect_view();
        view! { <dt>{inert(&option.label)}</dt><dd>{lines}</dd> }
    };
    view! {
        <section class="card" role=role aria-label="Options">
            <header><b>"Options"</b></header>
            <dl class="options">{options.iter().map(option).collect_view()}</dl>
        </section>
    }
    .into_any()
}
