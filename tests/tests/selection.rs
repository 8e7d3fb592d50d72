//! Reviews that a person selects in the inbox are read on one page, and each is decided like on its own.

use serde_json::json;
use shared::api::ReviewQuery;
use shared::decision::Verdict;
use shared::review::{Review, ReviewStatus};
use tests::device::Screen;
use tests::locator::{Locator, locate};
use tests::pages::{Inbox, Login, button, button_starting, field, hold_the_next_decision, wait_for_text};
use tests::reviewing::{NOTE, choose, decide, launch, press_key, server, text_of};
use tests::{Api, Browser, BrowserResult, Server, eventually};
use thirtyfour::prelude::*;

const ASK: &str = "
id: ask
nodes:
  ask:
    human:
      prompt: \"About {{ subject }}?\"
      review_keys: [{ key: text, label: Text }]
      options: [{ id: ok, label: Approve }, { id: no, kind: stop, label: Reject }]
      severity: high
      consequences: [The customer is told.]
";

const REFUND: &str = "id: refund
tools: { note: { builtin: set_state } }
gates: { before_tool: { note: { allowed_decisions: [approve, reject] } } }
nodes: { one: { tool: note, arguments: { key: done, value: yes }, write_keys: [done] } }
";

const SCREENS: [Screen; 6] =
    [(390, 844, false), (390, 844, true), (1024, 768, false), (1024, 768, true), (1440, 900, false), (1440, 900, true)];

/// A server on which these reviews wait for Ana and Tom: three of `ask`, about a lamp, a chair and a table; a critical
/// one; a tool call; and one that needs a vote of each.
async fn site() -> (Server, Api, Api) {
    let grave = ASK.replace("id: ask", "id: grave").replace("severity: high", "severity: critical");
    let both = NOTE.replace("id: note", "id: both").replace(
        "      edit_keys: [text]\n",
        "      edit_keys: [text]\n      policy: { groups: { editor: 1, legal: 1 } }\n",
    );
    let server = server(&[ASK, &grave, &both, REFUND]).await;
    let ana = server.person("ana", &["reviewer", "legal"]).await;
    let tom = server.person("tom", &["reviewer", "editor"]).await;
    for subject in ["lamp", "chair", "table"] {
        launch(&server, "ask", json!({ "subject": subject, "text": format!("A text about the {subject}.") })).await;
    }
    launch(&server, "grave", json!({ "subject": "vault", "text": "A text about the vault." })).await;
    for flow in ["both", "refund"] {
        launch(&server, flow, json!({})).await;
    }
    eventually("all ask", async || (all(&ana).await.len() == 6).then_some(())).await;
    (server, ana, tom)
}

async fn all(api: &Api) -> Vec<Review> {
    let query = ReviewQuery { status: Some(ReviewStatus::Pending), ..ReviewQuery::default() };
    api.reviews(&query).await.expect("a page").items
}

async fn review(api: &Api, flow: &str, subject: &str) -> Review {
    let all = all(api).await.into_iter();
    let mut found = all.filter(|review| review.flow.as_deref() == Some(flow) && review.title.contains(subject));
    found.next().expect("it waits")
}

/// The box at the row of a review.
fn tick<'a>(driver: &'a WebDriver, review: &Review) -> Locator<'a> {
    let path = format!("//a[@id='row-{}']/preceding-sibling::button[@role='checkbox']", review.id);
    locate(driver, By::XPath(path))
}

/// A button of a review on the page of the selection.
async fn choice(driver: &WebDriver, review: &Review, label: &str) -> BrowserResult<WebElement> {
    let path = format!("//section[@aria-labelledby='selected-{}']//button[normalize-space(.)='{label}']", review.id);
    let button = driver.query(By::XPath(path)).first().await?;
    // It may be below the title of its review, which stays in sight.
    button.scroll_into_view().await?;
    Ok(button)
}

async fn wait_until_chosen(driver: &WebDriver, number: usize) {
    let script = "return document.querySelectorAll('.verdict [aria-pressed=true]').length";
    eventually(&format!("{number} are chosen"), async || {
        let chosen = driver.execute(script, Vec::new()).await.ok()?.convert::<usize>().ok()?;
        (chosen == number).then_some(())
    })
    .await;
}

async fn wait_until_nothing_is_selected(driver: &WebDriver) {
    eventually("nothing is selected", async || {
        driver.find_all(By::Css(".selection-bar, .select-box[aria-checked=true]")).await.ok()?.is_empty().then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_selected_is_read_and_decided_on_one_page_each_with_its_own_result() -> BrowserResult<()> {
    let (server, ana, tom) = site().await;
    let [lamp, chair, table] =
        [review(&ana, "ask", "lamp").await, review(&ana, "ask", "chair").await, review(&ana, "ask", "table").await];
    let [grave, both, refund] =
        [review(&ana, "grave", "").await, review(&ana, "both", "").await, review(&ana, "refund", "").await];
    let browser = Browser::start(1440, 900).await;
    browser.with_axe().await;
    let driver = &browser.driver;
    Login(driver).log_in(&server.base, "ana").await?;
    wait_for_text(driver, "6 pending").await;

    // A critical review is decided alone.
    tick(driver, &grave).click().await?;
    wait_for_text(driver, "cannot be selected: critical reviews are decided one at a time").await;
    for review in [&lamp, &chair, &both, &refund] {
        tick(driver, review).click().await?;
    }
    wait_for_text(driver, "4 selected").await;
    // The key selects the review that the person has walked to or opened.
    Inbox(driver).open_card("table").await?;
    wait_for_text(driver, "A text about the table.").await;
    press_key(driver, "x").await?;
    wait_for_text(driver, "5 selected").await;
    browser.is_readable("selecting", &SCREENS).await;
    browser.screen(1440, 900).await;

    button(driver, "Review and decide…").click().await?;
    for text in ["the lamp.", "the chair.", "the table.", "The original.", "5 to decide", "The customer is told."] {
        wait_for_text(driver, text).await;
    }
    assert!(!text_of(driver, ".together").await.contains("vault"), "the critical one is not there");
    // Nothing is chosen beforehand, and no key chooses.
    press_key(driver, "a").await?;
    wait_until_chosen(driver, 0).await;
    let send = driver.find(By::Css(".send")).await?;
    assert_eq!(send.attr("aria-disabled").await?.as_deref(), Some("true"));
    send.click().await?;
    browser.is_readable("selected", &SCREENS).await;
    browser.screen(1440, 900).await;

    button(driver, "Approve all").click().await?;
    wait_until_chosen(driver, 5).await;
    choice(driver, &table, "Approve").await?.click().await?;
    wait_until_chosen(driver, 4).await;
    // Meanwhile, Tom decides one and changes another: what was chosen for them is not sent.
    decide(&tom, &lamp, choose("no"), json!({})).await;
    wait_until_chosen(driver, 3).await;
    decide(&tom, &both, choose("send"), json!({ "text": "The original, corrected by Tom." })).await;
    wait_until_chosen(driver, 2).await;
    wait_for_text(driver, "This changed while you were reading").await;
    wait_for_text(driver, "corrected by Tom").await;
    choice(driver, &both, "Send it").await?.click().await?;
    wait_until_chosen(driver, 2).await;
    field(driver, "add a note").send_keys("Read together").await?;
    browser.is_readable("selected-changed", &SCREENS).await;
    browser.screen(1440, 900).await;
    button(driver, "Send 2 decisions").click().await?;
    wait_for_text(driver, "2 to decide, 2 sent, 1 without your decision").await;
    browser.is_readable("selected-sent", &SCREENS).await;
    browser.screen(1440, 900).await;

    let [of_chair, of_refund] = [ana.review(chair.id).await.expect("it"), ana.review(refund.id).await.expect("it")];
    for review in [&of_chair, &of_refund] {
        let decision = review.resolution.as_ref().and_then(|over| over.decision.as_deref()).expect("a decision");
        assert_eq!((decision.by.as_str(), decision.revision), ("ana", 1), "{decision:?}");
    }
    let comment = |review: &Review| review.decisions[0].comment.clone();
    assert_eq!(comment(&of_chair).as_deref(), Some("Read together"));
    assert!(matches!(of_refund.decisions[0].verdict, Verdict::Actions { .. }));
    let of_lamp = ana.review(lamp.id).await.expect("it");
    assert_eq!(of_lamp.decisions.iter().map(|one| one.by.to_string()).collect::<Vec<_>>(), ["tom"]);
    assert!(ana.review(table.id).await.expect("it").is_pending(), "nothing was chosen for it");

    // What has changed can be decided once it was read again.
    button(driver, "I have seen it").click().await?;
    choice(driver, &both, "Send it").await?.click().await?;
    button(driver, "Send 1 decision").click().await?;
    wait_for_text(driver, "1 to decide, 3 sent").await;
    let of_both = ana.review(both.id).await.expect("it");
    assert_eq!(of_both.resolution.expect("it is over").decision.expect("a decision").revision, 2);

    // What was not decided is still selected.
    press_key(driver, Key::Escape).await?;
    wait_for_text(driver, "Choose a review to read it").await;
    let is_selected = async || -> BrowserResult<_> { Ok(tick(driver, &table).attr("aria-checked").await?) };
    assert_eq!(is_selected().await?.as_deref(), Some("true"));
    // The key keeps what was typed, here the note; the button does not.
    press_key(driver, Key::Escape).await?;
    assert_eq!(is_selected().await?.as_deref(), Some("true"));
    locate(driver, By::Css("[aria-label='Clear the selection']")).click().await?;
    wait_until_nothing_is_selected(driver).await;
    tick(driver, &table).click().await?;
    wait_for_text(driver, "1 selected").await;
    press_key(driver, Key::Escape).await?;
    wait_for_text(driver, "1 review is no longer selected").await;
    wait_until_nothing_is_selected(driver).await;
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_of_several_can_be_undone_and_chosen_again() -> BrowserResult<()> {
    let (server, ana, tom) = site().await;
    let [lamp, chair] = [review(&ana, "ask", "lamp").await, review(&ana, "ask", "chair").await];
    let browser = Browser::start(390, 844).await;
    browser.screen(390, 844).await;
    let driver = &browser.driver;
    Login(driver).log_in(&server.base, "ana").await?;
    wait_for_text(driver, "6 pending").await;
    for review in [&lamp, &chair] {
        tick(driver, review).click().await?;
    }
    button(driver, "Review and decide…").click().await?;
    wait_for_text(driver, "the chair.").await;
    hold_the_next_decision(driver).await?;
    choice(driver, &lamp, "Reject").await?.click().await?;
    button(driver, "Send 1 decision").click().await?;
    button(driver, "Undo all").click().await?;
    wait_for_text(driver, "2 to decide").await;
    wait_until_chosen(driver, 0).await;
    assert!(ana.review(lamp.id).await.expect("it").decisions.is_empty());

    // A row that leaves the list is not selected any longer.
    press_key(driver, Key::Escape).await?;
    wait_for_text(driver, "2 selected").await;
    decide(&tom, &chair, choose("ok"), json!({})).await;
    wait_for_text(driver, "1 selected").await;
    button_starting(driver, "Tool calls").click().await?;
    eventually("the lamp is not listed, nor selected", async || {
        driver.find_all(By::Css(".selection-bar")).await.ok()?.is_empty().then_some(())
    })
    .await;
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_note_on_selected_reviews_outlives_the_page_and_goes_to_no_other_review() -> BrowserResult<()> {
    let (server, ana, _) = site().await;
    let [lamp, chair, table] =
        [review(&ana, "ask", "lamp").await, review(&ana, "ask", "chair").await, review(&ana, "ask", "table").await];
    let browser = Browser::start(1440, 900).await;
    browser.with_axe().await;
    let driver = &browser.driver;
    Login(driver).log_in(&server.base, "ana").await?;
    wait_for_text(driver, "6 pending").await;
    let open = async |reviews: &[&Review]| -> BrowserResult<()> {
        driver.goto(format!("{}/inbox", server.base)).await?;
        wait_for_text(driver, "6 pending").await;
        for review in reviews {
            tick(driver, review).click().await?;
        }
        button(driver, "Review and decide…").click().await?;
        field(driver, "add a note").await?;
        Ok(())
    };
    open(&[&lamp, &chair]).await?;
    field(driver, "add a note").send_keys("Read together").await?;
    let kept = "return Object.values(localStorage).some(draft => draft.includes('Read together'))";
    eventually("the note is kept", async || {
        driver.execute(kept, Vec::new()).await.ok()?.convert::<bool>().ok()?.then_some(())
    })
    .await;
    open(&[&table]).await?;
    assert_eq!(field(driver, "add a note").value().await?.as_deref(), Some(""));
    open(&[&chair, &lamp]).await?;
    assert_eq!(field(driver, "add a note").value().await?.as_deref(), Some("Read together"));

    // A review that is selected in addition gets no note that was written for others.
    press_key(driver, Key::Escape).await?;
    tick(driver, &table).click().await?;
    wait_for_text(driver, "3 selected").await;
    button(driver, "Review and decide…").click().await?;
    wait_for_text(driver, "The note is not sent with 1 review that was selected after you wrote it.").await;
    browser.is_readable("selected-note", &SCREENS).await;
    browser.screen(1440, 900).await;
    button(driver, "Approve all").click().await?;
    wait_until_chosen(driver, 3).await;
    button(driver, "Send 3 decisions").click().await?;
    wait_for_text(driver, "3 sent").await;
    for (review, note) in [(&lamp, Some("Read together")), (&chair, Some("Read together")), (&table, None)] {
        let decided = ana.review(review.id).await.expect("it").decisions;
        assert_eq!(decided[0].comment.as_deref(), note, "{}", review.title);
    }
    browser.quit().await;
    Ok(())
}
