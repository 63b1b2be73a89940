/** Counters of token requests, sign-ins, mails and background jobs, and a gauge of the latest reload. */
import { Counter, Gauge, type Registry } from 'prom-client';
import { SECRET_KINDS } from '../../base/random-id.ts';
import type { PasswordOutcomes } from '../../pages/sign-in/password-check.ts';
import { UPSTREAM_OUTCOMES, type UpstreamOutcomes } from '../../pages/sign-in/upstream-providers.ts';
import type { ProviderOutcomes } from '../../provider/outcomes.ts';

export interface Outcomes extends ProviderOutcomes, PasswordOutcomes, UpstreamOutcomes {
  /** A mail with a password link. `dropped` means that no attempt was made to send it. */
  mailed(outcome: 'sent' | 'failed' | 'dropped'): void;
  /** A valid value was found in public. It is revoked at once, or, for a client secret, after `leaks.secret_grace`. */
  valueLeaked(kind: string): void;
  cleaned(job: string, removed: number): void;
  cleaningFailed(job: string): void;
  /** Counts an error that no request and no job has caught. */
  failedUnexpectedly(): void;
}

const GRANT_TYPES = ['authorization_code', 'refresh_token', 'client_credentials'];
const ERRORS = [
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'invalid_scope',
  'invalid_target',
  'unauthorized_client',
  'unsupported_grant_type',
  'unsupported_response_type',
  'unsupported_response_mode',
  'invalid_redirect_uri',
  'access_denied',
  'login_required',
  'consent_required',
  'interaction_required',
  'slow_down',
  'temporarily_unavailable',
  'server_error',
];

/** Returns `other` for unknown values: callers may send any value, and each value would remain as a series. */
const bounded = (known: readonly string[], value: string): string => (known.includes(value) ? value : 'other');

export function createOutcomeMetrics(registry: Registry): Outcomes {
  const registers = [registry];
  const count = (name: string, help: string): { inc(by?: number): void } => new Counter({ name, help, registers });
  /** Start known values at 0, because an alert cannot see the first increment of a new series. */
  const countBy = (
    label: string,
    { name, help, values = [] }: { name: string; help: string; values?: readonly string[] },
  ): ((value: string, by?: number) => void) => {
    const counter = new Counter({ name, help, labelNames: [label], registers });
    for (const value of values) counter.labels(value).inc(0);
    return (value, by = 1) => counter.labels(value).inc(by);
  };

  const issued = countBy('grant_type', {
    name: 'gatehouse_tokens_issued_total',
    help: 'Token responses, by grant type.',
    values: GRANT_TYPES,
  });
  const refused = new Counter({
    name: 'gatehouse_token_requests_refused_total',
    help: 'Refused token requests, by grant type and OAuth error.',
    labelNames: ['grant_type', 'error'],
    registers,
  });
  const authorizations = countBy('outcome', {
    name: 'gatehouse_authorizations_total',
    help: 'Completed authorization requests: with a code, or with this error.',
    values: ['code'],
  });
  const retries = count(
    'gatehouse_refresh_retries_total',
    'Refresh tokens used again inside the retry window, answered with the same successor.',
  );
  const replays = countBy('kind', {
    name: 'gatehouse_replays_total',
    help: 'Reused codes and refresh tokens: their authorizations were revoked.',
    values: ['code', 'refresh_token'],
  });
  const clientRefusals = countBy('reason', {
    name: 'gatehouse_client_secrets_refused_total',
    help: 'Failed client authentications: refused, or answered 429 after too many.',
    values: ['wrong', 'throttled'],
  });
  const introspections = countBy('active', {
    name: 'gatehouse_introspections_total',
    help: 'Answered introspections; many inactive ones at once can mean that tokens were lost.',
    values: ['true', 'false'],
  });
  const passwords = countBy('outcome', {
    name: 'gatehouse_sign_ins_total',
    help: 'Passwords typed on our pages, to sign in or to confirm a change.',
    values: ['succeeded', 'failed', 'throttled', 'busy'],
  });
  const upstream = new Counter({
    name: 'gatehouse_upstream_sign_ins_total',
    help: 'Users who came back from a provider, by outcome.',
    labelNames: ['provider', 'outcome'],
    registers,
  });
  const mails = countBy('outcome', {
    name: 'gatehouse_mails_total',
    help: 'Mails to users and owners, of every kind.',
    values: ['sent', 'failed', 'dropped'],
  });
  const leaks = countBy('kind', {
    name: 'gatehouse_leaked_values_total',
    help: 'Valid values that were reported as found in public, and ended.',
    values: SECRET_KINDS,
  });
  const removed = countBy('task', {
    name: 'gatehouse_cleaning_removed_total',
    help: 'Expired records that were removed.',
  });
  const cleaningFailures = countBy('task', {
    name: 'gatehouse_cleaning_failures_total',
    help: 'Failed runs of the removal of expired records.',
  });
  const unexpected = count(
    'gatehouse_unexpected_errors_total',
    'Errors that no request and no background job has caught: each is a bug.',
  );

  return {
    tokenIssued: (grantType) => issued(bounded(GRANT_TYPES, grantType)),
    tokenRefused(grantType, error) {
      const labels = { grant_type: bounded(GRANT_TYPES, grantType), error: bounded(ERRORS, error) };
      refused.inc(labels);
    },
    authorizationIssued: () => authorizations('code'),
    authorizationRefused: (error) => authorizations(bounded(ERRORS, error)),
    refreshRetried: () => retries.inc(),
    grantReplayed: (kind) => replays(kind),
    clientSecretRefused: (reason) => clientRefusals(reason),
    introspected: (isActive) => introspections(String(isActive)),
    passwordChecked: (outcome) => passwords(outcome),
    providersKnown(ids) {
      for (const provider of ids) for (const outcome of UPSTREAM_OUTCOMES) upstream.inc({ provider, outcome }, 0);
    },
    cameFromUpstream: (provider, outcome) => upstream.inc({ provider, outcome }),
    mailed: (outcome) => mails(outcome),
    valueLeaked: (kind) => leaks(kind),
    cleaned(job, number) {
      removed(job, number);
      cleaningFailures(job, 0);
    },
    cleaningFailed: (job) => cleaningFailures(job),
    failedUnexpectedly: () => unexpected.inc(),
  };
}

export function createReloadMetrics(registry: Registry) {
  const isTaken = new Gauge({
    name: 'gatehouse_config_last_reload_successful',
    help: 'Whether the last reload of the settings was successful (1) or refused (0).',
    registers: [registry],
  });
  isTaken.set(1);
  return {
    /** @param isTakenOver true if the new settings are in use; false if the reload was refused */
    settingsReloaded: (isTakenOver: boolean): void => isTaken.set(isTakenOver ? 1 : 0),
  };
}
