//! The editor of flows: saving keeps caret, scroll position and undo history, and drafts are private and never lost.

use std::time::Instant;

use serde_json::{Value, json};
use tests::locator::locate;
use tests::pages::{Login, button, link, stored, wait_for_text, wait_for_title};
use tests::{Browser, BrowserResult, Database, Options, Server, eventually};
use thirtyfour::prelude::*;

/// The source of a flow that is longer than the screen.
fn flow() -> String {
    let lines = (1..=150).map(|number| format!("# Line {number}.")).collect::<Vec<_>>().join("\n") + "\n";
    format!("id: ask\nnodes:\n  ask: {{ human: {{ prompt: Well?, options: [{{ id: ok, label: Fine }}] }} }}\n{lines}")
}

async fn server() -> Server {
    let server = Server::start(Options::on(Database::Sqlite)).await;
    server.save(&flow()).await;
    server.person("dana", &["developer"]).await;
    server.person("tom", &["developer"]).await;
    server
}

/// Opens the newest version in the editor.
async fn open(driver: &WebDriver, server: &Server) -> BrowserResult<()> {
    driver.goto(format!("{}/flows/ask?tab=definition", server.base)).await?;
    wait_for_text(driver, "Valid").await;
    Ok(())
}

async fn log_in(browser: &Browser, server: &Server, username: &str) -> BrowserResult<()> {
    browser.driver.delete_all_cookies().await?;
    Login(&browser.driver).log_in(&server.base, username).await?;
    link(&browser.driver, "Flows").await?;
    Ok(())
}

/// Runs a script in which `area` is the editor's text area, and returns its result.
async fn of_editor(driver: &WebDriver, script: &str) -> Value {
    let script = format!("const area = document.querySelector('.editor textarea'); {script}");
    driver.execute(script, Vec::new()).await.expect("it runs").convert().expect("JSON")
}

/// Puts the caret in front of a text, and scrolls there.
async fn place_caret(driver: &WebDriver, before: &str) {
    let script = "const at = area.value.indexOf(WHERE); area.focus(); area.setSelectionRange(at, at); \
                  area.scrollTop = area.value.slice(0, at).split('\\n').length * 20 - 200;";
    of_editor(driver, &script.replace("WHERE", &json!(before).to_string())).await;
}

async fn type_in(driver: &WebDriver, text: &str) -> WebDriverResult<()> {
    driver.action_chain().send_keys(text).perform().await
}

async fn press_with_control(driver: &WebDriver, key: &str) -> WebDriverResult<()> {
    driver.action_chain().key_down(Key::Control).send_keys(key).key_up(Key::Control).perform().await
}

/// Whether the browser stores a draft of a flow under this username.
async fn is_kept(driver: &WebDriver, username: &str) -> bool {
    stored(driver, &format!("draft.{username}/flow/")).await.expect("a number") > 0
}

async fn wait_until_kept(driver: &WebDriver, username: &str) {
    eventually("the draft is kept", async || is_kept(driver, username).await.then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn saving_a_flow_keeps_caret_scroll_and_undo() -> BrowserResult<()> {
    let server = server().await;
    let browser = Browser::start(1440, 900).await;
    let driver = &browser.driver;
    log_in(&browser, &server, "dana").await?;
    open(driver, &server).await?;
    let digest = async || locate(driver, By::Css(".flow-head .facts code")).text().await;
    let (first, before) = (digest().await?, of_editor(driver, "area.mark = 'the same'; return area.value").await);
    place_caret(driver, "# Line 90.").await;
    type_in(driver, "# Typed.").await?;
    driver.active_element().await?.send_keys(Key::Tab).await?;
    let place =
        "return [area.mark, area.selectionStart, area.selectionEnd, area.scrollTop, area === document.activeElement]";
    let here = of_editor(driver, place).await;
    assert!(here[3].as_f64() > Some(1000.0), "it is scrolled: {here}");

    press_with_control(driver, "s").await?;
    wait_for_text(driver, "Saved as version 2").await;
    wait_for_text(driver, "v2, newest").await;
    assert_eq!(driver.current_url().await?.query(), Some("tab=definition&version=2"));
    assert_ne!(digest().await?, first, "the header is that of the new version");
    wait_for_text(driver, "saved by dana").await;
    button_says(driver, "Saved").await;
    assert_eq!(of_editor(driver, place).await, here, "who edits is where they were");

    // The browser may undo the typed text in several steps.
    eventually("what was typed is undone", async || {
        press_with_control(driver, "z").await.ok()?;
        (of_editor(driver, "return area.value").await == before).then_some(())
    })
    .await;
    button_says(driver, "Save as version 3").await;
    press_with_control(driver, "s").await?;
    wait_for_text(driver, "v3, newest").await;
    assert_eq!(of_editor(driver, "return area.mark").await, "the same");

    // Another version is loaded, and so is the newest after that.
    for (version, typed) in [("2", true), ("3", false)] {
        locate(driver, By::Css(format!("select.version option[value='{version}']"))).click().await?;
        eventually("the version is shown", async || {
            let shown = of_editor(driver, "return [area.value.includes('# Typed.'), area.mark ?? null]").await;
            (shown == json!([typed, null])).then_some(())
        })
        .await;
        assert!(
            driver.current_url().await?.query().is_some_and(|query| query.ends_with(&format!("version={version}")))
        );
    }
    browser.quit().await;
    Ok(())
}

/// Waits until the button that saves has this text.
async fn button_says(driver: &WebDriver, text: &str) {
    eventually(&format!("the button says {text}"), async || {
        let button = driver.find(By::Css(".definition-bar button.primary")).await.ok()?;
        (button.text().await.ok()? == text).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_of_a_flow_belongs_to_who_wrote_it() -> BrowserResult<()> {
    let server = server().await;
    let browser = Browser::start(1440, 900).await;
    let driver = &browser.driver;
    log_in(&browser, &server, "dana").await?;
    open(driver, &server).await?;
    place_caret(driver, "# Line 1.").await;
    let count = "window.writes = 0; const set = Storage.prototype.setItem; \
                 Storage.prototype.setItem = function (...all) { writes += 1; return set.apply(this, all) };";
    of_editor(driver, count).await;
    let begun = Instant::now();
    type_in(driver, "# Of Dana, and a good many keys.").await?;
    wait_until_kept(driver, "dana").await;
    let writes = of_editor(driver, "return writes").await.as_u64().expect("a number");
    // A draft is kept 300 ms after the first key since it was kept last.
    let most = begun.elapsed().as_millis() / 300 + 1;
    assert!(u128::from(writes) <= most, "not at each of 32 keys: {writes} times, at most {most}");
    // Leaving the page keeps even what was typed a moment ago.
    type_in(driver, " At once.").await?;
    driver.refresh().await?;
    wait_for_text(driver, "Restored unsaved changes").await;
    let says = "return area.value.includes('keys. At once.')";
    assert_eq!(of_editor(driver, says).await, true);

    // Her session ends without a logout, and another person uses this browser.
    log_in(&browser, &server, "tom").await?;
    open(driver, &server).await?;
    assert_eq!(of_editor(driver, "return area.value.includes('Dana')").await, false);
    assert!(is_kept(driver, "dana").await && !is_kept(driver, "tom").await);

    // She finds her draft again, and logging out removes it.
    log_in(&browser, &server, "dana").await?;
    open(driver, &server).await?;
    wait_for_text(driver, "Restored unsaved changes").await;
    assert_eq!(of_editor(driver, says).await, true);
    locate(driver, By::Css(".who")).click().await?;
    button(driver, "Log out").click().await?;
    wait_for_text(driver, "1 draft. Log out again").await;
    button(driver, "Log out").click().await?;
    wait_for_title(driver, "Log in · Countersign").await;
    assert!(!is_kept(driver, "dana").await, "nothing of hers is left at this browser");
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn two_tabs_and_two_versions_do_not_overwrite_each_other() -> BrowserResult<()> {
    let server = server().await;
    let browser = Browser::start(1440, 900).await;
    let driver = &browser.driver;
    log_in(&browser, &server, "dana").await?;
    open(driver, &server).await?;
    let first = driver.window().await?;
    driver.switch_to_window(driver.new_tab().await?).await?;
    open(driver, &server).await?;
    place_caret(driver, "# Line 1.").await;
    type_in(driver, "# Of the second tab.").await?;
    wait_until_kept(driver, "dana").await;
    driver.switch_to_window(first).await?;
    eventually("the first tab shows it", async || {
        (of_editor(driver, "return area.value.includes('Of the second tab')").await == true).then_some(())
    })
    .await;

    // Meanwhile a new version is saved. The draft of the old version still exists, and the page says so.
    server.save(&flow().replace("Well?", "Well then?")).await;
    open(driver, &server).await?;
    wait_for_text(driver, "You have unsaved changes to version 1").await;
    assert_eq!(of_editor(driver, "return area.value.includes('Of the second tab')").await, false);
    place_caret(driver, "# Line 2.").await;
    type_in(driver, "# Of version 2.").await?;
    eventually("both are kept", async || {
        let kept = "return Object.keys(localStorage).filter(key => key.includes('/flow/ask/')).length";
        (of_editor(driver, kept).await == 2).then_some(())
    })
    .await;
    locate(driver, By::LinkText("version 1")).click().await?;
    eventually("what was typed for version 1 is shown", async || {
        (of_editor(driver, "return area.value.includes('Of the second tab')").await == true).then_some(())
    })
    .await;
    wait_for_text(driver, "You have unsaved changes to version 2").await;
    browser.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_in_older_text_do_not_replace_the_check_of_the_current_one() -> BrowserResult<()> {
    let server = server().await;
    let browser = Browser::start(1440, 900).await;
    let driver = &browser.driver;
    log_in(&browser, &server, "dana").await?;
    open(driver, &server).await?;
    let before = of_editor(driver, "return area.value").await;
    place_caret(driver, "# Line 1.").await;
    type_in(driver, "nodes: []").await?;
    let status = async || driver.find(By::Css(".definition-status")).await.ok()?.text().await.ok();
    eventually("it is wrong", async || status().await?.contains("error").then_some(())).await;
    browser.hold(Some("POST .*/flows/ask|PUT .*/flows/ask")).await?;
    press_with_control(driver, "s").await?;
    browser.held().await;
    eventually("what was typed is undone", async || {
        press_with_control(driver, "z").await.ok()?;
        (of_editor(driver, "return area.value").await == before).then_some(())
    })
    .await;
    eventually("it is right", async || (status().await? == "Valid").then_some(())).await;
    browser.release(true).await?;
    wait_for_text(driver, "Not saved: the flow has errors.").await;
    assert_eq!(status().await.as_deref(), Some("Valid"));
    browser.quit().await;
    Ok(())
}
