/** Names rights in the operator's words. */
import type { Right } from '../../accounts/access/reach.ts';

/** The setting `rights`: for each right one text, or one per language. */
type RightTexts = Readonly<Record<Right, string | Readonly<Record<string, string>>>>;

/** Returns, for example, `see stock, change stock`. */
export type RightsInWords = (rights: readonly string[], language: string) => string;

/** Returns the function that names rights. Without words in the language a right keeps its name. */
export const createRightsInWords =
  (texts: RightTexts): RightsInWords =>
  (rights, language) =>
    rights
      .map((right) => {
        const text = Object.hasOwn(texts, right) ? texts[right as Right] : right;
        return typeof text === 'string' ? text : (text[language] ?? right);
      })
      .join(', ');
