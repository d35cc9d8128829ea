//! Network namespaces in which packets are lost and repeated. It takes root, and `ip` and `tc`.
//!
//! An agent's namespace reaches the machine through a third one, where packets pass from one device
//! to the other by filters: one may drop them, another may send them twice.

use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};

/// The way from an agent's namespace to the machine.
pub(crate) struct Net {
    number: u8,
}

/// How packets fare, in percent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fate {
    pub(crate) lost: u32,
    pub(crate) twice: u32,
    /// Packets with more bytes vanish, and nobody is told.
    pub(crate) bytes_max: Option<u32>,
}

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Toward {
    Hub,
    Agent,
}

/// Nets of this test program so far.
static NETS: AtomicU8 = AtomicU8::new(0);

impl Net {
    /// Makes one in which every packet passes.
    pub(crate) fn new() -> Self {
        let net = Self {
            number: NETS.fetch_add(1, Ordering::Relaxed),
        };
        let (agent, between) = (net.namespace(), net.between());
        let [outer, hub_side, agent_side, inner] = net.devices();
        for name in [&agent, &between] {
            run("ip", &["netns", "add", name]);
            // A node has a loopback, where its own API listens.
            run("ip", &["-n", name, "link", "set", "lo", "up"]);
        }
        let veth = |one: &str, other: &str, space: &str| {
            let words = ["link", "add", one, "type", "veth", "peer", "name", other];
            [&words[..], &["netns", space]].concat().join(" ")
        };
        run_line("ip", &veth(&outer, &hub_side, &between));
        let inside = veth(&agent_side, &inner, &agent);
        run_line("ip", &format!("-n {between} {inside}"));
        let hub = net.hub();
        run_line("ip", &format!("addr add {hub}/30 dev {outer}"));
        let own = Ipv4Addr::from(u32::from(hub) + 1);
        run_line("ip", &format!("-n {agent} addr add {own}/30 dev {inner}"));
        run_line("ip", &format!("link set {outer} up"));
        run_line("ip", &format!("-n {agent} link set {inner} up"));
        // What passes the filters is what is on the wire, and not many packets in one.
        run_line("ip", &format!("link set {outer} gso_max_segs 1"));
        run_line("ip", &format!("-n {agent} link set {inner} gso_max_segs 1"));
        for device in [&hub_side, &agent_side] {
            run_line("ip", &format!("-n {between} link set {device} up"));
            run_line("tc", &format!("-n {between} qdisc add dev {device} clsact"));
        }
        net.all(Fate::default());
        net
    }

    /// The machine's address, where the hub listens.
    pub(crate) fn hub(&self) -> Ipv4Addr {
        // Sixteen nets for each of 65,536 processes fill the range.
        let process = std::process::id() % 65_536;
        let first = u32::from(Ipv4Addr::new(10, 192, 0, 0)) + process * 64;
        Ipv4Addr::from(first + u32::from(self.number % 16) * 4 + 1)
    }

    /// What stands before a command that is to run in the agent's namespace. `ip netns exec` would
    /// give it mounts of its own, too, and keep disks of other tests from being taken away.
    pub(crate) fn inside(&self) -> [String; 2] {
        let name = self.namespace();
        ["nsenter".to_owned(), format!("--net=/run/netns/{name}")]
    }

    /// How packets fare from now on, both ways.
    pub(crate) fn all(&self, fate: Fate) {
        self.set(Toward::Hub, fate);
        self.set(Toward::Agent, fate);
    }

    /// How packets fare from now on, one way.
    pub(crate) fn set(&self, toward: Toward, fate: Fate) {
        let [_, hub_side, agent_side, _] = self.devices();
        let (from, to) = match toward {
            Toward::Hub => (agent_side, hub_side),
            Toward::Agent => (hub_side, agent_side),
        };
        let between = self.between();
        // Of what is put in place one after the other, the loss comes first: nothing is lost in
        // between.
        let filter = |rank: u32, rest: &str| {
            let place = format!("-n {between} filter replace dev {from} ingress");
            let words = format!("{place} protocol all pref {rank} handle 1 bpf bytecode");
            let mut words: Vec<&str> = words.split(' ').collect();
            let (program, rest) = rest.split_once('|').expect("a program and what follows");
            words.push(program);
            words.extend(rest.split(' '));
            run("tc", &words);
        };
        let on = format!("action mirred egress redirect dev {to}");
        let copy = format!("action mirred egress mirror dev {to} pipe {on}");
        let most = fate.bytes_max.map_or(u32::MAX, |most| most + ETHERNET);
        filter(1, &format!("{}|direct-action", larger(most, DROP, GO_ON)));
        filter(
            2,
            &format!("{}|direct-action", chance(fate.lost, DROP, GO_ON)),
        );
        filter(3, &format!("{}|{copy}", chance(fate.twice, GO_ON, 0)));
        filter(4, &format!("1,6 0 0 {GO_ON}|{on}"));
    }

    /// The agent's machine gets another address, and the one that it had is gone.
    pub(crate) fn move_agent(&self) {
        let [outer, _, _, inner] = self.devices();
        let (agent, hub) = (self.namespace(), self.hub());
        let before = Ipv4Addr::from(u32::from(hub) + 1);
        // A range beside that of the nets.
        let now = Ipv4Addr::from(u32::from(before) - (64 << 16));
        run_line("ip", &format!("route add {now}/32 dev {outer}"));
        run_line("ip", &format!("-n {agent} addr add {now}/32 dev {inner}"));
        run_line(
            "ip",
            &format!("-n {agent} addr del {before}/30 dev {inner}"),
        );
        let route = format!("route add {hub}/32 dev {inner} src {now}");
        run_line("ip", &format!("-n {agent} {route}"));
    }

    /// Packets that the agent had to send again so far.
    pub(crate) fn sent_again(&self) -> u64 {
        let name = self.namespace();
        let words = ["netns", "exec", &name, "cat", "/proc/net/snmp"];
        let said = Command::new("ip").args(words).output().unwrap();
        let text = String::from_utf8(said.stdout).unwrap();
        let mut tcp = text.lines().filter(|line| line.starts_with("Tcp:"));
        let (names, counts) = (tcp.next().unwrap(), tcp.next().unwrap());
        let mut all = names.split(' ').zip(counts.split(' '));
        let found = all.find(|(name, _)| *name == "RetransSegs").unwrap();
        found.1.parse().unwrap()
    }

    fn namespace(&self) -> String {
        format!("hf-{}-{}", std::process::id(), self.number)
    }

    fn between(&self) -> String {
        format!("{}-way", self.namespace())
    }

    /// On the machine, then both in the middle, then in the agent's namespace.
    fn devices(&self) -> [String; 4] {
        ["o", "h", "a", "i"].map(|side| format!("hf{}-{}{side}", std::process::id(), self.number))
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        // Their devices go with them, and so does the other end.
        for name in [self.namespace(), self.between()] {
            drop(Command::new("ip").args(["netns", "del", &name]).status());
        }
    }
}

/// The filter's word for "not this one", and for a match.
const GO_ON: u32 = u32::MAX;
/// The filter's word for "drop it".
const DROP: u32 = 2;

/// A program of the kernel's packet filter: one word at this chance in a hundred, and another
/// otherwise. It loads a random number, takes it modulo a hundred, compares and returns.
fn chance(percent: u32, then: u32, otherwise: u32) -> String {
    let random = u32::MAX - 0x1000 + 1 + 56;
    format!("5,32 0 0 {random},148 0 0 100,53 0 1 {percent},6 0 0 {otherwise},6 0 0 {then}")
}

/// The same for packets with more bytes than these. It loads the length, compares and returns.
fn larger(bytes: u32, then: u32, otherwise: u32) -> String {
    format!("4,128 0 0 0,37 0 1 {bytes},6 0 0 {then},6 0 0 {otherwise}")
}

/// Bytes that stand before a packet on a wire.
const ETHERNET: u32 = 14;

fn run_line(program: &str, line: &str) {
    run(program, &line.split(' ').collect::<Vec<_>>());
}

fn run(program: &str, words: &[&str]) {
    let said = Command::new(program).args(words).output();
    let said = said.unwrap_or_else(|error| panic!("{program} (iproute2) is needed: {error}"));
    let complaint = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{program} {words:?}: {complaint}");
}
