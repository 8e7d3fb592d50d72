//! Responses held back from a page: a test lets each of them arrive late, or get lost.

use serde_json::json;

use crate::wait::eventually;
use crate::{Browser, BrowserResult};

/// A script that wraps `fetch`: responses to requests that match the regular expression `holds` in the session storage,
/// such as `^POST .*/comments$`, wait in `window.held`.
const HOLD: &str = "
    if (!window.held) {
        window.held = [];
        const fetched = window.fetch;
        window.fetch = async (request, ...more) => {
            const answer = await fetched.call(window, request, ...more);
            const holds = sessionStorage.getItem('holds');
            const { pathname } = new URL(request.url ?? request, location);
            if (holds && `${request.method ?? 'GET'} ${pathname}`.match(holds)) {
                const arrives = await new Promise((release) => window.held.push(release));
                if (!arrives) throw new TypeError('the answer was lost');
            }
            return answer;
        };
    }
";

impl Browser {
    /// Runs a script in every page that is opened from now on, before the console starts.
    pub async fn before_each_page(&self, script: &str) -> BrowserResult<()> {
        self.driver.cdp().send_raw("Page.addScriptToEvaluateOnNewDocument", json!({ "source": script })).await?;
        Ok(())
    }

    /// Holds back the responses to requests whose method and path match a regular expression, such as
    /// `POST .*/comments`, on this page and on those opened from now on. The server has carried out these requests.
    /// `None` ends this.
    pub async fn hold(&self, requests: Option<&str>) -> BrowserResult<()> {
        self.before_each_page(HOLD).await?;
        let hold = format!("{HOLD} sessionStorage.setItem('holds', arguments[0])");
        self.driver
            .execute(hold, vec![json!(requests.map(|requests| format!("^{requests}$")).unwrap_or_default())])
            .await?;
        Ok(())
    }

    /// Waits until a response is held back.
    pub async fn held(&self) {
        eventually("an answer is held back", async || {
            let held = self.driver.execute("return held.length > 0", Vec::new()).await.ok()?;
            held.convert::<bool>().ok()?.then_some(())
        })
        .await;
    }

    /// Waits for a response that is held back, and lets the oldest one arrive, or get lost.
    pub async fn release(&self, arrives: bool) -> BrowserResult<()> {
        self.held().await;
        self.driver.execute("held.shift()(arguments[0])", vec![json!(arrives)]).await?;
        Ok(())
    }
}
