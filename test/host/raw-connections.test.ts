/** Random bytes on raw connections, to every route of both listeners. */
import { inspect } from 'node:util';
import fc from 'fast-check';
import { basic } from '../support/oauth.ts';
import { createPerson, type Person } from '../support/person.ts';
import { repeated } from '../support/repetitions.ts';
import { startSeeded } from '../support/seeded.ts';
import { PATIENCE_MS } from '../support/timeout-factor.ts';
import { drawConnection, type Ingredients, type Target, tryConnection } from './raw-connections.ts';

/** `REQUESTS=500000 SEED=… npm test -- test/host/raw-connections.test.ts` tries more, or the same. */
const REQUESTS = Number(process.env.REQUESTS ?? repeated(150));
const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));

const SECRET = 'secret-of-the-tests-0123456789abcdefghij';

const number = fc.nat(65_535);
const numbers = fc.array(number, { maxLength: 60, size: 'max' });
const requests = fc.array(numbers, { minLength: 1, maxLength: 5, size: 'max' });
const connection = fc.array(number, { minLength: 4, maxLength: 4 });
/** Connections that are open at the same time. */
const batch = fc.noBias(fc.array(fc.tuple(connection, requests), { minLength: 1, maxLength: 40, size: 'max' }));
/** Batches from one seed, before the session is checked. */
const BATCHES = 10;

describe('raw connections', () => {
  const sender = [{ name: 'tests', secret: SECRET }];
  const senders = { changes: sender, leaks: sender, audit: sender };
  const on = startSeeded({ settings: { senders, log: { level: 'debug' } } });

  it(`random requests are answered or their connection is closed, without an internal error (${REQUESTS}, seed ${seed})`, async function () {
    this.timeout(120_000 + REQUESTS * 20);
    const faults = catchFaults();
    let sent = 0;
    let round = seed;
    let person = createPerson(on.issuer);
    let made = await collectIngredients(person);
    try {
      while (sent < REQUESTS) {
        // A form that was sent may have ended the session.
        if ((await person.get('/profile')).status !== 200) {
          person = createPerson(on.issuer);
          made = await collectIngredients(person);
        }
        const property = fc.asyncProperty(batch, async (drawn) => {
          const connections = drawn.map(([own, others]) => drawConnection([own, ...others], made));
          for (const { requests } of connections) sent += requests.length;
          const [problems, others] = await Promise.all([
            Promise.all(connections.map(tryConnection)),
            problemsOfOthers(),
          ]);
          const found = connections.flatMap(({ pieces }, index) =>
            (problems[index] ?? []).map((problem) => `${problem}: ${JSON.stringify(pieces)}`),
          );
          found.push(...others, ...faults.splice(0).map((fault) => inspect(fault)), ...problemsInLog());
          if (found.length > 0) throw new Error(found.join('\n'));
        });
        // After that time, report the failure that is the shortest so far.
        await fc.assert(property, {
          numRuns: BATCHES,
          seed: round,
          interruptAfterTimeLimit: PATIENCE_MS,
          includeErrorInReport: true,
        });
        round += 1;
      }
    } finally {
      faults.restore();
    }
  });

  /** Returns what goes wrong for other users of both listeners. */
  async function problemsOfOthers(): Promise<string[]> {
    const urls = [`${on.issuer}/login`, `${on.service.operatorsUrl}/healthz`];
    const answers = await Promise.all(
      urls.map((url) =>
        fetch(url).then(async (answer) => {
          await answer.text();
          return answer.status;
        }),
      ),
    );
    return answers.flatMap((status, index) => (status === 200 ? [] : [`${urls[index]}: ${status}`]));
  }

  /** Returns the problems in the log since the last call, and empties it. */
  function problemsInLog(): string[] {
    const lines = on.service.logLines as string[];
    return lines.splice(0).filter((line) => {
      const { level, err: _, ...fields } = JSON.parse(line);
      return level >= 50 || /\p{Cc}/u.test(line.trimEnd()) || /\\[nrtbfu]/.test(JSON.stringify(fields));
    });
  }

  /** Signs in, and opens every page to find its forms. */
  async function collectIngredients(person: Person): Promise<Ingredients> {
    const { service, seeded, issuer } = on;
    await person.signIn(seeded.other);
    const { confidential, public: publicClient, resourceServer, machine } = seeded.clients;
    const ids = [confidential.id, seeded.elsewhere.id, seeded.organization.id, publicClient.id];
    const at = (url: string, routes: readonly { method: string; path: string }[]): Target[] =>
      routes.map(({ method, path }) => ({ url: new URL(url), method, path }));
    const publicTargets = at(issuer, service.routes());
    const forms = new Map<string, readonly [string, string][]>();
    const pages = publicTargets
      .filter(({ method, path }) => method === 'GET' && !/\/(requests|changes)$/.test(path))
      .map(({ path }) => {
        const id = path.includes('/organizations/') ? seeded.elsewhere.id : confidential.id;
        return person.get(path.replace(/:\w+/g, id));
      });
    for (const page of await Promise.all(pages)) {
      for (const form of page.forms) {
        forms.set(new URL(form.action, page.url).pathname, form.values);
      }
    }
    return {
      targets: [...publicTargets, ...at(service.operatorsUrl, service.operatorsRoutes)],
      ids,
      cookie: person.cookieHeader('/profile'),
      credentials: [...[resourceServer, confidential, machine].map(basic), `Bearer ${SECRET}`],
      forms,
    };
  }
});

/** Collects what would end the process, instead of mocha. */
function catchFaults(): unknown[] & { restore(): void } {
  const faults: unknown[] = [];
  const events = ['uncaughtException', 'unhandledRejection'] as const;
  const others = events.map((event) => process.listeners(event as 'uncaughtException'));
  const record = (error: unknown): void => void faults.push(error);
  for (const event of events) process.removeAllListeners(event).on(event, record);
  const restore = (): void => {
    for (const [index, event] of events.entries()) {
      process.off(event, record);
      for (const listener of others[index] ?? []) process.on(event, listener);
    }
  };
  return Object.assign(faults, { restore });
}
