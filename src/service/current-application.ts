/** Holds the application for the settings in force; a reload replaces it. */
import type { Logger } from 'pino';
import type { Settings } from '../config/settings.ts';
import type { Application } from './application.ts';

export type CurrentApplication = ReturnType<typeof createCurrentApplication>;

export function createCurrentApplication(parts: {
  readonly settings: Settings;
  readonly build: (settings: Settings) => Application;
  readonly log: Logger;
}) {
  const { build, log } = parts;
  let current = { settings: parts.settings, application: build(parts.settings) };
  const replacedClosing = new Set<Promise<void>>();

  return {
    get settings(): Settings {
      return current.settings;
    },
    get application(): Application {
      return current.application;
    },

    /** Requests in progress finish on the application that they started on. */
    replace(settings: Settings): void {
      const replaced = current.application;
      current = { settings, application: build(settings) };
      log.level = settings.log.level;
      // Do not wait: its background work, such as sending a mail, may take time.
      const closing = replaced
        .close()
        .catch((err: unknown) => log.error({ err }, 'what was replaced did not end cleanly'))
        .finally(() => replacedClosing.delete(closing));
      replacedClosing.add(closing);
    },

    /** Resolves when every replaced application is closed. */
    replacedClosed: async (): Promise<void> => {
      await Promise.all(replacedClosing);
    },

    close: (): Promise<void> => current.application.close(),
  };
}
