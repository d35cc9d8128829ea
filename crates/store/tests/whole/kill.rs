//! The process dies at each named place, as by kill -9. A child writes on a real folder and says
//! what was acked; afterwards exactly that is there.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use store::authority::Expect;
use store::disk::real::RealDisk;
use store::{At, Authority, Part, Range, failpoint};

use crate::bench_objects::*;

const FOLDER: &str = "STORE_TEST_FOLDER";
const PLACE: &str = "STORE_TEST_PLACE";
const PASSES: &str = "STORE_TEST_PASSES";
const PATHS: usize = 7;

fn authority(folder: &Path) -> Authority {
    opened(Arc::new(RealDisk::open(folder).unwrap()), &small(2_000))
}

/// Not a test of its own: what the tests below start and kill.
#[test]
fn child() {
    let Ok(folder) = std::env::var(FOLDER) else {
        return;
    };
    let authority = authority(Path::new(&folder));
    let passes = std::env::var(PASSES).unwrap().parse().unwrap();
    failpoint::arm(&std::env::var(PLACE).unwrap(), passes);
    let mut out = std::io::stdout();
    // Every object exists in both tables or in none, at neighbouring versions.
    for round in 0..400_usize {
        let path = format!("a/{}", round % PATHS);
        let expect = if round < PATHS {
            Expect::Absent
        } else {
            Expect::Present
        };
        let swaps = [pods(), leases()].map(|table| put(table, &path, &path, expect.clone()));
        let (outcomes, _) = authority.swap_blocking(swaps.into()).unwrap();
        writeln!(out, "acked {path} {}", stored(&outcomes[0])).unwrap();
        out.flush().unwrap();
    }
    std::process::exit(0);
}

/// What the child said was stored, by path; it dies at the place's `passes`-th pass.
fn acked_before_death(folder: &Path, place: &str, passes: u64) -> BTreeMap<String, u64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["kill::child", "--exact", "--nocapture"])
        .env(FOLDER, folder)
        .env(PLACE, place)
        .env(PASSES, passes.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut acked = BTreeMap::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        let mut words = line
            .split_whitespace()
            .skip_while(|word| *word != "acked")
            .skip(1);
        if let (Some(path), Some(at)) = (words.next(), words.next()) {
            acked.insert(path.to_owned(), at.parse().unwrap());
        }
    }
    let status = child.wait().unwrap();
    assert_eq!(
        status.signal(),
        Some(9),
        "{place} was never reached: {status}"
    );
    acked
}

fn check(folder: &Path, acked: &BTreeMap<String, u64>, context: &str) {
    let authority = authority(folder);
    let list = |resource| {
        let wanted = want(resource, Range::All);
        let page = authority
            .reader()
            .page(&wanted, &At::Now, &Part::default())
            .unwrap();
        let rows = page.rows.iter().map(|row| {
            page.bytes(row).unwrap();
            (
                row.header.name.as_str().to_owned(),
                number(&row.header.version),
            )
        });
        rows.collect::<BTreeMap<_, _>>()
    };
    let (pods, leases) = (list(pods()), list(leases()));
    let beside: BTreeMap<_, _> = pods
        .iter()
        .map(|(path, at)| (path.clone(), at + 1))
        .collect();
    assert_eq!(leases, beside, "{context}: a transaction is whole");
    let mut ahead = 0;
    for (path, at) in acked {
        assert!(
            pods.get(path) >= Some(at),
            "{context}: {path}@{at} was acked"
        );
    }
    for (path, at) in &pods {
        ahead += usize::from(acked.get(path) != Some(at));
    }
    assert!(
        ahead <= 1,
        "{context}: only the last request may be stored and not acked"
    );
}

#[test]
fn a_process_killed_at_any_named_place_keeps_what_it_acked() {
    for place in failpoint::PLACES {
        for passes in [1, 4] {
            let folder = tempfile::tempdir().unwrap();
            let context = format!("{place}, pass {passes}");
            let acked = acked_before_death(folder.path(), place, passes);
            check(folder.path(), &acked, &context);
            check(folder.path(), &acked, &context);
        }
    }
}
