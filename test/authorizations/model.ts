/**
 * The promised behaviour of authorizations, without stores, networks or parallel requests: the
 * reference that a random walk compares the service with. Times are in seconds.
 */
import { ModelMemberships } from './model-memberships.ts';
import { ReachModel } from './reach-model.ts';

export const LIFETIMES = {
  // No walk reaches a time within ten seconds of a limit, so a slow machine changes no answer.
  retryWindowSeconds: 70,
  authorizationCodeSeconds: 610,
  accessTokenSeconds: 3_610,
  refreshTokenSeconds: 30 * 86_400 + 10,
  absoluteAgeSeconds: 365 * 86_400 + 10,
} as const;
const REMEMBER_CODE = 3_600;
const REMEMBER_EXPIRED = 86_400;

/** The record in the token store; a restored backup contains an older record. */
interface Stored {
  /** The number of the current refresh token; -1 until the code is exchanged. */
  rotation: number;
  rotatedAt: number;
  isConfirmed: boolean;
  usableUntil: number;
  clientGeneration: number;
  /** The rotation that the first refresh after a renewal of the client issued. */
  sinceRotation: number;
}

export interface IssuedAccessToken {
  readonly rotation: number;
  readonly expiresAt: number;
  /** The number of renewals of the client at that time. */
  readonly clientGeneration: number;
}

export interface ModelAuthorization {
  readonly account: string;
  readonly client: string;
  readonly generation: number;
  readonly endsAt: number;
  stored: Stored | undefined;
  /** True if this authorization was ended alone, without its connection. */
  isEnded: boolean;
}

export class Model {
  now = 0;
  readonly reach = new ReachModel();
  readonly memberships = new ModelMemberships(this.reach);
  readonly suspended = new Set<string>();
  readonly deleted = new Set<string>();
  /** The clients that people approve for each request. */
  readonly alwaysAsking = new Set<string>();
  readonly authorizations: ModelAuthorization[] = [];
  readonly #generations = new Map<string, number>();
  readonly #renewals = new Map<string, number>();
  readonly #connected = new Set<string>();
  #backup: readonly (Stored | undefined)[] | undefined;

  connect(account: string, client: string): ModelAuthorization {
    const key = `${account} ${client}`;
    this.#connected.add(key);
    const authorization: ModelAuthorization = {
      account,
      client,
      generation: this.#generations.get(key) ?? 0,
      endsAt: this.now + LIFETIMES.absoluteAgeSeconds,
      stored: {
        rotation: -1,
        rotatedAt: this.now,
        isConfirmed: false,
        usableUntil: this.now + LIFETIMES.authorizationCodeSeconds,
        clientGeneration: this.generationOf(client),
        sinceRotation: 0,
      },
      isEnded: false,
    };
    this.authorizations.push(authorization);
    return authorization;
  }

  /** How often the client was renewed, or the operator ended everything that was issued to it. */
  generationOf(client: string): number {
    return this.#renewals.get(client) ?? 0;
  }

  /** What was issued to the client before is inactive from now on; after a renewal, it also has a new secret. */
  renew(client: string): void {
    this.#renewals.set(client, this.generationOf(client) + 1);
  }

  isConnected(account: string, client: string): boolean {
    return this.#connected.has(`${account} ${client}`);
  }

  /** Moves the time, and ends the connections whose limit ends by then. */
  pass(seconds: number): void {
    this.now += seconds;
    this.memberships.passTo(this.now);
    const isOver = (key: string): boolean =>
      (this.reach.limits.get(key)?.until ?? Number.POSITIVE_INFINITY) <= this.now;
    this.disconnect((account, client) => isOver(`${account} ${client}`));
  }

  isUsable(name: string): boolean {
    return !this.suspended.has(name) && !this.deleted.has(name);
  }

  /** Returns the record while the token store keeps it. */
  storedRecord({ stored }: ModelAuthorization): Stored | undefined {
    const more = stored && stored.rotation < 0 ? REMEMBER_CODE : REMEMBER_EXPIRED;
    return stored && stored.usableUntil + more > this.now ? stored : undefined;
  }

  /** Returns the record while the token store keeps it and the authorization is active. */
  activeRecord(authorization: ModelAuthorization): Stored | undefined {
    const { account, client, generation, isEnded } = authorization;
    if (isEnded || !this.isUsable(account) || !this.isUsable(client)) return undefined;
    const current = this.#generations.get(`${account} ${client}`) ?? 0;
    return generation === current ? this.storedRecord(authorization) : undefined;
  }

  exchange(authorization: ModelAuthorization): 'issued' | 'refused' {
    const stored = this.activeRecord(authorization);
    if (!stored || stored.clientGeneration < this.generationOf(authorization.client)) return 'refused';
    if (stored.rotation >= 0) return this.end(authorization);
    if (stored.usableUntil <= this.now) return 'refused';
    return this.#issue(authorization, stored, 0);
  }

  refresh(authorization: ModelAuthorization, rotation: number): 'issued' | 'refused' {
    const stored = this.activeRecord(authorization);
    if (!stored || authorization.endsAt <= this.now) return 'refused';
    const clientGeneration = this.generationOf(authorization.client);
    const isFirst = stored.clientGeneration < clientGeneration;
    if (isFirst || rotation >= stored.rotation) {
      // In a record without the exchange, this is the expiry of the code.
      if (stored.rotation >= 0 && stored.usableUntil <= this.now) return 'refused';
      const next = Math.max(rotation, stored.rotation) + 1;
      if (isFirst) Object.assign(stored, { clientGeneration, sinceRotation: next });
      return this.#issue(authorization, stored, next);
    }
    const isRecent = this.now - stored.rotatedAt < LIFETIMES.retryWindowSeconds;
    const isPredecessor = rotation === stored.rotation - 1 || stored.rotation === stored.sinceRotation;
    if (isPredecessor && (isRecent || !stored.isConfirmed)) {
      return stored.usableUntil > this.now ? 'issued' : 'refused';
    }
    return this.end(authorization);
  }

  #issue({ endsAt }: ModelAuthorization, stored: Stored, rotation: number): 'issued' | 'refused' {
    const usableUntil = Math.min(this.now + LIFETIMES.refreshTokenSeconds, endsAt);
    Object.assign(stored, { rotation, rotatedAt: this.now, isConfirmed: false, usableUntil });
    return 'issued';
  }

  /** @returns whether the token is active; if it is, its rotation is now confirmed */
  introspect(authorization: ModelAuthorization, token: IssuedAccessToken): boolean {
    const stored = this.activeRecord(authorization);
    if (!stored || token.expiresAt <= this.now || !this.isOfPresent(authorization, token)) return false;
    if (stored.rotation > 0 && stored.rotation === token.rotation) stored.isConfirmed = true;
    return true;
  }

  /** False if the token was issued before a renewal of the client. */
  isOfPresent({ client }: ModelAuthorization, token: Pick<IssuedAccessToken, 'clientGeneration'>): boolean {
    return token.clientGeneration === this.generationOf(client);
  }

  /**
   * True if the holder of the token may end its authorization: not with a token of before a renewal. The service has
   * no number of renewals of a deleted client, so it accepts its old tokens here; its connections have ended already.
   */
  mayEnd(authorization: ModelAuthorization, token: Pick<IssuedAccessToken, 'clientGeneration'>): boolean {
    return this.deleted.has(authorization.client) || this.isOfPresent(authorization, token);
  }

  end(authorization: ModelAuthorization): 'refused' {
    authorization.stored = undefined;
    authorization.isEnded = true;
    return 'refused';
  }

  disconnect(matches: (account: string, client: string) => boolean): void {
    for (const key of [...this.#connected]) {
      const [account = '', client = ''] = key.split(' ');
      if (!matches(account, client)) continue;
      this.#connected.delete(key);
      this.reach.limits.delete(key);
      this.#generations.set(key, (this.#generations.get(key) ?? 0) + 1);
    }
  }

  backUp(): void {
    this.#backup = this.authorizations.map(({ stored }) => stored && { ...stored });
  }

  get hasBackup(): boolean {
    return this.#backup !== undefined;
  }

  /** Restores the token store: what was ended stays ended, even if its record is back. */
  restore(): void {
    for (const [index, authorization] of this.authorizations.entries()) {
      const stored = this.#backup?.[index];
      authorization.stored = stored && { ...stored };
    }
  }
}
