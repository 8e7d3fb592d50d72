//! What a person types at the desk and what the record says are never mixed up, and nothing is decided unseen.

use serde_json::json;
use shared::api::{Launch, ReviewQuery};
use shared::decision::{ActionDecision, DecisionRequest, Verdict, Via};
use shared::review::{Review, ReviewStatus};
use tests::pages::{Inbox, Login, button, field, wait_for_text};
use tests::{Api, Browser, Database, Options, Server, eventually};
use thirtyfour::prelude::*;

const NOTE: &str = "
id: note
input: { type: object, properties: { text: { default: The original. } } }
nodes:
  ask:
    human:
      prompt: Send this?
      review_keys: [{ key: text, label: Text }]
      edit_keys: [text]
      options: [{ id: send, label: Send it }, { id: stop, kind: stop, label: Stop }]
";

async fn server(flows: &[&str]) -> Server {
    let mut options = Options::on(Database::Sqlite);
    options.flows = Some(concat!(env!("CARGO_MANIFEST_DIR"), "/../flows").into());
    let server = Server::start(options).await;
    for flow in flows {
        server.save(flow.trim_start()).await;
    }
    server
}

async fn launch(server: &Server, flow: &str, input: serde_json::Value) {
    let input = input.as_object().cloned().unwrap_or_default();
    let context = shared::run::Context::default();
    let launch = Launch { flow: flow.parse().expect("an id"), version: None, input, context };
    server.admin().await.launch(&launch, None).await.expect("it starts");
}

/// The one pending review.
async fn pending(api: &Api) -> Review {
    eventually("a review is pending", async || {
        let query = ReviewQuery { status: Some(ReviewStatus::Pending), ..ReviewQuery::default() };
        let mut page = api.reviews(&query).await.ok()?;
        (page.items.len() == 1).then(|| page.items.pop()).flatten()
    })
    .await
}

async fn decide(api: &Api, review: &Review, verdict: Verdict, edits: serde_json::Value) {
    let request = DecisionRequest {
        revision: review.revision,
        digest: review.digest.clone(),
        verdict,
        edits: edits.as_object().cloned().unwrap_or_default(),
        comment: None,
        metadata: shared::JsonMap::new(),
    };
    api.decide(review.id, &request, None).await.expect("it is decided");
}

fn choose(option: &str) -> Verdict {
    Verdict::Choose { option: option.to_owned(), fields: shared::JsonMap::new() }
}

/// A browser in which somebody reads a review.
async fn reading(server: &Server, username: &str, review: &Review) -> WebDriverResult<Browser> {
    let browser = Browser::start(1440, 900).await;
    Login(&browser.driver).log_in(&server.base, username).await?;
    wait_for_text(&browser.driver, "Inbox").await;
    browser.driver.goto(format!("{}/reviews/{}", server.base, review.id)).await?;
    wait_for_text(&browser.driver, &review.title).await;
    Ok(browser)
}

async fn text_of(driver: &WebDriver, css: &str) -> String {
    let found = driver.query(By::Css(css)).first().await.expect("it is on the page");
    found.text().await.expect("it has a text")
}

/// Changes the text under review, without sending it.
async fn edit_text(driver: &WebDriver, more: &str) -> WebDriverResult<()> {
    button(driver, "Edit").await?.click().await?;
    field(driver, "Edit Text").await?.send_keys(Key::Control + Key::End).await?;
    field(driver, "Edit Text").await?.send_keys(more).await
}

/// Types into the page as a whole.
async fn press_key(driver: &WebDriver, key: impl Into<TypingData>) -> WebDriverResult<()> {
    driver.find(By::Tag("body")).await?.send_keys(key).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_sent_is_never_shown_as_what_was_decided() -> WebDriverResult<()> {
    let server = server(&[NOTE]).await;
    server.person("ana", &["reviewer"]).await;
    let tom = server.person("tom", &["reviewer"]).await;
    launch(&server, "note", json!({})).await;
    let review = pending(&tom).await;
    let ana = reading(&server, "ana", &review).await?;
    edit_text(&ana.driver, " Ana never sent this.").await?;
    decide(&tom, &review, choose("send"), json!({})).await;

    for _ in 0..2 {
        wait_for_text(&ana.driver, "What you wrote was not sent").await;
        let card = text_of(&ana.driver, "section.item").await;
        assert!(card.contains("The original.") && !card.contains("Ana never sent this"), "{card}");
        assert!(!card.contains("accepted") && !card.contains("edited"), "tom accepted it as it was: {card}");
        // The same after a reload.
        ana.driver.refresh().await?;
    }
    ana.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_call_is_shown_with_what_was_decided_for_it() -> WebDriverResult<()> {
    let server = server(&[]).await;
    server.person("ana", &["reviewer"]).await;
    let tom = server.person("tom", &["reviewer"]).await;
    launch(&server, "release-notes", json!({})).await;
    let review = pending(&tom).await;
    let ana = reading(&server, "ana", &review).await?;
    // Critical calls are opened one by one, and there is no button for all of them.
    for name in ["publish_page", "send_newsletter"] {
        let card = ana.driver.find(By::Css(format!("section.action[aria-label='{name}']"))).await?;
        assert!(!card.text().await?.contains("Approve"), "it is not opened yet");
        card.find(By::Css("button.unfold")).await?.click().await?;
        card.find(By::Css("button.no")).await?.click().await?;
    }
    let bar = text_of(&ana.driver, ".decide").await;
    assert!(!bar.contains("all 2") && bar.contains("Reject 2"), "{bar}");

    let approved = review.actions.iter().map(|action| (action.id.clone(), ActionDecision::APPROVE)).collect();
    decide(&tom, &review, Verdict::Actions { decisions: approved, instructions: None }, json!({})).await;
    wait_for_text(&ana.driver, "Tom approved").await;
    let cards = ana.driver.find_all(By::Css("section.action")).await?;
    assert_eq!(cards.len(), 2);
    for card in cards {
        let text = card.text().await?;
        assert!(text.contains("approved") && !text.contains("does not run"), "{text}");
    }
    ana.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_belongs_to_who_wrote_it() -> WebDriverResult<()> {
    let server = server(&[NOTE]).await;
    let ana = server.person("ana", &["reviewer"]).await;
    server.person("tom", &["reviewer"]).await;
    launch(&server, "note", json!({})).await;
    let review = pending(&ana).await;
    let browser = reading(&server, "ana", &review).await?;
    edit_text(&browser.driver, " Of Ana.").await?;
    let kept = "return Object.keys(localStorage).some(key => key.startsWith('countersign.draft.ana.'))";
    eventually("the draft is kept", async || {
        browser.driver.execute(kept, Vec::new()).await.ok()?.convert::<bool>().ok()?.then_some(())
    })
    .await;
    // Her session ends without her logging out, and somebody else sits down at this browser.
    browser.driver.delete_all_cookies().await?;
    Login(&browser.driver).log_in(&server.base, "tom").await?;
    wait_for_text(&browser.driver, "Inbox").await;
    browser.driver.goto(format!("{}/reviews/{}", server.base, review.id)).await?;
    wait_for_text(&browser.driver, "The original.").await;
    let page = text_of(&browser.driver, "article.read").await;
    assert!(!page.contains("Of Ana") && !page.contains("with your edit"), "{page}");

    // She finds it again.
    browser.driver.delete_all_cookies().await?;
    Login(&browser.driver).log_in(&server.base, "ana").await?;
    wait_for_text(&browser.driver, "Inbox").await;
    browser.driver.goto(format!("{}/reviews/{}", server.base, review.id)).await?;
    wait_for_text(&browser.driver, "with your edit").await;
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_on_an_older_revision_is_not_sent_before_the_new_one_was_read() -> WebDriverResult<()> {
    let flow = NOTE.replace("id: note", "id: both").replace(
        "      edit_keys: [text]\n",
        "      edit_keys: [text]\n      policy: { groups: { editor: 1, legal: 1 } }\n",
    );
    let server = server(&[&flow]).await;
    let eli = server.person("eli", &["reviewer", "editor"]).await;
    server.person("tom", &["reviewer", "legal"]).await;
    launch(&server, "both", json!({})).await;
    let review = pending(&eli).await;
    let tom = reading(&server, "tom", &review).await?;
    edit_text(&tom.driver, " Of Tom.").await?;
    wait_for_text(&tom.driver, "with your edit").await;
    tom.driver.goto(format!("{}/runs", server.base)).await?;
    wait_for_text(&tom.driver, "Runs").await;
    decide(&eli, &review, choose("send"), json!({ "text": "The original, corrected by Eli." })).await;

    tom.driver.goto(format!("{}/reviews/{}", server.base, review.id)).await?;
    wait_for_text(&tom.driver, "changed since revision 1").await;
    wait_for_text(&tom.driver, "corrected by Eli").await;
    // Neither a key nor a button sends it.
    press_key(&tom.driver, "a").await?;
    wait_for_text(&tom.driver, "Look at the change before you decide").await;
    let now = pending(&eli).await;
    assert_eq!((now.revision, now.decisions.len()), (2, 1), "only Eli has voted");
    button(&tom.driver, "I have seen it").await?.click().await?;
    button(&tom.driver, "Your changes").await?.click().await?;
    wait_for_text(&tom.driver, "corrected by Eli").await;
    Inbox(&tom.driver).press("with your edit").await?;
    eventually("both have voted", async || (eli.review(review.id).await.ok()?.revision == 3).then_some(())).await;
    tom.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_key_decides_behind_a_menu_and_a_deadline_does_not_take_a_decision() -> WebDriverResult<()> {
    let soon = NOTE.replace("id: note", "id: soon").replace("options:", "timeout: 6s\n      options:");
    let server = server(&[NOTE, &soon]).await;
    let ana = server.person("ana", &["reviewer"]).await;
    launch(&server, "note", json!({})).await;
    let review = pending(&ana).await;
    let browser = reading(&server, "ana", &review).await?;
    browser.driver.find(By::Css(".who")).await?.click().await?;
    browser.driver.query(By::Css("[role=menu]")).first().await?;
    press_key(&browser.driver, "a").await?;
    press_key(&browser.driver, Key::Escape).await?;
    let bar = text_of(&browser.driver, ".decide").await;
    assert!(!bar.contains("Undo"), "{bar}");
    decide(&ana, &review, choose("send"), json!({})).await;

    // The time to undo would outlast the deadline: it is cut short, and the decision counts.
    launch(&server, "soon", json!({})).await;
    let review = pending(&ana).await;
    browser.driver.goto(format!("{}/reviews/{}", server.base, review.id)).await?;
    Inbox(&browser.driver).press("Send it").await?;
    let over = eventually("it is over", async || {
        let review = ana.review(review.id).await.ok()?;
        (!review.is_pending()).then_some(review)
    })
    .await;
    assert_eq!(over.resolution.map(|resolution| resolution.via), Some(Via::Human));
    browser.quit().await;
    Ok(())
}
