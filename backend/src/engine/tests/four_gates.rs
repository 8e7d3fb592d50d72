//! The gates that do not hold back calls of tools: each answer at each of them, and what happens if nobody answers.

use super::teams::{due, request_of, results, says};
use super::*;
use shared::review::ReviewKind;

const FLOW: &str = "
id: four
agents:
  first: { model: demo/f, instructions: You begin., tools: [grow, steer] }
  second: { model: demo/s }
tools: { grow: { builtin: spawn_specialist }, steer: { builtin: set_strategy } }
gates: { GATE }
nodes: { work: { team: { agents: [first, second], prompt: Well?, emergent: { enabled: true } } } }
";

#[derive(Debug, Clone, Copy, PartialEq)]
enum Gate {
    Agent,
    Emergent,
    Return,
    Strategy,
}

use Gate::{Agent, Emergent, Return, Strategy};

const ALL: [Gate; 4] = [Agent, Emergent, Return, Strategy];

impl Gate {
    /// Starts a run that waits at this gate.
    fn holds(self, settings: &str) -> Play {
        let (gate, kind) = match self {
            Agent => (format!("before_agent: {{ first: {settings} }}"), ReviewKind::Agent),
            Emergent => (format!("before_emergent: {settings}"), ReviewKind::Emergent),
            Return => (format!("before_return: {settings}"), ReviewKind::Output),
            Strategy => (format!("before_strategy_override: {settings}"), ReviewKind::StrategyOverride),
        };
        let mut play = Play::start(&FLOW.replace("GATE", &gate), json!({}));
        match self {
            Agent => {}
            Emergent => {
                let specialist = json!({ "role": "tester", "instructions": "You test.", "tools": ["steer"] });
                says(&mut play, "first", calls([("grow", specialist)]));
            }
            Return => {
                says(&mut play, "first", text("Yes."));
                says(&mut play, "second", text("No."));
            }
            Strategy => {
                let other = json!({ "strategy": "debate", "rounds": 2, "reason": "We disagree." });
                says(&mut play, "first", calls([("steer", other)]));
            }
        }
        assert_eq!((play.review().kind, play.status()), (kind, RunStatus::WaitingForHuman));
        play
    }

    /// Describes the outcome in words: `happens` if what was held back happens.
    fn came(self, play: &Play) -> String {
        if let Some(error) = summary(&play.snapshot.state).error {
            return format!("fails: {}: {}", error.code, error.message);
        }
        if play.status() == RunStatus::WaitingForHuman {
            return format!("asks {}", play.review().reviewers.roles.join(", "));
        }
        let held = match self {
            Agent if due(play) == ["first"] => None,
            Agent => Some(match &request_of(play, "second").messages[0] {
                Message::User { text } => text.replace("Well?\n\nThe answer of `first` before you:\n\n", "answered: "),
                other => panic!("{other:?}"),
            }),
            Emergent | Strategy => results(play, "first").last().unwrap().as_str().map(|told| format!("told: {told}")),
            Return => (play.status() != RunStatus::Completed).then(|| "goes on".to_owned()),
        };
        self.told(play, held.is_none());
        held.unwrap_or_else(|| "happens".to_owned())
    }

    /// Checks that the log has exactly what happened, in full.
    fn told(self, play: &Play, happened: bool) {
        let of = |kind: EntryKind| play.events.iter().filter(move |event| event.kind == kind).map(|event| &event.data);
        let made: Vec<_> = of(EntryKind::SpecialistMade).collect();
        let changed: Vec<_> = of(EntryKind::StrategyChanged).collect();
        let completed: Vec<_> = of(EntryKind::RunCompleted).map(|data| data["output"]["work"].clone()).collect();
        let specialist =
            object(json!({ "node": "work", "role": "tester", "by": "first", "instructions": "You test." }));
        let change = object(json!({
            "node": "work", "from": "sequential", "to": "debate", "rounds": 2, "by": "first", "reason": "We disagree.",
        }));
        assert_eq!(made, if self == Emergent && happened { vec![&specialist] } else { vec![] });
        assert_eq!(changed, if self == Strategy && happened { vec![&change] } else { vec![] });
        assert_eq!(completed, if self == Return && happened { vec![json!("No.")] } else { vec![] });
    }
}

fn one(play: &Play, decision: ActionDecision) -> Verdict {
    answer_actions([(&play.review().actions[0].id, decision)])
}

fn time_is_up(play: &mut Play) {
    let expires = play.review().expires_at.unwrap();
    play.now = Timestamp(expires.0 - 1_000_000);
    let timer = *play.tasks.iter().find(|(_, task)| matches!(task.kind, TaskKind::Deadline { .. })).unwrap().0;
    play.apply(Input::Due { task: timer });
}

#[test]
fn each_answer_does_at_each_gate_what_the_table_says() {
    let no = || Some("Not now.".to_owned());
    let rows = [
        (ActionDecision::APPROVE, ["happens"; 4]),
        (
            ActionDecision::Reject { message: no() },
            [
                "fails: FLOW_HUMAN_REJECTED: Not now.",
                "told: TOOL_PERMISSION_DENIED: Not now.",
                "fails: FLOW_HUMAN_REJECTED: Not now.",
                "told: TOOL_PERMISSION_DENIED: Not now.",
            ],
        ),
        (
            ActionDecision::Respond { message: "Ask Ann.".to_owned() },
            ["answered: Ask Ann.", "told: Ask Ann.", "refused", "told: Ask Ann."],
        ),
    ];
    for (decision, comes) in rows {
        for (gate, comes) in ALL.into_iter().zip(comes) {
            let mut play = gate.holds("true");
            let review = play.review();
            let verdict = one(&play, decision.clone());
            if comes == "refused" {
                let refused = play.try_decide(review.id, &ana(), request(&review, verdict)).unwrap_err();
                assert_eq!(
                    mistakes(refused),
                    [("/verdict/decisions/output/type".to_owned(), "not_allowed".to_owned())]
                );
                continue;
            }
            play.decide(verdict);
            assert_eq!(gate.came(&play), comes, "{decision:?} at {gate:?}");
        }
    }
}

#[test]
fn free_text_rejects_at_each_gate_with_what_it_says() {
    for gate in ALL {
        let mut play = gate.holds("true");
        play.decide(say("Not now."));
        let comes = match gate {
            Agent | Return => "fails: FLOW_HUMAN_REJECTED: Not now.",
            Emergent | Strategy => "told: TOOL_PERMISSION_DENIED: Not now.",
        };
        assert_eq!(gate.came(&play), comes, "{gate:?}");
    }
}

#[test]
fn the_comment_is_the_reason_of_a_rejection_that_ends_the_step_without_one() {
    for gate in [Agent, Return] {
        for (message, comes) in [(None, "The figures are wrong."), (Some("Not now.".to_owned()), "Not now.")] {
            let mut play = gate.holds("true");
            let review = play.review();
            let verdict = one(&play, ActionDecision::Reject { message });
            let comment = Some("The figures are wrong.".to_owned());
            play.try_decide(review.id, &ana(), DecisionRequest { comment, ..request(&review, verdict) }).unwrap();
            assert_eq!(gate.came(&play), format!("fails: FLOW_HUMAN_REJECTED: {comes}"), "{gate:?}");
        }
    }
}

#[test]
fn instructions_are_heard_by_whom_the_gate_is_about() {
    for gate in ALL {
        let mut play = gate.holds("true");
        let review = play.review();
        let Verdict::Actions { decisions, .. } = one(&play, ActionDecision::APPROVE) else { unreachable!() };
        let verdict = Verdict::Actions { decisions, instructions: Some("Be kind.".to_owned()) };
        if gate == Return {
            let refused = play.try_decide(review.id, &ana(), request(&review, verdict)).unwrap_err();
            assert_eq!(mistakes(refused), [("/verdict/instructions".to_owned(), "not_allowed".to_owned())]);
            continue;
        }
        play.decide(verdict);
        let first = request_of(&play, "first");
        match gate {
            Agent => assert_eq!(first.instructions.as_deref(), Some("You begin.\n\nBe kind.")),
            Emergent => {
                let made = play.events.iter().find(|event| event.kind == EntryKind::SpecialistMade).unwrap();
                assert_eq!(made.data["instructions"], "You test.\n\nBe kind.");
                assert!(!first.messages.contains(&Message::User { text: "Be kind.".to_owned() }));
            }
            _ => assert_eq!(first.messages.last(), Some(&Message::User { text: "Be kind.".to_owned() })),
        }
    }
}

#[test]
fn instructions_for_an_agent_that_does_not_begin_are_refused_not_dropped() {
    let mut play = Agent.holds("true");
    let review = play.review();
    let Verdict::Actions { decisions, .. } = one(&play, ActionDecision::Reject { message: None }) else {
        unreachable!()
    };
    let verdict = Verdict::Actions { decisions, instructions: Some("Be kind.".to_owned()) };
    let refused = play.try_decide(review.id, &ana(), request(&review, verdict)).unwrap_err();
    assert_eq!(mistakes(refused), [("/verdict/instructions".to_owned(), "not_allowed".to_owned())]);
}

#[test]
fn when_nobody_answers_each_gate_does_what_its_timer_says() {
    let late = "nobody decided in time";
    let rejected = |gate: Gate| match gate {
        Agent | Return => format!("fails: FLOW_HUMAN_REJECTED: {late}"),
        Emergent | Strategy => format!("told: TOOL_PERMISSION_DENIED: {late}"),
    };
    for gate in ALL {
        for (settings, comes) in [
            ("timeout: 1h", rejected(gate)),
            ("timeout: 1h, on_timeout: reject", rejected(gate)),
            ("timeout: 1h, on_timeout: approve", "happens".to_owned()),
            ("timeout: 1h, on_timeout: error", format!("fails: FLOW_HUMAN_TIMEOUT: {late}")),
        ] {
            let mut play = gate.holds(&format!("{{ {settings} }}"));
            let review = play.review();
            time_is_up(&mut play);
            assert_eq!(play.past(review.id).status, ReviewStatus::Expired);
            assert_eq!(gate.came(&play), comes, "{settings} at {gate:?}");
        }
        for (then, comes) in [("approve", "happens".to_owned()), ("reject", rejected(gate))] {
            let escalate = format!("{{ timeout: 1h, on_timeout: {{ escalate: boss, extend: 2h, then: {then} }} }}");
            let mut play = gate.holds(&escalate);
            let seen = play.review();
            time_is_up(&mut play);
            assert_eq!(gate.came(&play), "asks reviewer, boss", "{gate:?}");
            let review = play.review();
            assert_eq!((review.revision, &review.digest), (seen.revision, &seen.digest));
            let mut by_boss = play.again();
            let approve = request(&seen, one(&play, ActionDecision::APPROVE));
            by_boss.try_decide(seen.id, &person("eva", &["boss"]), approve).unwrap();
            assert_eq!(gate.came(&by_boss), "happens", "{gate:?}");
            time_is_up(&mut play);
            assert_eq!(gate.came(&play), comes, "then {then} at {gate:?}");
        }
    }
}
