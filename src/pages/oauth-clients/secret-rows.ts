/** The live secrets of a client as its page shows them, and which of them is not needed any more. */
import type { ClientSecret } from '../../clients/client.ts';
import { momentOf, momentOrNothing } from '../words/moment.ts';
import type { SecretRow } from './client-view.ts';

/** Milliseconds. What runs once a day has used the newer secret by then. */
const UNUSED_LONG = 86_400_000;

/** The newest first. */
export function secretRowsOf(secrets: readonly ClientSecret[], now: number): SecretRow[] {
  return secrets.toReversed().map((secret) => ({
    id: secret.id,
    lastFour: secret.lastFour,
    created: momentOf(secret.createdAt),
    lastUsed: momentOrNothing(secret.lastUsedAt),
    isSafeToRemove:
      now - lastSeen(secret) >= UNUSED_LONG &&
      // Of a client that rests, the one to keep is the one that was needed last.
      secrets.some((other) => lastSeen(other) > lastSeen(secret)),
  }));
}

const lastSeen = ({ lastUsedAt, createdAt }: ClientSecret): number =>
  (lastUsedAt ?? createdAt).getTime();
