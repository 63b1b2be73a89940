/** `npm run proofs -- NAME`: runs on demand what docs/proofs.md reports, and never in CI. */
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { observeMachine } from '../../bench/machine.ts';
import { imageDigests } from '../deploy/image.ts';
import { endRun } from '../support/end-of-run.ts';
import { proveHistories } from './histories.ts';
import { proveMutants } from './mutants.ts';
import { compareWalks, proveModel } from './walks.ts';

const HELP = `npm run proofs -- histories --out FOLDER   tests the checker, records 1,080 histories on two nodes during each fault, keeps them
                                          in the folder, and checks that they are linearizable; --rounds N for 24
                                          histories of each fault as often, --fault NAME for some of the faults
npm run proofs -- model                   visits every state of the model of ends and refreshes, with no and with each defect,
                                          and compares it with random walks through the service; --seed NUMBER
npm run proofs -- mutants FOLDER TESTS…   which mutants of the folder these test files notice; --sample N of the
                                          mutants by chance, --seed TEXT
npm run proofs -- same-bits               builds the npm package, the wheel and the image twice, in two folders, and compares the
                                          digests
npm run proofs -- judges NAME…            what strangers' programs find, of the package, schema, openapi, graphql, pages
                                          and deployment, or of those named
`;

async function main(): Promise<boolean> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      out: { type: 'string' },
      rounds: { type: 'string', default: '3' },
      fault: { type: 'string' },
      sample: { type: 'string' },
      seed: { type: 'string', default: '54' },
    },
  });
  const [name, ...rest] = positionals;
  if (name === 'histories' && values.out !== undefined && rest.length === 0) {
    const cases = ['node_modules/mocha/bin/mocha.js', 'test/proofs/linearizability-cases.ts'];
    if (spawnSync(process.execPath, cases, { stdio: 'inherit' }).status !== 0) return false;
    const describeMachine = observeMachine();
    const { report, isHeld } = await proveHistories(values.out, Number(values.rounds), values.fault);
    console.log(`\n${report}\n\n${describeMachine()}`);
    return isHeld;
  }
  if (name === 'model' && rest.length === 0 && /^\d+$/.test(values.seed)) {
    const [model, walks] = [proveModel(), await compareWalks(20, Number(values.seed))];
    console.log(`${model.report}\n${walks.report}`);
    return model.isHeld && walks.isHeld;
  }
  const [folder, ...tests] = rest;
  if (name === 'mutants' && folder !== undefined && tests.length > 0 && /^[1-9]\d*$/.test(values.sample ?? '1')) {
    const sample = values.sample === undefined ? undefined : Number(values.sample);
    console.log(await proveMutants(folder, tests, values.seed, sample));
    return true;
  }
  if (name === 'image-digests') {
    // For same-bits.sh: a time and the folders.
    for (const digest of await imageDigests(rest.slice(1), Number(rest[0]))) console.log(`${digest}  image`);
    return true;
  }
  if (name === 'same-bits' || name === 'judges') {
    const script = path.join(import.meta.dirname, `${name}.sh`);
    return spawnSync(script, rest, { stdio: 'inherit' }).status === 0;
  }
  console.error(HELP);
  return false;
}

try {
  if (!(await main())) process.exitCode = 1;
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  await endRun();
}
