//! Answers of the three kinds of servers: text as it arrives, tool calls, and any split into pieces.

use serde_json::{Value, json};

use super::server::{Answer, Body, Server};
use super::wire::{Call, WIRES, Wire};
use super::*;

/// Returns what a server's answer is read as, and the pieces of text that were streamed.
async fn heard(wire: Wire, answer: Answer) -> (Result<ModelAnswer, TaskFailure>, Vec<String>) {
    let server = Server::start(answer).await;
    let pieces = Mutex::new(Vec::new());
    let request = request(&wire.model("m"), vec![user("Hi")]);
    let answer = wire.models(&server).call(&request, &|piece| pieces.lock().unwrap().push(piece.to_owned())).await;
    (answer, pieces.into_inner().unwrap())
}

async fn calls(wire: Wire, body: Vec<u8>) -> Vec<ModelToolCall> {
    heard(wire, Answer::whole(body)).await.0.unwrap().calls
}

fn call(id: &str, tool: &str, arguments: Value) -> ModelToolCall {
    ModelToolCall { provider_id: id.to_owned(), tool: tool.to_owned(), arguments }
}

#[tokio::test]
async fn text_comes_whole_however_its_bytes_are_cut_into_pieces() {
    let texts = ["Grüße 🌍", "\n\ndata: [DONE]\r\n", "— “ende”"];
    for wire in WIRES {
        let body = wire.answer(&texts, &[]);
        for size in [1, 2, 3, 7, 64, body.len()] {
            let (answer, pieces) = heard(wire, Answer::cut_up(&body, size)).await;
            let answer = answer.unwrap();
            assert_eq!((answer.text.as_str(), answer.tokens), (&*texts.concat(), 9), "{wire:?} by {size}");
            assert_eq!(pieces, texts, "{wire:?} by {size}");
            assert!(answer.calls.is_empty());
        }
    }
}

#[tokio::test]
async fn text_is_streamed_before_the_answer_has_ended() {
    for wire in WIRES {
        let server = Server::start(Answer::new(Body::Silence(wire.begun(&["Hel", "lo"])))).await;
        let models = wire.models(&server);
        let request = request(&wire.model("m"), vec![user("Hi")]);
        let (said, mut hears) = tokio::sync::mpsc::unbounded_channel();
        let on_text = move |piece: &str| said.send(piece.to_owned()).unwrap();
        let answer = models.call(&request, &on_text);
        tokio::pin!(answer);
        let mut text = String::new();
        while text != "Hello" {
            tokio::select! {
                answer = &mut answer => panic!("{wire:?}: {answer:?}"),
                piece = hears.recv() => text.push_str(&piece.unwrap()),
            }
        }
    }
}

#[tokio::test]
async fn several_calls_of_a_turn_keep_their_order_their_ids_and_their_arguments() {
    let made = [
        Call::new("call_a", "search", &["{\"q\":", " \"grü", "ße\"}"]),
        Call::new("call_b", "search", &["{\"q\":\"two\",\"deep\":{\"n\":[1,null]}}"]),
        Call::new("call_c", "publish", &["{}"]),
    ];
    for wire in WIRES {
        let body = wire.answer(&["I look."], &made);
        for size in [1, 5, body.len()] {
            let (answer, _) = heard(wire, Answer::cut_up(&body, size)).await;
            let answer = answer.unwrap();
            let expected = [
                call("call_a", "search", json!({ "q": "grüße" })),
                call("call_b", "search", json!({ "q": "two", "deep": { "n": [1, null] } })),
                call("call_c", "publish", json!({})),
            ];
            assert_eq!(answer.calls, expected, "{wire:?} by {size}");
            assert_eq!((answer.text.as_str(), answer.tokens), ("I look.", 9));
        }
    }
}

#[tokio::test]
async fn a_call_without_arguments_has_none() {
    for wire in WIRES {
        let body = wire.answer(&[], &[Call::new("call_a", "publish", &[]), Call::new("call_b", "publish", &["  "])]);
        let expected = [call("call_a", "publish", json!({})), call("call_b", "publish", json!({}))];
        assert_eq!(calls(wire, body).await, expected, "{wire:?}");
    }
}

#[tokio::test]
async fn arguments_that_are_no_json_are_given_on_as_they_were_written() {
    for wire in WIRES {
        let body = wire.answer(&[], &[Call::new("call_a", "publish", &["{\"title\": \"A", "\", }"])]);
        assert_eq!(calls(wire, body).await, [call("call_a", "publish", json!("{\"title\": \"A\", }"))], "{wire:?}");
        // JSON, but not an object: the engine reports it.
        let body = wire.answer(&[], &[Call::new("call_a", "publish", &["[1]"])]);
        assert_eq!(calls(wire, body).await, [call("call_a", "publish", json!([1]))], "{wire:?}");
    }
}

/// Compatible servers number tool calls differently.
#[tokio::test]
async fn calls_are_told_apart_by_id_and_index_whatever_the_server_makes_of_them() {
    let piece = |call: Value| {
        let choice = json!({ "index": 0, "delta": { "tool_calls": [call] }, "finish_reason": null });
        Wire::OpenAi.frame(&json!({ "choices": [choice] }))
    };
    let answer = |pieces: &[Value]| {
        let mut body: Vec<u8> = pieces.iter().cloned().flat_map(piece).collect();
        body.extend(Wire::OpenAi.answer(&[], &[]));
        body
    };
    let one = json!({ "index": 0, "id": "a", "function": { "name": "x", "arguments": "{\"n\":1}" } });
    let two = json!({ "index": 0, "id": "b", "function": { "name": "y", "arguments": "{}" } });
    let expected = [call("a", "x", json!({ "n": 1 })), call("b", "y", json!({}))];
    assert_eq!(calls(Wire::OpenAi, answer(&[one.clone(), two.clone()])).await, expected, "one index for all");

    // Indexes with gaps, up to the largest possible.
    let far = |index: u64, call: &Value| {
        let mut call = call.clone();
        call["index"] = json!(index);
        call
    };
    let body = answer(&[far(7, &one), far(u64::from(u32::MAX), &two)]);
    assert_eq!(calls(Wire::OpenAi, body).await, expected, "gaps");

    // No index, no id, and arguments that are a value instead of text.
    let bare = json!({ "function": { "name": "x", "arguments": { "n": 1 } } });
    let next = json!({ "function": { "name": "y", "arguments": "" } });
    let expected = [call("call_1", "x", json!({ "n": 1 })), call("call_2", "y", json!({}))];
    assert_eq!(calls(Wire::OpenAi, answer(&[bare, next])).await, expected, "neither index nor id");

    // Name and id in each piece, and calls whose pieces alternate.
    let again = |index: u32, id: &str, arguments: &str| json!({ "index": index, "id": id, "function": { "name": "x", "arguments": arguments } });
    let pieces = [again(0, "a", "{\"n\""), again(1, "b", "{\"n\""), again(0, "a", ":1}"), again(1, "", ":2}")];
    let expected = [call("a", "x", json!({ "n": 1 })), call("b", "x", json!({ "n": 2 }))];
    assert_eq!(calls(Wire::OpenAi, answer(&pieces)).await, expected, "pieces that alternate");
}

#[tokio::test]
async fn what_a_model_thinks_is_no_part_of_its_answer() {
    let openai = |delta: Value| json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] });
    let block = |kind: &str, delta: Value| {
        vec![
            json!({ "type": "content_block_start", "index": 0, "content_block": { "type": kind } }),
            json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
            json!({ "type": "content_block_delta", "index": 0,
                "delta": { "type": "signature_delta", "signature": "x" } }),
            json!({ "type": "content_block_stop", "index": 0 }),
        ]
    };
    for (wire, thoughts) in [
        (Wire::OpenAi, vec![openai(json!({ "reasoning_content": "hm" })), openai(json!({ "reasoning": "hm" }))]),
        (Wire::Anthropic, block("thinking", json!({ "type": "thinking_delta", "thinking": "hm" }))),
        (Wire::Ollama, vec![json!({ "message": { "content": "", "thinking": "hm" }, "done": false })]),
    ] {
        let mut body: Vec<u8> = thoughts.iter().flat_map(|frame| wire.frame(frame)).collect();
        body.extend(wire.answer(&["Yes"], &[]));
        let (answer, pieces) = heard(wire, Answer::whole(body)).await;
        assert_eq!((answer.unwrap().text.as_str(), pieces.concat().as_str()), ("Yes", "Yes"), "{wire:?}");
    }
}

#[tokio::test]
async fn frames_are_read_as_their_standard_has_them() {
    for wire in [Wire::OpenAi, Wire::Anthropic] {
        let body = String::from_utf8(wire.answer(&["Hi"], &[])).unwrap();
        let crlf = body.replace('\n', "\r\n");
        let tight = body.replace("data: ", "data:");
        let noisy = format!(": keep-alive\n\n\n{}", body.replace("\n\n", "\nid: 7\nretry: 10\n\n: ping\n\n"));
        let split = body.replace(",\"", ",\ndata: \"");
        for body in [crlf, tight, noisy, split] {
            let (answer, _) = heard(wire, Answer::cut_up(body.as_bytes(), 3)).await;
            assert_eq!(answer.unwrap().text, "Hi", "{wire:?}: {body}");
        }
    }
    // A regular end is enough, even without `[DONE]`, and the last line needs no line feed.
    let body = String::from_utf8(Wire::OpenAi.answer(&["Hi"], &[])).unwrap();
    let (answer, _) = heard(Wire::OpenAi, Answer::whole(body.replace("data: [DONE]\n\n", ""))).await;
    assert_eq!(answer.unwrap().text, "Hi");
    let body = String::from_utf8(Wire::Ollama.answer(&["Hi"], &[])).unwrap();
    let (answer, _) = heard(Wire::Ollama, Answer::whole(body.trim_end())).await;
    assert_eq!(answer.unwrap().text, "Hi");
}

#[tokio::test]
async fn a_model_that_declines_has_not_answered() {
    let openai = |delta: Value, reason: Value| json!({ "choices": [{ "delta": delta, "finish_reason": reason }] });
    for (wire, frames) in [
        (
            Wire::OpenAi,
            vec![
                openai(json!({ "refusal": "I will" }), json!(null)),
                openai(json!({ "refusal": " not." }), json!("stop")),
            ],
        ),
        (Wire::OpenAi, vec![openai(json!({ "content": "Well" }), json!("content_filter"))]),
        (Wire::Anthropic, vec![json!({ "type": "message_delta", "delta": { "stop_reason": "refusal" }, "usage": {} })]),
    ] {
        let body: Vec<u8> = frames.iter().flat_map(|frame| wire.frame(frame)).chain(wire.answer(&[], &[])).collect();
        let failure = heard(wire, Answer::whole(body)).await.0.unwrap_err();
        assert!(!failure.retryable && failure.message.contains("declined"), "{wire:?}: {failure:?}");
        let says = failure.message.contains("I will not.");
        assert_eq!(says, frames.len() == 2, "{failure:?}");
    }
}
