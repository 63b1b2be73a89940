/** `operator check-config`: whether the service would start on these settings. */
import type { Command } from 'commander';
import { checkSettings } from '../config/load.ts';
import type { SettingsWithoutSecrets } from '../config/settings.ts';
import type { Operator } from './operator.ts';

export function addCheckConfigCommand(program: Command, { print }: Operator): void {
  program
    .command('check-config')
    .description('report every problem of the settings file and the environment; opens nothing')
    .argument('[file]', 'the settings file; else GATEHOUSE_CONFIG, else config/gatehouse.yaml')
    .action((file: string | undefined) => {
      const settings = checkSettings(file === undefined ? {} : { file });
      const { issuer, storage, mail } = settings;
      print({
        value: {
          valid: true,
          issuer,
          database: storage.databaseUrl === undefined ? 'embedded' : 'postgresql',
          tokens: storage.redisUrl === undefined ? 'database' : 'redis',
          mail: mail === undefined ? 'off' : 'smtp',
        },
        text: summary(settings),
      });
    });
}

/** In words, because the URLs may hold passwords. */
function summary({ issuer, server, storage, mail }: SettingsWithoutSecrets): string {
  const database =
    storage.databaseUrl === undefined
      ? `embedded, in ${storage.dataDirectory}`
      : 'PostgreSQL, by URL';
  return [
    'The settings are fine.',
    `Issuer:   ${issuer}`,
    `Listens:  ${server.host}:${server.port}, for operators ${server.operatorsHost}:${server.operatorsPort}`,
    `Database: ${database}`,
    `Tokens:   ${storage.redisUrl === undefined ? 'in the database' : 'Redis, by URL'}`,
    `Mail:     ${mail === undefined ? 'off' : `by URL, from ${mail.from}`}`,
  ].join('\n');
}
