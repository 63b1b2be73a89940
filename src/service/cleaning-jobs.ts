/** The background jobs, which remove expired data and finish interrupted work. */
import { createErasureJob } from '../accounts/erasure.ts';
import { createTimeLimitJob } from '../authorizations/endings.ts';
import type { LeakedValues } from '../authorizations/leaked-values.ts';
import type { Clock } from '../base/clock.ts';
import { endedPlacesCleaning } from '../changes/organizations.ts';
import { pushedChangesCleaning } from '../changes/removal-limit.ts';
import { importLinesCleaning } from '../changes/runs.ts';
import type { Settings } from '../config/settings.ts';
import { type CleaningJob, vacuumJob } from '../storage/cleaning.ts';
import type { Database } from '../storage/queries.ts';
import type { TokenStore } from '../storage/token-store.ts';
import type { Application } from './application.ts';
import type { CommonRegistries } from './common-registries.ts';

const MAILS_AT_ONCE = 20;
const MAIL_RETRY_MS = 3_600_000;

/** @param parts.settings returns the present settings */
export function cleaningJobs(parts: {
  readonly settings: () => Settings;
  readonly application: () => Pick<Application, 'mail'>;
  readonly database: Database;
  readonly clock: Clock;
  readonly store: TokenStore;
  readonly limits: { removeExpired: CleaningJob };
  readonly registries: CommonRegistries;
  readonly leakedValues: LeakedValues;
}): Readonly<Record<string, CleaningJob>> {
  const { settings, database, clock, store, limits } = parts;
  const { activity, apiKeys, auditTrail, clientNetworks, clientRequests } = parts.registries;
  const { connections, passkeys, passwordLinks, revocations } = parts.registries;
  const { sessionList } = parts.registries;

  const before = (seconds: number): Date => new Date(clock() - seconds * 1000);
  const retainedSince = (): Date => before(settings().activity.retentionSeconds);
  const oldestSignIn = (): Date => before(settings().sessions.absoluteSeconds);

  /** When this node tries again, for each client whose mail could not be sent. */
  const nextTries = new Map<string, number>();

  /** Starts a few mails and does not wait for them, because no other job may wait for the mail server. */
  async function mailNetworks(): Promise<number> {
    const { mail } = parts.application();
    if (!mail) return 0;
    for (const [id, at] of nextTries) if (at <= clock()) nextTries.delete(id);
    const all = await clientNetworks.takeUnmailed(MAILS_AT_ONCE, [...nextTries.keys()]);
    for (const one of all) {
      const path = `/profile/oauth-clients/${one.clientId}/secrets`;
      void mail.reportNetworks(one.ownerAccountId, { ...one, path }).then((isSent) => {
        if (isSent !== false) return;
        nextTries.set(one.clientId, clock() + MAIL_RETRY_MS);
        // If this fails as well, the page of the client still marks the networks as new.
        return clientNetworks.putBack(one).catch(() => {});
      });
    }
    return all.length;
  }

  return {
    tokens: store.removeExpired,
    attempts: limits.removeExpired,
    client_requests: clientRequests.removeExpired,
    client_networks: clientNetworks.removeExpired,
    network_mails: mailNetworks,
    api_keys: apiKeys.removeExpired,
    password_links: passwordLinks.removeExpired,
    browser_sessions: (limit) => sessionList.removeOlderThan(oldestSignIn(), limit),
    passkey_challenges: passkeys.removeExpired,
    activity: (limit) => activity.removeOlderThan(retainedSince(), limit),
    log_generation: auditTrail.begin,
    erased_people: createErasureJob(database),
    refused_sign_ins: () => activity.writeRefused().then(() => 0),
    revocations: revocations.removeExpired,
    import_lines: importLinesCleaning({ database }),
    pushed_changes: pushedChangesCleaning({ database, clock }),
    leaked_secrets: parts.leakedValues.refuseDueSecrets,
    time_limits: createTimeLimitJob(connections, activity),
    ended_places: endedPlacesCleaning({ database, engine: parts.registries.engine }),
    // Vacuum last, so that the space of rows that the other jobs removed can be used again.
    ...(database.embedded && { vacuum: vacuumJob(database) }),
  };
}
