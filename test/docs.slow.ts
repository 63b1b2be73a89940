/** The commands and programs in the docs work. */
import { execFileSync } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { withChecksum } from '../src/base/random-id.ts';
import { commandsIn, nameOf, pages, ROOT, textOf } from './documentation.ts';
import { operatorFor, operatorWith, valueFrom, variablesAt } from './operator/run-operator.ts';
import { openPatiently } from './support/databases.ts';
import { eventually } from './support/eventually.ts';
import { type MailServer, startMailServer } from './support/mail-server.ts';
import { execute, startPostgresServer } from './support/postgres-server.ts';
import { findProgram, freePort, runsAsRoot, startProgram } from './support/programs.ts';
import { describeOn, postgresAccount, postgresServer, required } from './support/requirements.ts';
import { addTestClient, addUnusablePasskey, apiKeyOf } from './support/seed.ts';
import { startSeeded } from './support/seeded.ts';
import { temporaryDirectory } from './support/temporary-directory.ts';

/** Splits a command like a shell, and removes redirections. */
const wordsOf = (command: string): string[] =>
  [...command.replace(/ [<>] \S+/g, '').matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');

const jsonLinesIn = (text: string): string => /```json\n(\{"type".*?)```/s.exec(text)?.[1] ?? '';

const psql = { program: findProgram('psql'), remedy: 'psql (Debian package postgresql-client)' };

/** Runs the commands in a shell in which `su - postgres` is the account of the test's server. */
function asPostgres(commands: string, serverUrl: string): string {
  const { port } = new URL(serverUrl);
  const bin = path.dirname(required(postgresServer));
  const change = runsAsRoot ? `setpriv --reuid=${postgresAccount} --regid=${postgresAccount} --init-groups ` : '';
  const setting = `su() { ${change}sh -c "$4"; }; cd /`;
  const { PATH } = process.env;
  const env = { PATH: `${bin}:${PATH}`, PGHOST: '127.0.0.1', PGPORT: port, PGUSER: 'postgres' };
  return execFileSync('sh', ['-ec', `${setting}\n${commands}`], { env, encoding: 'utf8' });
}

/** Commands that change nothing. */
const READING = /^(audit|check-config|doctor|nodes|show|\S+ (list|show))\b/;

const UNKNOWN_KEY = withChecksum(`gate_key_${'x'.repeat(43)}`);

describe('the documentation', () => {
  describe('operator commands', () => {
    const on = startSeeded();
    const directory = temporaryDirectory('docs');
    const examined = new Set<string>();
    const file = (name: string, text: string): string => {
      writeFileSync(path.join(directory, name), text);
      return path.join(directory, name);
    };

    let passkey: string;

    let mail: MailServer;

    before(async () => {
      mail = await startMailServer();
      for (const email of ['ada@demo.test', 'ada@example.com']) {
        const { id: accountId } = await on.service.accounts.add({ email, name: 'Ada' });
        const identity = { issuer: 'https://id.example.com/realms/warehouse', subject: email };
        const { database, identities } = on.service;
        await database.transaction((tx) => identities.link(accountId, identity, tx));
        passkey = await addUnusablePasskey(on.service, accountId, email);
      }
    });

    for (const page of pages) {
      const commands = commandsIn(textOf(page));
      if (commands.length === 0) continue;
      it(`the shell commands in ${nameOf(page)} work`, async () => {
        const { service, seeded, clients } = on;
        const { accessToken } = await on.partner.tokens(clients.otherConfidential);
        // Each page of the docs gets its own data, because its commands change and remove data.
        const organization = await service.organizations.add({ name: 'Storm Logistics' });
        const place = { organizationId: organization.id, name: 'Bergen' };
        const warehouse = await service.organizations.addWarehouse(place);
        const client = await addTestClient(service, 'Partner');
        await on.partner.tokens(client);
        const { email, accountId } = seeded.person;
        const key = await apiKeyOf(service, seeded.person);
        const environment = variablesAt(service);
        const mailing = {
          GATEHOUSE_CONFIG: file('mail.yaml', 'mail: { from: gatehouse@example.com }'),
          SMTP_URL: mail.url,
        };
        const values: Readonly<Record<string, string>> = {
          'org_…': organization.id,
          'wh_…': warehouse.id,
          'gate_ci_…': client.id,
          'pk_…': passkey,
          'key_…': key.id,
          'kim@example.com': email,
          '--secret=x7Qa': `--secret=${client.secret?.slice(-4)}`,
          'people.jsonl': file('people.jsonl', jsonLinesIn(textOf(page))),
          'report.json': file('report.json', JSON.stringify([{ token: UNKNOWN_KEY }])),
          'copy.yaml': path.join(ROOT, 'config/gatehouse.yaml'),
          'http://10.0.0.2:3000': service.issuer,
          'http://localhost:3000': service.issuer,
          'acc_…/gate_ci_…': `${accountId}/${client.id}`,
        };
        for (const command of new Set(commands)) {
          // Run a command that changes nothing only once.
          if (examined.has(command)) continue;
          if (READING.test(command)) examined.add(command);
          // Wait for only one node, because only one runs here.
          const line = command.replace('nodes --wait 2', 'nodes --wait 1');
          const words = wordsOf(line).map((word) => values[word] ?? word);
          // Type a confirmation for commands that ask for one.
          const isAsked =
            words[0] === 'revoke' || /^(?!memberships )\S+ (remove|remove-secret|renew|delete|end|revoke)\b/.test(line);
          if (isAsked && !words.includes('--yes')) words.push('--yes');
          const isMailing = words.includes('--mail');
          const run = operatorWith({ ...environment, ...(isMailing && mailing) });
          // Keep the token valid for the commands after `leaked`.
          const input = words[0] === 'leaked' ? UNKNOWN_KEY : accessToken;
          const { exitCode, output, errors } = await run(words, input);
          expect(exitCode, `${command}\n${output}${errors}`).to.equal(0);
        }
      });
    }
  });

  describeOn([postgresServer, psql], 'the documented SQL', () => {
    const textBehind = (page: string, pattern: RegExp): string =>
      pattern.exec(textOf(path.join(ROOT, 'docs/operations', page)))?.[1] ?? '';
    let superuser: URL;
    let url: URL;

    before(async () => {
      const server = await startPostgresServer();
      const block = textBehind('deploy.md', /su - postgres -c psql <<END\n(CREATE ROLE .*?)END\n/s);
      await execute(server.url, ...block.split(';\n').filter(Boolean));
      superuser = new URL('/gatehouse', server.url);
      url = new URL(superuser);
      url.username = 'gatehouse';
    });

    it('the documented SQL creates a role and a database with all the permissions that the service needs', async () => {
      const run = operatorWith({ DATABASE_URL: url.href });
      const migrated = await valueFrom(run, 'migrate');
      expect(migrated.migrations).to.deep.equal(['0001_schema']);
      await valueFrom(run, ['accounts', 'add', '--invite', '--email', 'jo@example.com', '--name', 'Jo']);
      const database = await openPatiently({ databaseUrl: url.href });
      // Run the readiness check, which also needs the permission to write.
      expect(await database.ping().finally(() => database.close())).to.be.above(0);
    });

    it('the documented SQL makes the role of Gatehouse the owner of tables that a superuser restored', async () => {
      const run = operatorWith({ DATABASE_URL: url.href });
      await valueFrom(run, 'migrate');
      const asSuperuser = (input: string): string =>
        execFileSync(required(psql), ['--set=ON_ERROR_STOP=1', superuser.href], { input, encoding: 'utf8' });
      asSuperuser(`
        ALTER SCHEMA public OWNER TO CURRENT_USER;
        SELECT format('ALTER TABLE %I OWNER TO CURRENT_USER', tablename) FROM pg_tables WHERE schemaname = 'public' \\gexec
        SELECT format('ALTER ROUTINE %s OWNER TO CURRENT_USER', oid::regprocedure) FROM pg_proc
          WHERE pronamespace = 'public'::regnamespace \\gexec
      `);
      const { exitCode } = await run(['accounts', 'list']);
      expect(exitCode).not.to.equal(0);
      const answer = asSuperuser(
        textBehind('incidents.md', /su - postgres -c 'psql [^\n]* <<'END'\n(ALTER SCHEMA .*?)END\n/s),
      );
      expect(answer).to.match(/ gatehouse\n\(1 row\)/);
      await valueFrom(run, ['accounts', 'add', '--email', 'kim@example.com', '--name', 'Kim', '--invite']);
    });
  });

  describeOn([postgresServer, psql], 'the documented return to a point in time', () => {
    it('a point-in-time recovery restores what was deleted later, and loses what was added later', async () => {
      const server = await startPostgresServer();
      const run = operatorWith({ DATABASE_URL: await server.createDatabase() });
      const backup = temporaryDirectory('point-in-time');
      chmodSync(backup, 0o755);
      const succeed = async (words: readonly string[]): Promise<void> => {
        const { exitCode, errors } = await run(words);
        expect(exitCode, errors).to.equal(0);
      };
      const add = (name: string) =>
        succeed(['accounts', 'add', '--invite', '--email', `${name}@example.com`, '--name', name]);
      const page = textOf(path.join(ROOT, 'docs/operations/incidents.md'));
      const [, section = ''] = /## Go back to a point in time\n(.*?)\n## /s.exec(page) ?? [];
      const [prepare = '', goBack = ''] = [...section.matchAll(/```sh\n(.*?)```/gs)].map(([, block]) => block);

      /** Runs the commands in their order. Those of systemd stop and start the server of this test. */
      const follow = async (block: string, moment = ''): Promise<void> => {
        const here = block
          .replaceAll('/var/lib/postgresql/15/main', server.data)
          .replaceAll('/backup-postgres', `${backup}/postgres`)
          .replace('2026-01-31 11:59:00+00', moment);
        for (const part of here.split(/^((?:systemctl|gatehouse) .*)\n/m)) {
          if (part === 'systemctl stop postgresql' || part === 'systemctl restart postgresql') await server.shutDown();
          if (part === 'systemctl start postgresql' || part === 'systemctl restart postgresql') await server.restart();
          // Do not wait for nodes: none runs.
          if (/^gatehouse (?!nodes)/.test(part)) await succeed(part.split(' ').slice(1));
          if (/^(?:systemctl|gatehouse) /.test(part)) continue;
          await eventually(() => {
            const output = asPostgres(part, server.url);
            if (part.includes('pg_is_in_recovery')) expect(output).to.match(/^ f$/m);
          });
        }
      };

      await succeed(['migrate']);
      await add('kim');
      await follow(prepare);
      const moment = asPostgres("psql -Atc 'SELECT now()'", server.url).trim();
      await succeed(['accounts', 'delete', 'kim@example.com', '--yes']);
      await add('late');
      await follow(goBack, moment);
      const { output } = await run(['accounts', 'list', '--json']);
      expect(JSON.parse(output).map(({ email }: { email: string }) => email)).to.deep.equal(['kim@example.com']);
    });
  });

  describe('the program in the README', () => {
    const on = startSeeded();

    it('the program in the README connects a client registered with the command in the README', async () => {
      const port = await freePort();
      const here = (text: string): string => text.replaceAll(':4000', `:${port}`).replaceAll('(4000', `(${port}`);
      const readme = textOf(path.join(ROOT, 'README.md'));
      const [, program = ''] = /```js\n(import \{ createServer.*?)```/s.exec(readme) ?? [];
      const run = operatorFor(on.service);
      await on.service.accounts.add({ email: 'ada@demo.test', name: 'Ada' });
      const [command = ''] = commandsIn(readme);
      const client = await valueFrom(run, wordsOf(here(command)));
      const partner = startProgram(process.execPath, ['--input-type=module', '-e', here(program)], {
        cwd: ROOT,
        environment: {
          PATH: process.env.PATH,
          ISSUER: on.issuer,
          CLIENT_ID: client.client_id,
          CLIENT_SECRET: client.client_secret,
        },
      });
      await partner.waitUntil(async () => expect(partner.output()).to.match(/^Open \S+\n/));
      const url = partner.output().trim().replace('Open ', '');
      const redirect = await on.partner.browser.authorize(url, on.seeded.person);
      expect(await (await fetch(redirect)).text()).to.include('Connected');
      expect(await partner.exitCode, partner.output()).to.equal(0);
      expect(partner.output()).to.include('gate_rt_');
    });
  });
});
