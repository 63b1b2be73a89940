/** Names rights in the operator's words. */
import type { Right } from '../../accounts/access/reach.ts';
import { textsFor } from '../../texts/texts.ts';

/** The setting `rights`: for each right one text, or one per language. */
type RightTexts = Readonly<Record<Right, string | Readonly<Record<string, string>>>>;

/** Returns, for example, `see stock, change stock`. */
export type RightsInWords = (rights: readonly string[], language: string) => string;

/** Returns the function that names rights. Without the operator's words, it uses those of the texts. */
export const createRightsInWords =
  (texts: RightTexts): RightsInWords =>
  (rights, language) =>
    rights
      .map((right) => {
        if (!Object.hasOwn(texts, right)) return right;
        const own = texts[right as Right];
        const text = typeof own === 'string' ? own : own[language];
        return text === undefined || text === right ? textsFor(language)(`rights.${right}`) : text;
      })
      .join(', ');
