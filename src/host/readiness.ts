/** Can this process serve: which store is away, and is it about to end? */
import { setTimeout as delay } from 'node:timers/promises';

type Store = 'database' | 'tokens';

/** `reason`: what the store's driver said, for operators. */
export type StoreStates = Readonly<Record<Store, { isAway: boolean; reason?: string }>>;

export interface Readiness {
  /** Asks both stores, and waits for neither longer than a request would. */
  stores(): Promise<StoreStates>;
  readonly isDraining: boolean;
  /** From now on this process is not ready: a load balancer is to send it nothing new. */
  startDraining(): void;
}

/** Milliseconds. Less than the 2 s within which every request is answered. */
const PATIENCE = 1_800;

/** @param pings each resolves when its store answers, and rejects with the reason otherwise. */
export function createReadiness(pings: Readonly<Record<Store, () => Promise<void>>>): Readiness {
  let isDraining = false;
  return {
    async stores() {
      const [database, tokens] = await Promise.all([
        stateOf(pings.database),
        stateOf(pings.tokens),
      ]);
      return { database, tokens };
    },
    get isDraining() {
      return isDraining;
    },
    startDraining() {
      isDraining = true;
    },
  };
}

async function stateOf(ping: () => Promise<void>): Promise<StoreStates[Store]> {
  const waiting = new AbortController();
  const { signal } = waiting;
  const tooLate = delay(PATIENCE, 'no answer', { signal }).catch(() => 'no answer');
  try {
    const reason = await Promise.race([ping(), tooLate]);
    return typeof reason === 'string' ? { isAway: true, reason } : { isAway: false };
  } catch (error) {
    return { isAway: true, reason: reasonOf(error) };
  } finally {
    waiting.abort();
  }
}

function reasonOf(error: unknown): string {
  const detail = error instanceof Error && 'error_detail' in error ? error.error_detail : undefined;
  return String(detail ?? error);
}
