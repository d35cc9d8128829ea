//! Sessions of a sender and a receiver, told as they happen.
