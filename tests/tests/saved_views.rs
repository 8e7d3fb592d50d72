//! Saved views: filters of the inbox that a person keeps under names, the same in every browser.

use serde_json::json;
use shared::inbox::ReviewQuery;
use shared::saved_view::{SavedView, Views};
use tests::locator::locate;
use tests::pages::{Login, button, button_starting, field, wait_for_text};
use tests::reviewing::{NOTE, launch, press_key, server};
use tests::{Browser, BrowserResult, eventually};
use thirtyfour::prelude::*;

const SCREENS: [tests::device::Screen; 6] =
    [(390, 844, false), (390, 844, true), (1024, 768, false), (1024, 768, true), (1440, 900, false), (1440, 900, true)];

async fn wait_for_address(driver: &WebDriver, wanted: &str) {
    eventually(&format!("the address ends with {wanted}"), async || {
        driver.current_url().await.ok()?.as_str().ends_with(wanted).then_some(())
    })
    .await;
}

/// Waits until these are the views, the chosen one with a star.
async fn wait_for_views(driver: &WebDriver, wanted: &[&str]) {
    let script = "return [...document.querySelectorAll('.views .chip')]
        .map(view => view.textContent + (view.ariaCurrent === 'true' ? '*' : ''))";
    eventually(&format!("the views are {wanted:?}"), async || {
        let views = driver.execute(script, Vec::new()).await.ok()?.convert::<Vec<String>>().ok()?;
        (views == wanted).then_some(())
    })
    .await;
}

async fn logged_in(base: &str) -> BrowserResult<Browser> {
    let browser = Browser::start(1440, 900).await;
    browser.with_axe().await;
    Login(&browser.driver).log_in(base, "ana").await?;
    wait_for_text(&browser.driver, "pending").await;
    Ok(browser)
}

/// Saves the current filter under a name.
async fn save(driver: &WebDriver, name: &str, default: bool) -> BrowserResult<()> {
    button(driver, "Save view…").click().await?;
    field(driver, "name").send_keys(name).await?;
    if default {
        field(driver, "opens with").click().await?;
    }
    Ok(button(driver, "Save view").click().await?)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_is_saved_once_and_found_in_every_browser() -> BrowserResult<()> {
    let server = server(&[NOTE]).await;
    let ana = server.person("ana", &["reviewer"]).await;
    launch(&server, "note", json!({})).await;
    let first = logged_in(&server.base).await?;
    let driver = &first.driver;
    assert!(driver.find_all(By::XPath("//button[contains(., 'Save view')]")).await?.is_empty(), "no filter is set");
    button_starting(driver, "Critical").click().await?;
    save(driver, "Grave ones", false).await?;
    wait_for_views(driver, &["Grave ones*"]).await;
    button_starting(driver, "Critical").click().await?;
    wait_for_views(driver, &["Grave ones"]).await;
    field(driver, "Search the inbox").send_keys("send").await?;
    wait_for_address(driver, "/inbox?q=send").await;
    // A name is given once.
    button(driver, "Save view…").click().await?;
    field(driver, "name").send_keys("grave ones").await?;
    button(driver, "Save view").click().await?;
    wait_for_text(driver, "Another view is called “grave ones”.").await;
    first.is_readable("view-save", &SCREENS).await;
    first.screen(1440, 900).await;
    button(driver, "Cancel").click().await?;
    save(driver, "To send", true).await?;
    wait_for_views(driver, &["Grave ones", "To send*"]).await;
    first.is_readable("views", &SCREENS).await;
    first.screen(1440, 900).await;

    // Another browser opens the inbox with the default, and only then.
    let second = logged_in(&server.base).await?;
    wait_for_address(&second.driver, "/inbox?q=send").await;
    wait_for_views(&second.driver, &["Grave ones", "To send*"]).await;
    // Once it knows the views, it does not wait for them.
    second.hold(Some("GET .*/me/views")).await?;
    second.driver.goto(format!("{}/inbox", server.base)).await?;
    wait_for_address(&second.driver, "/inbox?q=send").await;
    second.release(true).await?;
    second.hold(None).await?;
    wait_for_views(&second.driver, &["Grave ones", "To send*"]).await;
    button_starting(&second.driver, "All").click().await?;
    wait_for_address(&second.driver, "/inbox").await;
    wait_for_views(&second.driver, &["Grave ones", "To send"]).await;
    button(&second.driver, "Grave ones").click().await?;
    wait_for_address(&second.driver, "/inbox?severity=critical").await;
    wait_for_text(&second.driver, "No matches").await;

    // There, they are put in another order and one is renamed.
    let manage = async |driver: &WebDriver| locate(driver, By::Css("[aria-label='Manage views']")).click().await;
    manage(&second.driver).await?;
    locate(&second.driver, By::Css("[aria-label='Move up “To send”']")).click().await?;
    let name = locate(&second.driver, By::Css(".view-rows li:first-child input"));
    assert_eq!(name.value().await?.as_deref(), Some("To send"));
    name.send_keys(" out").await?;
    second.is_readable("view-manage", &SCREENS).await;
    second.screen(1440, 900).await;
    button(&second.driver, "Save").click().await?;
    wait_for_views(&second.driver, &["To send out", "Grave ones*"]).await;
    let kept = ana.saved_views().await.expect("her views");
    assert_eq!(
        kept.views.iter().map(|view| (view.name.as_str(), view.default)).collect::<Vec<_>>(),
        [("To send out", true), ("Grave ones", false)]
    );

    // The first browser does not write over that: it shows it, and then removes one.
    manage(driver).await?;
    locate(driver, By::Css("[aria-label='Remove “Grave ones”']")).click().await?;
    button(driver, "Save").click().await?;
    wait_for_text(driver, "changed in another window").await;
    locate(driver, By::Css("[aria-label='Remove “Grave ones”']")).click().await?;
    button(driver, "Save").click().await?;
    wait_for_views(driver, &["To send out*"]).await;
    assert_eq!(ana.saved_views().await.expect("her views").views.len(), 1);
    press_key(driver, Key::Escape).await?;

    // If only the answer is lost, the view is saved.
    button_starting(driver, "Critical").click().await?;
    first.hold(Some("PUT .*/me/views")).await?;
    save(driver, "Critical ones", false).await?;
    first.release(false).await?;
    eventually("it is saved", async || (ana.saved_views().await.ok()?.views.len() == 2).then_some(())).await;
    wait_for_text(driver, "Critical ones").await;
    eventually("the form is closed", async || {
        driver.find_all(By::Css("dialog[open]")).await.ok()?.is_empty().then_some(())
    })
    .await;
    first.quit().await;
    second.quit().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_of_what_is_gone_finds_nothing() -> BrowserResult<()> {
    let server = server(&[NOTE]).await;
    let ana = server.person("ana", &["reviewer"]).await;
    launch(&server, "note", json!({})).await;
    let filter =
        ReviewQuery { flow: Some("gone".to_owned()), role: Some("nobody".to_owned()), ..ReviewQuery::default() };
    let view = SavedView { name: "Of old".to_owned(), filter, default: true };
    let mut kept = ana.save_views(&Views { revision: 0, views: vec![view] }).await.expect("they are saved");
    let browser = logged_in(&server.base).await?;
    wait_for_views(&browser.driver, &["Of old*"]).await;
    wait_for_text(&browser.driver, "No matches").await;
    button(&browser.driver, "Show all").click().await?;
    wait_for_text(&browser.driver, "Send this?").await;

    // The page opens with it, and Back leads to the page before.
    locate(&browser.driver, By::Css("a[href='/runs']")).click().await?;
    wait_for_address(&browser.driver, "/runs").await;
    locate(&browser.driver, By::Css("a[href='/inbox']")).click().await?;
    wait_for_address(&browser.driver, "/inbox?role=nobody&flow=gone").await;
    wait_for_text(&browser.driver, "No matches").await;
    browser.driver.back().await?;
    wait_for_address(&browser.driver, "/runs").await;

    // Another browser has changed that.
    kept.views[0].default = false;
    ana.save_views(&kept).await.expect("they are saved");
    browser.driver.goto(format!("{}/inbox", server.base)).await?;
    wait_for_text(&browser.driver, "Send this?").await;
    wait_for_address(&browser.driver, "/inbox").await;
    browser.quit().await;
    Ok(())
}
