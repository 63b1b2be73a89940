/** The verbs of the commands: each means the same for every noun. Former spellings still work. */

/** What each verb means. `remove-secret` is `remove` of a part. */
export const VERBS = {
  add: 'makes a new one',
  list: 'shows all, or those that the options match',
  show: 'shows one',
  update: 'changes what it is called, or what it has',
  delete: 'ends the thing itself, for good',
  remove: 'takes a part away from something that stays',
  set: 'gives what can be taken away again',
  suspend: 'refuses it until it is resumed',
  resume: 'ends a suspension',
  end: 'ends what goes on by itself, such as sessions',
  revoke: 'ends an API key: requests with it are refused',
  transfer: 'gives it to another owner',
  rotate: 'adds a second secret beside the one in use',
  generate: 'prints a new value and changes nothing',
  invite: 'makes a one-time link',
} as const;

interface Spelling {
  readonly former: readonly [noun: string, verb: string];
  readonly now: readonly [noun: string, verb: string];
  /** Options that have another name now. */
  readonly options?: Readonly<Record<string, string>>;
  /** Applies only if the command line has this option. */
  readonly ifOption?: string;
}

/** The spellings of version 0.1. The first that matches applies. */
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

/** Returns the command line in its present spelling, with a hint to print if that is another. */
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
    ([before, after]) => `, \`${before}\` is \`${after}\``,
  );
  const hint = `\`${former.join(' ')}\` is \`${now.join(' ')}\` now${changes.join('')}.`;
  return { args: [...args.slice(0, place), ...now, ...rest], hint };
}
