/** Names of users, organizations and warehouses: any text that a page can show unchanged. */
import { hasBlankLetter, isOverloaded } from '../base/name-rules.ts';
import { Refusal } from '../base/refusal.ts';

const MAX_NAME_LENGTH = 200;
/** Controls, lone surrogates, direction overrides and the like: they change how a page reads. */
const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}]/u;

/**
 * Returns the name as it is stored: one spelling for what looks the same, no space around it.
 *
 * @throws Refusal `name_invalid`
 */
export function displayName(entered: string): string {
  const name = visibleText(entered);
  if (name !== undefined && !hasBlankLetter(name) && !isOverloaded(name)) return name;
  throw new Refusal(
    'name_invalid',
    'This cannot be a name.',
    `Use 1 to ${MAX_NAME_LENGTH} visible characters, and at most two accents on a letter.`,
  );
}

/** Like `displayName`, for imports: names of another system are not checked for odd letters. */
export function visibleText(entered: string): string | undefined {
  const text = entered.normalize('NFC').trim();
  const isVisible = text !== '' && [...text].length <= MAX_NAME_LENGTH && !INVISIBLE.test(text);
  return isVisible ? text : undefined;
}
