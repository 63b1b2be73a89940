/** Random walks of one user, in three browsers, through sign-in: a real service and a model of the rules in table.ts. */
import { expect } from 'chai';
import fc from 'fast-check';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { type Deployment, startsOn } from '../support/service.ts';
import { type Actor, driver, GRACE_SECONDS, IDLE_SECONDS } from './driver.ts';
import { type Cookie, Model } from './model.ts';
import type { Method, State } from './table.ts';

const METHODS: readonly Method[] = ['password', 'passkey', 'strong', 'weak'];
const BROWSERS = 3;

/** A step of browser `at`; `open` is false if the pages do not offer it now. */
interface Step {
  readonly name: string;
  readonly open: boolean;
  readonly run: () => Promise<unknown>;
  readonly expected: () => void;
}

export function describeWalks(walks: Partial<Record<Deployment, { readonly walks: number; readonly steps: number }>>) {
  for (const [deployment, sizes] of Object.entries(walks)) {
    const stores = { embedded: [], postgres: [postgresServer], 'postgres+redis': [postgresServer, redisServer] };
    describeOn(stores[deployment as Deployment], `random walks through sign-in, ${deployment}`, () =>
      walk(deployment as Deployment, sizes),
    );
  }
}

function walk(deployment: Deployment, { walks, steps }: { readonly walks: number; readonly steps: number }): void {
  const drive = driver(startsOn(deployment));
  const { on, given, act, stateOf, methodsOf } = drive;

  async function start() {
    // As the model begins, whatever an earlier walk has reloaded.
    await drive.reload({ isRequired: true, isWeakStrong: false });
    const first = await given({ held: ['weak'], from: 'password' });
    const shared = { passkey: first.passkey, who: first.who };
    const actorOf = (browser: Actor['browser']): Actor => ({
      browser,
      get who() {
        return shared.who;
      },
      set who(who) {
        shared.who = who;
      },
      get passkey() {
        return shared.passkey;
      },
      set passkey(passkey) {
        shared.passkey = passkey;
      },
    });
    const browsers = [first.browser];
    while (browsers.length < BROWSERS) browsers.push(on.traveller());
    const model = new Model(BROWSERS);
    model.signIn(0, 'password');
    return { actors: browsers.map(actorOf), model, copies: [] as Copy[] };
  }

  type World = Awaited<ReturnType<typeof start>>;

  /** Lists what each browser, and time, can do now. */
  function stepsIn({ actors, model, copies }: World): Step[] {
    const list: Step[] = [];
    const add = (name: string, open: boolean, run: () => Promise<unknown>, expected: () => void): void => {
      if (open) list.push({ name, open, run, expected });
    };
    for (const [at, actor] of actors.entries()) {
      const state = model.stateOf(at);
      const isIn = state !== 'nobody';
      const mayAct = state === 'free' || state === 'warned';
      const named = (what: string): string => `${what} in browser ${at}`;
      for (const method of METHODS) {
        const has = model.held.has(method);
        add(
          named(method),
          has && !isIn,
          () => act(actor, method),
          () => model.signIn(at, method),
        );
        add(
          named(`${method} for a client`),
          has && method !== 'strong' && method !== 'weak',
          () => act(actor, `${method} for a client`),
          () => model.signInForClient(at, method),
        );
        add(
          named(`confirm by ${method}`),
          has && isIn && !model.isRecent(at) && model.mayConfirm(at, method),
          () => act(actor, `confirm by ${method}`),
          () => model.confirm(at, method),
        );
      }
      for (const [method, event] of [
        ['passkey', 'add passkey'],
        ['strong', 'link strong'],
      ] as const) {
        add(
          named(event),
          model.mayAdd(at) && !model.held.has(method),
          () => act(actor, event),
          () => model.add(at, method),
        );
      }
      add(
        named('remove passkey'),
        mayAct && !model.hasRole && model.held.has('passkey') && model.isRecent(at),
        () => act(actor, 'remove passkey'),
        () => model.remove(at, 'passkey'),
      );
      add(
        named('sign out'),
        isIn,
        () => act(actor, 'sign out here'),
        () => model.end(at),
      );
      add(
        named('sign out everywhere else'),
        mayAct,
        () => act(actor, 'sign out everywhere'),
        () => model.endAllBut(at),
      );
      add(
        named('end each other session'),
        mayAct && model.living().length > 1,
        () => drive.endSessions(actor.browser, 'others'),
        () => model.endEachBut(at),
      );
      add(
        named('copy the cookie and the record'),
        isIn,
        async () => void copies.push({ cookie: model.cookieOf(at), ...(await drive.copyOf(actor.browser)) }),
        () => {},
      );
      add(
        named('set a new password'),
        mayAct,
        () => act(actor, 'set a new password'),
        () => model.setPassword(at),
      );
      add(
        named('use an invitation'),
        !model.isSuspended,
        () => act(actor, 'use invitation'),
        () => model.useInvitation(at),
      );
      add(
        named('use a mailed link'),
        !model.isSuspended,
        () => act(actor, 'use forgotten in another browser'),
        () => model.useForgotten(),
      );
      const confirmsNow = isIn && !model.isRecent(at) && model.mayConfirm(at, 'password');
      const other = model.otherThan(at);
      const there = other === undefined ? undefined : actors[other];
      add(
        named('confirm by password while all other sessions end'),
        there !== undefined && confirmsNow,
        async () => there && drive.confirmDuring(actor, await drive.readyToEndOthers(there)),
        // The session ends, whichever comes first.
        () => model.endAllBut(other ?? at),
      );
      add(
        named('confirm by password while another browser ends the session'),
        there !== undefined && confirmsNow,
        async () => there && drive.confirmDuring(actor, await drive.readyToEndSessions(there.browser, 'others')),
        () => model.endEachBut(other ?? at),
      );
    }
    const [first] = actors;
    if (!first) return list;
    add(
      model.isSuspended ? 'end of the suspension' : 'suspension',
      true,
      () => act(first, model.isSuspended ? 'end of the suspension' : 'suspension'),
      () => model.toggleSuspension(),
    );
    for (const change of [{ isRequired: !model.isRequired }, { isWeakStrong: !model.isWeakStrong }]) {
      const { isRequired = model.isRequired, isWeakStrong = model.isWeakStrong } = { ...change };
      const settings = { isRequired, isWeakStrong };
      add(
        `a reload with ${JSON.stringify(change)}`,
        true,
        () => drive.reload(settings),
        () => Object.assign(model, settings),
      );
    }
    add(
      'get a role',
      !model.hasRole && !model.isSuspended,
      async () => {
        await act(first, 'get a role');
        await drive.beginGrace(first);
      },
      () => model.getRole(),
    );
    for (const seconds of [1, 601, GRACE_SECONDS, IDLE_SECONDS]) {
      add(
        `${seconds} seconds pass`,
        true,
        async () => on.clock.advance(seconds),
        () => model.pass(seconds),
      );
    }
    return list;
  }

  async function check({ actors, model }: World, done: readonly string[]): Promise<void> {
    const said = done.join(', then ');
    for (const [at, { browser }] of actors.entries()) {
      expect(await stateOf(browser), `browser ${at}: ${said}`).to.equal(model.stateOf(at));
      model.visit(at);
    }
    const [first] = actors;
    if (first) expect(await methodsOf(first), said).to.equal(model.held.size - 1);
  }

  /** The token store is restored from the time of each copy. */
  async function checkCopies({ model, copies }: World, done: readonly string[]): Promise<void> {
    for (const { cookie, stateWhenPutBack } of copies) {
      if (model.isPresent(cookie)) continue;
      expect(await stateWhenPutBack(), `an earlier cookie and record: ${done.join(', then ')}`).to.equal('nobody');
    }
  }

  it(`after each of ${walks} × ${steps} steps, every place that reads, prolongs or issues agrees with the model`, async () => {
    const choices = fc.array(fc.nat(), { minLength: steps, maxLength: steps });
    const property = fc.asyncProperty(choices, async (chosen) => {
      const world = await start();
      const done: string[] = [];
      for (const choice of chosen) {
        const open = stepsIn(world);
        const step = open[choice % open.length];
        if (!step) break;
        done.push(step.name);
        await step.run().catch((cause: unknown) => {
          throw new Error(`failed: ${done.join(', then ')}`, { cause });
        });
        step.expected();
        await check(world, done);
      }
      const [first] = world.actors;
      if (first && world.model.isSuspended) await act(first, 'end of the suspension');
      await checkCopies(world, done);
    });
    await fc.assert(property, { numRuns: walks, endOnFailure: true, includeErrorInReport: true });
  });
}

interface Copy {
  readonly cookie: Cookie;
  stateWhenPutBack(): Promise<State>;
}
