/** The verbs of the commands, each with one meaning for all nouns, and the former spellings. */

/** The meaning of each verb. A suffix names a part of the noun, as in `remove-secret`. */
export const VERBS = {
  allow: 'allows more than a limit does, for an hour',
  add: 'creates a new one',
  list: 'lists all, or those that match the options',
  show: 'shows one',
  update: 'changes its name or other properties',
  delete: 'deletes it for good',
  remove: 'removes a part of something that remains',
  set: 'gives rights or a role, which `remove` takes back',
  suspend: 'refuses it until it is resumed',
  resume: 'ends a suspension',
  end: 'ends something active, such as sessions',
  reports: 'lists what people reported about a client',
  revoke: 'revokes an API key: requests with it are refused',
  transfer: 'gives it to another owner',
  rotate: 'adds a second secret next to the current one',
  generate: 'prints a new value and changes nothing',
  invite: 'creates a one-time link',
  policy: 'shows or changes what an organization decides about all clients and API keys',
  requests: 'lists the clients that wait for an approval',
  approve: 'lets a client reach an organization that asks first',
  block: 'blocks a client in an organization, even if it is approved',
  unblock: 'ends the block of a client',
} as const;

interface Spelling {
  readonly former: readonly [noun: string, verb: string];
  readonly now: readonly [noun: string, verb: string];
  /** Options that have been renamed. */
  readonly options?: Readonly<Record<string, string>>;
  /** If set, the former spelling applies only together with this option. */
  readonly ifOption?: string;
}

/** The spellings of version 0.1; the first match applies. */
const FORMER: readonly Spelling[] = [
  { former: ['accounts', 'rename'], now: ['accounts', 'update'] },
  {
    former: ['accounts', 'change-email'],
    now: ['accounts', 'update'],
    options: { '--to': '--new-email' },
  },
  { former: ['accounts', 'links'], now: ['links', 'list'] },
  { former: ['accounts', 'unlink'], now: ['links', 'remove'] },
  {
    former: ['accounts', 'passkeys'],
    now: ['passkeys', 'remove'],
    options: { '--remove': '--passkey' },
    ifOption: '--remove',
  },
  { former: ['accounts', 'passkeys'], now: ['passkeys', 'list'] },
  { former: ['organizations', 'rename'], now: ['organizations', 'update'] },
  { former: ['organizations', 'remove'], now: ['organizations', 'delete'] },
  { former: ['warehouses', 'rename'], now: ['warehouses', 'update'] },
  { former: ['warehouses', 'remove'], now: ['warehouses', 'delete'] },
];

/** Returns the name of an option, without `=` and its value. */
const optionOf = (arg: string): string => arg.split('=', 1)[0] ?? arg;

/** Returns the command line in the current spelling, with a hint to print if it was changed. */
export function toPresentSpelling(args: readonly string[]): {
  readonly args: readonly string[];
  readonly hint?: string;
} {
  const found = FORMER.find(
    ({ former: [noun, verb], ifOption }) =>
      args[args.indexOf(noun) + 1] === verb &&
      args.includes(noun) &&
      (ifOption === undefined || args.some((arg) => optionOf(arg) === ifOption)),
  );
  if (!found) return { args };
  const { former, now, options = {} } = found;
  const place = args.indexOf(former[0]);
  const renamed = ([name, ...value]: readonly string[]): string =>
    [options[`${name}`] ?? name, ...value].join('=');
  const rest = args.slice(place + 2).map((arg) => renamed(arg.split('=')));
  const changes = Object.entries(options).map(
    ([before, after]) => `, and \`${before}\` is now \`${after}\``,
  );
  const hint = `\`${former.join(' ')}\` is now \`${now.join(' ')}\`${changes.join('')}.`;
  return { args: [...args.slice(0, place), ...now, ...rest], hint };
}
