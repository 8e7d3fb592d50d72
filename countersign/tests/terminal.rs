//! Tests a terminal on the input and output of a program.

use std::io::Write;
use std::sync::{Arc, Mutex};

use countersign::flow::{Agent, Flow, Human, Tool, accept, definition, function, stop};
use countersign::{Countersign, Terminal, Via};
use serde_json::json;

/// An output that keeps everything that was shown.
#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Page {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("no panic").clone()).expect("text")
    }
}

/// Returns a flow with two human nodes, and a tool call that needs approval.
fn article() -> definition::Flow {
    let publish = definition::Tool {
        ask_permission: definition::AskPermission::Switch(true),
        ..function("Publishes", json!({ "type": "object", "properties": { "text": { "type": "string" } } }))
    };
    let checkpoint = |question: &str| {
        Human::new(question).reviews("draft").option(accept("fine", "Fine")).option(accept("great", "Great"))
    };
    Flow::new("article")
        .node("draft", Agent::new("writer").prompt("Write about the ocean."))
        .delegates_to_human("first")
        .human("first", checkpoint("How is it?").option(stop("no", "Stop")))
        .delegates_to_human("second")
        .human("second", checkpoint("And now?"))
        .delegates_to("publish")
        .node("publish", Tool::new("publish").settings(publish).argument("text", "{{ draft }}"))
        .build()
        .expect("a flow")
}

#[tokio::test(flavor = "multi_thread")]
async fn one_input_answers_every_checkpoint_and_tool_in_turn() {
    let page = Page::default();
    let terminal = Arc::new(Terminal::new(&b"2\n1\ny\n"[..], page.clone()));
    let countersign = Countersign::options()
        .person("ana", [], Via::Cli, terminal)
        .tool("publish", |_| async { Ok::<_, String>(json!({ "published": true })) })
        .start()
        .await
        .expect("it starts");
    let finished = countersign.run(&article(), json!({})).await.expect("it completes");
    countersign.shutdown().await;
    assert_eq!(finished.output["publish"]["published"], true);
    let chosen: Vec<_> = finished.report.reviews.iter().filter_map(|review| review.resolution.as_ref()).collect();
    assert!(chosen.iter().all(|resolution| resolution.via == Via::Cli) && chosen.len() == 3);
    let text = page.text();
    let places: Vec<_> = ["How is it?", " 2\n", "And now?", " 1\n", "publish", " y\n"]
        .iter()
        .map(|words| text.find(words).unwrap_or_else(|| panic!("`{words}` is not in:\n{text}")))
        .collect();
    assert!(places.is_sorted(), "{text}");
}
