/** Names rights in the language of the user. */
import { RIGHTS, type Right } from '../../accounts/access/reach.ts';
import { textsFor } from '../../texts/texts.ts';

/** The setting `rights`, which has one text, or one text for each language, for some of the rights. */
type RightTexts = Readonly<Partial<Record<Right, string | Readonly<Record<string, string>>>>>;

/** Returns a text such as `see stock, change stock`. */
export type RightsInWords = (rights: readonly string[], language: string) => string;

/** @param texts the operator's texts, which replace the default names of rights */
export const createRightsInWords =
  (texts: RightTexts): RightsInWords =>
  (rights, language) =>
    rights
      .map((right) => {
        if (!isRight(right)) return right;
        const own = texts[right];
        return (typeof own === 'string' ? own : own?.[language]) ?? textsFor(language)(`rights.${right}`);
      })
      .join(', ');

const isRight = (right: string): right is Right => RIGHTS.some((one) => one === right);
