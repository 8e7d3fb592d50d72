//! The context of a run: user, tenant, session and metadata are kept through every pause, and every later step sees the
//! metadata that a decision adds. And while one branch waits for a person, the others continue.

use super::*;

const SUPPORT: &str = r#"
id: support
agents:
  clerk: { model: demo/clerk, instructions: "You answer for {{ context.tenant }}.", tools: [book], max_turns: 3 }
tools:
  book:
    http:
      url: "https://example.com/{{ context.tenant }}/{{ context.session }}"
      headers: { ticket: "{{ context.metadata.ticket }}" }
      body: { user: "{{ context.user }}", metadata: "{{ context.metadata }}" }
gates: { before_tool: { book: { when: "context.metadata.plan == 'gold' && context.tenant == 'acme'" } } }
nodes:
  triage:
    human: { prompt: "{{ context.user }} of {{ context.tenant }}?", options: [{ id: take, label: Take }] }
    next: [{ to: answer, when: "context.metadata.ticket == 'T-7' && context.user == 'mara'" }, { to: lost, else: true }]
  answer: { agent: clerk, prompt: "Ticket {{ context.metadata.ticket }} of {{ context.user }}.", next: check }
  check:
    human:
      prompt_key: question
      prompt: Nobody said how to ask.
      options: [{ id: ok, label: Fine }, { id: redo, kind: correct, label: Again, message: Shorter. }]
    next: close
  close: { set: { closed: "{{ context.user }} {{ context.session }} {{ context.metadata }}" } }
  lost: { set: { closed: lost } }
"#;

fn whom() -> Context {
    Context {
        user: Some("mara".to_owned()),
        tenant: Some("acme".to_owned()),
        session: Some("s1".to_owned()),
        metadata: object(json!({ "plan": "gold" })),
    }
}

impl Play {
    /// Decides the only pending review, with this metadata.
    fn decide_beside(&mut self, verdict: Verdict, metadata: Value) {
        let review = self.review();
        let request = DecisionRequest { metadata: object(metadata), ..request(&review, verdict) };
        self.try_decide(review.id, &ana(), request).unwrap();
    }

    fn work_at(&self, node: &str) -> Work {
        work(&self.flow, &self.snapshot.state, &self.task_at(node)).unwrap()
    }
}

#[test]
fn for_whom_a_run_goes_and_what_decisions_add_reach_every_later_step() {
    let mut play = Play::try_start_for(compile(SUPPORT), json!({}), &[ana()], whom()).unwrap();
    let first = play.review();
    assert_eq!((first.prompt.as_str(), &first.context), ("mara of acme?", &whom()));

    // The metadata is seen by a condition of an edge, and by the instructions and the prompt of the next step.
    play.decide_beside(choose("take"), json!({ "ticket": "T-7" }));
    let Work::Model(request) = play.work_at("answer") else { panic!("a model is called") };
    assert_eq!(request.instructions.as_deref(), Some("You answer for acme."));
    assert_eq!(play.heard("answer"), [Message::User { text: "Ticket T-7 of mara.".to_owned() }]);

    // It is also seen by the gate's condition and its review. What is sent is what was shown, without what the decision
    // at the gate has added.
    play.model("answer", calls([("book", json!({ "what": 1 }))]));
    let gate = play.review();
    let known = |more: Value| {
        let mut whom = whom();
        whom.metadata.extend(object(more));
        whom
    };
    assert_eq!(gate.context, known(json!({ "ticket": "T-7" })));
    let approved = answer_actions([("c1-1", ActionDecision::APPROVE)]);
    play.decide_beside(approved, json!({ "plan": "silver", "question": "Is this right?" }));
    let all = json!({ "ticket": "T-7", "plan": "gold", "question": "Is this right?" });
    let task = play.task_at("answer");
    assert_eq!(Some(play.tool_work(&task).request), gate.actions[0].request);
    assert_eq!(json!(play.snapshot.state.context.metadata), all);

    // A prompt may come from metadata of a decision; the newest value counts.
    play.returned(&task, json!("booked"));
    play.model("answer", text("Done."));
    let check = play.review();
    assert_eq!((check.prompt.as_str(), &check.context), ("Is this right?", &known(all)));

    // Metadata is kept through a correction, and is seen by the last step.
    play.decide_beside(choose("redo"), json!({ "ticket": "T-8" }));
    play.model("answer", text("Shorter."));
    play.decide_beside(choose("ok"), json!({}));
    let closed = play.key("closed").as_str().unwrap();
    let metadata = r#"{"plan":"gold","ticket":"T-8","question":"Is this right?"}"#;
    assert_eq!(closed, format!("mara s1 {metadata}"));
    assert_eq!(shown_run(Some(&play.flow), &play.snapshot.state).context.metadata["ticket"], "T-8");
}

#[test]
fn no_decision_replaces_what_the_launch_said_for_whom_the_run_goes() {
    let source = r#"
id: pay
tools: { send: { http: { url: "https://example.com" } } }
gates: { before_tool: { send: { when: "context.metadata.tier != 'trusted'" } } }
nodes:
  note: { human: { prompt: A note?, options: [{ id: ok, label: Ok }] }, next: send }
  send: { tool: send }
"#;
    let guest = || Context { metadata: object(json!({ "tier": "guest" })), ..Context::default() };
    let mut play = Play::try_start_for(compile(source), json!({}), &[ana()], guest()).unwrap();
    play.decide_beside(choose("ok"), json!({ "tier": "trusted", "mood": "fine" }));
    let gate = play.review();
    assert_eq!(gate.actions.len(), 1, "the call is held back: {gate:?}");
    assert_eq!(Value::Object(gate.context.metadata), json!({ "tier": "guest", "mood": "fine" }));

    // A decision may add what the launch did not set. Launches from before this rule are replayed as they went.
    let mut play = Play::try_start_for(compile(source), json!({}), &[ana()], Context::default()).unwrap();
    play.decide_beside(choose("ok"), json!({ "tier": "trusted" }));
    assert!(!play.snapshot.reviews.values().any(Review::is_pending), "the call runs");
    let recorded = json!({
        "run": "01900000-0000-7000-8000-000000000001", "flow": "pay", "version": 1, "requested_by": "dev",
        "context": { "metadata": { "tier": "guest" } },
    });
    let recorded: RunStart = serde_json::from_value(recorded).unwrap();
    let moment = Play::moment(Timestamp(1_800_000_000_000_000), 0);
    let state = launch(&compile(source), recorded, Vec::new(), moment).unwrap().state;
    assert_eq!(state.launch_metadata, None);
}

#[test]
fn what_decisions_and_votes_add_in_all_is_bounded() {
    let source = "
id: poll
nodes:
  note: { human: { prompt: A note?, options: [{ id: ok, label: Ok }] }, next: poll }
  poll: { human: { prompt: Shall we?, options: [{ id: yes, label: Fine }], policy: unanimous } }
";
    let people: Vec<_> = (0..20).map(|number| person(&format!("voter{number}"), &["reviewer"])).collect();
    let given = Context { metadata: object(json!({ "given": "x".repeat(300 * 1024) })), ..Context::default() };
    let mut play = Play::try_start_for(compile(source), json!({}), &people, given).unwrap();
    let long = "x".repeat(15 * 1024);
    // Of a run from before the launch was told apart, nobody knows which of it the launch gave.
    let mut earlier = play.again();
    earlier.snapshot.state.launch_metadata = None;
    earlier.decide_beside(choose("ok"), json!({ "note": long }));
    play.decide_beside(choose("ok"), json!({ "note": long }));
    let vote = |play: &mut Play, voter: &Principal, metadata: Value| {
        let review = play.review();
        let request = DecisionRequest { metadata: object(metadata), ..request(&review, choose("yes")) };
        play.try_decide(review.id, voter, request)
    };
    // With the note, 17 members of 15 KiB are within 256 KiB.
    for voter in &people[..16] {
        vote(&mut play, voter, json!({ voter.username.as_str(): long })).unwrap();
    }
    let more = json!({ "more": long });
    let too_long = [("/metadata".to_owned(), "too_long".to_owned())];
    let review = play.review();
    let request = DecisionRequest { metadata: object(more.clone()), ..request(&review, choose("yes")) };
    let now = Play::moment(play.now, 9);
    let checked = check(&play.flow, play.snapshot.clone(), review.id, &people[16], &request, &[], now);
    assert_eq!(mistakes(checked.unwrap_err()), too_long, "a check says so, too");
    assert_eq!(mistakes(vote(&mut play, &people[16], more).unwrap_err()), too_long);
    vote(&mut play, &people[0], json!({ "voter0": "shorter" })).unwrap();
    for voter in &people[16..] {
        vote(&mut play, voter, json!({})).unwrap();
    }
    assert_eq!((play.status(), play.snapshot.state.context.metadata.len()), (RunStatus::Completed, 18));
}

#[test]
fn while_one_branch_waits_for_a_person_the_others_run_as_far_as_they_can() {
    let source = r"
id: wide
agents: { w: { model: demo/w } }
nodes:
  start: { set: { go: true }, next: [to-legal, to-price, text] }
  to-legal: { set: { a: 1 }, next: legal }
  to-price: { set: { b: 1 }, next: price }
  legal: { human: { prompt: Legal?, options: [{ id: ok, label: Ok }] }, next: all }
  price: { human: { prompt: Price?, options: [{ id: ok, label: Ok }] }, next: all }
  text: { agent: w, prompt: Write., next: polish }
  polish: { agent: w, prompt: Polish., next: all }
  all: { join: all, set: { done: true } }
";
    let mut play = Play::start(source, json!({}));
    let asked: Vec<_> = play.snapshot.reviews.values().map(|review| (review.id, review.prompt.clone())).collect();
    let id = |prompt: &str| asked.iter().find(|(_, asked)| asked == prompt).unwrap().0;
    assert_eq!((asked.len(), play.status()), (2, RunStatus::Running), "somebody works, so nothing stands still");
    play.model("text", text("A text."));
    play.model("polish", text("A better text."));
    assert_eq!((play.status(), play.key("polish")), (RunStatus::WaitingForHuman, &json!("A better text.")));

    // Each review is decided by its own id, in any order; the other stays as it was.
    let (legal, price) = (play.past(id("Legal?")).clone(), play.past(id("Price?")).clone());
    play.decide_on(&price, choose("ok"));
    assert_eq!((play.past(legal.id), play.status()), (&legal, RunStatus::WaitingForHuman));
    play.decide_on(&legal, choose("ok"));
    assert_eq!((play.status(), play.key("done")), (RunStatus::Completed, &json!(true)));
}
