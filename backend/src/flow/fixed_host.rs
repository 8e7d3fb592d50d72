//! Whether a URL template leads to one host, whatever values are inserted.

use std::net::IpAddr;
use std::sync::LazyLock;

use regex::Regex;
use reqwest::Url;

/// A tag that inserts a variable of `env`, which the server's operator sets.
static ENV: LazyLock<Regex> = LazyLock::new(|| regex(r"\{\{-?\s*env\.[A-Za-z_][A-Za-z0-9_]*\s*-?\}\}"));
/// The beginning of a URL up to the end of its host and port. Whatever parsers of URLs read differently (a missing
/// slash, a backslash, a user before the host) is not among it.
static UP_TO_PATH: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?i)^https?://(?:\[[0-9a-f:.]+\]|[^/?#\\@:\s\[\]]+)(?::[0-9]+)?[/?#]"));

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a sound pattern")
}

/// Whether the host of a URL template is written literally or comes from `env`: everything is, or everything up to the
/// end of the host before the first other tag.
pub fn has_fixed_host(url: &str) -> bool {
    let url = with_env(url);
    let literal = literal(&url);
    literal.len() == url.len() || UP_TO_PATH.is_match(literal)
}

/// Whether a URL template leads over unencrypted http to another machine.
pub fn is_unencrypted(url: &str) -> bool {
    let url = with_env(url);
    let literal = literal(&url);
    let Some(rest) = literal.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("http://")).map(|_| &literal[7..])
    else {
        return false;
    };
    let host = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    !Url::parse(&format!("http://{host}/")).is_ok_and(|url| is_loopback(&url))
}

/// Whether a URL leads to this machine.
pub fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    address.map_or(host == "localhost", |address| address.is_loopback())
}

/// Returns the host of a literal URL. `None` if it is not a valid http or https URL.
pub fn host_of(url: &str) -> Option<String> {
    let url = Url::parse(url.trim()).ok()?;
    matches!(url.scheme(), "http" | "https").then(|| url.host_str().map(str::to_owned)).flatten()
}

/// Returns a URL template with values in place of its `env` tags: of the scheme, of scheme and host, or of a part that is
/// a host as well as a port.
fn with_env(url: &str) -> String {
    let url = url.trim();
    let value = |found: &regex::Captures<'_>| {
        let Some(found) = found.get(0) else { return "" };
        match &url[found.end()..] {
            rest if found.start() == 0 && rest.starts_with("://") => "https",
            _ if found.start() == 0 => "https://1",
            _ => "1",
        }
    };
    ENV.replace_all(url, value).into_owned()
}

/// Returns the part of a template before its first tag.
fn literal(template: &str) -> &str {
    let tag = ["{{", "{%", "{#"].iter().filter_map(|tag| template.find(tag)).min();
    &template[..tag.unwrap_or(template.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_run_cannot_fill_in_is_fixed() {
        for fixed in [
            "https://shop.example/orders/{{ arguments.order }}",
            "https://shop.example",
            " https://shop.example?{{ x }}",
            "{{ env.API }}/orders/{{ x }}",
            "https://{{ env.HOST }}:8443/{% if x %}a{% endif %}",
            "{{ env.SCHEME }}://{{ env.HOST }}:{{ env.PORT }}/{{ x }}",
            "http://[::1]:8080/{{ x }}",
        ] {
            assert!(has_fixed_host(fixed), "{fixed}");
        }
        for open in [
            "{{ url }}",
            "https://{{ arguments.host }}/",
            "https://shop.example{{ x }}/",
            "https://{{ x }}@shop.example/",
            "{{ env.API }}{{ x }}/",
            "{{ env[x] }}/",
            "{% if x %}https://a.example/{% else %}https://b.example/{% endif %}",
            "{{ '/' ~ x }}",
            "https:/{{ x }}/",
            "https:{{ x }}/",
            "https:///{{ x }}/",
            r"https:\{{ x }}/",
            r"https://shop.example\{{ x }}/",
            "https://shop.example@{{ x }}/",
            "https://user@shop.example/{{ x }}",
            "{{ env.SCHEME }}:/{{ x }}/",
            "{{ 'https:/' }}/{{ x }}",
            "/{{ x }}/",
        ] {
            assert!(!has_fixed_host(open), "{open}");
        }
    }

    #[test]
    fn only_http_to_another_machine_is_unencrypted() {
        for unencrypted in ["http://shop.example/{{ x }}", " HTTP://{{ x }}/", "http://{{ env.HOST }}:8080/"] {
            assert!(is_unencrypted(unencrypted), "{unencrypted}");
        }
        for other in [
            "https://shop.example/",
            "http://localhost:8080/",
            "http://127.0.0.1/{{ x }}",
            "http://[::1]:1/",
            "{{ env.API }}/",
        ] {
            assert!(!is_unencrypted(other), "{other}");
        }
    }
}
