//! How the program is linked.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // The places to be adjusted when the program is loaded are packed. Otherwise reading the list
    // of them is most of what an idle agent has in memory of the file beside its code.
    if std::env::var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("gnu") {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}
