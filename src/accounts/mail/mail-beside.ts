/** Mail that is sent beside the request it follows from: nobody waits for it, and nothing fails with it. */
import type { Logger } from 'pino';

export interface MailBeside {
  /** Returns at once. @param what for the log. @param work resolves with whether a mail was sent. */
  begin(what: string, work: () => Promise<boolean>): void;
  /** Resolves when what was begun is done. */
  close(): Promise<void>;
}

/** Told of each mail. */
export interface MailOutcomes {
  mailed(outcome: 'sent' | 'failed' | 'dropped'): void;
}

/** More at the same time are dropped: each holds memory and a connection to the mail server. */
const MOST_AT_ONCE = 100;

export function createMailBeside({
  log,
  outcomes,
}: {
  readonly log: Logger;
  readonly outcomes: MailOutcomes;
}): MailBeside {
  const begun = new Set<Promise<void>>();
  return {
    begin(what, work) {
      if (begun.size >= MOST_AT_ONCE) {
        outcomes.mailed('dropped');
        log.warn({ what }, 'too many mails at once: one was dropped');
        return;
      }
      const sending = work()
        .then((isSent) => {
          if (isSent) outcomes.mailed('sent');
        })
        .catch((err: unknown) => {
          outcomes.mailed('failed');
          log.error({ err }, `${what} was not mailed`);
        })
        .finally(() => begun.delete(sending));
      begun.add(sending);
    },

    async close() {
      await Promise.all(begun);
    },
  };
}
