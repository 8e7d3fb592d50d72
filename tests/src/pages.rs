//! The console's pages, as a person uses them: by what they read and by role, not by how the page is built.

use thirtyfour::prelude::*;

use crate::server::PASSWORD;
use crate::wait::{DEADLINE, eventually};

const POLL: std::time::Duration = std::time::Duration::from_millis(50);

/// The login page.
#[derive(Debug)]
pub struct Login<'a>(pub &'a WebDriver);

impl Login<'_> {
    /// Opens the console at `base`, and logs in.
    pub async fn log_in(&self, base: &str, username: &str) -> WebDriverResult<()> {
        self.0.goto(format!("{base}/login")).await?;
        self.fill_in(username).await
    }

    /// Logs in where the page knows already who that is.
    pub async fn log_in_again(&self) -> WebDriverResult<()> {
        field(self.0, "password").await?.send_keys(PASSWORD).await?;
        button(self.0, "Log in").await?.click().await
    }

    /// Logs in where the page is shown.
    pub async fn fill_in(&self, username: &str) -> WebDriverResult<()> {
        field(self.0, "username").await?.send_keys(username).await?;
        field(self.0, "password").await?.send_keys(PASSWORD).await?;
        button(self.0, "Log in").await?.click().await
    }
}

/// The inbox: the list, and the review that is open.
#[derive(Debug)]
pub struct Inbox<'a>(pub &'a WebDriver);

impl Inbox<'_> {
    /// Waits until a card with this text is there, and opens it.
    pub async fn open_card(&self, text: &str) -> WebDriverResult<()> {
        let card = format!("//a[contains(@href, '/reviews/')][contains(., {})]", quoted(text));
        self.0.query(By::XPath(card)).wait(DEADLINE, POLL).first().await?.click().await
    }

    /// Waits until no card with this text is there.
    pub async fn wait_gone(&self, text: &str) -> WebDriverResult<()> {
        let card = format!("//a[contains(@href, '/reviews/')][contains(., {})]", quoted(text));
        self.0.query(By::XPath(card)).wait(DEADLINE, POLL).wait_until_gone().await
    }

    /// Presses a button of the open review.
    pub async fn press(&self, label: &str) -> WebDriverResult<()> {
        button(self.0, label).await?.click().await
    }

    /// How many reviews the page says are waiting, from its title: `(3) Inbox`.
    pub async fn badge(&self) -> WebDriverResult<Option<u64>> {
        let title = self.0.title().await?;
        Ok(title.strip_prefix('(').and_then(|rest| rest.split_once(')')).and_then(|(count, _)| count.parse().ok()))
    }
}

/// Waits until the page shows `text`.
pub async fn wait_for_text(driver: &WebDriver, text: &str) {
    eventually(&format!("the page shows `{text}`"), async || {
        let body = driver.find(By::Tag("body")).await.ok()?.text().await.ok()?;
        body.contains(text).then_some(())
    })
    .await;
}

/// Waits until the tab has this title.
pub async fn wait_for_title(driver: &WebDriver, title: &str) {
    eventually(&format!("the tab is called `{title}`"), async || (driver.title().await.ok()? == title).then_some(()))
        .await;
}

/// A link of the rail by its name.
pub async fn link(driver: &WebDriver, name: &str) -> WebDriverResult<WebElement> {
    let path = format!("//nav[@aria-label='Main']/a[@title={}]", quoted(name));
    driver.query(By::XPath(path)).wait(DEADLINE, POLL).and_displayed().first().await
}

/// A field by its name, its label, or what it asks for.
pub async fn field(driver: &WebDriver, name: &str) -> WebDriverResult<WebElement> {
    let quoted = quoted(name);
    let path = format!(
        "//*[self::input or self::textarea or self::select][@name={quoted} or @aria-label={quoted} or \
         @id=//label[contains(translate(., 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz'), {quoted})]/@for \
         or ancestor::label[contains(translate(., 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz'), {quoted})]]"
    );
    driver.query(By::XPath(path)).wait(DEADLINE, POLL).and_displayed().first().await
}

/// A button by what it says.
pub async fn button(driver: &WebDriver, label: &str) -> WebDriverResult<WebElement> {
    let path = format!("//*[self::button or @role='button'][contains(normalize-space(.), {})]", quoted(label));
    driver.query(By::XPath(path)).wait(DEADLINE, POLL).and_displayed().and_enabled().first().await
}

/// A text as an XPath string.
fn quoted(text: &str) -> String {
    if text.contains('\'') { format!("\"{text}\"") } else { format!("'{text}'") }
}
