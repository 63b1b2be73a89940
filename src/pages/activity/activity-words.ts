/** What happened to an account, as it stands on the person's page. */
import type { ActivityRecord } from '../../accounts/activity/activity.ts';
import { wordsOf } from '../../accounts/activity/activity-words.ts';
import { browserInWords } from '../words/browser.ts';
import { type Moment, momentOf } from '../words/moment.ts';

export interface ActivityEntry {
  readonly at: Moment;
  /** `Signed in`, `API key revoked` */
  readonly what: string;
  /** The name of the client, key, organization or warehouse it was about. */
  readonly about: string | undefined;
  /** More about it, such as `ending in x7Qa`. */
  readonly note: string | undefined;
  /** Something that the person may not have done themselves. */
  readonly isWarning: boolean;
  /** `Firefox on Windows`, or `The operator`. */
  readonly by: string;
  /** The network address it came from; absent for what came from no browser. */
  readonly address: string | undefined;
}

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
  organization: 'An owner or admin of the organization',
};
