/** Tables of keys as arrays of numbers, because V8's garbage collector visits each object of a large table. */

function newTable(lists: number) {
  // The first slots are the heads of the lists. The head follows the last slot of its list. A slot in no list follows
  // itself.
  const heads = Array.from({ length: lists }, (_, list) => list);
  return {
    slots: new Map<string, number>(),
    keys: heads.map(() => ''),
    next: [...heads],
    previous: [...heads],
    listOf: [...heads],
    /** The size of each slot; at the head of a list, the sum of its sizes. */
    sizes: heads.map(() => 0),
    free: [] as number[],
  };
}

const at = (numbers: readonly number[], slot: number): number => numbers[slot] as number;

/**
 * Gives each key a number, its slot. The caller stores the fields of a key in arrays, at the index of its slot, so that
 * a key needs no object of its own. A slot can be in one of several lists. The arrays never shrink.
 */
export function createSlots(lists = 1) {
  let table = newTable(lists);

  function link(before: number, slot: number, after: number): void {
    table.next[before] = slot;
    table.previous[slot] = before;
    table.next[slot] = after;
    table.previous[after] = slot;
  }

  function resize(slot: number, size: number): void {
    const list = at(table.listOf, slot);
    table.sizes[list] = at(table.sizes, list) + size - at(table.sizes, slot);
    table.sizes[slot] = size;
  }

  function take(slot: number): void {
    resize(slot, 0);
    const [before, after] = [at(table.previous, slot), at(table.next, slot)];
    table.next[before] = after;
    table.previous[after] = before;
    link(slot, slot, slot);
  }

  return {
    find: (key: string): number | undefined => table.slots.get(key),
    keyOf: (slot: number): string => table.keys[slot] as string,
    count: (): number => table.slots.size,

    /** Returns the slot of the key. The slot of a new key is in no list, and may have been that of a deleted key. */
    add(key: string): number {
      const known = table.slots.get(key);
      if (known !== undefined) return known;
      const slot = table.free.pop() ?? table.keys.length;
      table.slots.set(key, slot);
      table.keys[slot] = key;
      table.listOf[slot] = 0;
      table.sizes[slot] = 0;
      link(slot, slot, slot);
      return slot;
    },

    delete(slot: number): void {
      take(slot);
      table.slots.delete(table.keys[slot] as string);
      table.keys[slot] = '';
      table.free.push(slot);
    },

    /** Puts the slot at the end of the list. */
    put(slot: number, list = 0, size = 1): void {
      take(slot);
      link(at(table.previous, list), slot, list);
      table.listOf[slot] = list;
      resize(slot, size);
    },

    /** Takes the slot out of its list. */
    take,

    /** Returns the first slot of the list, which must not be empty. */
    oldest: (list = 0): number => at(table.next, list),

    /** The sum of the sizes in the list. */
    total: (list = 0): number => at(table.sizes, list),

    clear(): void {
      table = newTable(lists);
    },
  };
}
