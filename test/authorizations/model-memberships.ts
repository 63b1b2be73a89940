/** Model of two people's memberships in an organization, and of the time of their latest change. */
import type { Role } from '../../src/accounts/access/reach.ts';
import type { ReachModel } from './reach-model.ts';

export const DAY = 86_400;
const REMEMBERED_SECONDS = 30 * DAY;

interface KnownTime {
  readonly asOf: number;
  readonly isImport: boolean;
  /** Absent while the membership exists. */
  readonly forgottenAt?: number;
}

export class ModelMemberships {
  now = 0;
  readonly #reach: ReachModel;
  readonly #times = new Map<string, KnownTime>();

  /** By person and warehouse, the time at which a command gave the rights that the person has. */
  readonly #rights = new Map<string, number>();

  constructor(reach: ReachModel) {
    this.#reach = reach;
    // Commands set the memberships with which a walk begins.
    for (const name of ['person', 'other']) this.byCommand(name, this.#roleOf(name));
    this.#rights.set('person rotterdam', this.now);
  }

  /** @returns the expected result of the line */
  byPush(name: string, role: Role | undefined, late: number): 'ok' | 'unchanged' | 'outdated' {
    const asOf = this.now - late;
    const known = this.#times.get(name);
    if (known && known.asOf > asOf) return 'outdated';
    const isChanged = this.#roleOf(name) !== role;
    this.#set(name, role, { asOf, isImport: false });
    return isChanged ? 'ok' : 'unchanged';
  }

  byImport(name: string, role: Role | undefined, late: number): void {
    const asOf = this.now - late;
    const known = this.#times.get(name);
    const isNewer = known !== undefined && known.asOf > asOf && !known.isImport;
    // An import compares memberships that exist or that its file contains.
    const isWithin = ['hamburg', 'rotterdam'].some((one) => (this.#rights.get(`${name} ${one}`) ?? -Infinity) > asOf);
    if (isWithin && role === undefined) return;
    if (isNewer && (role !== undefined || known.forgottenAt === undefined)) return;
    if (role === undefined && this.#roleOf(name) === undefined) return;
    this.#set(name, role, { asOf, isImport: true });
  }

  /** A command or a page is newer than all before, and known even if it changes nothing. */
  byCommand(name: string, role: Role | undefined): void {
    this.#set(name, role, { asOf: this.now, isImport: false });
  }

  /** Rights that are newer than a file also keep it from removing the membership. */
  rightsByCommand(name: string, warehouse: string, isGiven: boolean): void {
    if (isGiven) this.#rights.set(`${name} ${warehouse}`, this.now);
    else this.#rights.delete(`${name} ${warehouse}`);
  }

  /** @param now the time, in seconds */
  passTo(now: number): void {
    this.now = now;
    for (const [name, { forgottenAt = Number.POSITIVE_INFINITY }] of this.#times) {
      if (forgottenAt <= now) this.#times.delete(name);
    }
  }

  #roleOf(name: string): Role | undefined {
    return this.#reach.roles.get(`${name} organization`);
  }

  #set(name: string, role: Role | undefined, time: Omit<KnownTime, 'forgottenAt'>): void {
    if (role === undefined) this.#reach.removeMember(name, 'organization');
    else this.#reach.roles.set(`${name} organization`, role);
    const forgottenAt = this.now + REMEMBERED_SECONDS;
    this.#times.set(name, role === undefined ? { ...time, forgottenAt } : time);
  }
}
