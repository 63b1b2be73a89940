/** What happened to an account, as it stands on the person's page. */
import type { ActivityRecord } from '../accounts/activity.ts';
import { wordsOf } from '../accounts/activity-words.ts';
import type { ActivityEntry } from './activity-view.ts';
import { browserInWords } from './browser-words.ts';
import { momentOf } from './moment.ts';

export function activityInWords(record: ActivityRecord): ActivityEntry {
  const { at, actor, origin } = record;
  return {
    at: momentOf(at),
    ...wordsOf(record),
    by: origin && actor === 'person' ? browserInWords(origin.browser) : ACTORS[actor],
    address: origin?.address,
  };
}

/** Who it was, where it was not a person with a browser. */
const ACTORS: Readonly<Record<ActivityRecord['actor'], string>> = {
  person: 'You',
  operator: 'The operator of this service',
  client: 'The client',
  service: 'This service',
};
