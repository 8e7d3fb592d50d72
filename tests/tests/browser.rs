//! The basic use of the console, in real browsers: a flow stops for a person, who decides.

use std::net::TcpListener;

use serde_json::Value;
use shared::api::{ReviewQuery, RunQuery};
use shared::review::{Review, ReviewStatus};
use shared::run::RunStatus;
use tests::locator::locate;
use tests::pages::{Inbox, Login, button, end_the_time_to_undo, field, hold_the_next_decision, wait_for_text};
use tests::reviewing::{launch_as, wait_for_review};
use tests::{Browser, BrowserResult, Database, Options, Server, eventually};
use thirtyfour::prelude::*;

const FLOW: &str = "Write, review and publish an article";

/// A picture of one pixel.
const DOT: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg==";

async fn server() -> Server {
    let mut options = Options::on(Database::Sqlite);
    options.flows = Some(concat!(env!("CARGO_MANIFEST_DIR"), "/../flows").into());
    Server::start(options).await
}

/// Waits until this person sees exactly one pending review, and returns it.
async fn pending(api: &tests::Api) -> Review {
    eventually("a review is pending", async || {
        let query = ReviewQuery { status: Some(ReviewStatus::Pending), ..ReviewQuery::default() };
        let mut page = api.reviews(&query).await.ok()?;
        (page.items.len() == 1).then(|| page.items.pop()).flatten()
    })
    .await
}

fn draft(review: &Review) -> String {
    review.items[0].value.as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flow_stops_for_a_person_and_a_browser_decides() -> BrowserResult<()> {
    let mut server = server().await;
    let ana = server.person("ana", &["reviewer", "editor"]).await;
    let (developer, reviewer) = tokio::join!(Browser::start(1440, 900), Browser::start(1440, 900));
    Login(&developer.driver).log_in(&server.base, "admin").await?;
    Login(&reviewer.driver).log_in(&server.base, "ana").await?;
    wait_for_text(&developer.driver, "Inbox").await;
    wait_for_text(&reviewer.driver, "Inbox").await;

    // The developer launches a run with the form made from the schema, and sees it stop.
    developer.driver.goto(format!("{}/flows/article", server.base)).await?;
    field(&developer.driver, "topic").send_keys("the ocean").await?;
    button(&developer.driver, "Launch the run").click().await?;
    wait_for_text(&developer.driver, "Waiting for a person").await;

    // In the other browser, the review appears by itself. The reviewer asks for a shorter text.
    let inbox = Inbox(&reviewer.driver);
    let first = pending(&ana).await;
    inbox.open_card("Please review the draft").await?;
    // Screen readers announce what changes in an element that was there before.
    let stage = reviewer.driver.query(By::Css(".decide .stage[role=status]")).first().await?;
    hold_the_next_decision(&reviewer.driver).await?;
    inbox.press("Needs revision").await?;
    eventually("it is announced", async || stage.text().await.ok()?.contains("Undo").then_some(())).await;
    end_the_time_to_undo(&reviewer.driver).await?;
    let second = eventually("the writer has written again", async || {
        let review = pending(&ana).await;
        (review.id != first.id).then_some(review)
    })
    .await;
    assert!(draft(&second).len() < draft(&first).len(), "shorter than {}: {}", draft(&first), draft(&second));
    wait_for_text(&reviewer.driver, "visit 2 of 5").await;

    // Killing the server loses nothing, and both browsers reconnect.
    server.restart().await;

    // The reviewer edits a sentence, sees the difference, and approves.
    inbox.open_card("visit 2 of 5").await?;
    inbox.press("Edit").await?;
    let text = field(&reviewer.driver, "Edit Draft");
    text.send_keys(Key::Control + Key::End).await?;
    text.send_keys(" It was read by a person.").await?;
    inbox.press("Your changes").await?;
    let inserted = locate(&reviewer.driver, By::Tag("ins")).text().await?;
    assert!(inserted.contains("It was read by a person."), "{inserted}");
    inbox.press("Looks good, continue, with your edit").await?;

    // The gate before `publish` shows the arguments, with the edit in them.
    inbox.open_card("wants to call publish").await?;
    wait_for_text(&reviewer.driver, "It was read by a person.").await;
    wait_for_text(&reviewer.driver, "cannot be undone").await;
    inbox.press("Approve publish").await?;

    // The run page of the other browser has followed, without a reload.
    wait_for_text(&developer.driver, "Completed").await;
    let admin = server.admin().await;
    let runs = admin.runs(&RunQuery::default()).await.expect("the admin sees runs");
    assert_eq!(runs.items.iter().map(|run| run.status).collect::<Vec<_>>(), [RunStatus::Completed]);
    let report = admin.report(runs.items[0].id).await.expect("a report");
    let visits = report.steps.iter().map(|step| (step.node.as_str(), step.visit));
    assert_eq!(
        visits.collect::<Vec<_>>(),
        [("draft", 1), ("review", 1), ("draft", 2), ("review", 2), ("publish", 1)],
        "no step ran twice because of the kill"
    );

    // The audit log shows who did what.
    developer.driver.goto(format!("{}/audit", server.base)).await?;
    wait_for_text(&developer.driver, "with an edit to draft").await;
    wait_for_text(&developer.driver, FLOW).await;
    tokio::join!(developer.quit(), reviewer.quit());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_wrote_is_shown_and_does_nothing() -> BrowserResult<()> {
    let server = server().await;
    let elsewhere = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    elsewhere.set_nonblocking(true).expect("it does not wait");
    let far = format!("http://{}/far.png", elsewhere.local_addr().expect("an address"));
    let hostile = format!(
        "# Hello <script>document.title = 'owned'</script><img src=x onerror=\"document.title = 'owned'\">\\n\\n\
         [here](javascript:alert(1)) and \\u202Etxt.exe\\n\\n![A dot]({DOT})\\n\\n![Far away]({far})"
    );
    let flow = format!(
        "id: hostile\nnodes:\n  make:\n    set: {{ draft: \"{}\" }}\n    next: look\n  look:\n    human:\n      \
         prompt: Look.\n      review_keys: [{{ key: draft, type: markdown }}]\n      options: [{{ id: ok, label: Fine }}]\n",
        hostile.replace('"', "\\\"")
    );
    server.save(&flow).await;
    let admin = server.admin().await;
    launch_as(&admin, "hostile", Value::Null).await;
    let review = pending(&admin).await;

    let browser = Browser::start(1024, 768).await;
    Login(&browser.driver).log_in(&server.base, "admin").await?;
    wait_for_text(&browser.driver, "Inbox").await;
    browser.driver.goto(format!("{}/reviews/{}", server.base, review.id)).await?;
    wait_for_review(&browser.driver, &review).await;
    wait_for_text(&browser.driver, "Hello").await;
    assert_ne!(browser.driver.title().await?, "owned");
    let item = browser.driver.find(By::Css("main.content")).await?;
    assert!(item.find_all(By::Css("script, img, iframe")).await?.is_empty(), "nothing of it became an element");
    for link in item.find_all(By::Css("a[href]")).await? {
        let address = link.attr("href").await?.unwrap_or_default();
        assert!(!address.starts_with("javascript:"), "{address}");
    }
    wait_for_text(&browser.driver, "RLO").await;

    // Only a picture that no server is asked for is shown, and only on a click.
    eventually("both pictures have a place", async || {
        (item.find_all(By::Css(".inert-image")).await.ok()?.len() == 2).then_some(())
    })
    .await;
    assert_eq!(item.find_all(By::Css(".inert-image button")).await?.len(), 1);
    locate(&browser.driver, By::Css(".inert-image button")).click().await?;
    eventually("the picture is shown", async || {
        let width = "return document.querySelector('.inert-image img').naturalWidth";
        (browser.driver.execute(width, Vec::new()).await.ok()?.convert::<u64>().ok()? > 0).then_some(())
    })
    .await;
    assert_eq!(item.find_all(By::Css("img")).await?.len(), 1);
    assert!(elsewhere.accept().is_err(), "no other server was asked for anything");
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_stays_as_it_is_while_reviews_come_and_go() -> BrowserResult<()> {
    let server = server().await;
    server.save("id: ask\nnodes:\n  ask: { human: { prompt: Well?, options: [{ id: ok, label: Fine }] } }\n").await;
    let admin = server.admin().await;
    launch_as(&admin, "ask", Value::Null).await;
    let review = pending(&admin).await;

    let browser = Browser::start(1440, 900).await;
    Login(&browser.driver).log_in(&server.base, "admin").await?;
    wait_for_text(&browser.driver, "Well?").await;
    // The list comes before the count, and only what comes after the count has arrived.
    wait_for_text(&browser.driver, "1 pending").await;
    let row = format!("row-{}", review.id);
    browser.driver.execute(format!("document.getElementById('{row}').focus()"), Vec::new()).await?;
    launch_as(&admin, "ask", Value::Null).await;
    wait_for_text(&browser.driver, "2 pending").await;
    wait_for_text(&browser.driver, "1 review arrived").await;
    admin.cancel(review.run_id.expect("a run"), &shared::api::Reason::default(), None).await.expect("it ends");
    wait_for_text(&browser.driver, "1 pending").await;
    let focused = browser.driver.active_element().await?.id().await?;
    assert_eq!(focused.as_deref(), Some(row.as_str()), "the row was not made anew");
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_default_notifications_apply_until_someone_changes_them_and_when_they_go_back() -> BrowserResult<()> {
    let mail = "[notifications.smtp]\nhost = \"mail.example.org\"\nfrom = \"Countersign <desk@example.org>\"\n";
    let rule = "[[notifications.default.rules]]\nchannel = \"email\"\nevents = [\"review.requested\"]\n";
    let options = Options { settings: format!("{mail}{rule}"), ..Options::on(Database::Sqlite) };
    let server = Server::start(options).await;
    let ana = server.person("ana", &["reviewer"]).await;

    let browser = Browser::start(1440, 900).await;
    let driver = &browser.driver;
    Login(driver).log_in(&server.base, "ana").await?;
    wait_for_text(driver, "Inbox").await;
    driver.goto(format!("{}/people?tab=notifications", server.base)).await?;
    wait_for_text(driver, "This is the default of this server.").await;
    button(driver, "others comment on it").click().await?;
    wait_for_text(driver, "These are your own rules.").await;
    button(driver, "Save").click().await?;
    wait_for_text(driver, "Saved.").await;
    let rules = ana.notifications(None).await.expect("what ana chose").rules.expect("rules of her own");
    assert_eq!(serde_json::json!(rules[0].events), serde_json::json!(["review.requested", "review.commented"]));

    button(driver, "Use the default").click().await?;
    wait_for_text(driver, "This is the default of this server.").await;
    let comments = button(driver, "others comment on it");
    assert_eq!(comments.await?.attr("aria-pressed").await?.as_deref(), Some("false"), "its rule is shown");
    button(driver, "Save").click().await?;
    wait_for_text(driver, "Saved.").await;
    assert_eq!(ana.notifications(None).await.expect("what ana chose").rules, None);
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_person_chooses_what_they_are_told_and_after_how_long() -> BrowserResult<()> {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = folder.path().join("countersign.toml");
    let mail = "[notifications.smtp]\nhost = \"mail.example.org\"\nfrom = \"Countersign <desk@example.org>\"\n";
    std::fs::write(&settings, mail).expect("written");
    let options = Options::on(Database::Sqlite).arguments(["--config", &settings.display().to_string()]);
    let server = Server::start(options).await;
    let ana = server.person("ana", &["reviewer"]).await;

    let browser = Browser::start(1440, 900).await;
    let driver = &browser.driver;
    Login(driver).log_in(&server.base, "ana").await?;
    wait_for_text(driver, "Inbox").await;
    driver.goto(format!("{}/people?tab=notifications", server.base)).await?;
    button(driver, "Add a rule").click().await?;
    button(driver, "low").click().await?;
    let address = field(driver, "e-mail address");
    address.send_keys("nowhere").await?;
    button(driver, "Save").click().await?;
    wait_for_text(driver, "an address such as ana@example.org").await;
    address.send_keys("@example.org").await?;
    button(driver, "Save").click().await?;
    wait_for_text(driver, "Saved.").await;

    let chosen = ana.notifications(None).await.expect("what ana chose");
    let rule = serde_json::json!([{
        "channel": "email", "events": ["review.requested", "review.expiring"], "after": "10m",
        "severities": ["medium", "high", "critical"]
    }]);
    assert_eq!(serde_json::to_value(chosen.rules).expect("rules"), rule);
    assert_eq!(chosen.email.as_deref(), Some("nowhere@example.org"));

    driver.refresh().await?;
    assert_eq!(button(driver, "low").await?.attr("aria-pressed").await?.as_deref(), Some("false"));
    assert_eq!(button(driver, "I am asked to decide").await?.attr("aria-pressed").await?.as_deref(), Some("true"));
    browser.quit().await;
    Ok(())
}
