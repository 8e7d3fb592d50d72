//! Keeps requests of this server out of the internal network: a flow, a model that fills in a URL, or a webhook reaches
//! only public addresses, and those that the server's settings allow by name.
//!
//! Names are checked where they are resolved, so that a name cannot change its address between the check and the
//! connection; addresses written in a URL skip the resolver and are checked before the request.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, Url};

use crate::http_client::{self, USER_AGENT};

/// The request would have left the public internet.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{0}` is not on the public internet; if it may be reached, add it to the allowed hosts in the server's settings"
)]
pub struct AddressRefused(String);

/// HTTP clients for addresses that come from flows, models and webhooks. Clones share their connections.
#[derive(Clone)]
pub struct Clients {
    /// The client for hosts that are allowed by name.
    allowed_client: Client,
    /// The client for all other hosts, which reaches public addresses only.
    public_client: Client,
    allowed: Allowed,
}

impl Clients {
    /// Builds clients that also reach these private hosts (`host` or `host:port`).
    pub fn new(allowed_hosts: &[String]) -> reqwest::Result<Self> {
        // No proxy, since it would resolve names by itself.
        let builder =
            || http_client::builder().no_proxy().connect_timeout(Duration::from_secs(10)).user_agent(USER_AGENT);
        Ok(Self {
            allowed_client: builder().build()?,
            public_client: builder().dns_resolver(PublicOnly).build()?,
            allowed: Allowed::new(allowed_hosts),
        })
    }

    /// Whether the settings allow the URL's host by name.
    pub fn allows(&self, url: &Url) -> bool {
        self.allowed.contains(url)
    }

    /// Returns the client for this URL. Fails if the URL contains an address that is not public.
    pub fn of(&self, url: &Url) -> Result<&Client, AddressRefused> {
        if self.allowed.contains(url) {
            return Ok(&self.allowed_client);
        }
        check_literal(url)?;
        Ok(&self.public_client)
    }
}

/// Returns why a request got no complete answer: a refusal by this module, or the innermost error. The outer error
/// would name the URL, which may hold a secret.
pub fn cause(error: &reqwest::Error) -> Cause {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    let mut innermost = String::new();
    while let Some(current) = cause {
        if let Some(refused) = current.downcast_ref::<AddressRefused>() {
            return Cause::Refused(refused.to_string());
        }
        cause = current.source();
        if cause.is_none() {
            innermost = without_url(current);
        }
    }
    Cause::Failed(innermost)
}

/// Returns the message of an error without the URL that those of the HTTP client end with.
pub fn without_url(error: &(dyn std::error::Error + 'static)) -> String {
    let message = error.to_string();
    match error.downcast_ref::<reqwest::Error>().and_then(reqwest::Error::url) {
        Some(url) => message.replace(&format!(" for url ({url})"), ""),
        None => message,
    }
}

/// The reason why a request got no complete answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The address may not be reached; a retry does not help.
    Refused(String),
    /// Anything else, as the message of the innermost error, which does not name the URL.
    Failed(String),
}

/// The hosts that the settings allow.
#[derive(Debug, Clone)]
pub struct Allowed(Vec<String>);

impl Allowed {
    /// Reads the hosts, as `host` or `host:port`.
    pub fn new(hosts: &[String]) -> Self {
        Self(hosts.iter().map(|host| host.trim().to_ascii_lowercase()).collect())
    }

    /// Whether this URL's host, or host and port, is allowed by name.
    pub fn contains(&self, url: &Url) -> bool {
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else { return false };
        let with_port = format!("{host}:{port}");
        self.0.iter().any(|allowed| *allowed == host || *allowed == with_port)
    }
}

/// Refuses a URL that contains an address which is not public.
fn check_literal(url: &Url) -> Result<(), AddressRefused> {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    match address {
        Ok(address) if !is_public(address) => Err(AddressRefused(host.to_owned())),
        _ => Ok(()),
    }
}

/// Resolves names to public addresses only.
#[derive(Debug, Clone, Copy)]
struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public: Vec<SocketAddr> = found.filter(|address| is_public(address.ip())).collect();
            if public.is_empty() {
                return Err(AddressRefused(name.as_str().to_owned()).into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Whether an address is outside the special-purpose ranges that IANA lists for IPv4.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = a == 0
        || a >= 240
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (18..20).contains(&b));
    !special
}

/// Whether an address is global unicast (2000::/3) outside its special ranges. An address that wraps an IPv4 address is
/// judged by that one.
fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(inner) = wrapped_v4(address) {
        return is_public_v4(inner);
    }
    let [first, second, ..] = address.segments();
    let global = first & 0xe000 == 0x2000;
    let teredo_and_other_protocols = first == 0x2001 && second < 0x0200;
    let documentation = (first == 0x2001 && second == 0x0db8) || first == 0x3fff;
    global && !teredo_and_other_protocols && !documentation
}

/// Returns the IPv4 address in an IPv4-mapped, NAT64 or 6to4 address.
fn wrapped_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let of = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            Some(of(high, low))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_reached() {
        let refused = [
            "0.0.0.0",
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "192.0.0.8",
            "198.18.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "2002:7f00:1::",
            "2001::1",
            "2001:db8::1",
            "::127.0.0.1",
            "fec0::1",
        ];
        for address in refused {
            assert!(!is_public(address.parse().unwrap()), "{address} must be refused");
        }
        for address in ["1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"] {
            assert!(is_public(address.parse().unwrap()), "{address} must be allowed");
        }
    }

    #[test]
    fn an_address_in_any_spelling_is_checked_before_the_request() {
        for url in
            ["http://127.0.0.1/", "http://127.1/", "http://0x7f000001/", "http://2130706433/", "http://[::1]:80/"]
        {
            assert!(check_literal(&url.parse().unwrap()).is_err(), "{url} must be refused");
        }
        assert!(check_literal(&"https://1.1.1.1/".parse().unwrap()).is_ok());
    }

    #[test]
    fn a_host_is_allowed_with_all_ports_or_with_one() {
        let allowed = Allowed::new(&["localhost:8080".to_owned(), "Intranet".to_owned()]);
        let contains = |url: &str| allowed.contains(&url.parse().unwrap());
        assert!(contains("http://localhost:8080/x"));
        assert!(!contains("http://localhost:9090/x"));
        assert!(contains("https://intranet/x"));
        assert!(contains("http://intranet:81/x"));
    }
}
