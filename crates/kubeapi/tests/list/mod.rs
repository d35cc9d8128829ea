//! Lists: which state, which part of it, which objects.

mod matrix; // resourceVersion x resourceVersionMatch x limit x continue, case by case
mod pages; // lists in parts
mod place; // namespaces and field selectors
mod freshness; // which version a list has, and what it waits for
mod token; // what a continue token is to this server and to others
