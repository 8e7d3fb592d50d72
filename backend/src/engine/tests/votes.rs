//! Several people decide one review: each rule of policies, edits, people who leave, secrecy, four eyes.

use shared::review::Outcome;

use super::*;

/// Returns a flow in which people are asked about a text of an agent; `rules` says how many decide.
fn committee(rules: &str, reviewers: &str) -> String {
    format!(
        r#"
id: c
agents: {{ w: {{ model: demo/w }} }}
nodes:
  draft: {{ agent: w, prompt: Write., next: decide }}
  decide:
    human:
      prompt: Shall we?
      review_keys: [draft]
      edit_keys: [draft]
      options:
        - {{ id: yes, label: "Yes" }}
        - {{ id: later, label: Later }}
        - {{ id: redo, kind: correct, label: Again, message: Do it again. }}
        - {{ id: no, kind: stop, label: "No" }}
      {reviewers}
      {rules}
    next: done
  done: {{ set: {{ said: "{{{{ decisions.decide.option }}}}", by: "{{{{ decisions.decide.by }}}}" }} }}
"#
    )
}

fn people() -> Vec<Principal> {
    vec![
        person("ana", &["reviewer", "editor"]),
        person("bob", &["reviewer", "editor", "legal"]),
        person("cid", &["reviewer", "legal"]),
        person("dev", &["developer"]),
    ]
}

fn asked_with(rules: &str, reviewers: &str) -> Play {
    let mut play = Play::try_start_among(compile(&committee(rules, reviewers)), json!({}), &people()).unwrap();
    play.model("draft", text("A draft."));
    play
}

fn asked(rules: &str) -> Play {
    asked_with(rules, "")
}

fn who(name: &str) -> Principal {
    people().into_iter().find(|person| &*person.username == name).unwrap()
}

impl Play {
    fn try_vote(&mut self, name: &str, verdict: Verdict) -> Result<(), Refusal> {
        let review = self.review();
        self.try_decide(review.id, &who(name), request(&review, verdict))
    }

    fn votes(&mut self, votes: &[(&str, &str)]) {
        for (name, option) in votes {
            self.try_vote(name, choose(option)).unwrap();
        }
    }

    fn said(&self) -> (&Value, &Value) {
        (self.key("said"), self.key("by"))
    }

    /// Changes somebody's roles (`None` removes the user), and rechecks the voters as the server does.
    fn roles(&mut self, name: &str, roles: Option<&[&str]>) -> Result<Option<Refusal>, Refusal> {
        let mut all: Vec<_> = self.people.iter().flat_map(|people| people.iter()).cloned().collect();
        all.retain(|person| &*person.username != name);
        all.extend(roles.map(|roles| person(name, roles)));
        self.people = Some(all.into());
        self.try_apply(Input::Recount)
    }
}

#[test]
fn a_review_resolves_as_soon_as_the_outcome_is_certain() {
    for (rules, votes, said) in [
        ("policy: majority", &[("ana", "yes"), ("bob", "yes")][..], json!("yes")),
        ("policy: majority", &[("ana", "no"), ("bob", "yes"), ("cid", "yes")], json!("yes")),
        ("policy: unanimous", &[("ana", "yes"), ("bob", "yes"), ("cid", "yes")], json!("yes")),
        ("policy: { quorum: 2 }", &[("cid", "later"), ("ana", "later")], json!("later")),
        ("policy: { groups: { editor: 1, legal: 1 } }", &[("ana", "yes"), ("cid", "yes")], json!("yes")),
        // Somebody with both roles counts in both groups.
        ("policy: { groups: { editor: 1, legal: 1 } }", &[("bob", "yes")], json!("yes")),
        // Among accept options, the one with the most votes counts; the first in the flow if they tie.
        ("policy: unanimous", &[("ana", "later"), ("bob", "yes"), ("cid", "later")], json!("later")),
        ("policy: { quorum: 2 }", &[("ana", "later"), ("bob", "yes")], json!("yes")),
        // `deny` is the number of votes against that end it, however many could still accept.
        ("policy: { quorum: 2 }\n      deny: 2", &[("ana", "no"), ("bob", "yes"), ("cid", "yes")], json!("yes")),
        (
            "policy: unanimous\n      deny: 2",
            &[("ana", "no"), ("bob", "yes"), ("ana", "yes"), ("cid", "yes")],
            json!("yes"),
        ),
    ] {
        let mut play = asked(rules);
        let (last, before) = votes.split_last().unwrap();
        play.votes(before);
        assert!(play.review().is_pending());
        assert_eq!(
            play.review().voting.unwrap().votes as usize,
            before.iter().map(|(name, _)| name).collect::<BTreeSet<_>>().len()
        );
        let review = play.review();
        play.votes(&[*last]);
        assert_eq!(play.said().0, &said, "{rules} {votes:?}");
        let resolution = play.past(review.id).resolution.clone().unwrap();
        assert_eq!(resolution.outcome, Outcome::Accepted);
        let by: Vec<_> = resolution.by.iter().map(ToString::to_string).collect();
        assert_eq!(play.said().1, &json!(by), "the decision names all who voted for what won");
    }
}

#[test]
fn votes_against_end_it_when_it_can_no_longer_be_accepted_or_when_there_are_enough() {
    use Outcome::{Corrected, Stopped};
    for (rules, votes, outcome) in [
        ("policy: majority", &[("ana", "no"), ("bob", "no")][..], Stopped),
        ("policy: unanimous", &[("ana", "redo")], Corrected),
        ("policy: { quorum: 2 }", &[("ana", "redo"), ("bob", "redo")], Corrected),
        ("policy: { quorum: 1 }\n      deny: 1", &[("ana", "no")], Stopped),
        ("policy: { groups: { legal: 2 } }", &[("ana", "yes"), ("cid", "no")], Stopped),
        // The choice with the most votes against counts, and a tie goes to stop.
        ("policy: { quorum: 1 }", &[("ana", "redo"), ("bob", "no"), ("cid", "redo")], Corrected),
        ("policy: { quorum: 2 }", &[("ana", "redo"), ("bob", "no")], Stopped),
        // A review that can neither be accepted nor denied any more does not wait.
        ("policy: unanimous\n      deny: 2", &[("ana", "no"), ("bob", "yes"), ("cid", "yes")], Stopped),
        ("policy: unanimous\n      deny: 9", &[("ana", "no")], Stopped),
    ] {
        let mut play = asked(rules);
        let review = play.review();
        let (last, before) = votes.split_last().unwrap();
        play.votes(before);
        assert!(play.review().is_pending(), "{rules} {votes:?}");
        play.votes(&[*last]);
        assert_eq!(play.past(review.id).resolution.as_ref().unwrap().outcome, outcome, "{rules} {votes:?}");
    }
}

#[test]
fn who_is_asked_by_role_must_have_the_tags_besides() {
    let mut play = asked_with(
        "timeout: 1h\n      on_timeout: { escalate: editor, extend: 1h, then: reject }",
        "reviewers: { tags: [legal] }",
    );
    assert!(matches!(play.try_vote("ana", choose("yes")), Err(Refusal::NotFound)), "they do not see it");
    let mut by_cid = play.again();
    by_cid.try_vote("cid", choose("yes")).unwrap();
    assert_eq!(by_cid.status(), RunStatus::Completed);
    // Whoever loses a tag can no longer decide, and if nobody is left, the review says so.
    let mut alone = play.again();
    alone.people = Some([person("ana", &["reviewer", "editor"]), person("cid", &["reviewer"])].into());
    alone.try_apply(Input::Recount).unwrap();
    assert!(alone.review().problem.is_some());
    // After an escalation, people of the role may decide whatever their tags.
    play.now = play.review().expires_at.unwrap();
    play.try_vote("ana", choose("yes")).unwrap();
    assert_eq!(play.key("by"), &json!(["ana"]));
    // With votes, those with the tag are the voters.
    let mut play = asked_with("policy: unanimous", "reviewers: { tags: [legal] }");
    play.votes(&[("bob", "yes"), ("cid", "yes")]);
    assert_eq!(play.key("by"), &json!(["bob", "cid"]));
}

#[test]
fn a_vote_is_recorded_told_and_can_be_changed() {
    let mut play = asked("policy: majority");
    let digest = play.review().digest;
    play.votes(&[("ana", "no")]);
    let review = play.review();
    assert_eq!(
        (review.version, review.revision, &review.digest),
        (2, 1, &digest),
        "a vote changes nothing that is shown"
    );
    assert_eq!((play.kinds(), &play.events[0].data["change"]), (vec!["review.updated"], &json!("vote")));
    assert_eq!(play.events[0].data["review"]["decisions"][0]["by"], "ana");
    let standing = |play: &Play| play.review().voting.unwrap().standing;
    assert_eq!(standing(&play), "2 of 3 votes for it are needed; bob and cid have not voted");
    play.votes(&[("ana", "yes")]);
    assert_eq!(play.review().decisions.len(), 1);
    assert_eq!(standing(&play), "2 of 3 votes for it are needed, 1 is there; bob and cid have not voted");
    assert!(matches!(play.try_vote("dev", choose("yes")), Err(Refusal::Forbidden(_))), "developers see it only");
}

#[test]
fn corrections_of_several_people_are_told_to_the_agent_together() {
    let mut play = asked("policy: { quorum: 2 }");
    let review = play.review();
    let mut first = request(&review, say("Shorter."));
    first.metadata = object(json!({ "a": 1, "b": 1 }));
    play.try_decide(review.id, &who("ana"), first).unwrap();
    let mut second = request(&review, say("Warmer."));
    second.comment = Some("Please.".to_owned());
    second.metadata = object(json!({ "b": 2 }));
    play.try_decide(review.id, &who("bob"), second).unwrap();
    let heard = play.heard("draft");
    assert!(
        matches!(heard.last(), Some(Message::User { text }) if text == "Shorter.\n\nWarmer.\n\nPlease."),
        "{heard:?}"
    );
    assert_eq!(play.snapshot.state.context.metadata, object(json!({ "a": 1, "b": 2 })), "merged in order");
    assert_eq!(play.snapshot.state.decisions["decide"]["by"], json!(["ana", "bob"]));
}

#[test]
fn an_edit_makes_the_votes_on_what_was_shown_before_void() {
    let mut play = asked("policy: { quorum: 2 }");
    play.votes(&[("ana", "yes")]);
    let review = play.review();
    let mut edit = request(&review, choose("yes"));
    edit.edits = object(json!({ "draft": "A better draft." }));
    play.try_decide(review.id, &who("bob"), edit).unwrap();
    let edited = play.review();
    assert_eq!((edited.revision, edited.items[0].value.as_str()), (2, Some("A better draft.")));
    let event = &play.events[0];
    assert_eq!((&event.data["change"], &event.data["voided"]), (&json!("content"), &json!(["ana"])));
    assert_eq!(event.data["vote"], true);
    let told = &event.data["review"]["decisions"][0];
    let shown = json!({ "revision": 1, "digest": review.digest, "values": { "draft": "A draft." } });
    assert_eq!((&told["shown"], &told["edits"]), (&shown, &json!({ "draft": "A better draft." })));
    let names = |names: &[shared::id::Username]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(names(&edited.voting.as_ref().unwrap().voided), ["ana"]);
    assert_eq!((edited.decisions.len(), edited.decisions[0].revision, &*edited.decisions[0].by), (1, 2, "bob"));
    assert_eq!(play.key("draft"), "A draft.", "what nobody has accepted is not written");
    let stale = play.try_decide(review.id, &who("ana"), request(&review, choose("yes"))).unwrap_err();
    assert!(matches!(stale, Refusal::RevisionChanged(_)));
    play.votes(&[("ana", "yes")]);
    assert_eq!(play.key("draft"), "A better draft.");
    assert_eq!(play.said(), (&json!("yes"), &json!(["bob", "ana"])));
    assert_eq!(play.snapshot.state.decisions["decide"]["edits"], json!({ "draft": "A better draft." }));
}

#[test]
fn secret_votes_are_in_no_entry_before_the_resolution() {
    let mut play = asked("policy: majority\n      blind: true");
    play.votes(&[("ana", "no")]);
    let event = &play.events[0];
    assert_eq!((&event.actor, event.data["change"].as_str()), (&None, Some("vote")));
    let told = event.data["review"].to_string();
    assert!(!told.contains("\"no\",\"fields") && event.data["review"]["decisions"] == json!([]), "{told}");
    assert_eq!(event.data["review"]["voting"]["votes"], 1);
    assert_eq!(event.data["review"]["voting"]["standing"], "2 of 3 votes for it are needed; 1 has voted, secretly");
    let own = play.review().seen_by(Some(&who("ana").username));
    let other = play.review().seen_by(Some(&who("bob").username));
    assert_eq!((own.decisions.len(), other.decisions.len()), (1, 0));
    play.votes(&[("bob", "yes"), ("cid", "yes")]);
    let resolved = play.events.iter().find(|event| event.kind == EntryKind::ReviewResolved).unwrap();
    assert_eq!(resolved.data["review"]["decisions"].as_array().unwrap().len(), 3);
}

#[test]
fn who_may_vote_is_fixed_when_it_is_asked_less_those_who_have_lost_the_right() {
    let mut play = asked("policy: unanimous");
    play.votes(&[("ana", "yes"), ("bob", "yes")]);
    let id = play.review().id;
    let eve = person("eve", &["reviewer"]);
    assert_eq!(play.roles("eve", Some(&["reviewer"])), Err(Refusal::Unchanged));
    let review = play.review();
    let refused = play.try_decide(id, &eve, request(&review, choose("no"))).unwrap_err();
    assert_eq!(refused, Refusal::Forbidden("the voters were fixed when the review was requested".to_owned()));
    // All remaining voters have accepted.
    assert_eq!(play.roles("cid", None), Ok(None));
    assert_eq!(play.said(), (&json!("yes"), &json!(["ana", "bob"])));
}

#[test]
fn a_vote_goes_with_the_right_to_vote_whoever_notices_it_first() {
    let mut play = asked("policy: majority");
    play.votes(&[("ana", "yes")]);
    let all: Vec<_> = people().into_iter().filter(|person| &*person.username != "ana").collect();
    play.people = Some(all.into());
    // The engine was not told of the change, and finds out at the next vote. Two voters are left, and both are needed.
    play.votes(&[("bob", "yes")]);
    let voting = play.review().voting.unwrap();
    assert_eq!((voting.votes, voting.voters.len()), (1, 2));
    play.votes(&[("cid", "yes")]);
    assert_eq!(play.said().1, &json!(["bob", "cid"]));
}

#[test]
fn too_few_people_are_a_problem_that_everybody_sees_until_there_are_enough() {
    let mut play = asked("policy: { groups: { editor: 1, counsel: 1 } }");
    let problem = play.review().problem.unwrap();
    assert!(problem.starts_with("counsel needs 1 vote, but nobody with this role may vote: an admin can"), "{problem}");
    play.votes(&[("ana", "yes"), ("bob", "no"), ("cid", "no")]);
    assert!(play.review().is_pending(), "votes cannot end what people are missing for");
    assert_eq!(play.roles("eve", Some(&["counsel"])), Ok(None));
    let event = &play.events[0];
    assert_eq!((&event.data["change"], &event.data["added"]), (&json!("voters"), &json!(["eve"])));
    let review = play.review();
    assert_eq!(review.problem, None);
    play.try_decide(review.id, &person("eve", &["counsel"]), request(&review, choose("yes"))).unwrap();
    assert_eq!(play.said().1, &json!(["ana", "eve"]));

    let mut play = asked("policy: { quorum: 2 }");
    play.roles("ana", None).unwrap();
    assert_eq!(play.review().problem, None);
    play.roles("bob", Some(&[])).unwrap();
    assert!(play.review().problem.unwrap().contains("2 votes in favour are needed, but only 1 person may vote"));
}

#[test]
fn what_is_asked_of_people_who_are_not_there_says_so_when_the_server_looks() {
    let source = r#"
id: named
nodes:
  ask:
    human:
      prompt: Well?
      options: [{ id: yes, label: "Yes" }]
      reviewers: { roles: [counsel] }
      timeout: 1h
      on_timeout: { escalate: legal, extend: 1h, then: reject }
"#;
    let mut play = Play::try_start_among(compile(source), json!({}), &people()).unwrap();
    assert!(play.people.is_none() && play.review().problem.is_none(), "such a flow needs nobody's roles");
    play.roles("ana", Some(&["reviewer"])).unwrap();
    assert!(play.review().problem.unwrap().starts_with("nobody may decide this, which is for counsel: "));
    assert_eq!(play.roles("ana", Some(&["editor"])), Err(Refusal::Unchanged));
    // An escalation clears the problem until voters are checked again.
    play.people = None;
    play.now = play.now.after(Duration::from_hours(1));
    let task = *play.tasks.keys().next().unwrap();
    play.apply(Input::Due { task });
    assert_eq!((play.review().escalated.len(), play.review().problem), (1, None));
}

#[test]
fn who_decided_before_may_not_check_it() {
    let source = r#"
id: eyes
nodes:
  first: { human: { prompt: Pay?, options: [{ id: yes, label: "Yes" }] }, next: second }
  second:
    human:
      prompt: Really?
      options: [{ id: yes, label: "Yes" }]
      reviewers: { not_same_as: first }
"#;
    let mut play = Play::try_start_among(compile(source), json!({}), &people()).unwrap();
    play.votes(&[("ana", "yes")]);
    let review = play.review();
    assert_eq!((review.barred.len(), &review.problem), (1, &None));
    assert!(matches!(play.try_vote("ana", choose("yes")), Err(Refusal::Forbidden(why)) if why.contains("four eyes")));
    play.roles("bob", None).unwrap_err();
    play.roles("cid", None).unwrap();
    assert!(play.review().problem.unwrap().starts_with("nobody may decide this"));
    play.roles("cid", Some(&["reviewer"])).unwrap();
    assert_eq!(play.review().problem, None);
    play.votes(&[("cid", "yes")]);
    assert_eq!(play.status(), RunStatus::Completed);
}

#[test]
fn a_token_votes_only_for_groups_whose_roles_it_has() {
    let mut play = asked("policy: { groups: { editor: 1, legal: 1 } }");
    let review = play.review();
    let token = |roles: &[&str]| Principal { token: true, ..person("bob", roles) };
    let refused = play.try_decide(review.id, &token(&["reviewer"]), request(&review, choose("yes"))).unwrap_err();
    assert!(matches!(refused, Refusal::Forbidden(why) if why.contains("a role that this token does not have")));
    let all = token(&["reviewer", "editor", "legal"]);
    play.try_decide(review.id, &all, request(&review, choose("yes"))).unwrap();
    assert_eq!(play.said().0, "yes");
}

#[test]
fn a_timer_acts_whatever_the_votes() {
    let mut play = asked("policy: unanimous\n      timeout: 1h\n      on_timeout: approve");
    play.votes(&[("ana", "yes")]);
    let (id, task) = (play.review().id, *play.tasks.keys().next().unwrap());
    play.now = play.now.after(Duration::from_hours(1));
    play.apply(Input::Due { task });
    assert_eq!((play.past(id).status, play.past(id).decisions.len()), (ReviewStatus::Expired, 1));
    assert_eq!(play.said().0, "yes");
}

#[test]
fn a_timer_that_approves_goes_on_with_what_is_shown_by_then() {
    for (on_timeout, draft) in [("approve", "A better draft."), ("follow", "A draft.")] {
        let mut play = asked(&format!("policy: {{ quorum: 3 }}\n      timeout: 1h\n      on_timeout: {on_timeout}"));
        let review = play.review();
        let mut edit = request(&review, choose("yes"));
        edit.edits = object(json!({ "draft": "A better draft." }));
        play.try_decide(review.id, &who("bob"), edit).unwrap();
        play.now = play.now.after(Duration::from_hours(1));
        let deadline = *play.tasks.keys().next().unwrap();
        play.apply(Input::Due { task: deadline });
        assert_eq!(play.key("draft"), draft, "{on_timeout}");
    }
}
