/** After any order of events, introspection and refresh of authorizations match a model. */
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import type { Deployment } from '../support/service.ts';
import { walk } from './random-walk.ts';

/** A new seed for each run. A failure prints it, and `SEED=…` repeats the same walk. */
const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));

describe('random walks through authorizations', () => {
  const suite = (deployment: Deployment, walks: number, steps: number) => () => {
    it(`random walks of up to ${steps} steps agree with the reference model (${walks}, seed ${seed})`, () =>
      walk(deployment, { walks, steps, seed }));
  };
  describe('embedded', suite('embedded', 1, 100));
  describeOn([postgresServer], 'PostgreSQL', suite('postgres', 2, 150));
  describeOn([postgresServer, redisServer], 'PostgreSQL and Redis', suite('postgres+redis', 3, 150));
});
