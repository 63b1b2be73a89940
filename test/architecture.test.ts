/** The structure of the code: which parts may import which, and what is allowed in one place only. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';

const ROOT = path.join(import.meta.dirname, '..');

/** For each part of src, the other parts that it may import. */
const MAY_IMPORT: Readonly<Record<string, string>> = {
  texts: '',
  config: 'texts',
  storage: '',
  clients: 'storage texts',
  accounts: 'storage texts',
  authorizations: 'storage clients accounts changes',
  provider: 'config storage clients accounts authorizations',
  upstream: 'config',
  pages: 'provider upstream authorizations clients accounts changes texts',
  host: 'pages provider config texts',
  changes: 'storage texts accounts',
  service: 'texts config storage clients accounts authorizations changes provider upstream pages host',
  'main.ts': 'service config host accounts',
  doctor: 'service texts config storage clients accounts changes authorizations provider upstream',
  operator: 'service doctor changes texts config storage clients accounts authorizations provider upstream',
};

/** The programs next to src, and the folders that each may import. They import nothing of src. */
const PROGRAMS: Readonly<Record<string, readonly string[]>> = {
  'modules/node/src': [],
  'examples/sandbox': ['modules/node/src'],
};

/**
 * For each folder within a part, the files that other folders may import. Default: only the file
 * named like the folder. All other files are private to their folder.
 */
const DOORS: Readonly<Record<string, string>> = {
  'accounts/access': 'access access-limit client-blocks people reach',
  'accounts/activity': 'activity activity-words audit audit-trail',
  'accounts/api-keys': 'api-key api-keys',
  'accounts/identities': 'identities resolve-identity',
  'accounts/mail': 'account-mail letter mail',
  'accounts/organizations': 'organization-policy places taken-names',
  'accounts/passkeys': 'ceremonies passkey passkeys',
  'accounts/password-links': 'link-mail password-changes password-links',
  'accounts/passwords': 'common-passwords password work',
  'config/schema': 'connected kinds known-settings schema',
  'host/metrics': 'durations metrics',
  'operator/accounts': 'accounts api-keys mailing sessions',
  'operator/clients': 'client-report clients',
  'operator/command': 'arguments confirmation names operator report',
  'operator/import': 'import printed-report',
  'operator/places': 'memberships places',
  'operator/program': 'run-operator',
  'pages/forms': 'form-drafts limit-form notices sent-form submit-results',
  'pages/interaction': 'consent interaction',
  'pages/oauth-clients':
    'client connect endings links new oauth-clients own-client secrets settings test-organizations',
  'pages/password': 'forgot-password password',
  'pages/security': 'security sessions sign-in-methods what-has-access',
  'pages/sign-in':
    'attempt browser-sign-ins current-session enabled-methods known-devices passkey-sign-ins password-check sign-in sign-in-policy sign-out upstream-providers waiting-sign-in',
  'pages/upstream': 'arrival flows next-person sign-in',
  'pages/words': 'client-standing moment reached rights tile',
  'storage/embedded': 'postgres server',
  'storage/redis': 'redis report store',
};

/**
 * Columns of people, places, access and links that are not governed: no line of another system sets them.
 * All other columns are written in src/changes only, where an older line cannot undo a newer change.
 */
const UNGOVERNED: Readonly<Record<string, readonly string[]>> = {
  accounts: ['password_hash', 'session_generation', 'unwanted_mail', 'language', 'passkey_handle', 'grace_began_at'],
  account_identities: ['last_used_at'],
  organizations: [],
  warehouses: [],
  organization_memberships: [],
  warehouse_rights: [],
};

/** The statements outside src/changes that write governed columns, each with the reason why it may. */
const GOVERNED_WRITES: Readonly<Record<string, string>> = {
  'src/accounts/account-registry.ts: UPDATE accounts ${assignments}':
    'its type allows only columns that are not governed',
  'src/accounts/demo.ts: INSERT INTO accounts': 'runs only on a database without accounts',
  'src/accounts/demo.ts: INSERT INTO organization_memberships': 'runs only on a database without accounts',
  'src/accounts/demo.ts: INSERT INTO organizations': 'runs only on a database without accounts',
  'src/accounts/demo.ts: INSERT INTO warehouses': 'runs only on a database without accounts',
  'src/accounts/doctor-accounts.ts: DELETE FROM accounts': 'deletes only accounts of the doctor, which no line names',
  'src/accounts/identities/identities.ts: DELETE FROM account_identities':
    'runs in a transaction of changes/accounts.ts',
  'src/accounts/identities/identities.ts: INSERT INTO account_identities':
    'only adds a link, which the user has proved',
  'src/clients/client-row.ts: UPDATE ${table} last_used_at': 'its tables are those of clients and secrets',
  'src/storage/cleaning.ts: DELETE FROM ${table}': 'its tables are those of expired records',
};

/** The files that may use `signedInOf` (pages/page.ts): to name a user, to sign out, to sign in, or to add a method. */
const NAME_A_USER: readonly string[] = [
  'src/host/views.ts',
  'src/pages/forms/notices.ts',
  'src/pages/forms/submit-results.ts',
  'src/pages/interaction/interaction.ts',
  'src/pages/page-kit.ts',
  'src/pages/page.ts',
  'src/pages/sign-in/attempt.ts',
  'src/pages/sign-in/sign-in.ts',
  'src/pages/sign-in/sign-out.ts',
  'src/pages/signed-in.ts',
  'src/pages/upstream/arrival.ts',
];

/** Parts that every part may import, and that import no other part. */
const FOR_ALL = ['base'];

const VAGUE_NAME = /^(utils?|helpers?|common|lib|core|misc|services|managers?|shared)(\.ts)?$/;

interface SourceFile {
  /** The path relative to the repository, for example `src/config/load.ts`. */
  readonly name: string;
  /** The folder in src, or the name of a file directly in src. */
  readonly part: string;
  readonly text: string;
  /** The content of the file without comments. */
  readonly code: string;
}

const sources = filesUnder('src', '.ts').map(readSource);
const sourcesOfPrograms = Object.keys(PROGRAMS).map((folder) => filesUnder(folder, '.ts').map(readSource));
const allSources = [...sources, ...sourcesOfPrograms.flat()];
/** All views except views/programs, which print no HTML and have their own test. */
const views = filesUnder('views', '.ejs')
  .map(readSource)
  .filter(({ name }) => !name.startsWith('views/programs/'));

describe('the source files follow the rules of the architecture', () => {
  it('each part of src imports only the parts that are listed for it', () => {
    const trespasses = sources.flatMap((source) => {
      const allowed = [source.part, ...FOR_ALL, ...(MAY_IMPORT[source.part] ?? '').split(' ')];
      return importsOf(source)
        .filter(({ part }) => part !== undefined && !allowed.includes(part))
        .map(({ specifier }) => `${source.name} imports ${specifier}`);
    });
    expect(trespasses).to.deep.equal([]);
  });

  it('the shared parts of src import only shared parts', () => {
    const shared = sources.filter(({ part }) => FOR_ALL.includes(part));
    const others = shared.flatMap(importsOf).filter(({ part }) => part !== undefined && !FOR_ALL.includes(part));
    expect(others).to.deep.equal([]);
  });

  it('the package for APIs imports only its own files, and the sandbox only its own and those of the package', () => {
    const trespasses = Object.entries(PROGRAMS).flatMap(([folder, others], index) =>
      (sourcesOfPrograms[index] ?? []).flatMap((source) => {
        const files = importsOf(source).map(({ specifier }) => target(source, specifier));
        const own = files.filter((file) => /^[^@].*\.m?ts$/.test(file));
        const isAllowed = (file: string) => [folder, ...others].some((each) => file.startsWith(`${each}/`));
        return own.filter((file) => !isAllowed(file)).map((file) => `${source.name} imports ${file}`);
      }),
    );
    expect(trespasses).to.deep.equal([]);
  });

  it('the lists of allowed imports name every part of src', () => {
    const known = [...Object.keys(MAY_IMPORT), ...FOR_ALL];
    expect([...new Set(sources.map(({ part }) => part))]).to.satisfy(
      (parts: string[]) => parts.every((part) => known.includes(part)),
      `only ${known.join(', ')}`,
    );
  });

  it('files do not import each other in a cycle', () => {
    expect(cycles(allSources, (name) => name)).to.deep.equal([]);
  });

  it('folders within a part, and the files next to them, do not import each other in a cycle', () => {
    expect(cycles(sources, (name) => folderOf(name) ?? name)).to.deep.equal([]);
  });

  it('code outside a folder may import only the file with the name of the folder, or the files listed in DOORS', () => {
    const opened = new Map<string, Set<string>>();
    for (const source of sources) {
      for (const { specifier } of importsOf(source)) {
        const name = target(source, specifier);
        const folder = folderOf(name);
        if (folder === undefined || folder === folderOf(source.name)) continue;
        const door = path.relative(`src/${folder}`, name).replace(/\.ts$/, '');
        opened.set(folder, (opened.get(folder) ?? new Set()).add(door));
      }
    }
    const doors = [...opened].map(([key, names]) => [key, [...names].sort().join(' ')] as const);
    const listed = doors.filter(([folder, names]) => names !== path.basename(folder));
    expect(Object.fromEntries(listed)).to.deep.equal(DOORS);
  });

  it('an operator command starts without loading oidc-provider', () => {
    // Loading the engine would double the start time. Loading it later with `import()` is allowed.
    const atStart = packagesAtStart('src/operator/main.ts');
    expect(atStart).to.include.members(['commander', 'pg']);
    expect(atStart.filter((name) => /^oidc-provider\b/.test(name))).to.deep.equal([]);
  });

  it('the service starts without loading the packages that few requests need', () => {
    // Each of these packages takes 10 to 26 MB of memory, so no start may load them.
    const seldom = [
      '@simplewebauthn/server',
      '@simplewebauthn/server/helpers',
      '@zxcvbn-ts/language-common',
      'node-pg-migrate',
      'nodemailer',
    ];
    const atStart = packagesAtStart('src/main.ts');
    expect(atStart).to.include.members(['oidc-provider', 'pg', 'ioredis']);
    expect(atStart.filter((name) => seldom.includes(name))).to.deep.equal([]);
    const used = sources.flatMap(importsOf).map(({ specifier }) => specifier);
    expect(used, 'each is used somewhere').to.include.members(seldom);
  });

  it('no file or folder has a meaningless name, such as utils', () => {
    const all = [...allSources, ...views, ...filesUnder('test', '.ts').map(readSource)];
    const segments = all.flatMap(({ name }) => name.split('/'));
    expect(segments.filter((segment) => VAGUE_NAME.test(segment))).to.deep.equal([]);
  });

  it('files are named in kebab-case', () => {
    const names = allSources.map(({ name }) => path.basename(name));
    expect(names.filter((name) => !/^[a-z0-9]+(-[a-z0-9]+)*\.ts$/.test(name))).to.deep.equal([]);
  });

  it('every source file starts with a doc comment', () => {
    const without = allSources.filter(({ text }) => !/^\/\*\*[\s\S]*?\.[\s\S]*?\*\/\n/.test(text));
    expect(namesOf(without)).to.deep.equal([]);
  });

  // Review a file from 250 lines on, but do not split it only because of the number.
  it('no source file is longer than 400 lines', () => {
    const long = allSources.filter(({ text }) => text.split('\n').length > 401);
    expect(namesOf(long), 'move a separate subject to its own file').to.deep.equal([]);
  });

  it('every page and every command is registered in the list of its kind', () => {
    const pages = exportedFunctions('pages', /\bRoute\[\]/);
    const commands = exportedFunctions('operator', /\(program: Command\b/);
    expect(Math.min(pages.length, commands.length)).to.be.above(10);
    const isCalled = ({ name, file }: (typeof pages)[number]): boolean =>
      sources.some(({ name: other, code }) => other !== file && code.includes(name));
    const forgotten = (exported: typeof pages) =>
      exported.filter((one) => !isCalled(one)).map(({ name, file }) => `${name} of ${file}`);
    const list = 'not called: add it to src/';
    expect(forgotten(pages), `${list}service/page-list.ts`).to.deep.equal([]);
    expect(forgotten(commands), `${list}operator/program/program.ts`).to.deep.equal([]);
  });

  it('object literals are not spread just to change how the formatter breaks lines', () => {
    expect(containing(/\.\.\.\{/, allSources)).to.deep.equal([]);
  });

  it('no file has a default export or re-exports', () => {
    expect(containing(/\bexport\s+(default\b|\*|\{[^}]*\}\s*from\b)/, allSources)).to.deep.equal([]);
  });
});

describe('code that is allowed in one place only', () => {
  for (const [file, does, pattern] of [
    ['storage/account-turns.ts', 'locks accounts', /\baccounts\b[^;`]*FOR NO KEY UPDATE/],
    ['config/environment.ts', 'reads the environment', /\bprocess\s*\.\s*env\b/],
    ['storage/redis/redis.ts', 'connects to Redis', /\bnew\s+(Redis|Cluster|IORedis)\b/],
    [
      'base/outgoing-requests.ts',
      'sends HTTP requests',
      /(?<!\.)\bfetch\(|import (\{[^}]*\b(request|get)\b[^}]*\}|\w+) from 'node:https?'|'(undici|node:http2)'/,
    ],
  ] as const) {
    it(`only ${file} ${does}`, () => expect(containing(pattern)).to.deep.equal([`src/${file}`]));
  }

  it('only the folders clients, accounts, authorizations, changes and storage contain SQL', () => {
    const statement = /\b(SELECT|INSERT\s+INTO|UPDATE|DELETE\s+FROM|CREATE\s+TABLE|LISTEN)\s/;
    const asked = /\.query\s*(<[^()]*>)?\(/;
    const elsewhere = sources.filter(
      ({ part, code }) =>
        !['clients', 'accounts', 'authorizations', 'changes', 'storage'].includes(part) &&
        (statement.test(code) || asked.test(code)),
    );
    expect(namesOf(elsewhere)).to.deep.equal([]);
  });

  it('each table is written by one folder only', () => {
    // The last alternative finds tables from which storage/cleaning.ts deletes rows for another folder.
    const writes = /\b(?:INSERT\s+INTO\s+|UPDATE\s+|DELETE\s+FROM\s+|table: ')([a-z_]+)/g;
    const writers = new Map<string, Set<string>>();
    for (const { part, code } of sources) {
      for (const [, table = ''] of code.matchAll(writes)) {
        // Treat changes as part of accounts: they write its tables, many rows at a time.
        const writer = part === 'changes' ? 'accounts' : part;
        writers.set(table, (writers.get(table) ?? new Set()).add(writer));
      }
    }
    expect(writers.size).to.be.above(12);
    const several = [...writers].filter(([, parts]) => parts.size > 1);
    expect(several.map(([table, parts]) => `${table}: ${[...parts]}`)).to.deep.equal([]);
  });

  it('only src/changes writes users, organizations, warehouses, access and links, except for listed statements', () => {
    const tables = Object.keys(UNGOVERNED).join('|');
    // Tables may also have their names from a list, as in `DELETE FROM ${table}`.
    const write = new RegExp(
      `\\b(INSERT\\s+INTO|MERGE\\s+INTO|UPDATE|DELETE\\s+FROM|TRUNCATE)\\s+(?:ONLY\\s+|TABLE\\s+)?(${tables}|\\$\\{\\w+\\})(?![\\w.])(?:\\s+SET\\s+([^;]*?)\\s(?:WHERE|FROM)\\b)?`,
      'g',
    );
    const found = sources.flatMap(({ name, part, code }) =>
      part === 'changes'
        ? []
        : [...code.matchAll(write)].flatMap(([, verb = '', table = '', set = '']) => {
            const columns = [...set.matchAll(/(?:^|,)\s*([a-z_]+|\$\{\w+\})(?=\s*=|$)/g)].map(
              ([, column = '']) => column,
            );
            const governed = columns.filter((column) => !UNGOVERNED[table]?.includes(column));
            if (columns.length > 0 && governed.length === 0) return [];
            return [[`${name}: ${verb.replace(/\s+/, ' ')} ${table}`, ...governed].join(' ')];
          }),
    );
    expect([...new Set(found)].sort()).to.deep.equal(Object.keys(GOVERNED_WRITES).sort());
  });

  it('only the listed files call `signedInOf`, whose user may still need a stronger sign-in', () => {
    const users = containing(/\bsignedInOf\b/).filter((name) => !name.startsWith('src/service/'));
    expect(users).to.deep.equal(NAME_A_USER);
  });

  it('only src/provider imports oidc-provider', () => {
    const users = sources.filter((source) =>
      importsOf(source).some(({ specifier, isType }) => !isType && /^oidc-provider\b/.test(specifier)),
    );
    expect(users.filter(({ part }) => part !== 'provider')).to.deep.equal([]);
  });

  it('only provider/engine-overrides.ts patches oidc-provider', () => {
    const patch = /\.prototype\b|\bregister(GrantType|ResponseMode)\(/;
    const inProvider = sources.filter(({ part, code }) => part === 'provider' && patch.test(code));
    expect(namesOf(inProvider)).to.deep.equal(['src/provider/engine-overrides.ts']);
  });

  it('routes are defined in pages and mounted by host/host.ts; those for operators are in host/operators-host.ts', () => {
    // Pages redirect and link to paths, so a path in a string is allowed. A path is a route only if
    // something is registered for it or compares it with the path of the request.
    const registered = /\.(get|post|put|patch|delete|del|all|use|register)\(\s*['"`[]+\//;
    const compared = /\bpath(name)?\s*(===?|!==?|\.startsWith\()\s*['"`]\//;
    const elsewhere = sources.filter(
      ({ name, code }) =>
        !['src/host/host.ts', 'src/host/operators-host.ts'].includes(name) &&
        (registered.test(code) || compared.test(code) || /from 'koa-router'/.test(code)),
    );
    expect(namesOf(elsewhere)).to.deep.equal([]);
  });
});

describe('views', () => {
  it('views escape every value that they print: <%- is used only to include views', () => {
    const raw = views.filter(({ text }) => /<%-(?!\s*include\()/.test(text));
    expect(namesOf(raw)).to.deep.equal([]);
  });

  it('templates of example programs print values of a client only as quoted literals', () => {
    const folder = new URL('../views/programs/', import.meta.url);
    const raw = readdirSync(folder).flatMap((name) => {
      const text = readFileSync(new URL(name, folder), 'utf8');
      return [...text.matchAll(/<%-\s*(.*?)\s*-?%>/g)].map(([, printed = '']) => printed);
    });
    const ownWords = /^(comment|preparation|port|paths\.\w+|host === '::1' \? '\w+' : '\w+')$/;
    expect(raw).not.to.deep.equal([]);
    expect(raw.filter((printed) => !ownWords.test(printed))).to.deep.equal([]);
  });

  it('views contain no inline script or style', () => {
    const inline = /<script(?![^>]*\bsrc=)|<style\b|\son[a-z]{3,}="|\sstyle=|javascript:/i;
    // A mail has no file of its own for its style.
    const pages = views.filter(({ name }) => !name.startsWith('views/mail/'));
    expect(namesOf(pages.filter(({ text }) => inline.test(text)))).to.deep.equal([]);
    const mails = views.filter(({ name }) => name.startsWith('views/mail/'));
    // The logo is a part of the mail, so nothing is loaded.
    const active = /<script|<img(?! src="cid:)|\bsrc="(?!cid:)|@import|url\(|\son[a-z]{3,}="|javascript:/i;
    expect(namesOf(mails.filter(({ text }) => active.test(text)))).to.deep.equal([]);
  });
});

interface Import {
  readonly specifier: string;
  /** The imported part of src; undefined for a package or a file outside src. */
  readonly part: string | undefined;
  readonly isType: boolean;
  /** True for `import()`, which loads the module at run time. */
  readonly isLater: boolean;
}

function importsOf(source: SourceFile): Import[] {
  const statements = /\b(?:import|export)\b(\s+type\b)?[^'";]*?\bfrom\s*'([^']+)'/g;
  const bare = /\bimport\s*(\(?)\s*'([^']+)'/g;
  const found = [
    ...[...source.code.matchAll(statements)].map(([, type, specifier = '']) => ({
      specifier,
      isType: type !== undefined,
      isLater: false,
    })),
    ...[...source.code.matchAll(bare)].map(([, bracket, specifier = '']) => ({
      specifier,
      isType: false,
      isLater: bracket === '(',
    })),
  ];
  return found.map((found) => ({ ...found, part: partOf(target(source, found.specifier)) }));
}

const target = (source: SourceFile, specifier: string): string =>
  specifier.startsWith('.') ? path.join(path.dirname(source.name), specifier) : specifier;

/** Returns all packages that a program imports, directly or not, except with `import()`. */
function packagesAtStart(program: string): string[] {
  const reached = new Set([program]);
  for (const name of reached) {
    const source = sources.find((one) => one.name === name);
    for (const { specifier, isType, isLater } of source ? importsOf(source) : []) {
      if (source && !isType && !isLater) reached.add(target(source, specifier));
    }
  }
  return [...reached].filter((name) => !name.startsWith('src/'));
}

function cycles(from: readonly SourceFile[], placeOf: (name: string) => string | undefined) {
  const edges = new Map<string, Set<string>>();
  for (const source of from) {
    const place = placeOf(source.name);
    for (const { specifier } of importsOf(source)) {
      const next = placeOf(target(source, specifier));
      if (place === undefined || next === undefined || place === next) continue;
      edges.set(place, (edges.get(place) ?? new Set()).add(next));
    }
  }
  const settled = new Set<string>();
  const found: string[] = [];
  const walk = (place: string, trail: readonly string[]): void => {
    if (trail.includes(place)) found.push([...trail.slice(trail.indexOf(place)), place].join(' → '));
    if (trail.includes(place) || settled.has(place)) return;
    for (const next of edges.get(place) ?? []) walk(next, [...trail, place]);
    settled.add(place);
  };
  for (const place of edges.keys()) walk(place, []);
  return found;
}

/** Returns the folder within a part that contains a file at any depth: `pages/sign-in`. */
const folderOf = (name: string): string | undefined => /^src\/([^/]+\/[^/]+)\//.exec(name)?.[1];

function partOf(name: string): string | undefined {
  const [top, part] = name.split('/');
  return top === 'src' ? part : undefined;
}

function filesUnder(folder: string, ending: string): string[] {
  return readdirSync(path.join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending))
    .map((name) => path.join(folder, name))
    .sort();
}

function readSource(name: string): SourceFile {
  const text = readFileSync(path.join(ROOT, name), 'utf8');
  const code = text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '');
  return { name, part: partOf(name) ?? name, text, code };
}

/** Returns the exported functions of a part that match `kind`. */
const exportedFunctions = (part: string, kind: RegExp) =>
  sources
    .filter((source) => source.part === part)
    .flatMap(({ name: file, code }) =>
      code.split(/^export (?=function|const)/m).flatMap((text) => {
        const [, name] = /^(?:function|const) (\w+)/.exec(text) ?? [];
        return name && kind.test(text.split(/^}$/m)[0] ?? '') ? [{ name, file }] : [];
      }),
    );

const namesOf = (files: readonly SourceFile[]): string[] => files.map(({ name }) => name);

const containing = (pattern: RegExp, files = sources): string[] =>
  namesOf(files.filter(({ code }) => pattern.test(code)));
