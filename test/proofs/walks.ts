/** Whether the model of test/proofs/model.ts keeps its promises, and gives the answers that the service gave in random walks. */
import { type IssuedAccessToken, LIFETIMES, Model, type ModelAuthorization } from '../authorizations/model.ts';
import { walk } from '../authorizations/random-walk.ts';
import {
  accessOf,
  answerOf,
  DEFECTS,
  type Defect,
  ENDS,
  explore,
  keyOf,
  LAST,
  refreshOf,
  type Seeded,
  TOKENS,
  type Tokens,
} from './model.ts';

/** The steps of one authorization, until it meets what the model leaves out. */
interface Trace {
  readonly steps: string[];
  readonly client: string;
  readonly clientGeneration: number;
  isOver: boolean;
}

/** Writes down what a walk asks for each authorization, with the answers, which the walk compares with the service's. */
class RecordingModel extends Model {
  readonly traces = new Map<ModelAuthorization, Trace>();

  override connect(account: string, client: string): ModelAuthorization {
    const authorization = super.connect(account, client);
    this.traces.set(authorization, { steps: [], client, clientGeneration: this.generationOf(client), isOver: false });
    return authorization;
  }

  override exchange(authorization: ModelAuthorization): 'issued' | 'refused' {
    return this.#present(authorization, 0, () => super.exchange(authorization));
  }

  override refresh(authorization: ModelAuthorization, rotation: number): 'issued' | 'refused' {
    return this.#present(authorization, rotation + 1, () => super.refresh(authorization, rotation));
  }

  override introspect(authorization: ModelAuthorization, token: IssuedAccessToken): boolean {
    const trace = token.expiresAt > this.now ? this.#traceOf(authorization) : undefined;
    const isActive = super.introspect(authorization, token);
    const isLater = trace !== undefined && token.clientGeneration > trace.clientGeneration;
    trace?.steps.push(`${accessOf(token.rotation + 1, isLater)}: ${isActive ? 'active' : 'inactive'}`);
    return isActive;
  }

  override end(authorization: ModelAuthorization): 'refused' {
    if (!authorization.isEnded) this.#traceOf(authorization)?.steps.push('node 0 ends it');
    return super.end(authorization);
  }

  override renew(client: string): void {
    super.renew(client);
    for (const trace of this.traces.values()) {
      if (trace.client !== client) continue;
      // The model has one renewal.
      if (this.generationOf(client) > trace.clientGeneration + 1) trace.isOver = true;
      else trace.steps.push('the client is renewed', 'node 0 hears PostgreSQL');
    }
  }

  override restore(): void {
    super.restore();
    for (const [{ stored }, { steps }] of this.traces) {
      steps.push(stored ? `Redis gets record ${stored.rotation + 1} back` : 'Redis loses the record');
    }
  }

  #present(authorization: ModelAuthorization, token: number, ask: () => 'issued' | 'refused'): 'issued' | 'refused' {
    const trace = this.#traceOf(authorization);
    const { stored } = authorization;
    if (stored && this.now - stored.rotatedAt >= LIFETIMES.retryWindowSeconds)
      trace?.steps.push('the retry window passes');
    const length = trace?.steps.length ?? 0;
    const answer = ask();
    // The end of a replay belongs to the answer.
    trace?.steps.splice(length);
    const got = answer === 'issued' ? (authorization.stored?.rotation ?? 0) + 1 : 'refused';
    if (trace && got !== 'refused' && got > LAST) trace.isOver = true;
    const isLater = trace !== undefined && this.generationOf(authorization.client) > trace.clientGeneration;
    if (!trace?.isOver) trace?.steps.push(`${refreshOf(token, isLater)}: ${answerOf(got)}`);
    return answer;
  }

  /** The model has no suspension, no end of a connection, and no lifetime. */
  #traceOf(authorization: ModelAuthorization): Trace | undefined {
    const trace = this.traces.get(authorization);
    const { stored, isEnded } = authorization;
    const isExpired = stored !== undefined && stored.usableUntil <= this.now;
    if (trace && !isEnded && stored && (isExpired || !this.activeRecord(authorization))) trace.isOver = true;
    return trace?.isOver ? undefined : trace;
  }
}

/** Whether these steps are possible one after the other. */
function isAccepted(steps: readonly string[]): boolean {
  let states = new Map<string, Tokens>([['', TOKENS.first]]);
  for (const name of steps) {
    const all = [...states.values()].flatMap((state) => [...TOKENS.steps(state, new Set())]);
    states = new Map(all.filter((step) => step.name === name).map(({ next }) => [keyOf(next), next]));
  }
  return states.size > 0;
}

const OPPOSITE: Readonly<Record<string, string>> = { active: 'inactive', inactive: 'active', refused: 'gets 1' };

/** @returns what came out, and whether the model accepts every trace, and none whose last answer is changed */
export async function compareWalks(
  walks: number,
  seed: number,
): Promise<{ readonly report: string; readonly isHeld: boolean }> {
  const models: RecordingModel[] = [];
  await walk('postgres', { walks, steps: 100, seed }, () => {
    const model = new RecordingModel();
    models.push(model);
    return model;
  });
  const traces = models.flatMap((model) => [...model.traces.values()].map(({ steps }) => steps));
  const refused = traces.filter((steps) => !isAccepted(steps));
  const changed = traces.flatMap((steps) => {
    const [asked, answer] = (steps.at(-1) ?? '').split(': ');
    return answer === undefined ? [] : [steps.with(-1, `${asked}: ${OPPOSITE[answer] ?? 'refused'}`)];
  });
  const accepted = changed.filter(isAccepted);
  const length = traces.reduce((sum, steps) => sum + steps.length, 0);
  const report = [
    `${traces.length} traces of random walks (seed ${seed}), ${length} steps: ${refused.length} not accepted`,
    `with a wrong last answer: ${accepted.length} of ${changed.length} accepted`,
    ...[...refused, ...accepted].map((steps) => `  ${steps.join('; ')}`),
  ];
  return { report: report.join('\n'), isHeld: refused.length === 0 && accepted.length === 0 };
}

/** @returns what came out, and whether only the seeded defects break promises */
export function proveModel(): { readonly report: string; readonly isHeld: boolean } {
  const lines: string[] = [];
  let isHeld = true;
  const both = (seeded: Seeded) => [explore(ENDS, seeded), explore(TOKENS, seeded)];
  for (const { states, way } of both(new Set())) {
    lines.push(`without a defect: ${states} states, ${way ? `BROKEN: ${way.join('; ')}` : 'no promise is broken'}`);
    isHeld &&= way === undefined;
  }
  for (const [defect, what] of Object.entries(DEFECTS)) {
    const way = both(new Set([defect as Defect])).find((each) => each.way)?.way;
    lines.push(`${what}: ${way ? `not "${way.at(-1)}"` : 'NOT FOUND'}`, `  ${way?.slice(0, -1).join('; ') ?? ''}`);
    isHeld &&= way !== undefined;
  }
  return { report: lines.join('\n'), isHeld };
}
