//! The command palette finds what a person may do and see, and decides nothing that a key would not.

use serde_json::{Value, json};
use tests::device::Screen;
use tests::pages::{hold_the_next_decision, wait_for_path, wait_for_text};
use tests::reviewing::{
    NOTE, ReviewSetup, choose, decide, launch, pending, press_key, reading, server, text_of, wait_for_review,
};
use tests::{BrowserResult, eventually};
use thirtyfour::prelude::*;

/// A phone, a small and a large screen, in both colours.
const SCREENS: [Screen; 6] =
    [(390, 844, false), (390, 844, true), (1024, 768, false), (1024, 768, true), (1440, 900, false), (1440, 900, true)];

async fn value(driver: &WebDriver, script: &str) -> Value {
    driver.execute(script, Vec::new()).await.map(|value| value.json().clone()).expect("the page answers")
}

async fn press_ctrl_k(driver: &WebDriver) -> BrowserResult<()> {
    driver.action_chain().key_down(Key::Control).send_keys("k").key_up(Key::Control).perform().await?;
    Ok(())
}

/// Opens the palette, and waits for its list.
async fn open(driver: &WebDriver) -> BrowserResult<()> {
    press_ctrl_k(driver).await?;
    driver.query(By::Css("dialog[open] [role=option]")).first().await?;
    Ok(())
}

async fn is_open(driver: &WebDriver) -> bool {
    value(driver, "return !!document.querySelector('dialog[open] [role=combobox]')").await == json!(true)
}

async fn wait_until_closed(driver: &WebDriver) {
    eventually("the palette is closed", async || (!is_open(driver).await).then_some(())).await;
}

/// Types into the field, waits until an option with this text is selected, and chooses it.
async fn choose_option(driver: &WebDriver, typed: &str, says: &str) -> BrowserResult<()> {
    driver.action_chain().send_keys(typed).perform().await?;
    wait_for_selected(driver, says).await;
    driver.action_chain().send_keys(Key::Enter).perform().await?;
    wait_until_closed(driver).await;
    Ok(())
}

/// Waits until the option to which the field refers has this text.
async fn wait_for_selected(driver: &WebDriver, says: &str) {
    let script = "
        const field = document.activeElement;
        const option = document.getElementById(field.getAttribute('aria-activedescendant'));
        return field.role === 'combobox' && option?.ariaSelected === 'true' ? option.innerText : null;";
    eventually(&format!("`{says}` is selected"), async || {
        value(driver, script).await.as_str().is_some_and(|text| text.contains(says)).then_some(())
    })
    .await;
}

/// The texts of all options.
async fn options(driver: &WebDriver) -> Vec<String> {
    let script = "return [...document.querySelectorAll('[role=option] .says')].map(option => option.innerText)";
    serde_json::from_value(value(driver, script).await).expect("texts")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_page_offers_and_where_one_may_go_is_found_by_its_words() -> BrowserResult<()> {
    let ReviewSetup { server, review, browser, .. } = ReviewSetup::open(&[NOTE], "note").await?;
    let driver = &browser.driver;
    browser.with_axe().await;
    // Shortcuts of a single key are off; this one has a modifier.
    driver.execute("localStorage.setItem('countersign.shortcuts', 'false')", Vec::new()).await?;
    driver.refresh().await?;
    wait_for_review(driver, &review).await;
    open(driver).await?;
    browser.is_readable("palette", &SCREENS).await;
    let all = options(driver).await;
    for offered in ["Send it", "Stop", "Claim this review", "Delegate this review…", "Next review", "Runs", "Log out"]
    {
        assert!(all.iter().any(|option| option == offered), "{offered} is not in {all:?}");
    }
    for hidden in ["Audit", "People", "Launch note"] {
        assert!(all.iter().all(|option| option != hidden), "{hidden} is not for her: {all:?}");
    }
    // Nothing is selected before anything is typed.
    driver.action_chain().send_keys(Key::Enter).perform().await?;
    assert!(is_open(driver).await);
    driver.action_chain().send_keys(Key::End).perform().await?;
    wait_for_selected(driver, "Log out").await;
    driver.action_chain().send_keys(Key::Down).perform().await?;
    wait_for_selected(driver, "Send it").await;
    driver.action_chain().send_keys(Key::Escape).perform().await?;
    wait_until_closed(driver).await;

    open(driver).await?;
    choose_option(driver, "review claim", "Claim this review").await?;
    wait_for_text(driver, "Claimed by you").await;
    hold_the_next_decision(driver).await?;
    open(driver).await?;
    choose_option(driver, "send it", "Send it").await?;
    wait_for_text(driver, "Undo").await;
    open(driver).await?;
    choose_option(driver, "undo", "Undo “").await?;
    eventually("it is taken back", async || (!text_of(driver, ".decide").await.contains("sending")).then_some(()))
        .await;

    open(driver).await?;
    driver.action_chain().send_keys("broken parcel").perform().await?;
    wait_for_selected(driver, "Search reviews for “broken parcel”").await;
    assert_eq!(text_of(driver, "dialog[open] [role=status]").await, "1 result");
    browser.is_readable("palette-search", &SCREENS[..2]).await;
    driver.action_chain().send_keys(Key::Enter).perform().await?;
    wait_for_path(driver, "/inbox?q=broken%20parcel").await;
    let run = review.run_id.expect("a run").to_string();
    open(driver).await?;
    driver.action_chain().send_keys(&run).perform().await?;
    wait_for_selected(driver, "Open the review").await;
    driver.action_chain().send_keys(Key::Down + Key::Enter).perform().await?;
    wait_for_path(driver, &format!("/runs/{run}")).await;
    let still = pending(&server.admin().await).await;
    assert_eq!((still.id, still.decisions.len()), (review.id, 0), "nothing was sent");
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_critical_is_decided_by_a_key_and_nothing_that_is_over() -> BrowserResult<()> {
    let grave = NOTE
        .replace("id: note", "id: grave")
        .replace("prompt: Send this?", "prompt: Send this?\n      severity: critical");
    let server = server(&[NOTE, &grave]).await;
    let dev = server.person("dev", &["reviewer", "developer"]).await;
    let tom = server.person("tom", &["reviewer"]).await;
    launch(&server, "grave", json!({})).await;
    let review = pending(&dev).await;
    let browser = reading(&server, "dev", &review).await?;
    let driver = &browser.driver;
    open(driver).await?;
    choose_option(driver, "send it", "Goes to the button").await?;
    let focused = "return document.activeElement.closest('.acts') && document.activeElement.innerText";
    eventually("the button has the focus", async || {
        value(driver, focused).await.as_str().is_some_and(|text| text.starts_with("Send it")).then_some(())
    })
    .await;
    // A key that is still held presses nothing.
    let script = "
        const held = new KeyboardEvent('keydown', { key: 'Enter', repeat: true, bubbles: true, cancelable: true });
        document.activeElement.dispatchEvent(held);
        return held.defaultPrevented;";
    assert_eq!(value(driver, script).await, json!(true));
    assert!(!text_of(driver, ".decide").await.contains("Undo"));

    // Another dialog keeps the key.
    press_key(driver, "d").await?;
    driver.query(By::Css("dialog[open] select")).first().await?;
    press_ctrl_k(driver).await?;
    assert!(!is_open(driver).await);
    driver.action_chain().send_keys(Key::Escape).perform().await?;
    eventually("it is closed", async || driver.find(By::Css("dialog[open]")).await.err().map(|_| ())).await;

    open(driver).await?;
    driver.action_chain().send_keys("stop").perform().await?;
    wait_for_selected(driver, "Stop").await;
    decide(&tom, &review, choose("send"), json!({})).await;
    eventually("it is over", async || text_of(driver, ".stage").await.contains("tom").then_some(())).await;
    driver.action_chain().send_keys(Key::Enter).perform().await?;
    wait_for_text(driver, "“Stop” is no longer possible here.").await;

    open(driver).await?;
    choose_option(driver, "launch gra", "Launch grave").await?;
    wait_for_path(driver, "/flows/grave").await;
    wait_for_text(driver, "Launch a run").await;
    browser.quit().await;
    Ok(())
}
