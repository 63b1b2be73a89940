/** Runs the commands of docs/operations/memberships.md, with its proxies and the programs in examples/changes. */
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { shippedConfiguration } from '../journeys/documented-proxies.ts';
import { eventually } from '../support/eventually.ts';
import { createOpened } from '../support/opened.ts';
import { freshDatabaseUrl } from '../support/postgres-server.ts';
import { findProgram, freePort, startProgram } from '../support/programs.ts';
import { describeOn, openssl, postgresServer, required } from '../support/requirements.ts';
import { caddy, nginx, writeCertificate } from '../support/reverse-proxies.ts';
import { startsOn, type TestService } from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { bodyOf, line } from './import-file.ts';
import { push, SECRET, SENDERS } from './pushing.ts';

const PAGE = readFileSync(path.join(import.meta.dirname, '../../docs/operations/memberships.md'), 'utf8');
const { account, membership, organization } = line;
const run = promisify(execFile);

/** Returns the page's code block in this language that begins with the text `beginning`. */
function block(language: string, beginning: string): string {
  const blocks = [...PAGE.matchAll(new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 'gs'))];
  const found = blocks.map(([, text = '']) => text).find((text) => text.startsWith(beginning));
  return found ?? expect.fail(`no block in ${language} begins with ${beginning}`);
}

const example = (name: string): string =>
  readFileSync(path.join(import.meta.dirname, '../../examples/changes', name), 'utf8');

describe('the examples of the docs page “Keep memberships current” work', () => {
  const start = startsOn();
  let service: TestService;
  let folder: string;
  before(async () => {
    service = await start({ settings: { senders: SENDERS } });
    folder = temporaryDirectory('memberships');
    await push(service, [organization('17', 'Storm Logistics')]);
  });

  const here = (text: string): string => text.replaceAll('http://localhost:3001', service.operatorsUrl);
  const write = (name: string, text: string, mode = 0o600): string => {
    writeFileSync(path.join(folder, name), text, { mode });
    return path.join(folder, name);
  };
  const members = async (): Promise<string[]> => {
    const rows = await service.database.query<{ who: string }>(
      `SELECT concat_ws(' ', a.external_id, m.role) AS who FROM organization_memberships m
        JOIN accounts a ON a.id = m.account_id ORDER BY 1`,
    );
    return rows.map(({ who }) => who);
  };
  const resultsIn = (output: string): string[] =>
    output
      .split('\n')
      .filter(Boolean)
      .map((one) => JSON.parse(one).result);

  it('the documented curl command sends the example lines, and the service accepts all of them', async () => {
    write('authorization', `Authorization: Bearer ${SECRET}\n`);
    write('changes.jsonl', block('jsonl', '{"type":'));
    const { stdout } = await run('sh', ['-c', here(block('sh', 'curl'))], { cwd: folder });
    expect(resultsIn(stdout)).to.deep.equal(['ok', 'ok', 'ok']);
  });

  it('the Node program sends any number of lines, and repeats them while the service answers 503', async () => {
    const file = write('send-changes.mjs', example('send-changes.mjs'));
    const { sendChanges } = await import(file);
    const people = Array.from({ length: 1_002 }, (_, at) => account(`N${at}`));
    const url = `${service.operatorsUrl}/changes`;
    const answers = await sendChanges(people, { url, secret: SECRET });
    expect(answers.map(({ result }: { result: string }) => result)).to.deep.equal(Array(1_002).fill('ok'));
    const refused = await sendChanges(people, { url, secret: 'wrong' }).catch(String);
    expect(refused).to.contain('wrong_secret');
    const port = await freePort();
    const later = sendChanges(people.slice(0, 1), {
      url: `http://127.0.0.1:${port}/changes`,
      secret: SECRET,
      pauseMs: 20,
    });
    const { createServer } = await import('node:http');
    let asked = 0;
    const server = createServer((_request, response) => {
      asked += 1;
      response.writeHead(asked === 1 ? 503 : 200).end('{"line":1,"result":"ok"}\n');
    }).listen(port, '127.0.0.1');
    expect(await later).to.deep.equal([{ line: 1, result: 'ok' }]);
    expect(asked).to.equal(2);
    server.close();
  });

  it('the Python program sends any number of lines, and repeats them while the service answers 503', async function () {
    const python = findProgram('python3');
    if (python === undefined) this.skip();
    write('send_changes.py', example('send_changes.py'));
    write('lines.json', JSON.stringify([account('P1'), membership('P1', '17')]));
    const program = `import json, sys
from send_changes import send_changes
url, secret = sys.argv[1:]
print(json.dumps(send_changes(json.load(open("lines.json")), url, secret)))`;
    const url = `${service.operatorsUrl}/changes`;
    const { stdout } = await run(python, ['-c', program, url, SECRET], { cwd: folder });
    expect(JSON.parse(stdout)).to.deep.equal([
      { line: 1, result: 'ok' },
      { line: 2, result: 'ok' },
    ]);
    const failed = await run(python, ['-c', program, url, 'wrong'], { cwd: folder }).catch(String);
    expect(failed).to.contain('wrong_secret');
  });

  describeOn([postgresServer], 'the outbox', () => {
    const psql = findProgram('psql');

    it('changes of a table are sent to the service, and stay in the outbox until they are answered', async function () {
      if (psql === undefined) this.skip();
      const database = await freshDatabaseUrl();
      const sql = (...args: string[]) =>
        run(psql, ['-qAtX', '-v', 'ON_ERROR_STOP=1', ...args, database], { cwd: folder });
      const table = 'CREATE TABLE staff (person text, organization text, role text)';
      await sql('-c', table);
      await sql('-f', write('outbox.sql', example('outbox.sql')));
      const relay = write('relay.sql', example('relay.sql'));
      const sender = example('send.sh');
      write('authorization', `Authorization: Bearer ${SECRET}\n`);
      await push(service, [account('S1'), account('S2', { name: 'Back\\slash "quoted"' })]);
      await sql('-c', "INSERT INTO staff VALUES ('S1', '17', 'member'), ('S2', '17', 'viewer')");

      write('send.sh', sender.replace('3001', String(await freePort())), 0o700);
      expect(await sql('-f', relay).catch(() => 'failed')).to.equal('failed');
      expect((await sql('-c', 'SELECT count(*) FROM outbox')).stdout.trim()).to.equal('2');

      write('send.sh', here(sender), 0o700);
      await sql('-f', relay);
      expect((await sql('-c', 'SELECT count(*) FROM outbox')).stdout.trim()).to.equal('0');
      expect(await members()).to.include.members(['S1 member', 'S2 viewer']);
      await sql('-c', "UPDATE staff SET role = 'admin' WHERE person = 'S1'");
      await sql('-c', "DELETE FROM staff WHERE person = 'S2'");
      await sql('-c', "INSERT INTO staff VALUES ('unknown', '17', 'member')");
      const { stderr } = await sql('-f', relay);
      expect(stderr).to.contain('account_unknown');
      expect(await members())
        .to.include('S1 admin')
        .and.not.include('S2 viewer');
      await sql('-f', relay);
    });
  });

  /** For each proxy, writes its configuration with local values, and returns its arguments. */
  const PROXIES = [
    {
      ...nginx,
      argumentsOf(tls: number, certificate: string, key: string) {
        const text = shippedConfiguration('changes-nginx.conf')
          .replace('listen 443 ssl', `listen 127.0.0.1:${tls} ssl`)
          .replace('/etc/letsencrypt/live/auth.example.com/fullchain.pem', certificate)
          .replace('/etc/letsencrypt/live/auth.example.com/privkey.pem', key)
          .replace('changes.example.com', 'localhost')
          .replace('http://10.0.0.1:3001', service.operatorsUrl);
        return nginx.write(folder, text);
      },
    },
    {
      ...caddy,
      argumentsOf(tls: number, certificate: string, key: string) {
        const text = shippedConfiguration('changes.Caddyfile')
          .replace('changes.example.com {', `https://localhost:${tls} {\n tls ${certificate} ${key}`)
          .replace('10.0.0.1:3001', new URL(service.operatorsUrl).host);
        const global = '{\n  admin off\n  auto_https disable_redirects\n}\n';
        return caddy.write(folder, global + text);
      },
    },
  ];

  for (const proxy of PROXIES) {
    describeOn([openssl, proxy], `behind ${proxy.name}`, () => {
      const opened = createOpened();
      after(opened.closeAll);

      it('the documented proxy passes on only POST /changes', async () => {
        const [certificate, key] = writeCertificate(folder);
        const tls = await freePort();
        const args = proxy.argumentsOf(tls, certificate, key);
        const environment = { PATH: process.env.PATH, HOME: folder };
        const running = startProgram(required(proxy), args, { cwd: folder, environment });
        await opened.add(Promise.resolve(running), (started) => started.end('SIGTERM'));
        write('authorization', `Authorization: Bearer ${SECRET}\n`);
        write('one.jsonl', `${bodyOf([account('X1')])}`);
        /** Sends a request through the proxy with curl, which trusts the test certificate. */
        const ask = async (where: string, ...more: string[]): Promise<string> => {
          const common = ['--silent', '--cacert', certificate, '--write-out', '%{http_code}'];
          const { stdout } = await run(
            'curl',
            [...common, '--header', '@authorization', ...more, `https://localhost:${tls}${where}`],
            { cwd: folder },
          );
          return stdout;
        };
        const post = ['--data-binary', '@one.jsonl'];
        await eventually(async () => {
          const answer = await ask('/changes', ...post).catch((error: Error) => error.message);
          expect(answer, running.output()).to.match(/^\{"line":1,"result":"(ok|unchanged)"\}\n200$/);
        });
        for (const where of ['/', '/metrics', '/reload', '/healthz', '/changes/', '/changes/../metrics']) {
          // Without a body: the proxy may answer before curl has sent one, and curl then fails.
          const exact = ['--path-as-is', '--request', 'POST'];
          expect(await ask(where, ...exact), where)
            .to.match(/404$/)
            .and.not.contain('gatehouse_');
        }
        expect(await ask('/changes')).to.match(/40[345]$/);
        expect(await ask('/metrics')).to.match(/404$/);
      });
    });
  }
});
