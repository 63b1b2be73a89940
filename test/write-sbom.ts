/** `npm run sbom`: writes the packages of a deployment as a CycloneDX bill of materials. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

const ROOT = path.join(import.meta.dirname, '..');

/** A package in the lock file. `dev`: only development needs it. */
interface LockedPackage {
  readonly version: string;
  readonly license?: string;
  readonly dev?: true;
  readonly hasInstallScript?: true;
  /** The hash of the downloaded archive. */
  readonly integrity?: string;
  /** The URL of the archive; for a link, the folder in this checkout. */
  readonly resolved?: string;
  readonly link?: true;
}

interface LockFile {
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

const read = (name: string) => JSON.parse(readFileSync(path.join(ROOT, name), 'utf8'));

/** Returns every package that `npm ci` may download on any platform, by its folder. */
export function locked(): ReadonlyMap<string, LockedPackage> {
  const { packages } = read('package-lock.json') as LockFile;
  const all = Object.entries(packages);
  return new Map(all.filter(([folder, { link }]) => /^node_modules\//.test(folder) && !link));
}

/** Returns every package that `npm ci --omit=dev` may download, by its folder. */
export const lockedForProduction = (): ReadonlyMap<string, LockedPackage> =>
  new Map([...locked()].filter(([, { dev }]) => !dev));

/**
 * Returns the bill of materials, made from a copy without development dependencies: in this
 * project, `npm sbom --omit=dev` would also omit the packages that both production and development
 * need, which are two thirds of all packages here (npm 11.19).
 */
export function billOfMaterials(): string {
  const { devDependencies: _, ...manifest } = read('package.json');
  const lock = read('package-lock.json');
  const { devDependencies: __, ...root } = lock.packages[''];
  const packages = { '': root, ...Object.fromEntries(lockedForProduction()) };
  const above = mkdtempSync(path.join(tmpdir(), 'gatehouse-sbom-'));
  try {
    // Use a folder with this name, because npm names the component after it.
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
