/** Forms that create a secret. If a form is sent repeatedly, one secret is created, and shown once. */
import { randomId, sha256 } from '../../base/random-id.ts';

/** The hidden field that is unique to each rendered form. */
const CREATION_KEY_FIELD = 'creation_key';

const CREATION_KEY = /^[A-Za-z0-9_-]{43}$/;

/** Returns the value of the hidden field for a form that is being rendered. */
export const newCreationKey = (): string => randomId('', 43);

/** @param typed the entered values: a form whose values were changed after Back counts as another form */
export function sentFormFrom(form: URLSearchParams, typed: readonly string[]) {
  const sent = form.get(CREATION_KEY_FIELD) ?? '';
  const own = CREATION_KEY.test(sent) ? sent : newCreationKey();
  const content = JSON.stringify([own, ...typed]);
  return {
    /** Stored with the created object. This hash reveals neither the form's values nor `shownAs`. */
    key: sha256(`made ${content}`),
    /** Returns the name under which the new secret is kept until it is shown: the same if the form is sent again. */
    shownAs: (id: string): string => sha256(`shown ${id} ${content}`),
  };
}
