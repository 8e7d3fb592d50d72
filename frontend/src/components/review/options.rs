//! The options of a review, with what each of them says of itself.

use leptos::prelude::*;
use shared::review::ReviewOption;

use crate::components::inert::inert;
use crate::state::sentences::quoted;

/// A card with the label and the description of each option. `role` replaces the card's own, which is a landmark.
pub fn options(options: &[ReviewOption], role: Option<&'static str>) -> AnyView {
    let option = |option: &ReviewOption| {
        let describes = option.description.clone().or_else(|| Some(quoted(option.message.as_ref()?)));
        view! { <dt>{inert(&option.label)}</dt><dd>{describes.map(|text| inert(&text))}</dd> }
    };
    view! {
        <section class="card" role=role aria-label="Options">
            <header><b>"Options"</b></header>
            <dl class="options">{options.iter().map(option).collect_view()}</dl>
        </section>
    }
    .into_any()
}
