/** A form that makes something with a secret: however often it is sent, one is made, and shown once. */
import { randomId, sha256 } from '../../base/random-id.ts';

/** The hidden field that tells one drawn form from the next. */
const CREATION_KEY_FIELD = 'creation_key';

const CREATION_KEY = /^[A-Za-z0-9_-]{43}$/;

/** For the hidden field of a form that is drawn. */
export const newCreationKey = (): string => randomId('', 43);

/** @param typed what was filled in: changed after Back, it is another form. */
export function sentFormFrom(form: URLSearchParams, typed: readonly string[]) {
  const sent = form.get(CREATION_KEY_FIELD) ?? '';
  const own = CREATION_KEY.test(sent) ? sent : newCreationKey();
  const content = JSON.stringify([own, ...typed]);
  return {
    /** Kept with what is made. Neither the form nor `shownAs` can be found from it. */
    key: sha256(`made ${content}`),
    /** The name under which the secret of what was made is shown, as often as the form is sent. */
    shownAs: (id: string): string => sha256(`shown ${id} ${content}`),
  };
}
