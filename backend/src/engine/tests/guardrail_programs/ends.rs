//! How asking programs ends while an approval waits for it: without an answer, after a restart, with its run or with
//! its review.

use super::*;

/// Reads the run from its stored form, as a restarted server does.
fn restart(play: &mut Play) {
    let stored = serde_json::to_string(&play.snapshot.state).unwrap();
    assert_eq!(serde_json::from_str::<RunState>(&stored).unwrap(), play.snapshot.state);
    play.snapshot.state = serde_json::from_str(&stored).unwrap();
}

/// Ways in which no program answers.
fn failures(task: &Task) -> [Input; 3] {
    let (task, attempt) = (task.id, 1);
    let failed = |code, retryable| {
        let failure = TaskFailure { retryable, uncertain: true, ..TaskFailure::new(code, "no luck") };
        Input::TaskFailed { task, attempt, failure }
    };
    let nothing = Input::GuardrailsAnswered { task, attempt, replies: Vec::new() };
    [failed(FlowCode::TaskAbandoned, false), failed(FlowCode::HandlerFailed, true), nothing]
}

#[test]
fn leave_without_an_answer_ends_in_a_veto_on_the_record_whoever_gave_it() {
    for (gate, give) in givers() {
        for way in 0..3 {
            let mut play = start(gate, "", "block");
            run(&mut play, "ls");
            give(&mut play);
            restart(&mut play);
            let task = inquiry_task(&play).unwrap();
            let failure = failures(&task)[way].clone();
            play.apply(failure.clone());
            assert!(outcome(&play).starts_with("GUARDRAIL_BLOCKED: house-rules: it could not be asked"), "{gate}");
            let resolved: Vec<_> = play.snapshot.reviews.values().map(|review| review.resolution.as_ref()).collect();
            assert!(
                matches!(&resolved[..], [Some(resolution)] if resolution.vetoes.len() == 1),
                "{gate}: {resolved:?}"
            );
            assert!(play.snapshot.state.questions.is_empty(), "{gate}");
            assert_eq!(play.try_apply(failure), Err(Refusal::TaskOver), "it is told once");
            play.model("serve", text("Sorry."));
            answer(&mut play);
            assert_eq!((play.status(), play.tasks.len()), (RunStatus::Completed, 0), "{gate}");
        }
    }
}

#[test]
fn asking_ends_with_its_run_and_what_a_program_says_then_has_no_effect() {
    for (gate, give) in givers() {
        let mut play = start(gate, "", "block");
        run(&mut play, "ls");
        give(&mut play);
        let late = play.replied(&inquiry_task(&play).unwrap());
        play.apply(Input::Cancel { by: person("dev", &[]), reason: None });
        assert!(play.tasks.is_empty() && play.abandoned.is_empty(), "{gate}: {:?}", play.tasks);
        assert!(play.snapshot.reviews.values().all(|review| !review.is_pending()), "{gate}");
        assert_eq!(play.try_apply(late), Err(Refusal::TaskOver), "{gate}");
        assert!(play.snapshot.state.questions.is_empty() && play.snapshot.state.unanswered.is_empty(), "{gate}");
    }
}

#[test]
fn asking_ends_with_its_review() {
    let mut play = start("timeout: 1h, on_timeout: approve", "", "block");
    run(&mut play, "ls");
    givers()[1].1(&mut play);
    let (review, task) = (play.review(), inquiry_task(&play).unwrap());
    let late = play.replied(&task);
    play.apply(Input::Withdraw { review: review.id, by: person("dev", &[]), via: Via::Human, reason: None });
    assert_eq!(outcome(&play), "TOOL_PERMISSION_DENIED: the review was withdrawn");
    assert!(inquiry_task(&play).is_none() && play.abandoned.is_empty());
    assert_eq!(play.try_apply(late), Err(Refusal::TaskOver));
}

#[test]
fn a_decision_that_was_asked_about_while_its_run_was_cancelled_has_no_effect() {
    let mut play = start("severity: high", "", "block");
    run(&mut play, "ls");
    let review = play.review();
    let approved = request(&review, answer_actions([("c1-1", ActionDecision::APPROVE)]));
    let Err(Refusal::Unasked { inquiries, until: None }) =
        play.try_apply_once(Input::decide(review.id, ana(), Via::Human, approved.clone()))
    else {
        panic!("it is asked about first, as long as it takes")
    };
    play.apply(Input::Cancel { by: person("dev", &[]), reason: None });
    let replies = GuardrailReply::all(&inquiries, vec![GuardrailAnswer::Allows]);
    let late = play.try_apply(decision(&review, approved, replies));
    assert!(matches!(&late, Err(Refusal::ReviewResolved(over)) if over.status == ReviewStatus::Withdrawn), "{late:?}");
    assert!(play.tasks.is_empty());
}

#[test]
fn a_decision_is_asked_about_until_its_deadline_and_the_refusal_names_what_was_asked() {
    let mut play = start("timeout: 1h", "", "block");
    run(&mut play, "ls");
    let review = play.review();
    let deadline = review.expires_at.unwrap();
    let approved = request(&review, answer_actions([("c1-1", ActionDecision::APPROVE)]));
    let Err(Refusal::Unasked { inquiries, until }) =
        play.try_apply_once(Input::decide(review.id, ana(), Via::Human, approved.clone()))
    else {
        panic!("it is asked about first")
    };
    assert_eq!(until, Some(deadline));
    play.now = deadline;
    let replies = GuardrailReply::all(&inquiries, vec![GuardrailAnswer::Allows]);
    let input = decision(&review, approved, replies);
    let refused = play.try_apply(input).unwrap().expect("the timer has won").after_asking(until, &inquiries);
    assert_eq!(play.past(review.id).status, ReviewStatus::Expired);
    let told = refused.to_string();
    for said in [deadline.to_string().as_str(), "`house-rules` (rules.example.com)", "before the deadline"] {
        assert!(told.contains(said), "{told}");
    }
    assert!(matches!(refused.met(), Refusal::ReviewResolved(_)));
}

#[test]
fn a_decision_that_a_later_time_would_not_close_is_asked_about_as_long_as_it_takes() {
    let later = "timeout: 1h, on_timeout: { escalate: boss, extend: 1h, then: reject }";
    let slack = |last: &str| format!("handlers: [{{ slack: {{ channel: '#a', timeout: 1h }} }}{last}]");
    for (gate, closes) in
        [("timeout: 1h", true), (later, false), (&slack(""), false), (&slack(", { auto: { reject: Late. } }"), true)]
    {
        let mut play = start(gate, "", "block");
        run(&mut play, "ls");
        let review = play.review();
        let approved = request(&review, answer_actions([("c1-1", ActionDecision::APPROVE)]));
        let refused = play.try_apply_once(Input::decide(review.id, ana(), Via::Human, approved)).unwrap_err();
        assert!(matches!(refused, Refusal::Unasked { until, .. } if until.is_some() == closes), "{gate}: {refused:?}");
    }
}
