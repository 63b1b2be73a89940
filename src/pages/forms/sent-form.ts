/** Makes a form that creates a secret idempotent: if the form is sent twice, one secret is created and shown once. */
import { isLongId, randomId, sha256 } from '../../base/random-id.ts';

/** The hidden field whose value is unique to each rendered form. */
const CREATION_KEY_FIELD = 'creation_key';

export const newCreationKey = (): string => randomId('', 43);

/** @param typed the entered values. The hash contains them, so a form changed after Back is a different form. */
export function sentFormFrom(form: URLSearchParams, typed: readonly string[]) {
  const sent = form.get(CREATION_KEY_FIELD);
  const own = isLongId(sent) ? sent : newCreationKey();
  const content = JSON.stringify([own, ...typed]);
  return {
    /** A hash that is stored with the created object, and reveals neither the values of the form nor `shownAs`. */
    key: sha256(`made ${content}`),
    /** Returns the name under which a secret is stored until it is shown. Sending a form again gives the same name. */
    shownAs: (id: string): string => sha256(`shown ${id} ${content}`),
  };
}
