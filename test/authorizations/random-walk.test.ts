/** Whatever happens to authorizations, in whatever order, introspection and refresh are as promised. */
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import type { Deployment } from '../support/service.ts';
import { walk } from './random-walk.ts';

/** Another one each time: what fails is printed with it, and `SEED=…` walks the same way again. */
const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));

describe('a random walk through authorizations agrees with the reference model', () => {
  const suite = (deployment: Deployment, walks: number, steps: number) => () => {
    it(`${walks} walks of up to ${steps} steps, seed ${seed}`, () =>
      walk(deployment, { walks, steps, seed }));
  };
  describe('embedded', suite('embedded', 1, 100));
  describeOn([postgresServer], 'PostgreSQL', suite('postgres', 2, 150));
  describeOn(
    [postgresServer, redisServer],
    'PostgreSQL and Redis',
    suite('postgres+redis', 5, 150),
  );
});
