//! Votes for an action whose outcome becomes certain because voters lose their right: programs are asked then.

use super::*;

const PEOPLE: [&str; 4] = ["ana", "bob", "cid", "dan"];

fn people(names: &[&str]) -> Vec<Principal> {
    names.iter().map(|name| person(name, &["reviewer"])).collect()
}

/// Returns a run in which two of four people have approved an action, about which programs were asked each time.
fn half_approved(about: &str) -> (Play, Review) {
    let leave = "  leave: { builtin: request_approval, policy: majority, timeout: 1h }\n  shell:\n";
    let source = FLOW.replace("[shell]", "[shell, leave]").replace("  shell:\n", leave).replace("  - MORE\n", "");
    let source = source.replace("GATE", "severity: high").replace("ON_ERROR", "block");
    let mut play = Play::try_start_among(compile(&source), json!({}), &people(&PEOPLE)).unwrap();
    let action = json!({ "name": "mail", "arguments": { "about": about } });
    play.model("serve", calls([("leave", json!({ "description": "Write to them", "action": action }))]));
    let review = play.review();
    for name in ["ana", "bob"] {
        vote(&mut play, name, "approve");
    }
    assert!(play.review().is_pending() && inquiry_task(&play).is_none());
    (play, review)
}

fn vote(play: &mut Play, name: &str, option: &str) {
    let review = play.review();
    play.try_decide(review.id, &people(&[name])[0], request(&review, choose(option))).unwrap();
}

/// Dan loses his role, so that two votes of three are enough.
fn dan_leaves(play: &mut Play) {
    play.people = Some(people(&PEOPLE[..3]).into());
    play.apply(Input::Recount);
}

fn deadlines(play: &Play) -> usize {
    play.tasks.values().filter(|task| matches!(task.kind, TaskKind::Deadline { .. })).count()
}

#[test]
fn what_wins_when_votes_are_counted_again_waits_for_the_answer_and_ends_by_it() {
    for (about, blocked) in [("sparrow", None), ("falcon", Some(BLOCKED)), ("broken", Some(AWAY))] {
        let (mut play, review) = half_approved(about);
        dan_leaves(&mut play);
        assert!(play.review().is_pending(), "nothing is resolved");
        assert_eq!((play.status(), deadlines(&play)), (RunStatus::Running, 0), "nobody is late meanwhile");
        answer(&mut play);
        let vetoes = play.past(review.id).resolution.as_ref().map(|resolution| resolution.vetoes.len());
        assert_eq!(vetoes, Some(usize::from(blocked.is_some())), "{about}");
        let Some(Message::Tool { content, .. }) = play.heard("serve").pop() else { panic!("a result") };
        match blocked {
            Some(blocked) => assert_eq!(content, json!(blocked)),
            None => assert_eq!((&content["approved"], &content["by"]), (&json!(true), &json!("ana, bob"))),
        }
    }
}

#[test]
fn votes_that_change_while_programs_are_asked_count_and_the_deadline_goes_on() {
    let (mut play, review) = half_approved("sparrow");
    dan_leaves(&mut play);
    vote(&mut play, "bob", "reject");
    assert!(play.kinds().contains(&"review.updated"), "everybody sees the vote: {:?}", play.kinds());
    answer(&mut play);
    assert_eq!((play.review().expires_at, deadlines(&play)), (review.expires_at, 1));
    play.now = review.expires_at.unwrap();
    let task = play.tasks.values().find(|task| matches!(task.kind, TaskKind::Deadline { .. })).unwrap().id;
    play.apply(Input::Due { task });
    assert_eq!(play.past(review.id).status, ReviewStatus::Expired);
}
