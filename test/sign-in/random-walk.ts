/** Random walks of one user, in three browsers, through sign-in: a real service and a model of the rules in table.ts. */
import { expect } from 'chai';
import fc from 'fast-check';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { type Deployment, startsOn } from '../support/service.ts';
import { type Actor, driver, GRACE_SECONDS, IDLE_SECONDS } from './driver.ts';
import { type Cookie, Model } from './model.ts';
import type { Event, Method, State } from './table.ts';

const METHODS: readonly Method[] = ['password', 'passkey', 'strong', 'weak'];
const BROWSERS = 3;

/** A step, whether it is possible now, what it does, and what the model expects of it. */
type Step = readonly [name: string, isOpen: boolean, run: () => Promise<unknown>, expected: () => void];

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
  const stepsIn = (world: World): Step[] =>
    [...world.actors.flatMap((actor, at) => stepsOf(world, actor, at)), ...commonSteps(world)].filter(
      ([, isOpen]) => isOpen,
    );

  /** The steps of browser `at`. */
  function stepsOf({ actors, model, copies }: World, actor: Actor, at: number): Step[] {
    const isIn = model.stateOf(at) !== 'nobody';
    const mayAct = model.mayAct(at);
    const isSignedOut = !isIn;
    const mayConfirm = (method: Method) => isIn && !model.isRecent(at) && model.mayConfirm(at, method);
    const mayUseLink = !model.isSuspended;
    const other = model.otherThan(at) ?? at;
    const there = actors[other] ?? actor;
    const ends = there !== actor && mayConfirm('password');
    const during = async (event: Promise<() => Promise<unknown>>) => drive.confirmDuring(actor, await event);
    const methods = METHODS.flatMap((method): Step[] => {
      const has = model.held.has(method);
      const isLocal = method === 'password' || method === 'passkey';
      return [
        [method, has && isSignedOut, () => act(actor, method), () => model.signIn(at, method)],
        [
          `${method} for a client`,
          has && isLocal,
          () => act(actor, `${method} for a client`),
          () => model.signInForClient(at, method),
        ],
        [
          `confirm by ${method}`,
          has && mayConfirm(method),
          () => act(actor, `confirm by ${method}`),
          () => model.confirm(at, method),
        ],
      ];
    });
    const added = ([method, event]: readonly ['passkey' | 'strong', Event]): Step => [
      event,
      model.mayAdd(at) && !model.held.has(method),
      () => act(actor, event),
      () => model.add(at, method),
    ];
    const mayRemove = mayAct && !model.hasRole && model.held.has('passkey') && model.isRecent(at);
    const copy = async () => copies.push({ cookie: model.cookieOf(at), ...(await drive.copyOf(actor.browser)) });
    const steps: Step[] = [
      ...methods,
      added(['passkey', 'add passkey']),
      added(['strong', 'link strong']),
      ['remove passkey', mayRemove, () => act(actor, 'remove passkey'), () => model.remove(at, 'passkey')],
      ['sign out', isIn, () => act(actor, 'sign out here'), () => model.end(at)],
      ['sign out everywhere else', mayAct, () => act(actor, 'sign out everywhere'), () => model.endAllBut(at)],
      [
        'end each other session',
        mayAct && model.living().length > 1,
        () => drive.endSessions(actor.browser, 'others'),
        () => model.endEachBut(at),
      ],
      ['copy the cookie and the record', isIn, copy, () => {}],
      ['set a new password', mayAct, () => act(actor, 'set a new password'), () => model.setPassword(at)],
      ['use an invitation', mayUseLink, () => act(actor, 'use invitation'), () => model.useInvitation(at)],
      [
        'use a mailed link',
        mayUseLink,
        () => act(actor, 'use forgotten in another browser'),
        () => model.useForgotten(),
      ],
      // The session ends, whichever comes first.
      [
        'confirm by password while all other sessions end',
        ends,
        () => during(drive.readyToEndSessions(there.browser, 'all')),
        () => model.endAllBut(other),
      ],
      [
        'confirm by password while another browser ends the session',
        ends,
        () => during(drive.readyToEndSessions(there.browser, 'others')),
        () => model.endEachBut(other),
      ],
    ];
    return steps.map(([name, ...step]) => [`${name} in browser ${at}`, ...step]);
  }

  /** The steps that are of no browser. */
  function commonSteps({ actors: [actor], model }: World): Step[] {
    if (!actor) return [];
    const suspension = model.isSuspended ? 'end of the suspension' : 'suspension';
    const reload = (change: Partial<Parameters<typeof drive.reload>[0]>): Step => {
      const settings = { isRequired: model.isRequired, isWeakStrong: model.isWeakStrong, ...change };
      const name = `a reload with ${JSON.stringify(change)}`;
      return [name, true, () => drive.reload(settings), () => Object.assign(model, settings)];
    };
    const giveRole = async () => {
      await act(actor, 'get a role');
      await drive.beginGrace(actor);
    };
    return [
      [suspension, true, () => act(actor, suspension), () => model.toggleSuspension()],
      reload({ isRequired: !model.isRequired }),
      reload({ isWeakStrong: !model.isWeakStrong }),
      ['get a role', !model.hasRole && !model.isSuspended, giveRole, () => model.getRole()],
      ...[1, 601, GRACE_SECONDS, IDLE_SECONDS].map((seconds): Step => {
        const pass = async () => on.clock.advance(seconds);
        return [`${seconds} seconds pass`, true, pass, () => model.pass(seconds)];
      }),
    ];
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

  it(`after each of ${walks} × ${steps} random steps, every use of a session agrees with the reference model`, async () => {
    const choices = fc.array(fc.nat(), { minLength: steps, maxLength: steps });
    const property = fc.asyncProperty(choices, async (chosen) => {
      const world = await start();
      const done: string[] = [];
      for (const choice of chosen) {
        const open = stepsIn(world);
        const step = open[choice % open.length];
        if (!step) break;
        const [name, , run, expected] = step;
        done.push(name);
        await run().catch((cause: unknown) => {
          throw new Error(`failed: ${done.join(', then ')}`, { cause });
        });
        expected();
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
