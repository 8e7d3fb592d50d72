//! The notice in place of a run, or of a review of a run, that was archived.

use leptos::prelude::*;
use shared::run::ArchivedRun;

use super::states::Empty;
use super::time;

/// The page of something that was archived, with the way back as children.
#[component]
pub fn Archived(
    /// What the person has looked for, such as `This run is archived`.
    title: &'static str,
    /// What the archived run is to it, as the beginning of a sentence: `It is`.
    relation: &'static str,
    archived: ArchivedRun,
    children: Children,
) -> impl IntoView {
    let ArchivedRun { id, flow, requested_by, ended_at, archived_at, file } = archived;
    view! {
        <Empty icon=icondata::LuArchive title page=true>
            <p>{format!(
                "Archived on {} in {file}. {relation} a run of the flow {flow}, which {requested_by} launched and which ended on {}.",
                time::day(archived_at),
                time::day(ended_at),
            )}</p>
            <p>"An operator can read it with "<code>{format!("countersign archive show {id}")}</code></p>
            {children()}
        </Empty>
    }
}
