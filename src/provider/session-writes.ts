/** How sessions are written: signing in begins one, and no other write brings one back. */
import type Provider from 'oidc-provider';
import type { AdapterPayload, KoaContextWithOIDC } from 'oidc-provider';
import type { Clock } from '../clock.ts';
import { epochSeconds } from '../clock.ts';
import type { TokenStore } from '../storage/token-store.ts';

export type Session = InstanceType<Provider['Session']>;

/**
 * Keeps a session for so many seconds from now.
 *
 * @returns whether it is kept: one that was ended since it was read is not.
 */
export type SaveSession = (session: Session, seconds: number) => Promise<boolean>;

/** Puts our way to write in place of the engine's, which writes at each request that has a session. */
export function installSessionWrites({
  provider,
  store,
  clock,
}: {
  provider: Provider;
  store: TokenStore;
  clock: Clock;
}): SaveSession {
  // The types leave these members out.
  const prototype = provider.Session.prototype as unknown as SessionModel;
  const { resetIdentifier } = prototype;
  const context = () => (provider.constructor as typeof Provider).ctx;

  const save: SaveSession = async (session, seconds) => {
    const { oldId } = session as unknown as SessionModel;
    const begins = isBegun(session as unknown as SessionModel);
    session.exp = epochSeconds(clock) + seconds;
    const { payload } = await (session as unknown as SessionModel).getValueAndPayload();
    const { jti: _, exp: __, ...data } = payload;
    const kept = [session.jti, session.uid, data, session.exp] as const;
    if (!begins) return store.replaceSession(...kept);
    if (oldId !== undefined) await store.remove('session', oldId);
    await store.writeSession(...kept);
    return true;
  };

  prototype.save = async function (seconds) {
    const session = this as unknown as Session;
    const ctx = context();
    const isResumed = ctx?.oidc.route === 'resume' && !isBegun(this);
    // Nobody is signed in, so there is nothing to keep.
    const isKept = session.accountId !== undefined && (await save(session, seconds));
    // The engine has set it already. Of several resumptions at once one may begin a session, and the
    // answer of another, that comes late, would put the cookie of before in its place.
    if (ctx && (!isKept || isResumed)) dropCookie(ctx, provider.cookieName('session'));
    this.touched = false;
  };

  // Against planted identifiers, where somebody signs in. The engine renews it at every resumption:
  // of several at once one would win, and the browser keep the cookie of another.
  prototype.resetIdentifier = function () {
    const { result, entities } = context()?.oidc ?? {};
    if (result?.login && entities?.Interaction?.prompt.name === 'login') resetIdentifier.call(this);
  };
  return save;
}

/** Not read from the store, or with another identifier than it was. */
const isBegun = ({ exp, oldId }: SessionModel): boolean => exp === undefined || oldId !== undefined;

/** As if this answer had not named it. */
function dropCookie({ response }: KoaContextWithOIDC, name: string): void {
  const all = [response.get('set-cookie') as string | readonly string[]].flat();
  const others = all.filter(
    (line) => !line.startsWith(`${name}=`) && !line.startsWith(`${name}.sig=`),
  );
  response.remove('set-cookie');
  for (const line of others) if (line !== '') response.append('set-cookie', line);
}

interface SessionModel {
  readonly exp?: number;
  /** The identifier before `resetIdentifier`. */
  readonly oldId?: string;
  touched: boolean;
  getValueAndPayload(): Promise<{ payload: AdapterPayload }>;
  resetIdentifier(this: SessionModel): void;
  save(this: SessionModel, seconds: number): Promise<void>;
}
