//! Menus of roles: the system's, with what each allows, and the organisation's own.

use std::collections::BTreeSet;

use leptos::prelude::*;
use shared::access::{ADMIN, ASKER, DEVELOPER, REVIEWER};

use super::CheckBox;
use crate::components::glyph::Glyph;
use crate::components::listeners::while_shown;

/// The system roles and what each allows.
pub const SYSTEM: [(&str, &str); 4] = [
    (REVIEWER, "Decides reviews that name no other reviewers, and sees their runs."),
    (ASKER, "Asks people questions, and sees and withdraws its own. Enough for an agent that only asks."),
    (DEVELOPER, "Asks questions too, saves flows, launches and cancels runs, and sees all runs."),
    (ADMIN, "All of these, plus people, audit and settings. It includes none of your organisation's own roles."),
];

pub fn is_system(role: &str) -> bool {
    SYSTEM.iter().any(|(name, _)| *name == role)
}

/// Roles as tags, the system's first.
pub fn role_tags(roles: &[String]) -> impl IntoView + use<> {
    let mut roles = roles.to_vec();
    roles.sort_by_key(|role| (!is_system(role), role.clone()));
    roles
        .into_iter()
        .map(|role| {
            let class = if role == ADMIN {
                "tag warn"
            } else if is_system(&role) {
                "tag accent"
            } else {
                "tag"
            };
            view! { <span class=class>{role}</span> }
        })
        .collect_view()
}

/// Turns one role on or off.
fn toggle(roles: RwSignal<BTreeSet<String>>, role: &str, on: bool) {
    roles.update(|roles| {
        if on {
            roles.insert(role.to_owned());
        } else {
            roles.remove(role);
        }
    });
}

/// The organisation's own roles as tags, with a field to add more.
#[component]
pub fn OwnRoles(
    roles: RwSignal<BTreeSet<String>>,
    /// Roles that other people have, as suggestions.
    #[prop(into)]
    known: Signal<BTreeSet<String>>,
) -> impl IntoView {
    let text = RwSignal::new(String::new());
    let add = move || {
        let typed = text.get_untracked();
        for role in typed.split([',', ' ']).map(str::trim).filter(|role| !role.is_empty()) {
            toggle(roles, role, true);
        }
        text.set(String::new());
    };
    let own = move || roles.with(|roles| roles.iter().filter(|role| !is_system(role)).cloned().collect::<Vec<_>>());
    let offered = move || {
        known.with(|known| {
            roles.with(|roles| {
                known.iter().filter(|role| !is_system(role) && !roles.contains(*role)).cloned().collect::<Vec<_>>()
            })
        })
    };
    view! {
        <div class="field">
            <label class="label" for="own-roles">"Your organisation's roles"</label>
            <span class="hint">"Flows name them, such as editor or legal. Enter adds one."</span>
            <div class="own-roles">
                <For each=own key=|role| role.clone() let:role>
                    <span class="tag">{role.clone()}
                        <button type="button" class="tag-x" aria-label=format!("Remove {role}") on:click={let role = role.clone(); move |_| toggle(roles, &role, false)}>
                            <Glyph icon=icondata::LuX/>
                        </button>
                    </span>
                </For>
                <input id="own-roles" list="known-roles" autocomplete="off" spellcheck="false" autocapitalize="off" placeholder="Add a role"
                    bind:value=text
                    on:keydown=move |event| if matches!(event.key().as_str(), "Enter" | ",") { event.prevent_default(); add(); }
                    on:blur=while_shown(move |_| add())/>
                <datalist id="known-roles">{move || offered().into_iter().map(|role| view! { <option value=role></option> }).collect_view()}</datalist>
            </div>
        </div>
    }
}

/// Check boxes for a subset of the given roles.
#[component]
pub fn RoleSubset(legend: &'static str, offered: Vec<String>, roles: RwSignal<BTreeSet<String>>) -> impl IntoView {
    let row = move |role: String| {
        let hint = SYSTEM.iter().find(|(name, _)| *name == role).map_or("", |(_, allows)| *allows);
        let (is, name) = (role.clone(), role.clone());
        let on = Signal::derive(move || roles.with(|roles| roles.contains(&is)));
        view! { <CheckBox label=role hint on set=move |on| toggle(roles, &name, on)/> }
    };
    view! { <fieldset class="roles"><legend class="label">{legend}</legend>{offered.into_iter().map(row).collect_view()}</fieldset> }
}
