/** `npm run sbom`: writes what a deployment is made of, as a CycloneDX bill of materials. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

const ROOT = path.join(import.meta.dirname, '..');

/** A package of the lock file, under its folder. `dev`: only development needs it. */
export interface LockedPackage {
  readonly version: string;
  readonly license?: string;
  readonly dev?: true;
  readonly hasInstallScript?: true;
  /** The hash of what is downloaded. */
  readonly integrity?: string;
  /** An address; for a link the folder of this checkout that it leads to. */
  readonly resolved?: string;
  readonly link?: true;
}

interface LockFile {
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

const read = (name: string) => JSON.parse(readFileSync(path.join(ROOT, name), 'utf8'));

/** Everything that `npm ci` may download here or on another system, by its folder. */
export function locked(): ReadonlyMap<string, LockedPackage> {
  const { packages } = read('package-lock.json') as LockFile;
  const all = Object.entries(packages);
  return new Map(all.filter(([folder, { link }]) => /^node_modules\//.test(folder) && !link));
}

/** The same for `npm ci --omit=dev`. */
export const lockedForProduction = (): ReadonlyMap<string, LockedPackage> =>
  new Map([...locked()].filter(([, { dev }]) => !dev));

/**
 * The bill, as npm makes it of a project that has nothing for development: of this one `npm sbom
 * --omit=dev` leaves out whatever development needs as well, two thirds of it (npm 11.19).
 */
export function billOfMaterials(): string {
  const { devDependencies: _, ...manifest } = read('package.json');
  const lock = read('package-lock.json');
  const { devDependencies: __, ...root } = lock.packages[''];
  const packages = { '': root, ...Object.fromEntries(lockedForProduction()) };
  const above = mkdtempSync(path.join(tmpdir(), 'gatehouse-sbom-'));
  try {
    // npm names what it describes after the folder.
    const folder = path.join(above, manifest.name);
    mkdirSync(folder);
    const write = (name: string, content: unknown): void =>
      writeFileSync(path.join(folder, name), JSON.stringify(content));
    write('package.json', manifest);
    write('package-lock.json', { ...lock, packages });
    const format = ['--sbom-format=cyclonedx', '--sbom-type=application'];
    return execFileSync('npm', ['sbom', '--package-lock-only', ...format], {
      cwd: folder,
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
  } finally {
    rmSync(above, { recursive: true });
  }
}

if (import.meta.main) {
  const { name, version } = read('package.json');
  const file = `${name}-${version}.cdx.json`;
  writeFileSync(path.join(ROOT, file), billOfMaterials());
  process.stdout.write(`${file}\n`);
}
