//! Reassigned reviews.

use shared::reassignment::Assignee;

use super::*;

fn asking(rules: &str) -> String {
    format!(
        "id: d\nnodes:\n  ask:\n    human:\n      prompt: Well?\n      options: [{{ id: yes, label: Fine }}]\n      {rules}\n"
    )
}

fn boss() -> Principal {
    person("boss", &["admin", "legal"])
}

fn chief() -> Principal {
    person("chief", &["admin"])
}

fn user(name: &str) -> Assignee {
    Assignee::User(name.parse().unwrap())
}

fn role(name: &str) -> Assignee {
    Assignee::Role(name.to_owned())
}

/// Starts a run that asks with these rules, while tom and eva exist, and then lets these be there instead.
fn start(rules: &str, people: &[Principal]) -> Play {
    let first = [person("tom", &["reviewer"]), person("eva", &["reviewer", "editor"])];
    let mut play = Play::try_start_among(compile(&asking(rules)), json!({}), &first).unwrap();
    play.people = Some(people.into());
    // It may change nothing, and is refused then.
    let _ = play.try_apply(Input::Recount);
    play
}

fn reassign(play: &mut Play, by: &Principal, from: Option<Assignee>, to: Assignee) -> Result<(), Refusal> {
    let (review, by, reason) = (play.review().id, by.clone(), "On leave.".to_owned());
    play.try_apply(Input::Reassign { review, by, via: Via::Human, from, to, reason }).map(|refused| {
        assert_eq!(refused, None);
    })
}

fn why(refused: Result<(), Refusal>) -> (String, String) {
    match refused {
        Err(Refusal::Invalid(mistakes)) => (mistakes[0].path.clone(), mistakes[0].message.clone()),
        other => panic!("{other:?}"),
    }
}

fn decide(play: &mut Play, by: &Principal) -> Result<(), Refusal> {
    let review = play.review();
    play.try_decide(review.id, by, request(&review, choose("yes")))
}

#[test]
fn a_review_of_somebody_who_is_gone_is_given_to_somebody_who_decides_it() {
    let max = person("max", &["legal"]);
    let mut play = start("reviewers: { users: [tom] }", &[boss(), max.clone()]);
    let stuck = play.review();
    assert!(stuck.problem.unwrap().contains("reassign"));
    let refused = reassign(&mut play, &person("dev", &["developer"]), None, user("max")).unwrap_err();
    assert_eq!(refused, Refusal::Forbidden("only admins may reassign a review".to_owned()));

    reassign(&mut play, &boss(), None, user("max")).unwrap();
    let review = play.review();
    assert_eq!((review.problem.as_ref(), &review.digest, review.revision), (None, &stuck.digest, stuck.revision));
    assert_eq!(review.reassignments[0].to_string(), "boss reassigned this from tom to max: On leave.");
    assert_eq!((play.kinds(), &play.events[0].data["change"]), (vec!["review.updated"], &json!("reassigned")));
    assert_eq!(play.events[0].actor.as_deref(), Some("boss"));
    assert_eq!(decide(&mut play, &person("tom", &["reviewer"])), Err(Refusal::NotFound), "it is not his any more");
    decide(&mut play, &max).unwrap();
    assert_eq!(play.status(), RunStatus::Completed);
}

#[test]
fn whoever_reassigns_a_review_does_not_decide_it() {
    let people = [boss(), chief(), person("max", &["legal"])];
    let mut play = start("reviewers: { users: [tom] }", &people);
    let own = "`boss` may not decide this review: this review is not for those who reassigned it (four eyes)";
    assert_eq!(why(reassign(&mut play, &boss(), None, user("boss"))).1, own);
    reassign(&mut play, &boss(), None, role("legal")).unwrap();
    let own = Refusal::Forbidden("this review is not for those who reassigned it (four eyes)".to_owned());
    assert_eq!(decide(&mut play, &boss()), Err(own), "although the role is theirs");
    let deputy = Principal { stands_for: vec![absent(&boss())], ..person("dan", &[]) };
    assert!(decide(&mut play, &deputy).is_err(), "nor does their deputy");

    // A role that only they have is nobody's.
    play.people = Some([boss(), chief()].into());
    play.apply(Input::Recount);
    assert!(play.review().problem.is_some());
    reassign(&mut play, &chief(), None, user("boss")).unwrap_err();
}

fn absent(person: &Principal) -> shared::access::Absent {
    shared::access::Absent { username: person.username.clone(), roles: person.roles.clone() }
}

#[test]
fn a_review_is_given_only_to_somebody_who_may_decide_it() {
    let people = [boss(), person("dev", &["reviewer"]), person("max", &["legal"])];
    let mut play = start("reviewers: { users: [tom, eva], not_requester: true }", &people);
    for (from, to, path, expected) in [
        (
            None,
            user("dev"),
            "/to",
            "`dev` may not decide this review: this review is not for the person who launched the run",
        ),
        (None, user("tom"), "/to", "there is no active user `tom`"),
        (
            None,
            role("lawyer"),
            "/to",
            "nobody may decide this, which is for lawyer: choose a role with enough people who may decide this review",
        ),
        (Some(role("legal")), user("max"), "/from", "this review is for tom, eva, not for the role legal"),
    ] {
        let before = play.review();
        assert_eq!(why(reassign(&mut play, &boss(), from, to)), (path.to_owned(), expected.to_owned()));
        assert_eq!(play.review().reviewers, before.reviewers, "nothing is half applied");
    }
    let (review, by, via) = (play.review().id, boss(), Via::Human);
    let unsaid = Input::Reassign { review, by, via, from: None, to: user("max"), reason: " ".to_owned() };
    assert_eq!(why(play.try_apply(unsaid).map(drop)).0, "/reason");
    reassign(&mut play, &boss(), None, user("max")).unwrap();
    assert_eq!(why(reassign(&mut play, &boss(), None, user("max"))).1, "this review is already for max");
}

#[test]
fn votes_of_those_who_may_still_vote_count_and_others_do_not() {
    let eva = person("eva", &["reviewer", "editor"]);
    let (tom, max, kim) = (person("tom", &["reviewer"]), person("max", &["editor"]), person("kim", &["editor"]));
    let people = [boss(), tom.clone(), eva.clone(), max.clone(), kim.clone()];
    let voted = |name: &Principal| {
        let mut play = start("reviewers: { users: [tom, eva] }\n      policy: { quorum: 2 }", &people);
        decide(&mut play, name).unwrap();
        play
    };
    let voters = |play: &Play| play.review().voting.unwrap().voters.iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut play = voted(&eva);
    reassign(&mut play, &boss(), Some(user("tom")), user("max")).unwrap();
    assert_eq!((voters(&play), play.review().decisions.len()), (vec!["eva".to_owned(), "max".to_owned()], 1));
    let id = play.review().id;
    decide(&mut play, &max).unwrap();
    let by: Vec<_> = play.past(id).resolution.clone().unwrap().by.iter().map(ToString::to_string).collect();
    assert_eq!(by, ["eva", "max"]);

    let mut play = voted(&tom);
    reassign(&mut play, &boss(), None, role("editor")).unwrap();
    assert_eq!((voters(&play).len(), play.review().decisions.len()), (3, 0));
    decide(&mut play, &kim).unwrap();
    assert!(play.review().is_pending(), "two votes are needed");
}

#[test]
fn a_reassignment_leaves_a_policy_that_can_be_met_by_several_people() {
    let people = [boss(), person("max", &["legal", "editor"]), person("eva", &["reviewer", "editor"])];
    let more = "choose a role with enough people who may decide this review";
    for (policy, expected) in [
        ("{ quorum: 2 }", "2 votes in favour are needed, but only 1 person may vote"),
        ("majority", "several people vote on this review, but only 1 person would"),
        ("unanimous", "several people vote on this review, but only 1 person would"),
        ("{ groups: { reviewer: 1, editor: 1 } }", "reviewer needs 1 vote, but nobody with this role may vote"),
    ] {
        let mut play = start(&format!("policy: {policy}"), &people);
        assert_eq!(why(reassign(&mut play, &boss(), None, user("max"))).1, format!("{expected}: {more}"), "{policy}");
        assert!(play.review().reassignments.is_empty());
        reassign(&mut play, &boss(), None, role("editor")).unwrap();
    }
}

#[test]
fn what_was_delegated_or_claimed_goes_with_the_review() {
    let (tom, max) = (person("tom", &["reviewer"]), person("max", &["legal"]));
    let eva = person("eva", &["reviewer", "editor"]);
    let mut play = start("reviewers: { users: [tom] }", &[boss(), tom.clone(), eva.clone(), max.clone()]);
    let (review, via) = (play.review().id, Via::Human);
    let to = eva.username.clone();
    play.apply(Input::Delegate { review, by: tom, via, to, person: Some(eva.clone()) });
    play.apply(Input::Claim { review, by: eva.clone(), via });
    reassign(&mut play, &boss(), None, user("max")).unwrap();
    let review = play.review();
    assert_eq!((review.delegations.len(), review.claimed_by), (0, None));
    assert_eq!(decide(&mut play, &eva), Err(Refusal::NotFound));
    decide(&mut play, &max).unwrap();
}
