/**
 * Checks whether a history of overlapping requests for one authorization is linearizable: whether each request can
 * have taken effect at one moment between its start and its end, so that the answers are those of one service that
 * carries out one request after the other (Herlihy and Wing, 1990; the search is that of Wing and Gong, 1993).
 */

export type Input =
  | { readonly do: 'exchange' }
  /** `from`: the number of the refresh token that is presented. */
  | { readonly do: 'refresh'; readonly from: number }
  | { readonly do: 'introspect' }
  | { readonly do: 'end' }
  /** Not a request: the token store may lose the record, or get back an earlier one. */
  | { readonly do: 'forget' };

/** The number of the issued refresh token, or a word. */
export type Output = number | 'refused' | 'active' | 'inactive' | 'ended' | 'forgotten';

export interface Operation {
  readonly input: Input;
  /** Absent if the client cannot know whether it was carried out: no answer, or 503. */
  readonly output?: Output;
  /** Milliseconds of any one clock. */
  readonly start: number;
  /** Absent without an output: it may take effect at any later time. */
  readonly end?: number;
  /** Which node was asked; for readers of a history only. */
  readonly node?: number;
}

/** `record`: the number of the current refresh token, -1 before the exchange; undefined if the store has no record. */
interface State {
  readonly isEnded: boolean;
  readonly record: number | undefined;
  /** True once the store has forgotten: then a client may hold a token that is ahead of the record. */
  readonly hasForgotten: boolean;
}

const BEGUN: State = { isEnded: false, record: -1, hasForgotten: false };
const keyOf = ({ isEnded, record, hasForgotten }: State): string => `${isEnded} ${record} ${hasForgotten}`;

/** Returns every answer that one sequential service may give in this state, with the state afterwards. */
function stepsOf(state: State, input: Input): readonly (readonly [Output, State])[] {
  const { isEnded, record, hasForgotten } = state;
  const ended: State = { ...state, isEnded: true };
  const isActive = !isEnded && record !== undefined;
  switch (input.do) {
    case 'introspect':
      return [[isActive ? 'active' : 'inactive', state]];
    case 'end':
      if (isActive) return [['ended', ended]];
      // RFC 7009 §2.2: a token that the store does not have counts as revoked, but leaves no end for what comes back.
      return [
        ['ended', state],
        ['refused', state],
      ];
    case 'exchange':
      if (!isActive) return [['refused', state]];
      // RFC 9700 §4.5: a code that is exchanged twice ends the authorization.
      return record === -1 ? [[0, { ...state, record: 0 }]] : [['refused', ended]];
    case 'refresh': {
      if (!isActive) return [['refused', state]];
      const { from } = input;
      if (from === record || (from > record && hasForgotten)) return [[from + 1, { ...state, record: from + 1 }]];
      // The honest retry. An older token ends the authorization: RFC 9700 §4.14.2.
      return from === record - 1 ? [[record, state]] : [['refused', ended]];
    }
    case 'forget': {
      if (record === undefined) return [['forgotten', state]];
      const earlier = Array.from({ length: record + 2 }, (_, index) => index - 1);
      return [undefined, ...earlier].map((each) => ['forgotten', { isEnded, record: each, hasForgotten: true }]);
    }
  }
}

/** @returns the order of a linearization, as indexes of the operations; undefined if there is none */
export function linearize(history: readonly Operation[]): readonly number[] | undefined {
  const known = history.reduce((bits, { end }, index) => (end === undefined ? bits : bits | (1n << BigInt(index))), 0n);
  const seen = new Set<string>();
  const order: number[] = [];

  function search(done: bigint, state: State): boolean {
    if ((done & known) === known) return true;
    const key = `${done} ${keyOf(state)}`;
    if (seen.has(key)) return false;
    seen.add(key);
    const isOpen = (index: number): boolean => (done & (1n << BigInt(index))) === 0n;
    // What has started after another one has ended cannot come before it.
    const firstEnd = Math.min(...history.map(({ end }, index) => (isOpen(index) && end) || Number.POSITIVE_INFINITY));
    const tried = new Set<string>();
    for (const [index, { input, output, start, end }] of history.entries()) {
      if (!isOpen(index) || start > firstEnd) continue;
      for (const [answer, next] of stepsOf(state, input)) {
        if (end !== undefined && answer !== output) continue;
        if (end === undefined) {
          // It may also never be carried out, so only one that changes something matters, and of equal ones the first.
          const change = `${JSON.stringify(input)} ${keyOf(next)}`;
          if (keyOf(next) === keyOf(state) || tried.has(change)) continue;
          tried.add(change);
        }
        order.push(index);
        if (search(done | (1n << BigInt(index)), next)) return true;
        order.pop();
      }
    }
    return false;
  }

  return search(0n, BEGUN) ? order : undefined;
}

/** Allows each introspection to answer as things stood at any time in the `lagMs` milliseconds before it started. */
export const withLag = (history: readonly Operation[], lagMs: number): Operation[] =>
  history.map((one) => (one.input.do === 'introspect' ? { ...one, start: one.start - lagMs } : one));
