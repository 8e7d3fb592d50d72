//! Random flows under random inputs: [`Play`] checks the invariants and the replay of every transition.

mod flows;

use proptest::prelude::*;
use shared::access::Involvement;
use shared::feedback::{FeedbackAspect, FeedbackType, NewFeedback};
use shared::grant::{GrantScope, Remember};
use shared::reassignment::Assignee;

use super::*;
use crate::engine::Carrier;
use flows::{Shape, random_flow, some_question};

fn some_answer(pick: u8) -> ModelAnswer {
    match pick % 5 {
        0 => calls([("gated", json!({})), ("plain", json!({})), ("gated", json!({ "y": 1 }))]),
        1 => calls([("nap", json!({ "duration": "1h" })), ("put", json!({ "key": "k1", "value": pick }))]),
        2 if pick.is_multiple_of(3) => calls([
            (
                "ask",
                json!({
                    "question": "Which?", "options": [{ "id": "a", "label": "A" }, { "id": "b", "label": "B" }],
                    "multiple": pick.is_multiple_of(2), "allow_free_text": pick % 4 < 2,
                }),
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
                    "answer" => {
                        json!({ "options": if pick.is_multiple_of(3) { json!(["a", "b"]) } else { json!(["b"]) } })
                    }
                    _ => json!({}),
                };
                Verdict::Choose { option: option.id.clone(), fields: object(fields) }
            }
            _ => say("some text"),
        };
    }
    let answer = |(index, action): (usize, &shared::review::Action)| {
        let decision = match (usize::from(pick) + index) % 4 {
            0 if pick.is_multiple_of(3) => {
                let scope = if pick.is_multiple_of(2) { GrantScope::Run } else { GrantScope::Flow };
                let arguments = if pick % 5 < 2 { vec!["y".to_owned()] } else { Vec::new() };
                let for_ms = (pick % 5 < 3).then_some(3_600_000);
                ActionDecision::Approve { remember: Some(Remember { scope, for_ms, arguments }) }
            }
            0 => ActionDecision::APPROVE,
            3 if pick.is_multiple_of(3) => ActionDecision::Choose { alternative: "alt".to_owned(), message: None },
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

/// Returns some answer of a program to this review: as a person would answer, or yes or no; sometimes to other content.
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

/// Returns some response of a program that is asked.
fn some_handler_answer(play: &Play, task: &Task, pick: u8) -> Input {
    let (digest, answer) = match work(&play.flow, &play.snapshot.state, task) {
        Some(Work::Ask { review, composed, .. }) if pick % 4 > 1 => {
            let review = composed.map_or_else(|| play.past(review).clone(), |composed| *composed);
            let answer = Box::new(some_program_answer(&review, pick / 4));
            (review.digest, HandlerAnswer::Decides { answer })
        }
        _ if pick % 4 == 1 => (String::new(), HandlerAnswer::Passes { reason: "some".to_owned() }),
        _ => (String::new(), HandlerAnswer::Later),
    };
    Input::HandlerAnswered { task: task.id, attempt: 1, digest, answer }
}

/// Returns some callback of a program about this review, in time or late.
fn some_callback(play: &Play, review: &Review, pick: u8) -> Input {
    let asked = play.snapshot.state.question(review.id).map(|question| &question.asked);
    let task = match asked {
        Some(Asked::Program { task, .. }) => *task,
        _ => TaskId(uuid::Uuid::nil()),
    };
    Input::call_back(review.id, task, some_program_answer(review, pick))
}

/// Returns some input that could come now, or could have come earlier.
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
            usage: (code == FlowCode::ModelFailed && pick % 4 == 0).then(|| text("").usage()),
        };
        return Some(match (&task.kind, what % 16) {
            (TaskKind::Deadline { .. } | TaskKind::Wake { .. }, _) => Input::Due { task: id },
            (TaskKind::Model { .. }, 0) => {
                Input::TaskFailed { task: id, attempt, failure: failure(FlowCode::ModelFailed) }
            }
            (TaskKind::Model { .. } | TaskKind::Ask { .. } | TaskKind::Inquire { .. }, 1) => {
                Input::TaskLost { task: id, attempt, again: true }
            }
            (TaskKind::Model { .. }, _) => Input::ModelAnswered { task: id, attempt, answer: some_answer(pick) },
            (TaskKind::Ask { .. } | TaskKind::Inquire { .. }, 0) => {
                Input::TaskFailed { task: id, attempt, failure: failure(FlowCode::HandlerFailed) }
            }
            (TaskKind::Ask { .. }, _) => some_handler_answer(play, task, pick),
            (TaskKind::Inquire { .. }, _) => play.replied(task),
            (TaskKind::Tool { .. }, 0) => {
                Input::TaskFailed { task: id, attempt, failure: failure(FlowCode::ToolFailed) }
            }
            (TaskKind::Tool { .. }, 1) => Input::TaskLost { task: id, attempt, again: pick % 4 == 0 },
            (TaskKind::Tool { .. }, _) => Input::ToolReturned { task: id, attempt, result: json!(pick) },
        });
    }
    let review = review()?;
    let people = everybody();
    // It is mostly somebody who may decide.
    let by = people[[0_usize, 1, 0, 1, 2][usize::from(which % 5)]].clone();
    let (id, via) = (review.id, Via::Human);
    Some(match (what % 16, pick) {
        (10, 0..20) => Input::Claim { review: id, by, via },
        (10, 20..30) => Input::Comment { review: id, by, via, text: "hm".to_owned() },
        (10, 31..50) => {
            let reason = pick.is_multiple_of(2).then(|| "never mind".to_owned());
            Input::Withdraw { review: id, by: person("dev", &[]), via, reason }
        }
        (10, 50..70) => Input::Release { review: id, by, via },
        (10, 70..100) => {
            let to = people[usize::from(pick % 3)].clone();
            let to_somebody = !pick.is_multiple_of(7);
            Input::Delegate { review: id, by, via, to: to.username.clone(), person: to_somebody.then_some(to) }
        }
        (10, 100..115) => Input::Viewed { review: id, by, seen: None },
        (10, 115..130) => {
            let agent = ["a", "b", "nobody"][usize::from(pick % 3)].to_owned();
            let (feedback_type, aspect) = (FeedbackType::Guidance, FeedbackAspect::Other);
            let content = "some".to_owned();
            let feedback = NewFeedback { agent, feedback_type, aspect, content, importance: 3, context: None };
            Input::Feedback { by, involvement: Involvement::Reviews, feedback }
        }
        (10, 130..140) => Input::Recount,
        (10, 140..155) => {
            let (by, to) = (person("boss", &["admin"]), people[usize::from(pick % 3)].username.clone());
            let to = if pick.is_multiple_of(2) { Assignee::User(to) } else { Assignee::Role("reviewer".to_owned()) };
            Input::Reassign { review: id, by, via, from: None, to, reason: "gone".to_owned() }
        }
        (11, 0..80) => some_callback(play, review, pick),
        (10, 30) => Input::Cancel { by: person("dev", &[]), reason: None },
        _ => {
            let mut request = request(review, some_verdict(review, pick));
            if pick % 11 == 0 {
                request.edits = object(json!({ "k2": review.items.get(1).map(|item| &item.value) }));
            }
            Input::decide(id, by, via, request)
        }
    })
}

fn everybody() -> [Principal; 3] {
    [ana(), person("tom", &["reviewer"]), person("dev", &["reviewer"])]
}

fn goes_on(mut play: Play, inputs: Vec<((u8, u8, u8), bool)>) {
    for (input, much_later) in inputs {
        if much_later {
            play.now = play.now.after(Duration::from_hours(3));
        }
        if let Some(input) = some_input(&play, input) {
            // Whether it is refused or not, nothing is half applied.
            let _ = play.try_apply(input);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_invariants_hold_for_any_flow_under_any_inputs(
        shapes in prop::collection::vec(any::<Shape>(), 2..6),
        called in prop::collection::vec(any::<Shape>(), 1..4),
        inputs in prop::collection::vec((any::<(u8, u8, u8)>(), prop::bool::weighted(0.05)), 0..60),
    ) {
        goes_on(Play::try_start_among(random_flow(&shapes, &called), json!({}), &everybody()).unwrap(), inputs);
    }

    #[test]
    fn they_hold_for_what_is_asked_without_a_flow(
        shape in any::<(u8, u8)>(),
        inputs in prop::collection::vec((any::<(u8, u8, u8)>(), prop::bool::weighted(0.1)), 0..20),
    ) {
        let Carrier { flow, input, .. } = some_question(shape);
        let flow = Arc::into_inner(flow).unwrap();
        goes_on(Play::try_start_among(flow, Value::Object(input), &everybody()).unwrap(), inputs);
    }
}
