//! Withdrawn reviews.

use super::*;

fn withdraw(play: &mut Play, by: &Principal, reason: Option<&str>) -> Result<Option<Refusal>, Refusal> {
    let review = play.review().id;
    play.try_apply(Input::Withdraw { review, by: by.clone(), via: Via::Human, reason: reason.map(str::to_owned) })
}

/// The user who started the run.
fn dev() -> Principal {
    person("dev", &[])
}

const ASK: &str = r#"
id: w
nodes:
  ask: { human: { prompt: Well?, options: [{ id: yes, label: Fine }], timeout: 24h, on_reject: after }, next: end }
  after: { set: { said: "{{ decisions.ask.kind }} {{ decisions.ask.comment }}" } }
"#;

#[test]
fn a_human_node_whose_review_is_taken_back_stops() {
    let mut play = Play::start(ARTICLE, json!({ "topic": "the ocean" }));
    play.model("draft", text("The sea."));
    let review = play.review();
    withdraw(&mut play, &dev(), Some("The campaign is off.")).unwrap();
    assert_eq!(play.error(), (FlowCode::FlowHumanRejected, "The campaign is off.".to_owned()));
    let resolution = play.past(review.id).resolution.clone().unwrap();
    assert_eq!((resolution.status, resolution.via), (ReviewStatus::Withdrawn, Via::Human));
    assert_eq!((resolution.by, resolution.reason.as_deref()), (vec![dev().username], Some("The campaign is off.")));
    let late = play.try_decide(review.id, &ana(), request(&review, choose("approve"))).unwrap_err();
    assert!(matches!(late, Refusal::ReviewResolved(_)), "{late:?}");
}

#[test]
fn it_goes_to_on_reject_where_the_node_names_one() {
    let mut play = Play::start(ASK, json!({}));
    withdraw(&mut play, &dev(), Some("never mind")).unwrap();
    assert_eq!((play.status(), play.key("said")), (RunStatus::Completed, &json!("stop never mind")));
}

#[test]
fn calls_whose_review_is_taken_back_are_rejected() {
    let source = "id: g\nagents: { sage: { model: demo/sage, tools: [send] } }\n\
        tools: { send: { http: { url: \"https://x\" }, ask_permission: true } }\n\
        nodes: { think: { agent: sage, prompt: Think. } }\n";
    let mut play = Play::start(source, json!({}));
    play.model("think", calls([("send", json!({}))]));
    withdraw(&mut play, &dev(), None).unwrap();
    let Some(Message::Tool { content, .. }) = play.heard("think").pop() else { unreachable!() };
    assert_eq!(content, json!("TOOL_PERMISSION_DENIED: the review was withdrawn"));
}

#[test]
fn only_who_started_the_run_and_admins_take_a_review_back() {
    let mut play = Play::start(ASK, json!({}));
    for who in [ana(), person("max", &["developer"])] {
        let refused = withdraw(&mut play, &who, None).unwrap_err();
        assert!(matches!(refused, Refusal::Forbidden(_)), "{refused:?}");
    }
    assert_eq!(withdraw(&mut play, &person("eve", &[]), None), Err(Refusal::NotFound));
    withdraw(&mut play, &person("boss", &["admin"]), None).unwrap();
}
