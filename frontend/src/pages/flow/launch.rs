//! Starts a run: a form from the flow's input schema, and the context of the run. Typed text is kept until it is sent,
//! and only in the memory of the page if it may contain a password.

use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;
use serde::Deserialize as _;
use serde_json::{Value, json};
use shared::access::Act;
use shared::api::Launch;
use shared::error::{Mistake, Problem};
use shared::run::Context;

use crate::client::{FlowVersion, Notifier, Session, Workspace, use_api, use_post};
use crate::components::button::Button;
use crate::components::focus::{MISTAKE, focus_on};
use crate::components::glyph::Glyph;
use crate::components::graph::FlowGraph;
use crate::components::inert::{inert, inert_code};
use crate::components::schema_form::SchemaForm;
use crate::state::drafts::{Form, asks_password};
use crate::state::schema::initial;
use crate::state::unparsed::Unparsed;
use crate::state::words;

/// The places of the input and the context in the request, as JSON pointers.
const PATHS: [&str; 2] = ["/input", "/context"];
/// The member of the draft with the texts that cannot be read.
const UNPARSED_KEY: &str = "unread";

#[component]
pub fn LaunchTab(flow: FlowVersion) -> impl IntoView {
    let api = use_api();
    let session = expect_context::<Session>();
    let navigate = use_navigate();
    let schema = flow.input.clone().unwrap_or_else(|| json!({ "type": "object", "properties": {} }));
    let fields = schema.get("properties").and_then(Value::as_object).is_some_and(|fields| !fields.is_empty());
    let workspace = expect_context::<Workspace>();
    let of = StoredValue::new(Form::Launch((flow.id.to_string(), flow.version)));
    let kept = of.with_value(|of| workspace.form(of)).unwrap_or_default();
    let untouched = StoredValue::new([initial(&schema), json!({})]);
    let [input, context] = untouched.with_value(|[input, context]| {
        [("input", input), ("context", context)]
            .map(|(part, untouched)| RwSignal::new(kept.get(part).unwrap_or(untouched).clone()))
    });
    // A flow that declares no input takes any, and a run that is started again may have some.
    let fields = fields || input.with_untracked(|input| *input != json!({}));
    // Texts that cannot be read are kept beside the values, by their places in the request.
    let texts = kept.get(UNPARSED_KEY).and_then(|texts| Unparsed::deserialize(texts).ok()).unwrap_or_default();
    let [input_unparsed, context_unparsed] = PATHS.map(|place| RwSignal::new(texts.of(place)));
    let all_unparsed = Memo::new(move |_| {
        let mut texts = Unparsed::default();
        for (place, own) in PATHS.into_iter().zip([input_unparsed, context_unparsed]) {
            texts.set(place, own.get());
        }
        texts
    });
    let is_typed = Memo::new(move |_| {
        all_unparsed.with(|texts| !texts.is_empty())
            || untouched.with_value(|[own, around]| {
                input.with(|input| input != own) || context.with(|context| context != around)
            })
    });
    let in_memory = asks_password(&schema);
    Effect::new(move |_| {
        let texts = all_unparsed.get();
        let texts = (!texts.is_empty()).then(|| (UNPARSED_KEY.to_owned(), json!(texts)));
        let parts = [("input".to_owned(), input.get()), ("context".to_owned(), context.get())];
        let typed = is_typed.get().then(|| parts.into_iter().chain(texts).collect());
        of.with_value(|of| workspace.write_form(of, typed, in_memory));
    });
    // Counts how often the form was emptied; it is then created again.
    let emptied = RwSignal::new(0_u32);
    let empty_it = move |_| {
        let [own, around] = untouched.get_value();
        input.set(own);
        context.set(around);
        for texts in [input_unparsed, context_unparsed] {
            texts.set(Unparsed::default());
        }
        emptied.update(|times| *times += 1);
        focus_on(".launch-fields :is(input, textarea, select)");
    };
    let (input_flaw, context_flaw) = (RwSignal::new(None::<String>), RwSignal::new(None::<String>));
    let problem = RwSignal::new(None::<Problem>);
    let notifier = expect_context::<Notifier>();
    let (launch, busy) = use_post(format!("run of {}", flow.id), move |launch: Launch, key| {
        let (of, navigate) = (of.get_value(), navigate.clone());
        problem.set(None);
        async move {
            let answer = api.launch(&launch, Some(&key)).await;
            // A person who has left the page is not moved; the form is empty when they return.
            let has_left = problem.is_disposed();
            match &answer {
                Ok(run) => {
                    workspace.write_form(&of, None, in_memory);
                    if has_left {
                        notifier.good(format!("The run “{}” was launched.", run.summary.title));
                    } else {
                        navigate(&format!("/runs/{}", run.summary.id), NavigateOptions::default());
                    }
                }
                Err(refused) if has_left => notifier.bad(format!("The run was not launched. {refused}")),
                Err(refused) => {
                    problem.set(Some(refused.clone()));
                    focus_on(MISTAKE);
                }
            }
            answer
        }
    });
    let errors = Memo::new(move |_| {
        problem.with(|problem| problem.as_ref().map(|problem| problem.errors.clone()).unwrap_or_default())
    });
    let elsewhere = move || {
        problem.with(|problem| {
            let problem = problem.as_ref()?;
            let placed = |one: &Mistake| one.path.starts_with("/input/") || one.path.starts_with("/context/");
            (!problem.errors.iter().any(placed)).then(|| problem.to_string())
        })
    };
    let (id, version) = (flow.id.clone(), flow.version);
    let start = move || {
        let context = Context::deserialize(&context.get_untracked());
        let (Value::Object(input), Ok(context)) = (input.get_untracked(), context) else {
            problem.set(Some(Problem::invalid("", "Input and context are JSON objects.")));
            return;
        };
        launch.run(Launch { flow: id.clone(), version: Some(version), input, context, callback_url: None });
    };
    let denied = Memo::new(move |_| session.denied(Act::Launch));
    let off = Signal::derive(move || {
        let is_flawed = |flaw: RwSignal<Option<String>>| flaw.with(Option::is_some);
        busy.get() || denied.get().is_some() || is_flawed(input_flaw) || is_flawed(context_flaw)
    });
    let form = move || {
        emptied.track();
        if fields {
            view! { <SchemaForm schema=schema.clone() value=input errors base=PATHS[0] flaw=input_flaw unparsed=input_unparsed/> }.into_any()
        } else {
            view! { <p class="soft">"This flow takes no input."</p> }.into_any()
        }
    };
    let context_form = move || {
        emptied.track();
        view! {
            <SchemaForm schema=context_schema() value=context errors base=PATHS[1] flaw=context_flaw unparsed=context_unparsed/>
        }
    };
    let with_context = context.with_untracked(|context| *context != json!({})) || texts.has(PATHS[1]);
    let nodes = flow.graph.as_ref().map(|graph| graph.nodes.iter().filter(|node| node.kind != "end").count());
    view! {
        <div class="in launch">
            <form class="card launch-form" on:submit=move |event| { event.prevent_default(); start(); } novalidate>
                <header><b class="grow">"Launch a run"</b><span class="muted">"version "{flow.version}</span></header>
                <div class="launch-fields">
                    {form}
                    <details class="fold" open=with_context>
                        <summary>"Context"<span class="muted">"user, tenant, session and metadata that every step of the run can read"</span></summary>
                        {context_form}
                    </details>
                    {move || elsewhere().map(|why| view! { <p class="banner stop" role="alert">{inert_code(&why)}</p> })}
                </div>
                <footer>
                    <Button class="b primary" off=off>
                        <Glyph icon=icondata::LuPlay/>{move || if busy.get() { "Launching…" } else { "Launch the run" }}
                    </Button>
                    <Show when=move || is_typed.get()>
                        <button type="button" class="b ghost" on:click=empty_it>"Clear the form"</button>
                    </Show>
                    <span class="muted small">{move || denied.get().map(|why| format!("You cannot launch it: {why}."))}</span>
                </footer>
            </form>
            <aside class="launch-about">
                {flow.description.map(|text| view! { <p class="soft">{inert(&text)}</p> })}
                {flow.graph.map(|graph| view! {
                    <section class="card"><header><b class="grow">"Graph"</b><span class="muted">{nodes.map(|nodes| words::count(nodes, "node", "nodes"))}</span></header>
                        <div class="in"><FlowGraph graph/></div>
                    </section>
                })}
                <a href=format!("/runs?flow={}", flow.id) class="small">"Runs of this flow"</a>
            </aside>
        </div>
    }
}

/// The schema of the form for a run's context.
fn context_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "user": { "type": "string", "title": "User", "description": "The end user on whose behalf the run works." },
            "tenant": { "type": "string", "title": "Tenant" },
            "session": { "type": "string", "title": "Session" },
            "metadata": { "type": "object", "title": "Metadata", "description": "Anything else, as a JSON object." }
        }
    })
}
