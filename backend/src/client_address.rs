//! The origin of a request: the peer of its connection, or the client that trusted proxies report. All counts by
//! address use it.

use std::convert::Infallible;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;

use axum::extract::{ConnectInfo, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, header};
use ipnet::IpNet;
use serde_with::DeserializeFromStr;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The address of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClientAddress(IpAddr);

/// The unit by which clients are counted: an IPv4 address, or the /64 network of an IPv6 address, since one customer
/// has all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Network([u8; 8]);

impl ClientAddress {
    /// The client of requests that come over no connection, such as those of tests.
    pub const UNKNOWN: Self = Self(IpAddr::V4(Ipv4Addr::UNSPECIFIED));

    /// Returns the client behind a connection from `peer` that sent these headers.
    ///
    /// Each trusted proxy appends the address that called it, so the list is read from its end, as long as its entries
    /// were written by trusted proxies. Most proxies write only one of the two headers and pass the other on unchanged.
    /// If both are present and name different clients, neither is believed.
    pub fn of(peer: IpAddr, headers: &HeaderMap, proxies: &TrustedProxies) -> Self {
        let peer = peer.to_canonical();
        if !proxies.contains(peer) {
            return Self(peer);
        }
        let values = |name: &HeaderName| headers.get_all(name).iter().rev().map(|value| value.to_str().unwrap_or(""));
        let by_forwarded = headers.contains_key(header::FORWARDED).then(|| {
            let elements = values(&header::FORWARDED).flat_map(|value| rsplit_unquoted(value, ','));
            proxies.client(peer, elements.map(forwarded_for))
        });
        let by_x_forwarded_for = headers
            .contains_key(&X_FORWARDED_FOR)
            .then(|| proxies.client(peer, values(&X_FORWARDED_FOR).flat_map(|value| value.rsplit(',')).map(node)));
        Self(match (by_forwarded, by_x_forwarded_for) {
            (Some(one), Some(other)) if one != other => peer,
            (Some(client), _) | (None, Some(client)) => client,
            (None, None) => peer,
        })
    }

    /// Returns the client of a request, or [`Self::UNKNOWN`] if the request came over no connection.
    pub fn of_request(request: &Request, proxies: &TrustedProxies) -> Self {
        let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
        peer.map_or(Self::UNKNOWN, |ConnectInfo(peer)| Self::of(peer.ip(), request.headers(), proxies))
    }

    /// Whether the client is on this machine.
    pub fn is_loopback(self) -> bool {
        self.0.is_loopback()
    }

    /// Returns the network by which the client is counted.
    pub fn network(self) -> Network {
        let mut network = [0; 8];
        match self.0 {
            IpAddr::V4(address) => network[..4].copy_from_slice(&address.octets()),
            IpAddr::V6(address) => network.copy_from_slice(&address.octets()[..8]),
        }
        Network(network)
    }
}

impl Network {
    /// Returns the /48 network of an IPv6 network: the most that a customer commonly has (RFC 6177). An IPv4 address is
    /// its own site.
    pub fn site(self) -> Self {
        let mut site = self.0;
        site[6..].fill(0);
        Self(site)
    }
}

impl From<IpAddr> for ClientAddress {
    fn from(address: IpAddr) -> Self {
        Self(address.to_canonical())
    }
}

impl fmt::Display for ClientAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Extracts the address that was determined when the request came in; [`ClientAddress::UNKNOWN`] if none was.
impl<S: Send + Sync> FromRequestParts<S> for ClientAddress {
    type Rejection = Infallible;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().copied().unwrap_or(Self::UNKNOWN))
    }
}

/// The proxies whose reports about their clients are believed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedProxies(Arc<[IpNet]>);

impl TrustedProxies {
    /// Whether this is the address of a trusted proxy.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// Returns the first address among `peer` and `hops`, from the nearest on, that is not trusted. A hop without an
    /// address ends the walk at the proxy that reported it.
    fn client(&self, peer: IpAddr, hops: impl Iterator<Item = Option<IpAddr>>) -> IpAddr {
        let mut client = peer;
        for hop in hops {
            match hop {
                Some(hop) if self.contains(client) => client = hop,
                _ => break,
            }
        }
        client
    }
}

impl FromIterator<TrustedProxy> for TrustedProxies {
    fn from_iter<T: IntoIterator<Item = TrustedProxy>>(proxies: T) -> Self {
        Self(proxies.into_iter().map(|TrustedProxy(network)| network).collect())
    }
}

/// An address or a network, such as `10.0.0.7` or `10.0.0.0/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, DeserializeFromStr)]
pub struct TrustedProxy(IpNet);

impl FromStr for TrustedProxy {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let network = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        network.map(Self).map_err(|_| format!("`{text}` is not an address or a network such as 10.0.0.7 or 10.0.0.0/8"))
    }
}

/// Parses the `for` parameter of one element of `Forwarded` (RFC 7239, section 4).
fn forwarded_for(element: &str) -> Option<IpAddr> {
    rsplit_unquoted(element, ';').find_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        name.eq_ignore_ascii_case("for").then(|| node(value.trim_matches('"')))?
    })
}

/// Parses the address of a node, with or without a port and with or without brackets around IPv6.
fn node(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse().or_else(|_| text.parse().map(|address: SocketAddr| address.ip()));
    address.ok().map(|address: IpAddr| address.to_canonical())
}

/// Splits from the end, but not within quotes. A trusted proxy wrote the end, so nothing that a client wrote before it,
/// such as an open quote, changes how the end is read.
fn rsplit_unquoted(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let mut quoted = false;
        for (at, char) in text.char_indices().rev() {
            let before = &text[..at];
            let escaped = || before.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1;
            if char == '"' && !escaped() {
                quoted = !quoted;
            } else if char == separator && !quoted {
                rest = Some(before);
                return Some(&text[at + separator.len_utf8()..]);
            }
        }
        rest = None;
        Some(text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(peer: &str, headers: &[(&HeaderName, &str)]) -> String {
        let proxies = ["10.0.0.0/8", "2001:db8:aaaa::/48", "127.0.0.1"].map(|proxy| proxy.parse().unwrap());
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        ClientAddress::of(peer.parse().unwrap(), &map, &proxies.into_iter().collect()).to_string()
    }

    #[test]
    fn only_trusted_proxies_are_believed_and_the_nearest_untrusted_hop_is_the_client() {
        for (peer, reported, expected) in [
            ("203.0.113.9", "198.51.100.1", "203.0.113.9"),
            ("10.0.0.1", "198.51.100.1", "198.51.100.1"),
            ("::ffff:10.0.0.1", "198.51.100.1", "198.51.100.1"),
            ("10.0.0.1", "1.2.3.4, 198.51.100.1", "198.51.100.1"),
            ("10.0.0.1", "1.2.3.4, 198.51.100.1, 10.9.9.9", "198.51.100.1"),
            ("10.0.0.1", "10.1.1.1, 10.9.9.9", "10.1.1.1"),
            ("10.0.0.1", "1.2.3.4, unknown, 10.9.9.9", "10.9.9.9"),
            ("10.0.0.1", "1.2.3.4, unknown", "10.0.0.1"),
            ("10.0.0.1", "", "10.0.0.1"),
            ("127.0.0.1", "198.51.100.1:4711", "198.51.100.1"),
            ("2001:db8:aaaa::1", "2001:db8:1:2::3", "2001:db8:1:2::3"),
            ("2001:db8:aaaa::1", "[2001:db8:1:2::3]:80", "2001:db8:1:2::3"),
        ] {
            assert_eq!(client(peer, &[(&X_FORWARDED_FOR, reported)]), expected, "{peer}: {reported}");
        }
        let lines = [(&X_FORWARDED_FOR, "1.2.3.4"), (&X_FORWARDED_FOR, "198.51.100.1, 10.9.9.9")];
        assert_eq!(client("10.0.0.1", &lines), "198.51.100.1");
    }

    #[test]
    fn the_standard_header_is_read_from_its_end() {
        for (reported, expected) in [
            ("for=198.51.100.1;proto=https;by=10.0.0.1", "198.51.100.1"),
            ("for=1.2.3.4, FOR=\"198.51.100.1:80\"", "198.51.100.1"),
            ("proto=http;For=\"[2001:db8:1:2::3]:80\"", "2001:db8:1:2::3"),
            ("for=\"1.2.3.4, for=198.51.100.1", "198.51.100.1"),
            (r#"for=198.51.100.1;host="x\", for=1.2.3.4;a=\"y""#, "198.51.100.1"),
            ("for=1.2.3.4, for=_hidden", "10.0.0.1"),
            ("for=1.2.3.4, proto=https", "10.0.0.1"),
        ] {
            assert_eq!(client("10.0.0.1", &[(&header::FORWARDED, reported)]), expected, "{reported}");
        }
    }

    #[test]
    fn two_headers_that_disagree_are_not_believed() {
        let both = |forwarded| client("10.0.0.1", &[(&header::FORWARDED, forwarded), (&X_FORWARDED_FOR, "1.2.3.4")]);
        assert_eq!(both("for=1.2.3.4"), "1.2.3.4");
        assert_eq!(both("for=198.51.100.1"), "10.0.0.1");
    }

    #[test]
    fn the_hosts_of_one_ipv6_network_count_as_one() {
        let network = |address: &str| ClientAddress::from(address.parse::<IpAddr>().unwrap()).network();
        assert_eq!(network("2001:db8:1:2::3"), network("2001:db8:1:2:ffff::1"));
        assert_ne!(network("2001:db8:1:2::3"), network("2001:db8:1:3::3"));
        assert_eq!(network("::ffff:10.0.0.1"), network("10.0.0.1"));
        assert_ne!(network("10.0.0.2"), network("10.0.0.1"));
        assert_eq!(network("2001:db8:1:2::3").site(), network("2001:db8:1:ffff::1").site());
        assert_ne!(network("2001:db8:1:2::3").site(), network("2001:db8:2:2::3").site());
        assert_ne!(network("10.0.0.2").site(), network("10.0.0.1").site());
    }
}
