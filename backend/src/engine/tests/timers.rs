//! Deadlines.

use super::*;

const DAY: Duration = Duration::from_hours(24);

fn asking(settings: &str) -> Play {
    let source = format!(
        "id: t\nnodes:\n  ask: {{ human: {{ prompt: Well?, options: [{{ id: yes, label: Fine }}, \
         {{ id: no, kind: stop, label: No }}], timeout: 24h{settings} }}, next: after }}\n  \
         after: {{ set: {{ said: \"{{{{ decisions.ask.option }}}} {{{{ decisions.ask.via }}}}\" }} }}\n"
    );
    Play::start(&source, json!({}))
}

fn deadline(play: &Play) -> TaskId {
    *play.tasks.keys().next().unwrap()
}

#[test]
fn at_the_deadline_the_timer_decides_as_the_flow_says() {
    let mut play = asking(", on_timeout: approve");
    play.now = play.now.after(DAY);
    play.apply(Input::Due { task: deadline(&play) });
    assert_eq!((play.status(), play.key("said")), (RunStatus::Completed, &json!("yes timeout")));
    let review = play.snapshot.reviews.values().next().unwrap().clone();
    assert_eq!(review.status, ReviewStatus::Expired);
    insta::assert_json_snapshot!("expired", review.resolution.unwrap());

    for (settings, code) in [("", FlowCode::FlowHumanRejected), (", on_timeout: error", FlowCode::FlowHumanTimeout)] {
        let mut play = asking(settings);
        play.now = play.now.after(DAY);
        play.apply(Input::Due { task: deadline(&play) });
        assert_eq!(play.error(), (code, "nobody decided in time".to_owned()));
    }

    let mut play = asking(", on_reject: after");
    play.now = play.now.after(DAY);
    play.apply(Input::Due { task: deadline(&play) });
    assert_eq!((play.status(), play.key("said")), (RunStatus::Completed, &json!("no timeout")));
}

#[test]
fn a_decision_at_the_deadline_finds_the_review_expired_however_late_the_timer_fires() {
    let mut play = asking(", on_timeout: approve");
    let review = play.review();
    let timer = deadline(&play);
    // The next move is a second later: exactly at the deadline.
    play.now = Timestamp(review.expires_at.unwrap().0 - 1_000_000);
    let refused = play.try_decide(review.id, &ana(), request(&review, choose("no"))).unwrap_err();
    let Refusal::ReviewResolved(expired) = refused else { panic!("{refused:?}") };
    assert_eq!(expired.status, ReviewStatus::Expired);
    assert_eq!((play.status(), play.key("said")), (RunStatus::Completed, &json!("yes timeout")));
    assert_eq!(play.try_apply(Input::Due { task: timer }), Err(Refusal::TaskOver));
}

#[test]
fn a_decision_just_before_the_deadline_counts_and_ends_the_timer() {
    let mut play = asking("");
    let review = play.review();
    play.now = Timestamp(review.expires_at.unwrap().0 - 1_000_001);
    play.decide(choose("yes"));
    assert_eq!((play.status(), play.key("said")), (RunStatus::Completed, &json!("yes human")));
    assert!(play.tasks.is_empty());
}

#[test]
fn a_timer_that_fires_early_stays_due_at_its_time() {
    let mut play = asking("");
    let task = deadline(&play);
    play.apply(Input::Due { task });
    assert_eq!(play.tasks[&task].due_at, play.review().expires_at.unwrap());
    assert_eq!(play.status(), RunStatus::WaitingForHuman);
}

#[test]
fn a_gates_timer_rejects_or_approves_all_its_actions() {
    for (on_timeout, status) in [("approve", RunStatus::Running), ("reject", RunStatus::Failed)] {
        let source = format!(
            "id: g\ntools:\n  send: {{ http: {{ url: \"https://x\" }} }}\nnodes:\n  send: {{ tool: send, arguments: {{}} }}\n\
             gates: {{ before_tool: {{ send: {{ timeout: 1h, on_timeout: {on_timeout} }} }} }}\n"
        );
        let mut play = Play::start(&source, json!({}));
        play.now = play.now.after(DAY);
        play.apply(Input::Due { task: deadline(&play) });
        assert_eq!(play.status(), status);
    }
}
