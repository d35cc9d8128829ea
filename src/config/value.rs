//! What a setting may be, wherever it comes from: a flag, the environment or a file.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use cloud::join::token::{TTL_MAX, TTL_MIN};
use jiff::SignedDuration;
use wire::join::NodeName;

/// Why a value is refused, and what would do instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Wrong(String);

impl Wrong {
    fn duration(text: &str, bounds: &str) -> Self {
        Self(format!("{text:?} is not a duration from {bounds}"))
    }
}

/// Where the API listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listen(pub(crate) SocketAddr);

impl FromStr for Listen {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        text.parse()
            .map(Listen)
            .map_err(|_| Wrong(why_not_an_address(text)))
    }
}

fn why_not_an_address(text: &str) -> String {
    const GOOD: &str = "write IP:PORT, such as 127.0.0.1:6443 or [::1]:6443";
    if text.contains(char::is_whitespace) {
        return format!("there is a space in {text:?}; {GOOD}");
    }
    match text.parse() {
        Ok(IpAddr::V4(_)) => return format!("{text} has no port; {GOOD}"),
        Ok(IpAddr::V6(_)) => return format!("an IPv6 address stands in brackets; {GOOD}"),
        Err(_) => {}
    }
    let Some((host, port)) = text.rsplit_once(':') else {
        return format!("{text:?} is not an address with a port; {GOOD}");
    };
    if port.parse::<u16>().is_err() {
        return format!("{port:?} is not a port from 1 to 65535; {GOOD}");
    }
    if host.contains(':') {
        return format!("an IPv6 address stands in brackets; {GOOD}");
    }
    format!("{host:?} is not an IP address; {GOOD}")
}

/// Where a node's API listens, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LocalApi(pub(crate) Option<SocketAddr>);

impl FromStr for LocalApi {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        match text {
            "off" => Ok(Self(None)),
            text => text.parse().map(|Listen(address)| Self(Some(address))),
        }
    }
}

/// A further name or address of the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServerName {
    Ip(IpAddr),
    Dns(String),
}

impl FromStr for ServerName {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        if let Ok(ip) = text.parse() {
            return Ok(ServerName::Ip(ip));
        }
        let label = |label: &str| {
            let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
            (1..=63).contains(&label.len())
                && label.bytes().all(|byte| inner(byte) || byte == b'-')
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        match text.len() <= 253 && text.split('.').all(label) {
            true => Ok(ServerName::Dns(text.to_owned())),
            false => Err(Wrong(format!(
                "{text:?} is neither an IP address nor a DNS name in lower case"
            ))),
        }
    }
}

/// How many connections may be open at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Connections(pub(crate) u32);

impl FromStr for Connections {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        match text.parse() {
            Ok(count @ 1..=1_000_000) => Ok(Connections(count)),
            _ => Err(Wrong(format!("{text:?} is not a number from 1 to 1000000"))),
        }
    }
}

/// How many deliveries may be on their way to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window(pub(crate) usize);

impl FromStr for Window {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        const MOST: usize = wire::inbox::WAITING_MAX;
        match text.parse() {
            Ok(count @ 1..=MOST) => Ok(Window(count)),
            _ => Err(Wrong(format!("{text:?} is not a number from 1 to {MOST}"))),
        }
    }
}

/// How many nodes an embedded cluster has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Nodes(pub(crate) u32);

impl FromStr for Nodes {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        match text.parse() {
            Ok(count @ 0..=100) => Ok(Nodes(count)),
            _ => Err(Wrong(format!("{text:?} is not a number from 0 to 100"))),
        }
    }
}

/// How long open requests have to end when the program stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grace(pub(crate) Duration);

impl FromStr for Grace {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        let most = SignedDuration::from_mins(10);
        let within = duration_within(text, SignedDuration::ZERO..=most);
        within
            .map(Grace)
            .ok_or_else(|| Wrong::duration(text, "0s to 10m, such as 1m30s"))
    }
}

fn duration_within(text: &str, bounds: RangeInclusive<SignedDuration>) -> Option<Duration> {
    let duration: SignedDuration = text.parse().ok()?;
    let within = bounds.contains(&duration);
    Duration::try_from(duration).ok().filter(|_| within)
}

/// How long changes are kept for those who ask what came after a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct History(pub(crate) Duration);

impl FromStr for History {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        let bounds = SignedDuration::from_secs(1)..=SignedDuration::from_hours(24);
        duration_within(text, bounds)
            .map(History)
            .ok_or_else(|| Wrong::duration(text, "1s to 24h, such as 30m"))
    }
}

/// How long a join token is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ttl(pub(crate) SignedDuration);

impl FromStr for Ttl {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        let bounds = TTL_MIN..=TTL_MAX;
        let ttl: Option<SignedDuration> = text.parse().ok();
        ttl.filter(|ttl| bounds.contains(ttl))
            .map(Ttl)
            .ok_or_else(|| Wrong::duration(text, "1m to 720h, such as 24h"))
    }
}

/// The name of a pool: it has the form of a node's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PoolName(pub(crate) String);

impl FromStr for PoolName {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        match text.len() <= 63 && text.parse::<NodeName>().is_ok() {
            true => Ok(PoolName(text.to_owned())),
            false => Err(Wrong(format!(
                "{text:?} is not the name of a pool: lower-case letters, digits, '-' and '.', at \
                 most 63"
            ))),
        }
    }
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

impl FromStr for LogFormat {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        match text {
            "text" => Ok(LogFormat::Text),
            "json" => Ok(LogFormat::Json),
            _ => Err(Wrong(format!("{text:?} is neither text nor json"))),
        }
    }
}

/// The least important log lines that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl FromStr for LogLevel {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        match text {
            "error" => Ok(LogLevel::Error),
            "warn" => Ok(LogLevel::Warn),
            "info" => Ok(LogLevel::Info),
            "debug" => Ok(LogLevel::Debug),
            "trace" => Ok(LogLevel::Trace),
            _ => Err(Wrong(format!(
                "{text:?} is not error, warn, info, debug or trace"
            ))),
        }
    }
}

/// A folder, as written in a file.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn into_path(self) -> PathBuf {
        self.0
    }
}

impl FromStr for Folder {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        match text {
            "" => Err(Wrong("a directory has a name".to_owned())),
            // A shell expands this on the command line; in a file nobody does.
            _ if text.starts_with('~') => {
                Err(Wrong(format!("{text:?}: write the home directory in full")))
            }
            _ => Ok(Folder(text.into())),
        }
    }
}

/// Something that is on or off, as written in a file.
pub(crate) enum Switch {
    On,
    Off,
}

impl From<Switch> for bool {
    fn from(switch: Switch) -> Self {
        matches!(switch, Switch::On)
    }
}

impl FromStr for Switch {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        match text {
            "true" => Ok(Switch::On),
            "false" => Ok(Switch::Off),
            _ => Err(Wrong(format!("{text:?} is neither true nor false"))),
        }
    }
}
