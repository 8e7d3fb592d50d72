//! The template of a new flow: an agent writes, a person decides.

/// A small flow that runs without any API key.
pub fn template(id: &str) -> String {
    let title = id.split('-').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let title = crate::state::sentences::sentence(&title);
    format!(
        r#"id: {id}
title: {title:?}
description: An agent writes, a person decides.
input:
  type: object
  required: [topic]
  properties:
    topic: {{ type: string, title: Topic, examples: [the ocean] }}
agents:
  # The model `demo` needs no key. Others: openai/…, anthropic/…, ollama/…
  writer: {{ model: demo/writer, instructions: You are a careful writer. }}
nodes:
  draft:
    agent: writer
    prompt: "Write a short text about {{{{ topic }}}}."
    write_keys: [draft]
    max_visits: 5
    next: review
  review:
    human:
      prompt: Please review the draft.
      review_keys: [draft]
      edit_keys: [draft]
      options:
        - {{ id: approve, kind: accept, label: Looks good }}
        - {{ id: revise, kind: correct, label: Needs revision, message: Please make it more concise. }}
        - {{ id: reject, kind: stop, label: "Reject, stop the flow" }}
      timeout: 24h
      on_timeout: reject
"#
    )
}
