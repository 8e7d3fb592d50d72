//! Deadlines.

use shared::definition::OnTimeout;

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
    let deadline = play.review().expires_at.unwrap();
    assert_eq!(play.tasks[&task].due_at.after(Duration::from_hours(1)), deadline, "the warning comes first");
    play.now = play.tasks[&task].due_at;
    play.apply(Input::Due { task });
    play.apply(Input::Due { task });
    assert_eq!((play.tasks[&task].due_at, play.kinds()), (deadline, vec![]));
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

#[test]
fn a_gates_timer_may_fail_the_run_whether_an_agent_or_a_node_makes_the_call() {
    let head = "id: g\ntools: { send: { http: { url: \"https://x\" } } }\nagents: { w: { model: demo/w, tools: [send] } }\n\
                gates: { before_tool: { send: { timeout: 1h, on_timeout: error } } }\n";
    for node in ["{ tool: send, arguments: {} }", "{ agent: w, prompt: Send it. }"] {
        let mut play = Play::start(&format!("{head}nodes: {{ send: {node} }}\n"), json!({}));
        if node.contains("agent") {
            play.model("send", calls([("send", json!({}))]));
        }
        let review = play.review();
        play.now = play.now.after(DAY);
        play.apply(Input::Due { task: deadline(&play) });
        assert_eq!(play.error(), (FlowCode::FlowHumanTimeout, "nobody decided in time".to_owned()), "{node}");
        assert_eq!((play.past(review.id).status, play.tasks.len()), (ReviewStatus::Expired, 0), "nothing was called");
    }
}

/// Plays the one deadline task as often as it comes due, up to `until`.
fn pass(play: &mut Play, until: Duration) {
    let until = play.now.after(until);
    while let Some(task) = play.tasks.values().find(|task| task.due_at <= until).cloned() {
        play.now = Timestamp(task.due_at.0 - 1_000_000);
        play.apply(Input::Due { task: task.id });
    }
    play.now = until;
}

#[test]
fn a_timer_may_follow_the_edges_with_a_null_decision_or_go_to_a_node() {
    let routed = |settings: &str| {
        let source = format!(
            "id: t\nnodes:\n  ask: {{ human: {{ prompt: Well?, options: [{{ id: yes, label: Fine }}], timeout: 24h{settings} }}, \
             next: [{{ to: yes, when: \"decision.option == 'yes'\" }}, {{ to: none, when: decision.option == null }}] }}\n  \
             yes: {{ set: {{ said: true }} }}\n  none: {{ set: {{ said: \"{{{{ decisions.ask }}}}\" }} }}\n  \
             late: {{ set: {{ said: late }} }}\n"
        );
        let mut play = Play::start(&source, json!({}));
        pass(&mut play, DAY);
        play
    };
    let play = routed(", on_timeout: follow, on_reject: late");
    // `on_reject` leads to `late` here, and so does the timer below.
    let decision = play.key("said");
    assert_eq!(
        (&decision["option"], &decision["kind"], &decision["via"]),
        (&Value::Null, &Value::Null, &json!("timeout"))
    );
    let review = play.snapshot.reviews.values().next().unwrap();
    assert_eq!(review.status, ReviewStatus::Expired);
    assert_eq!(routed(", on_timeout: { goto: late }").key("said"), &json!("late"));
}

#[test]
fn people_are_warned_once_before_each_deadline() {
    let mut play =
        asking(", on_timeout: { escalate: lead, extend: 30m, then: { escalate: boss, extend: 4m, then: reject } }");
    let begun = play.now;
    let mut told = Vec::new();
    while let Some(task) = play.tasks.values().next().cloned() {
        play.now = Timestamp(task.due_at.0 - 1_000_000);
        play.apply(Input::Due { task: task.id });
        let reviews = play.events.iter().filter(|event| event.kind.is_review());
        told.extend(reviews.map(|event| (event.at.since(begun).as_secs() / 60, event.kind.as_str())));
    }
    let minutes = 24 * 60;
    let wanted = [
        (minutes - 60, "review.expiring"),
        (minutes, "review.updated"),
        (minutes + 27, "review.expiring"),
        (minutes + 30, "review.updated"),
        // Four minutes are too short for a warning.
        (minutes + 34, "review.resolved"),
    ];
    assert_eq!(told, wanted);
}

#[test]
fn an_escalation_asks_others_too_and_nothing_that_was_said_is_lost() {
    let mut play = asking(", on_timeout: { escalate: lead, extend: 2h, then: approve }");
    let seen = play.review();
    pass(&mut play, DAY);
    let event = play.events.iter().find(|event| event.kind == EntryKind::ReviewUpdated).unwrap();
    assert_eq!((&event.data["change"], &event.data["role"]), (&json!("escalated"), &json!("lead")));
    let review = play.review();
    assert_eq!((review.revision, &review.digest), (seen.revision, &seen.digest), "what was seen is what is asked");
    assert_eq!(review.reviewers.roles, ["reviewer", "lead"], "who was asked before is asked still");
    assert_eq!((&review.escalated[..], &review.on_timeout), (&["lead".to_owned()][..], &Some(OnTimeout::Approve)));
    assert_eq!(review.expires_at.unwrap(), seen.expires_at.unwrap().after(Duration::from_hours(2)));
    assert_eq!(play.status(), RunStatus::WaitingForHuman);

    let mut by_lead = play.again();
    by_lead.try_decide(review.id, &person("lia", &["lead"]), request(&seen, choose("yes"))).unwrap();
    assert_eq!(by_lead.key("said"), &json!("yes human"));
    play.decide_on(&seen, choose("yes"));
    assert_eq!(play.key("said"), &json!("yes human"));
}

#[test]
fn a_decision_after_a_deadline_that_escalates_finds_the_review_escalated_and_counts() {
    let mut play = asking(", on_timeout: { escalate: lead, extend: 2h, then: reject }");
    let seen = play.review();
    // The server was away: nobody fired the timer.
    play.now = play.now.after(DAY * 3);
    let late = play.now.after(Duration::from_secs(1));
    play.try_decide(seen.id, &ana(), request(&seen, choose("yes"))).unwrap();
    let decided = play.past(seen.id);
    assert_eq!((decided.status, &decided.escalated[..]), (ReviewStatus::Resolved, &["lead".to_owned()][..]));
    assert_eq!(decided.expires_at, Some(late.after(Duration::from_hours(2))), "others have their whole time");
    assert_eq!(play.key("said"), &json!("yes human"));
}

#[test]
fn gates_escalate_and_ask_apart_where_they_escalate_to_others() {
    let source = r#"
id: g
agents: { a: { model: demo/a, tools: [send, drop, wipe] } }
tools:
  send: { http: { url: "https://x" } }
  drop: { http: { url: "https://x" } }
  wipe: { http: { url: "https://x" } }
nodes: { a: { agent: a } }
defaults: { timeout: 1h, on_timeout: { escalate: lead, extend: 1h, then: follow } }
gates: { before_tool: { send: true, drop: true, wipe: { on_timeout: { escalate: boss, extend: 1h, then: error } } } }
"#;
    let mut play = Play::start(source, json!({}));
    play.model("a", calls([("send", json!({})), ("wipe", json!({})), ("drop", json!({}))]));
    let pending: Vec<_> = play.snapshot.reviews.values().map(|review| review.actions.len()).collect();
    assert_eq!(pending.iter().sum::<usize>(), 3);
    assert_eq!(pending.len(), 2);
    let wipe = play.snapshot.reviews.values().find(|review| review.actions.len() == 1).unwrap().clone();
    play.decide_on(&wipe, answer_actions([("c1-2", ActionDecision::APPROVE)]));
    pass(&mut play, Duration::from_hours(1));
    let review = play.review();
    // A call cannot proceed without an answer: a default that sends branches on rejects it.
    assert_eq!((&review.escalated[..], &review.on_timeout), (&["lead".to_owned()][..], &Some(OnTimeout::Reject)));
}
