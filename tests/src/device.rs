//! The device that a browser emulates, and checks of the page on it with axe-core.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::json;

use crate::Browser;
use crate::pages::wait_until_drawn;

/// The width and height of a screen in CSS pixels, and whether its colours are dark.
pub type Screen = (u32, u32, bool);

/// A phone with dark colours, and a large screen with light ones.
pub const SCREENS: [Screen; 2] = [(390, 844, true), (1440, 900, false)];

/// The published script of axe-core.
const AXE: &str = include_str!("../fixtures/axe-core/axe.min.js");

/// A script that turns off all transitions and animations of a page.
const STILL: &str = "
    const still = new CSSStyleSheet();
    still.replaceSync('*, ::before, ::after { transition: none !important; animation: none !important }');
    document.adoptedStyleSheets = [still];";

/// A rule of axe-core that a page breaks.
#[derive(Debug, Deserialize)]
pub struct Breach {
    /// The id of the rule in axe-core, such as `color-contrast`.
    pub id: String,
    /// The requirement, as axe-core words it.
    pub help: String,
    /// The severity, such as `serious`. `None` if axe-core did not run.
    pub impact: Option<String>,
    /// The elements that break the rule: the selector of each, and how to fix it.
    pub places: Vec<(String, String)>,
}

/// Which rules of axe-core a page is checked with.
#[derive(Debug, Clone, Copy)]
pub enum Rules {
    /// All rules, for a page that was not checked before.
    All,
    /// Those that depend on colours, for a page that was checked with all rules in others.
    Colours,
}

impl Browser {
    /// Emulates a screen of this size, in CSS pixels.
    pub async fn screen(&self, width: u32, height: u32) {
        let screen = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500 });
        self.command("Emulation.setDeviceMetricsOverride", screen).await;
    }

    /// Emulates a system with dark or light colours, and waits until the page is drawn with them.
    pub async fn dark(&self, dark: bool) {
        let value = if dark { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": value }]);
        self.command("Emulation.setEmulatedMedia", json!({ "features": features })).await;
        wait_until_drawn(&self.driver).await.expect("the page draws");
    }

    /// Loads axe-core into every page that is opened from now on, and turns off transitions and animations: during a
    /// transition, axe-core would measure a mixture of old and new colours.
    pub async fn with_axe(&self) {
        let source = format!("{AXE}\n{STILL}");
        self.command("Page.enable", json!({})).await;
        self.command("Page.addScriptToEvaluateOnNewDocument", json!({ "source": source })).await;
    }

    /// Returns what axe-core finds on the page: breaches of WCAG 2.0 to 2.2, A and AA, and of its best practices.
    pub async fn breaches(&self, rules: Rules) -> Vec<Breach> {
        let script = "
            const [only, done] = arguments;
            axe.run(document, { resultTypes: ['violations'], ...only }).then(
                (found) => done(found.violations.map(({ id, help, impact, nodes }) => ({
                    id, help, impact,
                    places: nodes.map((node) => [node.target.join(' '), node.failureSummary]),
                }))),
                (error) => done([{ id: 'axe', help: String(error), impact: null, places: [] }]),
            );";
        let only = match rules {
            Rules::All => json!({}),
            // Their tag has rules of WCAG's level AAA, too.
            Rules::Colours => json!({ "runOnly": ["color-contrast", "link-in-text-block"] }),
        };
        let found = self.driver.execute_async(script, vec![only]).await.expect("axe-core runs");
        found.convert().expect("its answer")
    }

    /// Checks on each screen that axe-core finds nothing, and that the page is not larger than the screen. Takes a
    /// screenshot of each if `COUNTERSIGN_TEST_PICTURES` names a folder.
    pub async fn is_readable(&self, name: &str, screens: &[Screen]) {
        let pictures = std::env::var_os("COUNTERSIGN_TEST_PICTURES").map(PathBuf::from);
        for (width, height, dark) in screens.iter().copied() {
            self.screen(width, height).await;
            self.dark(dark).await;
            let colours = if dark { "dark" } else { "light" };
            self.picture_in(pictures.as_deref(), &format!("{name}-{width}-{colours}")).await;
            let breaches = self.breaches(Rules::All).await;
            assert!(breaches.is_empty(), "{name} at {width}: {breaches:#?}");
            // A page of the console never scrolls as a whole, only its parts do. Other pages may scroll vertically.
            let script = "
                const { scrollWidth, clientWidth, scrollHeight, clientHeight } = document.documentElement;
                return [scrollWidth - clientWidth, document.querySelector('.shell') ? scrollHeight - clientHeight : 0];";
            let over = self.driver.execute(script, Vec::new()).await.expect("the page answers");
            let over = over.convert::<(i64, i64)>().expect("two numbers");
            assert_eq!(over, (0, 0), "{name} is larger than {width} by {height}");
        }
    }

    /// Writes a screenshot of the window to `folder`, as `name.png`. Does nothing without a folder.
    pub async fn picture_in(&self, folder: Option<&Path>, name: &str) {
        if let Some(folder) = folder {
            std::fs::create_dir_all(folder).expect("a folder for pictures");
            self.driver.screenshot(&folder.join(name).with_extension("png")).await.expect("a picture");
        }
    }

    async fn command(&self, method: &str, parameters: serde_json::Value) {
        self.driver.cdp().send_raw(method, parameters).await.expect("the browser does it");
    }
}
