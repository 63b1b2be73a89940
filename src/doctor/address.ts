/** The doctor's check of the public address: does the service answer there, and safely? */
import { lookup } from 'node:dns/promises';
import { ENDPOINT } from '../provider/endpoints.ts';
import { described, explainConnectionError, type Trouble, troubled, unreachable } from './connection-errors.ts';
import { type Findings, ok, problem, type Verdict, warning } from './findings.ts';
import { createRequests, type DoctorAnswer, type DoctorRequests, type Send } from './requests.ts';

/** A client may send a `state` of some thousand characters, a user a form of 40 redirect URIs. */
const LONG_QUERY_BYTES = 6_000;
const LARGE_BODY_BYTES = 40_000;
const MIN_CERTIFICATE_DAYS = 14;
const DAY_MS = 86_400_000;

export interface AddressToCheck {
  readonly issuer: string;
  readonly address: string | undefined;
  readonly signal: AbortSignal;
}

/** @returns a function that sends further requests, or undefined if the service does not answer */
export async function checkAddress(findings: Findings, target: AddressToCheck): Promise<DoctorRequests | undefined> {
  const { issuer, address } = target;
  const answer = await firstAnswer(findings, target);
  if (!answer) {
    findings.notChecked(
      ['certificate', 'hsts', 'plain_http', 'request_sizes'],
      'the service does not answer at the public address',
    );
    return undefined;
  }
  const url = new URL(address ?? issuer);
  if (url.protocol === 'https:') {
    findings.add('certificate', issuer, certificateVerdict(answer.certificateEnds));
    findings.add('hsts', issuer, hstsVerdict(answer));
    if (address === undefined && url.port === '') {
      const plain = issuer.replace(/^https:/, 'http:');
      findings.add('plain_http', plain, await plainVerdict(target, plain));
    }
  } else {
    const because = address === undefined ? 'the issuer is http' : `${address} is http`;
    findings.notChecked(['certificate', 'hsts', 'plain_http'], because);
  }
  const requests = createRequests({ ...target, from: await ownLoopback(target, answer) });
  findings.add('request_sizes', issuer, await sizesVerdict(requests.send));
  return requests;
}

/** Requests the metadata. @returns the answer, if the service sent it and it names this issuer */
async function firstAnswer(findings: Findings, target: AddressToCheck): Promise<DoctorAnswer | undefined> {
  const { issuer, address } = target;
  const where = address === undefined ? issuer : `${address} (with the host name of ${issuer})`;
  const add = (verdict: Verdict): void => findings.add('public_address', where, verdict);
  try {
    const asked = performance.now();
    const answer = await createRequests(target).send({ path: ENDPOINT.metadata });
    const ms = performance.now() - asked;
    const trouble = explainConnectionError(answer) ?? wrongIssuer(answer, issuer);
    if (!trouble) {
      add(ok(`${where} (${await addressesOf(address ?? issuer)}) answers with its metadata`, ms));
      return answer;
    }
    add(troubled(trouble));
  } catch (error) {
    target.signal.throwIfAborted();
    add(troubled(unreachable(error)));
  }
  return undefined;
}

function wrongIssuer(answer: DoctorAnswer, issuer: string): Trouble | undefined {
  if (answer.status === 200 && answer.body.issuer === issuer) return undefined;
  return {
    message: `the metadata at this address has the issuer ${answer.body.issuer}: ${described(answer)}`,
    remedy: 'give every node and the doctor the same issuer (GATEHOUSE_ISSUER)',
  };
}

async function addressesOf(url: string): Promise<string> {
  const { hostname } = new URL(url);
  const found = await lookup(hostname.replace(/^\[|\]$/g, ''), { all: true }).catch(() => []);
  return found.map(({ address }) => address).join(', ');
}

function certificateVerdict(ends: Date | undefined): Verdict {
  const days = Math.floor(((ends?.getTime() ?? 0) - Date.now()) / DAY_MS);
  const message = `valid for ${days} more days`;
  if (days >= MIN_CERTIFICATE_DAYS) return ok(message);
  const remedy =
    'renew the certificate, and check that it is renewed automatically and that the proxy is then reloaded';
  return warning(`only ${message}`, remedy);
}

function hstsVerdict({ headers }: DoctorAnswer): Verdict {
  const policy = headers.get('strict-transport-security');
  if (policy) return ok(`Strict-Transport-Security: ${policy}`);
  return warning(
    'the header Strict-Transport-Security does not arrive',
    'make the proxy pass this header on: the service sends it (nginx: no proxy_hide_header, no ' +
      'empty add_header of it)',
  );
}

/** Checks that no user types a password on a page that was loaded without TLS. */
async function plainVerdict(target: AddressToCheck, plain: string): Promise<Verdict> {
  const { send } = createRequests({ ...target, address: plain });
  const answer = await send({ path: '/login' }).catch(() => undefined);
  target.signal.throwIfAborted();
  if (!answer) return ok(`no server answers at ${plain}`);
  if (answer.headers.get('location')?.startsWith('https://')) return ok(`${plain} redirects to https`);
  const remedy = 'make the proxy answer http only with a redirect to https';
  return warning(`without TLS the answer is ${described(answer)}`, remedy);
}

/** Checks that requests of the largest legitimate size pass the proxy's limits. */
async function sizesVerdict(send: Send): Promise<Verdict> {
  const requests = [
    {
      what: `a query of ${LONG_QUERY_BYTES} characters`,
      request: { path: `${ENDPOINT.metadata}?${'x'.repeat(LONG_QUERY_BYTES)}` },
    },
    {
      what: `a body of ${LARGE_BODY_BYTES} bytes`,
      request: { path: ENDPOINT.token, form: { filler: 'x'.repeat(LARGE_BODY_BYTES) } },
    },
  ];
  for (const { what, request } of requests) {
    const answer = await send(request).catch(unreachable);
    const trouble = 'remedy' in answer ? answer : explainConnectionError(answer);
    if (trouble) return problem(`${what}: ${trouble.message}`, trouble.remedy);
  }
  return ok(`${requests.map(({ what }) => what).join(' and ')} arrive`);
}

/**
 * If the public address is on this machine (Debian resolves a machine's own name to 127.0.1.1),
 * returns another loopback address to connect from: so the service can distinguish the doctor from
 * the proxy. Not every system has more than one.
 */
async function ownLoopback(target: AddressToCheck, { to }: DoctorAnswer): Promise<string | undefined> {
  if (!to.startsWith('127.')) return undefined;
  const from = to === '127.0.0.2' ? '127.0.0.3' : '127.0.0.2';
  const { send } = createRequests({ ...target, from });
  const answer = await send({ path: ENDPOINT.metadata }).catch(() => undefined);
  return answer?.status === 200 ? from : undefined;
}
