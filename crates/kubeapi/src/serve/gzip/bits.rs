//! Bits in the order of deflate: the first is the lowest of the first byte.

/// Bytes that are made of codes.
#[derive(Default)]
pub(super) struct Bits {
    /// What is made, and room for more.
    room: Vec<u8>,
    made: usize,
    /// Fewer than eight bits between calls.
    waiting: u64,
    count: u32,
}

impl Bits {
    /// Adds the lowest `count` bits, at most 56; the others must be zero.
    #[inline(always)]
    pub(super) fn put(&mut self, bits: u64, count: u32) {
        debug_assert!(
            count <= 56 && bits >> count == 0,
            "{bits:b} in {count} bits"
        );
        // No more than 7 and 56 bits: the checks of overflows would take as long as the work.
        self.waiting |= bits.wrapping_shl(self.count);
        self.count = self.count.wrapping_add(count);
        if self.room.len() < self.made + 8 {
            self.reserve(0);
        }
        // Eight bytes are written at once, and those that are not whole again by the next call.
        self.room[self.made..self.made + 8].copy_from_slice(&self.waiting.to_le_bytes());
        self.made += (self.count / 8) as usize;
        self.waiting = self.waiting.wrapping_shr(self.count & !7);
        self.count %= 8;
    }

    /// Fills the last byte with zeros.
    pub(super) fn align(&mut self) {
        if self.count > 0 {
            self.put(0, 8 - self.count);
        }
    }

    /// Adds whole bytes, where a byte begins.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        debug_assert_eq!(self.count, 0, "within a byte");
        self.room.truncate(self.made);
        self.room.extend_from_slice(bytes);
        self.made = self.room.len();
    }

    /// Room for so many more bytes.
    pub(super) fn reserve(&mut self, bytes: usize) {
        self.room.resize(self.made + bytes + ROOM_LEAST, 0);
    }

    /// All whole bytes so far.
    pub(super) fn take(&mut self) -> Vec<u8> {
        self.room.truncate(std::mem::take(&mut self.made));
        std::mem::take(&mut self.room)
    }
}

/// Room for what is added without having been announced.
const ROOM_LEAST: usize = 64;
