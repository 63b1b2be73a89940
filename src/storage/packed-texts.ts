/** Texts in large buffers outside V8's heap, so that its garbage collection does not visit them one by one. */

const BLOCK_BYTES = 256;
const BLOCKS_PER_SLAB = 4_096;
/** Size of the length that begins a text's first block. The length includes these bytes. */
const LENGTH_BYTES = 4;
const NONE = -1;

interface Slab {
  readonly bytes: Buffer;
  /** For each block, the number of the next block of the same text, or of the next free block. */
  readonly next: Int32Array;
}

/** Each text is a chain of blocks, which may be in several slabs. Slabs are freed only by `clear`. */
export function createPackedTexts() {
  let slabs: Slab[] = [];
  let firstFree = NONE;

  const slabOf = (block: number): Slab => slabs[Math.floor(block / BLOCKS_PER_SLAB)] as Slab;
  const startOf = (block: number): number => (block % BLOCKS_PER_SLAB) * BLOCK_BYTES;
  const nextOf = (block: number): number => slabOf(block).next[block % BLOCKS_PER_SLAB] as number;

  function setNext(block: number, next: number): void {
    slabOf(block).next[block % BLOCKS_PER_SLAB] = next;
  }

  function addSlab(): void {
    const first = slabs.length * BLOCKS_PER_SLAB;
    const next = Int32Array.from({ length: BLOCKS_PER_SLAB }, (_, index) => first + index + 1);
    next[BLOCKS_PER_SLAB - 1] = NONE;
    slabs.push({ bytes: Buffer.allocUnsafeSlow(BLOCKS_PER_SLAB * BLOCK_BYTES), next });
    firstFree = first;
  }

  return {
    /** @returns the index of the first block of `text` */
    add(text: string): number {
      const bytes = Buffer.allocUnsafe(LENGTH_BYTES + Buffer.byteLength(text));
      bytes.writeUInt32LE(bytes.length);
      bytes.write(text, LENGTH_BYTES);
      let first = NONE;
      // Begin with the last block, so that each block gets the number of the block after it.
      for (let index = Math.ceil(bytes.length / BLOCK_BYTES) - 1; index >= 0; index -= 1) {
        if (firstFree === NONE) addSlab();
        const block = firstFree;
        firstFree = nextOf(block);
        bytes.copy(slabOf(block).bytes, startOf(block), index * BLOCK_BYTES, (index + 1) * BLOCK_BYTES);
        setNext(block, first);
        first = block;
      }
      return first;
    },
    read(first: number): string {
      const bytes = Buffer.allocUnsafe(slabOf(first).bytes.readUInt32LE(startOf(first)));
      let copied = 0;
      for (let block = first; block !== NONE; block = nextOf(block))
        copied += slabOf(block).bytes.copy(bytes, copied, startOf(block), startOf(block) + BLOCK_BYTES);
      return bytes.toString('utf8', LENGTH_BYTES);
    },
    delete(first: number): void {
      let last = first;
      while (nextOf(last) !== NONE) last = nextOf(last);
      setNext(last, firstFree);
      firstFree = first;
    },
    clear(): void {
      slabs = [];
      firstFree = NONE;
    },
  };
}
