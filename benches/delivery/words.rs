//! What goes over a link: for one change, for nothing at all, and to come back.

use std::process::Command;
use std::time::Duration;

use crate::ground::{Agent, Ground, Hub, holdfast, program};
use crate::kinds::{Hand, PODS, SERVICES, make, pod, service};
use crate::proxy::{Proxy, Way};
use crate::table::{Goal, Several, Table};

/// One annotation of a pod changes.
pub(crate) async fn change(table: &mut Table) {
    let ground = Ground::start().await;
    let mut hand = Hand::of(&ground.server).await;
    let made = hand.make(PODS, &pod("changed", "change", &[])).await;
    let hub = ground.hub(&[]).await;
    let proxy = Proxy::to(hub.address, Duration::ZERO).await;
    let agent = ground.agent("change", proxy.address()).await;
    agent.reaches("pods", made).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (mut down, mut up, mut both) = (Vec::new(), Vec::new(), Vec::new());
    for turn in 0..9 {
        let before = proxy.bytes();
        let version = hand.change(&format!("{PODS}/changed"), turn + 1).await;
        agent.reaches("pods", version).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        let sent = proxy.bytes().since(before);
        down.push(sent.down as f64);
        up.push(sent.up as f64);
        both.push(sent.both() as f64);
    }
    let [down, up, both] = [down, up, both].map(Several::new);
    let measured = format!(
        "{:.0} B: {:.0} down, {:.0} up",
        both.median(),
        down.median(),
        up.median()
    );
    let what = "one annotation change of a pod, TCP payload with TLS (median of 9)";
    table.goal(what, &measured, Goal::AtMost(both.median(), 250.0, "B"));
}

/// How long nothing happens.
const IDLE: Duration = Duration::from_secs(300);

/// Nothing happens for some minutes, to a node in a network of its own.
pub(crate) async fn idle(table: &mut Table) {
    let ground = Ground::start().await;
    let mut hand = Hand::of(&ground.server).await;
    make(&ground.server, (SERVICES, 100), service).await;
    let made = hand.make(PODS, &pod("calm", "idle", &[])).await;
    let wire = Wire::lay();
    let listen = format!("{}:0", Wire::HUB);
    let hub = ground.hub(&["--listen", &listen]).await;
    let mut command = Command::new("ip");
    command.args(["netns", "exec", Wire::SPACE]).arg(program());
    command.args(holdfast("edge").get_args());
    let agent = ground.agent_by(command, "idle", hub.address).await;
    agent.reaches("pods", made).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let before = wire.ip_bytes();
    tokio::time::sleep(IDLE).await;
    let sent = (wire.ip_bytes() - before) as f64;
    let day = sent * 86_400.0 / IDLE.as_secs_f64() / 1e6;
    let what = "an idle link for a day, IP bytes both ways, scaled from five minutes";
    let measured = format!("{day:.2} MB ({sent:.0} B in {} s)", IDLE.as_secs());
    table.goal(what, &measured, Goal::AtMost(day, 1.0, "MB"));
}

/// A pair of interfaces between this network and that of a node. It goes with this.
struct Wire(());

impl Wire {
    const SPACE: &str = "holdfast-bench";
    const HUB: &str = "198.18.7.1";

    fn lay() -> Self {
        let wire = Self(());
        wire.remove();
        let space = Self::SPACE;
        for words in [
            format!("netns add {space}"),
            format!("link add hfbench0 type veth peer name hfbench1 netns {space}"),
            format!("addr add {}/30 dev hfbench0", Self::HUB),
            format!("-n {space} addr add 198.18.7.2/30 dev hfbench1"),
            "link set hfbench0 addrgenmode none up".to_owned(),
            format!("-n {space} link set hfbench1 addrgenmode none up"),
            format!("-n {space} link set lo up"),
        ] {
            assert!(Self::ip(&words), "ip {words} (it needs to be root)");
        }
        wire
    }

    /// Bytes of packets both ways, without the heads of Ethernet.
    fn ip_bytes(&self) -> u64 {
        let number = |name: &str| {
            let path = format!("/sys/class/net/hfbench0/statistics/{name}");
            let text = std::fs::read_to_string(path).expect("the interface is there");
            text.trim().parse::<u64>().expect("a number")
        };
        let bytes = number("rx_bytes") + number("tx_bytes");
        let packets = number("rx_packets") + number("tx_packets");
        bytes - 14 * packets
    }

    fn remove(&self) {
        Self::ip("link del hfbench0");
        Self::ip(&format!("netns del {}", Self::SPACE));
    }

    fn ip(words: &str) -> bool {
        let mut command = Command::new("ip");
        let ended = command.args(words.split(' ')).output();
        ended.is_ok_and(|ended| ended.status.success())
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.remove();
    }
}

/// A node with 1,000 objects comes back: to what it had, to ten changes, to a hub that knows
/// nothing of it.
pub(crate) async fn reconnect(table: &mut Table) {
    let ground = Ground::start().await;
    make(&ground.server, (SERVICES, 1_000), service).await;
    let mut hand = Hand::of(&ground.server).await;
    let made = hand.make(PODS, &pod("there", "back", &[])).await;
    let hub = ground.hub(&[]).await;
    let proxy = Proxy::to(hub.address, Duration::ZERO).await;
    let agent = ground.agent("back", proxy.address()).await;
    agent.reaches("pods", made).await;
    crate::ground::eventually(async || agent.holds("services").await.1 >= 1_000).await;
    let mut back = Back {
        ground,
        proxy,
        agent,
        hand,
        turn: 0,
    };
    let unchanged = back.again(0).await;
    let kilo = |bytes: u64| bytes as f64 / 1e3;
    let what = "a node with 1,000 unchanged objects comes back, TLS included";
    let goal = Goal::AtMost(kilo(unchanged), 8.0, "kB");
    table.goal(what, &format!("{:.1} kB", kilo(unchanged)), goal);
    let changed = back.again(10).await;
    let more = kilo(changed.saturating_sub(unchanged));
    let what = "the same with 10 changed objects, a hub that was there: more by";
    table.goal(
        what,
        &format!("{more:.1} kB"),
        Goal::AtMost(more, 4.0, "kB"),
    );
    let (hub, fresh) = back.move_to(hub, 10).await;
    let more = kilo(fresh.saturating_sub(unchanged));
    let what = "the same with 10 changed objects, a hub that was just started: more by";
    table.row(what, &format!("{more:.1} kB"));
    let (_hub, fresh) = back.move_to(hub, 0).await;
    let what = "nothing changed, a hub that was just started";
    table.row(what, &format!("{:.1} kB", kilo(fresh)));
}

/// A node that comes back.
struct Back {
    ground: Ground,
    proxy: Proxy,
    agent: Agent,
    hand: Hand,
    turn: usize,
}

impl Back {
    /// The link breaks, so many objects change, and the link is back. Returns the bytes both ways.
    async fn again(&mut self, changes: usize) -> u64 {
        let sessions = self.sessions().await;
        self.proxy.turn(Way::Broken);
        let before = self.proxy.bytes().both();
        let version = self.change(changes).await;
        self.proxy.turn(Way::Open);
        self.settle(sessions, version).await;
        self.proxy.bytes().both() - before
    }

    /// The same, while the hub is replaced by a new one.
    async fn move_to(&mut self, hub: Hub, changes: usize) -> (Hub, u64) {
        let sessions = self.sessions().await;
        self.proxy.turn(Way::Broken);
        drop(hub);
        let before = self.proxy.bytes().both();
        let version = self.change(changes).await;
        let hub = self.ground.hub(&[]).await;
        self.proxy.lead_to(hub.address);
        self.proxy.turn(Way::Open);
        self.settle(sessions, version).await;
        (hub, self.proxy.bytes().both() - before)
    }

    async fn sessions(&self) -> u64 {
        let status = self.agent.status().await;
        status["sessions"].as_u64().unwrap_or(0)
    }

    async fn change(&mut self, changes: usize) -> u64 {
        let mut version = 0;
        for number in 0..changes {
            self.turn += 1;
            let path = format!("{SERVICES}/service-{:05}", number * 97);
            version = self.hand.change(&path, self.turn).await;
        }
        version
    }

    async fn settle(&mut self, sessions: u64, version: u64) {
        self.agent.connects(sessions).await;
        self.agent.reaches("services", version).await;
        // Whatever else is said at once.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let cluster = self.hand.list(SERVICES).await;
        assert_eq!(self.agent.dump("services").await, cluster);
    }
}
