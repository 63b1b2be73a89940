/** Names rights in the language of the user. */
import { RIGHTS, type Right } from '../../accounts/access/reach.ts';
import { textsFor } from '../../texts/texts.ts';

/** Returns a text such as `see stock, change stock`. */
export type RightsInWords = (rights: readonly string[], language: string) => string;

/** @param texts the setting `rights`: the operator's text, or texts by language, for some of the rights */
export const createRightsInWords =
  (texts: Readonly<Partial<Record<Right, string | Readonly<Record<string, string>>>>>): RightsInWords =>
  (rights, language) =>
    rights
      .map((right) => {
        if (!isRight(right)) return right;
        const own = texts[right];
        return (typeof own === 'string' ? own : own?.[language]) ?? textsFor(language)(`rights.${right}`);
      })
      .join(', ');

const isRight = (right: string): right is Right => RIGHTS.some((one) => one === right);
