/** Access tokens of clients that act for themselves, without an authorization. `Endings` revokes them. */
import type { Client } from '../clients/client.ts';
import type { ClientRegistry } from '../clients/client-registry.ts';
import type { TokenStore } from '../storage/token-store.ts';
import { keyOf } from '../storage/token-store.ts';
import { isMachineToken } from './token-formats.ts';

export interface MachineToken {
  /** Identifies the token in the token store, and in the record of its revocation. */
  readonly key: string;
  readonly clientId: string;
  /** The client's generation at issue. The token is invalid once the client has a later generation. */
  readonly generation: number;
  /** `secretKey` of the secret with which the client got the token. */
  readonly secret: string;
  /** Seconds since the epoch. */
  readonly issuedAt: number;
  readonly expiresAt: number;
}

type Stored = readonly [clientId: string, lifetime: number, generation: number, secret: string];

/** The last 8 characters (48 bits) are enough to distinguish the secrets of one client, and keep records short. */
const secretKey = (secretId: string): string => secretId.slice(-8);

export const isFromLeakedSecret = (client: Client, { secret }: MachineToken): boolean =>
  client.leakedSecrets.some((id) => secretKey(id) === secret);

/** False if the token itself was revoked, the client's generation was raised, or the client's secret was leaked. */
export const isValidFor = async (
  clients: Pick<ClientRegistry, 'hasEndedToken'>,
  client: Client,
  token: MachineToken,
): Promise<boolean> =>
  token.generation >= client.generation &&
  !isFromLeakedSecret(client, token) &&
  !(await clients.hasEndedToken(client, token.key));

export type MachineTokens = ReturnType<typeof createMachineTokens>;

export function createMachineTokens(store: TokenStore) {
  return {
    /** Reads only the token store: the caller must also check `isValidFor`. */
    async find(value: string): Promise<MachineToken | undefined> {
      if (!isMachineToken(value)) return undefined;
      const record = await store.read<Stored>('machine_token', value);
      if (!record) return undefined;
      const [clientId, lifetime, generation, secret] = record.data;
      const { expiresAt } = record;
      const key = keyOf(value);
      return { key, clientId, generation, secret, expiresAt, issuedAt: expiresAt - lifetime };
    },

    /** @param token contains the client and secret from the time of authentication, so that later revocations apply */
    async keep(
      value: string,
      token: Pick<MachineToken, 'issuedAt' | 'expiresAt'> & { readonly client: Client; readonly secretId: string },
    ): Promise<void> {
      const { client, secretId, issuedAt, expiresAt } = token;
      const data: Stored = [client.id, expiresAt - issuedAt, client.generation, secretKey(secretId)];
      await store.write('machine_token', value, data, expiresAt);
    },
  };
}
