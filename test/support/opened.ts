/** Closes what a suite opened, including what was still opening when a hook timed out. */

export interface Opened {
  /** Keeps the function that closes what `opening` resolves to. @returns `opening` */
  add<Resource>(opening: Promise<Resource>, close: (resource: Resource) => Promise<void>): Promise<Resource>;
  /** Closes everything, the latest first, except what failed to open. */
  closeAll(): Promise<void>;
}

export function createOpened(): Opened {
  const closings: (() => Promise<void>)[] = [];
  return {
    add(opening, close) {
      closings.unshift(() => opening.then(close, () => {}));
      return opening;
    },
    async closeAll() {
      for (const close of closings.splice(0)) await close();
    },
  };
}
