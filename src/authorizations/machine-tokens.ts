/** Machine access tokens, which `Endings` ends: a client acts for itself, so there is no authorization behind them. */
import type { Client } from '../clients/client.ts';
import type { TokenStore } from '../storage/token-store.ts';
import { isMachineToken } from './token-formats.ts';

export interface MachineToken {
  readonly clientId: string;
  /** Of its client when it was issued: dead where the client has a later one. */
  readonly generation: number;
  /** Seconds since the epoch. */
  readonly issuedAt: number;
  readonly expiresAt: number;
}

export interface MachineTokens {
  /** As far as the token store knows. */
  find(value: string): Promise<MachineToken | undefined>;
  /** @param token of the client as it was when it authenticated: what is ended meanwhile stays so. */
  keep(
    value: string,
    token: Pick<MachineToken, 'issuedAt' | 'expiresAt'> & { readonly client: Client },
  ): Promise<void>;
}

/** The generation is left out while it is 0: there are many of these. */
type Kept = readonly [clientId: string, lifetime: number, generation?: number];

export function createMachineTokens(store: TokenStore): MachineTokens {
  return {
    async find(value) {
      if (!isMachineToken(value)) return undefined;
      const record = await store.read<Kept>('machine_token', value);
      if (!record) return undefined;
      const [clientId, lifetime, generation = 0] = record.data;
      const { expiresAt } = record;
      return { clientId, generation, expiresAt, issuedAt: expiresAt - lifetime };
    },

    async keep(value, { client, issuedAt, expiresAt }) {
      const lifetime = expiresAt - issuedAt;
      const { id, tokenGeneration } = client;
      const kept: Kept = tokenGeneration === 0 ? [id, lifetime] : [id, lifetime, tokenGeneration];
      await store.write('machine_token', value, kept, expiresAt);
    },
  };
}
