/**
 * What is promised of authorizations, without stores, networks or parallel requests: the reference
 * that a random walk compares the service with. Times are seconds.
 */

export const LIFETIMES = {
  // Ten seconds beside every time that a walk can reach, so that a slow machine changes no answer.
  retryWindowSeconds: 70,
  authorizationCodeSeconds: 610,
  accessTokenSeconds: 3_610,
  refreshTokenSeconds: 30 * 86_400 + 10,
  absoluteAgeSeconds: 365 * 86_400 + 10,
} as const;
const REMEMBER_CODE = 3_600;
const REMEMBER_EXPIRED = 86_400;

/** What the token store holds of an authorization: a restored backup brings an older one back. */
interface Kept {
  /** -1 until the code was exchanged. */
  rotation: number;
  rotatedAt: number;
  isConfirmed: boolean;
  usableUntil: number;
}

export interface ModelAuthorization {
  readonly account: string;
  readonly client: string;
  readonly generation: number;
  readonly endsAt: number;
  kept: Kept | undefined;
  /** Ended by itself, and recorded. */
  isEnded: boolean;
}

export class Model {
  now = 0;
  readonly suspended = new Set<string>();
  readonly deleted = new Set<string>();
  readonly authorizations: ModelAuthorization[] = [];
  readonly #generations = new Map<string, number>();
  readonly #connected = new Set<string>();
  #backup: readonly (Kept | undefined)[] | undefined;

  connect(account: string, client: string): ModelAuthorization {
    const key = `${account} ${client}`;
    this.#connected.add(key);
    const authorization: ModelAuthorization = {
      account,
      client,
      generation: this.#generations.get(key) ?? 0,
      endsAt: this.now + LIFETIMES.absoluteAgeSeconds,
      kept: {
        rotation: -1,
        rotatedAt: this.now,
        isConfirmed: false,
        usableUntil: this.now + LIFETIMES.authorizationCodeSeconds,
      },
      isEnded: false,
    };
    this.authorizations.push(authorization);
    return authorization;
  }

  isUsable(name: string): boolean {
    return !this.suspended.has(name) && !this.deleted.has(name);
  }

  /** The record, as long as the token store keeps it. */
  remembered({ kept }: ModelAuthorization): Kept | undefined {
    const more = kept && kept.rotation < 0 ? REMEMBER_CODE : REMEMBER_EXPIRED;
    return kept && kept.usableUntil + more > this.now ? kept : undefined;
  }

  /** The same, where the authorization counts. */
  counted(authorization: ModelAuthorization): Kept | undefined {
    const { account, client, generation } = authorization;
    if (!this.isUsable(account) || !this.isUsable(client)) return undefined;
    const current = this.#generations.get(`${account} ${client}`) ?? 0;
    return generation === current ? this.remembered(authorization) : undefined;
  }

  exchange(authorization: ModelAuthorization): 'issued' | 'refused' {
    const kept = this.counted(authorization);
    if (!kept) return 'refused';
    if (kept.rotation >= 0) return this.end(authorization);
    if (kept.usableUntil <= this.now) return 'refused';
    return this.#issue(authorization, kept, 0);
  }

  refresh(authorization: ModelAuthorization, rotation: number): 'issued' | 'refused' {
    const kept = this.counted(authorization);
    if (!kept || kept.rotation < 0 || authorization.endsAt <= this.now) return 'refused';
    if (rotation >= kept.rotation) {
      if (kept.usableUntil <= this.now) return 'refused';
      return this.#issue(authorization, kept, rotation + 1);
    }
    const isYoung = this.now - kept.rotatedAt < LIFETIMES.retryWindowSeconds;
    if (rotation === kept.rotation - 1 && (isYoung || !kept.isConfirmed)) {
      return kept.usableUntil > this.now ? 'issued' : 'refused';
    }
    return this.end(authorization);
  }

  #issue({ endsAt }: ModelAuthorization, kept: Kept, rotation: number): 'issued' | 'refused' {
    const usableUntil = Math.min(this.now + LIFETIMES.refreshTokenSeconds, endsAt);
    Object.assign(kept, { rotation, rotatedAt: this.now, isConfirmed: false, usableUntil });
    return 'issued';
  }

  /** @returns whether the token is good; seen good, it proves that its answer has arrived. */
  introspect(
    authorization: ModelAuthorization,
    token: { readonly rotation: number; readonly expiresAt: number },
  ): boolean {
    const kept = this.counted(authorization);
    if (!kept || token.expiresAt <= this.now) return false;
    if (kept.rotation > 0 && kept.rotation === token.rotation) kept.isConfirmed = true;
    return true;
  }

  end(authorization: ModelAuthorization): 'refused' {
    authorization.kept = undefined;
    authorization.isEnded = true;
    return 'refused';
  }

  disconnect(isMeant: (account: string, client: string) => boolean): void {
    for (const key of [...this.#connected]) {
      const [account = '', client = ''] = key.split(' ');
      if (!isMeant(account, client)) continue;
      this.#connected.delete(key);
      this.#generations.set(key, (this.#generations.get(key) ?? 0) + 1);
    }
  }

  backUp(): void {
    this.#backup = this.authorizations.map(({ kept }) => kept && { ...kept });
  }

  get hasBackup(): boolean {
    return this.#backup !== undefined;
  }

  /** The token store of the backup, and after it the documented step: `revoke --recorded`. */
  restore(): void {
    for (const [index, authorization] of this.authorizations.entries()) {
      const kept = this.#backup?.[index];
      authorization.kept = authorization.isEnded || !kept ? undefined : { ...kept };
    }
  }
}
