/** What a deployment takes from others: needed, free to use, and nothing that runs when it is installed. */
import { readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import path from 'node:path';
import { expect } from 'chai';
import { billOfMaterials, lockedForProduction } from './write-sbom.ts';

const ROOT = path.join(import.meta.dirname, '..');
const PERMISSIVE = '0BSD Apache-2.0 BSD-2-Clause BSD-3-Clause BlueOak-1.0.0 ISC MIT MIT-0'.split(
  ' ',
);

const json = (name: string) => JSON.parse(readFileSync(path.join(ROOT, name), 'utf8'));
const locked = lockedForProduction();

/** The lines of a file before its first that is no import and no comment: below are programs for others. */
const BELOW_IMPORTS = /^(?!import |\} from | {2}|export .* from |\/\*\*| \*|\/\/|$).*/ms;

/** The packages that files of src load, not counting types. */
function loaded(): ReadonlySet<string> {
  const texts = readdirSync(path.join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
    // Both are run beside a GraphQL server, and are in no deployment of the service.
    .filter((name) => name.endsWith('.ts') && !/^(sandbox|resource-server)\//.test(name))
    .map((name) => readFileSync(path.join(ROOT, 'src', name), 'utf8'));
  const specifiers = texts.flatMap((text) => [
    ...text.replace(BELOW_IMPORTS, '').matchAll(/^(?:import (?!type )|\} from ).*?'([^']+)'/gm),
    ...text.matchAll(/\bimport\('([^']+)'\)/g),
  ]);
  return new Set(
    specifiers
      .map(([, specifier = '']) => specifier)
      .filter((specifier) => !specifier.startsWith('.') && !isBuiltin(specifier))
      .map((specifier) => /^(@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? specifier),
  );
}

describe('what a deployment takes from others', () => {
  it('is what src loads, and all of it', () => {
    expect([...loaded()].sort()).to.deep.equal(
      Object.keys(json('package.json').dependencies).sort(),
    );
  });

  it('is licensed permissively, down to the last package', () => {
    const others = [...locked].filter(([, { license = '' }]) => !PERMISSIVE.includes(license));
    expect(others).to.deep.equal([]);
  });

  it('runs nothing when it is installed', () => {
    expect(locked.size).to.be.greaterThan(100);
    const running = [...locked].filter(([folder, { hasInstallScript }]) => {
      if (hasInstallScript) return true;
      // The lock is written by whoever added the package; what was installed says it, too.
      const { scripts = {} } = installed(folder);
      return ['preinstall', 'install', 'postinstall'].some((name) => name in scripts);
    });
    expect(running).to.deep.equal([]);
  });

  it('is told by the bill of materials, whole', () => {
    const bill = JSON.parse(billOfMaterials());
    expect(bill).to.include({ bomFormat: 'CycloneDX' });
    expect(bill.metadata.component).to.include({ name: 'gatehouse', type: 'application' });
    const told = bill.components.map(({ purl }: { purl: string }) => decodeURIComponent(purl));
    const expected = [...locked].map(([folder, { version }]) => {
      const { name = folder.split('node_modules/').at(-1) } = installed(folder);
      return `pkg:npm/${name}@${version}`;
    });
    expect(told).to.have.members([...new Set(expected)]);
  });
});

/** Its package.json; of what is for another system nothing. */
function installed(folder: string): { readonly name?: string; readonly scripts?: object } {
  try {
    return json(path.join(folder, 'package.json'));
  } catch {
    return {};
  }
}
