/** No input is expensive for a regular expression of `src`: the steps grow at most linearly with its length. */
import path from 'node:path';
import { expect } from 'chai';
import { check } from 'recheck';
import {
  isCallExpression,
  isIdentifier,
  isNewExpression,
  isRegularExpressionLiteral,
  type Node,
} from 'typescript/unstable/ast';
import { API } from 'typescript/unstable/sync';
import { valuesIn } from '../src/operator/show/find.ts';
import { workOf } from './support/stopwatch.ts';

const ROOT = path.join(import.meta.dirname, '..');

/** Expressions that fail the check, each with the reason why no input is expensive for it. */
const EXCEPTIONS: readonly string[] = [
  // The doctor applies this expression only to pages of the service.
  String.raw`/<form\b([^>]*)>(.*?)<\/form>/gs`,
  String.raw`/<(?:input|button)\b([^>]*)>/gs`,
  // The checker does not support flag v; each expression is one class of characters.
  String.raw`/[[\p{Mn}\p{Me}]--\p{Script=Tibetan}]/gv`,
  String.raw`/[[\p{So}--[©®°]]√ɪʀ[[\p{Ll}&&\p{Script=Latin}]--\p{Changes_When_Uppercased}]]/v`,
  String.raw`/[^[\p{L}\p{N}\p{M}]--[[\p{M}&&\p{Script=Inherited}]--[\u3099\u309a]]]/gv`,
];

/** Files that build a regular expression from text, and why no input is expensive for it. */
const BUILT: Readonly<Record<string, string>> = {
  'texts/name-rules.ts': 'one class of characters, from the names of scripts',
  'base/random-id.ts': 'one class of characters with a limited repetition',
  'base/secrets-in-text.ts': 'repetitions are limited by the length of a secret, and a test measures their time',
  'config/urls.ts': 'reads addresses that the operator configures',
  'doctor/browser.ts': 'reads pages of the service that the operator examines',
  'operator/gatehouse.ts': 'reads what systemd says of the unit of the service',
  'operator/show/find.ts': 'repetitions are limited by the length of an ID or address, and a test measures their time',
  'storage/redis/report.ts': 'reads the INFO of Redis',
};

/** A text that is long enough to tell work that grows with its square, and the steps allowed for each character. */
const ATTACK_LENGTH = 5_000;
const STEPS_PER_CHARACTER = 100;
const LIMITS = {
  maxAttackStringSize: ATTACK_LENGTH,
  attackLimit: ATTACK_LENGTH * STEPS_PER_CHARACTER,
  // This limit only prevents hanging: no verdict depends on it.
  timeout: 100_000,
};

/** Returns true if the worst input found takes a number of steps proportional to its length. */
async function isLinear(literal: string): Promise<boolean> {
  const end = literal.lastIndexOf('/');
  const verdict = await check(literal.slice(1, end), literal.slice(end + 1), LIMITS);
  return verdict.status === 'safe';
}

describe('the regular expressions of the service and of the package for APIs', () => {
  const literals = new Set<string>();
  const built = new Set<string>();

  before(() => {
    const api = new API({ cwd: ROOT });
    const openProject = path.join(ROOT, 'tsconfig.json');
    const [project] = api.updateSnapshot({ openProject }).getProjects();
    const folders = ['src/', 'modules/node/src/'].map((name) => path.join(ROOT, name));
    const files = project?.rootFiles.filter((file) => folders.some((folder) => file.startsWith(folder)));
    for (const file of files ?? []) {
      const read = (node: Node): void => {
        if (isRegularExpressionLiteral(node)) literals.add(node.text);
        const isCall = isNewExpression(node) || isCallExpression(node);
        const isBuilt = isCall && isIdentifier(node.expression) && node.expression.text === 'RegExp';
        if (isBuilt) built.add(path.relative(path.join(ROOT, 'src'), file));
        node.forEachChild(read);
      };
      project?.program.getSourceFile(file)?.forEachChild(read);
    }
    api.close();
  });

  it('each regular expression takes a number of steps at most linear in the length of the input', async () => {
    expect(literals.size).to.be.above(100);
    const expensive: string[] = [];
    for (const literal of literals) if (!(await isLinear(literal))) expensive.push(literal);
    expect(expensive).to.have.members(EXCEPTIONS);
    // This limit only prevents hanging: without its native program, which some systems lack, recheck takes longer.
  }).timeout(600_000);

  it('all regular expressions are literals, which can be checked, or are built from trusted text', () => {
    expect([...built]).to.have.members(Object.keys(BUILT));
  });

  it('the time in which `show` finds the values in a text grows at most linearly with its length', async () => {
    const parts = [
      '.',
      'a',
      '@',
      "a'",
      'a@',
      '://a',
      'gate_at_',
      'gate_rt_\n',
      '%25',
      '=\n',
      'acc_',
      '\\',
      '"a":',
      '_',
    ];
    for (const part of [...parts, 'g ']) {
      const leastWork = async (length: number): Promise<number> => {
        const text = part.repeat(length / part.length);
        const read = async () => valuesIn(text);
        return Math.min(await workOf(read), await workOf(read));
      };
      const [short, long] = [await leastWork(12_500), await leastWork(100_000)];
      // Linear work grows 8 times, quadratic work 64 times. Less than 5 ms cannot be measured exactly.
      expect(long, part).to.be.below(20 * Math.max(short, 5_000));
    }
  });

  it('the check classifies known safe and unsafe regular expressions correctly', async () => {
    expect(await isLinear(String.raw`/^[ \t]+/`)).to.equal(true);
    expect(await isLinear(String.raw`/[ \t]+$/`)).to.equal(false);
    expect(await isLinear('/^(a+)+$/')).to.equal(false);
    expect(await isLinear(String.raw`/^(.*?)=(?!a)\1$/`)).to.equal(false);
  });
});
