//! The dialog in which an admin reassigns a review. What was typed is kept until it is sent.

use leptos::prelude::*;
use shared::JsonMap;
use shared::reassignment::{Assignee, Reassign};

use super::pane::Pane;
use crate::client::use_post;
use crate::components::button::Button;
use crate::components::dialog::Dialog;
use crate::components::inert::{inert_code, named};
use crate::components::listeners::while_shown;
use crate::state::drafts::Form;
use crate::state::reassignment::{Choices, of_value, value};

/// The dialog, which is open while `pane.reassigning` is true.
#[component]
pub fn ReassignDialog(pane: Pane) -> impl IntoView {
    let open = pane.reassigning;
    let form = move || Form::Reassignment(pane.id);
    let (from, to, reason) = (RwSignal::new(String::new()), RwSignal::new(String::new()), RwSignal::new(String::new()));
    let fields = [("from", from), ("to", to), ("reason", reason)];
    let problem = RwSignal::new(None::<String>);
    Effect::new(move |_| {
        if open.get() {
            let kept = pane.workspace.form(&form()).unwrap_or_default();
            for (name, field) in fields {
                field.set(kept.get(name).and_then(|kept| kept.as_str()).unwrap_or_default().to_owned());
            }
            problem.set(None);
        }
    });
    let typed = move |field: RwSignal<String>, text: String| {
        field.set(text);
        let texts = fields.map(|(name, field)| (name.to_owned(), field.get_untracked()));
        let typed = texts.iter().any(|(_, text)| !text.trim().is_empty());
        let texts = || texts.into_iter().map(|(name, text)| (name, text.into())).collect::<JsonMap>();
        pane.workspace.write_form(&form(), typed.then(texts), false);
    };
    // Loaded at each opening, since people and their roles can change.
    let users = LocalResource::new(move || {
        let asked = open.get();
        async move {
            if !asked {
                return Vec::new();
            }
            match pane.api.users().await {
                Ok(page) => page.items,
                Err(refused) => {
                    problem.set(Some(refused.to_string()));
                    Vec::new()
                }
            }
        }
    });
    let choices = Memo::new(move |_| {
        let (Some(me), Some(users)) = (pane.session.principal().map(|me| me.username), users.get()) else {
            return Choices::default();
        };
        pane.review.with(|review| Choices::of(review, &users, &me))
    });
    let named_now = Memo::new(move |_| pane.review.with(|review| Assignee::named_in(&review.reviewers)));
    let (reassign, busy) = use_post(format!("reassignment of {}", pane.id), move |request: Reassign, key| {
        problem.set(None);
        async move { pane.take_answer(pane.api.reassign(pane.id, &request, Some(&key)).await, &form(), open, problem) }
    });
    let send = move || {
        // A kept choice counts only once the menu shows it.
        let chosen = of_value(&to.get_untracked()).filter(|to| choices.with_untracked(|choices| choices.has(to)));
        let from =
            of_value(&from.get_untracked()).filter(|from| named_now.with_untracked(|named| named.contains(from)));
        let reason = reason.get_untracked().trim().to_owned();
        match chosen {
            None => problem.set(Some("Choose a person or a role.".to_owned())),
            Some(_) if reason.is_empty() => problem.set(Some("Say why.".to_owned())),
            Some(to) => reassign.run(Reassign { from, to, reason }),
        }
    };
    let option = move |field: RwSignal<String>, assignee: &Assignee, shown: String| {
        let value = value(assignee);
        let selected = value.clone();
        view! { <option value=value prop:selected=move || field.get() == selected>{named(&shown)}</option> }
    };
    view! {
        <Dialog open title="Reassign this review">
            <form class="in" on:submit=move |event| { event.prevent_default(); send(); }>
                <p>"They decide instead. You can still see it, but not decide it yourself."</p>
                {move || named_now.with(|named| named.len() > 1).then(|| view! {
                    <label class="field">
                        <span class="label">"Instead of"</span>
                        <select class="select" on:change=while_shown(move |event| typed(from, event_target_value(&event)))>
                            <option value="">"All of them"</option>
                            {named_now.get().iter().map(|one| option(from, one, one.to_string())).collect_view()}
                        </select>
                    </label>
                })}
                <label class="field">
                    <span class="label">"Who decides from now on"</span>
                    <select class="select" on:change=while_shown(move |event| typed(to, event_target_value(&event)))>
                        <option value="">"Choose a person or a role"</option>
                        {move || choices.with(|choices| {
                            let roles = choices.roles.iter().map(|role| option(to, role, role.to_string()));
                            let people = choices.people.iter().map(|(person, shown)| option(to, person, shown.clone()));
                            roles.chain(people).collect_view()
                        })}
                    </select>
                </label>
                <label class="field">
                    <span class="label">"Reason (recorded)"</span>
                    <textarea class="textarea" prop:value=reason on:input=move |event| typed(reason, event_target_value(&event))></textarea>
                </label>
                {move || problem.get().map(|problem| view! { <p class="mistake" role="alert">{inert_code(&problem)}</p> })}
                <div class="actions">
                    <Button off=busy class="b primary">"Reassign"</Button>
                </div>
            </form>
        </Dialog>
    }
}
