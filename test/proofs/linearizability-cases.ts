/** The checker of fault histories accepts and refuses the right ones. */
import { expect } from 'chai';
import { type Input, linearize, type Operation, type Output, withLag } from './linearizability.ts';

const exchange: Input = { do: 'exchange' };
const introspect: Input = { do: 'introspect' };
const end: Input = { do: 'end' };
const forget: Input = { do: 'forget' };
const refresh = (from: number): Input => ({ do: 'refresh', from });

/** @param output absent for a request without an answer */
const during = (start: number, until: number, input: Input, output?: Output): Operation =>
  output === undefined ? { input, start } : { input, output, start, end: until };

/** Returns operations that follow one another. */
const inTurn = (...steps: readonly (readonly [Input, Output?])[]): Operation[] =>
  steps.map(([input, output], turn) => during(turn * 10, turn * 10 + 5, input, output));

describe('the linearizability checker', () => {
  const GOOD: Readonly<Record<string, readonly Operation[]>> = {
    'no request': [],
    'an exchange, refreshes, and an end': inTurn(
      [exchange, 0],
      [refresh(0), 1],
      [introspect, 'active'],
      [end, 'ended'],
    ),
    'an honest retry': inTurn([exchange, 0], [refresh(0), 1], [refresh(0), 1], [refresh(1), 2]),
    'a replay, which ends everything': inTurn(
      [exchange, 0],
      [refresh(0), 1],
      [refresh(1), 2],
      [refresh(0), 'refused'],
      [introspect, 'inactive'],
    ),
    'parallel refreshes of one token': [
      ...inTurn([exchange, 0]),
      during(10, 30, refresh(0), 1),
      during(11, 29, refresh(0), 1),
      during(12, 28, introspect, 'active'),
    ],
    'a refresh that was carried out although its answer was lost': inTurn(
      [exchange, 0],
      [refresh(0)],
      [refresh(0), 1],
      [refresh(1), 2],
    ),
    'an end that takes effect long after it was asked for': inTurn(
      [exchange, 0],
      [end],
      [introspect, 'active'],
      [introspect, 'active'],
      [introspect, 'inactive'],
    ),
    'an introspection that overlaps with the end': [
      ...inTurn([exchange, 0]),
      during(10, 50, end, 'ended'),
      during(20, 30, introspect, 'inactive'),
      during(21, 31, introspect, 'active'),
    ],
    'a store that lost its last writes': inTurn(
      [exchange, 0],
      [refresh(0), 1],
      [forget, 'forgotten'],
      [refresh(0), 1],
      [refresh(1), 2],
    ),
    'a revocation that found no record': inTurn([exchange, 0], [forget, 'forgotten'], [end, 'ended']),
  };
  for (const [name, history] of Object.entries(GOOD)) {
    it(`accepts ${name}`, () => {
      const order = linearize(history);
      expect(order).to.be.an('array');
      const known = [...history.keys()].filter((index) => history[index]?.end !== undefined);
      expect(order).to.include.members(known);
    });
  }

  const BAD: Readonly<Record<string, readonly Operation[]>> = {
    'a code that is exchanged twice': inTurn([exchange, 0], [exchange, 0]),
    'two successors of one token': inTurn([exchange, 0], [refresh(0), 1], [refresh(0), 2]),
    'a token that was never issued': inTurn([exchange, 0], [refresh(5), 6]),
    'a replayed token that is answered': inTurn([exchange, 0], [refresh(0), 1], [refresh(1), 2], [refresh(0), 1]),
    'a replay after which the authorization is active': inTurn([exchange, 0], [exchange, 'refused'], [refresh(0), 1]),
    'a token that is active after the end': inTurn([exchange, 0], [end, 'ended'], [introspect, 'active']),
    'a refresh after the end': inTurn([exchange, 0], [end, 'ended'], [refresh(0), 1]),
    'an end that a restored record undoes': inTurn(
      [exchange, 0],
      [end, 'ended'],
      [forget, 'forgotten'],
      [introspect, 'active'],
    ),
    'an honest holder who is refused': inTurn([exchange, 0], [refresh(0), 1], [refresh(1), 'refused']),
    'an honest retry that is refused': inTurn([exchange, 0], [refresh(0), 1], [refresh(0), 'refused']),
    'a record that is lost without a fault': inTurn([exchange, 0], [introspect, 'inactive']),
    'a state that is seen, and then not yet': [
      ...inTurn([exchange, 0]),
      during(10, 50, end, 'ended'),
      during(20, 25, introspect, 'inactive'),
      during(30, 35, introspect, 'active'),
    ],
    'a request without an answer that takes effect before it is sent': inTurn(
      [exchange, 0],
      [introspect, 'inactive'],
      [end],
    ),
  };
  for (const [name, history] of Object.entries(BAD)) {
    it(`refuses ${name}`, () => expect(linearize(history)).to.equal(undefined));
  }

  it('an introspection may lag behind a revocation by the allowed time, but by no more', () => {
    const history = inTurn([exchange, 0], [end, 'ended'], [introspect, 'active']);
    expect(linearize(withLag(history, 6))).to.be.an('array');
    expect(linearize(withLag(history, 4))).to.equal(undefined);
  });
});
