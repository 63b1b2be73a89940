/** The names of people, organizations and warehouses: any text that a page can show as it is. */
import { hasBlankLetter, isOverloaded } from '../base/name-rules.ts';
import { Refusal } from '../base/refusal.ts';

const LONGEST_NAME = 200;
/** Controls, lone surrogates, direction overrides and the like: they change how a page reads. */
const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}]/u;

/**
 * The name as it is kept: one spelling for what looks the same, no space around it.
 *
 * @throws Refusal `name_invalid`
 */
export function displayName(entered: string): string {
  const name = visibleText(entered);
  if (name !== undefined && !hasBlankLetter(name) && !isOverloaded(name)) return name;
  throw new Refusal(
    'name_invalid',
    'This cannot be a name.',
    `Use 1 to ${LONGEST_NAME} visible characters, and at most two accents on a letter.`,
  );
}

/** As `displayName`, for imports: what another system calls things is not judged again. */
export function visibleText(entered: string): string | undefined {
  const text = entered.normalize('NFC').trim();
  const isVisible = text !== '' && [...text].length <= LONGEST_NAME && !INVISIBLE.test(text);
  return isVisible ? text : undefined;
}
