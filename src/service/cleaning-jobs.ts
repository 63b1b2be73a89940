/** The background jobs, which remove expired data and finish interrupted work. */
import { createErasureJob } from '../accounts/erasure.ts';
import { createTimeLimitJob } from '../authorizations/endings.ts';
import type { LeakedValues } from '../authorizations/leaked-values.ts';
import { endedPlacesCleaning } from '../changes/organizations.ts';
import { pushedChangesCleaning } from '../changes/removal-limit.ts';
import { importLinesCleaning } from '../changes/runs.ts';
import type { Settings } from '../config/settings.ts';
import { type CleaningJob, vacuumJob } from '../storage/cleaning.ts';
import type { NodeParts } from './common-registries.ts';

/** @param parts.settings returns the present settings */
export function cleaningJobs(
  parts: Pick<NodeParts, 'database' | 'clock' | 'store' | 'registries'> & {
    readonly settings: () => Settings;
    readonly limits: { removeExpired: CleaningJob };
    readonly leakedValues: LeakedValues;
  },
): Readonly<Record<string, CleaningJob>> {
  const { settings, database, clock, store, limits } = parts;
  const { activity, apiKeys, auditTrail, clientRequests } = parts.registries;
  const { connections, passkeys, passwordLinks, revocations } = parts.registries;
  const { sessionList } = parts.registries;

  const before = (seconds: number): Date => new Date(clock() - seconds * 1000);
  const retainedSince = (): Date => before(settings().activity.retentionSeconds);
  const oldestSignIn = (): Date => before(settings().sessions.absoluteSeconds);

  return {
    tokens: store.removeExpired,
    attempts: limits.removeExpired,
    client_requests: clientRequests.removeExpired,
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
