/** No input is expensive for a regular expression of `src`: the steps grow with its length, not faster. */
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

const ROOT = path.join(import.meta.dirname, '..');

/** Those that the check refuses, each with the reason why no input is expensive for it. */
const EXCEPTIONS: readonly string[] = [
  // Pages of the service that the operator examines.
  String.raw`/<form\b([^>]*)>(.*?)<\/form>/gs`,
  String.raw`/<(?:input|button)\b([^>]*)>/gs`,
  String.raw`/<h1[^>]*>(.*?)<\/h1>/s`,
  '/<[^>]*>/g',
  // Notation that the checker does not know (flag v); each is one class of characters.
  String.raw`/[[\p{Mn}\p{Me}]--\p{Script=Tibetan}]/gv`,
  String.raw`/[^[\p{L}\p{N}\p{M}]--[[\p{M}&&\p{Script=Inherited}]--[\u3099\u309a]]]/gv`,
  // The operator's own example query.
  String.raw`/"""[\s\S]*?"""|"(?:\\.|[^"\\\n])*"|#[^\n]*/g`,
];

/** Files that build a regular expression from text, and why no input is expensive for it. */
const BUILT: Readonly<Record<string, string>> = {
  'base/name-rules.ts': 'one class of characters, from the names of scripts',
  'base/random-id.ts': 'one class of characters between fixed numbers of times',
  'config/urls.ts': 'reads addresses that the operator configures',
  'doctor/browser.ts': 'reads pages of the service that the operator examines',
  'operator/gatehouse.ts': 'reads what systemd says of the unit of the service',
  'storage/redis/report.ts': 'reads the INFO of Redis',
};

/** A text as long as a request may be, and the steps that each of its characters may take. */
const ATTACK_LENGTH = 100_000;
const STEPS_PER_CHARACTER = 100;
const LIMITS = {
  maxAttackStringSize: ATTACK_LENGTH,
  attackLimit: ATTACK_LENGTH * STEPS_PER_CHARACTER,
  // Against hanging only: no verdict depends on it.
  timeout: 100_000,
};

/** Whether the worst input that can be found takes steps in proportion to its length. */
async function isLinear(literal: string): Promise<boolean> {
  const end = literal.lastIndexOf('/');
  const verdict = await check(literal.slice(1, end), literal.slice(end + 1), LIMITS);
  return verdict.status === 'safe';
}

describe('the regular expressions of src', () => {
  const literals = new Set<string>();
  const built = new Set<string>();

  before(() => {
    const api = new API({ cwd: ROOT });
    const openProject = path.join(ROOT, 'tsconfig.json');
    const [project] = api.updateSnapshot({ openProject }).getProjects();
    const src = path.join(ROOT, 'src/');
    for (const file of project?.rootFiles.filter((name) => name.startsWith(src)) ?? []) {
      const read = (node: Node): void => {
        if (isRegularExpressionLiteral(node)) literals.add(node.text);
        const isCall = isNewExpression(node) || isCallExpression(node);
        const isBuilt =
          isCall && isIdentifier(node.expression) && node.expression.text === 'RegExp';
        if (isBuilt) built.add(path.relative(src, file));
        node.forEachChild(read);
      };
      project?.program.getSourceFile(file)?.forEachChild(read);
    }
    api.close();
  });

  it('take a number of steps that grows with the length of the input, not faster', async () => {
    expect(literals.size).to.be.above(100);
    const expensive: string[] = [];
    for (const literal of literals) if (!(await isLinear(literal))) expensive.push(literal);
    expect(expensive).to.have.members(EXCEPTIONS);
    // Against hanging only: without its native program, which some systems lack, recheck takes longer.
  }).timeout(600_000);

  it('are written out, so that they can be checked, or built from nothing that is sent', () => {
    expect([...built]).to.have.members(Object.keys(BUILT));
  });

  it('are told apart by the check', async () => {
    expect(await isLinear(String.raw`/^[ \t]+/`)).to.equal(true);
    expect(await isLinear(String.raw`/[ \t]+$/`)).to.equal(false);
    expect(await isLinear('/^(a+)+$/')).to.equal(false);
    expect(await isLinear(String.raw`/^(.*?)=(?!a)\1$/`)).to.equal(false);
  });
});
