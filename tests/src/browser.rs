//! A headless Chromium, driven through chromedriver. Both are killed with the test.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use thirtyfour::prelude::*;
use thirtyfour::{BrowserLogEntry, LoggingPrefsLogLevel};

use crate::process::Process;
use crate::transport::install_tls;
use crate::wait::eventually;

/// The result of one step in a browser, such as a click.
pub type BrowserResult<T> = Result<T, BrowserError>;

/// The failure of a step in a browser. Its location and cause are written to standard error when it is made: the test
/// returns it, and the [`Browser`], dropped without `quit`, panics before the test framework can show it.
#[derive(Debug)]
pub struct BrowserError(#[expect(dead_code, reason = "read through `Debug`")] WebDriverError);

impl From<WebDriverError> for BrowserError {
    #[track_caller]
    #[expect(clippy::print_stderr, reason = "the output of a test that fails")]
    fn from(error: WebDriverError) -> Self {
        eprintln!("{}: {error}", std::panic::Location::caller());
        Self(error)
    }
}

/// A browser with one window.
#[derive(Debug)]
pub struct Browser {
    /// The WebDriver session of the window.
    pub driver: WebDriver,
    // Dropped after the driver: chromedriver and the browser share a process group, which is killed whole.
    _chromedriver: Process,
    profile: TempDir,
    /// Whether [`Browser::quit`] has read the errors in the browser's console.
    looked: AtomicBool,
}

/// Starts chromedriver, and returns its port. A port chosen here could be taken by another test before chromedriver has
/// it, so chromedriver chooses one. It takes a free one of IPv4, and ends if somebody has the same one of IPv6: then
/// another is started.
async fn chromedriver() -> (Process, u16) {
    let says = tempfile::NamedTempFile::new().expect("a temporary file");
    let start = || {
        let mut command = Command::new("chromedriver");
        command.arg("--port=0").stdout(says.reopen().expect("the file")).stderr(Stdio::null());
        Process::spawn(command)
    };
    let mut chromedriver = start();
    let port = eventually("chromedriver has a port", async || {
        let said = std::fs::read_to_string(says.path()).ok()?;
        if said.contains("port not available") && chromedriver.child.try_wait().ok()?.is_some() {
            says.as_file().set_len(0).ok()?;
            chromedriver = start();
            return None;
        }
        said.split_once("started successfully on port ")?.1.split_once('.')?.0.parse::<u16>().ok()
    })
    .await;
    (chromedriver, port)
}

impl Browser {
    /// Starts chromedriver and a browser with a window of this size, in CSS pixels.
    pub async fn start(width: u32, height: u32) -> Self {
        install_tls();
        let profile = tempfile::Builder::new().prefix("countersign-browser-").tempdir().expect("a temporary folder");
        let (chromedriver, port) = chromedriver().await;
        let mut capabilities = DesiredCapabilities::chrome();
        for argument in [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            // Chromium prepares the popup of its address bar in a page of its own, which takes as much time to load as
            // the console does.
            "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup",
            &format!("--window-size={width},{height}"),
            &format!("--user-data-dir={}", profile.path().display()),
        ] {
            capabilities.add_arg(argument).expect("an argument");
        }
        capabilities.set_browser_log_level(LoggingPrefsLogLevel::Severe).expect("a level");
        let driver = WebDriver::new(format!("http://127.0.0.1:{port}"), capabilities).await.expect("Chromium starts");
        driver.set_page_load_timeout(Duration::from_secs(30)).await.expect("a timeout can be set");
        Self { driver, _chromedriver: chromedriver, profile, looked: AtomicBool::new(false) }
    }

    /// The folder of the browser's profile, which no other browser shares.
    pub fn profile(&self) -> &std::path::Path {
        self.profile.path()
    }

    /// Returns the errors, panics included, that the page wrote to the browser's console since the last call, without
    /// those that the browser itself reports about the network, such as a refused login or a killed server.
    pub async fn errors(&self) -> Vec<String> {
        let log = self.driver.browser_log().await.expect("the browser's log");
        let of_network = |entry: &BrowserLogEntry| {
            entry.source.as_deref() == Some("network") || entry.message.contains("WebSocket connection to ")
        };
        log.into_iter()
            .filter(|entry| entry.level == "SEVERE" && !of_network(entry))
            .map(|entry| entry.message)
            .collect()
    }

    /// Closes the browser. Panics if the page has written errors to the browser's console.
    pub async fn quit(self) {
        let errors = self.errors().await;
        self.looked.store(true, Ordering::Relaxed);
        assert!(errors.is_empty(), "errors in the browser's console: {errors:#?}");
    }

    /// Writes a screenshot of the window to `path`, as PNG.
    pub async fn picture(&self, path: &std::path::Path) {
        self.driver.screenshot(path).await.expect("a picture");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let looked = self.looked.load(Ordering::Relaxed) || std::thread::panicking();
        assert!(looked, "a test ends with `browser.quit().await`, which looks for errors in the browser's console");
    }
}
