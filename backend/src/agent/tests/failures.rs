//! Failures between the worker and a model: their messages, whether and when a retry helps, and what is never revealed.

use serde_json::json;

use super::server::{Answer, Body, Server};
use super::wire::{Call, KEY, WIRES, Wire};
use super::*;

async fn failure(wire: Wire, answer: Answer) -> TaskFailure {
    failure_within(wire, answer, Duration::from_mins(1)).await
}

async fn failure_within(wire: Wire, answer: Answer, timeout: Duration) -> TaskFailure {
    let server = Server::start(answer).await;
    let models = Models::new(ModelOptions { timeout, ..wire.options(&server) }).unwrap();
    let failure = models.call(&request(&wire.model("m"), vec![user("Hi")]), &|_| {}).await.unwrap_err();
    assert_eq!(failure.code, FlowCode::ModelFailed, "{wire:?}: {failure:?}");
    assert!(!failure.message.contains(KEY), "{wire:?}: {failure:?}");
    failure
}

#[tokio::test]
async fn a_refusal_says_what_the_provider_said_and_whether_trying_again_could_help() {
    for (status, kind, retryable) in [
        (307, "redirect", false),
        (400, "invalid_request_error", false),
        (401, "authentication_error", false),
        (403, "permission_error", false),
        (404, "not_found_error", false),
        (408, "timeout_error", true),
        (409, "conflict", true),
        (413, "request_too_large", false),
        (429, "rate_limit_error", true),
        (500, "api_error", true),
        (503, "unavailable", true),
        (529, "overloaded_error", true),
    ] {
        for wire in WIRES {
            // Ollama has no key that could leak.
            let key = if wire == Wire::Ollama { "" } else { KEY };
            let body = wire.error(kind, &format!("no luck with {key}"));
            let answer = Answer::refusal(status, &body).header("location", "http://127.0.0.1:1/elsewhere");
            let failure = failure(wire, answer).await;
            assert_eq!(failure.retryable, retryable, "{wire:?} {status}: {failure:?}");
            let told = format!("(HTTP {status}): no luck with");
            assert!(failure.message.contains(&told), "{wire:?} {status}: {failure:?}");
        }
    }
}

#[tokio::test]
async fn an_answer_that_came_to_its_limit_of_tokens_is_no_answer() {
    for wire in WIRES {
        // If a tool call was cut off before its arguments, it must not be made without arguments.
        let cut = Call::new("call_1", "pay", if wire == Wire::Ollama { &["{}"] } else { &[] });
        for (texts, calls) in [(&["Half a sen"][..], &[][..]), (&[], &[cut])] {
            let failure = failure(wire, Answer::whole(wire.cut_off(texts, calls))).await;
            assert!(failure.retryable && failure.message.contains("`max_tokens`"), "{wire:?}: {failure:?}");
            assert_eq!(failure.usage.map(|usage| usage.tokens), Some(9), "{wire:?}");
        }
    }
}

#[tokio::test]
async fn a_refusal_without_a_form_is_told_as_it_is_and_cut() {
    for wire in WIRES {
        let page = Answer { status: 502, ..Answer::whole(format!("<h1>Bad gateway</h1>{}", "x".repeat(5000))) };
        let failure = failure(wire, page).await;
        assert!(failure.retryable && failure.message.contains("<h1>Bad gateway</h1>"), "{failure:?}");
        assert!(failure.message.len() < 700, "{failure:?}");
    }
}

#[tokio::test]
async fn a_server_that_says_when_to_come_back_is_heard() {
    for wire in WIRES {
        for (status, headers, after) in [
            (429, vec![("retry-after", "7")], Some(7_000)),
            (529, vec![("retry-after", "120")], Some(120_000)),
            (429, vec![("retry-after-ms", "1500"), ("retry-after", "2")], Some(1_500)),
            (
                503,
                vec![("date", "Sun, 06 Nov 1994 08:49:37 GMT"), ("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT")],
                Some(30_000),
            ),
            (429, vec![("retry-after", "soon")], None),
            (429, vec![], None),
        ] {
            let refusal = Answer::refusal(status, &wire.error("rate_limit_error", "slow down"));
            let answer = headers.iter().fold(refusal, |answer, (name, value)| answer.header(name, *value));
            let failure = failure(wire, answer).await;
            let told = failure.retry_after.map(|after| u64::try_from(after.0.as_millis()).unwrap());
            assert_eq!((failure.retryable, told), (true, after), "{wire:?} {headers:?}");
        }
    }
}

#[tokio::test]
async fn a_quota_that_is_used_up_is_not_tried_again() {
    let answer = Answer::refusal(429, &Wire::OpenAi.error("insufficient_quota", "check your plan"));
    assert!(!failure(Wire::OpenAi, answer).await.retryable);
}

#[tokio::test]
async fn an_error_in_the_middle_of_an_answer_is_a_failure_and_no_answer() {
    for wire in WIRES {
        for (kind, retryable) in
            [("overloaded_error", true), ("server_error", true), ("invalid_request_error", wire == Wire::Ollama)]
        {
            let mut body = wire.begun(&["Hel"]);
            body.extend(wire.frame(&wire.error(kind, "the model went away")));
            let failure = failure(wire, Answer::whole(body)).await;
            assert_eq!(failure.retryable, retryable, "{wire:?} {kind}: {failure:?}");
            assert!(failure.message.contains("the model went away"), "{wire:?}: {failure:?}");
        }
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_a_failure_and_no_answer() {
    for wire in WIRES {
        for begun in [Vec::new(), wire.begun(&["Hel", "lo"]), {
            let whole = wire.answer(&["Hello"], &[]);
            whole[..whole.len() / 2].to_vec()
        }] {
            // The connection broke, or it ended regularly before the answer was complete.
            for answer in [Answer::new(Body::Cut(begun.clone())), Answer::whole(begun.clone())] {
                let failure = failure(wire, answer).await;
                let is_nothing = begun.is_empty();
                assert!(failure.retryable || is_nothing, "{wire:?}: {failure:?}");
                let is_cut = ["ended before it was complete", "connection was lost"];
                let is_cut = is_cut.iter().any(|words| failure.message.contains(words));
                assert!(is_cut || is_nothing, "{wire:?}: {failure:?}");
            }
        }
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_behind_a_whole_line_is_a_failure() {
    let failure = failure(Wire::Ollama, Answer::whole("{}")).await;
    assert!(failure.retryable, "{failure:?}");
}

#[tokio::test]
async fn an_answer_of_another_form_names_the_address_as_the_likely_cause() {
    for wire in WIRES {
        for body in ["<html>Log in</html>\n\n", "data: {\"choices\n\n", "{\"choices\": 1\n\n"] {
            let failure = failure(wire, Answer::whole(body)).await;
            assert!(
                !failure.retryable && failure.message.contains("unexpected format"),
                "{wire:?} {body:?}: {failure:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_silent_server_is_given_up_after_the_timeout() {
    for wire in WIRES {
        for begun in [Vec::new(), wire.begun(&["Hel"])] {
            let failure = failure_within(wire, Answer::new(Body::Silence(begun)), Duration::from_millis(200)).await;
            assert!(failure.retryable && failure.message.contains("took longer"), "{wire:?}: {failure:?}");
        }
    }
}

#[tokio::test]
async fn an_answer_without_end_is_cut_off_at_the_limit_of_a_value() {
    let many = "x".repeat(64 * 1024);
    for wire in WIRES {
        // Too much text, arguments, or calls, and a frame that never ends.
        let text = wire.begun(&[&many]);
        let calls = wire.calls(&vec![Call::new("call_a", "publish", &["{\"text\": \"and so on, and so on\"}"]); 100]);
        let frame = match wire {
            Wire::Ollama => many.clone().into_bytes(),
            _ => format!("data: {many}").into_bytes(),
        };
        let mut ones = vec![("text", text), ("calls", calls), ("frame", frame)];
        if wire != Wire::Ollama {
            ones.push(("data", format!("data: {many}\n").into_bytes()));
        }
        for (what, piece) in ones {
            let failure = failure(wire, Answer::new(Body::Endless(piece))).await;
            assert!(!failure.retryable && failure.message.contains("more than"), "{wire:?} {what}: {failure:?}");
        }
        let refusal = Answer { status: 500, ..Answer::new(Body::Endless(many.clone().into_bytes())) };
        assert!(failure(wire, refusal).await.message.contains("(HTTP 500)"), "{wire:?}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed_with_the_key() {
    for wire in WIRES {
        let elsewhere = Server::start(Answer::whole(wire.answer(&["stolen"], &[]))).await;
        let answer = Answer::refusal(307, &json!({})).header("location", format!("{}/", elsewhere.url));
        assert!(failure(wire, answer).await.message.contains("(HTTP 307)"));
        assert!(elsewhere.heard().is_empty(), "{wire:?}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_worth_another_try() {
    // Nobody listens on its port, and nobody else gets it.
    let closed = tokio::net::TcpSocket::new_v4().unwrap();
    closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = Some(format!("http://{KEY}:{KEY}@{}/v1", closed.local_addr().unwrap()));
    let options = ModelOptions { openai_key: Some(KEY.to_owned()), openai_url: url, ..ModelOptions::default() };
    let failed = Models::new(options).unwrap().call(&request("openai/m", vec![user("Hi")]), &|_| {}).await.unwrap_err();
    assert!(failed.retryable && !failed.message.contains(KEY), "{failed:?}");
    assert!(failed.message.contains("refused"), "{failed:?}");
}

#[tokio::test]
async fn a_missing_key_is_named() {
    let models = Models::new(ModelOptions::from_env(|_| None)).unwrap();
    for (model, variable) in [("openai/m", "OPENAI_API_KEY"), ("anthropic/m", "ANTHROPIC_API_KEY")] {
        let failure = models.call(&request(model, vec![user("Hi")]), &|_| {}).await.unwrap_err();
        assert!(!failure.retryable && failure.message.contains(variable), "{failure:?}");
    }
    let broken = ModelOptions { openai_key: Some("sk-\nbroken".to_owned()), ..ModelOptions::default() };
    let failure = Models::new(broken).unwrap().call(&request("openai/m", vec![user("Hi")]), &|_| {}).await.unwrap_err();
    assert!(!failure.retryable && failure.message.contains("OPENAI_API_KEY"), "{failure:?}");
    assert!(!failure.message.contains("broken"), "{failure:?}");
}

/// Collects log messages.
#[derive(Clone, Default)]
struct Log(std::sync::Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn no_log_has_a_key_a_prompt_or_an_answer() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter("debug")
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let guard = tracing::subscriber::set_default(subscriber);
    for wire in WIRES {
        let echo = |status| Answer::refusal(status, &wire.error("overloaded_error", &format!("{KEY} Whisper this.")));
        let mut broken = wire.begun(&["The answer."]);
        broken.extend(wire.frame(&json!({ "type": "unheard_of", "text": "The answer." })));
        broken.extend(wire.frame(&wire.error("overloaded_error", "Whisper this.")));
        for answer in [
            echo(401),
            echo(529),
            Answer::whole(broken),
            Answer::whole(wire.answer(&["The answer."], &[Call::new("a", "x", &["{\"The answer.\""])])),
            Answer::whole("The answer.\n\n"),
        ] {
            let server = Server::start(answer).await;
            let _ = wire.models(&server).call(&request(&wire.model("m"), vec![user("Whisper this.")]), &|_| {}).await;
        }
    }
    drop(guard);
    let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    for never in [KEY, "Whisper this.", "The answer.", "careful writer"] {
        assert!(!logged.contains(never), "{never}: {logged}");
    }
}
