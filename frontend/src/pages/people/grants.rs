//! The person's remembered approvals.

use leptos::prelude::*;
use shared::error::Problem;
use shared::grant::{Grant, GrantScope};
use shared::id::GrantId;

use super::rows::{filled_table, row};
use crate::client::use_api;
use crate::components::inert::inert_code;
use crate::components::states::{Empty, Loaded};
use crate::components::time::day;

/// What a remembered approval is, and where one is made.
const ABOUT: &str = "A remembered approval also approves later calls of a tool by the same agent or step, in one run or \
    in all runs of one version of a flow. You make one in the review of such a call, with “Also approve later calls, whatever \
    their arguments”.";

#[component]
pub fn Grants() -> impl IntoView {
    let api = use_api();
    let grants = LocalResource::new(move || async move { api.grants().await.map(|page| page.items) });
    let problem = RwSignal::new(None::<Problem>);
    let revoke = Action::new_local(move |&id: &GrantId| async move {
        problem.set(api.revoke_grant(id).await.err());
        grants.refetch();
    });
    let of_grants = move |grants: Vec<Grant>| {
        if grants.is_empty() {
            return view! {
                <Empty icon=icondata::LuCheckCheck title="No approvals are remembered" text=ABOUT link=("/inbox", "Go to the inbox")/>
            }
            .into_any();
        }
        let rows = grants
            .into_iter()
            .map(|grant| {
                let revoke = move |_| {
                    revoke.dispatch_local(grant.id);
                };
                let place = if grant.scope == GrantScope::Run { "in one run of" } else { "in all runs of" };
                let with = grant.arguments.iter().map(|(name, value)| format!(", {name} {value}"));
                let with = with.collect::<Vec<_>>().concat();
                let agent = grant.agent.as_ref().map(|agent| format!(", called by {agent}")).unwrap_or_default();
                let what = format!("{}{agent}{with} {place} {}, version {}", grant.tool, grant.flow, grant.version);
                row(
                    what,
                    format!("by {} until {}", grant.given_by, day(grant.expires_at)),
                    "b sm stop",
                    "Revoke",
                    revoke,
                )
            })
            .collect();
        filled_table(rows)
    };
    view! {
        {move || problem.get().map(|problem| view! { <p class="banner stop" role="alert">{inert_code(&problem.to_string())}</p> })}
        <p class="soft lead">"Approvals that you chose to remember. After you revoke one, the next such call asks again."</p>
        <Loaded from=grants failed="Your remembered approvals could not be loaded" rows=2 children=of_grants/>
    }
}
