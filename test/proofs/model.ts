/**
 * A model of how ends and refreshes work, small enough to visit every state that it can reach: PostgreSQL, whose facts
 * only become more; a Redis that may lose its record or get back any earlier one; two nodes with caches; an API that
 * remembers answers while a node vouches for them. It is two machines, which meet in what a node knows: `Ends` says
 * when nothing ended is accepted, `Tokens` what each refresh is answered, also by a node that has not heard of an end.
 *
 * Time is a step: a tick is half a second, so what is renewed in each tick is younger than a second. Not modelled: the
 * lifetimes, several authorizations, keys, and parallel steps of one store, which carries out one after the other. An
 * authorization has one record by construction.
 */

/** Ways in which the service once worked, or that a decision rejects; docs/proofs.md says which. */
export const DEFECTS = {
  endOnlyInRedis: 'an end only removes the record in Redis',
  endNotTold: 'an end is recorded without an announcement',
  endForgotten: 'the fact is deleted while a copy of the record can still be valid',
  cacheWithoutFeed: 'a node uses its cache although it does not hear PostgreSQL',
  cacheWithoutAge: 'a node uses an entry of its cache for longer than a minute',
  silentStream: 'an API uses its memory although its stream is silent',
  streamNotRepeated: 'a new stream does not repeat what the reader has missed',
  lateAnswer: 'an API remembers an answer that is older than a change',
  clockOfNode: 'the clock of a node decides whether a retry is recent',
  newSuccessor: 'each retry gets a new successor',
  rotationLost: 'a token that is ahead of the record, which Redis has lost, counts as a replay',
  stolenSecret: 'a retry is answered whatever the generation of the secret',
} as const;
export type Defect = keyof typeof DEFECTS;
export type Seeded = ReadonlySet<Defect>;

/** What can happen in a state, what it leads to, and which promise it breaks. */
export interface Step<State> {
  readonly name: string;
  readonly next: State;
  readonly broken?: string | false | undefined;
}
export interface Machine<State> {
  readonly first: State;
  steps(state: State, seeded: Seeded): Iterable<Step<State>>;
}

/** @returns how many states were visited, and the shortest way to a broken promise, whose name is its last entry */
export function explore<State extends object>(
  { first, steps }: Machine<State>,
  seeded: Seeded,
): { readonly states: number; readonly way?: readonly string[] } {
  type Visit = { readonly state: State; readonly from?: Visit; readonly by?: string };
  const seen = new Set([keyOf(first)]);
  const queue: Visit[] = [{ state: first }];
  // The queue grows while it is read.
  for (const visit of queue) {
    for (const { name, next, broken } of steps(visit.state, seeded)) {
      if (broken) return { states: seen.size, way: [...wayTo(visit), name, broken] };
      const key = keyOf(next);
      if (seen.has(key)) continue;
      seen.add(key);
      queue.push({ state: next, from: visit, by: name });
    }
  }
  return { states: seen.size };

  function wayTo(visit: Visit): string[] {
    return visit.from ? [...wayTo(visit.from), String(visit.by)] : [];
  }
}

export const keyOf = (state: object): string => Object.values(state).join();

const NODES = [0, 1] as const;
/** The list with another value at this place. */
const put = <Value>(list: readonly Value[], index: number, value: Value): readonly Value[] => list.with(index, value);

/** One thing that ends: an authorization, what was issued to a client before its renewal, or a session. */
const NOT_ENDED = {
  isFact: false,
  isTold: false,
  isAnswered: false,
  /** Ticks since the answer, up to 3; of an end without an announcement: 1, 2 after a minute, 3 after ten more. */
  ticks: 0,
  untold: 0,
  hasRecord: true,
  /** Its last token has expired, so no record is valid. */
  isOver: false,
  /** Of each node: whether it uses its cache, whether it heard PostgreSQL in this tick, whether it knows of the end. */
  caches: [true, true] as readonly boolean[],
  heard: [false, false] as readonly boolean[],
  knows: [false, false] as readonly boolean[],
  /** The node whose stream the API reads, -1 for none; it may use its memory; it has read something in this tick. */
  stream: 0,
  trusts: false,
  hasRead: false,
  /** The API has read of the end; an answer that says active is on its way to it, for so many ticks; it remembers one. */
  hasSeen: false,
  awaits: 0,
  remembers: false,
};
type Ends = Readonly<typeof NOT_ENDED>;

export const ENDS: Machine<Ends> = {
  first: NOT_ENDED,

  *steps(now, seeded) {
    const has = (defect: Defect): boolean => seeded.has(defect);
    const { stream } = now;
    const to = (name: string, change: Partial<Ends>, broken?: string | false): Step<Ends> => {
      const next = { ...now, ...change };
      const isLost = next.isAnswered && !next.isFact && !next.isOver && 'an end is a fact before it is answered';
      return { name, next, broken: broken || isLost };
    };

    for (const node of NODES) {
      if (now.hasRecord && !now.isOver && !(now.caches[node] ? now.knows[node] : now.isFact)) {
        const broken =
          (now.ticks >= 2 && 'no node accepts what has ended') ||
          (now.untold >= 2 && 'no node remembers for longer than a minute');
        yield to(`node ${node} answers that it is active`, { awaits: 2 }, broken);
        if (!now.isAnswered && now.untold === 0) {
          const isFact = !has('endOnlyInRedis');
          const told = { isFact, isTold: isFact && !has('endNotTold'), isAnswered: true };
          const knows = put(now.knows, node, isFact);
          // Removing the record may fail.
          yield to(`node ${node} ends it`, { ...told, knows, hasRecord: false });
          yield to(`node ${node} ends it, the record stays`, { ...told, knows });
          yield to('a restored PostgreSQL has ended it', { isFact: true, untold: 1 });
        }
      }
      const isNew = !now.caches[node];
      const knows = put(now.knows, node, isNew ? now.isFact : now.knows[node] || now.isTold);
      const caches = put(now.caches, node, true);
      yield to(`node ${node} hears PostgreSQL`, { knows, caches, heard: put(now.heard, node, true) });
      const missed = has('streamNotRepeated') && now.knows[node];
      yield to(`the API joins node ${node}`, { stream: node, trusts: false, hasSeen: now.hasSeen || missed === true });
    }
    if (stream >= 0 && now.caches[stream]) {
      const isNews = now.knows[stream] && !now.hasSeen;
      const forgets = isNews && { awaits: 0, remembers: false, hasSeen: true };
      yield to('the API reads its stream', { trusts: true, hasRead: true, ...forgets });
    }
    if (now.awaits > 0) {
      const remembers = now.trusts && (!now.hasSeen || has('lateAnswer'));
      yield to('the API receives the answer', { awaits: 0, remembers: now.remembers || remembers });
    }
    if (now.remembers && now.trusts && !now.isOver) {
      const broken =
        (now.ticks >= 3 && 'no API remembers what has ended') ||
        (now.untold >= 3 && 'no API remembers for longer than ten minutes');
      yield to('the API accepts it from memory', {}, broken);
    }
    const caches = has('cacheWithoutFeed') ? now.caches : now.heard;
    const left = stream >= 0 && caches[stream] ? stream : -1;
    yield to('tick', {
      caches,
      heard: [false, false],
      stream: left,
      trusts: left >= 0 && now.trusts && (now.hasRead || has('silentStream')),
      hasRead: false,
      // A request ends within a second.
      awaits: Math.max(now.awaits - 1, 0),
      ticks: now.isAnswered ? Math.min(now.ticks + 1, 3) : 0,
    });
    const knows = has('cacheWithoutAge') ? now.knows : [now.isFact, now.isFact];
    yield to('a minute', { knows, awaits: 0, untold: now.untold === 1 ? 2 : now.untold });
    yield to('ten minutes', { awaits: 0, remembers: false, untold: now.untold === 2 ? 3 : now.untold });
    yield to('Redis loses the record', { hasRecord: false });
    yield to('Redis gets the record back', { hasRecord: true });
    yield to('the last token expires', { isOver: true });
    if (now.isOver || has('endForgotten')) yield to('the fact is deleted', { isFact: false });
  },
};

/** The refresh tokens of one authorization, by number; 0 is the code. Later: got with the secret of a renewal. */
const APPROVED = {
  /** The record in Redis: the current token, -1 without a record; whether it is later; the first one that was. */
  current: 0,
  isLater: false,
  base: 0,
  isUsed: false,
  isRecent: true,
  isEnded: false,
  isRenewed: false,
  /** Of each node: whether it knows that. */
  knowEnd: [false, false] as readonly boolean[],
  knowRenewal: [false, false] as readonly boolean[],
  /** What clients have, before a renewal and later: the sum of 2 ** number of the tokens. */
  before: 1,
  after: 0,
  /** Until Redis loses something: the successor that each token was answered with, and the tokens that were used. */
  given: [] as readonly number[] | undefined,
  spent: 0,
};
export type Tokens = Readonly<typeof APPROVED>;

/** What would issue a later one is left out. */
export const LAST = 4;
const holds = (sum: number, token: number): boolean => (sum & (1 << token)) !== 0;
export const answerOf = (got: number | 'refused'): string => (got === 'refused' ? got : `gets ${got}`);
const by = (isLater: boolean): string => (isLater ? ' of the later secret' : '');
export const refreshOf = (token: number, isLater: boolean): string => `refresh ${token}${by(isLater)}`;
export const accessOf = (token: number, isLater: boolean): string => `access token ${token}${by(isLater)}`;
const at = (node: number): string => (node === 0 ? '' : ' at the other node');

export const TOKENS: Machine<Tokens> = {
  first: APPROVED,

  *steps(now, seeded) {
    const has = (defect: Defect): boolean => seeded.has(defect);
    const issued = now.before | now.after;
    const newest = 31 - Math.clz32(issued);
    const isWhole = now.given !== undefined;
    for (const node of NODES) {
      for (const isLater of [false, true]) {
        const mayAsk = isLater ? now.isRenewed : !now.knowRenewal[node];
        for (let token = 0; token <= newest; token += 1) {
          if (holds(issued, token)) yield* refresh(node, token, isLater, mayAsk);
          if (token > 0 && holds(isLater ? now.after : now.before, token)) yield introspect(node, token, isLater);
        }
      }
      // The record may stay.
      const ended = { isEnded: true, knowEnd: put(now.knowEnd, node, true) };
      if (!now.knowEnd[node] && now.current >= 0) yield { name: `node ${node} ends it`, next: { ...now, ...ended } };
      const [knowEnd, knowRenewal] = [put(now.knowEnd, node, now.isEnded), put(now.knowRenewal, node, now.isRenewed)];
      yield { name: `node ${node} hears PostgreSQL`, next: { ...now, knowEnd, knowRenewal } };
    }
    yield { name: 'the retry window passes', next: { ...now, isRecent: false } };
    yield { name: 'the client is renewed', next: { ...now, isRenewed: true } };
    const lost = { ...now, given: undefined, spent: 0, isUsed: false, isRecent: true };
    yield { name: 'Redis loses the record', next: { ...lost, current: -1 } };
    for (let current = 0; current <= newest; current += 1) {
      const isLater = holds(now.after, current) && !holds(now.before, current);
      const back = { ...lost, current, isLater };
      for (const isUsed of [false, true])
        yield { name: `Redis gets record ${current} back`, next: { ...back, isUsed } };
    }

    function* refresh(node: number, token: number, isLater: boolean, mayAsk: boolean): Generator<Step<Tokens>> {
      const { current, base } = now;
      const isKnown = mayAsk && !now.knowEnd[node] && current >= 0;
      const isFirst = isLater && !now.isLater;
      // What was given before the first refresh after a renewal counts no more.
      const given = isFirst ? now.given && [] : now.given;
      const isOutdated = (!isLater && now.isLater && !has('stolenSecret')) || (token === 0 && isLater);
      const isPrevious = token > 0 && token < current && (token === current - 1 || current === base);
      const isRecent = now.isRecent && !(has('clockOfNode') && node === 1);
      const isAhead = token > current && !has('rotationLost');
      let got: number | 'refused' = 'refused';
      let change: Partial<Tokens> = {};
      if (isKnown && !isOutdated) {
        if (isFirst || token === current || isAhead) {
          got = Math.max(token, current) + 1;
          if (got > LAST) return;
          change = { current: got, isLater, base: isFirst ? got : base, isUsed: false, isRecent: true };
          change = { ...change, spent: now.spent | (1 << token) };
        } else if (isPrevious && (isRecent || !now.isUsed)) {
          got = has('newSuccessor') ? current + 1 : current;
          if (got > LAST) return;
          change = { current: got };
        } else change = { isEnded: true, knowEnd: put(now.knowEnd, node, true) };
      }
      if (got !== 'refused') {
        change = {
          ...change,
          [isLater ? 'after' : 'before']: (isLater ? now.after : now.before) | (1 << got),
          given: given && put(Object.assign(Array(LAST).fill(-1), given), token, got),
        };
      }
      const ends = change.isEnded === true;
      const isHonest = mayAsk && isLater === now.isRenewed && !now.isEnded && current >= 0 && token > 0;
      const isSteady = isHonest && isWhole;
      const isRetry = given?.[token] === newest && (now.isRecent || !holds(now.spent, newest));
      const former = given?.[token] ?? -1;
      const gives = got !== 'refused';
      const broken =
        ((gives || ends) && !isLater && now.isLater && 'an earlier secret gets nothing and ends nothing') ||
        (isHonest && isFirst && !gives && 'no one approves again after a renewal') ||
        (isSteady && isRetry && got !== newest && 'an honest retry gets the same successor') ||
        (isWhole && gives && former >= 0 && former !== got && 'an honest retry gets the same successor') ||
        (isSteady && !now.isRenewed && token < newest && !isRetry && !ends && 'a reuse ends the authorization') ||
        (isHonest && token > current && !gives && 'a lost rotation costs nothing');
      yield { name: `${refreshOf(token, isLater)}${at(node)}: ${answerOf(got)}`, next: { ...now, ...change }, broken };
    }

    function introspect(node: number, token: number, isLater: boolean): Step<Tokens> {
      const isActive = now.current >= 0 && !now.knowEnd[node] && (isLater || !now.knowRenewal[node]);
      const isUsed = now.isUsed || token === now.current;
      const next = isActive ? { ...now, isUsed, spent: isWhole ? now.spent | (1 << token) : 0 } : now;
      return { name: `${accessOf(token, isLater)}${at(node)}: ${isActive ? 'active' : 'inactive'}`, next };
    }
  },
};
