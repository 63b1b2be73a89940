/** Third-party packages: all are needed, permissively licensed, and run nothing at installation. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, realpathSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import path from 'node:path';
import { expect } from 'chai';
import { billOfMaterials, locked as lockedForEverything, lockedForProduction } from './write-sbom.ts';

const ROOT = path.join(import.meta.dirname, '..');
const PERMISSIVE = '0BSD Apache-2.0 BSD-2-Clause BSD-3-Clause BlueOak-1.0.0 ISC MIT MIT-0'.split(' ');

const json = (name: string) => JSON.parse(readFileSync(path.join(ROOT, name), 'utf8'));
const locked = lockedForProduction();
/** The package that installs the Node of the npm scripts. */
const node = json('.node/package.json');

/** Returns the packages that files of src import, without type imports. */
function loaded(): ReadonlySet<string> {
  const texts = readdirSync(path.join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => readFileSync(path.join(ROOT, 'src', name), 'utf8'));
  const specifiers = texts.flatMap((text) => [
    ...text.matchAll(/^(?:import (?!type )|\} from ).*?'([^']+)'/gm),
    // `as string` keeps the types of a package out of the program.
    ...text.matchAll(/\bimport\('([^']+)'(?: as string)?\)/g),
  ]);
  return new Set(
    specifiers
      .map(([, specifier = '']) => specifier)
      .filter((specifier) => !specifier.startsWith('.') && !isBuiltin(specifier))
      .map((specifier) => /^(@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? specifier),
  );
}

describe('the dependencies of a deployment are needed, licensed and listed', () => {
  it('the dependencies are exactly the packages that src imports', () => {
    expect([...loaded()].sort()).to.deep.equal(Object.keys(json('package.json').dependencies).sort());
  });

  it('all dependencies have a permissive license, including indirect ones', () => {
    const others = [...locked].filter(([, { license = '' }]) => !PERMISSIVE.includes(license));
    expect(others).to.deep.equal([]);
  });

  it('no dependency has an install script', () => {
    expect(locked.size).to.be.greaterThan(100);
    const running = [...locked].filter(([folder, { hasInstallScript }]) => {
      if (hasInstallScript) return true;
      // Read the installed package itself, because the lock file may be wrong.
      const { scripts = {} } = installed(folder);
      return ['preinstall', 'install', 'postinstall'].some((name) => name in scripts);
    });
    expect(running).to.deep.equal([]);
  });

  it('all dependencies are in the bill of materials', () => {
    const bill = JSON.parse(billOfMaterials());
    expect(bill).to.include({ bomFormat: 'CycloneDX' });
    expect(bill.metadata.component).to.include({ name: 'gatehouse-service', type: 'application' });
    const listed = bill.components.map(({ purl }: { purl: string }) => decodeURIComponent(purl));
    const expected = [...locked].map(([folder, { version }]) => {
      const { name = folder.split('node_modules/').at(-1) } = installed(folder);
      return `pkg:npm/${name}@${version}`;
    });
    expect(listed).to.have.members([...new Set(expected)]);
  });
});

describe('`npm ci` installs exactly the locked packages, and runs none of their install scripts', () => {
  const EXACT = /^\d+\.\d+\.\d+$/;
  const all = lockedForEverything();

  it('packages are locked by exact version and hash, and the lock file names no registry', () => {
    const { dependencies, devDependencies } = json('package.json');
    const versions = { ...dependencies, ...devDependencies, ...node.optionalDependencies };
    for (const [name, version] of Object.entries<string>(versions)) {
      if (name !== node.name) expect(version.replace(/^npm:.*@/, ''), name).to.match(EXACT);
    }
    for (const [folder, { integrity, resolved }] of all) {
      expect(integrity, folder).to.match(/^sha512-/);
      expect(resolved, folder).to.equal(undefined);
    }
  });

  it('npm is configured to run no install scripts of packages', () => {
    const config = ['config', 'get', 'ignore-scripts'];
    expect(execFileSync('npm', config, { cwd: ROOT, stdio: 'pipe' }).toString()).to.equal('true\n');
  });

  it('the npm packages include one Node binary for each platform, which the npm scripts use', function () {
    const platforms = Object.keys(node.optionalDependencies);
    const named = /^node-(?:bin-)?(darwin|linux)-(arm64|x64)$/;
    const places = platforms.map((name) => named.exec(name)?.slice(1).join(' '));
    expect(places).to.have.members(['darwin arm64', 'darwin x64', 'linux arm64', 'linux x64']);
    for (const name of platforms) {
      const version = all.get(`node_modules/${name}`)?.version;
      expect(version, name).to.equal(node.optionalDependencies[name]).and.to.match(/^24\./);
    }
    if (!places.includes(`${process.platform} ${process.arch}`)) return this.skip();
    const found = realpathSync(path.join(ROOT, 'node_modules/.bin/node'));
    const [, name = ''] = /node_modules\/([^/]+)\/bin\/node$/.exec(found) ?? [];
    const version = execFileSync(found, ['--version']).toString().trim();
    expect(version).to.equal(`v${node.optionalDependencies[name]}`);
  });
});

/** Returns the package.json of an installed package; empty for a package of another platform. */
function installed(folder: string): { readonly name?: string; readonly scripts?: object } {
  try {
    return json(path.join(folder, 'package.json'));
  } catch {
    return {};
  }
}
