//! Flows that tests launch.

/// A flow that asks a person, and then calls a tool with the chosen option: exactly one of `act_yes` and `act_no` runs.
/// `human` is further YAML of the human node, such as `timeout: 1s`.
pub fn choice(recorder: &str, human: &str) -> String {
    format!(
        r#"id: choice
title: A choice
input:
  type: object
  required: [topic]
  properties:
    topic: {{ type: string }}
tools:
  record:
    description: Writes down what was chosen
    http: {{ url: "{recorder}" }}
    idempotent: true
    parameters:
      type: object
      properties:
        topic: {{ type: string }}
        chosen: {{ type: string }}
nodes:
  ask:
    human:
      prompt: Yes or no?
      review_keys: [topic]
      options:
        - {{ id: "yes", kind: accept, label: "Yes" }}
        - {{ id: "no", kind: accept, label: "No" }}
      {human}
    next:
      - {{ to: act_yes, when: 'decision.option == "yes"' }}
      - {{ to: act_no, else: true }}
  act_yes:
    tool: record
    arguments: {{ topic: "{{{{ topic }}}}", chosen: "yes" }}
    write_keys: [receipt_yes]
  act_no:
    tool: record
    arguments: {{ topic: "{{{{ topic }}}}", chosen: "no" }}
    write_keys: [receipt_no]
"#
    )
}

/// A flow in which an agent writes, a person reviews and may edit, and a gated tool publishes.
pub fn article(recorder: &str) -> String {
    format!(
        r#"id: article
title: Write, review and publish
input:
  type: object
  required: [topic]
  properties:
    topic: {{ type: string }}
agents:
  writer:
    model: demo/writer
    demo:
      replies: ["A draft.", "A shorter draft."]
tools:
  record:
    description: Publishes
    http: {{ url: "{recorder}" }}
    idempotent: true
    parameters:
      type: object
      required: [topic, text]
      additionalProperties: false
      properties:
        topic: {{ type: string }}
        text: {{ type: string }}
gates:
  before_tool:
    record: {{ allowed_decisions: [approve, edit, reject], severity: high, reversible: false }}
nodes:
  draft:
    agent: writer
    prompt: "Write about {{{{ topic }}}}."
    write_keys: [draft]
    next: review
  review:
    human:
      prompt: Please review the draft.
      review_keys: [topic, draft]
      edit_keys: [draft]
      options:
        - {{ id: approve, kind: accept, label: "Looks good, continue" }}
        - {{ id: shorten, kind: correct, label: Needs revision, message: Please make it shorter. }}
        - {{ id: rewrite, kind: correct, label: Say what to change }}
        - {{ id: reject, kind: stop, label: "Reject, stop the flow" }}
    next: publish
  publish:
    tool: record
    arguments: {{ topic: "{{{{ topic }}}}", text: "{{{{ draft }}}}" }}
    write_keys: [receipt]
"#
    )
}

/// Like [`article`] without the gate, so that one decision finishes a run.
pub fn quick_article(recorder: &str) -> String {
    let source = article(recorder).replace("id: article", "id: quick");
    let (before, rest) = source.split_once("gates:\n").unwrap_or((&source, ""));
    let (_, after) = rest.split_once("nodes:\n").unwrap_or(("", rest));
    format!("{before}nodes:\n{after}")
}

/// A flow with a single human node. `reviewers` is the YAML of its reviewers.
pub fn question(id: &str, reviewers: &str) -> String {
    format!(
        r"id: {id}
title: A question
input:
  type: object
  properties:
    text: {{ type: string }}
nodes:
  ask:
    human:
      prompt: What do you say?
      review_keys: [text]
      options:
        - {{ id: approve, kind: accept, label: Good }}
        - {{ id: reject, kind: stop, label: Stop }}
      reviewers: {reviewers}
"
    )
}

/// A flow that asks a person, and then lets an agent write a long text.
pub fn essay() -> String {
    let text = "One more sentence of the essay, to be read as it is written. ".repeat(20);
    format!(
        r#"id: essay
title: An essay
agents:
  writer: {{ model: demo/writer, demo: {{ replies: ["{text}"] }} }}
nodes:
  ask:
    human:
      prompt: Shall it be written?
      options: [{{ id: approve, kind: accept, label: "Yes" }}]
    next: write
  write: {{ agent: writer, prompt: Write it. }}
"#
    )
}
