//! What the console shows of the past: a run in progress, a vote with an edit, and values of any size.

use std::time::Instant;

use serde_json::{Value, json};
use shared::api::ReviewQuery;
use shared::review::{Review, ReviewStatus};
use tests::locator::locate;
use tests::pages::{button, field, send_now, wait_for_text};
use tests::reviewing::{NOTE, ReviewSetup, choose, decide, launch, open, server, text_of};
use tests::{Api, BrowserResult, eventually};
use thirtyfour::prelude::*;

const BOTH: &str = "
id: both
input: { type: object, properties: { text: { default: The original. } } }
nodes:
  ask:
    human:
      prompt: Send this?
      review_keys: [{ key: text, label: Text }]
      edit_keys: [text]
      policy: { groups: { editor: 1, legal: 1 } }
      options: [{ id: send, label: Send it }, { id: stop, kind: stop, label: Stop }]
";

const DOCUMENT: &str = "
id: document
input: { type: object, properties: { document: {} } }
nodes:
  ask:
    human:
      prompt: Is this right?
      review_keys: [{ key: document, label: Document }]
      edit_keys: [document]
      options: [{ id: yes, label: It is }, { id: no, kind: stop, label: Stop }]
";

/// A flow that doubles its text, which can so become longer than a request can carry, and puts it under review.
const DOUBLED: &str = "
id: doubled
input: { type: object, properties: { document: { type: string } } }
nodes:
  twice:
    set: { document: '{{ document }}{{ document }}' }
    next: ask
  ask:
    human:
      prompt: Is this right?
      review_keys: [{ key: document, label: Document }]
      edit_keys: [document]
      options: [{ id: yes, label: It is }, { id: no, kind: stop, label: Stop }]
";

/// A flow that doubles its text, and puts it under review as Markdown.
const LAID_OUT: &str = "
id: laid-out
input: { type: object, properties: { half: { type: string } } }
nodes:
  twice:
    set: { text: '{{ half }}{{ half }}' }
    next: ask
  ask:
    human:
      prompt: Is this right?
      review_keys: [{ key: text, type: markdown }]
      options: [{ id: yes, label: It is }, { id: no, kind: stop, label: Stop }]
";

/// Waits until exactly `count` reviews are pending, and returns them.
async fn pending(api: &Api, count: usize) -> Vec<Review> {
    eventually("reviews are pending", async || {
        let query = ReviewQuery { status: Some(ReviewStatus::Pending), limit: Some(200), ..ReviewQuery::default() };
        let page = api.reviews(&query).await.ok()?;
        (page.items.len() == count).then_some(page.items)
    })
    .await
}

/// Counts the requests of the page whose URL ends with `end`.
async fn requests(driver: &WebDriver, end: &str) -> WebDriverResult<u64> {
    let count = "return performance.getEntriesByType('resource').filter(one => one.name.endsWith(arguments[0])).length";
    driver.execute(count, vec![json!(end)]).await?.convert()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_followed_by_its_log_and_not_by_asking_again() -> BrowserResult<()> {
    let server = server(&[]).await;
    let ana = server.person("ana", &["reviewer", "developer"]).await;
    let claims: Vec<Value> =
        (1..=20).map(|number| json!({ "who": format!("Mara {number}"), "what": "a trip", "amount": number })).collect();
    let run = launch(&server, "batch", json!({ "claims": claims })).await;
    let reviews = pending(&ana, 20).await;
    let browser = open(&server, "ana", &format!("/runs/{run}")).await?;
    wait_for_text(&browser.driver, "check waits for a person (20×)").await;
    let report = format!("/runs/{run}/report");
    let whole = format!("/runs/{run}");
    let (reports, wholes) = (requests(&browser.driver, &report).await?, requests(&browser.driver, &whole).await?);
    let begun = Instant::now();
    for review in &reviews {
        decide(&ana, review, choose("pay"), json!({})).await;
    }
    wait_for_text(&browser.driver, "Completed").await;
    // The end of the run may be read before the last entries arrive.
    let lines = "//ol[@class='timeline']//*[contains(., '“Pay it”')][self::p]";
    eventually("every decision is told", async || {
        (browser.driver.find_all(By::XPath(lines)).await.ok()?.len() == 20).then_some(())
    })
    .await;
    // The end of a run also ends steps without an entry in the log, so the report is loaded once more.
    let reports = requests(&browser.driver, &report).await? - reports;
    assert!(reports <= 2, "{reports} times for 20 decisions");
    let wholes = requests(&browser.driver, &whole).await? - wholes;
    let most = begun.elapsed().as_secs() + 2;
    assert!(wholes <= most, "{wholes} times in {most} s: once a second at most");
    browser.quit().await;
    Ok(())
}

/// A script that returns whether a review is printed as a whole: down to the end of its text, with its outcome above, and
/// without what works only on a screen.
const PRINTED: &str = "
    const [end, ...screen] = [...document.querySelectorAll('.read .main p')].slice(-1).concat(
        ...['.rail', '.inbox > .list', '.read .b'].map(css => document.querySelector(css)));
    const outcome = document.querySelector('.read > .decide').getBoundingClientRect();
    const below = end.getBoundingClientRect().bottom + scrollY <= document.documentElement.scrollHeight;
    return below && end.checkVisibility() && outcome.height > 0 && outcome.top < end.getBoundingClientRect().top
        && screen.every(one => one === null || !one.checkVisibility())
        && [...document.querySelectorAll('.read, .read .main')].every(one => getComputedStyle(one).overflowY === 'visible');";

#[tokio::test(flavor = "multi_thread")]
async fn a_review_is_printed_whole_with_its_outcome() -> BrowserResult<()> {
    let server = server(&[DOCUMENT]).await;
    let ana = server.person("ana", &["reviewer", "developer"]).await;
    launch(&server, "document", json!({ "document": "A paragraph.\n\n".repeat(200) })).await;
    let review = pending(&ana, 1).await.remove(0);
    decide(&ana, &review, choose("yes"), json!({})).await;
    let browser = open(&server, "ana", &format!("/reviews/{}", review.id)).await?;
    wait_for_text(&browser.driver, "You chose “It is”").await;
    let print = json!({ "media": "print" });
    browser.driver.cdp().send_raw("Emulation.setEmulatedMedia", print).await?;
    assert!(browser.driver.execute(PRINTED, Vec::new()).await?.convert::<bool>()?);
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vote_with_an_edit_is_told_as_what_was_shown_changed_and_said() -> BrowserResult<()> {
    let server = server(&[BOTH]).await;
    let eli = server.person("eli", &["reviewer", "editor"]).await;
    server.person("boss", &["admin"]).await;
    launch(&server, "both", json!({})).await;
    let review = pending(&eli, 1).await.remove(0);
    decide(&eli, &review, choose("send"), json!({ "text": "The original, corrected." })).await;
    let browser = open(&server, "boss", "/audit?act=vote").await?;
    wait_for_text(&browser.driver, "eli voted: approved").await;
    wait_for_text(&browser.driver, "with an edit to text").await;
    let rows = browser.driver.find_all(By::Css(".audit-row")).await?;
    assert_eq!(rows.len(), 1, "nothing but the vote");
    rows[0].click().await?;
    let detail = browser.driver.query(By::Css(".audit-detail")).first().await?;
    let text = detail.text().await?;
    assert!(text.contains(&format!("revision 1, {}", review.digest)), "what was seen: {text}");
    assert!(text.contains("it became revision 2"), "{text}");
    let diff = detail.find(By::Css(".diff-words")).await?;
    assert!(diff.find(By::Tag("ins")).await?.text().await?.contains("corrected"), "what was changed: {text}");
    let shown = detail.find(By::XPath(".//h2[.='What was shown']/following-sibling::section[1]")).await?.text().await?;
    assert!(shown.contains("The original.") && !shown.contains("corrected"), "{shown}");
    browser.quit().await;
    Ok(())
}

/// An agent that wants to delete three files at once.
const TIDY: &str = "
id: tidy
agents:
  janitor:
    model: demo/janitor
    tools: [delete_file]
    demo:
      tool_calls:
        - - { tool: delete_file, arguments: { title: one, text: a.log } }
          - { tool: delete_file, arguments: { title: two, text: b.log } }
          - { tool: delete_file, arguments: { title: three, text: c.log } }
      replies: [Done.]
tools: { delete_file: { builtin: demo_publish, description: Deletes a file } }
gates:
  before_tool:
    delete_file: { severity: high, reversible: false, consequences: [The file is gone.] }
nodes: { clean: { agent: janitor, prompt: Clean up. } }
";

#[tokio::test(flavor = "multi_thread")]
async fn the_record_says_of_each_call_what_was_decided_and_all_that_was_sent() -> BrowserResult<()> {
    let server = server(&[TIDY]).await;
    let ana = server.person("ana", &["reviewer", "admin"]).await;
    launch(&server, "tidy", json!({})).await;
    let review = pending(&ana, 1).await.remove(0);
    let [one, two, three] = &review.actions[..] else { panic!("three calls: {:?}", review.actions) };
    let decisions = json!({
        &one.id: { "type": "approve" },
        &two.id: { "type": "reject", "message": "It is still needed." },
        &three.id: { "type": "respond", "message": "It was gone already." },
    });
    let verdict = json!({ "type": "actions", "decisions": decisions, "instructions": "Keep the newest." });
    let comment = format!("{}That is all.", "The second one is from this week. ".repeat(6));
    let request = json!({ "revision": 1, "digest": review.digest, "verdict": verdict, "comment": comment });
    let request = serde_json::from_value(request).expect("a decision");
    ana.decide(review.id, &request, None).await.expect("it is accepted");
    let browser = open(&server, "ana", "/audit?act=decision").await?;
    let driver = &browser.driver;
    wait_for_text(driver, "approved delete_file (1 of 3), rejected delete_file (2 of 3)").await;
    locate(driver, By::Css(".audit-row")).click().await?;
    for (call, outcome, message) in [
        ("delete_file, 1 of 3", "approved", "a.log"),
        ("delete_file, 2 of 3", "rejected, does not run", "It is still needed."),
        ("delete_file, 3 of 3", "answered, does not run", "It was gone already."),
    ] {
        let card = text_of(driver, &format!(".audit-detail section[aria-label='{call}']")).await;
        assert!(card.contains(outcome) && card.contains(message), "{call}: {card}");
        assert!(
            card.contains("Deletes a file") && card.contains("demo_publish"),
            "what it is, and what is sent: {card}"
        );
    }
    let detail = text_of(driver, ".audit-detail").await;
    for shown in ["Keep the newest.", comment.as_str(), "cannot be undone", "The file is gone."] {
        assert!(detail.contains(shown), "{shown}: {detail}");
    }
    // The bar of the review has room for the beginning of the comment, and leads to all of it.
    driver.goto(format!("{}/reviews/{}", server.base, review.id)).await?;
    wait_for_text(driver, "The second one is from this week.").await;
    button(driver, "See all that was sent").click().await?;
    let sent = text_of(driver, ".card.sent:focus").await;
    assert!(sent.contains(&comment) && sent.contains("Keep the newest."), "{sent}");
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_of_any_size_can_be_read_and_is_edited_only_where_it_can_be_sent() -> BrowserResult<()> {
    let server = server(&[DOCUMENT, DOUBLED]).await;
    let ana = server.person("ana", &["reviewer"]).await;
    let keys: serde_json::Map<String, Value> = (0..10_000).map(|n| (format!("key_{n}"), json!(n))).collect();
    launch(&server, "document", json!({ "document": keys })).await;
    let review = pending(&ana, 1).await.remove(0);
    let browser = open(&server, "ana", &format!("/reviews/{}", review.id)).await?;
    wait_for_text(&browser.driver, "all of it, as plain text").await;
    wait_for_text(&browser.driver, "\"key_9999\": 9999").await;
    button(&browser.driver, "Edit").click().await?;
    wait_for_text(&browser.driver, "too many for a form").await;
    let elements = browser.driver.execute("return document.querySelectorAll('*').length", Vec::new()).await?;
    assert!(elements.convert::<u64>()? < 3000, "no field for each of them");
    let json = field(&browser.driver, "The value as JSON");
    json.send_keys(Key::Control + Key::Home).await?;
    json.send_keys(Key::Right + "\"first\": true,").await?;
    wait_for_text(&browser.driver, "with your edit").await;
    decide(&ana, &review, choose("no"), json!({})).await;

    // A value that is too large for a decision says so before it is edited.
    launch(&server, "doubled", json!({ "document": "word ".repeat(120_000) })).await;
    let review = pending(&ana, 1).await.remove(0);
    browser.driver.goto(format!("{}/reviews/{}", server.base, review.id)).await?;
    button(&browser.driver, "Edit").click().await?;
    wait_for_text(&browser.driver, "This is 1.1 MB, and a decision carries at most 1 MB").await;
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_was_written_to_freeze_the_page_is_shown_whole_and_decided() -> BrowserResult<()> {
    let server = server(&[LAID_OUT]).await;
    let ana = server.person("ana", &["reviewer"]).await;
    let browser = open(&server, "ana", "/inbox").await?;
    for shape in ["[](", "a <!--"] {
        let half = shape.repeat(500_000 / shape.len());
        let whole = half.len() * 2;
        launch(&server, "laid-out", json!({ "half": half })).await;
        let review = pending(&ana, 1).await.remove(0);
        browser.driver.goto(format!("{}/reviews/{}", server.base, review.id)).await?;
        eventually("all of it is shown", async || {
            let length = "return document.querySelector('article.read .main')?.textContent.length ?? 0";
            let length = browser.driver.execute(length, Vec::new()).await.ok()?.convert::<usize>().ok()?;
            (length >= whole).then_some(())
        })
        .await;
        let marks = browser.driver.execute("return document.querySelectorAll('*').length", Vec::new()).await?;
        assert!(marks.convert::<u64>()? < 20_000, "it is laid out as far as a page can bear");
        button(&browser.driver, "It is").click().await?;
        send_now(&browser.driver).await;
        eventually("it is decided", async || (!ana.review(review.id).await.ok()?.is_pending()).then_some(())).await;
    }
    browser.quit().await;
    Ok(())
}

/// Of several changes in a row, all are shown, not only the last.
#[tokio::test(flavor = "multi_thread")]
async fn what_changed_before_the_last_change_is_shown_too() -> BrowserResult<()> {
    let several = NOTE
        .replace("label: Text }]", "label: Text }, { key: title, label: Title }]")
        .replace("{ default: The original. } }", "{ default: The original. }, title: { default: News } }")
        .replace(
            "edit_keys: [text]\n",
            "edit_keys: [text, title]\n      policy: { groups: { editor: 2, legal: 1 } }\n",
        );
    let ReviewSetup { server, tom, review, browser, .. } = ReviewSetup::open(&[&several], "note").await?;
    let driver = &browser.driver;
    let eli = server.person("eli", &["reviewer", "editor"]).await;
    decide(&tom, &review, choose("send"), json!({ "text": "The original, corrected by Tom." })).await;
    wait_for_text(driver, "1 value has changed.").await;
    decide(&eli, &pending(&eli, 1).await[0], choose("send"), json!({ "title": "News of today" })).await;
    wait_for_text(driver, "2 values have changed.").await;
    for (card, said) in [("Text", "corrected by Tom"), ("Title", "of today")] {
        let new = text_of(driver, &format!("section[aria-label={card}] ins")).await;
        assert!(new.contains(said), "{card}: {new}");
    }
    browser.quit().await;
    Ok(())
}
