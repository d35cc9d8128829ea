//! Processes that may not have what they ask for: open files, memory.

use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::driver::service;
use crate::size::make;
use crate::world::{CONVERGED, Plan, World};

const SOON: Duration = Duration::from_secs(20);

/// What stands before a command that may have so many open files.
fn files(most: u32) -> Vec<String> {
    let shell = format!("ulimit -n {most}; exec \"$@\"");
    ["sh", "-c", &shell, "sh"].map(str::to_owned).to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_without_a_file_to_open_keeps_its_sessions_and_takes_new_ones_later() {
    const FILES: u32 = 64;
    let mut world = World::new(Plan {
        nodes: 2,
        ..Plan::default()
    })
    .await;
    world.hubs[0].program.kill();
    world.hubs[0].program.before(files(FILES));
    world.hubs[0].start().await;
    world.nodes[0].start();
    world.nodes[0].connected(SOON).await;
    // Strangers take every place that is left, and come again when they are sent away.
    let address = world.hubs[0].address();
    let crowd = tokio::spawn(async move {
        let mut held = Vec::new();
        loop {
            if let Ok(stream) = TcpStream::connect(address).await {
                held.push(stream);
            }
            if held.len() > 4 * FILES as usize {
                held.drain(..FILES as usize);
            }
            sleep(Duration::from_millis(2)).await;
        }
    });
    sleep(Duration::from_secs(2)).await;
    let driver = &world.driver;
    driver
        .create("services", &service("meanwhile", "one"))
        .await;
    world.settled_on(&[&world.nodes[0]], SOON).await;
    world.nodes[1].start();
    sleep(Duration::from_secs(1)).await;
    crowd.abort();
    // A second node finds its place when the crowd is gone.
    world.settled(CONVERGED).await;
    assert_eq!(world.nodes[0].sessions().await, 1, "its session went on");
    assert!(!world.hubs[0].program.has_ended());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_may_open_few_files_does_its_work() {
    let mut world = World::new(Plan::default()).await;
    world.nodes[0].program.before(files(24));
    world.nodes[0].start();
    make(&world.driver, 300).await;
    world.settled(CONVERGED).await;
    assert_eq!(world.nodes[0].sessions().await, 1);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root: just e2e"]
async fn an_agent_and_a_hub_with_little_memory_take_thousands_of_objects() {
    let mut world = World::new(Plan::default()).await;
    let small = Group::new("agent", 64 * 1024 * 1024);
    let large = Group::new("hub", 512 * 1024 * 1024);
    world.hubs[0].program.kill();
    world.hubs[0].program.before(large.inside());
    world.hubs[0].start().await;
    world.nodes[0].program.before(small.inside());
    world.nodes[0].start();
    make(&world.driver, 5_000).await;
    world.settled(CONVERGED).await;
    assert_eq!(world.nodes[0].sessions().await, 1, "nobody was killed");
    for group in [&small, &large] {
        assert_eq!(group.killed(), 0);
        eprintln!("{}: {} kB at most", group.name, group.peak() / 1024);
    }
}

/// A group of processes that may have so much memory together.
struct Group {
    name: String,
}

impl Group {
    fn new(name: &str, bytes: u64) -> Self {
        let name = format!("holdfast-test-{}-{name}", std::process::id());
        let group = Self { name };
        std::fs::create_dir(group.path("")).unwrap();
        std::fs::write(group.path("memory.limit_in_bytes"), bytes.to_string()).unwrap();
        group
    }

    fn path(&self, file: &str) -> String {
        format!("/sys/fs/cgroup/memory/{}/{file}", self.name)
    }

    /// What stands before a command that is to be in the group.
    fn inside(&self) -> Vec<String> {
        let shell = format!("echo $$ > {}; exec \"$@\"", self.path("cgroup.procs"));
        ["sh", "-c", &shell, "sh"].map(str::to_owned).to_vec()
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.path(file)).unwrap()
    }

    fn peak(&self) -> u64 {
        let text = self.read("memory.max_usage_in_bytes");
        text.trim().parse().unwrap()
    }

    /// Processes that were killed for it.
    fn killed(&self) -> u64 {
        let text = self.read("memory.oom_control");
        let mut lines = text.lines();
        let found = lines.find_map(|line| line.strip_prefix("oom_kill "));
        found.map_or(0, |count| count.parse().unwrap())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It can go when its processes are gone; they are killed with the world.
        drop(std::fs::remove_dir(self.path("")));
    }
}
