//! Which decisions are accepted, and what else people do at a review.

use shared::log::ReviewViewed;
use shared::request::Request;

use super::*;

const ASK: &str = r#"
id: d
input: { type: object, properties: { text: { type: string }, price: { type: integer } } }
nodes:
  ask:
    human:
      prompt_key: question
      prompt: "About {{ text }}?"
      review_keys: [{ key: text, label: The text }]
      edit_keys: [text, { key: price, schema: { type: integer, minimum: 1 } }]
      options: [{ id: yes, label: Fine }, { id: no, kind: stop, label: No, message: It is not good. }]
      reviewers: { roles: [editor], users: [tom], not_requester: true }
"#;

fn asked() -> Play {
    Play::start(ASK, json!({ "text": "hello", "price": 3 }))
}

fn editor() -> Principal {
    person("eva", &["editor"])
}

#[test]
fn everything_that_is_wrong_with_a_decision_is_said_at_once_and_nothing_is_applied() {
    let mut play = asked();
    let review = play.review();
    let mut wrong = request(&review, choose("maybe"));
    wrong.edits = object(json!({ "text": 5, "price": 0, "other": true }));
    wrong.comment = Some("x".repeat(100_001));
    let before = play.snapshot.clone();
    assert_eq!(
        mistakes(play.try_decide(review.id, &editor(), wrong).unwrap_err()),
        [
            ("/comment".to_owned(), "too_long".to_owned()),
            ("/verdict/option".to_owned(), "unknown".to_owned()),
            ("/edits/text".to_owned(), "invalid".to_owned()),
            ("/edits/price".to_owned(), "invalid".to_owned()),
            ("/edits/other".to_owned(), "not_editable".to_owned()),
        ]
    );
    assert_eq!(play.snapshot, before);

    let mut stop_with_edits = request(&review, choose("no"));
    stop_with_edits.edits = object(json!({ "text": "x" }));
    let refused = |play: &mut Play, request| mistakes(play.try_decide(review.id, &editor(), request).unwrap_err());
    assert_eq!(refused(&mut play, stop_with_edits)[0].0, "/edits");
    assert_eq!(refused(&mut play, request(&review, say("hm")))[0].0, "/verdict/type");
    assert_eq!(refused(&mut play, request(&review, answer_actions([])))[0].0, "/verdict/type");
}

#[test]
fn every_action_needs_an_answer_that_it_allows() {
    let mut play = Play::start(ARTICLE, json!({ "topic": "tea" }));
    play.model("draft", text("Leaves."));
    play.decide(choose("approve"));
    let gate = play.review();
    let refused = |play: &mut Play, verdict| {
        mistakes(play.try_decide(gate.id, &ana(), request(&gate, verdict)).unwrap_err())
            .into_iter()
            .map(|(path, code)| format!("{path} {code}"))
            .collect::<Vec<_>>()
    };
    let unknown = answer_actions([("c9-9", ActionDecision::APPROVE)]);
    assert_eq!(refused(&mut play, unknown), ["/verdict/decisions/c9-9 unknown", "/verdict/decisions/c1-1 required"]);
    let respond = answer_actions([("c1-1", ActionDecision::Respond { message: "no".to_owned() })]);
    assert_eq!(refused(&mut play, respond), ["/verdict/decisions/c1-1/type not_allowed"]);
    let arguments = object(json!({ "title": 5 }));
    let edit = answer_actions([("c1-1", ActionDecision::Edit { arguments })]);
    assert_eq!(refused(&mut play, edit), ["/verdict/decisions/c1-1/arguments/title invalid"]);
    assert_eq!(refused(&mut play, choose("approve")), ["/verdict/option unknown"]);
}

#[test]
fn a_correction_needs_a_message_and_a_source_with_visits_left() {
    let mut play = Play::start(ARTICLE, json!({ "topic": "tea" }));
    play.model("draft", text("Leaves."));
    let review = play.review();
    let silent = play.try_decide(review.id, &ana(), request(&review, choose("again"))).unwrap_err();
    assert_eq!(mistakes(silent), [("/comment".to_owned(), "required".to_owned())]);
    play.decide(choose("shorten"));
    play.model("draft", text("Leaf."));
    let review = play.review();
    assert_eq!(review.source.as_ref().map(|source| (source.visits, source.max_visits)), Some((2, 2)));
    let refused = play.try_decide(review.id, &ana(), request(&review, choose("shorten"))).unwrap_err();
    assert!(matches!(refused, Refusal::VisitLimit(_)), "{refused:?}");
    play.decide(choose("approve"));
}

#[test]
fn a_correction_needs_a_visit_of_the_node_that_asks() {
    let flow = |more: &str| {
        format!(
            "id: f\nagents: {{ w: {{ model: demo/w }} }}\nnodes:\n  draft: {{ agent: w, prompt: Write., next: ask }}\n  \
             ask: {{ human: {{ prompt: Fine?, options: [{{ id: yes, label: Yes }}] }}, max_visits: 1{more} }}\n"
        )
    };
    let other = "  other: { human: { prompt: And? } }\n";
    for (flow, is_refused) in [(flow(""), true), (flow(", on_visit_limit: other") + other, false)] {
        let mut play = Play::start(&flow, json!({}));
        play.model("draft", text("Leaves."));
        let review = play.review();
        let decided = play.try_decide(review.id, &ana(), request(&review, say("Shorter.")));
        assert_eq!(matches!(decided, Err(Refusal::VisitLimit(_))), is_refused, "{decided:?}");
        assert_eq!(play.status() == RunStatus::WaitingForHuman, is_refused);
    }
}

#[test]
fn of_two_decisions_one_wins_and_the_other_hears_who_decided_what() {
    let mut play = asked();
    let review = play.review();
    play.try_decide(review.id, &editor(), request(&review, choose("yes"))).unwrap();
    let tom = person("tom", &["reviewer"]);
    let refused = play.try_decide(review.id, &tom, request(&review, choose("no"))).unwrap_err();
    let Refusal::ReviewResolved(resolved) = refused else { panic!("{refused:?}") };
    let resolution = resolved.resolution.unwrap();
    assert_eq!((resolution.by[0].as_str(), resolution.outcome), ("eva", shared::review::Outcome::Accepted));
}

#[test]
fn who_may_not_see_a_review_does_not_find_it_and_who_may_not_decide_it_is_told() {
    let mut play = asked();
    let review = play.review();
    let yes = request(&review, choose("yes"));
    let refused = |play: &mut Play, by: Principal| play.try_decide(review.id, &by, yes.clone()).unwrap_err();
    assert_eq!(refused(&mut play, person("bob", &["reviewer"])), Refusal::NotFound);
    assert!(matches!(refused(&mut play, person("dan", &["developer"])), Refusal::Forbidden(_)));
    // The requester holds the role, and still may not decide their own run.
    assert!(matches!(refused(&mut play, person("dev", &["editor"])), Refusal::Forbidden(_)));
    let unknown = "01900000-0000-7000-8000-0000000000ff".parse().unwrap();
    assert_eq!(play.try_decide(unknown, &editor(), yes.clone()), Err(Refusal::NotFound));
}

#[test]
fn another_revision_or_digest_than_the_present_one_is_refused() {
    let mut play = asked();
    let review = play.review();
    for (revision, digest) in [(2, review.digest.clone()), (1, "sha256:other".to_owned())] {
        let other = DecisionRequest { revision, digest, ..request(&review, choose("yes")) };
        let refused = play.try_decide(review.id, &editor(), other).unwrap_err();
        assert_eq!(refused, Refusal::RevisionChanged(Box::new(review.clone())));
    }
}

#[test]
fn a_review_has_so_many_comments_and_no_more() {
    let mut play = asked();
    let id = play.review().id;
    let say = |text: &str| Input::Comment { review: id, by: editor(), via: Via::Human, text: text.to_owned() };
    let refused = |play: &mut Play, text: &str| match play.try_apply(say(text)) {
        Err(Refusal::Invalid(mistakes)) => mistakes[0].code.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(&mut play, " "), "required");
    assert_eq!(refused(&mut play, &"x".repeat(10_001)), "too_long");
    for index in 0..200 {
        play.apply(say(&index.to_string()));
    }
    assert_eq!(refused(&mut play, "one more"), "too_many");
    assert_eq!(play.review().comments.len(), 200);
    let review = play.review();
    play.try_decide(id, &editor(), request(&review, choose("yes"))).unwrap();
}

#[test]
fn a_claim_is_advisory_and_runs_out() {
    let mut play = asked();
    let id = play.review().id;
    let tom = person("tom", &["reviewer"]);
    play.apply(Input::Claim { review: id, by: editor(), via: Via::Human });
    let claimed = play.review();
    assert_eq!((claimed.version, claimed.revision), (2, 1));
    assert_eq!(claimed.claimed_by.as_ref().unwrap().until, play.now.after(Duration::from_mins(15)));
    assert_eq!(play.events[0].data["change"], "claim");
    play.apply(Input::Claim { review: id, by: editor(), via: Via::Human });
    assert_eq!((play.review().version, play.events.len()), (2, 0), "said again, it is no entry of the log");
    assert!(matches!(
        play.try_apply(Input::Claim { review: id, by: tom.clone(), via: Via::Human }),
        Err(Refusal::ReviewClaimed(_))
    ));
    assert!(matches!(
        play.try_apply(Input::Release { review: id, by: tom.clone(), via: Via::Human }),
        Err(Refusal::ReviewClaimed(_))
    ));
    play.now = play.now.after(Duration::from_mins(15));
    play.apply(Input::Claim { review: id, by: tom.clone(), via: Via::Human });
    let told = |play: &Play| (play.events[0].data["change"].clone(), play.events[0].data["via"].clone());
    assert_eq!(told(&play), (json!("claim"), json!("human")), "and through what it was said");
    play.apply(Input::Comment { review: id, by: editor(), via: Via::Cli, text: "Look at the price.".to_owned() });
    assert_eq!(told(&play), (json!("comment"), json!("cli")));
    // Recorded is what a person was shown, also if it has changed since.
    let seen = ReviewViewed { revision: 7, ..ReviewViewed::of(&claimed) };
    play.apply(Input::Viewed { review: id, by: editor(), seen: Some(seen) });
    assert_eq!((play.kinds(), &play.events[0].data["revision"]), (vec!["review.viewed"], &json!(7)));
    let review = play.review();
    assert_eq!((review.version, review.revision, review.digest == claimed.digest), (4, 1, true));
    play.try_decide(id, &editor(), request(&review, choose("yes"))).unwrap();
    assert!(matches!(
        play.try_apply(Input::Claim { review: id, by: tom, via: Via::Human }),
        Err(Refusal::ReviewResolved(_))
    ));
}

#[test]
fn the_question_comes_from_the_state_then_the_context_then_the_prompt() {
    assert_eq!(asked().review().prompt, "About hello?");
    let review = asked().review();
    let shown: Vec<_> =
        review.items.iter().map(|item| (item.key.as_str(), item.editable, item.label.as_deref())).collect();
    assert_eq!(shown, [("text", true, Some("The text")), ("price", true, None)]);
    let held = ASK.replace("price: { type: integer } }", "price: { type: integer }, question: { type: string } }");
    let play = Play::start(&held, json!({ "text": "x", "question": "Is {{ this }} good?" }));
    assert_eq!(play.review().prompt, "Is {{ this }} good?", "what the state holds is no template");
}

#[test]
fn a_source_that_is_no_agent_sees_the_correction_for_one_visit() {
    let source = r#"
id: c
tools:
  search: { http: { url: "https://x/{{ correction | default('all') | urlencode }}" }, parameters: { type: object, properties: { q: {}, visit: {} } } }
nodes:
  find: { tool: search, arguments: { q: "{{ correction | default('all') }}" }, next: ask }
  ask: { human: { prompt: Enough?, review_keys: [find], options: [{ id: yes, label: Yes }] } }
"#;
    let mut play = Play::start(source, json!({}));
    let task = play.task_at("find");
    assert_eq!(play.tool_work(&task).arguments, object(json!({ "q": "all" })));
    play.returned(&task, json!([]));
    play.decide(say("only red ones"));
    let task = play.task_at("find");
    let request = play.tool_work(&task);
    assert_eq!(request.arguments, object(json!({ "q": "only red ones" })));
    assert!(matches!(request.request, Request::Http(http) if http.url == "https://x/only%20red%20ones"));
    play.returned(&task, json!(["r"]));
    play.decide(choose("yes"));
    assert_eq!((play.status(), play.key("find")), (RunStatus::Completed, &json!(["r"])));
    assert_eq!(play.key("correction"), &Value::Null);
}
