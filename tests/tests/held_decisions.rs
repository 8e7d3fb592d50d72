//! A decision that is held, so that it can be undone: what sends it, and what ends it.

use serde_json::json;
use shared::review::Review;
use tests::locator::locate;
use tests::pages::{Inbox, button, end_the_time_to_undo, hold_the_next_decision, stored, wait_for_text};
use tests::reviewing::{NOTE, ReviewSetup, choose, decide, edit_text, launch, launch_as, pending, text_of};
use tests::{BrowserResult, eventually};
use thirtyfour::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_is_sent_before_one_logs_out_and_at_once_where_a_closed_page_could_not_send_it() -> BrowserResult<()>
{
    let ReviewSetup { server, ana, review, browser, .. } = ReviewSetup::open(&[NOTE], "note").await?;
    let driver = &browser.driver;
    let over = async |review: &Review| {
        eventually("it is over", async || (!ana.review(review.id).await.ok()?.is_pending()).then_some(())).await;
    };
    edit_text(driver, " More.").await?;
    let fill = "const field = document.activeElement; \
        const { set } = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(field), 'value'); \
        set.call(field, 'A long text. '.repeat(6000)); field.dispatchEvent(new Event('input', { bubbles: true }))";
    driver.execute(fill, Vec::new()).await?;
    Inbox(driver).press("Send it, with your edit").await?;
    let bar = text_of(driver, ".read").await;
    assert!(!bar.contains("Undo"), "{bar}");
    over(&review).await;

    launch(&server, "note", json!({})).await;
    let review = pending(&ana).await;
    driver.goto(format!("{}/reviews/{}", server.base, review.id)).await?;
    hold_the_next_decision(driver).await?;
    Inbox(driver).press("Send it").await?;
    locate(driver, By::Css(".who")).click().await?;
    button(driver, "Log out").click().await?;
    wait_for_text(driver, "Log in").await;
    over(&review).await;
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_decision_waits_within_the_console_and_is_sent_when_its_tab_is_left_as_it_says() -> BrowserResult<()> {
    let ReviewSetup { server, ana, review, browser, .. } = ReviewSetup::open(&[NOTE], "note").await?;
    let driver = &browser.driver;
    let admin = server.admin().await;
    let next = async || {
        launch_as(&admin, "note", json!({})).await;
        let review = pending(&ana).await;
        driver.goto(format!("{}/reviews/{}", server.base, review.id)).await?;
        WebDriverResult::Ok(review)
    };
    let hold = async || {
        hold_the_next_decision(driver).await?;
        Inbox(driver).press("Send it").await?;
        wait_for_text(driver, "or when you leave this tab").await;
        WebDriverResult::Ok(())
    };
    let over = async |review: &Review| {
        eventually("it is over", async || (!ana.review(review.id).await.ok()?.is_pending()).then_some(())).await;
    };
    hold().await?;
    locate(driver, By::Css("a[href='/runs']")).click().await?;
    locate(driver, By::Css(".held-bar button")).usable().await?;
    assert!(ana.review(review.id).await.expect("the review").is_pending(), "it can still be undone");
    end_the_time_to_undo(driver).await?;
    over(&review).await;

    // From here on, the page that held the decision is gone, so only the request that it sent on leaving can decide.
    let review = next().await?;
    hold().await?;
    driver.goto(format!("{}/runs", server.base)).await?;
    over(&review).await;
    let unsent = async || stored(driver, "decision.ana/").await.ok();
    eventually("nothing is left to send", async || (unsent().await? == 0).then_some(())).await;

    let review = next().await?;
    hold().await?;
    driver.goto("about:blank").await?;
    over(&review).await;

    let review = next().await?;
    hold().await?;
    let page = driver.window().await?;
    let other = driver.new_tab().await?;
    driver.switch_to_window(page).await?;
    driver.close_window().await?;
    driver.switch_to_window(other).await?;
    over(&review).await;
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_is_told_before_a_decision_and_a_held_one_ends_when_another_was_first() -> BrowserResult<()> {
    let ReviewSetup { server: _server, ana, tom, review, browser } = ReviewSetup::open(&[NOTE], "note").await?;
    let driver = &browser.driver;
    tom.claim(review.id).await.expect("tom claims it");
    wait_for_text(driver, "tom has claimed this until").await;
    hold_the_next_decision(driver).await?;
    Inbox(driver).press("Send it").await?;
    wait_for_text(driver, "Undo").await;
    decide(&tom, &review, choose("stop"), json!({})).await;
    wait_for_text(driver, "tom chose “Stop”").await;
    let bar = text_of(driver, ".decide").await;
    assert!(!bar.contains("Undo") && !bar.contains("ending in"), "nothing is held any more: {bar}");
    let over = ana.review(review.id).await.expect("the review");
    assert_eq!(over.decisions.len(), 1, "{:?}", over.decisions);
    browser.quit().await;
    Ok(())
}
