/** Tokens of clients that act for themselves, without an authorization. `Endings` revokes them. */
import type { Client } from '../clients/client.ts';
import type { ClientRegistry } from '../clients/client-registry.ts';
import type { TokenStore } from '../storage/token-store.ts';
import { keyOf } from '../storage/token-store.ts';
import { isMachineToken } from './token-formats.ts';

export interface MachineToken {
  /** Names the token in the token store, and in the record of its revocation. */
  readonly key: string;
  readonly clientId: string;
  /** The client's generation at issue. The token is invalid once the client has a later generation. */
  readonly generation: number;
  /** Seconds since the epoch. */
  readonly issuedAt: number;
  readonly expiresAt: number;
}

export interface MachineTokens {
  /** Reads only the token store: the caller must check `isValidFor`. */
  find(value: string): Promise<MachineToken | undefined>;
  /** @param token contains the client as it authenticated, so that a later revocation applies */
  keep(value: string, token: Pick<MachineToken, 'issuedAt' | 'expiresAt'> & { readonly client: Client }): Promise<void>;
}

/** Omits a generation of 0 to save space, because there are many of these records. */
type Stored = readonly [clientId: string, lifetime: number, generation?: number];

/** True unless the token was revoked, by itself or with all machine tokens of its client. */
export const isValidFor = async (
  clients: Pick<ClientRegistry, 'hasEndedToken'>,
  client: Client,
  { key, generation }: MachineToken,
): Promise<boolean> => generation >= client.tokenGeneration && !(await clients.hasEndedToken(client, key));

export function createMachineTokens(store: TokenStore): MachineTokens {
  return {
    async find(value) {
      if (!isMachineToken(value)) return undefined;
      const record = await store.read<Stored>('machine_token', value);
      if (!record) return undefined;
      const [clientId, lifetime, generation = 0] = record.data;
      const { expiresAt } = record;
      const key = keyOf(value);
      return { key, clientId, generation, expiresAt, issuedAt: expiresAt - lifetime };
    },

    async keep(value, { client, issuedAt, expiresAt }) {
      const lifetime = expiresAt - issuedAt;
      const { id, tokenGeneration } = client;
      const data: Stored = tokenGeneration === 0 ? [id, lifetime] : [id, lifetime, tokenGeneration];
      await store.write('machine_token', value, data, expiresAt);
    },
  };
}
