//! gzip for answers: quick rather than small, piece by piece.
//!
//! Lists are what is worth compressing, and they come in pieces of which each holds many objects
//! that look alike. A piece is compressed by itself, in one pass: repetitions of six bytes and more
//! are found through a table of where six bytes were seen last, and all is written with a code made
//! for this piece. Of pods it makes less than zlib's level 1, as quickly; where objects hold text
//! of their own, it is four times as quick and makes far less (see docs/benchmarks.md).

mod bits; //    codes -> bytes
mod block; //   a piece -> repetitions and literals -> codes
mod huffman; // how often -> how long

use bits::Bits;
use block::Blocks;

/// A gzip stream that grows piece by piece.
pub(super) struct Gzip {
    bits: Bits,
    blocks: Box<Blocks>,
    checksum: crc32fast::Hasher,
    /// Bytes so far, modulo 2^32 as the format wants it.
    length: u32,
}

impl Gzip {
    pub(super) fn new() -> Self {
        let mut bits = Bits::default();
        bits.bytes(&HEAD);
        Self {
            bits,
            blocks: Box::default(),
            checksum: crc32fast::Hasher::new(),
            length: 0,
        }
    }

    /// Takes in a piece, and gives what is made so far. A few last bits wait for more.
    pub(super) fn piece(&mut self, piece: &[u8]) -> Vec<u8> {
        self.checksum.update(piece);
        self.length = self.length.wrapping_add(piece.len() as u32);
        // Blocks of about the same size: a code is not worth it for a few last bytes.
        let blocks = piece.len().div_ceil(block::BYTES_MAX).max(1);
        let bytes = piece.len().div_ceil(blocks).max(1);
        for block in piece.chunks(bytes) {
            self.blocks.write(block, &mut self.bits);
        }
        self.bits.take()
    }

    /// The end of the stream.
    pub(super) fn finish(mut self) -> Vec<u8> {
        // A last block without anything in it: final, in the fixed code, whose end is seven zeros.
        self.bits.put(0b011, 3);
        self.bits.put(0, 7);
        self.bits.align();
        self.bits.bytes(&self.checksum.finalize().to_le_bytes());
        self.bits.bytes(&self.length.to_le_bytes());
        self.bits.take()
    }
}

/// No name, no time, the quickest method, on Unix.
const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 3];

#[cfg(test)]
mod tests;
