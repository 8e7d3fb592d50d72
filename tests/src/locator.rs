//! Locators: an element is found anew for each action on it, since a page may draw it again between the two. May import
//! `wait`.

use std::future::{Future, IntoFuture};
use std::pin::Pin;

use thirtyfour::TypingData;
use thirtyfour::error::{WebDriverErrorInner, WebDriverResult};
use thirtyfour::prelude::*;
use tokio::time::Instant;

use crate::wait::{DEADLINE, POLL};

/// How to find an element of a page. Awaiting it waits for the element itself.
#[derive(Debug, Clone)]
pub struct Locator<'a> {
    driver: &'a WebDriver,
    by: By,
    /// Whether elements that are not displayed, or disabled, are passed over.
    usable: bool,
}

/// The first element that `by` finds.
pub const fn locate(driver: &WebDriver, by: By) -> Locator<'_> {
    Locator { driver, by, usable: false }
}

impl Locator<'_> {
    /// Passes over elements that are not displayed or disabled.
    #[must_use]
    pub fn usable(self) -> Self {
        Self { usable: true, ..self }
    }

    /// Waits for the element, and clicks it.
    pub async fn click(&self) -> WebDriverResult<()> {
        self.act(async |element| element.click().await).await
    }

    /// Waits for the element, and types into it.
    pub async fn send_keys(&self, keys: impl Into<TypingData>) -> WebDriverResult<()> {
        let keys = keys.into().to_string();
        self.act(async |element| element.send_keys(&keys).await).await
    }

    /// Waits for the element, and returns its text as displayed.
    pub async fn text(&self) -> WebDriverResult<String> {
        self.act(async |element| element.text().await).await
    }

    /// Waits for the element, and removes what is typed in it.
    pub async fn clear(&self) -> WebDriverResult<()> {
        self.act(async |element| element.clear().await).await
    }

    /// Waits for the element, and returns what is typed in it.
    pub async fn value(&self) -> WebDriverResult<Option<String>> {
        self.act(async |element| element.value().await).await
    }

    /// Waits for the element, and returns one of its attributes.
    pub async fn attr(&self, name: &str) -> WebDriverResult<Option<String>> {
        self.act(async |element| element.attr(name).await).await
    }

    /// Finds the element and acts on it, again while the page draws it anew or something else is still in front of it.
    async fn act<T>(&self, act: impl AsyncFn(WebElement) -> WebDriverResult<T>) -> WebDriverResult<T> {
        let end = Instant::now() + DEADLINE;
        loop {
            let done = match self.find().await {
                Ok(element) => act(element).await,
                Err(error) => Err(error),
            };
            match done {
                Err(error) if may_pass(&error) && Instant::now() < end => tokio::time::sleep(POLL).await,
                done => return done,
            }
        }
    }

    async fn find(&self) -> WebDriverResult<WebElement> {
        let query = self.driver.query(self.by.clone()).wait(DEADLINE, POLL);
        if self.usable { query.and_displayed().and_enabled().first().await } else { query.first().await }
    }
}

impl<'a> IntoFuture for Locator<'a> {
    type Output = WebDriverResult<WebElement>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.act(async |element| Ok(element)).await })
    }
}

/// Whether an action may succeed later, once the page is drawn.
fn may_pass(error: &WebDriverError) -> bool {
    use WebDriverErrorInner::{ElementClickIntercepted, ElementNotInteractable, StaleElementReference};
    matches!(error.as_inner(), ElementClickIntercepted(_) | ElementNotInteractable(_) | StaleElementReference(_))
}
