/** `operator config …`: the earlier texts of the settings file, and their return. */
import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import type { Command } from 'commander';
import { createTwoFilesPatch } from 'diff';
import { Refusal } from '../base/refusal.ts';
import { findSettingsFile } from '../config/load.ts';
import { ConfigurationProblems } from '../config/problems.ts';
import { type HistoryEntry, settingsHistory } from '../storage/settings-history.ts';
import { wholeNumber } from './command/arguments.ts';
import type { Operator, Report } from './command/operator.ts';
import { REFUSED, table } from './command/report.ts';
import { readDatabase, toMoment } from './nodes.ts';

const NUMBER = wholeNumber(2 ** 31 - 1);

export function addConfigCommands(program: Command, operator: Operator): void {
  const { print, announce, environment } = operator;
  /** Works although the file has problems, because its restoration may be the remedy. */
  async function history(): Promise<HistoryEntry[]> {
    const { settings, problems } = findSettingsFile({ environment });
    return readDatabase(settings.storage, settingsHistory).catch((error) => {
      throw problems.length > 0 ? new ConfigurationProblems(problems) : error;
    });
  }

  const noun = program
    .command('config')
    .description('show and restore the texts of the settings file that nodes have taken');
  noun
    .command('history')
    .description('list the last 20 texts: when, by which node, and why')
    .action(async () => print(historyReport(await history())));
  noun
    .command('show')
    .description('print the text with this number')
    .argument('<number>', 'a number of `config history`', NUMBER)
    .action(async (number: number) => {
      const text = textOf(await history(), number);
      print({ value: { number, text }, text: text.trimEnd() });
    });
  noun
    .command('diff')
    .description('compare two texts')
    .argument('<number>', 'the older one', NUMBER)
    .argument('<other>', 'the newer one', NUMBER)
    .action(async (number: number, other: number) => {
      const entries = await history();
      const [before, after] = [textOf(entries, number), textOf(entries, other)];
      const diff = createTwoFilesPatch(`${number}`, `${other}`, before, after).trimEnd();
      print({ value: { diff }, text: before === after ? 'The texts are the same.' : diff });
    });
  noun
    .command('restore')
    .description('write an earlier text back into the settings file; `reload` then applies it')
    .argument('<number>', 'a number of `config history`', NUMBER)
    .addHelpText(
      'after',
      '\nKeeps the mode and owner of the file. A present text that is not in the history gets ' +
        'a file of its\nown first. If the file cannot be written (a read-only mount, a ' +
        'ConfigMap), the earlier text is printed\ninstead, with exit code 1.',
    )
    .action(async (number: number) => {
      const { settings, file } = findSettingsFile({ environment });
      announce(settings);
      print(restore(file, number, await history()));
    });
}

function historyReport(entries: readonly HistoryEntry[]): Report {
  const rows = entries.map(({ number, hash, takenAt, node, message, notKeptBecause }) => [
    `${number}`,
    toMoment(takenAt),
    node,
    hash.slice(0, 8),
    [message, notKeptBecause && `not kept: ${notKeptBecause}`].filter(Boolean).join('; '),
  ]);
  const heading = ['NUMBER', 'TAKEN AT', 'NODE', 'HASH', 'MESSAGE'];
  return {
    value: entries.map(({ text: _, takenAt, notKeptBecause, ...entry }) => ({
      ...entry,
      taken_at: takenAt,
      not_kept_because: notKeptBecause,
    })),
    text: table(heading, rows, 'No node has taken any settings yet.', { mayBeWide: true }),
  };
}

/** @throws Refusal if there is no such entry, or if its text was not kept */
function textOf(entries: readonly HistoryEntry[], number: number): string {
  const entry = entries.find((one) => one.number === number);
  if (entry?.text) return entry.text;
  const why = entry
    ? `The text with the number ${number} was not kept: ${entry.notKeptBecause ?? 'it is empty'}.`
    : `The history has no settings with the number ${number}.`;
  const remedy = '`gatehouse config history` lists the last 20.';
  throw new Refusal(entry ? 'not_kept' : 'unknown_settings', why, remedy);
}

function restore(file: string, number: number, entries: readonly HistoryEntry[]): Report {
  const text = textOf(entries, number);
  try {
    const copy = replace(file, text, (present) => entries.some((entry) => entry.text === present));
    const copied = copy && `Its former text, which is not in the history, is now in ${copy}.\n`;
    return {
      value: { file, number, copy: copy ?? null },
      text:
        `${file} has the text ${number} again.\n${copied ?? ''}` +
        'Run `gatehouse check-config` and `gatehouse reload` to apply it.',
    };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const message = `${file} cannot be written here (${code}): write this text into it.`;
    return {
      value: { error: { code: 'not_writable', message, remedy: 'write `text` into it' }, text },
      text: `${message}\n\n${text.trimEnd()}`,
      exitCode: REFUSED,
    };
  }
}

/**
 * Replaces the file in one step, with its mode and owner, and returns the name of the copy, if any.
 *
 * @throws an error with a `code` if the file cannot or must not be changed; nothing is changed then
 */
function replace(file: string, text: string, isKept: (present: string) => boolean) {
  const present = fs.statSync(file, { throwIfNoEntry: false });
  // Write through a link, which stays.
  const target = present ? fs.realpathSync(file) : file;
  const { mode = 0o644, uid = -1, gid = -1 } = present ?? {};
  // Root may write every file: refuse one without any permission to write. Kubernetes replaces the
  // directory `..data` of a ConfigMap as a whole.
  if (!(mode & 0o222) || /\/\.\.[^/]/.test(target))
    throw Object.assign(new Error(), { code: 'EROFS' });
  if (present) fs.accessSync(target, fs.constants.W_OK);
  const name = `${target}.${randomBytes(4).toString('hex')}`;
  const draft = `${name}.new`;
  const copy = present && !isKept(fs.readFileSync(target, 'utf8')) ? `${name}.before` : undefined;
  try {
    fs.writeFileSync(draft, text, { flag: 'wx', mode: 0o600, flush: true });
    fs.chownSync(draft, uid, gid);
    fs.chmodSync(draft, mode & 0o7777);
    // A second name keeps the former file as it is, with its mode and owner.
    if (copy) fs.linkSync(target, copy);
    fs.renameSync(draft, target);
    return copy;
  } finally {
    fs.rmSync(draft, { force: true });
  }
}
