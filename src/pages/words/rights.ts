/** Names rights in the operator's words. */
import { RIGHTS, type Right } from '../../accounts/access/reach.ts';
import { textsFor } from '../../texts/texts.ts';

/** The setting `rights`: for some rights, one text or a text per language. */
type RightTexts = Readonly<Partial<Record<Right, string | Readonly<Record<string, string>>>>>;

/** Returns, for example, `see stock, change stock`. */
export type RightsInWords = (rights: readonly string[], language: string) => string;

/** Returns a function that names rights, in the operator's words or, without them, in the words of our texts. */
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
