# What one does here. Without just: read the commands and run them.

# Show what there is.
default:
    @just --list

# What is quick: format, lints, house rules, documentation.
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings
    cargo test --test tidy
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# Every test that needs nothing but this repository.
test *ARGS:
    cargo test --workspace {{ARGS}}

# Fuzz a target for a minute (needs a nightly toolchain and cargo-fuzz).
fuzz TARGET SECONDS="60":
    cargo +nightly fuzz run {{TARGET}} -- -max_total_time={{SECONDS}}

# The whole system from so many seeds, in one thread each: `just sim 5000`, `just sim 1 77`.
sim SEEDS="500" FROM="0":
    SEEDS={{SEEDS}} SEED={{FROM}} SHOW=1 cargo test -p sim --test seeds -- --nocapture

# The whole load (a minute of a thousand watchers, a hundred thousand objects) on a release build.
load *ARGS:
    HOLDFAST_LOAD=full cargo test --release --test load -- --nocapture --test-threads 1 {{ARGS}}

# Measure the program: all of it, or some of idle create get list update fanout own memory.
bench *PARTS:
    cargo bench --bench api -- {{PARTS}}

# Measure a real kube-apiserver and the program in turn: create get list update watch memory; quick.
bench-apiserver *PARTS:
    cargo bench --bench apiserver -- {{PARTS}}

# Measure delivery: sync behind cut change idle (root) reconnect fleet rate latency sessions memory cost.
bench-delivery *PARTS:
    cargo bench --bench delivery -- {{PARTS}}

# Measure the API of a node beside a real kube-apiserver: read watch write day; quick.
bench-node *PARTS:
    cargo bench --bench node -- {{PARTS}}

# Measure the store alone.
bench-store:
    cargo bench -p store --bench store

# Real components against the real program.
e2e *ARGS:
    tests/e2e/run {{ARGS}}

# Start a cluster in a folder of this checkout.
up *ARGS:
    cargo run --release -- up --data-dir .holdfast {{ARGS}}

# Everything that CI runs.
ci:
    .ci/run

# Start a real Kubernetes control plane (built once, from Go modules) and leave it running.
cluster *ARGS:
    cargo run --quiet -p cluster -- up {{ARGS}}

# End it.
cluster-down *ARGS:
    cargo run --quiet -p cluster -- down {{ARGS}}
