//! Delivery with real processes and real faults: an API, hubs and agents, each a program of its
//! own, with links that are cut and slow, disks that are full and damaged, and kills at any moment.
//!
//! After each fault every node's dump is compared with what it must hold. That is computed here,
//! from the API's own lists, and not by anything of the hub.
//!
//! What takes more than seconds, or needs root, is left to `just e2e` (`tests/e2e/README.md`).

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test stands outside the program: it has its own sockets and tasks, and fails loudly"
)]

mod driver; //   changes in the cluster, and its lists
mod expected; // lists -> what a node must hold
mod program; //  a process that is started, killed and started again
mod hub; //      a hub
mod node; //     an agent and its disk
mod world; //    all of them, and the word that they agree
mod load; //     changes at random
mod proxy; //    a link that is slow, stalls, swallows and breaks
mod net; //      network namespaces that lose and repeat packets
mod datagrams; // the same of datagrams, without root
mod footprint; // what a process takes of its machine
mod disk; //     disks that are small or cannot be written
mod machine; //  a machine with containers, inside this one

mod changes; //  what comes, changes and goes, with everything up or with everything down
mod kills; //    processes that are killed under load
mod links; //    links that are cut, silent, slow
mod packets; //  packets that are lost and repeated
mod damage; //   stores that are wiped, damaged, full or read-only
mod identity; // who a node is: revoked, expired, cloned
mod hubs; //     several hubs
mod server; //   an API that forgets, refuses and comes back
mod size; //     much at once, over little
mod seen; //     what can be seen of nodes
mod quic; //     the core of it over QUIC
mod middle; //   what stands in between and has its own mind
mod local; //    the Kubernetes API of a node
mod pods; //     pods that are led to the API of their node
mod written; //  what was written through a node and is read there
mod watching; // the conformance cases of watches, on a node
mod remembering; // versions that are too old, initial events, bookmarks
mod watchers; // many watchers on a node: in a storm, slow, and what they cost
mod reading; //  pages, and answers over a dead link
mod going; //    clients of a node that go
mod hostile; //  the catalogue of bad input, on a node
mod crowds; //   too much of everything, on a node
mod scopes; //   what is carried to a node because somebody asks
mod accounts; // what pods on a node may read there
mod kubectl; //  what people type on a node
mod components; // programs of Kubernetes on a node
mod kubelet; //  the program that runs pods on a node
mod sharing; //  deliveries beside large answers, on one slow link
mod inside; //   logs, commands and ports of pods
mod clients; //  programs that follow a node's API while everything fails
mod discovery; // what a cluster says of itself, on a node
mod offline; //  what is written on a node without a link
mod protobuf; // the same in protobuf
mod socket; //   the same API on a socket
mod secrets; //  Secrets on the disk of a node
mod limits; //   processes that may not have what they ask for
