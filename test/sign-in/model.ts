/** A model of the rules in table.ts: what each browser of one user may do, written apart from the service. */
import { ABSOLUTE_SECONDS, GRACE_SECONDS, IDLE_SECONDS } from './driver.ts';
import type { Method, State } from './table.ts';

const RECENT_SECONDS = 600;

/** Names one cookie value of one session. */
export interface Cookie {
  readonly session: number;
  readonly version: number;
}

interface Session {
  readonly id: number;
  /** Counts the values of its cookie. */
  version: number;
  /** How it was proved, and when. */
  readonly proofs: Map<Method, number>;
  signedInAt: number;
  expiresAt: number;
}

/** Times are in seconds since the walk began. */
export class Model {
  now = 0;
  hasRole = false;
  isSuspended = false;
  /** The settings now. */
  isRequired = true;
  isWeakStrong = false;
  readonly held = new Set<Method>(['password', 'weak']);
  private graceFrom = 0;
  private ids = 0;
  private readonly sessions: (Session | undefined)[];

  constructor(browsers: number) {
    this.sessions = Array.from({ length: browsers }, () => undefined);
  }

  stateOf(at: number): State {
    const session = this.sessions[at];
    return session ? this.standing([...session.proofs.keys()]) : 'nobody';
  }

  isRecent(at: number): boolean {
    const { proofs = new Map<Method, number>() } = this.sessions[at] ?? {};
    return [...proofs.values()].some((when) => this.now - when <= RECENT_SECONDS);
  }

  hasProof = (at: number, method: Method): boolean => this.sessions[at]?.proofs.has(method) ?? false;

  mayAct = (at: number): boolean => ['free', 'warned'].includes(this.stateOf(at));

  mayConfirm(at: number, method: Method): boolean {
    return this.stateOf(at) !== 'must use' && !(method === 'password' && this.standing(['password']) === 'must use');
  }

  mayAdd = (at: number): boolean => !['nobody', 'must use'].includes(this.stateOf(at)) && this.isRecent(at);

  /** The browsers with a session. */
  living = (): number[] => this.sessions.flatMap((session, at) => (session ? [at] : []));

  /** Another browser that may act. */
  otherThan = (at: number): number | undefined => this.living().find((other) => other !== at && this.mayAct(other));

  isPresent = ({ session, version }: Cookie): boolean =>
    this.sessions.some((one) => one?.id === session && one.version === version);

  cookieOf(at: number): Cookie {
    const { id = 0, version = 0 } = this.sessions[at] ?? {};
    return { session: id, version };
  }

  signIn(at: number, method: Method): void {
    if (this.isSuspended || (method === 'password' && this.standing(['password']) === 'must use')) return;
    this.ids += 1;
    this.sessions[at] = { id: this.ids, version: 0, proofs: new Map(), signedInAt: 0, expiresAt: 0 };
    this.confirm(at, method);
  }

  /** Adds a proof to the session, if there is one; a password that must be followed by a method starts another. */
  signInForClient(at: number, method: Method): void {
    if (this.isSuspended) return;
    const withPassword = this.standing(['password']);
    if (method === 'password' && withPassword === 'must use') return;
    const startsAnother = method === 'password' && withPassword === 'must add';
    if (!this.sessions[at] || startsAnother) this.signIn(at, method);
    else this.confirm(at, method);
  }

  confirm(at: number, method: Method): void {
    const session = this.sessions[at];
    if (!session) return;
    session.proofs.set(method, this.now);
    session.signedInAt = this.now;
    this.renew(session);
  }

  add(at: number, method: Method): void {
    // The new method is a proof only if one was required.
    if (this.stateOf(at) !== 'free') this.confirm(at, method);
    this.held.add(method);
  }

  /** The end of a suspension brings no session back. */
  toggleSuspension(): void {
    this.isSuspended = !this.isSuspended;
    if (this.isSuspended) this.endEachBut(-1);
  }

  remove(at: number, method: Method): void {
    this.held.delete(method);
    this.endAllBut(at);
  }

  end(at: number): void {
    this.sessions[at] = undefined;
  }

  endEachBut(at: number): void {
    for (const other of this.living()) if (other !== at) this.end(other);
  }

  /** Unlike `endEachBut`, the session that stays gets another cookie. */
  endAllBut(at: number): void {
    this.endEachBut(at);
    const session = this.sessions[at];
    if (session) this.renew(session);
  }

  setPassword(at: number): void {
    this.endEachBut(at);
    this.confirm(at, 'password');
  }

  useInvitation(at: number): void {
    for (const other of this.living()) this.end(other);
    this.signIn(at, 'password');
  }

  /** A mailed link ends the grace period of a user with a strong method, and signs no user in. */
  useForgotten(): void {
    for (const other of this.living()) this.end(other);
    if (this.standing(['password']) !== 'free' && this.hasStrong()) this.graceFrom = Number.NEGATIVE_INFINITY;
  }

  getRole(): void {
    this.hasRole = true;
    this.graceFrom = this.now;
  }

  pass(seconds: number): void {
    this.now += seconds;
    for (const at of this.living()) if (this.now >= (this.sessions[at]?.expiresAt ?? 0)) this.end(at);
  }

  /** A page was opened: the session is idle from now on. */
  visit(at: number): void {
    const session = this.sessions[at];
    if (session && this.mayAct(at)) this.prolong(session);
  }

  private renew(session: Session): void {
    session.version += 1;
    this.prolong(session);
  }

  private prolong(session: Session): void {
    session.expiresAt = Math.min(this.now + IDLE_SECONDS, session.signedInAt + ABSOLUTE_SECONDS);
  }

  private readonly isStrong = (method: Method): boolean =>
    method === 'passkey' || method === 'strong' || (method === 'weak' && this.isWeakStrong);

  private readonly hasStrong = (): boolean => [...this.held].some(this.isStrong);

  private standing(proofs: readonly Method[]): State {
    if (!this.isRequired || !this.hasRole || proofs.some(this.isStrong)) return 'free';
    if (this.now < this.graceFrom + GRACE_SECONDS) return 'warned';
    return this.hasStrong() ? 'must use' : 'must add';
  }
}
