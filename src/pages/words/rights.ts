/** Names rights in the operator's words. */
import { RIGHTS, type Right } from '../../accounts/access/reach.ts';
import { textsFor } from '../../texts/texts.ts';

/** The setting `rights`: for some rights one text, or one per language. */
type RightTexts = Readonly<Partial<Record<Right, string | Readonly<Record<string, string>>>>>;

/** Returns, for example, `see stock, change stock`. */
export type RightsInWords = (rights: readonly string[], language: string) => string;

/** Returns the function that names rights. Without the operator's words, it uses those of the texts. */
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
