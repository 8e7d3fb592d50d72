//! A form that is sent counts once, even if the response is late or lost, and what is typed meanwhile stays.

use std::time::Duration;

use shared::api::UserPatch;
use shared::review::{Review, ReviewStatus};
use tests::locator::locate;
use tests::pages::{button, field, link, send_now, wait_for_text, wait_for_title};
use tests::reviewing::{NOTE, ReviewSetup, reading, text_of, wait_for_review};
use tests::{Api, Browser, BrowserResult, Server, eventually};
use thirtyfour::prelude::*;

/// Waits until a field holds a text.
async fn holds(driver: &WebDriver, name: &str, expected: &str) {
    eventually(&format!("`{name}` holds {expected:?}"), async || {
        let value = field(driver, name).await.ok()?.value().await.ok()?;
        (value.as_deref() == Some(expected)).then_some(())
    })
    .await;
}

/// Gives Ana the role `developer`, so that she may launch runs.
async fn may_launch(server: &Server) {
    let roles = ["reviewer", "legal", "developer"].map(ToOwned::to_owned).to_vec();
    let patch = UserPatch { roles: Some(roles), ..UserPatch::default() };
    server.admin().await.update_user("ana", &patch).await.expect("she may start runs");
}

async fn comments(api: &Api, review: &Review) -> Vec<String> {
    let review = api.review(review.id).await.expect("the review");
    review.comments.into_iter().map(|comment| comment.text).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_comment_is_added_once_and_what_is_typed_on_stays() -> BrowserResult<()> {
    let ReviewSetup { server: _server, ana, review, browser, .. } = ReviewSetup::open(&[NOTE], "note").await?;
    let driver = &browser.driver;
    let name = "Comment on this review";
    browser.hold(Some("POST .*/comments")).await?;
    field(driver, name).send_keys("First.").await?;
    button(driver, "Add").click().await?;
    browser.held().await;
    field(driver, name).send_keys(" And more.").await?;
    browser.release(true).await?;
    wait_for_text(driver, "First.").await;
    holds(driver, name, "First. And more.").await;

    // The response is lost. Sending the comment again adds it once.
    button(driver, "Add").click().await?;
    browser.release(false).await?;
    wait_for_text(driver, "The server cannot be reached.").await;
    // That holds even if the page was left in between.
    link(driver, "You").click().await?;
    wait_for_text(driver, "Your tokens").await;
    driver.back().await?;
    holds(driver, name, "First. And more.").await;
    button(driver, "Add").click().await?;
    browser.release(true).await?;
    holds(driver, name, "").await;
    assert_eq!(comments(&ana, &review).await, ["First.", "First. And more."]);

    // A new comment with the same text as an old one is added.
    field(driver, name).send_keys("First. And more.").await?;
    button(driver, "Add").click().await?;
    browser.release(true).await?;
    holds(driver, name, "").await;
    assert_eq!(comments(&ana, &review).await.len(), 3);
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deputy_is_named_once_by_two_clicks() -> BrowserResult<()> {
    let ReviewSetup { server, ana, browser, .. } = ReviewSetup::open(&[NOTE], "note").await?;
    let driver = &browser.driver;
    driver.goto(format!("{}/people?tab=you", server.base)).await?;
    let tom = "//select/option[@value='tom']";
    driver
        .query(By::XPath(tom))
        .wait(Duration::from_secs(10), Duration::from_millis(50))
        .first()
        .await?
        .click()
        .await?;
    // How a date is typed depends on the browser's language.
    let fill = "const field = [...document.querySelectorAll('[type=datetime-local]')].at(-1); \
        field.value = `${new Date().getFullYear() + 1}-01-01T10:00`; field.dispatchEvent(new Event('input', { bubbles: true }))";
    driver.execute(fill, Vec::new()).await?;
    let add = button(driver, "Add deputy").await?;
    driver.action_chain().double_click_element(&add).perform().await?;
    wait_for_text(driver, "tom decides for ana").await;
    driver.query(By::XPath("//button[@aria-disabled='true'][normalize-space(.)='Add deputy']")).first().await?;
    let deputies = ana.deputies().await.expect("her deputies");
    assert_eq!(deputies.items.len(), 1, "{deputies:?}");
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_leaves_while_a_run_is_started_stays_where_they_went() -> BrowserResult<()> {
    let ReviewSetup { server, browser, .. } = ReviewSetup::open(&[NOTE], "note").await?;
    let driver = &browser.driver;
    may_launch(&server).await;
    driver.goto(format!("{}/flows/note", server.base)).await?;
    field(driver, "text").send_keys(" For Monday.").await?;
    browser.hold(Some("POST /api/v1/runs")).await?;
    button(driver, "Launch the run").click().await?;
    browser.held().await;
    link(driver, "You").click().await?;
    wait_for_text(driver, "Your tokens").await;
    browser.release(true).await?;
    wait_for_text(driver, "was launched.").await;
    assert_eq!(driver.current_url().await?.path(), "/people");
    driver.back().await?;
    holds(driver, "text", "The original.").await;
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_that_gets_no_answer_can_be_sent_again() -> BrowserResult<()> {
    let ReviewSetup { server: _server, ana, review, browser, .. } = ReviewSetup::open(&[NOTE], "note").await?;
    let driver = &browser.driver;
    // A server that never answers decisions, and meanwhile timeouts that are twenty times shorter.
    browser
        .before_each_page(
            "const timeout = AbortSignal.timeout.bind(AbortSignal); \
            AbortSignal.timeout = ms => timeout(window.silent ? ms / 20 : ms); \
            const fetched = window.fetch; window.fetch = async (request, ...more) => { \
                if (!window.silent || !request.url?.includes('/decisions')) return fetched(request, ...more); \
                return new Promise((_, fail) => request.signal.addEventListener('abort', () => fail(request.signal.reason))) }",
        )
        .await?;
    driver.refresh().await?;
    wait_for_review(driver, &review).await;
    driver.execute("window.silent = true", Vec::new()).await?;
    button(driver, "Send it").click().await?;
    send_now(driver).await;
    wait_for_text(driver, "The server did not answer in time.").await;
    driver.execute("window.silent = false", Vec::new()).await?;
    button(driver, "Send again").click().await?;
    wait_for_text(driver, "Decided.").await;
    assert_eq!(ana.review(review.id).await.expect("the review").decisions.len(), 1);
    assert!(!text_of(driver, ".decide").await.contains("No answer"));
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_leaves_while_a_person_is_erased_can_go_on() -> BrowserResult<()> {
    let ReviewSetup { server, review, browser, .. } = ReviewSetup::open(&[NOTE], "note").await?;
    let patch = UserPatch { active: Some(false), ..UserPatch::default() };
    server.admin().await.update_user("tom", &patch).await.expect("he is deactivated");
    let admin = reading(&server, "admin", &review).await?;
    let driver = &admin.driver;
    link(driver, "People").click().await?;
    locate(driver, By::Css("button[aria-label='Erase personal data of tom']")).click().await?;
    admin.hold(Some("DELETE .*/personal-data")).await?;
    locate(driver, By::Css("dialog[open] .b.stop")).click().await?;
    admin.held().await;
    // The dialog covers the links, but not the browser's own button.
    driver.back().await?;
    wait_for_review(driver, &review).await;
    admin.release(true).await?;
    wait_for_text(driver, "tom is now erased-").await;
    link(driver, "Runs").click().await?;
    wait_for_title(driver, "Runs · Countersign").await;
    tokio::join!(admin.quit(), browser.quit());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_is_delegated_only_to_the_person_who_is_shown() -> BrowserResult<()> {
    let ReviewSetup { server: _server, ana, review, browser, .. } = ReviewSetup::open(&[NOTE], "note").await?;
    let driver = &browser.driver;
    let tom = By::XPath("//dialog[@open]//select/option[@value='tom']");
    button(driver, "Delegate").click().await?;
    driver.query(tom.clone()).wait(Duration::from_secs(10), Duration::from_millis(50)).first().await?.click().await?;
    field(driver, "Who decides instead").send_keys(Key::Escape).await?;

    // The choice is kept, but not shown before the names are there.
    browser.hold(Some("GET .*/reviewers")).await?;
    button(driver, "Delegate").click().await?;
    let send = driver.query(By::Css("dialog[open] .b.primary")).and_displayed().first().await?;
    browser.held().await;
    send.click().await?;
    wait_for_text(driver, "Choose a person.").await;
    assert!(ana.review(review.id).await.expect("the review").delegations.is_empty());
    browser.release(true).await?;
    holds(driver, "Who decides instead", "tom").await;
    send.click().await?;
    eventually("tom decides", async || {
        let review = ana.review(review.id).await.ok()?;
        (review.delegations.first()?.to.as_str() == "tom").then_some(())
    })
    .await;
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_delegated_or_withdrawn_again_after_a_lost_answer_counts_once() -> BrowserResult<()> {
    let ReviewSetup { server, ana, review, browser, .. } = ReviewSetup::open(&[NOTE], "note").await?;
    let driver = &browser.driver;
    // Sends it twice, of which the first answer is lost, and waits until the dialog closes.
    let send_twice = async |browser: &Browser, css: &'static str| {
        let send = browser.driver.query(By::Css(css)).and_displayed().first().await?;
        send.click().await?;
        browser.release(false).await?;
        wait_for_text(&browser.driver, "The server cannot be reached.").await;
        send.click().await?;
        browser.release(true).await?;
        eventually("the dialog is closed", async || {
            browser.driver.find_all(By::Css("dialog[open]")).await.ok()?.is_empty().then_some(())
        })
        .await;
        BrowserResult::Ok(())
    };
    browser.hold(Some("POST .*/delegate")).await?;
    button(driver, "Delegate").click().await?;
    let tom = driver.query(By::XPath("//dialog[@open]//select/option[@value='tom']"));
    tom.wait(Duration::from_secs(10), Duration::from_millis(50)).first().await?.click().await?;
    send_twice(&browser, "dialog[open] .b.primary").await?;
    assert_eq!(ana.review(review.id).await.expect("the review").delegations.len(), 1);

    let admin = reading(&server, "admin", &review).await?;
    admin.hold(Some("POST .*/withdraw")).await?;
    button(&admin.driver, "Withdraw").click().await?;
    send_twice(&admin, "dialog[open] .b.stop").await?;
    assert_eq!(ana.review(review.id).await.expect("the review").status, ReviewStatus::Withdrawn);
    tokio::join!(admin.quit(), browser.quit());
    Ok(())
}
