//! The store in numbers: durable commits, reads, a start, and memory. Prints a table and measures
//! on a real folder (`STORE_BENCH_FOLDER`, else the system's place for such).

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use host::Clock;
use object::{Header, ObjectName, Resource};
use store::authority::{Action, Draft, Expect, Swap};
use store::disk::real::RealDisk;
use store::{At, Authority, Extent, Options, Part, Range, Want};

const OBJECT_BYTES: usize = 2048;
/// What the kernel counts memory in, on the machines that this is run on.
const PAGE_BYTES: u64 = 4096;

fn pods() -> Resource {
    Resource::new("", "pods")
}

fn path(index: usize) -> (String, String) {
    (
        format!("ns-{}", index % 20),
        format!("web-7d4b9c6f5-{index:0>6}"),
    )
}

/// A pod of the usual shape and of 2 KiB.
fn draft(index: usize) -> Draft {
    let (namespace, name) = path(index);
    let head = format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}",
            "namespace":"{namespace}","uid":"8c9c1a2e-3b4d-4e5f-8a9b-{index:0>12}",
            "labels":{{"app":"web","pod-template-hash":"7d4b9c6f5","tier":"front"}},
            "resourceVersion":""#
    );
    let tail = r#""},"spec":{"nodeName":"edge-1","serviceAccountName":"default"},
        "status":{"phase":"Running","podIP":"10.0.0.7"},"filling":""#;
    let filling = OBJECT_BYTES - head.len() - tail.len() - 8;
    let tail = format!("{tail}{}\"}}", "x".repeat(filling));
    let text = format!("{head}1{tail}");
    let header = Header::parse(&pods(), text.as_bytes(), &[]).expect("a pod");
    Draft {
        header,
        head: Bytes::from(head),
        tail: Bytes::from(tail),
    }
}

fn swap(index: usize, expect: Expect) -> Swap {
    let (namespace, name) = path(index);
    Swap {
        resource: pods(),
        name: ObjectName::new(&namespace, &name),
        expect,
        action: Action::Put(Box::new(draft(index))),
    }
}

fn open(folder: &Path) -> Authority {
    let disk = Arc::new(RealDisk::open(folder).expect("a folder"));
    Authority::open(disk, Options::new("bench"), Clock::machine()).expect("a store")
}

/// Bytes of this process in memory.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text
        .split_whitespace()
        .nth(1)
        .and_then(|word| word.parse::<u64>().ok());
    pages.unwrap_or(0) * PAGE_BYTES
}

fn line(what: &str, each: Duration, note: &str) {
    println!("{what:<44} {each:>12.2?}  {note}");
}

fn commits(clock: &Clock) {
    for batch in [1, 32, 512] {
        let folder = tempfile::tempdir_in(place()).expect("a folder");
        let authority = open(folder.path());
        authority
            .open_tables_blocking(vec![pods()])
            .expect("a table");
        let rounds = (2_048 / batch).clamp(16, 256);
        // Objects are made before the clock starts: they are the caller's.
        let batches: Vec<Vec<Swap>> = (0..rounds)
            .map(|round| {
                (0..batch)
                    .map(|i| swap(round * batch + i, Expect::Absent))
                    .collect()
            })
            .collect();
        let begun = clock.now();
        for swaps in batches {
            authority.swap_blocking(swaps).expect("stored");
        }
        let each = clock.now().duration_since(begun) / rounds as u32;
        let rate = batch as f64 / each.as_secs_f64();
        line(
            &format!("durable commit of {batch}"),
            each,
            &format!("{rate:.0} objects/s"),
        );
    }
}

fn concurrent(clock: &Clock) {
    let folder = tempfile::tempdir_in(place()).expect("a folder");
    let authority = open(folder.path());
    authority
        .open_tables_blocking(vec![pods()])
        .expect("a table");
    let (threads, each) = (64, 40);
    let begun = clock.now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let authority = &authority;
            scope.spawn(move || {
                for round in 0..each {
                    let swap = swap(thread * each + round, Expect::Absent);
                    authority.swap_blocking(vec![swap]).expect("stored");
                }
            });
        }
    });
    let took = clock.now().duration_since(begun);
    let count = (threads * each) as u32;
    let rate = f64::from(count) / took.as_secs_f64();
    line(
        "durable commit of 1, 64 callers",
        took / count,
        &format!("{rate:.0} objects/s"),
    );
}

fn fill(folder: &Path, count: usize) {
    let authority = open(folder);
    authority
        .open_tables_blocking(vec![pods()])
        .expect("a table");
    for start in (0..count).step_by(500) {
        let swaps = (start..(start + 500).min(count)).map(|i| swap(i, Expect::Absent));
        authority.swap_blocking(swaps.collect()).expect("stored");
    }
    authority.close();
}

fn reads(clock: &Clock, authority: &Authority, count: usize) {
    let reader = authority.reader();
    let rounds = 100_000;
    let begun = clock.now();
    for round in 0..rounds {
        let (namespace, name) = path(round * 7919 % count);
        let name = ObjectName::new(&namespace, &name);
        let found = reader.object(&pods(), &name).expect("readable");
        assert!(found.is_some());
    }
    let each = clock.now().duration_since(begun) / rounds as u32;
    let rate = 1.0 / each.as_secs_f64();
    line(
        &format!("point read of {count}"),
        each,
        &format!("{rate:.0}/s"),
    );
    let want = Want {
        resource: pods(),
        range: Range::All,
        selector: Default::default(),
        extent: Extent::Whole,
    };
    let part = Part {
        from: None,
        limit: Some(10_000),
    };
    let begun = clock.now();
    let page = reader.page(&want, &At::Now, &part).expect("a page");
    line(
        "page of 10,000, without bytes",
        clock.now().duration_since(begun),
        "",
    );
    let bytes: usize = page
        .rows
        .iter()
        .map(|row| page.bytes(row).expect("bytes").len())
        .sum();
    let note = format!("{:.1} MB", bytes as f64 / 1e6);
    line(
        "page of 10,000, with bytes",
        clock.now().duration_since(begun),
        &note,
    );
}

fn opening(clock: &Clock, count: usize) {
    let folder = tempfile::tempdir_in(place()).expect("a folder");
    fill(folder.path(), count);
    let begun = clock.now();
    drop(open(folder.path()));
    line(
        &format!("open with {count}, warm cache"),
        clock.now().duration_since(begun),
        "",
    );
    // Memory is measured in a process of its own, which only opens the store.
    let own = std::env::current_exe().expect("this program");
    let child = std::process::Command::new(own)
        .env("STORE_BENCH_RESIDENT", folder.path())
        .output()
        .expect("a child");
    print!("{}", String::from_utf8_lossy(&child.stdout));
    if count == 10_000 {
        let authority = open(folder.path());
        reads(clock, &authority, count);
    }
}

fn measure_resident(folder: &Path) {
    let before = resident();
    let authority = open(folder);
    let after = resident();
    let count = authority.reader().count(&pods());
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    println!(
        "{:<44} {:>9.1} MB  {:.1} MB of it the store, {} bytes an object",
        format!("resident with {count} opened"),
        megabytes(after),
        megabytes(after - before),
        (after - before) / count.max(1) as u64
    );
}

fn place() -> std::path::PathBuf {
    std::env::var_os("STORE_BENCH_FOLDER").map_or_else(std::env::temp_dir, Into::into)
}

fn main() {
    if let Some(folder) = std::env::var_os("STORE_BENCH_RESIDENT") {
        return measure_resident(Path::new(&folder));
    }
    let clock = Clock::machine();
    println!("objects of {OBJECT_BYTES} bytes");
    commits(&clock);
    concurrent(&clock);
    opening(&clock, 10_000);
    opening(&clock, 100_000);
}
