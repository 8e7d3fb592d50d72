//! Random flows under random inputs: [`Play`] checks the invariants and the replay of every transition.

use proptest::prelude::*;
use shared::definition::Flow;

use super::*;
use crate::flow::Library;

/// One node: its kind, the nodes that it leads to, whether it waits for all, how often it may be visited, and a detail.
type Shape = (u8, u8, bool, u8, u8);

/// Any graph over a few nodes that call another one, also such as `flow::check` would not let pass: the engine must bear
/// them all.
fn random_flow(shapes: &[Shape], called: &[Shape]) -> Compiled {
    let mut library = Library::default();
    library.add(Arc::new(Compiled::new(some_flow("called", called, 7), 1).unwrap()));
    Compiled::calling(some_flow("random", shapes, 9), 1, &library).unwrap()
}

fn some_flow(id: &str, shapes: &[Shape], kinds: u8) -> Flow {
    let name = |index: usize| format!("n{index}");
    let judge = json!({ "judge": { "model": "demo/judge", "criteria": "Hm." } });
    let on_error = ["reject", "pass"][usize::from(shapes[0].4 % 2)];
    let webhook = json!({ "webhook": { "url": "https://ok.test/decide", "timeout": "1h", "on_error": on_error } });
    let mut nodes = JsonMap::new();
    for (index, (kind, next, join, visits, detail)) in shapes.iter().enumerate() {
        let mut node = match kind % kinds {
            0 => json!({ "agent": "a", "prompt": "{{ visit }}", "write_keys": ["k1", "k2"] }),
            1 => json!({ "tool": "plain", "arguments": { "x": "{{ visit }}" }, "write_keys": ["k2"] }),
            2 => json!({ "tool": "gated", "arguments": {}, "write_keys": ["k3"], "failure": { "retries": 1 } }),
            3 => json!({ "set": { "k1": "{{ visit }}", "k3": [1, { "a": 2 }] } }),
            6 => json!({
                "map": { "over": "k3", "as": "one", "node": name(usize::from(*detail) % shapes.len()) },
                "write_keys": ["k4"],
            }),
            7 if detail % 2 == 0 => json!({ "flow": { "id": "called" }, "write_keys": ["k1", "k3"] }),
            7 => json!({ "flow": { "id": "called", "input": { "k1": "{{ visit }}" } }, "write_keys": ["k2"] }),
            8 => json!({ "team": {
                "agents": ["a", "b"], "lead": (["a", "b", "c"][usize::from(detail % 3)]), "rounds": detail % 2 + 1,
                "strategy": (["sequential", "parallel", "router", "debate"][usize::from(detail / 2 % 4)]),
                "emergent": { "enabled": true, "max": 2, "judge": if detail % 4 == 0 { judge["judge"].clone() } else { Value::Null } },
            }, "write_keys": ["k1"] }),
            4 => json!({ "router": if detail % 2 == 0 { json!({}) } else { json!({ "agent": "a" }) } }),
            _ => json!({ "human": {
                "prompt": "?",
                "review_keys": ["k1", "k2", "one"],
                "edit_keys": ["k2"],
                "options": if detail % 2 == 0 { json!([]) } else { json!([
                    { "id": "yes", "label": "Yes" },
                    { "id": "redo", "kind": "correct", "label": "Redo", "message": "again" },
                    { "id": "no", "kind": "stop", "label": "No" },
                ]) },
                "policy": (["first", "majority", "first", "unanimous"][usize::from(detail % 4)]),
                "deny": if detail % 8 == 3 { json!(2) } else { Value::Null },
                "timeout": if detail % 3 == 0 { json!("1h") } else { Value::Null },
                "on_timeout": ([
                    json!("approve"),
                    json!("reject"),
                    json!("error"),
                    json!("follow"),
                    json!({ "goto": name(usize::from(detail / 5) % shapes.len()) }),
                    json!({ "escalate": "reviewer", "extend": "1h", "then": "follow" }),
                    json!({ "escalate": "x", "extend": "1s", "then": { "escalate": "y", "extend": "2m", "then": "reject" } }),
                ][usize::from(detail / 3 % 7)]),
                "handlers": match detail % 11 {
                    4 => json!([{ "auto": "approve" }]),
                    7 => json!([{ "auto": { "reject": "no" } }]),
                    1 => json!([judge, judge, "human"]),
                    9 => json!([judge]),
                    3 => json!([webhook, judge, "human"]),
                    5 => json!([webhook, webhook, { "auto": "reject" }]),
                    8 => json!([{ "function": "own" }, webhook]),
                    _ => json!(["human"]),
                },
                "on_reject": if detail % 13 < 3 { json!(name(usize::from(detail / 2) % shapes.len())) } else { Value::Null },
            } }),
        };
        let leads = |target: usize| {
            let onward = target == index + 1 && next % 4 != 0;
            onward || (next & (next >> 3)) >> target & 1 == 1
        };
        let targets: Vec<_> =
            (0..shapes.len()).filter(|target| leads(*target)).map(|target| json!(name(target))).collect();
        if !targets.is_empty() {
            node["next"] = json!(targets);
        }
        node["max_visits"] = json!(visits % 6 + 1);
        if *join {
            node["join"] = json!("all");
        }
        if detail % 5 < 2 {
            node["on_visit_limit"] = json!(name(usize::from(*detail) % shapes.len()));
        }
        if detail % 7 < 3 {
            node["failure"] = json!({ "retries": 1, "then": { "goto": name(usize::from(detail / 7) % shapes.len()) } });
        }
        nodes.insert(name(index), node);
    }
    serde_json::from_value(json!({
        "id": id,
        "agents": { "a": { "model": "demo/a", "tools": ["plain", "gated", "nap", "put", "ask", "draft", "leave", "stuck", "progress", "over", "help", "grow", "steer"], "max_turns": 3, "max_asks": 3 }, "b": { "model": "demo/b", "tools": ["gated", "help"] }, "c": { "model": "demo/c" } },
        "tools": {
            "plain": { "http": { "url": "https://x/{{ k2 | default('') | urlencode }}" }, "idempotent": true },
            "gated": { "http": {
                "url": "https://x",
                "headers": { "key": "{{ secret.KEY }}" },
                "body": { "v": "{{ visit }}", "k": "{{ k1 | default(0) }}", "all": "{{ arguments }}" },
            }, "ask_permission": true },
            "nap": { "builtin": "sleep" },
            "put": { "builtin": "set_state" },
            "ask": { "builtin": "ask_human", "timeout": "1h", "on_timeout": (["error", "reject", "approve", "follow"][usize::from(shapes[0].0 % 4)]) },
            "draft": { "builtin": "request_edit", "timeout": "2h", "severity": "high" },
            "help": { "agent": "b" },
            "grow": { "builtin": "spawn_specialist" },
            "steer": { "builtin": "set_strategy" },
            "stuck": { "builtin": "escalate", "timeout": "3h" },
            "progress": { "builtin": "checkpoint", "timeout": "1h", "on_timeout": (["error", "reject", "approve"][usize::from(shapes[0].0 % 3)]) },
            "over": { "builtin": "handoff" },
            "leave": { "builtin": "request_approval", "ask_permission": shapes[0].1.is_multiple_of(2) },
        },
        "gates": { "before_tool": {
            "nap": { "when": "visit == 2", "timeout": "2h", "on_timeout": { "escalate": "x", "extend": "1h", "then": "approve" } },
            "plain": { "when": "visit == 3", "handlers": if shapes[0].4.is_multiple_of(2) { json!([{ "auto": "approve" }]) } else { json!([judge, { "auto": "approve" }]) } },
            "put": { "when": "visit == 1", "handlers": [judge, webhook, "human"] },
        }, "before_agent": {
            "a": { "when": "visit == 2", "timeout": "2h", "handlers": if shapes[0].4.is_multiple_of(3) { json!([judge]) } else { json!([webhook]) } },
        }, "before_emergent": shapes[0].2, "before_strategy_override": shapes[0].3.is_multiple_of(2), "before_return": ([
            json!(false),
            json!(true),
            json!({ "when": "has(arguments.k2)", "timeout": "1h", "on_timeout": "approve" }),
            json!({ "allowed_decisions": ["approve"], "handlers": [judge, { "auto": "reject" }] }),
        ][usize::from(shapes[0].3 % 4)]) },
        "guardrails": some_guardrails(shapes[0].4),
        "nodes": nodes,
    }))
    .unwrap()
}

/// The words are those of the random answers and arguments.
fn some_guardrails(pick: u8) -> Value {
    let program = |name: &str, more: Value| {
        let mut program = json!({ "name": name, "webhook": { "url": "https://x.test" } });
        program.as_object_mut().unwrap().extend(object(more));
        program
    };
    match pick % 7 {
        0 => Value::Null,
        1 => json!(false),
        2 => json!([{ "name": "own", "pattern": "edited|done|some text|n4" }]),
        6 => {
            json!([{ "name": "own", "pattern": "done|some|n[0-3]", "effect": "redact" }, { "name": "soft", "pattern": "y", "effect": "warn" }])
        }
        3 | 5 => {
            json!([program("dice", json!({})), { "name": "own", "pattern": "done|some", "effect": "redact" }, program("more-dice", json!({}))])
        }
        4 => json!([program("soft-dice", json!({ "effect": "warn" })), program("dice", json!({ "on": ["actions"] }))]),
        _ => {
            json!([{ "name": "own", "when": "arguments.y == 1" }, { "name": "more", "when": "text.contains('n1')", "on": ["outputs"] }])
        }
    }
}

fn some_answer(pick: u8) -> ModelAnswer {
    match pick % 5 {
        0 => calls([("gated", json!({})), ("plain", json!({})), ("gated", json!({ "y": 1 }))]),
        1 => calls([("nap", json!({ "duration": "1h" })), ("put", json!({ "key": "k1", "value": pick }))]),
        2 if pick.is_multiple_of(3) => calls([
            (
                "ask",
                json!({ "question": "Which?", "options": [{ "id": "a", "label": "A" }, { "id": "b", "label": "B" }] }),
            ),
            ("draft", json!({ "content": "some text", "purpose": "a letter", "confidence": 0.2 })),
            ("plain", json!({})),
            ("leave", json!({ "description": "May I?", "action": { "name": "go" }, "timeout": "1h" })),
        ]),
        3 if pick % 5 == 3 && pick.is_multiple_of(7) => calls([
            ("plain", json!({})),
            ("stuck", json!({ "reason": "out_of_scope", "explanation": "some text" })),
            ("over", json!({ "to": "desk", "reason": "some text" })),
        ]),
        4 if pick % 5 == 4 && pick.is_multiple_of(3) => calls([
            ("grow", json!({ "role": format!("r{}", pick % 3), "instructions": "some" })),
            ("help", json!({ "task": "some" })),
            (
                "steer",
                json!({ "strategy": (["parallel", "debate", "router"][usize::from(pick % 4).min(2)]), "reason": "some" }),
            ),
        ]),
        4 if pick.is_multiple_of(2) => {
            calls([("help", json!({ "task": "some" })), ("delegate_to_b", json!({ "task": "x" }))])
        }
        3 if pick.is_multiple_of(3) => calls([("progress", json!({ "phase": "half", "progress": 0.5 }))]),
        2 if pick.is_multiple_of(2) => calls([("plain", json!(5)), ("unknown", json!({}))]),
        3 if pick.is_multiple_of(2) => {
            let (approved, confidence) = (pick.is_multiple_of(4), f64::from(pick % 10) / 10.0);
            text(&json!({ "approved": approved, "confidence": confidence, "reasoning": "some" }).to_string())
        }
        _ => text(&format!("n{}", pick / 5 % 6)),
    }
}

fn some_verdict(review: &Review, pick: u8) -> Verdict {
    if review.actions.is_empty() {
        let option = usize::from(pick / 4) % review.options.len().max(1);
        return match review.options.get(option) {
            Some(option) if !pick.is_multiple_of(4) => {
                let fields = match &*option.id {
                    "agent_continue" => json!({ "guidance": "some" }),
                    "human_takeover" if pick.is_multiple_of(2) => json!({ "answer": "some text" }),
                    "delegate" => json!({ "agent": "b", "instructions": "some" }),
                    "abort" => json!({ "reason": "some" }),
                    "modify" => json!({ "goal": "some" }),
                    _ => json!({}),
                };
                Verdict::Choose { option: option.id.clone(), fields: object(fields) }
            }
            _ => say("some text"),
        };
    }
    let answer = |(index, action): (usize, &shared::review::Action)| {
        let decision = match (usize::from(pick) + index) % 4 {
            0 => ActionDecision::APPROVE,
            1 if pick.is_multiple_of(3) => {
                let edited = |value: &Value| if value.is_string() { json!("edited") } else { value.clone() };
                let arguments = action.arguments.iter().map(|(key, value)| (key.clone(), edited(value))).collect();
                ActionDecision::Edit { arguments }
            }
            1 => ActionDecision::Edit { arguments: object(json!({ "edited": true })) },
            2 => ActionDecision::Reject { message: None },
            _ => ActionDecision::Respond { message: "done".to_owned() },
        };
        (action.id.clone(), decision)
    };
    let decisions = review.actions.iter().enumerate().map(answer).collect();
    Verdict::Actions { decisions, instructions: pick.is_multiple_of(2).then(|| "mind this".to_owned()) }
}

/// What a program says of this review: as a person would, or yes or no; of other content too.
fn some_program_answer(review: &Review, pick: u8) -> ProgramAnswer {
    let stale = u32::from(pick.is_multiple_of(7));
    let named = ProgramAnswer {
        revision: Some(review.revision + stale),
        digest: Some(review.digest.clone()),
        ..ProgramAnswer::default()
    };
    if pick.is_multiple_of(3) {
        let approved = Some(pick.is_multiple_of(2));
        return ProgramAnswer { approved, reason: Some("some".to_owned()), ..named };
    }
    ProgramAnswer { verdict: Some(some_verdict(review, pick)), ..named }
}

/// What a program says that is asked.
fn some_handler_answer(play: &Play, task: &Task, pick: u8) -> Input {
    let (digest, answer) = match work(&play.flow, &play.snapshot.state, task) {
        Some(Work::Ask(asked)) if pick % 4 > 1 => {
            let answer = Box::new(some_program_answer(&asked.review, pick / 4));
            (asked.review.digest, HandlerAnswer::Decides { answer })
        }
        _ if pick % 4 == 1 => (String::new(), HandlerAnswer::Passes { reason: "some".to_owned() }),
        _ => (String::new(), HandlerAnswer::Later),
    };
    Input::HandlerAnswered { task: task.id, attempt: 1, digest, answer }
}

/// A program answers by itself about this review, in its time or later.
fn some_callback(play: &Play, review: &Review, pick: u8) -> Input {
    let asked = play.snapshot.state.question(review.id).map(|question| &question.asked);
    let task = match asked {
        Some(Asked::Program { task, .. }) => *task,
        _ => TaskId(uuid::Uuid::nil()),
    };
    Input::call_back(review.id, task, some_program_answer(review, pick))
}

/// An input that could come now, or could have come once.
fn some_input(play: &Play, (what, which, pick): (u8, u8, u8)) -> Option<Input> {
    let tasks: Vec<_> = play.tasks.values().chain(play.abandoned.values()).collect();
    let stale = pick % 16 == 7;
    let reviews: Vec<_> = play.snapshot.reviews.values().filter(|review| stale || review.is_pending()).collect();
    let review = || reviews.get(usize::from(which) % reviews.len().max(1));
    if what % 16 < 10 {
        let task = tasks.get(usize::from(which) % tasks.len().max(1))?;
        let (id, attempt) = (task.id, 1);
        let failure = |code| TaskFailure {
            code,
            message: "no luck".to_owned(),
            retryable: pick % 3 != 0,
            uncertain: pick % 5 == 0,
            retry_after: (pick % 7 == 0).then_some(shared::time::Span::secs(90)),
        };
        return Some(match (&task.kind, what % 16) {
            (TaskKind::Deadline { .. } | TaskKind::Wake { .. }, _) => Input::Due { task: id },
            (TaskKind::Model { .. }, 0) => {
                Input::TaskFailed { task: id, attempt, failure: failure(FlowCode::ModelFailed) }
            }
            (TaskKind::Model { .. }, _) => Input::ModelAnswered { task: id, attempt, answer: some_answer(pick) },
            (TaskKind::Ask { .. } | TaskKind::Look { .. }, 0) => {
                Input::TaskFailed { task: id, attempt, failure: failure(FlowCode::HandlerFailed) }
            }
            (TaskKind::Ask { .. }, _) => some_handler_answer(play, task, pick),
            (TaskKind::Look { .. }, _) => play.looked(task),
            (TaskKind::Tool { .. }, 0) => {
                Input::TaskFailed { task: id, attempt, failure: failure(FlowCode::ToolFailed) }
            }
            (TaskKind::Tool { .. }, 1) => Input::TaskLost { task: id, attempt },
            (TaskKind::Tool { .. }, _) => Input::ToolReturned { task: id, attempt, result: json!(pick) },
        });
    }
    let review = review()?;
    Some(match (what % 16, pick) {
        (10, 0..20) => Input::Claim { review: review.id, by: ana(), via: Via::Human },
        (10, 20..30) => Input::Comment { review: review.id, by: ana(), via: Via::Human, text: "hm".to_owned() },
        (10, 31..50) => {
            let reason = pick.is_multiple_of(2).then(|| "never mind".to_owned());
            Input::Withdraw { review: review.id, by: person("dev", &[]), via: Via::Human, reason }
        }
        (11, 0..80) => some_callback(play, review, pick),
        (10, 30) => Input::Cancel { by: person("dev", &[]), reason: None },
        _ => {
            let mut request = request(review, some_verdict(review, pick));
            if pick % 11 == 0 {
                request.edits = object(json!({ "k2": review.items.get(1).map(|item| &item.value) }));
            }
            let by = if which.is_multiple_of(2) { ana() } else { person("tom", &["reviewer"]) };
            Input::decide(review.id, by, Via::Human, request)
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_invariants_hold_for_any_flow_under_any_inputs(
        shapes in prop::collection::vec(any::<Shape>(), 2..6),
        called in prop::collection::vec(any::<Shape>(), 1..4),
        inputs in prop::collection::vec((any::<(u8, u8, u8)>(), prop::bool::weighted(0.05)), 0..60),
    ) {
        let mut play = Play::try_start_among(random_flow(&shapes, &called), json!({}), &[ana(), person("tom", &["reviewer"])]).unwrap();
        for (input, much_later) in inputs {
            if much_later {
                play.now = play.now.after(Duration::from_hours(3));
            }
            if let Some(input) = some_input(&play, input) {
                // Refused or not: nothing is half applied.
                let _ = play.try_apply(input);
            }
        }
    }
}
