//! What kind of device a browser pretends to be, and what axe-core says of the page that it shows.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::json;

use crate::Browser;

/// A screen in CSS pixels, and whether its colours are dark.
pub type Screen = (u32, u32, bool);

/// A phone in the dark, and a large screen in the light.
pub const SCREENS: [Screen; 2] = [(390, 844, true), (1440, 900, false)];

/// axe-core, as it is published.
const AXE: &str = include_str!("../fixtures/axe-core/axe.min.js");

/// A page on which nothing moves.
const STILL: &str = "
    const still = new CSSStyleSheet();
    still.replaceSync('*, ::before, ::after { transition: none !important; animation: none !important }');
    document.adoptedStyleSheets = [still];";

/// A rule of axe-core that a page breaks.
#[derive(Debug, Deserialize)]
pub struct Breach {
    /// The id of the rule in axe-core, such as `color-contrast`.
    pub id: String,
    /// What it wants.
    pub help: String,
    /// How bad it is.
    pub impact: Option<String>,
    /// The elements, each by selector and what is wrong with it.
    pub places: Vec<(String, String)>,
}

impl Browser {
    /// A screen of this size, in CSS pixels.
    pub async fn screen(&self, width: u32, height: u32) {
        let screen = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500 });
        self.command("Emulation.setDeviceMetricsOverride", screen).await;
    }

    /// Whether the system's colours are dark.
    pub async fn dark(&self, dark: bool) {
        let value = if dark { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": value }]);
        self.command("Emulation.setEmulatedMedia", json!({ "features": features })).await;
        let drawn = "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done(true)))";
        self.driver.execute_async(drawn, Vec::new()).await.expect("the page draws");
    }

    /// Every page that is opened from now on has axe-core in it, and nothing on it moves: what is looked at in a transition
    /// has some of the old colours and some of the new.
    pub async fn with_axe(&self) {
        let source = format!("{AXE}\n{STILL}");
        self.command("Page.enable", json!({})).await;
        self.command("Page.addScriptToEvaluateOnNewDocument", json!({ "source": source })).await;
    }

    /// What axe-core finds on the page: WCAG 2.0 to 2.2, A and AA, and its best practices.
    pub async fn breaches(&self) -> Vec<Breach> {
        let script = "
            const done = arguments[0];
            axe.run(document, { resultTypes: ['violations'] }).then(
                (found) => done(found.violations.map(({ id, help, impact, nodes }) => ({
                    id, help, impact,
                    places: nodes.map((node) => [node.target.join(' '), node.failureSummary]),
                }))),
                (error) => done([{ id: 'axe', help: String(error), impact: null, places: [] }]),
            );";
        let found = self.driver.execute_async(script, Vec::new()).await.expect("axe-core runs");
        found.convert().expect("its answer")
    }

    /// Checks that anybody can read the page on these screens: axe-core finds nothing, and nothing is larger than
    /// the screen. Takes a picture of each where `COUNTERSIGN_TEST_PICTURES` names a folder.
    pub async fn is_readable(&self, name: &str, screens: &[Screen]) {
        let pictures = std::env::var_os("COUNTERSIGN_TEST_PICTURES").map(PathBuf::from);
        for (width, height, dark) in screens.iter().copied() {
            self.screen(width, height).await;
            self.dark(dark).await;
            let colours = if dark { "dark" } else { "light" };
            self.picture_in(pictures.as_deref(), &format!("{name}-{width}-{colours}")).await;
            let breaches = self.breaches().await;
            assert!(breaches.is_empty(), "{name} at {width}: {breaches:#?}");
            // A page of the console scrolls in its parts.
            let script = "
                const { scrollWidth, clientWidth, scrollHeight, clientHeight } = document.documentElement;
                return [scrollWidth - clientWidth, document.querySelector('.shell') ? scrollHeight - clientHeight : 0];";
            let over = self.driver.execute(script, Vec::new()).await.expect("the page answers");
            let over = over.convert::<(i64, i64)>().expect("two numbers");
            assert_eq!(over, (0, 0), "{name} is larger than {width} by {height}");
        }
    }

    /// A picture of the window in a folder, where there is one.
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
