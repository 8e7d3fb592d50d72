//! HTTP tools against real sockets; MCP servers in a module of their own.

pub(crate) mod mcp;
mod mcp_content;
mod mcp_http;
mod mcp_limits;
mod mcp_start;

use serde_json::json;
use shared::JsonMap;
use shared::id::RunId;
use wiremock::matchers::{body_json, header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::*;

fn map(value: Value) -> JsonMap {
    serde_json::from_value(value).unwrap()
}

fn request(tool: Value, arguments: Value) -> ToolRequest {
    let scope = json!({ "env": { "REGION": "north" } });
    let request = crate::engine::request_of(&tool, &arguments, &scope).unwrap();
    ToolRequest {
        run: RunId(uuid::Uuid::nil()),
        node: "publish".parse().unwrap(),
        name: "publish".to_owned(),
        tool: serde_json::from_value(tool).unwrap(),
        arguments: map(arguments),
        request,
        idempotency_key: "run-1/publish/1/0".to_owned(),
    }
}

fn tools(allowed: &[&str]) -> Tools {
    let variables =
        [("COUNTERSIGN_SECRET_TOKEN", "s3cr3t/value\n"), ("COUNTERSIGN_SECRET_PIN", "4815162342"), ("PATH", "/bin")];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Tools::new(ToolOptions {
        allowed_hosts: allowed.iter().map(|host| (*host).to_owned()).collect(),
        mcp: BTreeMap::new(),
        secrets: Secrets::from_env(variables, &BTreeMap::new()),
    })
    .unwrap()
}

/// Reserves a port on which nobody listens, as long as the socket exists.
fn closed_port() -> tokio::net::TcpSocket {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    socket
}

#[tokio::test]
async fn an_http_tool_sends_what_its_templates_say_and_masks_secrets_that_come_back() {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .and(path("/north/a%20b"))
        .and(header("authorization", "Bearer s3cr3t/value"))
        .and(header("idempotency-key", "run-1/publish/1/0"))
        .and(header("content-type", "application/json"))
        .and(body_json(json!({ "title": "a b", "count": 3 })))
        .respond_with(ResponseTemplate::new(200).set_body_json(
            json!({ "id": 7, "echo": ["Bearer s3cr3t/value", 4_815_162_342_u64, "{\"key\":\"s3cr3t\\/value\"}"] }),
        ))
        .expect(1)
        .mount(&server)
        .await;
    let tool = json!({ "http": {
        "url": format!("{}/{{{{ env.REGION }}}}/{{{{ arguments.title }}}}", server.uri()),
        "headers": { "authorization": "Bearer {{ secret.TOKEN }}" },
    } });
    let result = tools(&["127.0.0.1"]).call(&request(tool, json!({ "title": "a b", "count": 3 }))).await.unwrap();
    assert_eq!(result, json!({ "id": 7, "echo": ["Bearer ***", "***", "{\"key\":\"***\"}"] }));
}

#[tokio::test]
async fn a_body_template_keeps_its_types_and_what_it_inserts_is_no_template() {
    let server = MockServer::start().await;
    Mock::given(method("PUT"))
        .and(body_json(json!({
            "n": 3, "t": "no 3", "as_is": "{{ secret.TOKEN }} ‹secret TOKEN›", "own": ["s3cr3t/value, s3cr3t%2Fvalue"],
        })))
        .respond_with(ResponseTemplate::new(201).set_body_string("12"))
        .mount(&server)
        .await;
    let tool = json!({ "http": {
        "method": "put",
        "url": server.uri(),
        "body": {
            "n": "{{ arguments.count }}", "t": "no {{ arguments.count }}", "as_is": "{{ arguments.text }}",
            "own": ["{{ secret.TOKEN }}, {{ secret.TOKEN | urlencode }}"],
        },
    } });
    let arguments = json!({ "count": 3, "text": "{{ secret.TOKEN }} ‹secret TOKEN›" });
    let result = tools(&["127.0.0.1"]).call(&request(tool, arguments)).await.unwrap();
    assert_eq!(result, json!("12"));
}

#[tokio::test]
async fn a_refusal_tells_its_status_and_never_a_secret() {
    let statuses = [
        ("GET", 302, false, false),
        // Servers answer so when they have made what was posted.
        ("POST", 303, false, true),
        // These ask for the same request elsewhere, or report that nothing has changed.
        ("POST", 304, false, false),
        ("POST", 307, false, false),
        ("POST", 308, false, false),
        ("GET", 404, false, false),
        ("GET", 408, true, false),
        ("GET", 429, true, false),
        ("GET", 503, true, true),
    ];
    for (method, status, retryable, uncertain) in statuses {
        let server = MockServer::start().await;
        let answer = ResponseTemplate::new(status)
            .insert_header("location", "https://ana:pa55@127.0.0.1/elsewhere/s3cr3t%2Fvalue?token=t0ken")
            .insert_header("retry-after", "7")
            .set_body_string(format!("no s3cr3t/value s3cr3t%2Fvalue {}", "x".repeat(5000)));
        Mock::given(path("/s3cr3t/value")).respond_with(answer).expect(1).mount(&server).await;
        let tool = json!({ "http": { "method": method, "url": format!("{}/{{{{ secret.TOKEN }}}}", server.uri()) } });
        let failure = tools(&["127.0.0.1"]).call(&request(tool, json!({}))).await.unwrap_err();
        assert_eq!((failure.retryable, failure.uncertain), (retryable, uncertain), "{failure:?}");
        assert!(failure.message.starts_with(&format!("HTTP {status}")), "{failure:?}");
        let is_redirect = (300..400).contains(&status);
        assert_eq!(
            failure.message.contains("redirects to https://127.0.0.1/elsewhere/***?…"),
            is_redirect,
            "{failure:?}"
        );
        assert_eq!(failure.retry_after, Some(Span::secs(7)));
        let is_told = |secret: &&str| failure.message.contains(*secret);
        assert!(failure.message.len() < 600 && !["s3cr3t", "pa55", "t0ken"].iter().any(is_told), "{failure:?}");
    }
}

#[tokio::test]
async fn the_inner_network_is_out_of_reach_by_address_and_by_name() {
    let server = MockServer::start().await;
    Mock::given(method("POST")).respond_with(ResponseTemplate::new(200)).expect(0).mount(&server).await;
    let port = server.address().port();
    for url in [server.uri(), format!("http://localhost:{port}/"), format!("http://[::ffff:127.0.0.1]:{port}/")] {
        let failure = tools(&[]).call(&request(json!({ "http": { "url": url } }), json!({}))).await.unwrap_err();
        assert!(!failure.retryable && failure.message.contains("public internet"), "{failure:?}");
    }
}

#[tokio::test]
async fn a_host_that_the_settings_allow_is_reached() {
    let server = MockServer::start().await;
    Mock::given(method("POST")).respond_with(ResponseTemplate::new(204)).expect(1).mount(&server).await;
    let port = server.address().port();
    let url = format!("http://127.0.0.1:{port}/");
    let tools = tools(&[&format!("127.0.0.1:{port}")]);
    assert_eq!(tools.call(&request(json!({ "http": { "url": url } }), json!({}))).await.unwrap(), Value::Null);
}

/// A failure that is retried repeats the call. If the first one took effect, the effect would be repeated.
#[tokio::test]
async fn an_answer_without_end_is_cut_off_and_is_no_failure_of_what_was_done() {
    let server = MockServer::start().await;
    let answer = ResponseTemplate::new(200).set_body_bytes(vec![b'x'; MAX_RESULT + 1]);
    Mock::given(path("/")).respond_with(answer).mount(&server).await;
    for (method, uncertain) in [("GET", false), ("POST", true)] {
        let tool = json!({ "http": { "method": method, "url": server.uri() } });
        let failure = tools(&["127.0.0.1"]).call(&request(tool, json!({}))).await.unwrap_err();
        assert_eq!((failure.uncertain, failure.retryable), (uncertain, false), "{failure:?}");
        assert!(failure.message.contains("larger"), "{failure:?}");
    }
}

#[tokio::test]
async fn a_slow_tool_is_given_up_after_its_timeout() {
    let server = MockServer::start().await;
    let answer = ResponseTemplate::new(200).set_delay(Duration::from_secs(30));
    Mock::given(method("POST")).respond_with(answer).mount(&server).await;
    let tool = json!({ "http": { "url": server.uri() }, "timeout": "100ms" });
    let failure = tools(&["127.0.0.1"]).call(&request(tool, json!({}))).await.unwrap_err();
    assert!(failure.retryable && failure.uncertain && failure.message.contains("timeout"), "{failure:?}");
}

#[tokio::test]
async fn what_was_never_sent_is_certain_and_what_broke_off_is_not() {
    let closed = closed_port();
    let nobody = json!({ "http": { "url": format!("http://{}/", closed.local_addr().unwrap()) } });
    let failure = tools(&["127.0.0.1"]).call(&request(nobody, json!({}))).await.unwrap_err();
    assert!(failure.retryable && !failure.uncertain, "{failure:?}");

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let hangs_up = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        tokio::io::AsyncReadExt::read(&mut socket, &mut [0; 64]).await.unwrap();
    });
    let tool = json!({ "http": { "url": format!("http://{address}/") } });
    let failure = tools(&["127.0.0.1"]).call(&request(tool, json!({}))).await.unwrap_err();
    assert!(failure.retryable && failure.uncertain, "{failure:?}");
    hangs_up.await.unwrap();

    // The status alone says whether the call took effect, even if the body is cut off.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let refuses = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        tokio::io::AsyncReadExt::read(&mut socket, &mut [0; 4096]).await.unwrap();
        let half = b"HTTP/1.1 404 Not Found\r\ncontent-length: 100\r\n\r\nno such";
        tokio::io::AsyncWriteExt::write_all(&mut socket, half).await.unwrap();
    });
    let tool = json!({ "http": { "url": format!("http://{address}/") } });
    let failure = tools(&["127.0.0.1"]).call(&request(tool, json!({}))).await.unwrap_err();
    assert!(!failure.retryable && !failure.uncertain, "{failure:?}");
    assert_eq!(failure.message, "HTTP 404 Not Found: no such");
    refuses.await.unwrap();
}

#[tokio::test]
async fn a_secret_is_sent_to_its_hosts_only_and_an_unbound_one_to_hosts_that_the_flow_writes_out() {
    let server = MockServer::start().await;
    Mock::given(method("POST")).respond_with(ResponseTemplate::new(200)).mount(&server).await;
    let port = server.address().port();
    let tools = |hosts: Option<&str>| {
        let mut variables = vec![("COUNTERSIGN_SECRET_TOKEN".to_owned(), "s3cr3t/value".to_owned())];
        variables.extend(hosts.map(|hosts| ("COUNTERSIGN_HOSTS_TOKEN".to_owned(), hosts.to_owned())));
        let secrets = Secrets::from_env(variables, &BTreeMap::new());
        let allowed_hosts = vec!["127.0.0.1".to_owned()];
        Tools::new(ToolOptions { allowed_hosts, secrets, ..ToolOptions::default() }).unwrap()
    };
    let with_secret = |url: String| json!({ "http": { "url": url, "headers": { "key": "{{ secret.TOKEN }}" } } });
    let written = with_secret(format!("http://127.0.0.1:{port}/"));
    let filled_in = with_secret(format!("http://{{{{ arguments.host }}}}:{port}/"));
    let here = format!("127.0.0.1:{port}");
    for (hosts, tool, is_sent) in [
        (None, &written, true),
        (None, &filled_in, false),
        (Some(&*here), &filled_in, true),
        (Some(&*format!("pay.example, {here}")), &written, true),
        (Some("127.0.0.1"), &written, false),
        (Some("127.0.0.1:1"), &written, false),
        (Some("pay.example"), &written, false),
        (Some(""), &written, false),
    ] {
        let sent = tools(hosts).call(&request(tool.clone(), json!({ "host": "127.0.0.1" }))).await;
        let message = sent.map_err(|failure| failure.message);
        assert_eq!(message.is_ok(), is_sent, "{hosts:?} {tool}: {message:?}");
        let said = message.err().unwrap_or_default();
        assert!(is_sent || said.contains("`TOKEN` may not be sent to") && !said.contains("s3cr3t"), "{said}");
    }
    assert_eq!(server.received_requests().await.unwrap().len(), 3);
}

#[tokio::test]
async fn a_secret_is_sent_unencrypted_only_to_this_machine_and_to_hosts_that_the_settings_allow() {
    let secrets = Secrets::from_env(
        [
            ("COUNTERSIGN_SECRET_TOKEN".to_owned(), "s3cr3t/value".to_owned()),
            ("COUNTERSIGN_HOSTS_TOKEN".to_owned(), "pay.example, 127.0.0.1, localhost".to_owned()),
        ],
        &BTreeMap::new(),
    );
    for (url, is_internal, is_sent) in [
        ("https://pay.example/", false, true),
        ("https://pay.example:443/", false, true),
        ("https://pay.example:8443/", false, false),
        ("http://pay.example/", false, false),
        ("http://pay.example/", true, true),
        ("http://127.0.0.1/", false, true),
        ("http://localhost/", false, true),
    ] {
        for is_fixed in [false, true] {
            let checked = secrets.check_host("TOKEN", &url.parse().unwrap(), is_fixed, is_internal);
            assert_eq!(checked.is_ok(), is_sent, "{url} {checked:?}");
        }
    }
    let tool = json!({ "http": { "url": "http://pay.example/", "headers": { "key": "{{ secret.TOKEN }}" } } });
    let tools = Tools::new(ToolOptions { secrets, ..ToolOptions::default() }).unwrap();
    let said = tools.call(&request(tool, json!({}))).await.unwrap_err().message;
    assert!(said.contains("use https") && said.contains("allowed_hosts = [\"pay.example:80\"]"), "{said}");
}

#[test]
fn a_stream_shows_no_secret_however_it_is_cut() {
    let variables = [("COUNTERSIGN_SECRET_TOKEN".to_owned(), "s3cr3t/value".to_owned())];
    let secrets = Secrets::from_env(variables, &BTreeMap::new());
    let text = format!("{}s3cr3t/value, {} s3cr3t%2Fvalue {}", "x".repeat(70), "é ".repeat(60), "y".repeat(9));
    for size in 1..80 {
        let mut stream = secrets.stream();
        let pieces: Vec<char> = text.chars().collect();
        let mut shown: String =
            pieces.chunks(size).map(|piece| stream.push(&piece.iter().collect::<String>())).collect();
        shown.push_str(&stream.finish());
        assert_eq!(shown, secrets.mask(&text), "pieces of {size}");
    }
    assert_eq!(secrets.mask(&text).matches("***").count(), 2);
}

#[tokio::test]
async fn a_secret_leads_nowhere_else_and_a_missing_one_is_named() {
    let hostile = |value: &str| {
        let variables = [("COUNTERSIGN_SECRET_TOKEN".to_owned(), value.to_owned())];
        Tools::new(ToolOptions { secrets: Secrets::from_env(variables, &BTreeMap::new()), ..ToolOptions::default() })
            .unwrap()
    };
    let tool = json!({ "http": { "url": "https://user:{{ secret.TOKEN }}@shop.example/" } });
    let failure = hostile("x@evil.example/").call(&request(tool, json!({}))).await.unwrap_err();
    assert!(failure.message.contains("host or port") && !failure.message.contains("evil"), "{failure:?}");
    let tool = json!({ "http": { "url": "https://shop.example/", "headers": { "key": "{{ secret.OTHER }}" } } });
    let failure = hostile("x").call(&request(tool, json!({}))).await.unwrap_err();
    assert!(failure.message.contains("COUNTERSIGN_SECRET_OTHER") && !failure.uncertain, "{failure:?}");
}

#[tokio::test]
async fn the_demo_publisher_says_where() {
    let request =
        request(json!({ "builtin": "demo_publish" }), json!({ "title": "The Ocean, again!", "text": "one two" }));
    let result = tools(&[]).call(&request).await.unwrap();
    assert_eq!(result, json!({ "url": "https://example.org/the-ocean-again", "words": 2 }));
}
