//! Whether a URL template leads to one host, whatever values are inserted.

use super::template::Templates;

/// Whether the host of a URL template is written literally or comes from `env`, which the server's operator sets.
pub fn has_fixed_host(url: &str) -> bool {
    let host = up_to_host(url.trim());
    let mut templates = Templates::default();
    templates.add(host).is_ok() && templates.names(host).iter().all(|name| name == "env")
}

/// Returns the host of a literal URL. `None` if it is not a valid http or https URL.
pub fn host_of(url: &str) -> Option<String> {
    let url = reqwest::Url::parse(url.trim()).ok()?;
    matches!(url.scheme(), "http" | "https").then(|| url.host_str().map(str::to_owned)).flatten()
}

/// Returns the part of a URL template that determines the host: up to the first `/`, `?` or `#` outside of template
/// tags.
fn up_to_host(url: &str) -> &str {
    let (mut at, mut inside, mut scheme) = (0, None::<&str>, false);
    while let Some(rest) = url.get(at..).filter(|rest| !rest.is_empty()) {
        if let Some(end) = inside {
            let closes = rest.starts_with(end);
            inside = inside.filter(|_| !closes);
            at += if closes { end.len() } else { rest.chars().next().map_or(1, char::len_utf8) };
            continue;
        }
        inside =
            [("{{", "}}"), ("{%", "%}"), ("{#", "#}")].iter().find(|(begin, _)| rest.starts_with(begin)).map(|m| m.1);
        if inside.is_some() {
            at += 2;
        } else if !scheme && rest.starts_with("://") {
            (scheme, at) = (true, at + 3);
        } else if rest.starts_with(['/', '?', '#', '\\']) {
            return &url[..at];
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    url
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
        ] {
            assert!(!has_fixed_host(open), "{open}");
        }
    }
}
