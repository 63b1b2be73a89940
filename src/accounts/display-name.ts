/** Names of users, organizations and warehouses, which may be any text that a page can show unchanged. */
import { holdsSecret } from '../base/random-id.ts';
import { Refusal } from '../base/refusal.ts';
import { hasBlankLetter, isOverloaded, nameProblem } from '../texts/name-rules.ts';

const MAX_NAME_LENGTH = 200;
/** Characters that change how a page reads, such as controls, lone surrogates and direction overrides. */
const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}]/u;

/** Returns the trimmed name in form NFC. @throws Refusal `name_invalid`; `name_secret` if the name contains a secret */
export function displayName(entered: string): string {
  if (holdsSecret(entered)) {
    const problem = nameProblem('secret');
    const options = { problems: [problem] };
    throw new Refusal(problem.code, 'This name is not allowed.', problem.message, options);
  }
  const name = visibleText(entered);
  if (name !== undefined && !hasBlankLetter(name) && !isOverloaded(name)) return name;
  throw new Refusal(
    'name_invalid',
    'This name is not allowed.',
    `Use 1 to ${MAX_NAME_LENGTH} visible characters, and at most two accents on a letter.`,
  );
}

/** For imports: like `displayName`, but accepts unusual letters. Returns undefined if the text is not acceptable. */
export function visibleText(entered: string): string | undefined {
  const text = entered.normalize('NFC').trim();
  const isVisible = text !== '' && [...text].length <= MAX_NAME_LENGTH && !INVISIBLE.test(text);
  return isVisible ? text : undefined;
}
